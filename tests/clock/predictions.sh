#!/usr/bin/env bash
# The table of cpu/README.md: what the modelled clock predicts for compositions, beside what 4 H200
# took (results/). Exit code 1 if one is further off than it may be.
#     tests/clock/predictions.sh PROGRAM      the program is compositions.c, built for the CPU build
set -euo pipefail

program=$1
results=$(cd "$(dirname "$0")/../../results" && pwd)
export NCCL_CPU_CLOCK=h200

# ms of the ring on so many bytes, with these options
ring() {
    awk -v elements=$(($1 / 4)) -v options="$2" '
        /^\$/ { at = $0 ~ ("ring[a-z_]* -n " elements " --time" options "$") }
        at && /^ring/ { for (i = 2; i <= NF; i++) if ($i == "ms,") print $(i - 1) }' "$results/ring.txt"
}

# ms of PyTorch's two calls
torch() {
    awk -v name="$2" -v bytes="$1" '$1 == name && $2 == bytes { print $4 / 1000 }' "$results/pytorch.txt"
}

# row TEXT NAME BYTES MEASURED PERCENT: a line of the table; the prediction may be so far off, or
# with -, is only shown.
off=0
row() {
    local text=$1 name=$2 bytes=$3 measured=$4 may=$5
    local line
    line=$(mpirun --oversubscribe -np 4 "$program" "$name" "$bytes" | awk -v name="$name" \
        -v text="$text" -v measured="$measured" -v may="$may" '$1 == name {
            d = ($3 / measured - 1) * 100
            printf "| %s | %.3f ms | %.3f ms | %+.0f %% | %s |\n", text, measured, $3, d,
                may == "-" ? "" : may " %"
            exit may != "-" && (d > may || -d > may) }') || off=1
    [ -n "$line" ] || off=1
    echo "$line"
}

MiB=$((1024 * 1024))
echo '| 4 H200 | measured | predicted | | at most |'
echo '| --- | --- | --- | --- | --- |'
for size in 1 64 1024; do
    label="$size MiB"
    [ $size -lt 1024 ] || label='1 GiB'
    row "plain ring, $label" ring $((size * MiB)) "$(ring $((size * MiB)) '')" 20
done
row 'pipelined ring, 1 MiB' ring_pipelined $MiB "$(ring $MiB ' --pipelined')" -
row 'pipelined ring, 64 MiB' ring_pipelined $((64 * MiB)) "$(ring $((64 * MiB)) ' --pipelined')" -
row 'pipelined ring, 1 GiB' ring_pipelined $((1024 * MiB)) "$(ring $((1024 * MiB)) ' --pipelined')" 20
row 'reduce + broadcast, 256 MiB' reduce_broadcast $((256 * MiB)) \
    "$(torch $((256 * MiB)) reduce_broadcast)" 15
row 'reduce-scatter + all-gather, 256 MiB' reduce_scatter_all_gather $((256 * MiB)) \
    "$(torch $((256 * MiB)) reduce_scatter_all_gather)" 15
# 2 H200; 07-peer-to-peer
row 'copy of 400 MB to another GPU, peer access' copy_peer 400000000 1.01 10
row 'the same through the host' copy_staged 400000000 10.55 10
exit $off
