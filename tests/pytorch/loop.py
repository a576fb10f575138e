"""A training loop in Python on the CPU build, by ctypes, for tests/pytorch/lines.t: argument 1
names the mistake that rank 1 makes. Like PyTorch's, its calls let the interpreter's lock go."""
import contextlib
import ctypes
import os
import sys
import threading
import time

top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ctypes.CDLL(top + "/build/cpu/libnccl-cpu.so", mode=ctypes.RTLD_GLOBAL)
nccl = ctypes.CDLL(None)  # by name, as a linked library finds them: the checks come first
rank, nranks = (int(os.environ["OMPI_COMM_WORLD_" + name]) for name in ("RANK", "SIZE"))
mistake, folder = sys.argv[1], sys.argv[2]
if mistake == "package":
    __file__ = folder + "/site-packages/many.py"  # as with python -m


class Id(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def must(result):
    if result not in (0, 7):
        raise SystemExit(f"error {result}")


def start(name="id"):
    unique = Id()
    path = folder + "/" + name
    if rank == 0:
        must(nccl.ncclGetUniqueId(ctypes.byref(unique)))
        with open(path + ".new", "wb") as f:
            f.write(ctypes.string_at(ctypes.byref(unique), 128))
        os.rename(path + ".new", path)
    while not os.path.exists(path):
        time.sleep(0.01)
    with open(path, "rb") as f:
        ctypes.memmove(ctypes.byref(unique), f.read(), 128)
    comm = ctypes.c_void_p()
    must(nccl.ncclCommInitRank(ctypes.byref(comm), nranks, unique, rank))
    return comm


must(nccl.cudaSetDevice(rank))
comm, stream, buffer = start(), ctypes.c_void_p(), ctypes.c_void_p()
must(nccl.cudaStreamCreateWithFlags(ctypes.byref(stream), 1))
must(nccl.cudaMalloc(ctypes.byref(buffer), ctypes.c_size_t(4096)))
must(nccl.cudaMemsetAsync(buffer, 0, ctypes.c_size_t(4096), stream))


def all_reduce(count, on=None):
    must(nccl.ncclAllReduce(buffer, buffer, ctypes.c_size_t(count), 7, 0, on or comm, stream))


def cross():
    """Two communicators: each rank waits for the device after its own first call."""
    second = start("second")
    for on in (comm, second) if rank == 0 else (second, comm):
        all_reduce(1024, on)
        must(nccl.cudaDeviceSynchronize())  # crossed


def joins():
    """Rank 0 makes a second communicator, and rank 1 waits for an all-reduce."""
    if rank == 0:
        start("second")  # joins
    all_reduce(1024)
    must(nccl.cudaDeviceSynchronize())


def lines():
    """Two lines in turn, so often that neither is looked up any more; then they differ."""
    for number in range(40):
        must(nccl.ncclAllReduce(buffer, buffer, ctypes.c_size_t(1024), 7, 0, comm, stream))
        count = 512 if rank == 1 and number == 39 else 1024
        must(nccl.ncclAllReduce(buffer, buffer, ctypes.c_size_t(count), 7, 0, comm, stream))  # second


def backward(torch):
    """The same with calls of a thread that has no line of its own."""
    torch.autograd(buffer, comm, stream)
    for number in range(40):
        all_reduce(1024)
        torch.backward(ctypes.c_size_t(512 if rank == 1 and number == 39 else 1024))  # backward
        torch.backward(ctypes.c_size_t(1024))


def places(path):
    """A thousand lines and more. The last one's call comes by the standard library, and by what is called torch."""
    sys.path.insert(0, folder)
    right, last = ((buffer, buffer, ctypes.c_size_t(count), 7, 0, comm, stream)
                   for count in (1024, 512 if rank == 1 else 1024))
    script = ("nccl.ncclAllReduce(*right)\n" * 1100
              + "with ExitStack() as stack: stack.callback(torch.call, nccl.ncclAllReduce, last)\n")
    exec(compile(script, path, "exec"), {"ExitStack": contextlib.ExitStack, "nccl": nccl, "torch": __import__("torch"),
                                         "right": right, "last": last})


def holds(torch):
    torch.hold_asked()
    ctypes.PyDLL(folder + "/watchdog.so").hold()


def held(torch):
    """A thread has the interpreter's lock and does not give it away."""
    threading.Thread(target=holds, args=[torch]).start()
    torch.many(buffer, comm, stream, ctypes.c_size_t(512 if rank == 1 else 1024), 1)  # held


def held_often(torch):
    """The same, and no line is known yet."""
    threading.Thread(target=holds, args=[torch]).start()
    begun = time.monotonic()
    torch.many(buffer, comm, stream, ctypes.c_size_t(1024), 2000)
    print("soon" if time.monotonic() - begun < 20 else "late", flush=True)


def step(number):
    if mistake == "skip" and rank == 1 and number == 2:
        return
    all_reduce(512 if mistake == "count" and rank == 1 and number == 2 else 1024)


def loop():
    for number in range(4):
        step(number)
        must(nccl.cudaStreamSynchronize(stream))  # waits


if mistake.startswith("busy-"):  # another thread of Python has the lock, most of the time
    mistake = mistake[5:]
    threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(int, 1)], daemon=True).start()
if mistake.startswith("watched-"):
    mistake = mistake[8:]
    all_reduce(1024)
    event = ctypes.c_void_p()
    must(nccl.cudaEventCreate(ctypes.byref(event)))
    must(nccl.cudaEventRecord(event, stream))
    watchdog = ctypes.CDLL(folder + "/watchdog.so")  # asks for it, in a thread of its own
    watchdog.watchdog(event, comm)
if mistake in ("cross", "joins", "lines"):
    {"cross": cross, "joins": joins, "lines": lines}[mistake]()
elif mistake in ("places", "package"):
    places(__file__ if mistake == "package" else folder + "/lib/python3/many.py")
    must(nccl.cudaStreamSynchronize(stream))
elif mistake in ("backward", "held", "held_often"):
    globals()[mistake](ctypes.CDLL(folder + "/watchdog.so"))
    must(nccl.cudaStreamSynchronize(stream))
elif mistake.startswith("other-"):  # the calls are a thread's that is not the main one
    mistake = mistake[6:]
    other = threading.Thread(target=loop)
    other.start()
    other.join()
else:
    loop()
if "watchdog" in globals():
    watchdog.watchdog_ends()
must(nccl.cudaFree(buffer))
must(nccl.cudaStreamDestroy(stream))
must(nccl.ncclCommDestroy(comm))
os.write(1, b"ended\n")
