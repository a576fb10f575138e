#!/usr/bin/env bash
# The slides: they quote what is there, and a browser shows them as they should be. Prints TAP.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=build/book-python/bin/python

made=$(make -s slides 2>&1) || { echo "not ok 1 - make slides"; echo "# ${made//$'\n'/$'\n# '}"; echo 1..1; exit 1; }
if ! cmp -s tests/book/requirements.txt build/book-python/tests; then
    "$python" -m pip install --quiet --disable-pip-version-check --requirement tests/book/requirements.txt
    cp tests/book/requirements.txt build/book-python/tests
fi
# Without a browser nothing is looked at.
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
exec "$python" tests/book/slides.py build/slides "$chromium"
