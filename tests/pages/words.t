#!/usr/bin/env bash
# No page is longer than a reader has patience for. Counted are words of the text and of its tables:
# no code and no output, no addresses of links, and not what stands for a picture. A word is letters, digits and _: "a-b" is two.
#
#     tests/pages/words.t [PAGE…]     only these, with their numbers
set -euo pipefail
cd "$(dirname "$0")/../.."

words() { # FILE…
    awk '/^ *```/ { code = !code; next }
        !code { gsub(/!\[[^]]*\]\([^)]*\)/, ""); gsub(/\]\([^)]*\)/, "]"); n += gsub(/[[:alnum:]_]+/, "") }
        END { print n + 0 }' "$@"
}

limit() { # FILE
    case $1 in
    0[0-4]-*/README.md) echo 900 ;;
    [0-9][0-9]-*/README.md) echo 1200 ;;
    README.md | cpu/README.md | jobs/README.md) echo 2000 ;;
    check/README.md) echo 3500 ;;
    results/README.md) echo 2500 ;;
    common/glossary.md) echo 2200 ;;
    common/*.md) echo 1200 ;;
    esac
}

pages=("$@")
[ $# -gt 0 ] || mapfile -t pages < <(git ls-files -co --exclude-standard '*.md')
test=0 failed=0
for page in "${pages[@]}"; do
    most=$(limit "$page")
    [ -n "$most" ] || continue
    test=$((test + 1))
    if [ "$(words "$page")" -le "$most" ]; then
        echo "ok $test - $page: $(words "$page") words"
    else
        echo "not ok $test - $page: $(words "$page") words, at most $most"
        failed=1
    fi
done

# It counts: of this page fourteen words, in headings, the text, a link, code in the text, a table and a list.
test=$((test + 1))
counted=$(words - <<'END'
# A page
[Read](on/another/page.md) `this-one`:

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
if [ "$counted" -eq 14 ]; then
    echo "ok $test - what is counted"
else
    echo "not ok $test - what is counted: $counted"
    failed=1
fi
echo "1..$test"
exit $failed
