"""Pictures of time: a lane for each stream, a bar for each operation, as a run recorded them."""

import math
import re

from draw import Canvas

def moments(bars, apart=0.05):
    """The times at which something begins; what begins almost together is one moment."""
    times = []
    for bar in sorted(bars, key=lambda b: b["start"]):
        if not times or bar["start"] > times[-1] + apart:
            times.append(bar["start"])
    return times


def lanes(title, description, rows, groups, begin, end, times, width=760, high=28, left=118, below=(), apart=6, links=()):
    """rows: [(label, bars)] from top to bottom; groups: {first row: heading}. A bar is
    {start, end, label, kind, tip, says}. times: the moments of the steps; none for a still picture.
    Before its moment a bar is pale. links: pairs of (row, bar), the second of which waited for the first."""
    top, y = 16, 16
    places = []
    for i, _ in enumerate(rows):
        if i in groups:
            y += 26
        places.append(y)
        y += high + apart
    y += 6 - apart
    c = Canvas(width, y + 34 + 18 * len(below), title, description)
    for i, line in enumerate(below):
        c.text(10, y + 42 + 18 * i, line, "soft small")
    step = 10 ** math.floor(math.log10((end - begin) / 4))
    step = next(s * step for s in (1, 2, 5, 10) if (end - begin) / (s * step) <= 9)
    # The axis ends with a mark, after the last bar.
    end = begin + step * math.ceil((end - begin) / step - 1e-6)
    scale = (width - left - 30) / (end - begin)
    x = lambda t: left + (t - begin) * scale
    t = 0.0
    while begin + t <= end + 1e-6:
        at = x(begin + t)
        c.line(at, top + 4, at, y, "grid")
        c.text(at, y + 18, f"{t:.10g}" + (" µs" if begin + t + step > end + 1e-6 else ""), "soft small middle")
        t += step
    first = lambda bar: max((k for k, t in enumerate(times) if t <= bar["start"] + 0.06), default=-1) + 1
    for i, (label, bars) in enumerate(rows):
        if i in groups:
            c.text(10, places[i] - 8, groups[i], "ink bold")
        c.text(10, places[i] + high / 2 + 5, label, "ink small")
        for bar in bars:
            x1, x2 = x(bar["start"]), x(bar["end"])

            def drawn(kind, letters):
                c.rect(x1, places[i], max(x2 - x1, 1), high, f"bar {kind}", 2, bar.get("tip"))
                if x2 - x1 > len(bar["label"]) * 6.6 + 2:
                    c.text((x1 + x2) / 2, places[i] + high / 2 + 4.5, bar["label"], f"{letters} small middle")

            if times:
                with c.during(0, first(bar) - 1):
                    drawn("empty", "soft")
            with c.during(first(bar), len(times)):
                drawn(bar["kind"], "ink")
            if times:
                with c.during(first(bar), first(bar)):
                    c.rect(x1, places[i], max(x2 - x1, 1), high, "thick", 2)
    for (i, cause), (j, effect) in links:
        down = j > i
        with c.during(first(effect), len(times)):
            c.arrow(x(cause["end"]), places[i] + (high if down else 0), x(effect["start"]), places[j] + (-1 if down else high + 1))
    return c, places, x


def tip(name, bytes_, start, end, zero):
    return f"{name}, {bytes_} bytes, {start - zero:.1f} to {end - zero:.1f} µs"


def merged(operations, label, kind, zero, says):
    """One bar for operations that belong together."""
    first, last = operations[0], operations[-1]
    calls = first[2] if len(operations) == 1 else f"{len(operations)} calls, the first {first[2]}"
    total = sum(o[5].get("bytes", 0) for o in operations)
    return {"start": first[3], "end": last[4], "label": label, "kind": kind, "says": says,
            "tip": f"{label}: " + tip(calls, total, first[3], last[4], zero)}  # fmt: skip


def network(operations, layers, zero):
    """The bars of a training step's computing: products forward, the loss, products backward, updates."""
    work = [o for o in operations if o[2].startswith("cublas")]
    products = [o for o in work if "gemm" in o[2]]
    bars = [merged([o], f"f{l}", "work", zero, f"computes layer {l} forward (f{l})")
            for l, o in enumerate(products[:layers])]  # fmt: skip
    layer = layers - 1
    rest = products[layers:]
    while rest:
        bars.append(merged([rest.pop(0)], f"g{layer}", "back", zero, f"computes the gradient of layer {layer} (g{layer})"))
        if layer and rest:
            bars.append(merged([rest.pop(0)], f"b{layer}", "back", zero, f"goes backward through layer {layer} (b{layer})"))
        layer -= 1
    others = [o for o in work if "gemm" not in o[2]]
    before = [o for o in others if o[3] < products[layers][3]]
    after = [o for o in others if o[3] > products[-1][3]]
    if before:
        bars.append(merged(before, "loss", "work", zero, "computes the loss"))
    return bars, after


def updates(after, layers, zero, each=3):
    """The update of each layer is three calls."""
    bars = []
    for i in range(0, len(after), each):
        layer = layers - 1 - i // each
        bars.append(merged(after[i : i + each], f"u{layer}", "update", zero, f"updates layer {layer} (u{layer})"))
    return bars


def words(times, rows, head, tail):
    """What begins at each moment, of one rank: the same happens on the others."""
    said = [head]
    for k, t in enumerate(times):
        begins = []
        for label, bars in rows:
            for bar in bars:
                at = max((i for i, m in enumerate(times) if m <= bar["start"] + 0.06), default=0)
                if at == k:
                    begins.append(f"{label} {bar['says']}")
        text = "; ".join(begins)
        said.append(text[:1].upper() + text[1:] + ".")
    said[-1] += " " + tail
    return said


def mine(run, rank=0):
    return [o for o in run["operations"] if o[0] == rank]


def one_stream_rows(run, layers=4):
    operations = mine(run)
    zero = operations[0][3]
    bars, after = network(operations, layers, zero)
    sums = [o for o in operations if o[2] == "ncclAllReduce"]
    for o in sums:
        bars.append(merged([o], "a", "comm", zero, "averages the gradients"))
    bars.append(merged(after, "update", "update", zero, "updates the weights"))
    return [("stream 1", bars)], zero, max(o[4] for o in operations)


def overlap_rows(run, layers=4):
    operations = mine(run)
    zero = operations[0][3]
    bars, after = network(operations, layers, zero)
    # One bucket: all layers are updated after it.
    bars += updates(after, layers, zero) if len(after) == 3 * layers else [merged(after, "update", "update", zero, "updates all layers")]
    sums = [o for o in operations if o[2] == "ncclAllReduce"]
    sending = []
    for i, o in enumerate(sums):
        label = f"a{layers - 1 - i}" if len(sums) == layers else "a3 … a0"
        what = f"averages the gradients of layer {layers - 1 - i}" if len(sums) == layers else "averages all gradients"
        sending.append(merged([o], label, "comm", zero, f"{what} ({label})"))
    return [("stream 1", bars), ("stream 2", sending)], zero, max(o[4] for o in operations)


LAYERS = ["f3: forward through layer 3; g3: the gradient of its weights; b3: backward through it, for layer 2",
          "a3: the all-reduce of g3, which waits for the event ready (arrow down); u3: the update of layer 3,",
          "which waits for the event averaged (arrow up)"]  # fmt: skip
SHARDS = ["f3: forward through layer 3; g3: the gradient of its weights; b3: backward through it, for layer 2",
          "G3: all-gather of its weights; R3: reduce-scatter of its gradients"]  # fmt: skip
PIECES = ["F0: micro-batch 0 forward. B0: the same backward, twice as long: two products for each layer, for the",
          "gradients of its weights and of its input. (GPU 0 saves one: nobody needs the gradient of the samples.)"]  # fmt: skip
BUCKETS = {
    "a bucket for each layer, --ctas 4": "NCCL has only 4 multiprocessors, so the products beside it are as fast as without it.",
    "a bucket for each layer": "The products beside an all-reduce are slower, because NCCL's kernel takes multiprocessors away from them.",
    "one bucket": "Nothing overlaps, but one large all-reduce takes less time than four, and one update less than four.",
}


def lasted(run):
    """How long a rank's step took."""
    return max(o[4] for o in mine(run)) - mine(run)[0][3]


def events(stream1, stream2, first=0):
    """Which bar waits for which: an all-reduce for its gradient, an update for its average."""
    named = {bar["label"]: bar for bar in stream1}
    pairs = []
    for bar in stream2:
        lowest = bar["label"][-1]
        pairs.append(((first, named["g" + lowest]), (first + 1, bar)))
        update = named.get("u" + bar["label"][1:]) or named.get("update")
        if update:
            pairs.append(((first + 1, bar), (first, update)))
    return pairs


def overlap(run, beside=()):
    rows, zero, end = overlap_rows(run)
    times = moments([b for _, bars in rows for b in bars])
    longest = max([end - zero, *map(lasted, beside)])
    c, _, _ = lanes(
        f"One step of lesson 11 on one of {run['ranks']} ranks, {run['way']}",
        "Stream 1 computes forward, backward and the updates; stream 2 averages gradients meanwhile.",
        rows, {}, zero, zero + longest, times, below=LAYERS, apart=30, links=events(rows[0][1], rows[1][1]))  # fmt: skip
    share = int(re.search(r"--batch (\d+)", run["command"])[1]) // run["ranks"]
    others = "; ".join(f"{other['way']}: {lasted(other):.0f} µs" for other in beside if other["way"] != run["way"])
    tail = f"The step took {end - zero:.0f} µs of the modelled clock. {BUCKETS[run['way']]}" + (f" ({others}.)" if others else "")
    said = words(times, rows, f"Before the step. Rank 0 of {run['ranks']} has {share} samples and two streams: stream 1 "
                 "computes, stream 2 sends. "
                 "Pale is what will be done.", tail)  # fmt: skip
    return c, said


def overlap_still(before, run):
    first, zero1, end1 = one_stream_rows(before)
    second, zero2, end2 = overlap_rows(run)
    shift = zero1 - zero2
    for _, bars in second:
        for bar in bars:
            bar["start"] += shift
            bar["end"] += shift
    c, _, _ = lanes(
        "One step on one of two ranks: lesson 10 with one stream, lesson 11 with two",
        "In lesson 10 the all-reduces come after the backward pass; in lesson 11 stream 2 makes them meanwhile.",
        first + second, {0: "lesson 10: one stream", 1: "lesson 11, with --ctas 4: a second stream averages the gradients"},
        zero1, max(end1, end2 + shift), [], below=LAYERS, apart=30, links=events(second[0][1], second[1][1], 1))  # fmt: skip
    return c


def ahead_rows(run, layers=4):
    operations = mine(run)
    zero = operations[0][3]
    bars, after = network(operations, layers, zero)
    bars.append(merged(after, "update", "update", zero, "updates its shards"))
    uses = list(range(layers)) + list(range(layers - 1, -1, -1))
    sending, scattered = [], layers
    for o in operations:
        if o[2] == "ncclAllGather":
            layer = uses.pop(0)
            sending.append(merged([o], f"G{layer}", "comm", zero, f"gathers the weights of layer {layer} (G{layer})"))
        elif o[2] == "ncclReduceScatter":
            scattered -= 1
            sending.append(merged([o], f"R{scattered}", "gather", zero,
                                  f"adds up the gradients of layer {scattered}, a shard for each rank (R{scattered})"))  # fmt: skip
    return [("stream 1", bars), ("stream 2", sending)], zero, max(o[4] for o in operations)


def ahead(run, beside=(), still=False):
    rows, zero, end = ahead_rows(run)
    times = [] if still else moments([b for _, bars in rows for b in bars])
    c, _, _ = lanes(
        f"One step of lesson 12, {run['way']}, on one of {run['ranks']} ranks",
        "Stream 2 gathers the weights of the next layer while stream 1 computes with those of this one.",
        rows, {}, zero, zero + max([end - zero, *map(lasted, beside)]), times, below=SHARDS)  # fmt: skip
    said = words(times, rows, f"Before the step, {run['way']} of ZeRO. Rank 0 of {run['ranks']} keeps a shard of each layer.",
                 f"The step took {end - zero:.0f} µs of the modelled clock.")  # fmt: skip
    return c, said


def piece_rows(run):
    """The pipelined ring: lanes that send pieces, and a stream that adds them."""
    operations = mine(run)
    zero, n = operations[0][3], run["ranks"]
    streams = []
    for o in operations:
        if o[1] not in streams and not o[2].startswith("cublas"):
            streams.append(o[1])
    # The lanes are numbered by their communicators.
    streams.sort(key=lambda s: next(o[5]["communicator"] for o in operations if o[1] == s and "communicator" in o[5]))
    rows = []
    for lane, stream in enumerate(streams):
        bars = []
        for o in operations:
            if o[1] == stream:
                step = o[5]["message"]
                name = f"{step}{'abcdefgh'[lane]}"
                bars.append(merged([o], name, "comm", zero, f"sends piece {'abcdefgh'[lane]} of step {step} ({name})"))
        rows.append((f"lane {lane}", bars))
    adding = [o for o in operations if o[2].startswith("cublas")]
    # The additions of a step come in the order in which its pieces arrive, each after its receive.
    bars, left = [], {(lane, bar["label"]): bar["end"] for lane, (_, of) in enumerate(rows) for bar in of}
    for k, o in enumerate(adding):
        step = k // len(streams) + 1
        ready = sorted((end, lane, label) for (lane, label), end in left.items()
                       if label.startswith(str(step)) and end <= o[3] + 0.01)  # fmt: skip
        _, lane, label = ready[0]
        del left[lane, label]
        bars.append(merged([o], f"+{label[-1]}", "work", zero, f"adds piece {label[-1]} of step {step}"))
    rows.append(("adding", bars))
    return rows, zero, max(o[4] for o in operations), n


def pieces(run):
    rows, zero, end, n = piece_rows(run)
    times = moments([b for _, bars in rows for b in bars], 0.5)
    c, _, _ = lanes(
        f"The pipelined ring on one of {n} ranks: pieces travel while others are added",
        "Each lane sends one piece in each step of the ring; one more stream adds.",
        rows, {}, zero, end, times)  # fmt: skip
    said = words(times, rows, f"Before: rank 0 of {n} has four lanes, each with a piece of every chunk, and a stream that adds.",
                 f"Every rank has all sums after {end - zero:.0f} µs of the modelled clock.")  # fmt: skip
    return c, said


def pieces_still(plain, run):
    rows, zero, end, n = piece_rows(run)
    bars, start, plain_end = [], None, 0
    step = 0
    for o in mine(plain):
        start = o[3] if start is None else start
        if o[2] == "ncclSend":
            step += 1
            bars.append(merged([o], f"send {step}", "comm", start, ""))
        elif o[2].startswith("cublas"):
            bars.append(merged([o], "add", "work", start, ""))
        plain_end = max(plain_end, o[4])
    for bar in bars:
        bar["start"] += zero - start
        bar["end"] += zero - start
    c, _, _ = lanes(
        f"A ring on {n} ranks: plain, as in lesson 05, and pipelined in four lanes",
        "Plain, the link is idle while the GPU adds. Pipelined, pieces travel while others are added.",
        [("stream 1", bars)] + rows, {0: "plain: lesson 05", 1: "pipelined: pieces a, b, c, d of each step"},
        zero, max(end, plain_end + zero - start), [], high=24)  # fmt: skip
    return c


MICRO = 4  # micro-batches of the recorded steps


def turn_pieces(run):
    """For each rank its pieces: micro-batch m forward (Fm) and backward (Bm)."""
    n = run["ranks"]
    layers = 16 // n
    zero = min(o[3] for o in run["operations"])
    per_rank = []
    for r in range(n):
        operations = mine(run, r)
        done = {"F": 0, "B": 0}
        bars = []
        i = 0
        for kind in run_order(run, r):
            # Nobody needs the gradient of the samples.
            count = layers if kind == "F" else 2 * layers - (r == 0)
            part, label = operations[i : i + count], f"{kind}{done[kind]}"
            done[kind] += 1
            i += count
            bars.append(merged(part, label, "work" if kind == "F" else "back", zero, ""))
        assert i == len(operations), (r, i, len(operations))
        per_rank.append(bars)
    return per_rank, zero, max(b["end"] for bars in per_rank for b in bars)


def run_order(run, rank):
    """1F1B does as many forward first as there are ranks from this one on; then they take turns."""
    if "forward" in run["way"]:
        return "F" * MICRO + "B" * MICRO
    warm = min(MICRO, run["ranks"] - rank)
    order = "F" * warm
    for k in range(MICRO):
        order += "B" + ("F" if warm + k < MICRO else "")
    return order


def turns_rows(run):
    per_rank, zero, end = turn_pieces(run)
    return [(f"GPU {r}", bars) for r, bars in enumerate(per_rank)], zero, end


def turns(run, beside=()):
    rows, zero, end = turns_rows(run)
    n = run["ranks"]
    piece = rows[0][1][0]["end"] - rows[0][1][0]["start"]
    times = moments([b for _, bars in rows for b in bars], piece / 2)
    others = {other["way"]: turns_rows(other) for other in beside if other["way"] != run["way"]}
    longest = max([end - zero, *(e - z for _, z, e in others.values())])
    c, _, _ = lanes(f"Four micro-batches on {n} ranks, {run['way']}",
                    "F0 is micro-batch 0 forward, B0 the same backward. Gaps are the bubble.",
                    rows, {}, zero, zero + longest, times, left=70, below=PIECES)  # fmt: skip
    said = [f"Before the step: {n} GPUs, each with {16 // n} of the 16 layers. Order: {run['way']}. Pale is what will be done."]
    for k in range(len(times)):
        begun, kept = [], []
        for r, (_, bars) in enumerate(rows):
            at = [max((i for i, m in enumerate(times) if m <= bar["start"] + 0.06), default=0) for bar in bars]
            begun += [f"GPU {r} begins {bar['label']}" for bar, i in zip(bars, at) if i == k]
            # The inputs of a micro-batch are needed until its piece backward is over.
            kept.append(sum(i <= k for bar, i in zip(bars, at) if bar["label"][0] == "F")
                        - sum(bar["end"] <= times[k] + piece / 2 for bar in bars if bar["label"][0] == "B"))  # fmt: skip
        said.append(", ".join([begun[0], *(b.replace(" begins", "") for b in begun[1:])])
                    + f". Inputs kept on GPU 0 to {n - 1}: {' '.join(map(str, kept))} micro-batches.")  # fmt: skip
    idle = [1 - sum(b["end"] - b["start"] for b in bars) / (end - zero) for _, bars in rows]
    said[-1] += (f" The step took {end - zero:.0f} µs" + "".join(f" ({way}: {e - z:.0f} µs)" for way, (_, z, e) in others.items())
                 + f"; GPU {n - 1} was idle for {100 * idle[-1]:.0f} % of it. The formula says {n - 1}/{MICRO + n - 1} = "
                 f"{100 * (n - 1) / (MICRO + n - 1):.0f} %, because it leaves the messages out.")  # fmt: skip
    return c, said


def turns_still(first, second):
    rows1, zero1, end1 = turns_rows(first)
    rows2, zero2, end2 = turns_rows(second)
    for _, bars in rows2:
        for bar in bars:
            bar["start"] += zero1 - zero2
            bar["end"] += zero1 - zero2
    n = len(rows1)
    c, _, _ = lanes("Four micro-batches on four ranks: all forward first, and in turns (1F1B)",
                    "F0 is micro-batch 0 forward, B0 the same backward. Both orders have the same bubble.",
                    rows1 + rows2, {0: "all forward first: rank 0 keeps the inputs of all four micro-batches",
                                    n: "in turns, 1F1B: rank r keeps at most four minus r"},
                    zero1, max(end1, end2 + zero1 - zero2), [], left=70, high=24, below=PIECES)  # fmt: skip
    return c
