"""Experts: tokens travel to the rank of their expert and back.

    torchrun --nproc_per_node=4 experts.py [--layers L] [--width W] [--batch B] …
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

asked = network.options(__doc__, nranks)
share = asked.batch // nranks


def choose(step, layer, first, count):
    """The expert of each token. In real models a small network, the router, chooses."""
    u = (network.numbers(step * 64 + layer, first, count).double() + 1) / 2
    return (u * u * nranks).long()


def exchange(tokens, out, into):
    """An all-to-all of blocks of different sizes: out[r] tokens go to rank r."""
    arrived = torch.empty(sum(into), asked.width, device=device)
    dist.all_to_all_single(arrived, tokens.contiguous(), into, out)
    return arrived


weights = network.first_weights(asked, seed=rank).to(device)  # each rank's own expert
weights.grad = torch.zeros_like(weights)
sgd, squares = network.optimizer(asked, [weights]), []

for step in range(asked.steps):
    start = step * asked.batch + rank * share
    x, wanted = network.samples(asked, start, share)
    x, wanted, route, visited = x.to(device), wanted.to(device), [], []
    for l in range(asked.layers):
        chosen = choose(step, l, start, share)
        order = chosen.argsort(stable=True)  # sorted by expert
        out = chosen.bincount(minlength=nranks)
        # First the counts, so that each rank knows how much will come. The list that the
        # next call wants is on the host: with GPUs, tolist() waits for the counts.
        into = torch.empty_like(out, device=device)
        dist.all_to_all_single(into, out.to(device))
        route.append((order.to(device), out.tolist(), into.tolist()))
        order, out, into = route[l]
        visited.append(exchange(x[order], out, into))
        x = torch.empty_like(x).index_copy_(0, order, exchange(visited[l] @ weights[l], into, out))
    dy = x - wanted
    squares.append((dy ** 2).sum() / 2)
    dy /= asked.batch
    for l in reversed(range(asked.layers)):
        order, out, into = route[l]
        arrived = exchange(dy[order], out, into)
        # All tokens of the expert are here, so its gradient is complete: no all-reduce.
        weights.grad[l] = visited[l].T @ arrived
        back = exchange(arrived @ weights[l].T, into, out)
        dy = torch.empty_like(dy).index_copy_(0, order, back)
    sgd.step()


def product(step, layer, x, experts):
    chosen = choose(step, layer, step * asked.batch, asked.batch)
    return torch.stack([t @ experts[e, layer] for t, e in zip(x, chosen.tolist())])


network.print_losses(asked, squares)
expected = network.expected(asked, product, seeds=range(nranks))[rank]
exit_code = network.verdict(asked, weights, expected)

dist.destroy_process_group()
sys.exit(exit_code)
