#!/usr/bin/env bash
# Lessons 11 to 15 on more and more GPUs of Leonardo, on the modelled clock, as a table:
#
#     results/measure/scaling.sh [GPUS…]      4 8 16 32 64 if nothing is said: about five minutes
#
# On a machine with a hundredth of Leonardo's arithmetic (cpu/machines/slow-leonardo.conf), so that a
# network of 128 x 128 is to it what a large one is to the real one. Every GPU has as many samples,
# however many GPUs there are. The same digits on every run.
set -euo pipefail

course=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$course"
export LC_ALL=C.UTF-8 BACKEND=cpu NCCL_CPU_CLOCK=slow-leonardo
source common/one-machine.sh
unset CPU_DEVICES CPU_HOSTS MAKEFLAGS MFLAGS MAKELEVEL
make -s BACKEND=cpu all >&2

# lesson N PROGRAM ARGUMENT…: what it prints; it must end well.
lesson() {
    local n=$1
    shift
    timeout 300 mpirun -np "$n" "$@" --time >"$said" 2>&1 || { cat "$said" >&2; exit 1; }
}

# The word of that number in the first line that begins so.
word() { # LINE NUMBER
    awk -v line="$1" -v number="$2" 'index($0, line) == 1 { sub(/,$/, "", $number); print $number; exit }' "$said"
}

said=$(mktemp)
trap 'rm -f "$said"' EXIT
# shellcheck disable=SC2016 # Markdown
echo '| GPUs | nodes | 11, `--bucket all` | 11 | hidden | 12 | 13, counts first | 13, padded | 14 | (N−1)/(M+N−1) | 15 | 15, `--apart` |'
echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |'
[ $# -gt 0 ] || set -- 4 8 16 32 64
for gpus in "$@"; do
    model="--layers 8 --width 128 --batch $((64 * gpus)) --steps 2"
    row="| $gpus | $(((gpus + 3) / 4))"
    # shellcheck disable=SC2086 # words
    {
        lesson "$gpus" 11-overlap/overlap $model --bucket all
        row+=" | $(word both 4)"
        lesson "$gpus" 11-overlap/overlap $model
        row+=" | $(word both 4) | $(word hidden 2)"
        lesson "$gpus" 12-sharded/sharded $model
        row+=" | $(word both 4)"
        lesson "$gpus" 13-experts/experts --layers 2 --width 128 --batch $((64 * gpus)) --steps 1 --load even
        row+=" | $(word 'counts first' 3) ms | $(word padded 2) ms"
        lesson "$gpus" 14-pipeline/pipeline --layers 64 --width 64 --batch 4096 --micro 64 --steps 1
        row+=" | $(word 'a step' 8) | $(awk -v n="$gpus" 'BEGIN { printf "%.2f", (n - 1) / (63 + n) }')"
        lesson "$gpus" 15-grid/grid $model --columns 4
        row+=" | $(word 'with the columns' 4) ms"
        lesson "$gpus" 15-grid/grid $model --columns 4 --apart
        row+=" | $(word 'with the columns' 4) ms |"
    }
    echo "$row"
done
