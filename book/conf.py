"""Sphinx's configuration for the book, and the few things that Sphinx and its theme lack."""
import html
import json
import os
import re
import sys
import zlib
from pathlib import Path

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CLexer, PythonLexer, TextLexer, get_lexer_for_filename
from pygments.token import Comment, Error
from pygments.util import ClassNotFound

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import course  # noqa: E402

project = 'Learn NCCL'
author = 'The authors of this course'
copyright = author
version = release = re.search(r'^version=(.*)', course.read(course.TOP / 'check' / 'nccl-check'), re.M)[1]
extensions = ['myst_parser', 'sphinx_copybutton']
exclude_patterns = []
nitpicky = False

myst_enable_extensions = ['colon_fence']
myst_heading_anchors = 4
# A page of the site that is no Markdown: a file of the course. pages.py writes such links.
myst_url_schemes = {'http': None, 'https': None, 'mailto': None, 'source': '{{path}}'}

html_theme = 'furo'
html_title = 'Learn NCCL'
html_static_path = ['static']
html_css_files = ['book.css', 'figure.css', 'figure-colours.css']
html_js_files = [('quiz.js', {'defer': ''}), ('figure.js', {'defer': ''})]
templates_path = ['templates']
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_search_scorer = str(HERE / 'scorer.js')
html_show_search_summary = False  # it would fetch pages, which file:// does not allow
html_permalinks_icon = '#'
highlight_language = 'none'
pygments_style = 'a11y-high-contrast-light'
pygments_dark_style = 'a11y-high-contrast-dark'
# Arrow keys belong to the figures: at the end of one, they must not lead to another page.
html_theme_options = {'navigation_with_keys': False}
# Where the course lives, for the button that opens it in a container; what publishes the book says it.
course_url = os.environ.get('COURSE_URL', '')
html_context = {
    'course_url': course_url,
    'course_container': 'https://codespaces.new/' + course_url.split('://', 1)[1].split('/', 1)[1]
    if course_url.startswith('https://github.com/') else
    'https://vscode.dev/redirect?url=vscode://ms-vscode-remote.remote-containers/cloneInVolume?url=' + course_url,
}
html_sidebars = {'**': ['sidebar/brand.html', 'sidebar/search.html', 'sidebar/scroll-start.html',
                        'sidebar/navigation.html', 'sidebar/scroll-end.html']}

# Of a console block only the commands, without the $; pictures made of characters get no button.
copybutton_prompt_text = r'\$ '
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
copybutton_copy_empty_lines = False
copybutton_line_continuation_character = '\\'
copybutton_selector = ','.join(f'div.highlight-{kind} pre' for kind in ('console', 'sh', 'bash', 'c', 'C', 'python', 'cuda'))

def add_menu(app, pagename, template, context, doctree):
    """What the menu beside each page is made of."""
    part = next((part for part in course.parts() for lesson in part['lessons']
                 if pagename.startswith(lesson['folder'] + '/')), None)
    context['course_parts'] = course.parts()
    context['course_part'] = part
    for kind, names in ('course_reference', course.REFERENCE), ('course_teaching', course.TEACHING), ('course_about', course.ABOUT):
        context[kind] = [(name, title) for name, title in names.items() if name in app.env.titles]
    if not doctree:
        context['furo_hide_toc'] = True


# --- Code with … for what is left out --------------------------------------------------------------

class Shortened:
    def get_tokens_unprocessed(self, text, *stack, **stacks):
        for at, kind, value in super().get_tokens_unprocessed(text, *stack, **stacks):
            yield at, Comment if kind is Error and value == '…' else kind, value


class ShortenedC(Shortened, CLexer):
    pass


class ShortenedPython(Shortened, PythonLexer):
    pass


# --- Rows with an address ---------------------------------------------------------------------

def row_name(row):
    """The first program that a row links to, or its first words."""
    for reference in row.findall(nodes.reference):
        match = re.search(r'wrong/([\w-]+)\.c\.html$', reference.get('refuri', ''))
        if match:
            return match[1]
    words = re.sub(r'[^\w]+', '-', row[0].astext().lower()).strip('-')
    return '-'.join(words.split('-')[:8])


def name_rows(app, doctree):
    """Each row of the tables of messages and findings gets an id, and a link to itself."""
    if app.env.docname not in ('errors', 'check/findings'):
        return
    taken = set()
    for body in doctree.findall(nodes.tbody):
        for row in body:
            name = base = row_name(row)
            count = 1
            while name in taken:
                count += 1
                name = f'{base}-{count}'
            taken.add(name)
            row['ids'].append(name)
            # The other programs of the row are addresses, too.
            for reference in row.findall(nodes.reference):
                match = re.search(r'wrong/([\w-]+)\.c\.html$', reference.get('refuri', ''))
                if match and match[1] not in taken:
                    taken.add(match[1])
                    reference['ids'].append(match[1])
            mark = nodes.raw('', f' <a class="headerlink" href="#{name}" title="Link to this row">#</a>', format='html')
            (row[0][-1] if len(row[0]) and isinstance(row[0][-1], nodes.paragraph) else row[0]).append(mark)


# --- Drawings made of characters --------------------------------------------------------------

def fit_drawings(app, doctree):
    """A drawing is shown whole: its letters are as large as its longest line leaves room for (book.css). So is a program,
    except on a phone."""
    for block in list(doctree.findall(nodes.literal_block)):
        drawing = block.get('language', 'default') in ('none', 'default', '')
        columns = max((len(line) for line in block.astext().split('\n')), default=1)
        if not drawing and (block['language'] not in ('c', 'cuda', 'python') or columns < 80):
            continue
        kind = 'fit' if drawing else 'fit program'
        at = block.parent.index(block)
        block.parent.insert(at + 1, nodes.raw('', '</div>', format='html'))
        block.parent.insert(at, nodes.raw('', f'<div class="{kind}" style="--columns: {columns}">', format='html'))


# --- Search -----------------------------------------------------------------------------------

def write_words(app, exception):
    """The words of all pages, for the excerpts of the search."""
    if exception:
        return
    pages = {}
    for name in sorted(app.env.found_docs):
        text = course.read(Path(app.srcdir) / f'{name}.md').split('```{toctree}', 1)[0]
        text = re.sub(r'<script.*?</script>|<[^<>]+>', ' ', text, flags=re.S)
        text = re.sub(r'\]\([^()]*\)', '', text)
        pages[name] = ' '.join(re.sub(r'[`*#|\[\]]|:{3,}.*|^-[- |]+$', ' ', html.unescape(text), flags=re.M).split())
    (Path(app.outdir) / 'course-words.js').write_text('window.courseWords = ' + json.dumps(pages, ensure_ascii=False) + ';\n')


def add_excerpts(app, pagename, template, context, doctree):
    if pagename == 'search':
        app.add_js_file('../course-words.js', defer='')
        app.add_js_file('excerpts.js', defer='')


# --- Files of the course -------------------------------------------------------------------------

def source_body(path):
    text = course.read(path)
    try:
        name = path.name[:-3] if path.suffix == '.in' else path.name
        lexer = get_lexer_for_filename({'Makefile': 'Makefile'}.get(name, name), stripnl=False)
    except ClassNotFound:
        first = text.split('\n', 1)[0]
        lexer = TextLexer(stripnl=False)
        if 'bash' in first:
            lexer = get_lexer_for_filename('x.sh', stripnl=False)
        elif 'perl' in first:
            lexer = get_lexer_for_filename('x.pl', stripnl=False)
    lines = highlight(text, lexer, HtmlFormatter(nowrap=True)).rstrip('\n').split('\n')
    numbered = '\n'.join(f'<span class="line" id="L{n}"><a class="number" href="#L{n}" aria-label="line {n}">{n}</a>{line}</span>'
                         for n, line in enumerate(lines, 1))
    return f'<div class="highlight source-file"><pre tabindex="0">{numbered}\n</pre></div>'


def picture_body(path):
    """A drawing at its own size, so that its letters can be read; it scrolls by itself."""
    svg = re.sub(r'^<\?xml.*?\?>\s*', '', course.read(path))
    return f'<div class="picture-file" tabindex="0" role="region" aria-label="{html.escape(path.name)}">{svg}</div>'


def folder_body(path):
    names = sorted(below.name for below in course.files() if below.parent == path)
    return '<ul>' + ''.join(f'<li><a href="{html.escape(course.source_name(path / name).rsplit("/", 1)[-1])}">'
                            f'{html.escape(name)}</a></li>' for name in names).replace('href="', 'href="../' + path.name + '/') + '</ul>'


def source_pages(app):
    """A page for every file that the course's pages link to."""
    for name in json.loads((Path(app.srcdir) / 'sources.json').read_text()):
        path = course.TOP / name
        page = course.source_name(path)[:-len('.html')]
        title = html.escape(name + ('/' if path.is_dir() else ''))
        body = (folder_body if path.is_dir() else picture_body if path.suffix == '.svg' else source_body)(path)
        folder = path.relative_to(course.TOP).parts[0]
        lesson = next((one for part in course.parts() for one in part['lessons'] if one['folder'] == folder), None)
        back = ''
        if lesson:
            up = os.path.relpath(lesson['docname'] + '.html', Path(page).parent)
            back = f'<p>A file of <a href="{up}">lesson {html.escape(lesson["title"])}</a>.</p>'
        yield page, {'title': title, 'body': f'<h1 class="file-name">{title}</h1>{back}{body}'}, 'page.html'


def setup(app):
    app.add_lexer('c', ShortenedC)
    app.add_lexer('python', ShortenedPython)
    app.connect('html-page-context', add_menu)
    app.connect('doctree-read', name_rows)
    app.connect('doctree-read', fit_drawings)
    app.connect('html-page-context', add_excerpts)
    app.connect('html-collect-pages', source_pages)
    app.connect('build-finished', write_words)
    # What is in every page: if it changes, all are written anew; if this file does, all are read anew.
    app.add_config_value('course_menu', '', 'html')
    app.config.course_menu = repr((course.parts(), course.REFERENCE, course.TEACHING, course.ABOUT))
    app.add_config_value('course_code', 0, 'env')
    app.config.course_code = zlib.crc32(Path(__file__).read_bytes())
