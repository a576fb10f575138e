"""Three all-reduces: the same sum in one call, and in two ways of two calls.

    torchrun --nproc_per_node=4 three_all_reduces.py [-n COUNT]
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

# Reduce-scatter wants a length that divides among the ranks.
count = (count or nranks) // nranks * nranks
mine = (torch.arange(count, device=device) % 9 + 1).float() * 10 ** (rank % 5)
expected = (torch.arange(count) % 9 + 1).float() * sum(10 ** (r % 5) for r in range(nranks))
lesson.table("Before:", mine)

buf = mine.clone()
dist.all_reduce(buf)
lesson.table("After all_reduce:", buf)
lesson.expect(buf, expected)

# On all ranks but the root, reduce may leave anything in the tensor. Broadcast fills it. It
# begins when reduce has ended, without a wait of ours: PyTorch queues one after the other.
buf = mine.clone()
dist.reduce(buf, dst=0)
dist.broadcast(buf, src=0)
lesson.table("After reduce, broadcast:", buf)
lesson.expect(buf, expected)

# With NCCL these are reduce_scatter_tensor and all_gather_into_tensor.
buf, chunk = mine.clone(), torch.empty(count // nranks, device=device)
lesson.reduce_scatter(chunk, buf)
lesson.all_gather(buf, chunk)
lesson.table("After reduce_scatter_tensor, all_gather_into_tensor:", buf)
lesson.expect(buf, expected)
exit_code = lesson.verdict("element")

dist.destroy_process_group()
sys.exit(exit_code)
