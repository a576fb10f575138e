#!/usr/bin/python3
"""The lessons' Python programs, on the ranks and with gloo: each must print the tables, the
losses and the verdict of its C program. PyTorch is loaded once; each rank is a fork of this
process, which torchrun, in the version that Debian 12 has, would not start."""
import os
import re
import runpy
import signal
import subprocess
import sys
import tempfile

top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.chdir(top)
os.environ.update(OMP_NUM_THREADS="1", MASTER_ADDR="127.0.0.1")
try:
    import torch.distributed  # noqa: F401  (also loads it for the forks)
except ImportError:
    print("1..0 # skip no PyTorch here (package python3-torch)")
    sys.exit(0)
ALL = os.environ.get("ALL") == "yes"
LIMIT = 120
port, tests = 20000 + os.getpid() % 12000, 0  # below those that the kernel gives to connections


def check(good, name, why=""):
    global tests
    tests += 1
    print(f"{'ok' if good else 'not ok'} {tests} - {name}", flush=True)
    if not good:
        print("# " + why.replace("\n", "\n# "), flush=True)


def rank_of(rank, nranks, arguments, out):
    """What a fork does instead of going on."""
    os.dup2(out, 1)
    os.dup2(out, 2)
    signal.alarm(LIMIT)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(nranks), MASTER_PORT=str(port))
    sys.argv, code = arguments, 1
    try:
        runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 1
        if isinstance(e.code, str):
            os.write(2, e.code.encode())
    except BaseException as e:
        os.write(2, f"{type(e).__name__}: {e}\n".encode())
    sys.stdout.flush()
    os._exit(code)


def python(nranks, *arguments, world=None):
    """Runs a program on so many ranks, of a world that may have more. Returns what they printed,
    and the exit codes."""
    global port
    port += 2
    with tempfile.TemporaryFile() as out:
        ranks = []
        for rank in range(nranks):
            child = os.fork()
            if child == 0:
                rank_of(rank, world or nranks, list(arguments), out.fileno())
            ranks.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in ranks]
        out.seek(0)
        return out.read().decode(), codes


def c_program(nranks, path):
    run = subprocess.run(["timeout", str(LIMIT), "mpirun", "--oversubscribe", "-np", str(nranks),
                          path], capture_output=True, text=True)
    return run.stdout


def tables(text):
    return re.findall(r"^(?:GPU \d+ +\|.*|       -+)$", text, re.M)


def losses(text):
    return [(int(s), float(x)) for s, x in re.findall(r"^step (\d+):? +loss ([\d.]+)$", text, re.M)]


def alike(mine, its):
    """The same tables, line by line, the same verdict, and the same losses but for rounding."""
    a, b = losses(mine), losses(its)
    return (tables(mine) == tables(its) and len(a) == len(b)
            and all(s == t and abs(x - y) < 3e-5 * max(1, y) for (s, x), (t, y) in zip(a, b))
            and re.findall("^OK: .*elements.*", mine, re.M) == re.findall("^OK: .*elements.*", its, re.M))


twins = sorted(p for d in os.listdir(".") if re.match(r"\d\d-", d)
               for p in (os.path.join(d, f) for f in os.listdir(d)) if p.endswith(".py"))
check(len(twins) >= 15, "there are twins", str(twins))
for path in twins:
    text = open(path).read()
    lines = [x for x in text.split("\n") if x.strip()]
    check(20 <= len(lines) <= 60, f"{path} is short", f"{len(lines)} lines")
    if path.startswith("20-"):  # needs GPUs
        out, codes = python(2, path)
        check(codes == [2, 2] and out == "one_sided.py needs a GPU for each rank: gloo has no such calls\n",
              f"{path} says in one line what it needs", f"{codes}\n{out}")
        continue
    for nranks in (1, 2, 3, 4, 7, 8) if ALL else (4,):
        out, codes = python(nranks, path)
        right = out.startswith("Gloo: no GPU is used")
        check(set(codes) == {0} and re.search(r"^OK: ", out, re.M) and right,
              f"{path} on {nranks} ranks", f"{codes}\n{out[-1500:]}")
        binary = path[:-3]
        if not path.startswith("00-") and os.access(binary, os.X_OK) and not path.startswith("17-"):
            its = c_program(nranks, binary)
            check(alike(out, its), f"{path} prints on {nranks} ranks what its C program prints",
                  f"{out[-1200:]}\n---\n{its[-1200:]}")

out, codes = python(3, "01-nccl-broadcast/broadcast.py", "-n", "20")
check(tables(out) == tables(c_program_n := subprocess.run(
    ["mpirun", "--oversubscribe", "-np", "3", "01-nccl-broadcast/broadcast", "-n", "20"],
    capture_output=True, text=True, timeout=LIMIT).stdout) and tables(out),
    "a long table is cut as in C", out + c_program_n)

# A verdict that is wrong says so as in C.
with tempfile.TemporaryDirectory() as folder:
    os.makedirs(f"{folder}/01")
    os.symlink(f"{top}/common", f"{folder}/common")
    with open("01-nccl-broadcast/broadcast.py") as f, open(f"{folder}/01/b.py", "w") as g:
        g.write(f.read().replace("lesson.expect(buf, 42)", "lesson.expect(buf, 42 + rank)"))
    out, codes = python(2, f"{folder}/01/b.py")
    check(codes == [1, 1] and "FAILED: rank 1, element 0 is 42, expected 43 (and 3 more)" in out,
          "a wrong result fails", f"{codes}\n{out}")

# In a Slurm job mpirun's processes see Slurm's variables, too: those of the job's script.
with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/in_slurm.py", "w") as f:
        f.write("import os, runpy\n"
                "os.environ.update(OMPI_COMM_WORLD_RANK=os.environ.pop('RANK'), SLURM_PROCID='0',\n"
                "                  OMPI_COMM_WORLD_SIZE=os.environ.pop('WORLD_SIZE'), SLURM_NTASKS='1')\n"
                f"runpy.run_path('{top}/17-without-mpi/without_mpi.py', run_name='__main__')\n")
    out, codes = python(2, f"{folder}/in_slurm.py")
    check(codes == [0, 0] and "2 ranks, counted by Open MPI," in out,
          "without_mpi.py believes Open MPI before Slurm", f"{codes}\n{out}")

os.environ["STORE_SECONDS"] = "2"
out, codes = python(2, "17-without-mpi/without_mpi.py", world=3)
check(codes == [1, 1] and re.search(r"rank 0: rank 2 has not come \(", out),
      "without_mpi.py says which rank is missing", f"{codes}\n{out}")

out, codes = python(2, "22-hangs/hangs.py", "--fault", "skip", "--timeout", "3")
check(0 not in codes and "step 2: loss" in out and "step 4" not in out,
      "a rank that skips an all-reduce ends the others after the timeout", f"{codes}\n{out}")
out, codes = python(1, "22-hangs/hangs.py", "--fault", "stopped")
check(codes == [2] and "invalid choice: 'stopped'" in out, "a fault that nobody has is refused", f"{codes}\n{out}")
print(f"1..{tests}")
