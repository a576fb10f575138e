#!/usr/bin/env bash
# Makes a Python environment in a folder, with the packages of a list.
#
#     book/python.sh python3 build/book-python book/requirements.txt
set -euo pipefail

python=$1 folder=$2 list=$3
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo "make book needs Python 3.9 or newer: make book PYTHON=/path/to/python3" >&2
    exit 1
fi
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    if ! command -v apt-get >/dev/null; then
        echo "make book needs Python's modules venv and ensurepip, which $python lacks" >&2
        exit 1
    fi
    "$(dirname "$0")/../common/install.sh" python3-venv
fi
echo "Installing what the book is made with into $folder (once, about 20 MB)"
rm -rf "$folder"
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$list"
