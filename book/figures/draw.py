"""One look for every picture of the course: colours of ranks, cells, arrows, text, light and dark.

A Canvas collects elements and writes an SVG. An element drawn inside `with canvas.during(2, 5):` belongs to
steps 2 to 5 of a figure that can be stepped; a still picture shows one step, or all of them.
"""

import contextlib
import html

# Of each rank, what it owns: light scheme, dark scheme. Text on it has a contrast of 4.5 or more.
RANKS = [
    ("#a8cff0", "#1d5a87"),
    ("#ffcf87", "#7a4a00"),
    ("#a9dfa5", "#236b31"),
    ("#dcbcec", "#6c4394"),
    ("#f9b8c4", "#94354c"),
    ("#e8e38a", "#5f5a00"),
    ("#9be0d6", "#0f625a"),
    ("#d9c7ae", "#67492b"),
]

# Name: light, dark. ink is text and arrows; soft is text that matters less.
COLOURS = {
    "paper": ("#ffffff", "#1a1d23"),
    "ink": ("#1c1f24", "#eceff4"),
    "soft": ("#565d66", "#a9b1bd"),
    "edge": ("#6b727c", "#8a93a0"),
    "empty": ("#f0f1f3", "#2a2e36"),
    "frame": ("#c9ced6", "#464c57"),
    "mark": ("#b3261e", "#ff9a91"),
    "comm": ("#a8cff0", "#1d5a87"),
    "work": ("#a9dfa5", "#236b31"),
    "wait": ("#e3e6ea", "#3a404a"),
    "copy": ("#ffcf87", "#7a4a00"),
    "back": ("#d5e8a3", "#4d6212"),
    "update": ("#e8e38a", "#5f5a00"),
    "gather": ("#dcbcec", "#6c4394"),
}


def scheme(which, at=""):
    """The colours: which is 0 for light, 1 for dark; at is what the pictures lie in."""
    rules = [f"{at}.r{i}{{fill:{pair[which]}}}" for i, pair in enumerate(RANKS)]
    rules += [f"{at}.{name}{{fill:{pair[which]}}}" for name, pair in COLOURS.items()]
    ink, edge, frame, mark, soft = (COLOURS[c][which] for c in ("ink", "edge", "frame", "mark", "soft"))
    rules += [
        f"{at}.cell,{at}.bar{{stroke:{edge}}}",
        f"{at}.thick{{stroke:{ink}}}",
        f"{at}.arrow,{at}.line{{stroke:{ink}}}",
        f"{at}.arrow.faint,{at}.line.faint{{stroke:{soft}}}",
        f"{at}.arrow.bad,{at}.line.bad,{at}.box.bad{{stroke:{mark}}}",
        f"{at}.box,{at}.line.grid{{stroke:{frame}}}",
    ]
    return "".join(rules)


def shapes(at=""):
    sans = "-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
    mono = "ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace"
    return "\n".join([
        f"{at}text{{font:14px {sans}}}",
        f"{at}.small{{font-size:12px}}{at}.bold{{font-weight:600}}{at}.code{{font-family:{mono};font-size:12.5px}}",
        f"{at}.middle{{text-anchor:middle}}{at}.end{{text-anchor:end}}",
        f"{at}.arrow,{at}.line{{fill:none;stroke-width:1.6}}{at}.dashed{{stroke-dasharray:4 3}}",
        f"{at}.cell,{at}.bar{{stroke-width:1}}{at}.thick{{fill:none;stroke-width:2.2}}{at}.box{{stroke-width:1.2}}{at}.none{{fill:none}}",
    ])  # fmt: skip


def style():
    """The rules of a picture in a file of its own, which follows the reader's scheme."""
    return "\n".join([shapes(), scheme(0), f"@media (prefers-color-scheme:dark){{{scheme(1)}}}"])


def page_style():
    """The same rules for pictures that stand in a page of the book or in a slide: the page's scheme may be chosen, too."""
    inside = "nccl-figure svg.drawn "
    return "\n".join([
        "/* Made by book/figures/pictures from draw.py. */",
        shapes(inside), scheme(0, inside),
        f"@media (prefers-color-scheme:dark){{{scheme(1, 'body:not([data-theme=light]) ' + inside)}}}",
        scheme(1, "body[data-theme=dark] " + inside),
        "",
    ])  # fmt: skip


def number(value):
    """Short and always the same: 12, 12.5."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))


class Canvas:
    def __init__(self, width, height, title, description=""):
        self.width, self.height = width, height
        self.title, self.description = title, description
        self.parts = []  # (first step or None, last step, element)
        self.now = (None, None)

    @contextlib.contextmanager
    def during(self, first, last):
        before, self.now = self.now, (first, last)
        yield
        self.now = before

    def add(self, element):
        self.parts.append((*self.now, element))

    def rect(self, x, y, w, h, names, radius=0, tip=None):
        r = f' rx="{number(radius)}"' if radius else ""
        end = f"><title>{html.escape(tip)}</title></rect>" if tip else "/>"
        self.add(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}"{r} class="{names}"{end}'
        )

    def text(self, x, y, words, names="ink"):
        self.add(f'<text x="{number(x)}" y="{number(y)}" class="{names}">{html.escape(str(words), quote=False)}</text>')

    def path(self, d, names):
        self.add(f'<path d="{d}" class="{names}"/>')

    def line(self, x1, y1, x2, y2, names=""):
        self.path(f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}", f"line {names}".strip())

    def arrow(self, x1, y1, x2, y2, names="", bend=0):
        """From one point to another; bend lifts the middle to the left of the way."""
        mx = (x1 + x2) / 2 + (y2 - y1) * bend
        my = (y1 + y2) / 2 - (x2 - x1) * bend
        way = f"M{number(x1)} {number(y1)}"
        way += f"Q{number(mx)} {number(my)} {number(x2)} {number(y2)}" if bend else f"L{number(x2)} {number(y2)}"
        dx, dy = (x2 - mx, y2 - my) if bend else (x2 - x1, y2 - y1)
        length = (dx * dx + dy * dy) ** 0.5 or 1
        dx, dy = dx / length, dy / length
        head = "".join(
            f"M{number(x2)} {number(y2)}L{number(x2 - 8 * dx + s * 4 * dy)} {number(y2 - 8 * dy - s * 4 * dx)}"
            for s in (1, -1)
        )
        self.path(way + head, f"arrow {names}".strip())

    def cell(self, x, y, w, h, words, owners, names="ink middle"):
        """A number in memory, striped with the colours of the ranks whose data it holds."""
        owners = sorted(owners)
        if not owners:
            self.rect(x, y, w, h, "cell empty")
        elif len(owners) == 1:
            self.rect(x, y, w, h, f"cell r{owners[0] % len(RANKS)}")
        else:
            part = w / len(owners)
            for i, owner in enumerate(owners):
                self.rect(x + i * part, y, part, h, f"r{owner % len(RANKS)}")
            self.rect(x, y, w, h, "cell none")
        if words not in ("", None):
            self.text(x + w / 2, y + h / 2 + 4.8, words, names)

    def gpu(self, x, y, rank, w=58, h=26, word="GPU"):
        self.rect(x, y, w, h, f"cell r{rank % len(RANKS)}", 5)
        self.text(x + w / 2, y + h / 2 + 4.8, f"{word} {rank}", "ink middle bold")

    def body(self, still=None):
        """The elements; with still, those of that step only, and otherwise in groups that name their steps."""
        lines, open_steps = [], (None, None)
        for first, last, element in self.parts:
            if still is not None:
                if first is None or first <= still <= last:
                    lines.append(element)
                continue
            if (first, last) != open_steps:
                if open_steps[0] is not None:
                    lines.append("</g>")
                if first is not None:
                    lines.append(f'<g data-from="{first}" data-to="{last}">')
                open_steps = (first, last)
            lines.append(element)
        if open_steps[0] is not None:
            lines.append("</g>")
        return lines

    def svg(self, still=None, in_page=False):
        w, h = number(self.width), number(self.height)
        size = f' class="drawn" style="width:{w}px"' if in_page else f' width="{w}" height="{h}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg"{size} viewBox="0 0 {w} {h}" role="img">',
            f"<title>{html.escape(self.title)}</title>",
        ]
        if self.description:
            lines.append(f"<desc>{html.escape(self.description)}</desc>")
        if not in_page:
            lines.append(f"<style>\n{style()}\n</style>")
            lines.append(f'<rect width="{w}" height="{h}" class="paper"/>')
        return "\n".join(lines + self.body(still) + ["</svg>", ""])
