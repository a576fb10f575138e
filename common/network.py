"""network.py: the small network of network.h, for the Python programs of lessons 10 to 15.

L layers without bias or activation: layer l computes x @ weight[l]. Weights and samples
are those of the C programs, number by number, so the losses are, too.
"""
import math

import torch
import torch.distributed as dist

import lesson


def options(description, parts, **more):
    """The network's options, with the defaults of the C programs. The batch divides among `parts`."""
    nranks = dist.get_world_size()
    batch = (nranks + 167) // nranks * nranks
    usual = dict(layers=4, width=64, batch=batch, steps=10)
    asked = lesson.options(description, **{**usual, **more})
    if asked.batch % parts:
        raise SystemExit(f"--batch {asked.batch} does not divide among {parts} ranks")
    return asked


def _shift(z, bits):
    return (z >> bits) & ((1 << (64 - bits)) - 1)  # PyTorch's >> copies the sign


def _signed(number):
    return number - (1 << 64) if number >> 63 else number


def numbers(seed, first, count):
    """Pseudo-random numbers from -1 to 1, each from its seed and place (splitmix64)."""
    place = torch.arange(first, first + count)
    start = ((seed + 1) * 0xd1b54a32d192ed03) % (1 << 64)
    z = place * _signed(0x9e3779b97f4a7c15) + _signed(start)
    z = (z ^ _shift(z, 30)) * _signed(0xbf58476d1ce4e5b9)
    z = (z ^ _shift(z, 27)) * _signed(0x94d049bb133111eb)
    return _shift(z ^ _shift(z, 31), 40).float() / 8388608 - 1


def first_weights(asked, seed):
    """Initial weights of all layers: the identity, plus noise that depends on the seed."""
    shape = (asked.layers, asked.width, asked.width)
    noise = 0.25 / math.sqrt(asked.width) * numbers(seed, 0, math.prod(shape))
    return noise.view(shape) + torch.eye(asked.width)


def samples(asked, first, count):
    """Samples first, first + 1, …, and what the network should make of them."""
    x = numbers(12345, first * asked.width, count * asked.width).view(count, asked.width)
    return x, (x + x.roll(-1, dims=1)) / 2


def optimizer(asked, weights):
    return torch.optim.SGD(weights, lr=0.1 / asked.layers, momentum=0.9)


def square(y, wanted):
    """Half the squared distance between output and target: the loss, before its mean."""
    return ((y - wanted) ** 2).sum() / 2


def expected(asked, product=None, seeds=(0,)):
    """The weights that one process ends with: rank 0 trains alone, with the whole batch.

    product(step, layer, x, weights) computes a layer, if it is not x @ weights[0][layer];
    weights are those of all seeds.
    """
    weights = torch.stack([first_weights(asked, seed) for seed in seeds])
    if dist.get_rank() == 0:
        weights.requires_grad_()
        sgd = optimizer(asked, [weights])
        for step in range(asked.steps):
            x, wanted = samples(asked, step * asked.batch, asked.batch)
            for layer in range(asked.layers):
                x = product(step, layer, x, weights) if product else x @ weights[0][layer]
            sgd.zero_grad()
            (square(x, wanted) / asked.batch).backward()
            sgd.step()
    every = [weights.detach()]
    dist.broadcast_object_list(every, src=0)
    return every[0]


def print_losses(asked, squares):
    """Prints some losses. squares: for each step, this rank's part of the sum."""
    total = torch.tensor([float(torch.as_tensor(s).detach()) for s in squares], dtype=torch.float64)
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, total)
    apart = (asked.steps + 3) // 5 if asked.steps > 5 else 1
    for step, loss in enumerate(sum(every) / asked.batch):
        if dist.get_rank() == 0 and (step % apart == 0 or step + 1 == asked.steps):
            print(f"step {step + 1:<4} loss {loss:.5f}", flush=True)


def verdict(asked, weights, expected):
    """Compares weights with the expected ones, within the rounding errors of the sums."""
    bound = asked.steps * math.sqrt(asked.batch) * 2 ** -23
    weights, expected = weights.detach().cpu().flatten(), expected.flatten()
    apart = (weights - expected).abs()
    lesson.expect(torch.where(apart <= bound, expected, weights), expected)
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, apart.max().item() if len(apart) else 0.0)
    if dist.get_rank() == 0:
        print(f"largest difference from one process: {max(every):.2g}, allowed {bound:.2g}")
    return lesson.verdict("weight")
