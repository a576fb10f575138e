"""lesson.py: what the lessons' Python programs need and none teaches.

The first line, the tables and the verdict, as lesson.h has them for the C programs.
"""
import argparse

import torch
import torch.distributed as dist

CELLS, EDGE = 16, 4
_checked, _wrong, _first, _cell = 0, 0, None, None


def options(description, **defaults):
    """Reads the command line: `count=4` becomes -n, `layers=4` becomes --layers, and of a
    list one word may be chosen; the first is taken if none is."""
    parser = argparse.ArgumentParser(description=description)
    for name, value in defaults.items():
        flags = ["-n", "--count"] if name == "count" else ["--" + name.replace("_", "-")]
        choices, value = (value, value[0]) if isinstance(value, list) else (None, value)
        parser.add_argument(*flags, dest=name, type=type(value), default=value, choices=choices)
    return parser.parse_args()


def say_build():
    """The first line of a program that runs without a GPU. Rank 0 prints it."""
    if dist.get_backend() == "gloo" and dist.get_rank() == 0:
        print("Gloo: no GPU is used, the CPUs carry the calls.", flush=True)


def _number(value):
    return f"{value:.15g}"


def _letter(value):
    """The upper half of a 64-bit number as a letter, the lower half as a number: A0, B3."""
    upper, letters = (value >> 32) + 1, ""
    while upper > 0:
        letters = chr(ord("A") + (upper - 1) % 26) + letters
        upper = (upper - 1) // 26
    return f"{letters}{value & 0xffffffff}"


def in_order(line):
    """Prints one line for each rank, in rank order. All ranks must call it."""
    lines = [None] * dist.get_world_size()
    dist.all_gather_object(lines, line)
    if dist.get_rank() == 0:
        print("\n".join(lines), flush=True)


def table(title, tensor, letters=False):
    """Prints every rank's tensor as a row, in rank order. All ranks must call it."""
    global _cell
    _cell = _letter if letters else _number
    rows = [None] * dist.get_world_size()
    dist.all_gather_object(rows, tensor.tolist())  # the copy waits for the GPU
    if dist.get_rank() == 0:
        draw(title, rows)


def draw(title, rows):
    """The same for a rank that has all rows."""
    count, cell = len(rows[0]), _cell or _number
    cut = count > CELLS
    rows = [[cell(v) for v in (r[:EDGE] + r[-EDGE:] if cut else r)] for r in rows]
    width = max((len(c) for r in rows for c in r), default=0)
    between = f" ... {count - 2 * EDGE} more ... |" if cut else ""
    rule = "       " + "-" * (1 + len(rows[0]) * (width + 3) + len(between))
    print(title)
    for rank, row in enumerate(rows):
        cells = [f" {c:<{width}} |" for c in row]
        if cut:
            cells.insert(EDGE, between)
        print(f"{rule}\nGPU {rank:<3}|{''.join(cells)}\n{rule}")
    print(flush=True)


def expect(got, expected):
    """Records whether each element of a tensor is as expected."""
    global _checked, _wrong, _first
    got, expected = got.cpu(), torch.as_tensor(expected).cpu().expand(got.shape)
    wrong = (got != expected).nonzero().flatten().tolist()
    _checked += got.numel()
    _wrong += len(wrong)
    if wrong and _first is None:
        i = wrong[0]
        _first = (dist.get_rank(), i, got[i].item(), expected[i].item())


def verdict(what):
    """Prints the verdict over all ranks as the last line, and returns the exit code."""
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, (_checked, _wrong, _first))
    checked, wrong = sum(e[0] for e in every), sum(e[1] for e in every)
    if dist.get_rank() == 0:
        ranks = len(every)
        if checked == 0:
            print("FAILED: nothing was checked")
        elif wrong == 0:
            print(f"OK: {ranks} rank{'s' if ranks > 1 else ''}, all {checked} {what}s as expected")
        else:
            cell = _cell or _number
            rank, i, got, expected = next(e[2] for e in every if e[2])
            more = f" (and {wrong - 1} more)" if wrong > 1 else ""
            print(f"FAILED: rank {rank}, {what} {i} is {cell(got)}, expected {cell(expected)}{more}")
    return 0 if checked and not wrong else 1


# Gloo, which carries the calls where no GPU is, lacks two of NCCL's collectives in older
# versions of PyTorch. These functions make them of others there; with NCCL they are one call.
def all_gather(whole, part):
    if dist.get_backend() == "nccl":
        dist.all_gather_into_tensor(whole, part)
    else:
        dist.all_gather(list(whole.chunk(dist.get_world_size())), part)


def reduce_scatter(part, whole):
    if dist.get_backend() == "nccl":
        dist.reduce_scatter_tensor(part, whole)
    else:
        total = whole.clone()
        dist.all_reduce(total)
        part.copy_(total.chunk(dist.get_world_size())[dist.get_rank()])
