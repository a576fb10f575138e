"""The book's PDF: its contents name the pages on which things are, and its links lead there. Prints TAP.

    printed.py BOOK.pdf
"""
import re
import sys

from pypdf import PdfReader

book = PdfReader(sys.argv[1])
places = {name.lstrip('/'): book.get_destination_page_number(place) + 1
          for name, place in book.named_destinations.items()}
first = ''.join(book.pages[number].extract_text() + '\n' for number in range(1, 4))
rows = dict(re.findall(r'^(\d\d [A-Z].+?) (\d+)$', first, re.M))
wrong = [] if len(rows) > 20 else [f'only {len(rows)} lessons in the contents']
for title, number in rows.items():
    text = book.pages[int(number) - 1].extract_text()
    if not text.startswith(f'{number}\n{title[:2]} '):
        wrong.append(f'{title}: page {number} begins with {text[:40]!r}')
links = [link.get_object() for page in book.pages for link in page.get('/Annots', [])]
inner = [link['/Dest'] for link in links if '/Dest' in link]
dead = [str(name) for name in inner if isinstance(name, str) and name.lstrip('/') not in places]
outer = [link['/A']['/URI'] for link in links if '/A' in link and '/URI' in link['/A']]
local = [address for address in outer if not re.match(r'(https?|mailto):', address)]
if len(inner) < 300:
    wrong.append(f'only {len(inner)} links inside')
print('ok 1 - the contents name the right pages' if not wrong else 'not ok 1 - the contents\n# ' + '\n# '.join(wrong))
print('ok 2 - every link leads somewhere' if not dead + local else 'not ok 2 - links\n# ' + '\n# '.join(dead + local))
sys.exit(1 if wrong or dead or local else 0)
