#!/usr/bin/env python3
"""Writes what Sphinx reads: the course's Markdown, with links that lead to pages of the book.

    book/pages.py FOLDER

Nothing is added that the code host's reader lacks, except what only a site can do: the exercises' quizzes,
the figures that can be stepped, an address for each finding, and the way from quoted lines to their file.
"""
import json
import os
import re
import sys
from pathlib import Path

import course

sys.path.insert(0, str(course.TOP / 'book' / 'figures'))
import stepped  # noqa: E402

FENCE = re.compile(r'^( *)(`{3,}|~{3,})(\S*)')
LINK = re.compile(r'(!?)\[((?:[^\[\]`]|`[^`]*`|\[[^\[\]]*\])*)\]\(([^()\s]+)\)')


def blocks(text):
    """The text in turns: (None, prose lines) and (kind, a block's lines, fences included)."""
    kind, lines, fence = None, [], ''
    for line in text.split('\n'):
        mark = FENCE.match(line)
        if kind is None and mark:
            if lines:
                yield None, lines
            kind, fence, lines = mark[3], mark[2], [line]
        elif kind is not None and line.strip() == fence:
            yield kind, lines + [line]
            kind, lines = None, []
        else:
            lines.append(line)
    if lines:
        yield kind, lines


class Page:
    """One page on its way into the book."""

    def __init__(self, path):
        self.path = path
        self.folder = path.parent
        self.name = course.docname(path)
        self.lesson = course.lesson_of(path)

    def href(self, target):
        """From this page to another file of the site."""
        return os.path.relpath(target, Path(self.name).parent).replace(os.sep, '/')

    def link(self, match):
        image, text, address = match.groups()
        if re.match(r'[a-z]+:', address):
            return match[0]
        file, _, anchor = address.partition('#')
        target = course.inside(self.folder / file) if file else self.path
        if image:
            return self.picture(match, text, target)
        if target.is_dir() and (target / 'README.md').exists():
            target /= 'README.md'
        text = LINK.sub(self.link, text)
        if target in course.pages():
            to = self.href(course.docname(target) + '.md') if file else ''
            return f'[{text}]({to}{"#" + anchor if anchor else ""})'
        course.show(target)
        return f'[{text}](<source:{self.href(course.source_name(target))}>)'

    def picture(self, match, text, target):
        """A picture; where there is a figure of its name, that, and the picture for who has no JavaScript."""
        to = self.href(target.relative_to(course.TOP))
        still = f'\n\n![{text}]({to})\n\n'
        if target.suffix == '.svg' and target.stem in stepped.FIGURES:
            return f'\n\n{stepped.element(target.stem, still)}\n\n'
        if target.name == 'timeline.svg':
            return f'\n\n{stepped.timeline(target.parent.name, target.read_text(), still)}\n\n'
        return f'![{text}]({to})'

    def prose(self, lines):
        text = '\n'.join(lines)
        held = []  # code between backticks is left as it is

        def hold(match):
            held.append(match[0])
            return f'\0{len(held) - 1}\0'
        text = re.sub(r'(?<!`)(`+)(?!`)[^`]+\1(?!`)', hold, text)
        text = LINK.sub(self.link, text)
        return re.sub(r'\0(\d+)\0', lambda m: held[int(m[1])], text)

    def code(self, kind, lines):
        """A block; from lines of the lesson's program, or of its Python program, a link leads to them."""
        shown = '\n'.join(lines)
        if kind in ('C', 'Python'):
            shown = re.sub(r'^( *`+)(C|Python)', lambda m: m[1] + m[2].lower(), shown)
        if kind not in ('c', 'python') or not self.lesson:
            return shown
        program = course.program(self.path) if kind == 'c' else course.twin(self.path)
        span = program and course.lines_of(lines[1:-1], program)
        if not span:
            return shown
        course.show(program)
        first, last = span
        to = self.href(course.source_name(program))
        lines_are = f'lines {first} to {last}' if last > first else f'line {first}'
        return f'{shown}\n\n<p class="from-program"><a href="{to}#L{first}">{program.name}, {lines_are}</a></p>'

    def head(self, text):
        """The lesson's head becomes a box, and says where the program is."""
        match = re.match(r'(# .*\n\n)(\*\*.*?\*\*\n\n(?:[-*] .*\n(?:  .*\n)*)+)', text)
        if not match:
            return text
        program = course.program(self.path)
        course.show(program)
        more = f'- **The program:** [{program.name}](<source:{self.href(course.source_name(program))}>)\n'
        return match[1] + '::::{container} lesson-head\n' + match[2] + more + '::::\n' + text[match.end():]

    def exercises(self, text):
        """In a lesson's list of exercises each gets its command, and a question its quiz."""
        def one(match):
            exercise = course.exercise(match[1])
            quiz = f'\n\n{course.quiz(exercise)}\n' if exercise and exercise['kind'] == 'predict' else ''
            return f'{match[0]}. `make exercise N={match[1]}`{quiz}'
        return re.sub(r'^- \[(\d\d\.\d+) (?:[^\n]*)$', one, text, flags=re.M)

    def start(self, text):
        """On the first page: where to begin, and times that stay on one line."""
        first = course.parts()[0]['lessons'][0]
        begin = (f'::::{{container}} begin\n[Begin here: CUDA in one page](common/cuda.md)\n'
                 f'[Then lesson {first["title"]}]({first["docname"]}.md)\n::::\n')
        text = re.sub(r'(\| \d+) min \|$', r'\1&nbsp;min |', text, flags=re.M)
        return text.replace('\n\n', '\n\n' + '\0', 2).replace('\0', '', 1).replace('\0', begin + '\n', 1)

    def written(self):
        text = self.path.read_text()
        out = []
        for kind, lines in blocks(text):
            if kind is None:
                part = '\n'.join(lines)
                if self.lesson:
                    part = self.exercises(part)
                    part = re.sub(r'^Back: .*(?:\n.*)*?Next: .*$|^Back: \[.*$', '', part, flags=re.M)
                out.append(self.prose(part.split('\n')))
            else:
                out.append(self.code(kind, lines))
        text = '\n'.join(out)
        return self.head(text) if self.lesson else self.start(text) if self.name == 'index' else text


def write(path, text):
    """Only what has changed, so that Sphinx need not read all again."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main(out):
    wanted = set()
    for path in course.pages():
        page = Page(path)
        target = out / (page.name + '.md')
        wanted.add(target)
        write(target, page.written() + (course.contents() if page.name == 'index' else ''))
    for picture in course.pictures():
        target = out / picture.relative_to(course.TOP)
        wanted.add(target)
        if not target.exists() or target.read_bytes() != picture.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(picture.read_bytes())
    write(out / 'sources.json', json.dumps(sorted(course.shown())))
    wanted.add(out / 'sources.json')
    for old in out.rglob('*'):
        if old.is_file() and old not in wanted:
            old.unlink()


if __name__ == '__main__':
    main(Path(sys.argv[1]).resolve())
