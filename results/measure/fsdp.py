"""Lesson 12's network trained by PyTorch's fully_shard (FSDP2).

    torchrun --standalone --nproc_per_node=2 results/measure/fsdp.py --layers 16 --width 2048 --batch 4096

Prints what `sharded --time` prints, measured the same way: a step without communication (the
same model, not sharded) and a step with fully_shard on each layer, in turns; of each the slowest
rank's time, the median of batches of ten. `--stage 2` keeps the weights after the forward pass;
3, the default, frees them. And the memory that the weights, gradients and momentum of the sharded
model take on a rank after the first step.
"""
import argparse
import statistics

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

from ddp import BATCHES, batch_seconds, models, network, trainer


def measure(options):
    layers, width = options.layers, options.width
    nranks = dist.get_world_size()

    # The data of network.h: each number is to become the mean of itself and the next.
    samples = 2 * torch.rand(options.batch // nranks, width, device="cuda") - 1
    wanted = (samples + samples.roll(-1, dims=1)) / 2

    before = torch.cuda.memory_allocated()
    model = network(layers, width)
    for layer in model:
        fully_shard(layer, reshard_after_forward=options.stage == 3)
    fully_shard(model)
    modules = list(model)
    for layer, following in zip(modules, modules[1:]):
        layer.set_modules_to_forward_prefetch([following])
    both = trainer(model, layers, samples, wanted)
    both()
    torch.cuda.synchronize()
    kept = torch.cuda.memory_allocated() - before
    compute = trainer(network(layers, width), layers, samples, wanted)

    times = [[], []]
    for batch in range(BATCHES + 1):
        for operation, list_of in zip((compute, both), times):
            took = batch_seconds(operation)
            if batch > 0:  # the first one warms up
                list_of.append(took)
    compute, both = (1e3 * statistics.median(t) for t in times)
    if dist.get_rank() == 0:
        print(f"PyTorch {torch.__version__}, NCCL {torch.cuda.nccl.version()}, {nranks} ranks")
        print(f"this is stage {options.stage}:       {kept:10d} bytes measured")
        print(f"computing only   {compute:9.3f} ms a step")
        print(f"both             {both:9.3f} ms, {both / compute:.3f} of computing only")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=4096, help="of all ranks together")
    parser.add_argument("--stage", type=int, default=3, choices=(2, 3))
    for options in models(parser):
        measure(options)


if __name__ == "__main__":
    main()
