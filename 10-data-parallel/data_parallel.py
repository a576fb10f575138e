"""Data parallelism: every rank has the whole model and its share of the samples.

    torchrun --nproc_per_node=4 data_parallel.py [--layers L] [--width W] [--batch B] …
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

asked = network.options(__doc__, nranks)
share = asked.batch // nranks

# Every rank makes different initial weights, as a process with a random seed would. Rank 0
# sends its own to all. The first collective also makes the communicator, which takes long.
# (DistributedDataParallel does this when it is constructed, and step 4 in backward.)
weights = network.first_weights(asked, seed=rank).to(device)
dist.broadcast(weights, src=0)
weights = [w.requires_grad_() for w in weights.unbind()]
sgd, squares = network.optimizer(asked, weights), []

for step in range(asked.steps):
    # 1. Load this rank's share of the batch.
    x, wanted = network.samples(asked, step * asked.batch + rank * share, share)
    x, wanted = x.to(device), wanted.to(device)
    # 2. Forward, from the first layer to the last.
    for weight in weights:
        x = x @ weight
    squares.append(network.square(x, wanted))
    # 3. Backward, from the last layer to the first.
    sgd.zero_grad()
    (squares[-1] / share).backward()
    # 4. Average the gradients: the mean over the shares is the mean over the batch.
    for weight in weights:
        dist.all_reduce(weight.grad)  # returns at once; the division waits on the GPU
        weight.grad /= nranks
    # 5. Update: the same weights, the same gradients, so the same weights again.
    sgd.step()

network.print_losses(asked, squares)
exit_code = network.verdict(asked, torch.stack(weights), network.expected(asked))

dist.destroy_process_group()
sys.exit(exit_code)
