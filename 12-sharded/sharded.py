"""Sharded: each rank keeps one N-th of the weights, the gradients and the momentum.

    torchrun --nproc_per_node=4 sharded.py [--layers L] [--width W] [--batch B] …
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
share, size = asked.batch // nranks, asked.width ** 2
shard = (size + nranks - 1) // nranks  # rounded up: all shards have the same length


def pad(layer):
    return torch.nn.functional.pad(layer.flatten(), (0, nranks * shard - size))


# fully_shard does what follows for the layers of a module. Here it is written out.
first = network.first_weights(asked, seed=0)
mine = [pad(w).chunk(nranks)[rank].clone().to(device) for w in first]
sgd, squares = network.optimizer(asked, mine), []


def whole(l):
    """All-gathers a layer's shards. After its use the memory goes back to PyTorch's
    allocator, which gives it to the next layer, in the order of the stream."""
    layer = torch.empty(nranks * shard, device=device)
    lesson.all_gather(layer, mine[l])
    return layer[:size].view(asked.width, asked.width)


for step in range(asked.steps):
    x, wanted = network.samples(asked, step * asked.batch + rank * share, share)
    inputs = [x.to(device)]
    for l in range(asked.layers):
        inputs.append(inputs[l] @ whole(l))
    dy = inputs.pop() - wanted.to(device)
    squares.append((dy ** 2).sum() / 2)
    dy /= share
    for l in reversed(range(asked.layers)):
        mine[l].grad = torch.empty(shard, device=device)
        # Each rank gets its shard of the sum, which is all that its update needs.
        lesson.reduce_scatter(mine[l].grad, pad(inputs[l].T @ dy))
        mine[l].grad /= nranks
        dy = dy @ whole(l).T
    sgd.step()  # momentum, too, only for this rank's shards

network.print_losses(asked, squares)
expected = torch.stack([pad(w).chunk(nranks)[rank] for w in network.expected(asked)[0]])
exit_code = network.verdict(asked, torch.stack(mine), expected)

dist.destroy_process_group()
sys.exit(exit_code)
