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
echo "1..$((${#events[@]} + 2))"
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

build() { # OUT SOURCE FLAG…
    "${CC:-gcc}" "${warnings[@]}" "${@:3}" "$2" "$top"/check/*.c -lpthread -o "$1"
}

build "$work/play" play.c -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined &
build "$work/fast" play.c -O2
build "$work/random" random.c -O2
wait $!

for file in "${events[@]}"; do
    if [ "$file" = speed.events ]; then
        point "$file: no slower than it says" "$work/fast" "$file"
    else
        point "$file" "$work/play" "$file"
    fi
done
point '40,000 random operations: no disagreement with the oracle' "$work/random" 1 1000
if [ -x "$(command -v clang)" ]; then
    point 'clang has nothing to say' clang "${warnings[@]}" -fsyntax-only "$top"/check/*.c ./*.c
else
    tests=$((tests + 1))
    echo "ok $tests - clang # SKIP not installed here"
fi
