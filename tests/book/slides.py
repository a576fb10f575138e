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
sys.path += [str(TOP / 'book'), str(TOP / 'book/slides')]
import course  # noqa: E402
import make  # noqa: E402

FOLDER = Path(sys.argv[1]).resolve()
DECKS = make.decks()
PARTS = [deck for deck in DECKS if deck.stem.startswith('part')]
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

def packed(text):
    return re.sub(r'\s', '', text)


pages = packed('\n'.join(path.read_text() for path in TOP.glob('[0-9][0-9]-*/README.md')))
programs = pages + packed('\n'.join(path.read_text() for path in TOP.glob('[0-9][0-9]-*/*.*') if path.suffix in ('.c', '.cu', '.h')))


def faults(slide):
    """What is wrong with the text of a slide."""
    for kind, block in re.findall(r'^```(\w*)\n(.*?)^```', slide.shown, re.M | re.S):
        yield from (f'too long to be read: {line}' for line in block.splitlines() if len(line) > 80)
        # A slide may break a line elsewhere, in the shell by a backslash.
        for quoted in re.split(r'^\s*…$', re.sub(r'\\$', '', block, flags=re.M), flags=re.M):
            if packed(quoted) not in (programs if kind == 'c' else pages):
                yield f'not in the course: {quoted.strip()}'
    for _, name in re.findall(make.IMAGE, slide.shown):
        if not (TOP / 'book/slides' / name).exists():
            yield f'no picture {name}'
    text = slide.shown + slide.notes
    for number in re.findall(r'\bN=(\d\d[a-z])\b', text):
        if not list(TOP.glob(f'{number[:2]}-*/break/{number[2]}-*.diff')):
            yield f'no break {number}'
    for number in re.findall(r'\b\d\d\.\d\b', ' '.join(re.findall(r'exercises? .*', text))):
        if not list((TOP / 'exercises').glob(f'{number}-*')):
            yield f'no exercise {number}'
    if not re.search(r'\*\*(Say|Ask|Type|Show|Then)\b', slide.notes):
        yield 'nothing to say, ask or type'
    words = len(re.findall(r'\w+', re.sub(r'^```.*?^```|!\[.*', '', slide.shown, flags=re.M | re.S)))
    if words > 60:
        yield f'{words} words'


known = {}
for deck in DECKS:
    for slide in make.slides(deck):
        known[slide.lesson or deck.stem, slide.title] = slide
ok('the slides quote what is there, in few words, and each has notes',
   [f'{where}, {title}: {what}' for (where, title), slide in known.items() for what in faults(slide)])

# A part's deck has all lessons of the part, each once.
wanted = [[lesson['folder'][:2] for lesson in part['lessons']] for part in course.parts()]
found = [[slide.lesson for slide in make.slides(deck) if slide.lesson and slide.shown.startswith('# ')] for deck in PARTS]
ok('each lesson is in the deck of its part', [f'{w}, but the deck has {f}' for w, f in zip(wanted, found) if w != f]
   + ([] if len(wanted) == len(found) else [f'{len(wanted)} parts, {len(found)} decks']))
titles = [part['title'] for part in course.parts()]
ok('a deck has the title of its part', [title for title, deck in zip(titles, PARTS) if make.slides(deck)[0].title != title])
unused = {path.stem for path in (TOP / 'book/slides').glob('[0-9][0-9].md')} - {number for part in found for number in part}
ok('no slides are in no deck', sorted(unused))

# The exercises of the plan are those of the decks.
plan = re.search(r'## A course of two days(.*?)\n## ', (TOP / 'exercises/grading.md').read_text(), re.S)[1]
rows = [line for line in plan.splitlines() if re.match(r'\| \d\d', line)]
days = [deck for deck in DECKS if deck not in PARTS]
ok('a deck for each row of the plan', [] if len(rows) == len(days) else [f'{len(days)} decks, {len(rows)} rows'])
for row, deck in zip(rows, days):
    slides = make.slides(deck)
    planned = set(re.findall(r'\d\d\.\d', row)) | set(re.findall(r'N=[\w-]+', row))
    shown = {name for slide in slides if slide.title == 'Exercises' for name in re.findall(r'N=(\d\d\.\d)', slide.shown)}
    shown |= {name for slide in slides if slide.title not in ('Exercises', 'Hands up')
              for line in re.findall(r'^\*\*Type.*', slide.notes, re.M) for name in re.findall(r'N=[\w-]+', line)}
    ok(f'{deck.stem} has the exercises and breaks of the plan, and no other', sorted(planned ^ shown))
    listed = re.findall(r'(?:- | · )(\d\d) \w', slides[0].shown)
    ok(f'{deck.stem} begins with a list of its lessons', sorted(set(listed) ^ {slide.lesson for slide in slides if slide.title == 'Hands up'}))
    takes = re.search(r'Clock:\*\* (.* min) in all', slides[0].notes)[1]
    ok(f'{deck.stem} takes as long as the plan says', [] if row.endswith(f'| {takes} |') else [takes, row])
    marks = [tuple(map(int, mark)) for slide in slides for mark in re.findall(r'Clock:\*\* (?:until )?(\d):(\d\d)', slide.notes)]
    ok(f"{deck.stem}'s clock goes on", [] if marks == sorted(marks) and len(marks) > 4 else marks)

# What a solution calls is on a slide before, or named in the notes of its exercise.
morning = make.slides(days[0])
said = [re.findall(r'^\*\*Say\*\* what these.*', slide.notes, re.M) for slide in morning if slide.title == 'Exercises']
ok('notes name the calls of a solution that no slide has shown',
   [] if '`MPI_Comm_rank`' in said[0][0] and '`MPI_Comm_split_type`' not in said[0][0] and not any(said[1:]) else said)

# A deck for another plan names its exercises.
mine = TOP / 'build/mine.md'
mine.write_text('# Mine\n\nLessons 01 and 02\n\nNotes:\n**Say:** it.\n---\nLessons: 01 02 with 01.2 01.5\n')
found = [re.findall(r'N=([\d.]+)', slide.shown) for slide in make.slides(mine) if slide.title == 'Exercises']
ok('a deck may name other exercises', [] if found == [['01.2', '01.5']] else found)
mine.unlink()

# Questions come before exercises, and each lesson has both; where to stop is told on its slide.
for deck in DECKS:
    slides = make.slides(deck)
    ok(f'{deck.stem}: each lesson ends with questions, and then its exercises with their misconceptions',
       [slide.title for before, slide in zip(slides, slides[1:]) if (slide.title == 'Exercises') != (before.title == 'Hands up')
        or slide.title == 'Exercises' and len(re.findall('N=', slide.shown)) < 2]
       + [name for slide in slides if slide.title == 'Exercises' for name in re.findall(r'N=(\d\d\.\d)', slide.shown)
          if not re.search(rf'\) {name} .*\n\n- ', slide.notes)]
       + [slide.lesson for slide in slides if slide.title == 'Hands up'
          and sum(other.lesson == slide.lesson and '**Stop here**' in other.notes for other in slides) != 1])
    folders = [slide for slide in slides if slide.lesson and re.search(r'^\$ .*\./', slide.shown, re.M)]
    ok(f'{deck.stem}: a program that is run has its folder on the slide',
       [slide.title for slide in folders for folder in [next(TOP.glob(slide.lesson + '-*')).name]
        if f'in {folder}:' not in make.section(slide) and f'$ (cd {folder} &amp;&amp; ' not in make.section(slide)])

if not sys.argv[2]:
    print(f'# there is no chromium here, so no slide was looked at\n1..{count}')
    sys.exit(1 if failed else 0)

# --- As a browser shows them

# Of each slide, with its figure at any step: height, width, and the smallest letters of a picture, in a slide of 1280 x 720.
# A timeline's letters don't count, because it can be zoomed.
MEASURE = r'''() => [...document.querySelectorAll('.slides > section')].map((slide) => {
    slide.style.setProperty('display', 'block', 'important');
    const scale = document.querySelector('.slides').getBoundingClientRect().width / 1280;
    const figure = slide.querySelector('nccl-figure');
    const found = {title: slide.querySelector('h1, h2').textContent, high: 0, wide: 0, small: 99, names: 99};
    const look = () => {
        found.high = Math.max(found.high, slide.scrollHeight);
        found.wide = Math.max(found.wide, slide.scrollWidth);
        for (const text of slide.querySelectorAll('svg.drawn text')) {
            if (text.getClientRects().length)
                found.small = Math.min(found.small, parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a / scale);
        }
    };
    // Words such as all-reduce are never broken.
    found.torn = [...slide.querySelectorAll('h1, h2, li')].filter((text) => !text.closest('aside') && /\w-\w/.test(text.textContent.replace(/`[^`]*`/g, '')) &&
        ![...text.querySelectorAll('.whole, code')].some((word) => /\w-\w/.test(word.textContent))).length +
        [...slide.querySelectorAll('.whole')].filter((word) => word.getClientRects().length > 1).length;
    const steps = figure && !figure.data.timeline ? figure.last : 0;
    for (let step = 0; step <= steps; step++) {
        if (steps) figure.go(step);
        look();
    }
    if (steps) figure.go(0);
    // The names of a timeline's rows have room.
    if (figure && figure.data.timeline) found.names = figure.querySelector('.picture > svg').getBoundingClientRect().width / scale;
    const still = slide.querySelector('img');  // its letters are 12 high, or more
    if (still) found.small = 12 * Math.min(still.clientWidth / still.naturalWidth, still.clientHeight / still.naturalHeight);
    slide.style.removeProperty('display');
    return found;
})'''
NUMBER = "[...document.querySelectorAll('.slides section')].findIndex((s) => s.classList.contains('present'))"


def walk(page):
    """Presses the key for on through a deck: what is wrong on the way."""
    at = lambda: page.evaluate(NUMBER)
    last = page.locator('.slides section').count() - 1
    while at() < last:
        before = at()
        figure = page.locator('section.present nccl-figure')
        for step in range(1, (figure.evaluate_all('all => all.map(f => f.data.timeline ? 0 : f.last)') or [0])[0] + 1):
            page.keyboard.press('ArrowRight')
            if not figure.locator('.words').inner_text().startswith(f'Step {step} of') or at() != before:
                yield f'slide {before}: the key does not go to step {step}'
        for _ in range(page.locator('section.present li.fragment').count()):
            page.keyboard.press('ArrowRight')
            if at() != before:
                yield f'slide {before}: its questions do not come one by one'
        page.keyboard.press('ArrowRight')
        if at() != before + 1:
            yield f'slide {before}: the key does not lead on'
            return


def dark(page):
    """The key D, on a slide with a picture: what is wrong with the dark slide."""
    page.evaluate("location.hash = '#/' + [...document.querySelectorAll('.slides section')].findIndex((s) => s.querySelector('img'))")
    page.wait_for_selector('section.present img')
    colours = '''() => [getComputedStyle(document.querySelector('.reveal-viewport')).backgroundColor,
        getComputedStyle(document.querySelector('section.present h2')).color,
        getComputedStyle(document.querySelector('section.present img')).colorScheme].join()'''
    light = page.evaluate(colours)
    page.keyboard.press('d')
    if page.evaluate(colours) != 'rgb(26, 29, 35),rgb(236, 239, 244),dark':
        yield f'not dark: {page.evaluate(colours)}'
    page.keyboard.press('d')
    if page.evaluate(colours) != light or not light.startswith('rgb(255, 255, 255)'):
        yield 'not light again'


def from_speaker(page):
    """A key in the speaker's window steps the figure of the window on the projector."""
    page.evaluate("location.hash = '#/' + [...document.querySelectorAll('.slides section')].findIndex((s) => s.querySelector('nccl-figure'))")
    page.wait_for_selector('section.present nccl-figure')
    with page.expect_popup() as window:
        page.keyboard.press('s')
    speaker = window.value
    speaker.wait_for_function("document.querySelector('.speaker-controls-notes .value').innerText.trim()")
    # Its copy of the deck may not listen yet. A key that comes late does no harm: the figure has been stepped all the same.
    for _ in range(50):
        speaker.keyboard.press('ArrowRight')
        page.wait_for_timeout(200)
        if page.evaluate("document.querySelector('nccl-figure').step"):
            break
    else:
        yield 'the figure stays at its beginning'
    speaker.close()


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=sys.argv[2], args=['--no-sandbox'])
    page = browser.new_page(viewport={'width': 1280, 'height': 720}, color_scheme='dark')
    page.set_default_timeout(60000)
    noise = []
    page.on('console', lambda said: noise.append(said.text))
    page.on('pageerror', lambda error: noise.append(str(error)))
    page.on('request', lambda asked: noise.append(asked.url) if not asked.url.startswith((f'file://{FOLDER}', 'data:', 'blob:')) else None)
    for deck in DECKS:
        page.goto(f'file://{FOLDER}/{deck.stem}.html')
        page.wait_for_selector('section.present')
        slides = page.evaluate(MEASURE)
        wrong = [f'{s["title"]}: {s["wide"]} x {s["high"]}' for s in slides if s['high'] > 720 or s['wide'] > 1280]
        wrong += [f'{s["title"]}: letters of {s["small"]:.0f}' for s in slides if s['small'] < 16]
        wrong += [f'{s["title"]}: a word is broken' for s in slides if s['torn']]
        wrong += [f'{s["title"]}: the names of a timeline are cut off' for s in slides if s['names'] < 60]
        wrong += [] if len(slides) == len(make.slides(deck)) else [f'{len(slides)} slides']
        number, arrows = (page.locator(f'.reveal {part}').bounding_box() for part in ('.slide-number', '.controls'))
        wrong += [] if page.locator('.slide-number').inner_text() == '1' and number['x'] + number['width'] < arrows['x'] else ['the number of a slide']
        ok(f'{deck.stem}: {len(slides)} slides that fit, with letters that can be read', wrong + noise)
        noise.clear()
    # All decks are made in the same way: one with figures, a timeline and pictures stands for them.
    for deck in PARTS[1:2]:
        page.goto(f'file://{FOLDER}/{deck.stem}.html')
        page.wait_for_selector('section.present')
        ok(f'{deck.stem}: the keys step figures, then slides', [*walk(page), *noise])
    page.goto(f'file://{FOLDER}/{PARTS[1].stem}.html')
    page.wait_for_selector('section.present')
    ok("a key in the speaker's window steps a figure, too", [*from_speaker(page), *noise])
    noise.clear()
    ok('the key D darkens a deck, and makes it light again', [*dark(page), *noise])
    noise.clear()
    for deck in PARTS[1:2]:
        page.goto(f'file://{FOLDER}/{deck.stem}.html?print-pdf')
        page.wait_for_selector('.pdf-page')
        page.wait_for_timeout(300)
        printed = PdfReader(BytesIO(page.pdf(prefer_css_page_size=True, print_background=True)))
        text = ' '.join(p.extract_text() for p in printed.pages)
        number = len(make.slides(deck))
        figures = page.locator('nccl-figure').count()
        missing = ['a figure is not at its last step'] if 'Step 0 of' in text or (figures and 'Step' not in text) else []
        ok(f'{deck.stem} can be printed', ([] if len(printed.pages) == number else [f'{len(printed.pages)} pages, not {number}'])
           + missing + noise)
        noise.clear()
    page.goto(f'file://{FOLDER}/index.html')
    named = page.locator('li').all_inner_texts()
    ok('the list of decks names each by its lessons', [name for name in named if 'lessons' not in name] + named * (len(set(named)) != len(DECKS)))
    ok('the list of decks leads to each', [deck.stem for deck in DECKS if not page.locator(f'a[href="{deck.stem}.html"]').count()])
    browser.close()
print(f'1..{count}')
sys.exit(1 if failed else 0)
