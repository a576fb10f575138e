"""What the course consists of: its pages, lessons, programs and exercises, read from the repository."""
import functools
import html
import json
import os
import re
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
NOT_THE_COURSE = {'build', 'node_modules'}
PICTURES = {'.svg', '.png'}

# The pages beside the lessons, in the order of the menu and by the names that they have there; all others come after.
REFERENCE = {'common/cuda': 'CUDA in one page', 'common/glossary': 'Glossary', 'errors': 'Errors: what you see',
             'check/index': 'The checks', 'check/findings': 'What the checks find', 'cpu/index': 'The CPU build',
             'cpu/clock': 'Modelled time', 'kernels/index': 'Kernels without a GPU',
             'results/sessions': 'Sessions on GPUs', 'results/index': 'Results on GPUs',
             'jobs/index': 'Slurm jobs',
             'common/pytorch': 'For PyTorch users',
             'common/pytorch-settings': 'PyTorch: messages', 'common/mpi': 'For MPI programmers',
             'check/front/timeline/index': 'Timelines'}
TEACHING = {'book/notes/index': 'Teach with it', 'exercises/grading': 'Exercises in a class'}
ABOUT = {'book/differs': 'How this course differs', 'CONTRIBUTING': 'How it is made',
         'exercises/index': 'How an exercise is written', 'CHANGELOG': 'Changes'}

_shown = {}


def read(path):
    return path.read_text(encoding='utf-8', errors='replace')


@functools.lru_cache(maxsize=None)
def files():
    """All files of the course: what git tracks or would, and without git all but what was built."""
    listed = subprocess.run(['git', '-C', TOP, 'ls-files', '-co', '--exclude-standard', '-z'],
                            capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        found = [TOP / name for name in listed.stdout.split('\0') if name]
    else:
        found = []
        for folder, below, names in os.walk(TOP):
            below[:] = [name for name in below if name not in NOT_THE_COURSE and name != '.git']
            found += [Path(folder) / name for name in names]
    return sorted({path for path in found if path.is_file()})


@functools.lru_cache(maxsize=None)
def pages():
    return frozenset(path for path in files() if path.suffix == '.md' and TOP / 'book' / 'slides' not in path.parents)


def docname(path):
    """01-nccl-broadcast/README.md is 01-nccl-broadcast/index, as an address of the site."""
    name = path.relative_to(TOP).as_posix()[:-len('.md')]
    return re.sub(r'(^|/)README$', r'\1index', name)


def inside(path):
    """A path without .., which must lie in the course."""
    path = Path(os.path.normpath(path))
    if TOP not in path.parents and path != TOP or not path.exists():
        raise SystemExit(f'book: a page links to {path}, which is not in the course')
    return path


# --- Lessons ---------------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def parts():
    """The README's tables: [{title, about, lessons: [{folder, title, question, time, docname}]}]."""
    found = []
    text = read(TOP / 'README.md').split('\n## The lessons\n', 1)[1].split('\n## ', 1)[0]
    for piece in text.split('\n### ')[1:]:
        title, _, rest = piece.partition('\n')
        rows = re.findall(r'^\| \[(.*?)\]\(([^/)]+)/README\.md\) \| (.*?) \| (.*?) \|$', rest, re.M)
        found.append({'title': title, 'about': ' '.join(rest.split('\n|', 1)[0].split()), 'lessons': [
            {'title': name, 'folder': folder, 'question': question, 'time': time,
             'docname': docname(TOP / folder / 'README.md')}
            for name, folder, question, time in rows]})
    return [part for part in found if part['lessons']]


def lesson_of(path):
    """The lesson whose page this is, or None."""
    for part in parts():
        for lesson in part['lessons']:
            if path == TOP / lesson['folder'] / 'README.md':
                return lesson
    return None


def program(page):
    """A lesson's program: the one source file with main beside its page."""
    sources = sorted(path for path in page.parent.iterdir() if path.suffix in ('.c', '.cu'))
    return next((path for path in sources if re.search(r'^int main\(', read(path), re.M)), None)


def twin(page):
    """A lesson's program in Python, if it has one."""
    return next((path for path in page.parent.iterdir() if path.suffix == '.py'), None)


def lines_of(quoted, source):
    """Where lines quoted in a page stand in a file: (first, last). Spaces and … do not count."""
    whole, where = '', []
    for number, line in enumerate(read(source).split('\n'), 1):
        packed = re.sub(r'\s+', '', line)
        whole += packed
        where += [number] * len(packed)
    at, first, last = 0, None, None
    for piece in re.split(r'^\s*…\s*$', '\n'.join(quoted), flags=re.M):
        packed = re.sub(r'\s+', '', piece)
        if not packed:
            continue
        found = whole.find(packed, at)
        if found < 0:
            return None
        first = first or where[found]
        at = found + len(packed)
        last = where[at - 1]
    return (first, last) if first else None


# --- Files that a page links to ----------------------------------------------------------------

def show(path):
    """From now on the site has a page that shows this file."""
    if path not in _shown:
        _shown[path] = True
        if path.is_dir():
            for below in files():
                if below.parent == path:
                    show(below)


def shown():
    return [path.relative_to(TOP).as_posix() for path in _shown]


def source_name(path):
    name = path.relative_to(TOP).as_posix()
    return f'{name}/files.html' if path.is_dir() else f'{name}.html'


# --- Exercises ------------------------------------------------------------------------------------

def with_values(source):
    """The text of an exercise's source, in which [[n]] stands for a number that make variants can change."""
    text = read(source)
    if '[[' not in text:
        return text
    command = ['perl', f'-I{TOP}/exercises/lib', '-MVary', '-MSource', '-e', 'print Vary::vary(Source::read_file($ARGV[0]))']
    return subprocess.run([*command, source], capture_output=True, check=True).stdout.decode()


@functools.lru_cache(maxsize=None)
def exercise(number):
    """The head of an exercise's source (exercises/README.md), and the question of a predict."""
    sources = list((TOP / 'exercises').glob(f'{number}-*'))
    if not sources:
        return None
    head, _, rest = with_values(sources[0]).partition('//: file\n')
    found = {'number': number, 'wrong': [], 'hint': []}
    for line in re.sub(r'\n//: {2,}', ' ', head).split('\n'):
        key, _, value = line[len('//: '):].partition(' ')
        if key in ('wrong', 'hint'):
            found[key].append(value)
        else:
            found[key] = value
    found['question'] = rest.split('\n//: ')[0].strip('\n')
    return found


def question_html(text):
    """Running text as paragraphs; programs, tables and answers to choose from as they stand. All in one line."""
    pieces = []
    for block in re.split(r'\n{2,}', text):
        as_is = bool(re.search(r'^ |^[A-Z] {2,}|\S {3,}\S', block, re.M))
        if as_is and pieces and pieces[-1][0]:
            pieces[-1][1] += '\n\n' + block
        else:
            pieces.append([as_is, block])
    shown = [f'<pre>{html.escape(block)}</pre>' if as_is else f'<p>{html.escape(block)}</p>' for as_is, block in pieces]
    return re.sub(r'`([^`\n]+)`', r'<code>\1</code>', ''.join(shown)).replace('\n', '&#10;')


def quiz(found):
    """A question as a form, in one line of HTML. What it says of an answer are the exercise's own words."""
    answers = [{'answer': name, 'says': says} for name, says in (one.split(': ', 1) for one in found['wrong'])]
    data = {'number': found['number'], 'answer': found['answer'], 'within': found.get('within', '0'),
            'wrong': answers, 'otherwise': found.get('otherwise', ''), 'learned': found['learned'],
            'why': found['why'], 'hints': found['hint']}
    name = 'quiz-' + found['number'].replace('.', '-')
    letters = re.findall(r'^([A-Z]) {2,}(.*)$', found['question'], re.M) if re.fullmatch('[A-Z]', found['answer']) else []
    if letters:
        fields = ''.join(f'<label><input type="radio" name="{name}" value="{letter}"> {letter}</label>'
                         for letter, _ in letters)
        fields = f'<fieldset><legend>Your answer to {found["number"]}</legend>{fields}</fieldset>'
    else:
        fields = f'<label>Your answer <input type="text" name="{name}" autocomplete="off" size="24"></label>'
    packed = json.dumps(data, ensure_ascii=False).replace('</', '<\\/')
    return (f'<form class="quiz" id="{name}" data-number="{found["number"]}">{question_html(found["question"])}'
            f'<script type="application/json">{packed}</script>{fields}'
            '<p><button type="submit">Check</button> <button type="button" class="quiz-hint">Hint</button></p>'
            '<output></output><p class="quiz-hinted" role="status"></p></form>')


# --- The order of the pages ------------------------------------------------------------------------

def pictures():
    return [path for path in files() if path.suffix in PICTURES]


@functools.lru_cache(maxsize=None)
def titles():
    """All pages in their order: [(docname, title)]. By the menu's titles where it has them, else by their own."""
    named = {'index': 'Learn NCCL', **REFERENCE, **TEACHING, **ABOUT,
             **{lesson['docname']: lesson['title'] for part in parts() for lesson in part['lessons']}}
    own = {docname(page): re.sub(r'[`*]', '', read(page).split('\n', 1)[0].lstrip('# ')) for page in pages()}
    lessons = [lesson['docname'] for part in parts() for lesson in part['lessons']]
    first = ['index', 'common/cuda', *lessons, *REFERENCE, *TEACHING]
    order = [*dict.fromkeys(name for name in first if name in own),
             *sorted(name for name in own if name not in first and name not in ABOUT), *[name for name in ABOUT if name in own]]
    return [(name, named.get(name, own[name])) for name in order]


def contents():
    """A hidden table of contents for Sphinx: what comes after what."""
    listed = '\n'.join(f'/{name}' for name, _ in titles() if name != 'index')
    return f'\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n'
