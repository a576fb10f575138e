"""The figures that can be stepped: for each its recorded runs, drawn with all steps, and the steps in words.

    python3 book/figures/stepped.py NAME    prints one as a page of its own, to look at
"""

import html
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import buffers  # noqa: E402
import lanes  # noqa: E402
import scenes  # noqa: E402

# The record, the drawing, and which of its runs is shown first.
FIGURES = {
    "broadcast": (buffers.broadcast, 4),
    "allreduce": (buffers.allreduce, 4),
    "halves": (buffers.halves, 4),
    "alltoall": (buffers.alltoall, 4),
    "ring": (buffers.ring, 4),
    "tree": (scenes.tree, 4),
    "pieces": (lanes.pieces, 4),
    "overlap": (lanes.overlap, 2),
    "ahead": (lanes.ahead, 2),
    "experts": (scenes.experts, 4),
    "turns": (lanes.turns, 4),
    "grid": (scenes.grid, 4),
    "waits": (scenes.waits, 4),
}
# Figures whose runs on the same ranks are compared: they have one scale, and say one another's times.
COMPARED = {"overlap", "ahead", "turns"}


def figure(name):
    """What figure.js gets: {"first": which run, "runs": [{"label", "words": one for each step, "svg"}]}."""
    draw, ranks = FIGURES[name]
    runs, first = [], None
    recorded = json.loads((HERE / f"{name}.json").read_text())["runs"]
    for run in recorded:
        beside = [other for other in recorded if other["ranks"] == run["ranks"]]
        canvas, words = draw(run, beside) if name in COMPARED else draw(run)
        label = f"{run['ranks']} ranks" + (f", {run['way']}" if "way" in run else "")
        if first is None and run["ranks"] == ranks:
            first = len(runs)
        runs.append({"label": label, "words": words, "svg": canvas.svg(in_page=True)})
    return {"first": first, "runs": runs}


def element(name, still):
    """The element with its data. still is what is shown without JavaScript, and on paper: in Markdown, between two empty
    lines, because an empty line ends HTML there."""
    data = figure(name)
    packed = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    shown = data["runs"][data["first"]]
    words = "".join(f"<li>{html.escape(w, quote=False)}</li>" for w in shown["words"])
    return (f'<nccl-figure data-name="{name}">\n<script type="application/json">{packed}</script>\n'
            f'<div class="still">{still}</div>\n'
            f"<details><summary>The steps in words, with {shown['label']}</summary><ol>{words}</ol></details>\n"
            "</nccl-figure>")  # fmt: skip


def timeline(name, svg, still):
    """A picture of make timeline, to be zoomed."""
    packed = json.dumps({"timeline": svg}, ensure_ascii=False).replace("</", "<\\/")
    return (f'<nccl-figure data-name="{name}">\n<script type="application/json">{packed}</script>\n'
            f'<div class="still">{still}</div>\n</nccl-figure>')  # fmt: skip


def page(name):
    static = HERE.parent / "static"
    head = "".join(f'<link rel="stylesheet" href="{(static / css).as_uri()}">' for css in ("figure.css", "figure-colours.css"))
    return (f"<!doctype html><html lang=en><meta charset=utf-8><title>{name}</title>{head}<body>{element(name, '')}"
            f'<script src="{(static / "figure.js").as_uri()}"></script></body></html>\n')  # fmt: skip


if __name__ == "__main__":
    print(page(sys.argv[1]))
