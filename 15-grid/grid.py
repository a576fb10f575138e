"""A grid of ranks: a row divides the weights (tensor parallel), a column the samples.

    torchrun --nproc_per_node=4 grid.py [--columns C] [--layers L] [--width W] …
"""
import os
import sys

import torch
import torch.distributed as dist

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

asked = network.options(__doc__, 1, columns=2 if nranks % 2 == 0 else 1)
columns, rows = asked.columns, nranks // asked.columns
row, column = divmod(rank, columns)

# Every rank must call new_group for all groups, in the same order, also for those that it is
# not in. (init_device_mesh does it for a grid, parallelize_module and fully_shard the rest.)
# A group makes its communicator in its first collective.
of_rows = [dist.new_group(range(r * columns, (r + 1) * columns)) for r in range(rows)]
of_columns = [dist.new_group(range(c, nranks, columns)) for c in range(columns)]
in_row, in_column = of_rows[row], of_columns[column]

# Of each pair of layers: some columns of the first matrix, the same rows of the second.
share, width = asked.batch // rows, asked.width
mine = slice(width * column // columns, width * (column + 1) // columns)


def cut(weights):
    return [w[:, mine] if l % 2 == 0 else w[mine] for l, w in enumerate(weights)]


weights = [w.contiguous().to(device) for w in cut(network.first_weights(asked, seed=0))]
sgd, squares = network.optimizer(asked, weights), []
for step in range(asked.steps):
    x, wanted = network.samples(asked, step * asked.batch + row * share, share)
    inputs = [x.to(device)]
    for l in range(asked.layers):
        inputs.append(inputs[l] @ weights[l])
        if l % 2 == 1:  # each rank of the row has a part of every number: add them up
            dist.all_reduce(inputs[-1], group=in_row)
    dy = inputs.pop() - wanted.to(device)
    squares.append((dy ** 2).sum() / 2 if column == 0 else 0)
    dy /= share
    for l in reversed(range(asked.layers)):
        weights[l].grad = inputs[l].T @ dy
        dy = dy @ weights[l].T
        if l % 2 == 0:  # backward it is the other way round
            dist.all_reduce(dy, group=in_row)
        # The ranks of a column have different samples: average their gradients.
        dist.all_reduce(weights[l].grad, group=in_column)
        weights[l].grad /= rows
    sgd.step()

network.print_losses(asked, squares)
expected = torch.cat([w.flatten() for w in cut(network.expected(asked)[0])])
exit_code = network.verdict(asked, torch.cat([w.flatten() for w in weights]), expected)

dist.destroy_process_group()
sys.exit(exit_code)
