#!/usr/bin/env bash
# The lessons, as the tables of README.md list them. One line each, tabs between:
# folder, program without its ending, part, time, question.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

awk -F ' *[|] *' -v OFS='\t' '
    /^### / { part = substr($0, 5) }
    /^\| *\[[^]]*\]\([0-9][0-9]-[^\/]*\/README\.md\) *\|/ {
        match($2, /\([^\/]*/)
        print substr($2, RSTART + 1, RLENGTH - 1), part, $4, $3
    }' README.md |
    while IFS=$'\t' read -r folder rest; do
        source=$(compgen -G "$folder/*.c" || compgen -G "$folder/*.cu") || continue
        printf '%s\t%s\t%s\n' "$folder" "$(basename "${source%.c*}")" "$rest"
    done
