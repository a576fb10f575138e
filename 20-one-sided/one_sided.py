"""One-sided: a rank writes into the memory of another and signals it.

    torchrun --nproc_per_node=2 one_sided.py [-n COUNT] [--items N]

It needs GPUs, one for each rank, that reach one another's memory, and PyTorch 2.7 or newer.
"""
import os
import sys

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
import torch.distributed._symmetric_memory as symmetric_memory  # older versions lack it

# A rank's memory: its own values, two places for each neighbour, and the slots of the queue.
MINE, FROM_LEFT, FROM_RIGHT, QUEUE, SLOTS = 0, 1, 3, 5, 4

device = torch.device("cuda", local)
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
nranks = dist.get_world_size()
left, right = (rank - 1) % nranks, (rank + 1) % nranks

# In rendezvous, which all ranks call, each maps the memory of all others into its own.
memory = symmetric_memory.empty(QUEUE + SLOTS, asked.count, dtype=torch.float32, device=device)
window = symmetric_memory.rendezvous(memory, dist.group.WORLD)
memory.fill_(float("nan"))
memory[MINE] = rank
window.barrier()  # nobody puts anything here before this


def put(peer, number, channel):
    """A copy by the GPU, and then the signal; both are queued in the current stream. Signals are
    not counted: the next one on the channel waits until the peer has waited for this one."""
    window.get_buffer(peer, memory.shape, memory.dtype)[number].copy_(memory[MINE])
    window.put_signal(peer, channel)


for step in range(10):
    put(left, FROM_RIGHT + step % 2, 0)
    put(right, FROM_LEFT + step % 2, 1)
    window.wait_signal(left, 1)  # the stream waits, not the host
    window.wait_signal(right, 0)
# This copies them to the host, and so it waits.
lesson.expect(memory[FROM_LEFT:FROM_RIGHT].flatten(), float(left))
lesson.expect(memory[FROM_RIGHT:QUEUE].flatten(), float(right))

# A queue from rank 0 to rank 1. A slot's channel says "full", and the other way "free".
for i in range(asked.items if nranks > 1 else 0):
    slot, item = i % SLOTS, (i + torch.arange(asked.count)) % 1000
    if rank == 0:
        if i >= SLOTS:
            window.wait_signal(1, slot)
        memory[MINE] = item
        put(1, QUEUE + slot, slot)
    elif rank == 1:
        window.wait_signal(0, slot)
        lesson.expect(memory[QUEUE + slot], item.float())
        if i + SLOTS < asked.items:  # else nobody waits for the slot
            window.put_signal(0, slot)
exit_code = lesson.verdict("element")

dist.barrier()  # nobody frees what another still writes
dist.destroy_process_group()
sys.exit(exit_code)
