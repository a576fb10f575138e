#!/usr/bin/env bash
# The judge by itself: what programs do, told as events of 1 to 8 ranks (judge/*.events), and random
# ones against an oracle. No CUDA, no MPI, no second process. ALL=yes (make test-long) has sanitizers look at all
# numbers of ranks, plays more random programs, and asks clang.
# shellcheck disable=SC2317 # point calls functions by name
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top/tests/judge"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warnings=(-std=c11 -Wall -Wextra -Werror -fvisibility=hidden -I"$top/check/judge")
events=(*.events)
source "$top/tests/lib.bash"

# The programs that play to the judge: to the one that is in the CPU build, and to the one of its
# form with sanitizers.
mkdir "$work/fast" "$work/careful"
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
fast() {
    local source
    make -s -C "$top" BACKEND=cpu cpu-flags >/dev/null
    for source in play random ranks puts; do
        "${CC:-gcc}" "${warnings[@]}" -O1 "$source.c" "$top"/build/cpu/judge.o -lpthread \
            -o "$work/fast/$source"
    done
}
fast &
make -s -C "$top" BACKEND=cpu SANITIZE=1 cpu-judge >/dev/null
"${CC:-gcc}" "${warnings[@]}" -O1 -g '-fsanitize=address,undefined' -fno-sanitize-recover=undefined \
    play.c "$top"/build/cpu-sanitize/judge.o -lpthread -o "$work/careful/play"
wait $!

# Sanitizers find on three ranks what they find on eight, in a small part of the time.
on_all_ranks() { # FILE
    if [ -n "${ALL:-}" ]; then
        "$work/careful/play" "$1"
    else
        "$work/careful/play" -n 3 "$1" && "$work/fast/play" -n 1248 "$1"
    fi
}
export work
export -f on_all_ranks
for file in "${events[@]}"; do
    if [ "$file" = speed.events ]; then
        point "$file: no slower than it says" timeout 300 "$work/fast/play" "$file"
    else
        # shellcheck disable=SC2016 # for bash
        point "$file" timeout 300 bash -c 'on_all_ranks "$1"' bash "$file"
    fi
done
point '40,000 random operations: no disagreement with the oracle' timeout 300 "$work/fast/random" 1 1000
point 'random puts, and which of them the reads come after' timeout 300 "$work/fast/puts" 1 "${ALL:+2}1000"
programs=${ALL:+600}
programs=${programs:-150}
point "$programs random programs of several ranks, each right and with seven mistakes" timeout 300 "$work/fast/ranks" 1 "$programs"
catalogue() {
    "$top/check/findings.pl" | diff - "$top/check/findings.md"
}
export top
export -f catalogue
point 'check/findings.md is what check/findings.pl makes' timeout 300 bash -c catalogue
if [ -n "${ALL:-}" ] && [ -x "$(command -v clang)" ]; then
    point 'clang has nothing to say' timeout 300 clang "${warnings[@]}" -fsyntax-only \
        "$top"/check/judge/*.c "$top"/check/judge/*/*.c ./*.c
else
    skipped clang "make test-long, or not installed here"
fi
finish
