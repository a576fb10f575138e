"""Programs of PyTorch for two ranks: wrong ones, each with one mistake in its calls of NCCL,
and right ones. `pytorch.sh` beside this runs them all.

    torchrun --nproc_per_node=2 pytorch.py NAME

The line with `# here` is the one that a report should name.
"""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn


def start():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local % torch.cuda.device_count())
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=20))
    return dist.get_rank(), dist.get_world_size()


def ones(count, **more):
    return torch.ones(count, device="cuda", **more)


def ddp(model, **more):
    return nn.parallel.DistributedDataParallel(model.cuda(), **more)


class Sometimes(nn.Module):
    """Its second layer is left out if the caller says so."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x, skip):
        return self.a(x) if skip else self.b(self.a(x))


# Wrong

def skip(rank, n):
    x = ones(1000)
    for step in range(4):
        if not (rank == 1 and step == 2):
            dist.all_reduce(x)  # here
    torch.cuda.synchronize()


def count(rank, n):
    dist.all_reduce(ones(1000 + rank))  # here


def order(rank, n):
    a, b, group = ones(1000), ones(10), dist.new_group()
    dist.all_reduce(a)
    dist.all_reduce(b, group=group)
    torch.cuda.synchronize()
    for first in (rank, 1 - rank):
        if first == 0:
            dist.all_reduce(a)  # here
        else:
            dist.all_reduce(b, group=group)
        torch.cuda.synchronize()


def operation(rank, n):
    x = ones(1000)
    if rank == 0:
        dist.all_reduce(x)
    else:
        dist.broadcast(x, src=0)  # here


def no_receive(rank, n):
    x = ones(1 << 22)
    dist.all_reduce(x)
    torch.cuda.synchronize()
    if rank == 0:
        dist.send(x, 1)  # here
    torch.cuda.synchronize()
    dist.barrier()


def uneven(rank, n):
    model = ddp(nn.Linear(64, 64))
    for _ in range(5 if rank == 0 else 4):
        loss = model(torch.randn(8, 64, device="cuda")).sum()
        loss.backward()  # here
        loss.item()


def nan_continue(rank, n):
    model = ddp(nn.Linear(64, 64))
    for i in range(4):
        loss = model(torch.randn(8, 64, device="cuda")).sum()
        if rank == 1 and i == 2:
            continue
        loss.backward()  # here
        torch.cuda.synchronize()


def only_rank_0(rank, n):
    x = ones(100)
    for _ in range(2):
        dist.all_reduce(x)
        if rank == 0:
            dist.barrier()  # here
    torch.cuda.synchronize()


def data_type(rank, n):
    dist.all_reduce(ones(1000, dtype=torch.float32 if rank == 0 else torch.float16))  # here


def root(rank, n):
    dist.broadcast(ones(1000) * rank, src=rank)  # here


def early_end(rank, n):
    x = ones(1000)
    for i in range(3):
        dist.all_reduce(x)  # here
        torch.cuda.synchronize()
        if rank == 1 and i == 1:
            break


def both_send(rank, n):
    x, y = ones(1 << 24), ones(1 << 24)
    dist.all_reduce(x)
    torch.cuda.synchronize()
    dist.send(x, 1 - rank)  # here
    dist.recv(y, 1 - rank)
    torch.cuda.synchronize()


def unused(rank, n):
    model = ddp(Sometimes(), bucket_cap_mb=0.001)
    for i in range(3):
        model(torch.randn(8, 64, device="cuda"), rank == 1 and i == 1).sum().backward()  # here
        torch.cuda.synchronize()


def gather_sizes(rank, n):
    part = 100 + 50 * rank
    dist.all_gather_into_tensor(ones(n * part), ones(part))  # here


def some_make_group(rank, n):
    x = ones(100)
    dist.all_reduce(x)
    if rank == 0:
        group = dist.new_group([0, 1])
        dist.all_reduce(x, group=group)  # here
    torch.cuda.synchronize()


def side_stream_race(rank, n):
    x, side = ones(1 << 20), torch.cuda.Stream()
    for _ in range(3):
        dist.all_reduce(x)
        with torch.cuda.stream(side):
            dist.all_reduce(x)  # here
    torch.cuda.synchronize()


def reduction(rank, n):
    dist.all_reduce(ones(1000), op=dist.ReduceOp.SUM if rank == 0 else dist.ReduceOp.MAX)  # here


def splits(rank, n):
    dist.all_to_all_single(ones(10), ones(10), [6, 4] if rank == 0 else [5, 5], [5, 5])  # here


WRONG = [skip, count, order, operation, no_receive, uneven, nan_continue, only_rank_0, data_type,
         root, early_end, both_send, unused, gather_sizes, some_make_group, side_stream_race,
         reduction, splits]


# Right

def right_loop(rank, n):
    x = ones(1000)
    for _ in range(20):
        dist.all_reduce(x)
        x /= n
    print(x[0].item())


def right_ddp(rank, n):
    model = ddp(nn.Sequential(*[nn.Linear(256, 256) for _ in range(8)]), bucket_cap_mb=0.3)
    adam = torch.optim.AdamW(model.parameters())
    for _ in range(8):
        loss = model(torch.randn(32, 256, device="cuda")).square().mean()
        loss.backward()
        adam.step()
        adam.zero_grad()
        loss.item()


def right_fsdp(rank, n):
    from torch.distributed.fsdp import fully_shard
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)]).cuda()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    adam = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        model(torch.randn(32, 256, device="cuda")).square().mean().backward()
        adam.step()
        adam.zero_grad()


def right_batch(rank, n):
    x, y = ones(1000) * rank, ones(1000)
    for _ in range(5):
        for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, (rank + 1) % n),
                                               dist.P2POp(dist.irecv, y, (rank - 1) % n)]):
            request.wait()
        x = y + 1
    print(x[0].item())


def right_groups(rank, n):
    x = ones(1000)
    groups = [dist.new_group([0]), dist.new_group([1]), dist.new_group([0, 1])]
    dist.all_reduce(x, group=groups[rank])
    dist.all_reduce(x, group=groups[2])
    dist.barrier()


def right_async(rank, n):
    xs = [ones(1 << 18) for _ in range(6)]
    for _ in range(5):
        requests = [dist.all_reduce(x, async_op=True) for x in xs]
        y = torch.randn(512, 512, device="cuda") @ torch.randn(512, 512, device="cuda")
        for request in requests:
            request.wait()
        for x in xs:
            x /= n
    print(y.sum().item())


def right_side_stream(rank, n):
    x, side = ones(1 << 20), torch.cuda.Stream()
    for _ in range(4):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            dist.all_reduce(x)
        torch.cuda.current_stream().wait_stream(side)
        x /= n


def right_objects(rank, n):
    every = [None] * n
    dist.all_gather_object(every, {"rank": rank})
    every = [every if rank == 0 else None]
    dist.broadcast_object_list(every, src=0)
    dist.barrier()


def right_pipeline(rank, n):
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
    device = torch.device("cuda", torch.cuda.current_device())
    schedule = ScheduleGPipe(PipelineStage(nn.Linear(64, 64).cuda(), rank, n, device), 4,
                             loss_fn=lambda a, b: (a - b).square().mean())
    x = torch.randn(32, 64, device="cuda")
    for _ in range(3):
        schedule.step(x) if rank == 0 else schedule.step(target=x)


def right_tensor_parallel(rank, n):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    model = parallelize_module(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)).cuda(),
                               init_device_mesh("cuda", (n,)),
                               {"0": ColwiseParallel(), "1": RowwiseParallel()})
    model(torch.randn(8, 64, device="cuda")).sum().backward()


def right_slow_rank(rank, n):
    x = ones(1000)
    dist.all_reduce(x)
    torch.cuda.synchronize()
    if rank == 1:
        time.sleep(9)
    dist.all_reduce(x)


def right_two_halves(rank, n):
    x, y = ones(1000 * n), ones(1000)
    for _ in range(4):
        dist.reduce_scatter_tensor(y, x)
        dist.all_gather_into_tensor(x, y)


def right_nothing_to_send(rank, n):
    out, into = ([10, 0], [10, 3]) if rank == 0 else ([3, 7], [0, 7])
    y = ones(sum(into))
    dist.all_to_all_single(y, ones(10), into, out)
    print(y.sum().item())


def right_cost(rank, n):
    """Prints how long the host needs to queue an all-reduce."""
    x, best = ones(1), 1e9
    for _ in range(6):
        begun = time.perf_counter()
        for _ in range(200):
            dist.all_reduce(x)
        best = min(best, (time.perf_counter() - begun) / 200)
        torch.cuda.synchronize()
    print(f"{best * 1e6:.2f} us a call")


RIGHT = [right_loop, right_ddp, right_fsdp, right_batch, right_groups, right_async,
         right_side_stream, right_objects, right_pipeline, right_tensor_parallel,
         right_slow_rank, right_two_halves, right_nothing_to_send, right_cost]

if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(f.__name__ for f in WRONG + RIGHT))
    else:
        case = next(f for f in WRONG + RIGHT if f.__name__ == sys.argv[1])
        case(*start())
        torch.cuda.synchronize()
        dist.destroy_process_group()
        print("ended", flush=True)
