#!/usr/bin/env bats
# Lesson 25: your own kernels between NCCL's calls. It is left out where there is no compiler for kernels.

load ../lib

program=25-kernels/kernels

setup_file() {
    build_lessons
}

setup() {
    [ -x "$top/$program" ] || skip 'no compiler for kernels'
}

@test "every number of ranks: the steps of one stream, of one kernel more, and of chunks" {
    for n in $(rank_counts); do
        all_right "$n" $((3 * 1001 * n)) elements $program -n 1001 --chunks "$(in_turn "$n" 1 3 7 64)"
        command grep -qx '2048 threads in a block: invalid argument' "$BATS_TEST_TMPDIR/out"
    done
}

@test "modelled: fusing two kernels pays, and chunks hide the all-reduce behind a kernel" {
    on_gpus && return
    CPU_KERNEL_BYTES=64 NCCL_CPU_CLOCK=h200 ranks 2 $program -n 4194304
    command grep -E 'us$' "$BATS_TEST_TMPDIR/out" >"$BATS_TEST_TMPDIR/times"
    awk '{ t[NR] = $(NF - 1) } END { exit !(NR == 3 && t[2] > 1.2 * t[1] && t[3] < 0.9 * t[1]) }' "$BATS_TEST_TMPDIR/times"
}
