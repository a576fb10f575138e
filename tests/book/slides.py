"""The slides as a browser shows them, and what they quote. Prints TAP; slides.t starts it.

    slides.py FOLDER CHROMIUM
"""
import re
import sys
from io import BytesIO
from pathlib import Path

from playwright.sync_api import sync_playwright
from pypdf import PdfReader

TOP = Path(__file__).resolve().parent.parent.parent
FOLDER = Path(sys.argv[1]).resolve()
DECKS = sorted((TOP / 'book/slides').glob('*.md'))
count = failed = 0


def ok(name, wrong):
    """wrong: what is wrong, a list."""
    global count, failed
    count += 1
    failed += bool(wrong)
    print(('not ' if wrong else '') + f'ok {count} - {name}')
    for line in list(wrong)[:20]:
        print(f'#   {line}')
    sys.stdout.flush()


# --- What they quote stands in the lessons, and what they name exists

programs = '\n'.join(path.read_text() for path in TOP.glob('[0-9][0-9]-*/*.[ch]'))
lines = {line.strip() for line in programs.splitlines()}
pages = {line.strip() for path in TOP.glob('[0-9][0-9]-*/README.md') for line in path.read_text().splitlines()}
for deck in DECKS:
    text = deck.read_text()
    wrong = []
    for kind, block in re.findall(r'^```(\w+)\n(.*?)^```', text, re.M | re.S):
        known = lines if kind == 'c' else pages
        wrong += [line for line in block.splitlines() if line.strip() not in known | {'…'} and line.strip() not in pages]
    for number in re.findall(r'\bN=(\d\d[a-z])\b', text):
        if not list(TOP.glob(f'{number[:2]}-*/break/{number[2]}-*.diff')):
            wrong.append(f'no break {number}')
    for number in re.findall(r'\b\d\d\.\d\b', ' '.join(re.findall(r'exercises? .*', text))):
        if not list((TOP / 'exercises').glob(f'{number}-*')):
            wrong.append(f'no exercise {number}')
    slides = re.split(r'^---$', text, flags=re.M)
    for slide in slides:
        shown, _, notes = slide.partition('\nNotes:\n')
        if not re.search(r'\*\*(Say|Ask|Type|Show|Then)[,:]?', notes):
            wrong.append(f'nothing to say, ask or type: {shown.strip().splitlines()[0]}')
        words = len(re.findall(r'\w+', re.sub(r'^```.*?^```|!\[.*', '', shown, flags=re.M | re.S)))
        if words > 60:
            wrong.append(f'{words} words: {shown.strip().splitlines()[0]}')
    ok(f'{deck.stem}: quotes what is there, few words, and each slide has notes', wrong)

# The exercises of the plan are those of the decks.
plan = re.search(r'## A course of two days(.*?)\n## ', (TOP / 'exercises/grading.md').read_text(), re.S)[1]
rows = [line for line in plan.splitlines() if re.match(r'\| \d\d', line)]
for row, deck in zip(rows, DECKS):
    planned = set(re.findall(r'\d\d\.\d', row)) | set(re.findall(r'N=\d\d[a-z]', row))
    text = deck.read_text()
    ok(f'{deck.stem} has the exercises and breaks of the plan', [what for what in sorted(planned) if what not in text])

if not sys.argv[2]:
    print(f'# there is no chromium here, so no slide was looked at\n1..{count}')
    sys.exit(1 if failed else 0)

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=sys.argv[2], args=['--no-sandbox'])
    page = browser.new_page(viewport={'width': 1280, 'height': 720})
    page.set_default_timeout(60000)
    noise = []
    page.on('console', lambda said: noise.append(said.text))
    page.on('pageerror', lambda error: noise.append(str(error)))
    page.on('request', lambda asked: noise.append(asked.url) if not asked.url.startswith((f'file://{FOLDER}', 'data:', 'blob:')) else None)
    for deck in DECKS:
        page.goto(f'file://{FOLDER}/{deck.stem}.html')
        page.wait_for_selector('section.present')
        wrong, presses, figures = [], 0, page.locator('nccl-figure').count()
        number = page.evaluate("document.querySelectorAll('.slides section').length")
        at = lambda: page.evaluate("[...document.querySelectorAll('.slides section')].findIndex(s => s.classList.contains('present'))")
        while at() < number - 1 and presses < 200:
            tall, wide = page.evaluate("(s => [s.scrollHeight, s.scrollWidth])(document.querySelector('section.present'))")
            if tall > 720 or wide > 1280:
                wrong.append(f'slide {at()} is too large: {wide} x {tall}')
            figure = page.locator('section.present nccl-figure')
            steps, before = figure.evaluate_all('all => all.map(f => f.last)'), at()
            for step in range(1, (steps or [0])[0] + 1):
                page.keyboard.press('ArrowRight')
                if not figure.locator('.words').inner_text().startswith(f'Step {step} of') or at() != before:
                    wrong.append(f'slide {before}: the key does not go to step {step}')
            page.keyboard.press('ArrowRight')
            presses += 1
            if at() != before + 1:
                wrong.append(f'slide {before}: the key does not lead on')
                break
        ok(f'{deck.stem}: {number} slides that fit, and keys that step figures, then slides', wrong + noise)
        noise.clear()
        page.goto(f'file://{FOLDER}/{deck.stem}.html?print-pdf')
        page.wait_for_selector('.pdf-page')
        page.wait_for_timeout(300)
        printed = PdfReader(BytesIO(page.pdf(prefer_css_page_size=True, print_background=True)))
        text = ' '.join(p.extract_text() for p in printed.pages)
        missing = ['a figure is not at its last step'] if 'Step 0 of' in text or (figures and 'Step' not in text) else []
        ok(f'{deck.stem} can be printed', ([] if len(printed.pages) == number else [f'{len(printed.pages)} pages'])
           + missing + noise)
        noise.clear()
    page.goto(f'file://{FOLDER}/index.html')
    ok('the list of decks leads to each', [deck.stem for deck in DECKS if not page.locator(f'a[href="{deck.stem}.html"]').count()])
    browser.close()
print(f'1..{count}')
sys.exit(1 if failed else 0)
