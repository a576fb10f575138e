#!/usr/bin/env bats
# Lesson 09: the ring in pieces and lanes.

load ../lib

ring=09-pipelined-ring/pipelined_ring
usage='[-n COUNT] ' # for misused

setup_file() {
    build_lessons
}

# sums N COUNT ARGUMENT…: the ring's elements are all right.
sums() {
    all_right "$1" $(($1 * $2)) elements $ring -n "$2" "${@:3}"
}

@test "every number of ranks, pieces of none, one and many elements" {
    for n in $(rank_counts); do
        for form in $(in_turn "$n" 1003:3 5:4 1003:1); do
            sums "$n" "${form%:*}" --pieces "${form#*:}"
        done
    done
    sums 1 1003 --pieces 16
    skip_unless_ranks 3
    sums 3 1003 --pieces 16
    sums 3 100003 # large pieces begin at multiples of 128 bytes
}

@test "the whole output" {
    skip_unless_ranks 2
    ranks 2 $ring -n 2
    expect 0 "OK: 2 ranks, all 4 elements as expected"
    [ "$(grep ':$' <<<"$out" | tr '\n' ' ')" = \
        "Before ring all-reduce: After ring all-reduce: " ]
    [ "$(grep -c '^GPU [01]  | 11 | 22 |$' <<<"$out")" -eq 2 ]
    ranks 2 $ring
    expect 0 "OK: 2 ranks, all 16 elements as expected"
}

@test "24 ranks" {
    on_gpus && skip "more ranks than GPUs"
    long
    sums 24 300
}

@test "--time: two times and their ratio, no tables" {
    for n in $(rank_counts); do
        thorough "$n" || [ "$n" -le 2 ] || continue
        sums "$n" 168 --time --pieces $((1 + n % 2))
        grep -qx "$(plural "$n"), D = 672 bytes" <<<"$out"
        grep -qE "^ring, in (1 piece|2 pieces) +[0-9.]+ ms, bus bandwidth [0-9.]+ GB/s$" <<<"$out"
        grep -qE "^ncclAllReduce +[0-9.]+ ms, bus bandwidth [0-9.]+ GB/s$" <<<"$out"
        grep -qE "^ratio +[0-9.]+ of ncclAllReduce's bandwidth$" <<<"$out"
        [ "$(grep -c '^GPU' <<<"$out")" -eq 0 ]
    done
}

@test "--time: by the modelled clock the same digits on every run" {
    on_gpus && skip "of the CPU build"
    modelled 2 $ring -n 256K --time
    diff - <(echo "$out") <<'END'
2 ranks, D = 1048576 bytes
ring, in 4 pieces  0.079 ms, bus bandwidth 13.28 GB/s
ncclAllReduce      0.015 ms, bus bandwidth 68.40 GB/s
ratio              0.194 of ncclAllReduce's bandwidth
OK: 2 ranks, all 524288 elements as expected
END
}

@test "pieces: none is left out, none overlaps; large ones begin at multiples of 128 bytes" {
    on_gpus && skip "of both builds"
    cat >"$BATS_TEST_TMPDIR/pieces.c" <<END
#define main lesson_main
#include "$top/$ring.c"
#undef main

int main(void) {
    const size_t counts[] = {1, 5, 1003, 99999, 1000003};
    int bad = 0, large = 0;
    for (int i = 0; i < 5; i++)
        for (int nranks = 1; nranks <= 9; nranks++)
            for (int pieces = 1; pieces <= 5; pieces++) {
                struct ring r = {.nranks = nranks, .pieces = pieces, .count = counts[i]};
                size_t at = 0;
                for (int k = 0; k < nranks * pieces; k++) {
                    struct part p = part_of(&r, k / pieces - nranks, k % pieces);
                    bad += p.first != at;
                    if (counts[i] / (size_t)(nranks * pieces) >= 1024) {
                        large++;
                        bad += p.first * sizeof(float) % 128 != 0;
                    }
                    at += p.count;
                }
                bad += at != counts[i];
            }
    printf("large: %d, bad: %d\\n", large > 0, bad);
}
END
    build pieces 09-pipelined-ring
    top=$BATS_TEST_TMPDIR ranks 1 pieces
    [ "$out" = "large: 1, bad: 0" ]
}

@test "wrong usage: one message, exit code 2" {
    cd "$BATS_TEST_TMPDIR"
    misuse $ring "--pieces 17 is more than 16" --pieces 17
    misuse $ring "--pieces 0 is less than 1" -n 7 --pieces 0
    misuse $ring "--pieces needs a number" --pieces
    misuse $ring "unknown option --pipelined" --pipelined
}

@test "too little memory" {
    ranks 1 $ring -n 900000000000
    show
    [ "$code" -eq 1 ]
    grep -q 'the buffers need 7200 GB of GPU memory' <<<"$err"
    grep -q 'choose a smaller -n' <<<"$err"
}

# broken SED ARGUMENT…: the lesson with something changed, on 4 ranks.
broken() {
    every_second
    breaks 4 $ring "$@"
    [ "$code" -eq 1 ]
}

@test "an addition that does not wait for its piece: race" {
    broken '/WaitEvent(r->adding/ s|^|//|'
    grep -q '^NCCL CHECK: race: ' <<<"$err"
}

@test "lanes that do not wait for the buffers, or are not waited for: race" {
    broken 's/cudaStreamWaitEvent(r->lanes.l..stream, r->begin, 0)/cudaSuccess/'
    grep -q '^NCCL CHECK: race: ' <<<"$err"
    grep -q 'cudaMemcpyAsync at broken.c:' <<<"$err"
    broken '/WaitEvent(r->stream, r->lanes/ s|^|//|'
    grep -q '^NCCL CHECK: race: ' <<<"$err"
}

@test "a wrong piece: FAILED" {
    broken 's/rank - step - 1/rank - step - 2/'
    [[ $(tail -n 1 <<<"$out") == "FAILED: rank 0, element 0 is "*", expected 1111 (and "* ]]
}
