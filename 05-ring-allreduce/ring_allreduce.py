"""Ring all-reduce by hand: chunks travel around a ring, first to be added up, then shared.

    torchrun --nproc_per_node=4 ring_allreduce.py [-n COUNT]
"""
import os
import sys

import torch
import torch.distributed as dist

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import lesson

count = lesson.options(__doc__, count=0).count

# torchrun starts the processes and says in their environment who each of them is.
gpus = torch.cuda.device_count()
rank = int(os.environ["RANK"])
device = torch.device(f"cuda:{rank % gpus}" if gpus else "cpu")
if gpus:
    torch.cuda.set_device(device)  # before the first call, as in C

# The ranks meet at MASTER_ADDR. The unique id travels through a store there, unseen.
dist.init_process_group("nccl" if gpus else "gloo")
nranks = dist.get_world_size()
lesson.say_build()

# Rank r brings 10^r times 1, 2, 3, …: the digits of a sum say who is in it.
count = count or nranks
mine = (torch.arange(count, device=device) % 9 + 1).float() * 10 ** (rank % 5)
total = mine.clone()
following, previous = (rank + 1) % nranks, (rank - 1) % nranks
lesson.table("Before ring all-reduce:", total)


def chunk_of(index):
    """Chunk `index` of the nranks chunks of the tensor: a view, no copy."""
    i = index % nranks
    return slice(count * i // nranks, count * (i + 1) // nranks)


for step in range(2 * (nranks - 1)):
    out, into = chunk_of(rank - step), chunk_of(rank - step - 1)
    # One group: without it, each rank would wait in its send. PyTorch makes it of the list,
    # and on GPUs starts it in a stream of its own, after what the current stream has queued.
    for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, total[out], following),
                                           dist.P2POp(dist.irecv, total[into], previous)]):
        request.wait()  # the current stream waits; with gloo, the host
    if step < nranks - 1:
        total[into] += mine[into]
    what = "added up" if step < nranks - 1 else "passed on"
    lesson.table(f"After step {step + 1} of {2 * (nranks - 1)}, {what}:", total)

# PyTorch's own all-reduce of the same numbers must give the same sums.
expected = (torch.arange(count) % 9 + 1).float() * sum(10 ** (r % 5) for r in range(nranks))
lesson.expect(total, expected)
dist.all_reduce(mine)
lesson.expect(mine, expected)
lesson.table("After all_reduce:", mine)
exit_code = lesson.verdict("element")

dist.destroy_process_group()
sys.exit(exit_code)
