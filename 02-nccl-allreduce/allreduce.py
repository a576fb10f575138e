"""All-reduce: every rank brings a tensor, and every rank gets the sum of them all.

    torchrun --nproc_per_node=4 allreduce.py [-n COUNT]
"""
import os
import sys

import torch
import torch.distributed as dist

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import lesson

count = lesson.options(__doc__, count=4).count

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

# Every rank brings ones, so the sum counts the ranks.
buf = torch.ones(count, device=device)
lesson.table("Before all-reduce:", buf)

# PyTorch's all-reduce has no second buffer: what was sent is overwritten by the sum. The
# call returns before the sum is there. What follows in the current stream waits for it.
dist.all_reduce(buf, op=dist.ReduceOp.SUM)

lesson.table("After all-reduce:", buf)
lesson.expect(buf, float(nranks))
exit_code = lesson.verdict("element")

dist.destroy_process_group()
sys.exit(exit_code)
