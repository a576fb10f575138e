"""One-sided: a rank writes into the memory of another and signals it.

    torchrun --nproc_per_node=2 one_sided.py [-n COUNT] [--items N]

It needs GPUs, one for each rank, that reach one another's memory, and PyTorch 2.7 or newer.
"""
import os
import sys
import time

import torch
import torch.distributed as dist

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import lesson

asked = lesson.options(__doc__, count=1024, items=10)
rank, local = int(os.environ["RANK"]), int(os.environ.get("LOCAL_RANK", "0"))
if torch.cuda.device_count() < int(os.environ.get("LOCAL_WORLD_SIZE", "1")):
    if rank == 0:
        print("one_sided.py needs a GPU for each rank: gloo has no such calls", file=sys.stderr)
    sys.exit(2)
import torch.distributed._symmetric_memory as symmetric_memory  # new: without GPUs it is not asked for

STEPS, SLOTS = 10, 4

# A rank's part of the memory: its own values, room for what the neighbours put here, and the
# queue's slots. All are `count` floats.
MINE, FROM_LEFT, FROM_RIGHT, QUEUE, PARTS = 0, 1, 3, 5, 5 + SLOTS

device = torch.device(f"cuda:{local}")
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
nranks = dist.get_world_size()
left, right = (rank - 1) % nranks, (rank + 1) % nranks

# All ranks make it together, and each may write to all parts: for NCCL this is a window.
memory = symmetric_memory.empty(PARTS, asked.count, dtype=torch.float32, device=device)
window = symmetric_memory.rendezvous(memory, dist.group.WORLD)
part = {peer: window.get_buffer(peer, (PARTS, asked.count), torch.float32) for peer in range(nranks)}
memory.fill_(float("nan"))
memory[MINE] = rank
window.barrier()  # nobody puts anything here before this


# A copy into the peer's memory, and then the signal. Signals are not counted: a second one on the
# same channel waits until the peer has waited for the first.
def put(peer, number, channel):
    part[peer][number].copy_(memory[MINE])
    window.put_signal(peer, channel)


def exchange_by_put(step):
    put(left, FROM_RIGHT + step % 2, 0)
    put(right, FROM_LEFT + step % 2, 1)
    window.wait_signal(left, 1)
    window.wait_signal(right, 0)


def exchange_by_send(step):  # the same with both sides calling
    calls = ((dist.isend, MINE, left), (dist.isend, MINE, right),
             (dist.irecv, FROM_RIGHT + step % 2, right), (dist.irecv, FROM_LEFT + step % 2, left))
    [w.wait() for w in dist.batch_isend_irecv([dist.P2POp(c, memory[at], peer) for c, at, peer in calls])]


def halo(name, exchange):
    for _ in range(2):  # the first time connects the ranks
        begun = time.perf_counter()
        for step in range(STEPS):
            exchange(step)
        torch.cuda.synchronize()
    if rank == 0:
        print(f"{name:<18} {(time.perf_counter() - begun) / STEPS * 1e6:10.2f} us an exchange")
    lesson.expect(memory[FROM_LEFT:FROM_RIGHT].flatten(), float(left))
    lesson.expect(memory[FROM_RIGHT:QUEUE].flatten(), float(right))


def queue(items):  # from rank 0 to rank 1; each slot has a channel: "full", and back: "free"
    for i in range(items):
        slot, item = i % SLOTS, (i + torch.arange(asked.count)) % 1000
        if rank == 0:
            if i >= SLOTS:
                window.wait_signal(1, 2 + slot)
            memory[MINE] = item.to(device)
            put(1, QUEUE + slot, 2 + slot)
        elif rank == 1:
            window.wait_signal(0, 2 + slot)
            lesson.expect(memory[QUEUE + slot], item.float())  # copies it to the host, and waits
            window.put_signal(0, 2 + slot)
    for slot in range(min(SLOTS, items) if rank == 0 else 0):  # no signal is left over
        window.wait_signal(1, 2 + slot)
    torch.cuda.synchronize()
    if rank == 0:
        print(f"{'queue':<18} {items:10} items")


halo("send and receive", exchange_by_send)
memory[FROM_LEFT:QUEUE] = float("nan")
window.barrier()
halo("put and signal", exchange_by_put)
if nranks > 1:
    queue(asked.items)
exit_code = lesson.verdict("element")

dist.barrier()  # nobody frees what another still writes
dist.destroy_process_group()
sys.exit(exit_code)
