"""Lesson 11's network trained by PyTorch's DistributedDataParallel.

    torchrun --standalone --nproc_per_node=2 results/measure/ddp.py --layers 16 --width 2048 --batch 4096

Several models, with the word `then` between them, are measured in one start: PyTorch's takes up to
half a minute. Before each one's figures then stands the command line that measures it alone.

Prints what `overlap --time` prints, measured the same way: a step without communication (the
same model outside DDP), an all-reduce of as many bytes in DDP's buckets, and a step with DDP,
in turns; of each the slowest rank's time, the median of batches of ten. `--bucket` is DDP's
bucket_cap_mb in bytes; NCCL_MAX_CTAS does what the lesson's --ctas does.
"""
import argparse
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

REPEAT, BATCHES = 10, 7


def models(parser):
    """The options of each model on the command line. Starts PyTorch's ranks, and ends them."""
    device = torch.device("cuda", int(os.environ["RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group(backend="nccl", device_id=device)
    each = [[]]
    for word in sys.argv[1:]:
        if word == "then":
            each.append([])
        else:
            each[-1].append(word)
    for words in each:
        if len(each) > 1 and dist.get_rank() == 0:
            print(f"$ torchrun --standalone --nproc_per_node={dist.get_world_size()}",
                  sys.argv[0], *words)
        yield parser.parse_args(words)
    dist.destroy_process_group()


def network(layers, width):
    """Layers that hand on what they get, with some noise, as network.h makes them."""
    model = torch.nn.Sequential(
        *(torch.nn.Linear(width, width, bias=False, device="cuda") for _ in range(layers)))
    with torch.no_grad():
        for layer in model:
            noise = (2 * torch.rand_like(layer.weight) - 1) * 0.25 / width**0.5
            layer.weight.copy_(torch.eye(width, device="cuda") + noise)
    return model


def trainer(model, layers, samples, wanted):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 / layers, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss = (model(samples) - wanted).square().sum() / (2 * len(samples))
        loss.backward()
        optimizer.step()

    return step


def batch_seconds(operation):
    """Of one operation, on the slowest rank."""
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(REPEAT):
        operation()
    torch.cuda.synchronize()
    took = torch.tensor((time.perf_counter() - start) / REPEAT, device="cuda")
    dist.all_reduce(took, op=dist.ReduceOp.MAX)
    return took.item()


def measure(options):
    layers, width = options.layers, options.width
    nranks = dist.get_world_size()

    # The data of network.h: each number is to become the mean of itself and the next.
    samples = 2 * torch.rand(options.batch // nranks, width, device="cuda") - 1
    wanted = (samples + samples.roll(-1, dims=1)) / 2
    compute = trainer(network(layers, width), layers, samples, wanted)
    ddp = DistributedDataParallel(network(layers, width), device_ids=[torch.cuda.current_device()],
                                  bucket_cap_mb=options.bucket / (1 << 20),
                                  gradient_as_bucket_view=True)
    both = trainer(ddp, layers, samples, wanted)
    in_bucket = max(1, -(-options.bucket // (4 * width * width)))
    buckets = [torch.zeros(min(in_bucket, layers - first) * width * width, device="cuda")
               for first in range(0, layers, in_bucket)]

    def reduce():
        for bucket in buckets:
            dist.all_reduce(bucket, op=dist.ReduceOp.AVG)

    operations = (compute, reduce, both)
    times = [[], [], []]
    for batch in range(BATCHES + 1):
        for operation, list_of in zip(operations, times):
            took = batch_seconds(operation)
            if batch > 0:  # the first one warms up
                list_of.append(took)
    compute, reduce, both = (1e3 * statistics.median(t) for t in times)
    if dist.get_rank() == 0:
        print(f"PyTorch {torch.__version__}, NCCL {torch.cuda.nccl.version()}, {nranks} ranks")
        print(f"computing only   {compute:9.3f} ms a step")
        print(f"all-reduce only  {reduce:9.3f} ms")
        print(f"both             {both:9.3f} ms, {both / compute:.3f} of computing only")
        hidden = (compute + reduce - both) / min(compute, reduce)
        print(f"hidden           {hidden:9.2f} of the shorter of the two")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=4096, help="of all ranks together")
    parser.add_argument("--bucket", type=int, default=25 << 20, help="bytes")
    for options in models(parser):
        measure(options)


if __name__ == "__main__":
    main()
