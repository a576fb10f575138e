#!/usr/bin/env python3
"""Makes the slides: each DECK.md of this folder becomes DECK.html in a folder that needs nothing else.

    make.py FOLDER

A deck is Markdown. A line of three hyphens begins the next slide, and what follows a line "Notes:" is for the speaker.
A lesson's picture is shown as the figure that can be stepped, where there is one. Reveal.js comes with sphinx-revealjs.
"""

import html
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from markdown_it import MarkdownIt

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "figures"))
import stepped  # noqa: E402

REVEAL = Path(find_spec("sphinx_revealjs").origin).parent / "_static/revealjs"
NEEDED = ["LICENSE", "dist/reset.css", "dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js"]
markdown = MarkdownIt("commonmark").enable("table")


def picture(match):
    alt, name = match.groups()
    path = (HERE / name).resolve()
    if path.stem in stepped.FIGURES:
        return f"\n\n{stepped.element(path.stem, '')}\n\n"
    # Inside the page, the style of a picture would be that of all others: so it stays a picture.
    return f'\n\n<img class="still" src="pictures/{path.parent.name}-{path.name}" alt="{html.escape(alt)}">\n\n'


def slides(deck):
    """The slides of a deck: title, what is shown, what the speaker reads."""
    for text in re.split(r"^---$", deck.read_text(), flags=re.M):
        shown, _, notes = text.partition("\nNotes:\n")
        yield re.search(r"^#+ (.*)", shown, re.M)[1], shown.strip(), notes.strip()


def page(deck):
    sections = []
    for _, shown, notes in slides(deck):
        body = markdown.render(re.sub(r"!\[([^\]]*)\]\(([^)]*)\)", picture, shown))
        sections.append(f'<section>\n{body}<aside class="notes">{markdown.render(notes)}</aside>\n</section>')
    title = next(slides(deck))[0]
    styles = "".join(f'<link rel="stylesheet" href="{name}">\n' for name in (
        "reveal/dist/reset.css", "reveal/dist/reveal.css", "slides.css", "figure.css", "figure-colours.css"))  # fmt: skip
    scripts = "".join(f'<script src="{name}"></script>\n' for name in (
        "figure.js", "reveal/dist/reveal.js", "reveal/plugin/notes/notes.js", "slides.js"))  # fmt: skip
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{styles}</head>\n<body data-theme="light">\n'
            f'<div class="reveal"><div class="slides">\n{chr(10).join(sections)}\n</div></div>\n{scripts}</body>\n</html>\n')  # fmt: skip


def main(folder):
    decks = sorted(HERE.glob("*.md"))
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "pictures").mkdir(parents=True)
    for name in NEEDED:
        (folder / "reveal" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REVEAL / name, folder / "reveal" / name)
    for name in "slides.css", "slides.js":
        shutil.copy(HERE / name, folder)
    for name in "figure.css", "figure-colours.css", "figure.js":
        shutil.copy(HERE.parent / "static" / name, folder)
    for deck in decks:
        (folder / f"{deck.stem}.html").write_text(page(deck))
        for name in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", deck.read_text()):
            path = (HERE / name).resolve()
            shutil.copy(path, folder / "pictures" / f"{path.parent.name}-{path.name}")
    links = "".join(f'<li><a href="{d.stem}.html">{html.escape(next(slides(d))[0])}</a></li>' for d in decks)
    (folder / "index.html").write_text(
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Slides: Learn NCCL</title>\n'
        "<body style=\"font: 20px sans-serif; margin: 2em\"><h1>Slides</h1>\n"
        f"<ul>{links}</ul>\n<p>In a deck: S opens the speaker's notes, F fills the screen, the arrow keys also step the figures. "
        "To print a deck, add ?print-pdf to its address, and print that page.</p></body></html>\n")  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
