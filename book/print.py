#!/usr/bin/env python3
"""Prints the book: one PDF of all pages, with page numbers in the contents.

    book/print.py SITE CHROMIUM OUT.pdf

The pages of the site, one after the other, are one page of HTML. Chromium prints it; where each page of the book
begins stands in that PDF, and with these numbers in the contents it is printed once more.
"""
import html
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urldefrag

from bs4 import BeautifulSoup
from pypdf import PdfReader

import course

STYLE = '''
@page { size: A4; margin: 20mm 18mm 20mm 20mm; @bottom-center { content: counter(page); font: 9pt sans-serif; } }
@page :first { @bottom-center { content: ''; } }
body { font: 10.5pt/1.45 sans-serif; color: #111; }
h1 { font-size: 20pt; line-height: 1.2; } h2 { font-size: 14pt; } h3 { font-size: 12pt; }
h1, h2, h3 { break-after: avoid; }
section.page { break-before: page; }
.title { padding-top: 70mm; text-align: center; }
.title h1 { font-size: 34pt; }
.contents { break-before: page; list-style: none; padding: 0; }
.contents a { color: inherit; text-decoration: none; display: flex; gap: 0.5em; }
.contents a::after { content: attr(data-page); margin-left: auto; }
.contents .part { font-weight: bold; margin-top: 0.8em; }
a { color: #0b4da2; text-decoration: none; }
pre { background: #f3f3f3; font-size: 8pt; line-height: 1.35; padding: 6pt; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-size: 90%; overflow-wrap: anywhere; }
pre code { font-size: inherit; }
table { border-collapse: collapse; font-size: 8.8pt; margin: 0.6em 0; max-width: 100%; }
td, th { border: 0.5pt solid #bbb; padding: 2pt 4pt; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
td p, th p { margin: 0; }
tr, img, svg, pre { break-inside: avoid; }
a:not([href]) { color: inherit; }
img { max-width: 100%; }
.lesson-head { border-left: 3pt solid #0b4da2; background: #f3f6fb; padding: 4pt 10pt; }
.lesson-head ul { list-style: none; padding: 0; }
.from-program { text-align: right; font-size: 85%; }
.quiz { border: 0.5pt solid #bbb; padding: 0 6pt; break-inside: avoid; }
.quiz pre { background: none; }
'''


def spot(name, anchor=''):
    """What a place of a page is called in the one long page."""
    return 'page-' + re.sub(r'[^\w-]', '-', name) + (f'--{anchor}' if anchor else '')


def article(site, name, pages):
    """A page of the site, ready to stand among the others."""
    soup = BeautifulSoup((site / f'{name}.html').read_text(), 'html.parser')
    body = soup.select_one('article')
    for away in body.select('.headerlink, script, button, .quiz fieldset, .quiz label, .quiz p, .quiz output'):
        away.decompose()
    for folded in body.select('details'):
        folded['open'] = ''
    for one in body.select('[id]'):
        one['id'] = spot(name, one['id'])
    folder = (site / name).parent
    for picture in body.select('img'):
        if picture.get('src') and not picture['src'].startswith('data:'):
            picture['src'] = (folder / picture['src']).resolve().relative_to(site).as_posix()
    for link in body.select('a[href]'):
        if re.match(r'(https?|mailto):', link['href']):
            continue
        file, anchor = urldefrag(link['href'])
        target = (folder / file).resolve().relative_to(site).as_posix()[:-len('.html')] if file else name
        if target in pages:
            link['href'] = '#' + spot(target, anchor)
        else:
            del link['href']  # a program: it is in the repository
    return f'<section class="page" id="{spot(name)}">{body.decode_contents()}</section>'


def contents(numbers):
    lines = []

    def line(name, title):
        number = numbers.get(spot(name), '')
        lines.append(f'<li><a href="#{spot(name)}" data-page="{number}">{html.escape(title)}</a></li>')
    lines.append('<li class="part">Before the lessons</li>')
    for name, title in course.titles()[:2]:
        line(name, title)
    for part in course.parts():
        lines.append(f'<li class="part">{html.escape(part["title"])}</li>')
        for lesson in part['lessons']:
            line(lesson['docname'], lesson['title'])
    lesson_pages = {lesson['docname'] for part in course.parts() for lesson in part['lessons']}
    lines.append('<li class="part">Reference</li>')
    for name, title in course.titles()[2:]:
        if name not in lesson_pages:
            line(name, title)
    return '<h1 style="break-before: page">Contents</h1><ul class="contents" style="break-before: avoid">' + ''.join(lines) + '</ul>'


def printed(chromium, site, text, out):
    whole = site / 'whole.html'
    whole.write_text(text)
    try:
        done = subprocess.run([chromium, '--headless', '--no-sandbox', '--disable-gpu', '--no-pdf-header-footer',
                               '--generate-pdf-document-outline', f'--print-to-pdf={out}', whole.as_uri()],
                              capture_output=True, text=True, timeout=600)
    finally:
        whole.unlink()
    if done.returncode or not out.exists():
        raise SystemExit(f'book: chromium could not print:\n{done.stderr}')
    reader = PdfReader(out)
    return {name.lstrip('/'): reader.get_destination_page_number(place) + 1
            for name, place in reader.named_destinations.items()}


def main(site, chromium, out):
    names = [name for name, _ in course.titles()]
    style = (site / '_static' / 'pygments.css').read_text().split('@media', 1)[0]
    style = '\n'.join(line for line in style.splitlines() if 'data-theme' not in line)
    body = ''.join(article(site, name, set(names)) for name in names)
    title = '<div class="title"><h1>Learn NCCL</h1><p>Lessons, exercises and reference</p></div>'

    def text(numbers):
        return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Learn NCCL</title>'
                f'<style>{style}{STYLE}</style></head><body>{title}{contents(numbers)}{body}</body></html>')
    numbers = printed(chromium, site, text({}), out)
    if printed(chromium, site, text(numbers), out) != numbers:
        raise SystemExit('book: the contents moved the pages')


if __name__ == '__main__':
    main(Path(sys.argv[1]).resolve(), sys.argv[2], Path(sys.argv[3]).resolve())
