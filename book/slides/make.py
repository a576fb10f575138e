#!/usr/bin/env python3
"""Makes the slides: each DECK.md in decks/ becomes DECK.html in a folder that needs nothing else.

    make.py FOLDER

A deck is Markdown. Its first slide gets a list of its lessons. A line of three hyphens begins the next slide, and what
follows a line "Notes:" is for the speaker.
"Lessons: 00 01" in the place of a slide stands for all slides of these lessons, which are in 00.md and 01.md (with other
exercises than those that they name: "Lessons: 00 01 with 01.2 01.3"),
"Slide: 07 The machine" for a single one, and "Pause: 15 minutes" for a pause. A lesson begins with its question, from its
page, and ends with the questions for the room, from its instructor's notes, and with the exercises that its slides name
after "Then:". What the clock says at a lesson, at its exercises and at a pause is added up from the lessons' times.
A lesson's picture is shown as the figure that can be stepped, where there is one. Reveal.js comes with sphinx-revealjs.
"""

import html
import re
import shutil
import sys
from collections import namedtuple
from importlib.util import find_spec
from pathlib import Path

from markdown_it import MarkdownIt

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "figures"))
import stepped  # noqa: E402

REVEAL = Path(find_spec("sphinx_revealjs").origin).parent / "_static/revealjs"
NEEDED = ["LICENSE", "dist/reset.css", "dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js"]
KINDS = {"part": "One for each part of the course", "day": "One for each half day of a course of two days"}
# Minutes: a pause, which CUDA in one slide takes as well, and an exercise with its solution, on average.
PAUSE, EXERCISE = 15, 10
IMAGE = r"!\[([^\]]*)\]\(([^)]*)\)"
markdown = MarkdownIt("commonmark").enable("table")

# What is shown, what the speaker reads, and the number of the lesson, or None.
Slide = namedtuple("Slide", "title shown notes lesson")


def decks():
    """The parts in their order, then the half days in theirs."""
    return sorted((HERE / "decks").glob("part-*.md")) + sorted((HERE / "decks").glob("day-*.md"), key=half_day)


def half_day(deck):
    _, day, half = deck.stem.split("-")
    return day, half == "afternoon"


def read(path, lesson=None):
    """The slides of a file, those of lessons not yet in their places."""
    found = []
    for text in re.split(r"^---$", path.read_text(), flags=re.M):
        shown, _, notes = text.partition("\nNotes:\n")
        title = re.search(r"^#+ (.*)|^(\w+: .*)", shown, re.M)
        found.append(Slide(title[1] or title[2], shown.strip(), notes.strip(), lesson))
    return found


def noted(number):
    """What book/notes/ says of a lesson: what each paragraph begins with, and the paragraph."""
    text = (HERE.parent / f"notes/{number}.md").read_text().split("<!--")[0]
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"The lesson: \[.*?\)\.\s*", "", text))
    return {piece.split("**", 2)[1].strip(".,:"): piece.strip() for piece in re.split(r"\n\n(?=\*\*)", text)[1:]}


def question_of(number):
    """A lesson's title, question and minutes, from its page."""
    page = next(TOP.glob(f"{number}-*/README.md")).read_text()
    title, question = re.search(r"^# (.*)\n\n\*\*(.*)\*\*$", page, re.M).groups()
    return title, question, int(re.search(r"\*\*Time:\*\* (\d+) minutes", page)[1])


def opening(number):
    """A lesson's first slide: its question, and for the speaker what to know before."""
    title, question, _ = question_of(number)
    notes = noted(number)
    told = "\n\n".join(notes[name] for name in ("Minutes", "What goes wrong on the day") if name in notes)
    return Slide(title, f"# {title}\n\n{question}", f"**Show** the question. “Hands up” comes back to it.\n\n{told}", number)


def closing(number, before):
    """The questions for the room, one by one, and for the speaker their answers and what was not typed yet."""
    notes = noted(number)
    _, question, _ = question_of(number)
    asked = re.findall(r"^\d\. (.*?\?) \*(.*)\*$", notes["Ask the room"], re.M)
    questions = "\n".join(f"{i}. {asking}" for i, (asking, _) in enumerate(asked, 1))
    answers = "\n".join(f"{i}. {answer}" for i, (_, answer) in enumerate(asked, 1))
    text = re.sub(r"\s", "", "".join(slide.shown + slide.notes for slide in before).replace("\\\n", ""))
    more = [line for line in re.search(r"```sh\n(.*?)```", notes["Type live"], re.S)[1].splitlines()
            if re.sub(r"\s", "", line) not in text]  # fmt: skip
    typed = "\n\n**Type,** if there is time:\n\n```sh\n" + "\n".join(more) + "\n```" if more else ""
    return Slide("Hands up", f"## Hands up\n\n*{question}*\n\n{questions}",
                 f"**Ask** the lesson's question first, and then these one by one: a key shows the next. The answers:\n\n{answers}{typed}", number)


def exercises(number, chosen):
    """The exercises that the slides name, and for the speaker how it goes and the usual misconceptions."""
    told = (HERE.parent / f"notes/{number}.md").read_text()
    lines, wrong = "", ""
    for name in chosen:
        source = next((TOP / "exercises").glob(f"{name}-*")).read_text()
        title, kind = (re.search(rf"^//: {what} (.*)$", source, re.M)[1] for what in ("title", "kind"))
        lines += f"- `make exercise N={name}`: {title}\n"
        listed = re.search(rf"^\*\*{name} .*?(?=^\*\*|\Z)", told, re.M | re.S)[0]
        wrong += f"\n{listed.strip().replace('**', f'**({kind}) ', 1)}\n"
    return Slide("Exercises", f"## Exercises\n\n{lines}\nStuck? Add `HINT=1`", "**Type** them as they stand here, with the number: `make exercise` alone "
                 "goes on with the next one that isn't solved, and that may be one that this plan leaves out.\n\n"
                 "**Show** `make solution N=…` at the end of each, and read what it says after “Why”. With the solution, ten minutes "
                 "for an exercise are right on average: *complete* and *predict* take five, the others fifteen.\n\n"
                 f"**Usual misconceptions:** what somebody wrote, and what the check says.\n{wrong}", number)  # fmt: skip


THEN = r"\n*^\*\*Then:\*\* exercises? (.*)\.$"


def lesson(number, planned=None):
    """A lesson's slides. Where to stop is told at the slide that it names. A plan's exercises take the place of its own."""
    own = read(HERE / f"{number}.md", number)
    chosen = sorted(re.findall(r"\d\d\.\d+", " ".join(found for slide in own for found in re.findall(THEN, slide.notes, re.M))))
    if planned:
        chosen = [name for name in planned if name.startswith(f"{number}.")]
    stop = noted(number)["Where to stop"]
    at = re.search("“(.*?)”", stop)[1]
    here = re.sub("^.*? On “.*?”", "**Stop here**", stop)
    shown = []
    for slide in own:
        notes = re.sub(THEN, "", slide.notes, flags=re.M).strip()
        shown.append(slide._replace(notes=f"{here}\n\n{notes}" if slide.title == at else notes))
    return [opening(number), *shown, closing(number, own), *([exercises(number, chosen)] if chosen else [])]


def needs(name):
    """What an exercise's solution calls and its starter does not."""
    source = next((TOP / "exercises").glob(f"{name}-*")).read_text().partition("//: file")[2].partition("//: check")[0]
    called = r"\b(?:cuda|nccl|cublas|MPI_)[A-Z]\w+"
    solution = "".join(re.findall(r"^\s*//: solution$.*?(?=^\s*//: )", source, re.M | re.S))
    given = re.sub(r"^\s*//: (?:solution|wrong|right)\b.*?(?=^\s*//: )", "", source, flags=re.M | re.S)
    return sorted(set(re.findall(called, solution)) - set(re.findall(called, given)))


def introduced(found):
    """The slides, with what the exercises need and no slide before has."""
    before, shown = "", []
    for slide in found:
        if slide.title == "Exercises" and slide.lesson:
            lines = [f"{name}: " + ", ".join(f"`{one}`" for one in new) for name in re.findall(r"N=([\d.]+)", slide.shown)
                     if (new := [one for one in needs(name) if not re.search(rf"\b{one}\b", before)])]  # fmt: skip
            if lines:
                slide = slide._replace(notes="**Say** what these do, which a solution uses and no slide of this deck has shown. "
                                       f"{'; '.join(lines)}.\n\n{slide.notes}")  # fmt: skip
        before += slide.shown + slide.notes
        shown.append(slide)
    return shown


def hours(minutes):
    return f"{minutes // 60}:{minutes % 60:02}"


def timed(found):
    """The slides, with what the clock says from the deck's beginning, and how long it takes in all."""
    at, shown = 0, []
    for slide in found:
        told = ""
        if slide.title == "CUDA in one slide":
            told, at = f"{hours(at)} to {hours(at + PAUSE)}", at + PAUSE
        elif slide.title == "Pause":
            told, at = f"until {hours(at + PAUSE)}", at + PAUSE
        elif slide.lesson and slide.shown.startswith("# "):
            minutes = question_of(slide.lesson)[2]
            told, at = f"{hours(at)} to {hours(at + minutes)}, then the exercises", at + minutes
        elif slide.lesson and slide.title == "Exercises":
            at += EXERCISE * slide.shown.count("N=")
            told = f"until {hours(at)}"
        shown.append(slide._replace(notes=f"**Clock:** {told}.\n\n{slide.notes}") if told else slide)
    shown[0] = shown[0]._replace(notes=f"{shown[0].notes}\n\n**Clock:** {at // 60} h {at % 60} min in all, with the exercises, "
                                 "their solutions and the pauses. On the other slides the clock begins with the deck, at 0:00.")
    return shown


def agenda(found):
    """The lessons of a deck, those between two pauses on one line."""
    lines = [[]]
    for slide in found:
        if slide.title == "Pause":
            lines.append([])
        elif slide.lesson and slide.shown.startswith("# "):
            notes = (HERE.parent / f"notes/{slide.lesson}.md").read_text()
            lines[-1].append(re.match("# Notes for lesson (.*)", notes)[1].replace(": ", " "))
    return "\n".join(f"- {' · '.join(line)}" for line in lines)


def slides(deck):
    """All slides of a deck."""
    found = []
    for slide in read(deck):
        kind, _, what = slide.shown.partition(": ")
        if kind == "Lessons":
            numbers, _, planned = what.partition(" with ")
            found += [one for number in numbers.split() for one in lesson(number, planned.split())]
        elif kind == "Slide":
            number, title = what.split(" ", 1)
            found += [one for one in read(HERE / f"{number}.md", number if number.isdigit() else None) if one.title == title]
        elif kind == "Pause":
            found.append(Slide("Pause", f"# Pause\n\n{what}", "**Say** when you go on.", None))
        else:
            found.append(slide)
    found[0] = found[0]._replace(shown=f"{found[0].shown}\n\n{agenda(found)}")
    return timed(introduced(found))


def picture(match):
    alt, name = match.groups()
    path = (HERE / name).resolve()
    if path.stem in stepped.FIGURES:
        return f"\n\n{stepped.element(path.stem, '')}\n\n"
    if path.stem == "timeline":
        return f"\n\n{stepped.timeline(path.parent.name, path.read_text(), '')}\n\n"
    # Inside the page, the style of a picture would be that of all others: so it stays a picture.
    return f'\n\n<img class="still" src="pictures/{path.parent.name}-{path.name}" alt="{html.escape(alt)}">\n\n'


def as_wide(match):
    """Programs and runs in letters as large as their longest line leaves room for: one of them is 0.602 of the size wide."""
    longest = max(len(html.unescape(line)) for line in re.sub("<[^>]*>", "", match[2]).split("\n"))
    return f'<pre style="font-size: {min(34, int(1236 / 0.602 / longest))}px">{match[1]}{match[2]}</pre>'


def unbroken(match):
    """No line ends inside a word such as all-reduce, or between "rank" and its number."""
    def whole(text):
        text = re.sub(r"\w+(?:-\w+)+", r'<span class="whole">\g<0></span>', text)
        return re.sub(r"\b(ranks?|GPU|lesson|step|chunk) (?=\d)", r"\1&nbsp;", text)
    pieces = re.split(r"(<code>.*?</code>|<[^>]*>)", match[2], flags=re.S)
    return f"<{match[1]}>" + "".join(piece if piece.startswith("<") else whole(piece) for piece in pieces) + f"</{match[1]}>"


def section(slide):
    # A program is run in its folder, which its line names. Where the line goes on, the folder stands above it.
    folder = next(TOP.glob(f"{slide.lesson}-*")).name if slide.lesson else ""
    shown = re.sub(r"^\$ (.*\./.*[^\\&])$", rf"$ (cd {folder} && \1)", slide.shown, flags=re.M) if folder else slide.shown
    body = markdown.render(re.sub(IMAGE, picture, shown))
    body = re.sub(r"<pre>(<code[^>]*>)(.*?)</pre>", as_wide, body, flags=re.S)
    body = re.sub(r"<(h[12]|p|li|td)>(.*?)</\1>", unbroken, body, flags=re.S)
    if slide.title == "Hands up":
        body = body.replace("<li>", '<li class="fragment">')
    if slide.lesson:
        body = body.replace("<h2>", f'<h2 data-lesson="{slide.lesson}">')
        if re.search(r"^\$ (?!\(cd ).*\./", shown, re.M):
            body = body.replace("<pre", f'<p class="folder">in {folder}:</p>\n<pre', 1)
    return f'<section>\n{body}<aside class="notes">{markdown.render(slide.notes)}</aside>\n</section>'


def page(deck):
    shown = slides(deck)
    styles = "".join(f'<link rel="stylesheet" href="{name}">\n' for name in (
        "reveal/dist/reset.css", "reveal/dist/reveal.css", "figure.css", "figure-colours.css", "slides.css"))  # fmt: skip
    scripts = "".join(f'<script src="{name}"></script>\n' for name in (
        "figure.js", "reveal/dist/reveal.js", "reveal/plugin/notes/notes.js", "slides.js"))  # fmt: skip
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(shown[0].title)}</title>\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{styles}</head>\n<body data-theme="light">\n'
            f'<div class="reveal"><div class="slides">\n{chr(10).join(map(section, shown))}\n</div></div>\n{scripts}</body>\n</html>\n')  # fmt: skip


def contents():
    lists = ""
    for kind, about in KINDS.items():
        links = "".join(f'<li><a href="{deck.stem}.html">{html.escape(first.title)}</a>. {first.shown.split(chr(10))[2]}</li>'
                        for deck in decks() if deck.stem.startswith(kind) for first in [read(deck)[0]])  # fmt: skip
        lists += f"<h2>{about}</h2>\n<ul>{links}</ul>\n"
    return ('<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Slides: Learn NCCL</title>\n'
            f'<body style="font: 20px sans-serif; margin: 2em; max-width: 40em"><h1>Slides</h1>\n{lists}'
            "<p>In a deck: the arrow keys also step the figures, + and - zoom a timeline, S opens the speaker's notes in a window "
            "of their own, F fills the screen, D darkens it, and ? lists all keys. For another number of ranks, choose it in the "
            "slide itself, and go on there. The slides are light at first, whatever the computer prefers, because a dark slide "
            "can't be read in a lit room.</p>\n<p>To print a deck, add ?print-pdf to its address, and print that page; with "
            "?print-pdf&amp;showNotes=separate-page the notes, too.</p>"
            "</body></html>\n")  # fmt: skip


def main(folder):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "pictures").mkdir(parents=True)
    for name in NEEDED:
        (folder / "reveal" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REVEAL / name, folder / "reveal" / name)
    for name in "slides.css", "slides.js":
        shutil.copy(HERE / name, folder)
    for name in "figure.css", "figure-colours.css", "figure.js":
        shutil.copy(HERE.parent / "static" / name, folder)
    for deck in decks():
        (folder / f"{deck.stem}.html").write_text(page(deck))
        for slide in slides(deck):
            for _, name in re.findall(IMAGE, slide.shown):
                path = (HERE / name).resolve()
                shutil.copy(path, folder / "pictures" / f"{path.parent.name}-{path.name}")
    (folder / "index.html").write_text(contents())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
