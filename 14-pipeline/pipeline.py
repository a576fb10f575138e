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

asked = network.options(__doc__, 1, layers=max(8, nranks), micro=8,
                        batch=(nranks + 167) // nranks * nranks)
share, last = asked.batch // asked.micro, nranks - 1
layers = slice(asked.layers * rank // nranks, asked.layers * (rank + 1) // nranks)
weights = network.first_weights(asked, seed=0)[layers].to(device).requires_grad_()
sgd, squares = network.optimizer(asked, [weights]), []
ahead = min(nranks - rank, asked.micro)  # 1F1B: so many go forward before one comes back


def forward(x, wanted):
    """A micro-batch through this rank's layers. Autograd keeps what backward needs."""
    y = x.requires_grad_()
    for weight in weights:
        y = y @ weight
    return x, (network.square(y, wanted) if rank == last else y)


def receive(source):
    numbers = torch.empty(share, asked.width, device=device)
    dist.recv(numbers, source)
    return numbers


for step in range(asked.steps):
    samples, wanted = network.samples(asked, step * asked.batch, asked.batch)
    samples, wanted = samples.to(device).split(share), wanted.to(device).split(share)
    sgd.zero_grad()
    squares.append(0.0)
    going, forwards, backwards, leaving = [], 0, 0, None
    while backwards < asked.micro:
        back = forwards - backwards == ahead or forwards == asked.micro
        # Between two pieces of work, on all ranks first what goes forward, then what goes
        # backward. Otherwise two neighbours could both send first, and wait for ever.
        if leaving is not None and leaving[1] > rank:
            dist.send(*leaving)
        x = None if back else receive(rank - 1) if rank > 0 else samples[forwards].clone()
        if leaving is not None and leaving[1] < rank:
            dist.send(*leaving)
        leaving = None
        if back:
            x, y = going.pop(0)
            gradient = receive(rank + 1) if rank < last else torch.tensor(1 / asked.batch, device=device)
            y.backward(gradient)  # weights.grad adds up over the micro-batches
            squares[-1] += float(y) if rank == last else 0.0
            leaving = (x.grad, rank - 1) if rank > 0 else None
            backwards += 1
        else:
            going.append(forward(x, wanted[forwards]))
            leaving = (going[-1][1].detach(), rank + 1) if rank < last else None
            forwards += 1
    if leaving is not None:
        dist.send(*leaving)
    sgd.step()

network.print_losses(asked, squares)
exit_code = network.verdict(asked, weights, network.expected(asked)[0][layers])

dist.destroy_process_group()
sys.exit(exit_code)
