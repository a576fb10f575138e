"""All-to-all: every rank has something different for every other rank.

    torchrun --nproc_per_node=4 all_to_all.py [-n COUNT]
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

# Rank 0 holds A0, A1, A2, …; rank 1 holds B0, B1, B2, …: block j is for rank j.
total = count * nranks
sendbuf = (rank << 32) + torch.arange(total, device=device)
recvbuf = torch.empty_like(sendbuf)
lesson.table("Before all-to-all:", sendbuf, letters=True)

# Inside are a group, and a send and a receive for each rank: what the C program writes out.
dist.all_to_all_single(recvbuf, sendbuf)

# The table has been transposed: what was column r is now row r.
lesson.table("After all-to-all:", recvbuf, letters=True)
place = torch.arange(total)
lesson.expect(recvbuf, (place // count << 32) + rank * count + place % count)
exit_code = lesson.verdict("element")

dist.destroy_process_group()
sys.exit(exit_code)
