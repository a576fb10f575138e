"""Broadcast: rank 0 holds the answer, and every rank gets it.

    torchrun --nproc_per_node=4 broadcast.py [-n COUNT]
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

# Only the root has the data. The tensor is on the GPU, so printing it copies it first. A
# collective carries the rows to rank 0. It is the first, so PyTorch makes the communicator.
buf = torch.full((count,), 42 if rank == 0 else 0, dtype=torch.int32, device=device)
lesson.table("Before broadcast:", buf)

# In place, always. PyTorch 2.11 queues it in the current stream; with async_op=True, and in
# older versions, in a stream of its own, and the two streams wait for one another.
dist.broadcast(buf, src=0)

# So you write no wait: the table's copy to the host waits for the current stream.
lesson.table("After broadcast:", buf)
lesson.expect(buf, 42)
exit_code = lesson.verdict("element")

dist.destroy_process_group()
sys.exit(exit_code)
