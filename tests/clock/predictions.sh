#!/usr/bin/env bash
# The table of cpu/clock.md: what the modelled clock predicts for compositions, beside what 4 H200
# took (measured.txt). Exit code 1 if one is further off than it may be.
#     tests/clock/predictions.sh PROGRAM      the program is compositions.c, built for the CPU build
#     MOST=400 tests/clock/predictions.sh …   only those of at most so many MiB
set -euo pipefail

program=$1
cd "$(dirname "$0")"
export NCCL_CPU_CLOCK=h200

# row TEXT NAME BYTES PERCENT [RANKS]: a line of the table; the prediction may be so far off, or with -, is
# only shown.
texts=() names=() sizes=() measured=() bounds=() ranks=()
row() {
    [ "$3" -le $((${MOST:-1024} * 1024 * 1024)) ] || return 0
    texts+=("$1") names+=("$2") sizes+=("$3") bounds+=("$4") ranks+=("${5:-4}")
    measured+=("$(awk -v row="$2 $3 ${5:-4}" '$1 " " $2 " " $3 == row { print $4 }' measured.txt)")
}

MiB=$((1024 * 1024))
for size in 1 64 1024; do
    label="$size MiB"
    [ $size -lt 1024 ] || label='1 GiB'
    row "plain ring, $label" ring $((size * MiB)) 20
done
row 'pipelined ring, 1 MiB' ring_pipelined $MiB -
row 'pipelined ring, 64 MiB' ring_pipelined $((64 * MiB)) -
row 'pipelined ring, 1 GiB' ring_pipelined $((1024 * MiB)) 20
for size in 256 1024; do
    label="$size MiB"
    [ $size -lt 1024 ] || label='1 GiB'
    row "reduce + broadcast, $label" reduce_broadcast $((size * MiB)) 15
    row "reduce-scatter + all-gather, $label" reduce_scatter_all_gather $((size * MiB)) 15
done
for size in 1 16 64 256; do
    bound=15
    [ $size -gt 16 ] || bound=-
    row "2 H200: reduce + broadcast, $size MiB" reduce_broadcast $((size * MiB)) $bound 2
    row "2 H200: reduce-scatter + all-gather, $size MiB" reduce_scatter_all_gather $((size * MiB)) 15 2
done
# One process with two GPUs
row '2 H200: copy of 400 MB to another GPU, through the host' copy_staged 400000000 \
    10 1
row 'the same with peer access' copy_peer 400000000 10 1

predicted=$(for n in 4 2 1; do
    some=()
    for i in "${!names[@]}"; do
        [ "${ranks[i]}" != $n ] || some+=("${names[i]}" "${sizes[i]}")
    done
    devices=()
    [ $n -gt 1 ] || devices=(env CPU_DEVICES=2)
    "${devices[@]}" mpirun --oversubscribe -np $n "$program" "${some[@]}" | sed "s/^/$n /"
done)

off=0
echo '| 4 H200 | measured | predicted | | at most |'
echo '| --- | --- | --- | --- | --- |'
for i in "${!names[@]}"; do
    awk -v n="${ranks[i]}" -v name="${names[i]}" -v bytes="${sizes[i]}" -v text="${texts[i]}" \
        -v measured="${measured[i]}" -v may="${bounds[i]}" '
        $1 == n && $2 == name && $3 == bytes {
            d = ($4 / measured - 1) * 100
            off_by = sprintf("%+.0f", d)
            sub(/^[-+]0$/, "0", off_by)
            printf "| %s | %.3f ms | %.3f ms | %s %% | %s |\n", text, measured, $4, off_by,
                may == "-" ? "" : may " %"
            seen = 1
            off = may != "-" && (d > may || -d > may)
        }
        END { exit !seen || off }' <<<"$predicted" || off=1
done
exit $off
