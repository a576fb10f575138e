"""Overlap: DistributedDataParallel sends gradients while others are computed.

    torchrun --nproc_per_node=4 overlap.py [--bucket MB] [--layers L] [--width W] …
"""
import os
import sys

import torch
import torch.distributed as dist

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import lesson
import network


class Layers(torch.nn.Module):
    """The network as a module: DistributedDataParallel wants one."""

    def __init__(self, weights):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(w) for w in weights)

    def forward(self, x):
        for weight in self.weights:
            x = x @ weight
        return x


gpus = torch.cuda.device_count()
rank = int(os.environ["RANK"])
device = torch.device(f"cuda:{rank % gpus}" if gpus else "cpu")
if gpus:
    torch.cuda.set_device(device)  # before the first call, as in C
dist.init_process_group("nccl" if gpus else "gloo")  # all of this is as in lesson 00
nranks = dist.get_world_size()
lesson.say_build()

asked = network.options(__doc__, nranks, bucket=0.0156)
share = asked.batch // nranks

# The constructor broadcasts rank 0's weights, and hangs a function on each gradient. In the
# backward pass it starts the all-reduce of a bucket as soon as all gradients in it are
# there, in a stream of PyTorch's own, and at its end the current stream waits for all.
model = torch.nn.parallel.DistributedDataParallel(
    Layers(network.first_weights(asked, seed=rank)).to(device), bucket_cap_mb=asked.bucket)
sgd, squares = network.optimizer(asked, list(model.parameters())), []

for step in range(asked.steps):
    x, wanted = network.samples(asked, step * asked.batch + rank * share, share)
    squares.append(network.square(model(x.to(device)), wanted.to(device)))
    sgd.zero_grad()
    (squares[-1] / share).backward()  # computes, sends and averages
    sgd.step()

network.print_losses(asked, squares)
weights = torch.stack([w.detach() for w in model.parameters()])
exit_code = network.verdict(asked, weights, network.expected(asked))

dist.destroy_process_group()
sys.exit(exit_code)
