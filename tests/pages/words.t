#!/usr/bin/env bash
# No page is longer than a reader has patience for. Counted are words of the text and of its tables:
# no code and no output, and no addresses of links; what stands for a picture counts, as it is read aloud. A word is
# letters, digits and _: "a-b" is two.
#
#     tests/pages/words.t [PAGE…]     only these, with their numbers
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/lib.bash

words() { # FILE…
    awk '/^ *```/ { code = !code; next }
        !code { gsub(/\]\([^)]*\)/, "]"); n += gsub(/[[:alnum:]_]+/, "") }
        END { print n + 0 }' "$@"
}

limit() { # FILE
    case $1 in
    0[0-4]-*/README.md) echo 900 ;;
    [0-9][0-9]-*/README.md) echo 1200 ;;
    README.md | cpu/README.md | jobs/README.md) echo 2000 ;;
    check/README.md) echo 3500 ;;
    results/README.md) echo 2500 ;;
    common/glossary.md) echo 2400 ;;
    common/*.md) echo 1200 ;;
    esac
}

pages=("$@")
[ $# -gt 0 ] || mapfile -t pages < <(git ls-files -co --exclude-standard '*.md')
for page in "${pages[@]}"; do
    most=$(limit "$page")
    [ -n "$most" ] || continue
    count=$(words "$page")
    result $((count > most)) "$page: $count words, at most $most"
done

# It counts: of this page eighteen words, in headings, the text, a link, code in the text, a picture, a table and a list.
counted=$(words - <<'END'
# A page
[Read](on/another/page.md) `this-one`:

![What a picture shows](picture.svg)

```console
$ echo this is not counted
```

| the table |
| --- |

## Exercises
1. This is, too.

Back: [here](or/this.md)
END
)
is "$counted" 18 "what is counted"
finish
