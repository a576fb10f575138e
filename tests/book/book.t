#!/usr/bin/env bash
# The book: it is made without a warning, and a browser shows it as it should. Prints TAP.
#
#     tests/book/book.t [PAGE…]     only the look of these: 01-nccl-broadcast/index
#     ALL=yes tests/book/book.t     all pages and all questions, and the PDF
set -euo pipefail
cd "$(dirname "$0")/../.."
python=build/book-python/bin/python

made=$(make -s book STRICT=yes 2>&1) || { echo "not ok 1 - make book"; echo "${made//$'\n'/$'\n# '}" | sed '1s/^/# /'; echo 1..1; exit 1; }
if ! cmp -s tests/book/requirements.txt build/book-python/tests; then
    "$python" -m pip install --quiet --disable-pip-version-check --requirement tests/book/requirements.txt
    cp tests/book/requirements.txt build/book-python/tests
fi
tests/book/quizzes.pl >build/book-quizzes.json
# Without a browser only the links are looked at.
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
exec "$python" tests/book/browser.py build/book build/book-quizzes.json "$chromium" "$@"
