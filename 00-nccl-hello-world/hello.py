"""Hello: every rank says who and where it is, and joins the process group.

    torchrun --nproc_per_node=4 hello.py
"""
import os
import socket
import sys

import torch
import torch.distributed as dist

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import lesson

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

# Three libraries have to fit together: the first thing to look at when they do not.
if rank == 0:
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if gpus else "none"
    print(f"PyTorch {torch.__version__}, built for CUDA {torch.version.cuda}, NCCL {nccl}")

# PyTorch makes the communicator only with the first collective, which takes long. Here it
# is made at once, so that what is wrong with the start is seen at the start.
one = torch.ones(1, device=device)
dist.all_reduce(one)

# Where this rank is, and what the process group says of itself.
name = torch.cuda.get_device_name(device) if gpus else "a CPU"
lesson.in_order(f"rank {rank} of {nranks} on {socket.gethostname()}: {device}, {name};"
                f" process group: rank {dist.get_rank()} of {nranks}, {dist.get_backend()}")
lesson.expect(torch.tensor([dist.get_rank(), int(one)]), torch.tensor([rank, nranks]))
exit_code = lesson.verdict("answer")

dist.destroy_process_group()
sys.exit(exit_code)
