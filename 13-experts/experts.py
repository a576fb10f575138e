"""Experts: tokens travel to the rank of their expert and back.

    torchrun --nproc_per_node=4 experts.py [--layers L] [--width W] [--batch B] …
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as autograd_too  # dist's calls, with a way back

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


def choose(step, layer, first, count):
    """The expert of each token. In real models a small network, the router, chooses."""
    u = (network.numbers(step * 64 + layer, first, count).double() + 1) / 2
    return (u * u * nranks).long()


def exchange(tokens, out, into):
    """An all-to-all of blocks of different sizes: out[r] tokens go to rank r."""
    arrived = tokens.new_empty(sum(into), asked.width)
    return autograd_too.all_to_all_single(arrived, tokens.contiguous(), into, out)


weights = network.first_weights(asked, seed=rank).to(device).requires_grad_()  # its own expert
sgd, squares = network.optimizer(asked, [weights]), []

for step in range(asked.steps):
    start = step * asked.batch + rank * share
    x, wanted = (t.to(device) for t in network.samples(asked, start, share))
    for layer in range(asked.layers):
        chosen = choose(step, layer, start, share).to(device)
        order = chosen.argsort(stable=True)  # sorted by expert
        # First the counts, so that each rank knows how much will come. The next call wants
        # them on the host: with GPUs, tolist() waits for them, in every layer.
        out = chosen.bincount(minlength=nranks)
        into = torch.empty_like(out)
        dist.all_to_all_single(into, out)
        out, into = out.tolist(), into.tolist()
        arrived = exchange(x[order], out, into)
        x = exchange(arrived @ weights[layer], into, out)[order.argsort()]
    squares.append(network.square(x, wanted))
    sgd.zero_grad()
    # Backward the gradients travel the same ways; autograd makes these calls, with GPUs in a
    # thread of its own. All tokens of an expert are on its rank, so there is no all-reduce.
    (squares[-1] / asked.batch).backward()
    sgd.step()


def product(step, layer, x, experts):
    chosen = choose(step, layer, step * asked.batch, asked.batch)
    return torch.stack([t @ experts[e, layer] for t, e in zip(x, chosen.tolist())])


network.print_losses(asked, squares)
expected = network.expected(asked, product, seeds=range(nranks))[rank]
exit_code = network.verdict(asked, weights, expected)

dist.destroy_process_group()
sys.exit(exit_code)
