"""Pictures of buffers: before a call, the call, after it. Each number comes from a recorded run."""

from draw import Canvas

ROW, CHIP, GAP = 38, 58, 12  # height of a row, width of a rank's name, between it and its cells


def values(table, owners):
    """The cells of a table: words and owners."""
    return [[(word, owners(r, i, word)) for i, word in enumerate(row)] for r, row in enumerate(table["rows"])]


def panel(c, x, y, title, rows, width, place=lambda r: 0, slots=0):
    """Rows of cells under a title. place: the slot of a rank's first cell, among so many that are outlined."""
    c.text(x, y - 12, title, "ink bold")
    for r, row in enumerate(rows):
        top = y + r * ROW
        for i in range(slots):
            c.rect(x + i * width, top, width, 28, "box none dashed")
        for i, (word, owners) in enumerate(row):
            c.cell(x + (place(r) + i) * width, top, width, 28, word, owners)


def chips(c, x, y, ranks, row=ROW):
    for r in range(ranks):
        c.gpu(x, y + r * row + 1, r)


def broadcast(run):
    n = run["ranks"]
    before, after = run["tables"]
    count = len(before["rows"][0])
    width, left, top = 44, 20 + CHIP + GAP, 52
    right = left + count * width + 200
    c = Canvas(right + count * width + 20, top + n * ROW + 40,
               f"A broadcast: rank 0 has the data, and afterwards all {n} ranks have it",
               f"Before: GPU 0 holds {' '.join(before['rows'][0])}, the others zeros. After: all hold the same.")  # fmt: skip
    owners = lambda r, i, word: [0] if word == before["rows"][0][i] else []
    chips(c, 20, top, n)
    panel(c, left, top, "before", values(before, owners), width)
    x1, x2 = left + count * width + 14, right - 10
    with c.during(1, 2):
        for r in range(n):
            c.arrow(x1, top + 14, x2, top + r * ROW + 14)
        c.text((x1 + x2) / 2, top - 12, "ncclBroadcast", "ink code middle")
        c.text((x1 + x2) / 2, top + n * ROW + 12, "root 0: whose data it is", "soft small middle")
        c.text((x1 + x2) / 2, top + n * ROW + 30, "(what the call does, not by which links)", "soft small middle")
    with c.during(2, 2):
        panel(c, right, top, "after: the same buffer", values(after, owners), width)
    words = [
        "Before: rank 0 has the data. The others have buffers of the same size.",
        f"All {n} ranks call ncclBroadcast with root 0, and each puts one operation into its stream.",
        f"After the wait: all {n} ranks have the data of rank 0.",
    ]
    return c, words


def allreduce(run):
    n = run["ranks"]
    before, after = run["tables"]
    count = len(before["rows"][0])
    width, left, top = 44, 20 + CHIP + GAP, 52
    right = left + count * width + 200
    c = Canvas(right + count * width + 20, top + n * ROW + 40,
               f"An all-reduce: all {n} ranks bring a buffer, and all get the sum",
               f"Before: each GPU holds its own numbers. After: each holds {' '.join(after['rows'][0])}.")  # fmt: skip
    chips(c, 20, top, n)
    panel(c, left, top, "before", values(before, lambda r, i, w: [r]), width)
    x1, x2, middle = left + count * width + 14, right - 10, top + (n - 1) * ROW / 2 + 14
    x = (x1 + x2) / 2
    with c.during(1, 3):
        for r in range(n):
            c.arrow(x1, top + r * ROW + 14, x - 15, middle)
        c.text(x, top - 12, "ncclAllReduce", "ink code middle")
    with c.during(2, 3):
        c.add(f'<circle cx="{x:g}" cy="{middle:g}" r="13" class="cell paper"/>')
        c.text(x, middle + 5.5, "+", "ink middle bold")
        c.text(x, top + n * ROW + 12, "element by element; no root", "soft small middle")
    with c.during(3, 3):
        for r in range(n):
            c.arrow(x + 15, middle, x2, top + r * ROW + 14)
        panel(c, right, top, "after", values(after, lambda r, i, w: range(n)), width)
    words = [
        "Before: each rank has a buffer of its own, here full of ones.",
        f"All {n} ranks make the same call. There is no root.",
        "The buffers are added, element by element. How is NCCL's business: a ring, a tree, or a switch that adds.",
        f"After the wait: every rank has the sum of all {n}. A cell has the colours of all ranks whose numbers are in it.",
    ]
    return c, words


def halves(run):
    n = run["ranks"]
    before, middle, after = run["tables"]
    width, left, top = 34 if n <= 4 else 30, 20 + CHIP + GAP, 64
    wide, between = n * width, 74
    second, third = left + wide + between, left + 2 * (wide + between)
    c = Canvas(third + wide + 20, top + n * ROW + 40,
               "An all-reduce in two halves: reduce-scatter, then all-gather",
               "Reduce-scatter adds up column i and gives the sum to GPU i. All-gather gives all sums to all.")  # fmt: skip
    chips(c, 20, top, n)
    panel(c, left, top, "before", values(before, lambda r, i, w: [r]), width)
    y = top + (n - 1) * ROW / 2 + 14
    with c.during(1, 4):
        c.rect(left - 3, top - 5, width + 6, n * ROW, "thick", 4)
        c.text(left, top + n * ROW + 18, "column 0 is added up", "soft small")
    with c.during(2, 4):
        panel(c, second, top, "after reduce-scatter", values(middle, lambda r, i, w: range(n)), width, lambda r: r, n)
        c.arrow(left + wide + 12, y, second - 12, y)
        c.text(second, top + n * ROW + 18, "its sum is on GPU 0", "soft small")
    with c.during(3, 4):
        c.arrow(second + wide + 12, y, third - 12, y)
    with c.during(4, 4):
        panel(c, third, top, "after all-gather", values(after, lambda r, i, w: range(n)), width)
    sums = middle["rows"]
    words = [
        f"Before: each rank has {n} numbers, one for each rank.",
        f"Reduce-scatter adds up column by column. Column 0 is {' + '.join(r[0] for r in before['rows'])}.",
        f"Rank 0 gets the sum of column 0, which is {sums[0][0]}; rank 1 gets that of column 1, {sums[1][0]}; and so on.",
        "All-gather: each rank gives its one sum to all.",
        "Now every rank has all sums, as after an all-reduce.",
    ]
    return c, words


def alltoall(run):
    n = run["ranks"]
    before, after = run["tables"]
    width, left, top = 40, 20 + CHIP + GAP, 52
    right = left + n * width + 190
    c = Canvas(right + n * width + 20, top + n * ROW + 40,
               "An all-to-all: block j of rank r goes to rank j",
               "The blocks are a table with a row for each rank; the call exchanges its rows and columns.")  # fmt: skip
    chips(c, 20, top, n)
    sender = lambda r, i, word: [ord(word[0]) - ord("A")]
    panel(c, left, top, "before", values(before, sender), width)
    x1, x2 = left + n * width + 12, right - 10
    with c.during(1, n):
        c.text((x1 + x2) / 2, top - 12, "sends and receives", "ink small middle")
    c.text(right, top - 12, "after", "ink bold")
    for r in range(n):
        for i in range(n):
            c.rect(right + i * width, top + r * ROW, width, 28, "box none dashed")
    words = [f"Before: each rank has {n} blocks, one for each rank. The letter names the sender."]
    for s in range(n):
        # Which rank has a block of this sender afterwards: as the run recorded it.
        got = [(r, i, word) for r, row in enumerate(after["rows"]) for i, word in enumerate(row)
               if ord(word[0]) - ord("A") == s]  # fmt: skip
        with c.during(s + 1, s + 1):
            c.rect(left - 3, top + s * ROW - 4, n * width + 6, 36, "thick", 4)
            for r, _, word in got:
                c.arrow(x1, top + s * ROW + 14, x2, top + r * ROW + 14)
        with c.during(s + 1, n):
            for r, i, word in got:
                c.cell(right + i * width, top + r * ROW, width, 28, word, [s])
        words.append(f"The blocks of rank {s}: {', '.join(f'{w} to rank {r}' for r, _, w in got)}.")
    words[-1] += " In the program, all blocks travel at the same time, in one group."
    return c, words


def alltoall_still(run):
    """All of it at once, and the way of the blocks of rank 0."""
    n = run["ranks"]
    before, after = run["tables"]
    width, left, top = 40, 20 + CHIP + GAP, 52
    right = left + n * width + 190
    c = Canvas(right + n * width + 20, top + n * ROW + 40,
               "An all-to-all: block j of rank r goes to rank j",
               "The blocks are a table with a row for each rank; the call exchanges its rows and columns.")  # fmt: skip
    chips(c, 20, top, n)
    sender = lambda r, i, word: [ord(word[0]) - ord("A")]
    panel(c, left, top, "before", values(before, sender), width)
    panel(c, right, top, "after", values(after, sender), width)
    x1, x2 = left + n * width + 12, right - 10
    for r in range(n):
        y = top + r * ROW + 14
        c.arrow(x1, top + 14, x2, y)
        x = x1 + (x2 - x1) * 0.62
        at = top + 14 + (y - top - 14) * 0.62
        c.cell(x - 15, at - 10, 30, 20, before["rows"][0][r], [0], "ink middle small")
    c.text((x1 + x2) / 2, top + n * ROW + 12, "so do the rows of all other ranks", "soft small middle")
    return c


def contributors(run):
    """Whose numbers are in each cell after each step: a chunk that came is added to a rank's own numbers or replaces what
    was there, so it has the sender's, and its own if they were added. The numbers that the run printed must say so, too."""
    n = run["ranks"]
    steps = run["tables"][:-1]  # the last one is ncclAllReduce's
    first = [[int(word) for word in row] for row in steps[0]["rows"]]
    owners = [[[{r} for _ in range(n)] for r in range(n)]]
    moves = [[]]
    for step in range(1, len(steps)):
        owners.append([[set(cell) for cell in row] for row in owners[-1]])
        moves.append([])
        for o in run["operations"]:
            if o[2] != "ncclSend" or o[5]["message"] != step:
                continue
            r, peer = o[0], o[5]["peer"]
            (chunk,) = [i for i in range(n) if steps[step]["rows"][peer][i] != steps[step - 1]["rows"][peer][i]]
            owners[step][peer][chunk] = owners[step - 1][r][chunk] | ({peer} if step < n else set())
            moves[step].append((r, peer, chunk))
        for r in range(n):
            for i in range(n):
                assert sum(first[k][i] for k in owners[step][r][i]) == int(steps[step]["rows"][r][i]), (n, step, r, i)
    return steps, owners, moves


def ring(run):
    n = run["ranks"]
    steps, owners, moves = contributors(run)
    wide = max(len(w) for t in steps for row in t["rows"] for w in row)
    width, row = max(54, 9 * wide + 8), 50
    left, top = 44 + CHIP + GAP, 60
    last = len(steps) - 1
    c = Canvas(left + n * width + 110, top + n * row + 20,
               f"A ring of {n} ranks: 2(N-1) = {last} steps to the sum of all",
               "Each rank sends one chunk to the next rank, which adds it to its own numbers or, later, keeps it.")  # fmt: skip
    chips(c, 44, top, n, row)
    for i in range(n):
        c.text(left + i * width + width / 2, top - 12, f"chunk {i}", "soft small middle")
    for r in range(n):
        y = top + r * row
        for i in range(n):
            x, first = left + i * width, 0
            for step in range(1, last + 2):
                word = steps[first]["rows"][r][i]
                if step > last or steps[step]["rows"][r][i] != word:
                    with c.during(first, step - 1):
                        c.cell(x, y, width, 28, word, owners[first][r][i])
                        if len(owners[first][r][i]) == n:
                            c.rect(x, y, width, 28, "thick")
                    first = step
    words = [
        f"Before: each rank has its own numbers in {n} chunks. The colours of a cell say whose numbers are in it."
        + (f" The digits don't: rank 5 brings ones again, like rank 0{' (and so on)' if n > 6 else ''}." if n > 5 else "")
    ]
    for step in range(1, last + 1):
        moved = sorted(moves[step])
        with c.during(step, step):
            for r, peer, chunk in moved:
                x = left + chunk * width + width / 2
                y1, y2 = top + r * row, top + peer * row
                if peer > r:
                    c.arrow(x - width / 4, y1 + 29, x - width / 4, y2 - 1)
                else:
                    # From the last rank to the first: outside, on the right.
                    edge = left + n * width
                    c.path(f"M{edge + 4} {y1 + 14}H{edge + 34}V{y2 + 14}H{edge + 5}m8 -4l-8 4l8 4", "arrow")
                    c.text(edge + 42, (y1 + y2) / 2 + 18, f"chunk {chunk}", "ink small")
        adds = step < n
        goes = ", ".join(f"chunk {chunk} from rank {r} to {peer}" if k == 0 else f"{chunk} from {r} to {peer}"
                         for k, (r, peer, chunk) in enumerate(moved))  # fmt: skip
        text = f"Each rank sends one chunk to the next ({goes}), where it is added."
        if not adds:
            text = f"Complete sums are passed on: {goes}."
        if step == n - 1:
            text += " Now each chunk is complete on one rank (thick border)."
        if step == last:
            text += f" Every rank has all sums, after 2(N-1) = {last} steps."
        words.append(text)
    return c, words


def ring_still(run):
    """The ring, and the buffers after each step, small: only whose numbers are where."""
    n = run["ranks"]
    steps, owners, _ = contributors(run)
    cell, high, across = 27, 24, n
    pad, left, top = 28, 226, 60
    rows = -(-len(steps) // across)
    c = Canvas(left + across * (n * cell + pad) - pad + 20, top + rows * (n * high + 62) - 18,
               f"A ring of {n} ranks: after {n - 1} steps each rank has one chunk of sums, after {2 * n - 2} all",
               "Each cell is a chunk, striped with the colours of the ranks whose numbers are added up in it.")  # fmt: skip
    # The ranks in a circle, each with its arrow to the next.
    cx, cy, radius = 106, top + (rows * (n * high + 62)) / 2 - 40, 62
    spots = [(cx - radius, cy - radius), (cx + radius, cy - radius), (cx + radius, cy + radius), (cx - radius, cy + radius)]
    for r, (x, y) in enumerate(spots):
        c.gpu(x - 29, y - 13, r)
    (ax, ay), (bx, by), (dx, dy), (ex, ey) = spots
    c.arrow(ax + 31, ay, bx - 32, by)
    c.arrow(bx, by + 15, dx, dy - 16)
    c.arrow(dx - 31, dy, ex + 32, ey)
    c.arrow(ex, ey - 15, ax, ay + 16)
    c.text(cx, cy + 5, "send to the next", "soft small middle")
    for s in range(len(steps)):
        x0 = left + (s % across) * (n * cell + pad)
        y0 = top + (s // across) * (n * high + 62)
        title = "before" if s == 0 else f"step {s}: " + ("added" if s < n else "passed on")
        c.text(x0, y0 - 22, title, "ink bold small")
        for i in range(n):
            c.text(x0 + i * cell + cell / 2 - 2, y0 - 6, i, "soft small middle")
        for r in range(n):
            for i in range(n):
                c.cell(x0 + i * cell, y0 + r * high, cell - 5, 19, "", owners[s][r][i])
                if len(owners[s][r][i]) == n:
                    c.rect(x0 + i * cell, y0 + r * high, cell - 5, 19, "thick")
    x0 = left + (len(steps) % across) * (n * cell + pad)
    y0 = top + (rows - 1) * (n * high + 62)
    if len(steps) % across:
        for k, line in enumerate(("0 1 2 3: chunks", "a row is a rank", "colours: whose", "numbers are in it", "thick: complete")):
            c.text(x0, y0 + 12 + 19 * k, line, "soft small")
    return c
