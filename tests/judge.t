#!/usr/bin/env bash
# The judge by itself: what programs do, told as events of 1 to 8 ranks (judge/*.events), and random
# ones against an oracle. No CUDA, no MPI, no second process.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top/tests/judge"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warnings=(-std=c11 -Wall -Wextra -Werror -fvisibility=hidden -I"$top/check")
events=(*.events)
echo "1..$((${#events[@]} + 3))"
tests=0

# point NAME COMMAND…: ok if the command succeeds; the end of what it prints, if not.
point() {
    local name=$1
    shift
    tests=$((tests + 1))
    if timeout 120 "$@" >"$work/log" 2>&1; then
        echo "ok $tests - $name"
    else
        { grep -v '^ok' "$work/log" || true; } | tail -n 60 | sed 's/^/# /'
        echo "not ok $tests - $name"
    fi
}

# The judge in objects of its own, with these flags, and the programs that play to it.
build() { # FOLDER FLAG… -- SOURCE…
    local folder=$work/$1 flags=()
    mkdir "$folder"
    shift
    while [ "$1" != -- ]; do
        flags+=("$1")
        shift
    done
    shift
    (cd "$folder" && "${CC:-gcc}" "${warnings[@]}" "${flags[@]}" -c "$top"/check/*.c)
    local source
    for source; do
        "${CC:-gcc}" "${warnings[@]}" "${flags[@]}" "$source" "$folder"/*.o -lpthread \
            -o "$folder/${source%.c}"
    done
}

build careful -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -- play.c &
build fast -O2 -- play.c random.c ranks.c
wait $!

for file in "${events[@]}"; do
    if [ "$file" = speed.events ]; then
        point "$file: no slower than it says" "$work/fast/play" "$file"
    else
        point "$file" "$work/careful/play" "$file"
    fi
done
point '40,000 random operations: no disagreement with the oracle' "$work/fast/random" 1 1000
point '600 random programs of several ranks, each right and with seven mistakes' "$work/fast/ranks" 1 600
if [ -x "$(command -v clang)" ]; then
    point 'clang has nothing to say' clang "${warnings[@]}" -fsyntax-only "$top"/check/*.c ./*.c
else
    tests=$((tests + 1))
    echo "ok $tests - clang # SKIP not installed here"
fi
