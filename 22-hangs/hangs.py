"""Hangs: a small training loop with a fault of your choice. Most make it hang.

    torchrun --nproc_per_node=4 hangs.py [--fault NAME] [--rank R] [--step S] [--timeout S]

NAME: skip, count, order, branch, slow. README.md says what each does. To look at a rank that
hangs, you need time: --timeout 600.
"""
import datetime
import time
import os
import sys

import torch
import torch.distributed as dist

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import lesson

asked = lesson.options(__doc__, fault=["none", "skip", "count", "order", "branch", "slow"],
                       rank=1, step=3, steps=5, timeout=10)

# torchrun starts the processes and says in their environment who each of them is.
gpus = torch.cuda.device_count()
rank = int(os.environ["RANK"])
device = torch.device(f"cuda:{rank % gpus}" if gpus else "cpu")
if gpus:
    torch.cuda.set_device(device)

# The timeout: after so many seconds in a collective, PyTorch's watchdog ends the process.
# The usual one is ten minutes with NCCL.
dist.init_process_group("nccl" if gpus else "gloo",
                        timeout=datetime.timedelta(seconds=asked.timeout))
nranks = dist.get_world_size()
norm = dist.new_group()  # a second communicator of all ranks; its first call will make it
lesson.say_build()

for step in range(asked.steps):
    fault = asked.fault if rank == asked.rank and step == asked.step else "none"
    gradient = torch.full((1 << 20,), (rank + 1) / 2 ** step, device=device)
    squares = torch.ones(1, device=device)
    if fault == "slow":
        time.sleep(min(8, asked.timeout / 2))
    if fault != "order":
        dist.all_reduce(squares, group=norm)
    if fault != "skip":
        dist.all_reduce(gradient[:-1] if fault == "count" else gradient)
    if fault == "order":
        dist.all_reduce(squares, group=norm)
    loss = gradient[:1] / nranks
    value = loss.item()  # waits for the GPU: a rank that hangs, hangs here
    if rank == 0:
        print(f"step {step}: loss {value:.4f}", flush=True)
    lesson.expect(loss, nranks * (nranks + 1) / 2 / 2 ** step / nranks)
    if fault == "branch":
        break
exit_code = lesson.verdict("value")

dist.destroy_process_group()
sys.exit(exit_code)
