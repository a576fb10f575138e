#!/usr/bin/env python3
"""The pictures of the lessons: each is what its script draws from the committed records, a record
made anew is the same, and each can be read: text as text, a title, contrast, both schemes. Prints TAP."""

import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from importlib.machinery import SourceFileLoader
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
FIGURES = TOP / "book/figures"
sys.path.insert(0, str(FIGURES))
sys.dont_write_bytecode = True
import draw  # noqa: E402

pictures = SourceFileLoader("pictures", str(FIGURES / "pictures")).load_module()
SVG = "{http://www.w3.org/2000/svg}"
count = failed = 0


def ok(wrong, name):
    """wrong: what is wrong, a list."""
    global count, failed
    count += 1
    failed += bool(wrong)
    print(("not " if wrong else "") + f"ok {count} - {name}")
    for line in wrong[:20]:
        print(f"# {line}")


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one, other):
    a, b = sorted((luminance(one), luminance(other)))
    return (b + 0.05) / (a + 0.05)


def words_fit(svg):
    """Texts that end outside the picture, by a generous width of their letters."""
    width, height = float(svg.get("width")), float(svg.get("height"))
    wrong = []
    for text in svg.iter(f"{SVG}text"):
        names = (text.get("class") or "").split()
        size = 12 if "small" in names else 14
        long = len(text.text or "") * (7.6 if "code" in names else size * 0.53)
        x = float(text.get("x"))
        left = x - long / 2 if "middle" in names else x - long if "end" in names else x
        if left < 0 or left + long > width or not 8 <= float(text.get("y")) <= height - 2:
            wrong.append(f"{text.text!r} ends outside")
    return wrong


wrong = []
for name, draws in pictures.PICTURES.items():
    path = TOP / name
    if not path.exists() or path.read_text() != draws():
        wrong.append(f"{name}: draw it anew with book/figures/pictures")
ok(wrong, "each picture is what book/figures/pictures draws")

wrong = []
for name in pictures.PICTURES:
    source = (TOP / name).read_text()
    svg = ET.fromstring(source)
    if len(svg.findtext(f"{SVG}title") or "") < 15 or svg.find(f".//{SVG}text") is None:
        wrong.append(f"{name}: no title, or no text")
    if "prefers-color-scheme:dark" not in source or re.search(r"href|url\(|<image|<script", source):
        wrong.append(f"{name}: one scheme only, or not complete by itself")
    wrong += [f"{name}: {what}" for what in words_fit(svg)]
    known = set(re.findall(r"\.([a-z]\w*)", svg.findtext(f"{SVG}style")))
    used = {c for e in svg.iter() for c in (e.get("class") or "").split()}
    wrong += [f"{name}: no rule for the class {c}" for c in used - known]
ok(wrong, "each has a title, text that lies inside, both schemes, and needs nothing else")

wrong = []
for scheme in 0, 1:
    under = {f"r{i}": pair[scheme] for i, pair in enumerate(draw.RANKS)}
    under.update({k: draw.COLOURS[k][scheme] for k in ("paper", "empty", "comm", "work", "wait", "copy")})
    for what, colour in under.items():
        if contrast(draw.COLOURS["ink"][scheme], colour) < 4.5:
            wrong.append(f"ink on {what}, scheme {scheme}")
    for what in "soft", "mark":
        if contrast(draw.COLOURS[what][scheme], draw.COLOURS["paper"][scheme]) < 4.5:
            wrong.append(f"{what} on paper, scheme {scheme}")
ok(wrong, "text has a contrast of 4.5 on every colour, in both schemes")

wrong = []
for name in pictures.PICTURES:
    folder, file = name.split("/")
    shown = re.findall(rf"!\[([^\]]*)\]\({re.escape(file)}\)", (TOP / folder / "README.md").read_text())
    if len(shown) != 1 or len(shown[0]) < 40:
        wrong.append(f"{name}: its page shows it {len(shown)} times, or says too little of it")
ok(wrong, "each stands once in its lesson's page, with what it shows in words")

with tempfile.TemporaryDirectory() as folder:
    again = ["broadcast", "halves"]
    done = subprocess.run([FIGURES / "record", f"--to={folder}", *again], capture_output=True, text=True, check=False)
    wrong = [done.stderr] if done.returncode else [
        f"{name}.json" for name in again
        if (Path(folder) / f"{name}.json").read_text() != (FIGURES / f"{name}.json").read_text()
    ]  # fmt: skip
ok(wrong, "a run of today records what is committed")

print(f"1..{count}")
sys.exit(bool(failed))
