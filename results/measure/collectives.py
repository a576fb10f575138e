"""All-reduce in PyTorch, and two ways to make it of other collectives.

    torchrun --standalone --nproc_per_node=4 results/measure/collectives.py

Prints, for each size that lesson 08 has, the slowest rank's time: the median of ten batches of ten.
"""
import os
import statistics
import time

import torch
import torch.distributed as dist


def all_reduce(tensor, part):
    dist.all_reduce(tensor)


def reduce_broadcast(tensor, part):
    dist.reduce(tensor, dst=0)
    dist.broadcast(tensor, src=0)


def reduce_scatter_all_gather(tensor, part):
    dist.reduce_scatter_tensor(part, tensor)
    dist.all_gather_into_tensor(tensor, part)


def seconds(operation, tensor, part, repeat=10, batches=10):
    """Of one operation."""
    times = []
    for _ in range(batches + 1):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repeat):
            operation(tensor, part)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / repeat)
    slowest = torch.tensor(times[1:], device=tensor.device, dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return statistics.median(slowest.tolist())


def main():
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group(backend="nccl", device_id=device)
    nranks = dist.get_world_size()
    if rank == 0:
        print(f"PyTorch {torch.__version__}, NCCL {torch.cuda.nccl.version()}, {nranks} ranks")
    for size in [16 << 2 * step for step in range(14)]:
        count = max(size // 4 // nranks, 1) * nranks
        # Zeros stay zeros, however often they are added up.
        tensor = torch.zeros(count, device="cuda")
        part = torch.zeros(count // nranks, device="cuda")
        for operation in (all_reduce, reduce_broadcast, reduce_scatter_all_gather):
            took = seconds(operation, tensor, part)
            busbw = 2 * (nranks - 1) / nranks * count * 4 / took / 1e9
            if rank == 0:
                name = operation.__name__
                print(f"{name:27} {count * 4:11} B {took * 1e6:10.1f} us {busbw:8.1f} GB/s busbw")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
