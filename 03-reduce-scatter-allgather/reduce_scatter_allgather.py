"""Reduce-scatter, then all-gather: an all-reduce in two halves.

    torchrun --nproc_per_node=4 reduce_scatter_allgather.py [-n COUNT]
"""
import os
import sys

import torch
import torch.distributed as dist

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import lesson

count = lesson.options(__doc__, count=1).count

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

# Rank 0 brings 1, 2, 3, …; rank 1 brings 2, 3, 4, …: no two sums are alike.
total = count * nranks
sendbuf = torch.arange(total, device=device) + rank + 1
chunk = torch.empty(count, dtype=sendbuf.dtype, device=device)
recvbuf = torch.empty_like(sendbuf)
lesson.table("Before reduce-scatter:", sendbuf)

# No count is passed: the tensors' sizes are it. With NCCL this function is one call,
# dist.reduce_scatter_tensor(chunk, sendbuf).
lesson.reduce_scatter(chunk, sendbuf)
lesson.table("After reduce-scatter:", chunk)

# And this one is dist.all_gather_into_tensor(recvbuf, chunk). It begins when the
# first one has ended, without a wait of ours: PyTorch queues one after the other.
lesson.all_gather(recvbuf, chunk)
lesson.table("After all-gather:", recvbuf)

# Element i is the sum of i + 1, i + 2, …, i + nranks.
lesson.expect(recvbuf, nranks * torch.arange(total) + nranks * (nranks + 1) // 2)
exit_code = lesson.verdict("element")

dist.destroy_process_group()
sys.exit(exit_code)
