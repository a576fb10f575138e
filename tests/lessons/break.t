#!/usr/bin/env bash
# What `make break` can break is reported as its file says. Those that a README shows in a console
# block are run by tests/pages/readme.t instead.
#
#     tests/lessons/break.t [NUMBER…]     only these, also those in READMEs
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
source tests/lib.bash
export BACKEND=cpu LC_ALL=C.UTF-8
unset RANKS CPU_HOSTS CPU_DEVICES NCCL_CHECK NCCL_CPU_CLOCK
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

make -s -j2 all >/dev/null
numbers=("$@")
if [ $# -eq 0 ]; then
    numbers=()
    while read -r which sentence; do
        page=$(compgen -G "${which%?}-*/README.md") || page=common/cuda.md
        shown=$(cat "$page")
        if ! grep -qE "make break N=$which\b" <<<"$shown"; then
            echo "$which: $sentence" >>"$out/unnamed"
        fi
        grep -qE "^ *\\$ .*make break N=$which\b" <<<"$shown" || numbers+=("$which")
    done < <(common/break.sh)
fi

# Two at a time.
# shellcheck disable=SC2016 # for sh
printf '%s\n' "${numbers[@]}" |
    xargs -P 2 -I@ sh -c 'timeout 300 common/break.sh @ >"$0/@" 2>&1 && echo >"$0/@.right"' "$out" || true
for which in "${numbers[@]}"; do
    result "$([ -e "$out/$which.right" ]; echo $?)" "make break N=$which" "$out/$which"
done
touch "$out/unnamed"
point 'a README of the lesson names each' diff /dev/null "$out/unnamed"

# What does not come is missed: a file that promises what the changed program does not do.
mkdir -p "$out/00-hello/break"
cp 00-*/hello.c "$out/00-hello"
# shellcheck disable=SC2317 # point calls it
broken() { # LINE THAT THE CHANGE REMOVES, EXIT CODE, WHAT IS SAID
    printf '%s\n' 'Nothing.' 'Run: mpirun -np 1 ./hello' 'Report: NCCL CHECK: race' '' '--- hello.c' \
        '+++ hello.c' '@@ -1,1 +1,1 @@' "-$1" '+/* Nothing.' >"$out/00-hello/break/z-a.diff"
    local code=0
    LESSONS=$out timeout 300 common/break.sh 00z >"$out/said" 2>&1 || code=$?
    cat "$out/said"
    [ "$code" -eq "$2" ] && grep -qF "$3" "$out/said"
}
point 'a report that does not come is missed' broken '/*' 1 'nothing reported "NCCL CHECK: race"'
point 'a change that does not fit is told' broken 'not a line of it' 2 'does not fit 00-hello/hello.c'
# shellcheck disable=SC2317 # point calls it
unknown() { # NUMBER…: each is said not to be there
    for which; do
        ! common/break.sh "$which" >"$out/said" 2>&1 || return
        grep -qF "there is no N=$which: make break lists all" "$out/said" || return
    done
}
point 'a name that there is not' unknown 1 01z 99a 99 cuda-z a
# shellcheck disable=SC2317 # point calls it
lists() {
    diff <(for letter in a b c; do echo "04$letter  $(head -n 1 04-*/break/"$letter"-*)"; done) <(make -s break N=04) &&
        make -s break N=cuda | grep -q '^cuda-a  ' &&
        [ "$(common/break.sh | wc -l)" -eq "$(cat ./*/break/*.diff | grep -c '^Run: ')" ]
}
point 'N=04 lists what there is of lesson 04' lists
# shellcheck disable=SC2317 # point calls it
number() {
    ! common/break.sh 04.1 >"$out/said" 2>&1 && grep -qF 'N=04.1 is an exercise: make exercise N=04.1.' "$out/said"
}
point 'the number of an exercise is told from a name' number
finish
