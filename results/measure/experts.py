"""Lesson 13's two ways of carrying tokens, with PyTorch's all_to_all_single.

    torchrun --standalone --nproc_per_node=2 results/measure/experts.py --width 2048 --batch 8192

Prints what `experts --time` prints, measured the same way and with the same loads: tokens there
and back, once with their counts sent first, once in blocks of one size that hold the largest; in
turns, of each the slowest rank's time, the median of batches of ten.
"""
import argparse
import statistics

import torch
import torch.distributed as dist

from ddp import BATCHES, batch_seconds, models

LAYERS = 64  # network.h: NETWORK_LAYERS


def number(seed, place):
    """network_number of network.h."""
    mask = (1 << 64) - 1
    z = ((seed + 1) * 0xD1B54A32D192ED03 + place * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
    return ((z ^ z >> 31) >> 40) / 8388608 - 1


def expert(load, nexperts, token):
    """load_expert of lesson 13, in step 0 and layer 0."""
    u = ((number(0, token) + 1) / 2) ** 2
    return {"even": token % nexperts,
            "uneven": int(u * nexperts),
            "empty": 2 * int(u * ((nexperts + 1) // 2)),
            "one": 0}[load]


def measure(options):
    rank, nranks = dist.get_rank(), dist.get_world_size()
    share = options.batch // nranks
    counts = [0] * nranks
    for token in range(rank * share, (rank + 1) * share):
        counts[expert(options.load, nranks, token)] += 1
    leave = torch.tensor(counts, device="cuda")
    fullest = leave.max()
    dist.all_reduce(fullest, op=dist.ReduceOp.MAX)
    capacity = fullest.item()
    tokens = torch.zeros(share, options.width, device="cuda")
    padded = torch.zeros(nranks * capacity, options.width, device="cuda")

    def counts_first():
        come = torch.empty_like(leave)
        dist.all_to_all_single(come, leave)
        sizes = come.tolist()  # waits
        there = torch.empty(sum(sizes), options.width, device="cuda")
        dist.all_to_all_single(there, tokens, sizes, counts)
        dist.all_to_all_single(torch.empty_like(tokens), there, counts, sizes)

    def in_blocks():
        there = torch.empty_like(padded)
        dist.all_to_all_single(there, padded)
        dist.all_to_all_single(torch.empty_like(padded), there)

    times = [[], []]
    for batch in range(BATCHES + 1):
        for operation, list_of in zip((counts_first, in_blocks), times):
            took = batch_seconds(operation)
            if batch > 0:  # the first one warms up
                list_of.append(took)
    first, blocks = (1e3 * statistics.median(t) for t in times)
    token = 2 * 4 * options.width
    if rank == 0:
        print(f"PyTorch {torch.__version__}, NCCL {torch.cuda.nccl.version()}, {nranks} ranks")
        print(f"counts first {first:9.3f} ms a layer, there and back;"
              f" all ranks send {options.batch * token} bytes")
        print(f"padded       {blocks:9.3f} ms, {blocks / first:.3f} of that; capacity {capacity},"
              f" so {nranks * nranks * capacity * token} bytes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=8192, help="tokens of all ranks together")
    parser.add_argument("--load", default="uneven", choices=("even", "uneven", "empty", "one"))
    for options in models(parser):
        measure(options)


if __name__ == "__main__":
    main()
