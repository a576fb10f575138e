"""Lesson 14's network trained by torch.distributed.pipelining.

    torchrun --standalone --nproc_per_node=2 results/measure/pipeline.py --layers 16 --width 2048 \\
        --batch 16384 --micro 8

Prints what `pipeline --time` prints, measured the same way: all micro-batches forward and back
through a rank's layers without any transfer, and a whole step, in turns; of each the slowest
rank's time, the median of batches of ten. There are at least as many micro-batches as ranks.
"""
import argparse
import statistics

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from ddp import BATCHES, batch_seconds, models, network


def loss_of(result, wanted):
    return (result - wanted).square().sum() / (2 * len(result))


def measure(options):
    layers, width, micro = options.layers, options.width, options.micro
    rank, nranks = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", torch.cuda.current_device())

    mine = layers * (rank + 1) // nranks - layers * rank // nranks
    model = network(mine, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 / layers, momentum=0.9)
    order = ScheduleGPipe if options.all_forward else Schedule1F1B
    schedule = order(PipelineStage(model, rank, nranks, device), n_microbatches=micro,
                     loss_fn=loss_of)

    # The data of network.h: each number is to become the mean of itself and the next.
    samples = 2 * torch.rand(options.batch, width, device="cuda") - 1
    wanted = (samples + samples.roll(-1, dims=1)) / 2

    def step():
        optimizer.zero_grad()
        inputs = (samples,) if rank == 0 else ()
        if rank == nranks - 1:
            schedule.step(*inputs, target=wanted)
        else:
            schedule.step(*inputs)
        optimizer.step()

    # The same products: the first rank needs no derivative of its input.
    alone = network(mine, width)
    inputs = [part.clone().requires_grad_(rank > 0) for part in samples.chunk(micro)]
    derivative = torch.rand(len(inputs[0]), width, device="cuda") / options.batch

    def compute():
        for part in inputs:
            alone(part).backward(derivative)
            part.grad = None

    times = [[], []]
    for batch in range(BATCHES + 1):
        for operation, list_of in zip((compute, step), times):
            took = batch_seconds(operation)
            if batch > 0:  # the first one warms up
                list_of.append(took)
        alone.zero_grad()
    compute, step = (1e3 * statistics.median(t) for t in times)
    if rank == 0:
        print(f"PyTorch {torch.__version__}, NCCL {torch.cuda.nccl.version()}, {nranks} ranks")
        print(f"a step {step:.3f} ms, computing {compute:.3f} ms: "
              f"{1 - compute / step:.2f} of a step is idle, measured")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=16384)
    parser.add_argument("--micro", type=int, default=8, help="micro-batches in a step")
    parser.add_argument("--all-forward", action="store_true")
    for options in models(parser):
        measure(options)


if __name__ == "__main__":
    main()
