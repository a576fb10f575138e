#!/usr/bin/env bats
# Lesson 10: every number of ranks learns what one process learns, and says so if not.

load common

program=10-data-parallel/data_parallel
usage='[--layers L] [--width W] [--batch B] [--steps S] [-h]' # for misused

setup_file() {
    build_lessons
}

# learns N WEIGHTS ARGUMENT…: right on N ranks, each with so many weights.
learns() {
    local n=$1 weights=$2
    shift 2
    echo "$n ranks $*"
    ranks "$n" $program "$@"
    expect 0 "OK: $(plural "$n"), all $((n * weights)) weights as expected"
    [ -z "$err" ]
}

@test "every number of ranks: the weights of one process, and the same losses" {
    learns 1 16384
    grep -qx 'weights beside those of one process: at most 0 apart, allowed 0' <<<"$out"
    grep '^step' <<<"$out" >"$BATS_TEST_TMPDIR/alone"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/alone")" -eq 6 ]
    awk '{ if (NR > 1 && $4 >= last) exit 1; last = $4 }' "$BATS_TEST_TMPDIR/alone"
    for n in $(rank_counts); do
        learns "$n" 16384
        paste <(grep '^step' <<<"$out") "$BATS_TEST_TMPDIR/alone" |
            awk '{ d = $4 - $8; if (d > 1e-4 || d < -1e-4 || $2 != $6) exit 1 }'
        grep -qx 'a rank all-reduces  65536 bytes a step, counted; L x W x W x 4 = 65536' <<<"$out"
    done
}

@test "one layer, one sample a rank, one step; layers and widths that divide nothing" {
    for n in $(rank_counts); do
        learns "$n" 4 --layers 1 --width 2 --batch "$n" --steps 1
        thorough "$n" || continue
        learns "$n" 5547 --layers 3 --width 43 --batch $((11 * n)) --steps 4
        grep -qx 'a rank all-reduces  22188 bytes a step, counted; L x W x W x 4 = 22188' <<<"$out"
    done
}

@test "more ranks than divide the usual batch: the next batch that they do divide" {
    on_gpus && skip "more ranks than GPUs"
    learns 5 16384
    learns 16 16384 --steps 2
}

@test "wrong usage: one message, exit code 2" {
    cd "$BATS_TEST_TMPDIR"
    misuse $program "--layers 65 is more than 64" --layers 65
    misuse $program "--width 1 is less than 2" --width 1
    misuse $program "--steps 0 is less than 1" --steps 0
    misuse $program "unknown argument 7" 7
    skip_unless_ranks 2
    ranks 2 $program --batch 7
    misused $program "--batch 7 does not divide among 2 ranks"
    ranks 2 $program -h
    [ "$code" -eq 0 ]
    [ "$(grep -c '^usage: ' <<<"$out")" -eq 1 ]
}

# broken SED: the lesson with something changed, on 3 ranks.
broken() {
    on_gpus && skip "one build is enough"
    sed "$1" "$top/$program.c" >"$BATS_TEST_TMPDIR/broken.c"
    [ "$(cat "$BATS_TEST_TMPDIR/broken.c")" != "$(cat "$top/$program.c")" ]
    build broken
    top=$BATS_TEST_TMPDIR ranks 3 broken
    show
    [ "$code" -eq 1 ]
}

differ='of the weights differ'

@test "without the broadcast the ranks' copies differ before the first step" {
    broken '/ncclBroadcast/ s|^|//|'
    grep -q "$differ before the first step" <<<"$err"
}

@test "without the average the copies differ after the last step" {
    broken '/ncclAllReduce(g/ s|^|//|'
    grep -q "$differ after the last step" <<<"$err"
}

@test "one bit of one weight on one rank: the copies differ" {
    broken 's|^    network_print_losses|    if (rank == 1) cudaMemset(all + 99, 1, 1);\n&|'
    grep -q "$differ after the last step" <<<"$err"
}

@test "layers in another order on one rank: no call differs, but the copies do" {
    broken 's|float \*g = n.gradient\[l\]|float *g = n.gradient[rank == 1 ? n.layers - 1 - l : l]|'
    grep -q "$differ after the last step" <<<"$err"
}

@test "the sum in place of the mean: all the same, and all wrong" {
    broken 's/ncclAvg/ncclSum/'
    [[ $(tail -n 1 <<<"$out") == "FAILED: rank 0, weight 0 is "* ]]
}

@test "all ranks take the first share of the batch: all the same, and all wrong" {
    broken 's/step \* n.batch + rank \* share/step * n.batch/'
    [[ $(tail -n 1 <<<"$out") == "FAILED: rank 0, weight 0 is "* ]]
}

@test "cuBLAS in the default stream: race" {
    broken '/cublasSetStream/ s|^|//|'
    grep -q '^NCCL CHECK: race: ' <<<"$err"
}

@test "one rank averages one weight less: mismatch" {
    broken 's/(g, g, layer,/(g, g, layer - (rank == 1),/'
    grep -q '^NCCL CHECK: mismatch: the ranks give different counts' <<<"$err"
}
