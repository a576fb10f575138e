"""Pictures of who does what: models divided among ranks, machines, waits, failures."""

import re

from draw import Canvas


def data_parallel(ranks=4, batch=168):
    """One step of lesson 10, with the shares of its batch."""
    share, wide, left = batch // ranks, 150, 120
    c = Canvas(left + ranks * wide + 4, 330, "Data parallelism: four GPUs with the same weights, each with its share of the samples",
               "Each GPU computes the gradient of its own samples; an all-reduce averages them; all make the same update.")  # fmt: skip
    for y, word in ((38, "1 load"), (88, "2 forward"), (106, "3 backward"), (160, "gradient"), (216, "4 all-reduce"), (272, "the mean"), (314, "5 update")):
        c.text(12, y, word, "soft small")
    for r in range(ranks):
        x = left + r * wide + (wide - 14) / 2
        c.cell(x - 62, 20, 124, 28, f"samples {r * share} … {(r + 1) * share - 1}", [r], "ink small middle")
        c.arrow(x, 50, x, 74)
        c.rect(x - 50, 76, 100, 40, f"cell r{r}", 5)
        c.text(x, 93, f"GPU {r}", "ink bold middle")
        c.text(x, 109, "the same weights", "ink small middle")
        c.arrow(x, 118, x, 142)
        c.cell(x - 50, 144, 100, 24, "", [r])
        c.text(x, 160.5, "its own", "ink small middle")
        c.line(x, 170, x, 198)
        c.arrow(x, 224, x, 254)
        c.cell(x - 50, 256, 100, 24, "mean of all", range(ranks), "ink small middle")
        c.arrow(x, 282, x, 300)
        c.text(x, 318, "the same weights again", "soft small middle")
    first, last = left + (wide - 14) / 2, left + (ranks - 1) * wide + (wide - 14) / 2
    c.rect(first - 62, 198, last - first + 124, 26, "cell comm", 5)
    c.text((first + last) / 2, 215.5, "ncclAllReduce: the only step that communicates", "ink small middle")
    return c


def memory(run):
    """What a rank keeps at each stage: the program's own sums, and their parts."""
    n = run["ranks"]
    kept = {int(s): int(b) for s, b in re.findall(r"stage (\d): a rank keeps +(\d+) bytes", "\n".join(run["output"]))}
    whole = kept[0] // 3
    left, wide = 170, 520
    c = Canvas(left + wide + 50, 40 + 4 * 44, f"Memory of a rank at each stage of ZeRO, with {n} ranks",
               "Stage 1 divides the momentum, stage 2 also the gradients, stage 3 also the weights.")  # fmt: skip
    names = [("weights", "work", 3), ("gradients", "back", 2), ("momentum", "update", 1)]
    x = left
    for name, kind, _ in names:
        c.rect(x, 12, 14, 14, f"bar {kind}")
        c.text(x + 20, 24, name, "ink small")
        x += 110
    words = {0: "stage 0: nothing", 1: "1: momentum", 2: "2: and gradients", 3: "3: and weights"}
    for stage, total in kept.items():
        y, x = 44 + stage * 44, left
        c.text(12, y + 18, words[stage], "ink bold small")
        parts = [whole // n if stage >= divided else whole for _, _, divided in names]
        assert sum(parts) == total, (stage, parts, total)
        for (name, kind, _), part in zip(names, parts):
            w = wide * part / kept[0]
            c.rect(x, y, w, 28, f"bar {kind}")
            if w > 60:
                c.text(x + w / 2, y + 18.5, f"{part:,} B".replace(",", " "), "ink small middle")
            x += w
        c.text(x + 8, y + 18.5, f"{100 * total // kept[0]} %", "soft small")
    c.text(12, 24, "divided:", "soft small")
    return c


def experts(run):
    """Counts first, then tokens: what each rank sends to each other one, as the run's messages say."""
    n = run["ranks"]
    sends = [o for o in run["operations"] if o[2] == "ncclSend"]
    counts = [o for o in sends if o[5]["count"] == 1]
    tokens = [[0] * n for _ in range(n)]
    seen = {(r, p): False for r in range(n) for p in range(n)}
    forward_group = {r: sorted({o[5]["group"] for o in sends if o[0] == r})[1:2] for r in range(n)}
    for o in sends:
        r, p = o[0], o[5]["peer"]
        if o[5]["count"] > 1 and [o[5]["group"]] == forward_group[r] and not seen[r, p]:
            tokens[r][p], seen[r, p] = o[5]["count"] // 64, True
    assert len(counts) == n * n and sum(map(sum, tokens)) == 5 * n
    size, row = 17, 40
    most = max(sum(tokens[s][p] for s in range(n)) for p in range(n))
    left, top = 84, 56
    grid_x = left + 5 * (size + 3) + 46
    cell = 30
    right = grid_x + n * cell + 96
    c = Canvas(max(right + most * (size + 2) + 20, 560), top + n * row + 34,
               f"Experts on {n} ranks: counts first, then tokens",
               "Each rank sorts its tokens by expert, tells the others how many will come, and sends them.")  # fmt: skip
    c.text(left, top - 30, "tokens, sorted", "ink bold")
    c.text(left, top - 14, "for which expert", "soft small")
    c.text(grid_x, top - 30, "counts", "ink bold")
    for p in range(n):
        c.text(grid_x + p * cell + cell / 2, top - 10, f"{p}", "soft small middle")
    c.text(right, top - 30, "at the expert", "ink bold")
    for r in range(n):
        y = top + r * row
        c.gpu(14, y, r)
        x = left
        for p in range(n):
            for _ in range(tokens[r][p]):
                c.cell(x, y, size, 26, p, [r], "ink small middle")
                x += size + 3
        with c.during(1, 99):
            for p in range(n):
                c.rect(grid_x + p * cell, y, cell, 26, f"cell r{r % 8}")
                c.text(grid_x + p * cell + cell / 2, y + 18, tokens[r][p], "ink small middle")
        c.gpu(right - 70, y, r, 60, 26, "expert")
    with c.during(1, 1):
        c.rect(grid_x - 3, top - 4, n * cell + 6, 34, "thick", 4)
    with c.during(2, 2):
        c.rect(grid_x - 2, top - 4, cell + 4, n * row - 4, "thick", 4)
    words = [f"Each rank has five tokens and knows only its own: rank 0 sorts them, {', '.join(f'{tokens[0][p]} for expert {p}' for p in range(n))}.",
             f"An all-to-all of one number in each block: row 0 is what rank 0 will send, {' '.join(map(str, tokens[0]))}.",
             f"Now each rank has its column. Rank 0 receives {' '.join(str(tokens[s][0]) for s in range(n))} tokens, together "
             f"{sum(tokens[s][0] for s in range(n))}. Only now can its host call ncclRecv with these counts."]  # fmt: skip
    place = [0] * n
    for s in range(n):
        with c.during(3 + s, 3 + s):
            c.rect(left - 3, top + s * row - 4, 5 * (size + 3) + 3, 34, "thick", 4)
        for p in range(n):
            for _ in range(tokens[s][p]):
                with c.during(3 + s, 99):
                    c.cell(right + place[p] * (size + 2), top + p * row, size, 26, p, [s], "ink small middle")
                place[p] += 1
        sent = [f"{tokens[s][p]} to expert {p}" for p in range(n) if tokens[s][p]]
        words.append(f"Tokens of rank {s}: {', '.join(sent)}. A block of no tokens is not sent.")
    loads = [sum(tokens[s][p] for s in range(n)) for p in range(n)]
    words.append(f"The experts compute {', '.join(map(str, loads))} tokens; all ranks wait for the fullest. Then each token goes "
                 "back the same way.")  # fmt: skip
    c.text(right, top + n * row + 12, "colour: whose token it is", "soft small")
    return c, words


def grid(run):
    """The grid of lesson 15, and its all-reduces in order."""
    n = run["ranks"]
    placed = {int(r): (int(a), int(b), s, w) for r, a, b, s, w in re.findall(
        r"rank (\d+): row (\d+) of \d+, column (\d+) of \d+; samples (\d+ to \d+), slice (\d+ to \d+)", "\n".join(run["output"]))}  # fmt: skip
    rows, columns = max(p[0] for p in placed.values()) + 1, max(p[1] for p in placed.values()) + 1
    wide, high, left, top = 132, 84, 148, 64
    c = Canvas(max(left + columns * wide + 16, 500), top + rows * high + 50, f"A grid of {rows} rows and {columns} columns",
               "Ranks of a row have the same samples, ranks of a column the same slice of the weights.")  # fmt: skip
    sums = [o for o in run["operations"] if o[2] == "ncclAllReduce" and o[0] == 0]
    steps = len(sums)
    for col in range(columns):
        part = next(p[3] for p in placed.values() if p[1] == col)
        c.text(left + col * wide + 50, 24, f"column {col}", "ink bold middle")
        c.text(left + col * wide + 50, 42, f"slice {part.replace(' to ', ' … ')}", "soft small middle")
    for row in range(rows):
        samples = next(p[2] for p in placed.values() if p[0] == row)
        c.text(12, top + row * high + 22, f"row {row}", "ink bold")
        c.text(12, top + row * high + 40, f"samples {samples.replace(' to ', ' … ')}"[:20], "soft small")
    for r, (row, col, _, _) in placed.items():
        c.gpu(left + col * wide, top + row * high, r, 100, 44)
    c.text(12, top + rows * high + 16, "a row: the same samples, different weights; it adds up activations", "soft small")
    c.text(12, top + rows * high + 34, "a column: the same weights, different samples; it averages gradients", "soft small")
    row_comm, column_comm = 2, 3
    words = [f"{n} ranks in a grid. A row has the same samples and different weights; a column has the same weights and "
             "different samples. Each rank is in two communicators: its row and its column."]  # fmt: skip

    def along_rows(first, last):
        with c.during(first, last):
            for row in range(rows):
                for col in range(columns - 1):
                    x, y = left + col * wide, top + row * high + 22
                    c.arrow(x + 116, y, x + 131, y)
                    c.arrow(x + 116, y, x + 101, y)

    def along_columns(first, last):
        with c.during(first, last):
            for col in range(columns):
                for row in range(rows - 1):
                    x, y = left + col * wide + 50, top + row * high
                    c.arrow(x, y + 64, x, y + 83)
                    c.arrow(x, y + 64, x, y + 45)

    still = steps + 1
    for k, o in enumerate(sums, 1):
        in_row = o[5]["communicator"] == row_comm
        assert in_row or o[5]["communicator"] == column_comm
        (along_rows if in_row else along_columns)(k, k)
        before = [p for p in run["operations"] if p[0] == 0 and "gemm" in p[2]]
        done = sum(p[4] <= o[3] + 0.1 for p in before) - (sum(p[4] <= sums[k - 2][3] + 0.1 for p in before) if k > 1 else 0)
        after = f"after {done} more products" if done else "right after it"
        what = "activations, or of their gradients" if in_row else "gradients"
        kind = "Sums" if in_row else "The mean"
        words.append(f"All-reduce {k} of {steps}, {after}: in each {'row' if in_row else 'column'}, {o[5]['bytes']} bytes. {kind} of {what}.")
    along_rows(still, still)
    along_columns(still, still)
    return c, words


def processes(ranks=4):
    c = Canvas(700, 236, "One process per GPU, and one process for all GPUs",
               "With one process per GPU, MPI carries the unique id; one process makes the calls for all its GPUs.")  # fmt: skip
    c.text(20, 26, "one process per GPU: lessons 00 to 15", "ink bold")
    c.text(400, 26, "one process: this lesson", "ink bold")
    for r in range(ranks):
        y = 48 + r * 40
        c.rect(20, y, 104, 28, "cell empty", 5)
        c.text(72, y + 19, f"process {r}", "ink small middle")
        c.arrow(126, y + 14, 176, y + 14)
        c.gpu(178, y + 1, r)
        c.arrow(506, 48 + (ranks * 40 - 12) / 2, 578, y + 14)
        c.gpu(580, y + 1, r)
    c.rect(250, 48, 24, ranks * 40 - 12, "cell comm", 5)
    for r in range(ranks):
        c.line(238, 62 + r * 40, 250, 62 + r * 40)
    c.text(282, 128, "MPI carries", "soft small")
    c.text(282, 144, "the unique id", "soft small")
    c.rect(400, 48, 104, ranks * 40 - 12, "cell empty", 5)
    c.text(452, 112, "process", "ink small middle")
    c.text(452, 130, "a call for each", "soft small middle")
    c.text(452, 146, "GPU, in a group", "soft small middle")
    c.text(400, 224, "nothing to carry: all are at hand", "soft small")
    return c


def registered():
    c = Canvas(720, 304, "What NCCL copies: memory from cudaMalloc, and registered memory",
               "From cudaMalloc, data is first copied over the link into a buffer of NCCL; registered memory is read directly.")  # fmt: skip
    for y, word in ((30, "cudaMalloc"), (176, "registered")):
        c.text(16, y, word, "ink bold")
        c.rect(130, y - 20, 210, 112, "box none", 8)
        c.rect(450, y - 20, 254, 112, "box none", 8)
        c.text(140, y, "GPU 0", "soft small")
        c.text(460, y, "GPU 1", "soft small")
        c.cell(150, y + 14, 130, 28, "your buffer", [0], "ink small middle")
        c.cell(466, y + 52, 104, 28, "your buffer", [1], "ink small middle")
        c.cell(630, y + 30, 60, 28, "sum", [0, 1], "ink small middle")
        c.arrow(572, y + 66, 628, y + 52)
    c.cell(466, 44, 104, 28, "NCCL's buffer", [0], "ink small middle")
    c.arrow(282, 58, 464, 58)
    c.text(396, 50, "copy, over the link", "ink small middle")
    c.arrow(572, 58, 628, 70)
    c.arrow(282, 204, 628, 216)
    c.text(396, 200, "read, over the link", "ink small middle")
    c.text(466, 296, "no copy: NCCL has mapped your buffer for the other process", "soft small middle")
    return c


def stairs(run):
    ways = re.findall(r"^(.+?) +([\d.]+) +([\d.]+)$", "\n".join(run["output"]), re.M)
    left, wide = 190, 470
    c = Canvas(left + wide + 60, 40 + len(ways) * 32, "Sixteen sums of eight bytes, made in six ways, on the modelled H200",
               "; ".join(f"{w}: {t} µs" for w, t, _ in ways))  # fmt: skip
    c.text(left, 24, "µs for all sixteen, by the modelled clock of an H200, two ranks", "soft small")
    most = max(float(t) for _, t, _ in ways)
    for i, (way, time, _) in enumerate(ways):
        y = 38 + i * 32
        w = wide * float(time) / most
        c.text(12, y + 15, way, "ink small")
        c.rect(left, y, w, 22, "bar " + ("wait" if i == 0 else "comm"), 2)
        if w > wide - 20:
            c.text(left + w - 8, y + 15.5, time, "ink small end")
        else:
            c.text(left + w + 8, y + 15.5, time, "ink small")
    return c


def put():
    c = Canvas(720, 250, "A put into the window of another rank, and a signal",
               "Rank 0 writes its values into a block of rank 1's window, then signals; rank 1 waits for the signal.")  # fmt: skip
    blocks = ["MINE", "FROM_LEFT", "FROM_RIGHT", "QUEUE"]
    parts = [1, 2, 2, 4]
    size, left = 58, 160
    for r, y in ((0, 44), (1, 150)):
        c.gpu(20, y, r, 64, 30, "rank")
        c.text(20, y + 48 if r else y - 8, "its window:", "soft small")
        x = left
        for name, count in zip(blocks, parts):
            for k in range(count):
                owner = [0] if (r == 0 and name == "MINE") or (r == 1 and name == "FROM_LEFT" and k == 0) else []
                c.cell(x, y, size, 30, {"MINE": "values", "FROM_LEFT": "values"}.get(name, "") if owner else "", owner, "ink small middle")
                x += size
            c.text(x - count * size / 2, y - 8 if r == 0 else y + 46, name, "soft small middle")
    c.arrow(left + 30, 76, left + size + 28, 146)
    c.text(left + 92, 116, "1: ncclPutSignal copies the data", "ink small")
    c.arrow(92, 76, 92, 146, "dashed")
    c.text(100, 134, "2: signal", "ink small")
    c.text(left, 224, "rank 1: ncclWaitSignal; now the values are there. It calls nothing to receive them.", "ink small")
    return c


def reach(ranks=4):
    """A kernel that adds up its share by loads from all ranks, and stores the sum at all ranks."""
    c = Canvas(740, 292, "An all-reduce inside a kernel: rank 1 loads its element from all ranks and stores the sum at all ranks",
               "Each rank has a window from with its values and a window to. The kernel of rank 1 loads element 1 from "
               "the window from of every rank, adds, and stores the sum as element 1 of every window to. "
               "Rank 0 does the same with element 0, and so on.")  # fmt: skip
    size, left, right, mid = 46, 96, 540, 372
    c.text(left + 2 * size, 26, "window from", "ink bold middle")
    c.text(right + 2 * size, 26, "window to", "ink bold middle")
    rows = [42 + r * 56 for r in range(ranks)]
    for r, y in enumerate(rows):
        c.gpu(12, y + 2, r, 66, 28)
        for k in range(ranks):
            c.cell(left + k * size, y, size, 32, "" if k != 1 else r + 1, [r])
            c.cell(right + k * size, y, size, 32, "10" if k == 1 else "", range(ranks) if k == 1 else [])
    for r, y in enumerate(rows):
        c.arrow(left + 2 * size - 8, y + 16, mid - 52, 148, "faint" if r != 1 else "")
        c.arrow(mid + 52, 148, right + size + 8, y + 16, "faint" if r != 1 else "")
    c.rect(mid - 50, 122, 100, 52, "cell r1", 6)
    c.text(mid, 143, "rank 1’s kernel", "ink small middle")
    c.text(mid, 162, "1 + 2 + 3 + 4", "ink small middle")
    c.text(left + 4 * size + 4, 40, "loads", "soft small")
    c.text(right - 6, 40, "stores", "soft small end")
    c.text(12, 284, "Barriers: before the loads all ranks have their values in place; after the stores all sums are.", "ink small")
    return c


def in_kernels():
    """LSA, multimem and GIN."""
    c = Canvas(740, 246, "Three ways for a kernel to reach other GPUs: LSA, multimem and GIN",
               "LSA: loads and stores to each GPU's memory, over NVLink. Multimem: one load or store that the NVLink "
               "switch does at all GPUs, and it adds up. GIN: a request to the network adapter, to other nodes.")  # fmt: skip
    titles = (("LSA", "a load or store for each GPU"), ("multimem", "one for all: the switch adds up"), ("GIN", "through the network adapter"))
    for k, (name, words) in enumerate(titles):
        x = 12 + k * 244
        c.rect(x, 12, 228, 222, "box none", 8)
        c.text(x + 114, 36, name, "ink bold middle")
        c.text(x + 114, 54, words, "soft small middle")
        c.rect(x + 14, 104, 62, 40, "cell r0", 5)
        c.text(x + 45, 121, "kernel", "ink small middle")
        c.text(x + 45, 137, "GPU 0", "ink small middle")
        spots = [(x + 156, 72 + 50 * i) for i in range(3)]
        if k < 2:
            for i, (px, py) in enumerate(spots):
                c.gpu(px, py, i + 1, 60, 32)
                if k == 0:
                    c.arrow(x + 78, 124, px - 3, py + 16)
        if k == 1:
            c.rect(x + 92, 104, 44, 40, "cell empty", 5)
            c.text(x + 114, 121, "NV-", "ink small middle")
            c.text(x + 114, 136, "Switch", "ink small middle")
            c.arrow(x + 77, 124, x + 90, 124)
            for px, py in spots:
                c.arrow(x + 137, 124, px - 2, py + 16)
        if k == 2:
            c.rect(x + 92, 104, 40, 40, "cell empty", 5)
            c.text(x + 112, 129, "NIC", "ink small middle")
            c.arrow(x + 77, 124, x + 90, 124)
            c.rect(x + 168, 72, 40, 32, "cell empty", 5)
            c.text(x + 188, 93, "NIC", "ink small middle")
            c.gpu(x + 156, 152, 4, 60, 32)
            c.arrow(x + 133, 118, x + 166, 90, "dashed")
            c.arrow(x + 188, 106, x + 188, 149)
            c.text(x + 118, 90, "network", "soft small")
    for k, words in enumerate(("NVLink, or PCIe", "NVLink with a switch", "InfiniBand, RoCE")):
        c.text(12 + k * 244 + 114, 224, words, "ink small middle")
    return c


def node():
    """One node of Leonardo, by CINECA's description."""
    c = Canvas(740, 400, "A node of the cluster Leonardo: four A100, NVLink, PCIe and InfiniBand",
               "Every pair of GPUs has NVLink with 100 GB/s each way; two network adapters with two ports of 100 Gb/s each "
               "lead to the other nodes.")  # fmt: skip
    c.rect(12, 12, 716, 318, "box none", 10)
    c.text(26, 34, "one node", "ink bold")
    spots = [(70, 60), (250, 60), (70, 200), (250, 200)]
    middle = [(x + 46, y + 24) for x, y in spots]
    for a in range(4):
        for b in range(a + 1, 4):
            (x1, y1), (x2, y2) = middle[a], middle[b]
            c.add(f'<path d="M{x1} {y1}L{x2} {y2}" class="thick"/>')
    for r, (x, y) in enumerate(spots):
        c.rect(x, y, 92, 48, f"cell r{r}", 6)
        c.text(x + 46, y + 21, f"GPU {r}", "ink bold middle")
        c.text(x + 46, y + 38, "A100 64 GB", "ink small middle")
    c.text(70, 278, "NVLink: every pair of GPUs, 100 GB/s each way", "ink small")
    c.text(70, 296, "a GPU to the three others together: 300 GB/s each way", "soft small")
    c.rect(430, 60, 110, 188, "cell empty", 6)
    c.text(485, 138, "CPU, 32 cores", "ink small middle")
    c.text(485, 156, "512 GB memory", "ink small middle")
    for y in (84, 224):
        c.line(342, y, 430, y, "dashed")
        c.text(386, y - 7, "PCIe", "soft small middle")
        c.line(540, y, 586 if y < 100 else 596, y, "dashed")
    for i, y in enumerate((60, 200)):
        c.rect(596, y, 116, 48, "cell copy", 6)
        c.text(654, y + 21, f"adapter {i}", "ink small middle")
        c.text(654, y + 38, "two ports", "ink small middle")
    # Both ports of each adapter lead out of the node; those of the upper one beside the lower one.
    for d in "M588 84V348", "M720 84V348", "M634 248V348", "M674 248V348", "M588 84h8", "M720 84h-8":
        c.path(d, "line")
    c.text(580, 282, "InfiniBand: 100 Gb/s a port,", "ink small end")
    c.text(580, 300, "400 Gb/s = 50 GB/s a node", "ink small end")
    c.rect(430, 348, 298, 36, "cell wait", 6)
    c.text(579, 371, "the network, to the other nodes", "ink small middle")
    return c


def ways():
    """Lesson 08's three ways to a sum."""
    c = Canvas(720, 268, "Three ways to the same sum on all ranks",
               "One all-reduce; a reduce and a broadcast; a reduce-scatter and an all-gather.")  # fmt: skip
    everything, three = [0, 1, 2], 3

    def block(x, y, has):
        for r in range(three):
            for i in range(three):
                owners = has(r, i)
                c.cell(x + i * 24, y + r * 18, 22, 16, "", owners)

    rows = [("one call", ["ncclAllReduce"], []),
            ("to the root and back", ["ncclReduce", "ncclBroadcast"], [lambda r, i: everything if r == 0 else []]),
            ("in parts", ["ncclReduceScatter", "ncclAllGather"], [lambda r, i: everything if r == i else []])]  # fmt: skip
    for k, (name, calls, between) in enumerate(rows):
        y = 20 + k * 84
        c.text(14, y + 30, name, "ink bold small")
        block(156, y, lambda r, i: [r])
        stops = [156] + ([396] if between else []) + [636]
        for a, b, call in zip(stops, stops[1:], calls):
            c.arrow(a + 80, y + 26, b - 8, y + 26)
            c.text((a + 80 + b - 8) / 2, y + 18, call, "ink code middle")
        for x, has in zip(stops[1:-1], between):
            block(x, y, has)
        block(636, y, lambda r, i: everything)
    c.text(156, 264, "a row is a rank; a cell has the colours of those whose numbers are added up in it", "soft small")
    return c


def waits(run):
    """A rank leaves out a call: who waits for whom, as the report says."""
    n = run["ranks"]
    calls = {r: [c[1:] for c in run["done"] if c[0] == r] for r in range(n)}
    waiting = {}
    for line in run["report"]:
        got = re.match(r"  rank (\d+): .* for ncclAllReduce\(count (\d+), .*operation (\d+) on communicator (\d+); "
                       r"ranks? ([\d, ]+) ha(?:s|ve) not begun this operation", line)  # fmt: skip
        if got:
            waiting[int(got[1])] = (int(got[2]), int(got[4]), int(got[3]), [int(w) for w in got[5].split(", ")])
    assert len(waiting) == n, run["report"]
    # Of each step of the loop the norm comes first, then the gradients; the last steps are drawn.
    first = 4
    left, top, wide, row = 90, 60, 104, 46
    shown = {r: calls[r][first:] + [waiting[r][:3]] for r in range(n)}
    c = Canvas(left + 5 * wide + 90, top + n * row + 66, f"A hang of {n} ranks: rank 1 has left out one call",
               " ".join(run["report"][:1] + [line for line in run["report"] if "cycle" in line]))  # fmt: skip
    label = lambda call: "norm" if call[0] == 1 else "gradients"
    last = max(len(s) for s in shown.values())
    # A column is a call of the program: two in each step of the loop. Rank 1 has left out one.
    titles = ["step 2: norm", "step 2: gradients", "step 3: norm", "step 3: gradients", "step 4: norm"]
    for k, t in enumerate(titles):
        c.text(left + k * wide + wide / 2 - 4, top - 12, t, "soft small middle")
    position = {}
    for r in range(n):
        c.gpu(14, top + r * row, r, 60, 30, "rank")
        for k, call in enumerate(shown[r]):
            unfinished = k == len(shown[r]) - 1
            slot = k
            if (label(call) == "norm") != (slot % 2 == 0):
                slot += 1  # it left out the call before
                with c.during(4, 9):
                    c.rect(left + (slot - 1) * wide, top + r * row, wide - 10, 30, "box none bad dashed", 4)
                    c.text(left + (slot - 1) * wide + wide / 2 - 5, top + r * row + 20, "left out", "mark small middle")
            if unfinished:
                position[r] = slot
            with c.during(slot + 1 if not unfinished else (4 if slot == 3 else 5), 9):
                x, y = left + slot * wide, top + r * row
                c.rect(x, y, wide - 10, 30, "bar " + ("wait" if unfinished else "comm"), 4)
                c.text(x + wide / 2 - 5, y + 20, label(call) + (" waits" if unfinished else ""), "ink small middle")
    with c.during(6, 9):
        for r in range(n):
            for other in waiting[r][3][:1]:
                x1, y1 = left + (position[r] + 1) * wide - 8, top + r * row + 15
                x2, y2 = left + position[other] * wide - 2, top + other * row + 15
                if position[other] > position[r]:
                    c.arrow(x1, y1, x2, y2, "bad")
                elif r == 1:
                    x1 = left + position[r] * wide + 20
                    c.arrow(x1, y1 - 16, left + (position[other] + 1) * wide - 30, y2 + 16, "bad", bend=-0.25)
    with c.during(7, 9):
        cycle = next(line.strip() for line in run["report"] if "cycle" in line)
        c.text(14, top + n * row + 22, "NCCL CHECK: deadlock: ranks wait for one another", "mark small bold")
        c.text(14, top + n * row + 42, cycle, "ink small")
    words = [
        "The loop makes two all-reduces in each step: a norm on communicator 2, gradients on communicator 1. Steps 0 and 1 are over.",
        "Step 2: all ranks have made the sum of the norm.",
        "Step 2: all ranks have made the sum of the gradients.",
        "Step 3: the norm.",
        f"Step 3: rank 1 leaves out the sum of the gradients. The others make the call, and their operation waits (operation {waiting[0][2]} on communicator {waiting[0][1]}).",
        f"Rank 1 goes on to step 4 and calls the sum of the norm (operation {waiting[1][2]} on communicator {waiting[1][1]}). It waits, too.",
        "Who waits for whom: the others for rank 1, which has not begun their sum; rank 1 for the others, which have not begun its sum.",
        "The report. " + cycle,
    ]
    return c, words


def survivors(run):
    """Which ranks took part in which step, as the program printed it."""
    entries = []
    for line in run["output"]:
        step, what = re.match(r"step +(\d+): (.*)", line).groups()
        took = re.search(r"(\d) ranks", what)
        entries.append((int(step), int(took[1]) if took else None))
    left, top, wide, row = 90, 74, 44, 36
    c = Canvas(left + len(entries) * wide + 20, top + 4 * row + 40, "A training run that loses rank 3 in step 3, and gets it back in step 8",
               "Ranks 0 to 2 give up step 3 after a deadline, agree, shrink the communicator and do step 3 again.")  # fmt: skip
    c.text(14, top - 14, "step", "soft small")
    lost = next(k for k, e in enumerate(entries) if e[1] is None)
    joins = next(k for k, e in enumerate(entries) if k > lost and e[1] == 4)
    for k, (step, took) in enumerate(entries):
        c.text(left + k * wide + 20, top - 14, step, "ink bold middle")
        for r in range(4):
            x, y = left + k * wide, top + r * row
            if took is None:
                c.rect(x, y, wide - 5, 28, "cell wait" if r < 3 else "cell empty")
                if r < 3:
                    c.text(x + 19.5, y + 19, "waits", "ink small middle")
                else:
                    c.text(x + 19.5, y + 19, "lost", "mark small bold middle")
            elif r < took:
                c.cell(x, y, wide - 5, 28, "", range(took))
    for r in range(4):
        c.gpu(14, top + r * row + 1, r, 60, 26, "rank")
    c.text(left + lost * wide + 4, 20, "deadline, agree, abort, shrink,", "ink small")
    c.text(left + lost * wide + 4, 37, "then step 3 again", "ink small")
    c.arrow(left + lost * wide + 39, 42, left + lost * wide + 39, top - 4)
    c.text(left + joins * wide + 4, 20, "grow: it joins,", "ink small")
    c.text(left + joins * wide + 4, 37, "and gets the weights", "ink small")
    c.arrow(left + joins * wide, 42, left + joins * wide, top - 4)
    c.text(left, top + 4 * row + 22, "colours: whose data is in the gradient of this step", "soft small")
    return c


def tree(run):
    """An all-reduce up a tree and down again: the messages that the run recorded, and what they make of the sums."""
    n = run["ranks"]
    has = [{r} for r in range(n)]
    rounds, left_over = [], sorted(run["operations"], key=lambda o: o[3])
    # A message's step: after all that its sender and its receiver had before. So is a round of the tree.
    ready = [0] * n
    messages = []
    for o in left_over:
        r, p = o[0], o[5]["peer"]
        step = max(ready[r], ready[p]) + 1
        ready[r] = ready[p] = step
        messages.append((step, r, p))
    last = max(m[0] for m in messages)
    left, top, wide, high = 30, 50, 92, 54
    c = Canvas(left + (last + 1) * wide + 40, top + n * high - 6, f"A tree of {n} ranks: {last} steps, each with the whole buffer",
               "Half of the ranks send to the other half, which add; then half of those, until rank 0 has the sum; then back.")  # fmt: skip
    words = [f"Before: each of {n} ranks has its own buffer. A message carries the whole buffer, not a chunk."]
    history = [[set(h) for h in has]]
    up = set()
    for step in range(1, last + 1):
        now = []
        for s, r, p in messages:
            if s == step:
                down = has[r] == set(range(n))
                has[p] = set(has[r]) if down else has[p] | has[r]
                now.append(f"rank {r} sends {'the sum' if down else 'all it has'} to rank {p}" + ("" if down else ", which adds it"))
                up.add((r, p))
        history.append([set(h) for h in has])
        text = "; ".join(now)
        words.append(text[:1].upper() + text[1:] + ".")
    for step, held in enumerate(history):
        x = left + step * wide
        with c.during(step, 99):
            c.text(x + 28, top - 16, "before" if step == 0 else f"step {step}", "ink bold middle small")
            for r in range(n):
                c.cell(x, top + r * high, 56, 28, "", held[r])
                if len(held[r]) == n:
                    c.rect(x, top + r * high, 56, 28, "thick")
                if step == 0:
                    c.text(x + 28, top + r * high + 19, f"GPU {r}", "ink middle small")
            for s, r, p in messages:
                if s == step:
                    c.arrow(x - 34, top + r * high + 14, x - 3, top + p * high + (8 if r < p else 20))
    whole = f"{last} buffers" if last > 1 else "1 buffer"
    words[-1] += (f" Every rank has the sum. A ring needs {2 * n - 2} steps. But this tree sends a whole buffer in each of its {last} steps, "
                  f"one after the other: {whole}. In the ring a rank sends {2 * (n - 1) / n:.3g} buffers in all.")
    return c, words


def transports():
    """Lesson 21: the three paths from GPU 0, in the order in which NCCL tries them."""
    c = Canvas(744, 306, "Three paths between two GPUs, in the order in which NCCL tries them",
               "From GPU 0 to GPU 1 directly, by NVLink or PCIe; to GPU 2 through the memory of the host; to GPU 3 in another "
               "machine through a network adapter of each.")  # fmt: skip
    c.rect(12, 12, 488, 282, "box none", 10)
    c.text(26, 34, "one machine", "ink bold")
    c.rect(556, 92, 176, 120, "box none", 10)
    c.text(566, 114, "another machine", "ink bold")
    for r, x, y in ((0, 34, 134), (1, 396, 62), (2, 396, 222), (3, 654, 134)):
        c.gpu(x, y, r, 68, 36)
    c.line(68, 80, 68, 134)
    c.arrow(68, 80, 394, 80)
    c.text(84, 70, "1", "ink bold")
    c.text(102, 70, "P2P: directly, over NVLink or near PCIe", "ink small")
    c.text(84, 98, "if GPU 0 can reach GPU 1's memory", "soft small")
    c.line(68, 170, 68, 240)
    c.arrow(68, 240, 208, 240)
    c.rect(210, 222, 110, 36, "cell copy", 5)
    c.text(265, 244, "host's memory", "ink small middle")
    c.arrow(322, 240, 394, 240)
    c.text(84, 216, "2", "ink bold")
    c.text(102, 216, "SHM", "ink small")
    c.text(84, 280, "if not 1, and both are in one machine", "soft small")
    c.arrow(104, 152, 394, 152)
    c.text(118, 142, "3", "ink bold")
    c.text(136, 142, "NET: the network", "ink small")
    c.text(118, 170, "if neither 1 nor 2", "soft small")
    c.rect(396, 134, 80, 36, "cell wait", 5)
    c.text(436, 156, "adapter", "ink small middle")
    c.line(476, 152, 568, 152)
    c.rect(568, 134, 66, 36, "cell wait", 5)
    c.text(601, 156, "adapter", "ink small middle")
    c.arrow(634, 152, 652, 152)
    return c


def three_steps(nodes=2, local=4):
    """Lesson 24's sum by hand: what each GPU has before, between and after the three steps."""
    left, cell, gpu, apart = 128, 19, 86, 30
    ranks = nodes * local
    c = Canvas(left + ranks * gpu + (nodes - 1) * apart, 346, "A sum over two nodes in three steps, of which only the second uses the network",
               "Reduce-scatter in each node; all-reduce between GPUs with the same number in their node; all-gather in each node.")  # fmt: skip

    def at(r):
        return left + r * gpu + r // local * apart

    def buffers(y, word, owners):
        c.text(4, y + 16, word, "soft small")
        for r in range(ranks):
            for part in range(local):
                c.cell(at(r) + part * cell, y, cell, 24, "", owners(r, part))

    def in_node(y, word):
        for n in range(nodes):
            first, last = n * local, (n + 1) * local - 1
            c.rect(at(first), y, at(last) + local * cell - at(first), 24, "cell work", 5)
            c.text((at(first) + at(last) + local * cell) / 2, y + 16, word, "ink small middle")

    for r in range(ranks):
        c.text(at(r) + local * cell / 2, 40, f"GPU {r}", "ink bold middle")
    for n in range(nodes):
        c.text((at(n * local) + at((n + 1) * local - 1) + local * cell) / 2, 16, f"node {n}", "ink middle")
    node = [range(n * local, (n + 1) * local) for n in range(nodes)]
    buffers(50, "before", lambda r, part: [r])
    in_node(86, "1  reduce-scatter over NVLink")
    buffers(122, "a quarter", lambda r, part: node[r // local] if part == r % local else [])
    for i in range(local):
        y = 166 + i * 14
        c.line(at(i) + local * cell / 2, 148, at(i) + local * cell / 2, y)
        c.line(at(i + local) + local * cell / 2, 148, at(i + local) + local * cell / 2, y)
        c.line(at(i) + local * cell / 2, y, at(i + local) + local * cell / 2, y)
    c.text(4, 192, "2  all-reduce", "soft small")
    c.text(4, 208, "over the network", "soft small")
    buffers(226, "a quarter of all", lambda r, part: range(ranks) if part == r % local else [])
    in_node(262, "3  all-gather over NVLink")
    buffers(298, "after", lambda r, part: range(ranks))
    c.text(4, 342, "A colour is a GPU whose numbers are in the sum.", "soft small")
    return c
