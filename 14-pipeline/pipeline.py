"""Pipeline parallelism: every rank has some of the layers; micro-batches pass through.

    torchrun --nproc_per_node=4 pipeline.py [--micro M] [--layers L] [--width W] …
"""
import os
import sys

import torch
import torch.distributed as dist

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import lesson
import network

gpus = torch.cuda.device_count()
rank = int(os.environ["RANK"])
device = torch.device(f"cuda:{rank % gpus}" if gpus else "cpu")
if gpus:
    torch.cuda.set_device(device)  # before the first call, as in C
dist.init_process_group("nccl" if gpus else "gloo")  # all of this is as in lesson 00
nranks = dist.get_world_size()
lesson.say_build()

asked = network.options(__doc__, 1, layers=max(8, nranks), micro=8)
share, last = asked.batch // asked.micro, nranks - 1
weights = network.first_weights(asked, 0).tensor_split(nranks)[rank].to(device).requires_grad_()
sgd, squares = network.optimizer(asked, [weights]), [0] * asked.steps

# 1F1B: so many micro-batches go forward before one comes back, then they take turns. It is
# written out here; PipelineStage and Schedule1F1B of PyTorch do it for a module.
ahead = min(nranks - rank, asked.micro)
order = "F" * ahead + "BF" * (asked.micro - ahead) + "B" * ahead


def exchange(*calls):
    """Sends and receives in one group: neighbours that both send first would wait for ever.
    The first group makes the communicator, so every rank must come to one."""
    calls = [dist.P2POp(*call) for call in calls if 0 <= call[2] <= last]
    for request in dist.batch_isend_irecv(calls) if calls else []:
        request.wait()  # the current stream waits; with gloo, the host


for step in range(asked.steps):
    samples, wanted = network.samples(asked, step * asked.batch, asked.batch)
    parts = list(zip(samples.to(device).split(share), wanted.to(device).split(share)))
    sgd.zero_grad()
    going, leaving = [], (None, None, -1)  # on their way; what was made last, and for whom
    for way in order:
        arrived = torch.empty(share, asked.width, device=device)
        exchange(leaving, (dist.irecv, arrived, rank - 1 if way == "F" else rank + 1))
        if way == "F":
            x, target = parts.pop(0)
            x = y = (x if rank == 0 else arrived).requires_grad_()
            for weight in weights:
                y = y @ weight
            if rank == last:
                y = network.square(y, target) / asked.batch
                squares[step] += asked.batch * y.detach()
            going.append((x, y))  # autograd keeps what the way back needs
            leaving = (dist.isend, y.detach(), rank + 1)
        else:
            x, y = going.pop(0)
            y.backward(arrived if rank < last else None)  # weights.grad adds up
            leaving = (dist.isend, x.grad, rank - 1)
    exchange(leaving)
    sgd.step()

network.print_losses(asked, squares)
exit_code = network.verdict(asked, weights, network.expected(asked)[0].tensor_split(nranks)[rank])

dist.destroy_process_group()
sys.exit(exit_code)
