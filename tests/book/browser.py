"""The book as a browser shows it, in chromium without a window. Prints TAP; book.t starts it.

    browser.py FOLDER QUIZZES CHROMIUM [PAGE…]     QUIZZES: what the terminal says of answers, as JSON
"""
import functools
import json
import os
import re
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag

import axe_playwright_python
from playwright.sync_api import sync_playwright

TOP = Path(__file__).resolve().parent.parent.parent
BOOK = Path(sys.argv[1]).resolve()
QUIZZES = json.loads(Path(sys.argv[2]).read_text())
ALL = os.environ.get('ALL') == 'yes'
PAGES = ['index', '01-nccl-broadcast/index', '05-ring-allreduce/index', '11-overlap/index', '14-pipeline/index',
         'errors', 'check/findings', 'cpu/index', 'results/index', 'common/glossary',
         '05-ring-allreduce/ring_allreduce.c']
AXE = (Path(axe_playwright_python.__file__).parent / 'axe.min.js').read_text()

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


# --- Without a browser: every link of every page -------------------------------------------------

@functools.lru_cache(maxsize=None)
def text_of(path):
    return path.read_text()


@functools.lru_cache(maxsize=None)
def anchors(path):
    return set(re.findall(r'\s(?:id|name)="([^"]+)"', text_of(path)))


def dead_links(page):
    wrong = []
    text = re.sub(r'<script\b[^>]*>.*?</script>', '', text_of(page), flags=re.S)
    for kind, address in re.findall(r'\s(href|src)="([^"]*)"', text):
        address = unescape(address)
        if re.match(r'(https?:|mailto:)', address):
            if kind == 'src':
                wrong.append(f'{page.relative_to(BOOK)} takes {address} from elsewhere')
            continue
        if address.startswith('data:'):
            continue
        file, anchor = urldefrag(address)
        target = (page.parent / unquote(file.split('?')[0])).resolve() if file else page
        if not target.exists():
            wrong.append(f'{page.relative_to(BOOK)}: {address}: no such file')
        elif anchor and unquote(anchor) not in anchors(target):
            wrong.append(f'{page.relative_to(BOOK)}: {address}: no such place')
    return wrong


pages = sorted(BOOK.rglob('*.html'))
ok(f'{len(pages)} pages were made', [] if len(pages) > 100 else ['fewer than 100'])
ok('every link leads to a page and a place of the book, and nothing comes from elsewhere',
   [line for page in pages if '_static' not in page.parts for line in dead_links(page)])
ok('nor do styles and fonts', [f'{path.name}: {address}' for path in BOOK.rglob('*.css')
                               for address in re.findall(r'(?:url\(|@import)\s*["\']?(https?:[^)"\']*)', text_of(path))])
drawings = list(BOOK.rglob('*.svg.html'))
ok(f'the pages of {len(drawings)} drawings show them, not their source',
   [path.name for path in drawings if '<svg' not in text_of(path) or 'source-file' in text_of(path)] or ([] if drawings else ['none']))
menu = text_of(BOOK / '05-ring-allreduce' / 'index.html').split('course-menu', 1)[1].split('</nav>', 1)[0]
ok("the menu's exercises are the reader's", [] if '<a href="../index.html#exercises">Exercises</a>' in menu else [menu[-900:]])
probe = BOOK / 'probe.html'
probe.write_text('<a href="index.html#nowhere">a</a><img src="https://example.org/a.png"><a href="none.html">b</a>')
found = ' '.join(dead_links(probe))
probe.unlink()
ok('the check of the links finds what is wrong',
   [word for word in ('no such place', 'from elsewhere', 'no such file') if word not in found])
for page in 'errors', 'check/findings':
    rows = re.findall(r'<tr[^>]*>', text_of(BOOK / f'{page}.html').split('<tbody', 1)[1].replace('<thead>\n<tr', ''))
    named = [row for row in rows if 'id="' in row]
    lines = [line for line in (TOP / f'{page}.md').read_text().splitlines() if line.startswith('| ')]
    tables = sum(line.startswith('| --') for line in lines)
    ok(f'{page}: each of its {len(named)} rows has an address of its own',
       [] if len(named) == len(lines) - 2 * tables and len(set(named)) == len(named) else [f'of {len(lines) - 2 * tables}'])


if not sys.argv[3]:
    print(f'ok {count + 1} - the pages in a browser # SKIP there is no chromium here\n1..{count + 1}')
    sys.exit(1 if failed else 0)


# --- In the browser ---------------------------------------------------------------------------------

class Watch:
    """What a page says on the console, and what it asks for."""

    def __init__(self, page):
        self.wrong = []
        page.on('console', lambda said: self.said(said))
        page.on('pageerror', lambda error: self.wrong.append(f'error: {error}'))
        page.on('request', lambda request: self.asked(request.url))

    def said(self, message):
        # The theme says this when its button is pressed.
        if not re.fullmatch(r'Changed to \w+ mode\.', message.text):
            self.wrong.append(f'console: {message.text}')

    def asked(self, url):
        if not url.startswith(('file://' + str(BOOK), 'data:', 'blob:')):
            self.wrong.append(f'asks for {url}')

    def taken(self):
        wrong, self.wrong = self.wrong, []
        return wrong


def address(name):
    return f'file://{BOOK}/{name}.html'


def sideways(page):
    width = page.evaluate('document.documentElement.scrollWidth')
    return [f'{width} px'] if width > 360 else []


def axe(page):
    """What axe-core finds: contrast, names, and other rules of WCAG A and AA."""
    page.evaluate(AXE + '\n;null')
    found = page.evaluate('''axe.run(document, {runOnly: ['wcag2a', 'wcag2aa'], resultTypes: ['violations'],
        rules: {'scrollable-region-focusable': {enabled: false}}})''')
    return [f"{one['id']}: {node['html'][:100]} {node['failureSummary'].splitlines()[-1].strip()}"
            for one in found['violations'] for node in one['nodes'][:3]]


def quiz_says(form, answers):
    """What the page says of each answer, put in and sent by a script; test_quiz_after does so by hand."""
    return form.evaluate("""(form, answers) => answers.map(answer => {
        const letter = [...form.querySelectorAll('input[type=radio]')].find(input => input.value === answer);
        if (letter) letter.checked = true;
        else form.querySelector('input[type=text]').value = answer;
        form.requestSubmit();
        return form.querySelector('output').innerText;
    })""", answers)


def test_quizzes(page, watch):
    lessons = sorted({number[:2] for number in QUIZZES})
    for lesson in lessons if ALL else lessons[:6]:
        wrong = []
        name = next(path.name for path in BOOK.glob(f'{lesson}-*'))
        page.goto(address(f'{name}/index'))
        for number, answers in QUIZZES.items():
            if not number.startswith(lesson):
                continue
            form = page.locator(f'#quiz-{number.replace(".", "-")}')
            if form.count() != 1:
                wrong.append(f'{number} has no question in the page')
                continue
            wrong += [f'{number}: {answer} is wrong, and what is said sounds like praise: {words}' for answer, words in answers
                      if not words.startswith(('Solved.', 'No, not '))]
            shown = quiz_says(form, [answer for answer, _ in answers])
            wrong += [f'{number}: {answer}: says "{said}", and make exercise "{words}"' for (answer, words), said in zip(answers, shown)
                      if ' '.join(said.split()) != ' '.join(words.split())]
        ok(f"lesson {lesson}'s questions are judged as in the terminal, with the same words", wrong + watch.taken())


def test_quiz_after(page, watch):
    page.goto(address('11-overlap/index'))
    form = page.locator('#quiz-11-3')
    form.locator('input[value="A"]').check()
    form.locator('button[type=submit]').click()
    said = form.locator('output').inner_text()
    form.locator('.quiz-hint').click()
    kept = form.locator('output').inner_text()
    form.locator('input[value="D"]').check()
    ok('a hint leaves what was said, and another answer takes it away', [what for what, there in (
        (kept, said.startswith('No, not A.') and kept == said), ('hint', 'Hint 1 of' in form.inner_text()),
        ('gone', form.locator('output').inner_text() == '')) if not there] + watch.taken())


def test_search(page, watch):
    page.goto(address('index'))
    page.locator('input.sidebar-search').fill('ncclCommSplit')
    page.keyboard.press('Enter')
    page.wait_for_selector('#search-results li a')
    page.wait_for_timeout(300)
    found = page.locator('#search-results').inner_text()
    ok('the search finds ncclCommSplit', [f'not {title}' for title in ('15 Grid', '09 The pipelined ring')
                                          if title not in found] + watch.taken())
    shown = [item.inner_text() for item in page.locator('#search-results li').all()]
    ok('first the lesson that explains it', [shown[0]] if not shown[0].startswith('15 Grid') else [])
    ok('and shows the place', [text for text in shown if 'ncclcommsplit' not in text.lower()])


def test_copy(page, watch):
    page.goto(address('01-nccl-broadcast/index'))
    page.evaluate('''document.addEventListener('copy', () => { window.copied = document.activeElement.value; })''')
    block = page.locator('.highlight-console', has_text='mpirun -np 2 ./broadcast').first
    block.hover()
    block.locator('button.copybtn').click()
    page.wait_for_function('window.copied !== undefined')
    copied = page.evaluate('window.copied')
    ok('the copy button takes the command, and neither the $ nor what is printed',
       ([] if copied == 'mpirun -np 2 ./broadcast' else [repr(copied)]) + watch.taken())


def test_way_to_the_program(page, watch):
    page.goto(address('01-nccl-broadcast/index'))
    page.locator('.from-program a').first.click()
    page.wait_for_selector('.source-file .line:target')
    line = page.locator('.source-file .line:target').inner_text()
    ok('from the lines that matter one click leads to them in the program',
       ([] if 'cudaMemcpyAsync(buf, host' in line else [line]) + watch.taken())
    page.goto(address('01-nccl-broadcast/index'))
    page.locator('.lesson-head a', has_text='broadcast.c').click()
    page.wait_for_selector('.source-file')
    ok('and the head has the whole program', watch.taken())


def test_menu(page, watch):
    page.goto(address('05-ring-allreduce/index'))
    menu = page.locator('nav.course-menu')
    ok('the menu has the part of the page open, with questions and times', [
        what for what, there in (
            ('this page', menu.locator('.here .name').inner_text() == '05 The ring'),
            ('time', '40 min' in menu.locator('.here').inner_text()),
            ('question', 'why does it hardly cost more' in menu.locator('.here').inner_text()),
            ('one part', menu.locator('details[open]').count() == 1),
            ('reference', menu.get_by_role('link', name='Glossary').is_visible())) if not there] + watch.taken())
    page.locator('a.next-page').click()
    page.wait_for_url('**/06-bandwidth/index.html')
    ok('next leads to the next lesson', watch.taken())


def test_schemes(page, watch):
    seen = {}
    page.goto(address('01-nccl-broadcast/index'))
    for scheme in 'light', 'dark':
        page.emulate_media(color_scheme=scheme)
        seen[scheme] = page.evaluate('getComputedStyle(document.body).backgroundColor')
    ok("the system's scheme is followed", ([] if len(set(seen.values())) == 2 else [str(seen)]) + watch.taken())
    page.emulate_media(color_scheme='light')
    page.locator('.theme-toggle:visible').first.click()
    chosen = page.evaluate('[document.body.dataset.theme, getComputedStyle(document.body).backgroundColor]')
    page.locator('.theme-toggle:visible').first.click()
    other = page.evaluate('[document.body.dataset.theme, getComputedStyle(document.body).backgroundColor]')
    ok('and the button changes it', ([] if chosen != other else [str(chosen)]) + watch.taken())


# The last step of each figure as it is first shown: what it must say there, and how many steps there are. A ring of N
# has 2(N-1), the lanes as many as the recorded run had moments at which something began.
LAST_STEPS = {
    '01-nccl-broadcast/broadcast': (2, 'all 4 ranks have the data of rank 0'),
    '02-nccl-allreduce/allreduce': (3, 'every rank has the sum of all 4'),
    '03-reduce-scatter-allgather/halves': (4, 'every rank has all sums'),
    '04-all-to-all/alltoall': (4, 'D3 to rank 3'),
    '05-ring-allreduce/ring': (6, 'Every rank has all sums, after 2(N-1) = 6 steps'),
    '05-ring-allreduce/tree': (4, 'A ring needs 6 steps'),
    '09-pipelined-ring/pieces': (None, 'Every rank has all sums after'),
    '11-overlap/overlap': (None, 'updates layer 0'),
    '12-sharded/ahead': (15, 'updates its shards'),
    '13-experts/experts': (7, 'The experts compute 11, 6, 1, 2 tokens'),
    '14-pipeline/turns': (None, 'GPU 3 was idle for'),
    '15-grid/grid': (5, 'in each column'),
    '22-hangs/waits': (7, 'The cycle: rank 0 waits for rank 1'),
}


def test_figures(page, watch):
    at, wrong = None, []
    for place, (steps, words) in LAST_STEPS.items():
        folder, name = place.split('/')
        if at != folder:
            page.goto(address(f'{folder}/index'))
            at = folder
        figure = page.locator(f'nccl-figure[data-name={name}]')
        said = figure.locator('.words')
        recorded = len(json.loads((TOP / 'book' / 'figures' / f'{name}.json').read_text())['runs'])
        offered = figure.evaluate("f => (f.querySelector('select') || [0]).length || 1")
        if offered != recorded:
            wrong.append(f'{name} offers {offered} of {recorded} recorded runs')
        figure.focus()
        if 'Step 0 of ' not in said.inner_text():
            wrong.append(f'{name} does not begin at step 0')
        drawn = figure.evaluate("f => [...f.querySelectorAll('rect')].filter(r => !r.closest('[style*=none]')).length")
        if drawn < 2:
            wrong.append(f'{name} begins empty')
        last = int(re.search(r'Step 0 of (\d+)', said.inner_text())[1])
        pictures = set()
        for _ in range(last):
            page.keyboard.press('ArrowRight')
            pictures.add(figure.evaluate("f => [...f.querySelectorAll('[data-from]')].map(g => g.style.display).join()"))
        if not said.inner_text().startswith(f'Step {last} of {last}.') or words not in said.inner_text():
            wrong.append(f'{name} ends with "{said.inner_text()}"')
        if steps not in (None, last) or len(pictures) < last - 1:
            wrong.append(f'{name} has {last} steps and {len(pictures)} pictures')
        if not figure.get_by_role('button', name='next').is_disabled() or at not in page.url:
            wrong.append(f'{name} goes on after its last step')
        page.keyboard.press('Home')
        if figure.get_by_role('button', name='play').count():
            wrong.append(f'{name} would move, although less motion is asked for')
    ok('each figure is stepped to its end by keys, and says there what it should', wrong + watch.taken())


def test_arrows_stay(page, watch):
    """Once an arrow key led to the next page, when a button had lost the focus by being disabled."""
    page.goto(address('11-overlap/index'))
    figure = page.locator('nccl-figure[data-name=overlap]')
    page.keyboard.press('ArrowRight')
    figure.get_by_role('button', name='to the end').click()
    figure.get_by_role('button', name='back').click()
    figure.get_by_role('button', name='next').click()
    page.wait_for_timeout(200)  # the browser takes the focus away when it draws
    for key in 'ArrowRight', 'ArrowRight', 'ArrowLeft':
        page.keyboard.press(key)
    page.wait_for_timeout(200)
    said = figure.locator('.words').inner_text()
    ok('arrow keys never lead to another page, and after the last step they are still the figure\'s', (
        [] if '11-overlap' in page.url and re.match(r'Step (\d+) of (\d+)\.', said)
        and int(re.match(r'Step (\d+)', said)[1]) == int(re.search(r' of (\d+)', said)[1]) - 1 else [page.url, said]) + watch.taken())


def test_other_runs(page, watch):
    page.goto(address('05-ring-allreduce/index'))
    figure = page.locator('nccl-figure[data-name=ring]')
    wrong = []
    for ranks in range(2, 9):
        figure.get_by_label('which recorded run').select_option(f'{ranks} ranks')
        if ranks == 2:
            figure.get_by_role('button', name='to the end').click()
        # At its end it stays there, so that runs can be compared.
        if f'Step {2 * ranks - 2} of {2 * ranks - 2}.' not in figure.locator('.words').inner_text():
            wrong.append(f'{ranks} ranks: not at the end')
        # Rank r brings powers of ten, times 1 in chunk 0, 2 in chunk 1: each number that is shown is the sum of all.
        whole = sum(10 ** (r % 5) for r in range(ranks))
        texts = figure.evaluate("""f => [...f.querySelectorAll('text')].filter(t => !t.closest('[style*=none]'))
            .map(t => t.textContent)""")
        sums = [text for text in texts if text.isdigit()]
        if sums != ranks * [str(i * whole) for i in range(1, ranks + 1)]:
            wrong.append(f'{ranks} ranks: {sums}')
    ok('the ring ends with all sums everywhere, on 2 to 8 ranks', wrong + watch.taken())


def test_timeline(page, watch):
    page.goto(address('11-overlap/index'))
    figure = page.locator('nccl-figure[data-name="11-overlap"]')
    svg, wide = figure.locator('.time svg'), []
    figure.focus()
    for key in '', '+', '+', '-', 'Home':
        if key:
            page.keyboard.press(key)
        wide.append(round(svg.bounding_box()['width']))
    bar = figure.locator('.time rect.collective').nth(1)
    bar.hover()
    said = figure.locator('.words').inner_text()
    ok('a timeline is zoomed by keys, and a bar says its call, bytes and time', [what for what, there in (
        (f'widths {wide}', all(abs(w - 24 - by * (wide[0] - 24)) < 3 for w, by in zip(wide, (1, 2, 4, 2, 1)))),
        (said, re.fullmatch(r'ncclAllReduce, 1048576 bytes, [\d.]+ to [\d.]+ µs', said))) if not there] + watch.taken())


def test_arrows(page, watch):
    """From a bar to a bar, at any zoom."""
    page.goto(address('14-pipeline/index'))
    figure = page.locator('nccl-figure[data-name="14-pipeline"]')
    wrong = []
    for key in '', '+':
        figure.focus()
        if key:
            page.keyboard.press(key)
        arrows, astray = figure.evaluate("""f => {
            const bars = [...f.querySelectorAll('.time .bars rect')].map(r => r.getBBox());
            const on = (x, y) => bars.some(b => b.x - 1 <= x && x <= b.x + b.width + 1 && b.y - 1 <= y && y <= b.y + b.height + 1);
            const ends = [...f.querySelectorAll('.time .bars .arrow')].map(a => a.getAttribute('d').match(/-?[\\d.]+/g).map(Number));
            return [new Set(ends.map(e => e[0])).size, ends.filter(e => !on(e[0], e[1]) || !on(e[2], e[3])).length]; }""")
        if arrows < 5 or astray:
            wrong.append(f'{arrows} places of arrows, {astray} arrows end beside a bar')
    ok('a zoomed timeline has its arrows from bar to bar', wrong + watch.taken())


def test_timelines_read(page, watch):
    """A bar's name is as large at any zoom, and at 1280 pixels it can be read."""
    wrong = []
    for name in '05-ring-allreduce', '11-overlap', '14-pipeline':
        page.goto(address(f'{name}/index'))
        figure = page.locator(f'nccl-figure[data-name="{name}"]')
        sizes = []
        for _ in range(2):
            sizes += figure.evaluate("""f => [...f.querySelectorAll('.picture text')].map(t =>
                parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().d)""")
            high = figure.bounding_box()['height']
            figure.focus()
            page.keyboard.press('+')
        if len(sizes) < 20 or min(sizes) < 9:
            wrong.append(f'{name}: {len(sizes)} words, the smallest of {min(sizes)} px')
        if figure.bounding_box()['height'] > high + 1:
            wrong.append(f'{name} grows higher')
    ok('the letters of timelines have at least 9 px, and only the time is zoomed', wrong + watch.taken())


def test_play(browser):
    page = browser.new_page()
    page.clock.install()
    page.goto(address('01-nccl-broadcast/index'))
    figure = page.locator('nccl-figure[data-name=broadcast]')
    figure.get_by_role('button', name='play').click()
    page.clock.run_for(5000)
    said = figure.locator('.words').inner_text()
    ok('played, a figure goes to its end and stops', [] if said.startswith('Step 2 of 2.')
       and figure.get_by_role('button', name='play').count() else [said])
    page.close()
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address('05-ring-allreduce/index'))
    figure = page.locator('nccl-figure[data-name=ring]')
    figure.locator('summary').click()
    ok('without JavaScript there is the still picture, and the steps in words', [what for what, there in (
        ('picture', figure.locator('img').is_visible()), ('words', figure.locator('li').count() == 7),
        ('last step', figure.locator('li').last.is_visible())) if not there])
    context.close()


def test_axe(page, watch):
    page.goto(address('common/glossary'))
    page.evaluate('''document.querySelector('article').insertAdjacentHTML('beforeend',
        '<p style="color: #999; background: #fff">pale</p><button></button><img src="data:,">')''')
    found = ' '.join(axe(page))
    watch.taken()
    ok('axe-core finds pale text, and what has no name',
       [rule for rule in ('color-contrast', 'button-name', 'image-alt') if rule not in found])


def test_look(browser, names):
    """Each page in both schemes and on a phone."""
    for scheme in 'light', 'dark':
        context = browser.new_context(color_scheme=scheme, viewport={'width': 1280, 'height': 900}, reduced_motion='reduce')
        page = context.new_page()
        watch = Watch(page)
        for name in names:
            page.goto(address(name))
            cut = page.evaluate("""[...document.querySelectorAll('.highlight-console pre, .highlight-sh pre, .highlight-c pre, .fit pre')]
                .filter(p => p.scrollWidth > p.clientWidth + 1).map(p => 'cut: ' + p.textContent.slice(0, 60))""")
            ok(f'{name}, {scheme}: contrast, names, no message, nothing cut, nothing from elsewhere', axe(page) + cut + watch.taken())
        context.close()
    context = browser.new_context(viewport={'width': 360, 'height': 740}, has_touch=True, is_mobile=True)
    page = context.new_page()
    watch = Watch(page)
    wrong = []
    for path in pages if ALL else map(Path, (address(name)[len('file://'):] for name in names)):
        if '_static' not in path.parts:
            page.goto(f'file://{path}')
            wrong += [f'{path.relative_to(BOOK)}: {width}' for width in sideways(page)] + watch.taken()
    ok('on a phone of 360 px no page scrolls sideways', wrong)
    context.close()


with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=sys.argv[3], args=['--no-sandbox'])
    window = chromium.new_page(viewport={'width': 1280, 'height': 900}, reduced_motion='reduce')
    window.set_default_timeout(60000)
    watching = Watch(window)
    for test in test_menu, test_way_to_the_program, test_search, test_copy, test_schemes, test_quizzes, test_quiz_after, test_figures, \
            test_arrows_stay, test_other_runs, test_timeline, test_arrows, test_timelines_read, test_axe:
        test(window, watching)
    window.close()
    test_play(chromium)
    lessons = sorted(path.parent.name + '/index' for path in BOOK.glob('[0-9][0-9]-*/index.html'))
    test_look(chromium, sys.argv[4:] or (sorted(set(PAGES + lessons)) if ALL else PAGES))
    chromium.close()
print(f'1..{count}')
sys.exit(1 if failed else 0)
