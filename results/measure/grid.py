"""Lesson 15's network on PyTorch's device mesh: tensor parallel in a row, data parallel in a column.

    torchrun --standalone --nproc_per_node=4 results/measure/grid.py --layers 8 --width 4096 \\
        --batch 4096 --columns 2

Prints what `grid --time` prints, measured the same way: a step without communication (a rank's
slices as a model of their own), with the all-reduces that parallelize_module makes in the rows,
and with those of the gradients in the columns too, by plain calls; in turns, of each the slowest
rank's time, the median of batches of ten.
"""
import argparse
import statistics

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)

from ddp import BATCHES, batch_seconds, models, network


def measure(options):
    layers, width, columns = options.layers, options.width, options.columns
    nranks = dist.get_world_size()
    rows = nranks // columns
    mesh = init_device_mesh("cuda", (rows, columns), mesh_dim_names=("dp", "tp"))

    # The data of network.h: each number is to become the mean of itself and the next.
    samples = 2 * torch.rand(options.batch // rows, width, device="cuda") - 1
    wanted = (samples + samples.roll(-1, dims=1)) / 2

    def trainer(model, average):
        parameters = list(model.parameters())
        optimizer = torch.optim.SGD(parameters, lr=0.1 / layers, momentum=0.9)

        def step():
            optimizer.zero_grad()
            loss = (model(samples) - wanted).square().sum() / (2 * len(samples))
            loss.backward()
            if average and rows > 1:
                for p in reversed(parameters):
                    grad = p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad
                    dist.all_reduce(grad, op=dist.ReduceOp.AVG, group=mesh.get_group("dp"))
            optimizer.step()

        return step

    def in_rows():
        model = network(layers, width)
        if columns == 1:
            return model
        return parallelize_module(model, mesh["tp"], {
            str(l): RowwiseParallel() if l % 2 else ColwiseParallel() for l in range(layers)})

    # One slice of each layer, without the others: the same products.
    alone = torch.nn.Sequential(*(
        torch.nn.Linear(*((width // columns, width) if l % 2 else (width, width // columns)),
                        bias=False, device="cuda") for l in range(layers)))
    operations = (trainer(alone, False), trainer(in_rows(), False), trainer(in_rows(), True))
    times = [[], [], []]
    for batch in range(BATCHES + 1):
        for operation, list_of in zip(operations, times):
            took = batch_seconds(operation)
            if batch > 0:  # the first one warms up
                list_of.append(took)
    compute, with_rows, with_columns = (1e3 * statistics.median(t) for t in times)
    if dist.get_rank() == 0:
        print(f"PyTorch {torch.__version__}, NCCL {torch.cuda.nccl.version()}, {nranks} ranks")
        print(f"computing only      {compute:9.3f} ms a step")
        print(f"with the rows       {with_rows:9.3f} ms")
        print(f"with the columns    {with_columns:9.3f} ms")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=4096, help="of all rows together")
    parser.add_argument("--columns", type=int, default=2, help="ranks in a row")
    for options in models(parser):
        measure(options)


if __name__ == "__main__":
    main()
