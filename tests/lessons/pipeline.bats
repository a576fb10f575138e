#!/usr/bin/env bats
# Lesson 14: the layers are divided, the batch too; both orders learn what one process learns.

load ../lib

program=14-pipeline/pipeline
usage='[--layers L] [--width W] [--batch B] [--steps S] [--micro M] [--all-forward] [--time] [-h]'

setup_file() {
    build_lessons
}

# learns N WEIGHTS ARGUMENT…: right on N ranks, which have so many weights together.
learns() {
    all_right "$1" "$2" weights $program "${@:3}"
}

@test "every number of ranks, both orders: the weights and losses of one process" {
    learns 1 32768
    grep '^step' <<<"$out" >"$BATS_TEST_TMPDIR/alone"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/alone")" -eq 6 ]
    awk '{ if (NR > 1 && $4 >= last) exit 1; last = $4 }' "$BATS_TEST_TMPDIR/alone"
    for n in $(rank_counts); do
        for form in $(in_turn "$n" --all-forward --micro=8); do
            learns "$n" 32768 "$form"
            # Micro-batches are added up in the same order whoever has which layer.
            on_gpus || diff <(grep '^step' <<<"$out") "$BATS_TEST_TMPDIR/alone"
            grep -qx "B x W x 4 = 43008 bytes a step to each neighbour" <<<"$out"
            share=$(awk "BEGIN { printf \"%.2f\", ($n - 1) / (8 + $n - 1) }")
            grep -qx "(N-1)/(M+N-1) = $share of a step is idle, by formula" <<<"$out"
            for ((r = 0; r < n; r++)); do
                bytes=$((43008 * ((r > 0) + (r < n - 1))))
                keeps=$((n - r))
                [ "$form" = --micro=8 ] || keeps=8
                grep -qx "rank $r: layers $((8 * r / n)) to $((8 * (r + 1) / n - 1)); keeps $keeps of 8 micro-batches; sends $bytes bytes" <<<"$out"
            done
        done
    done
}

@test "one micro-batch: to the last bit" {
    for n in $(rank_counts); do
        thorough "$n" || continue
        learns "$n" 32768 --micro 1
        grep -qx 'largest difference from one process: 0, allowed 0' <<<"$out"
    done
}

@test "more micro-batches than ranks, fewer, one for each sample; layers that divide nothing" {
    for n in $(rank_counts); do
        thorough "$n" || continue
        learns "$n" 16641 --layers 9 --width 43 --batch 15 --micro 3 --steps 4
        learns "$n" 16641 --layers 9 --width 43 --batch 15 --micro 15 --steps 4 --all-forward
        grep -q 'keeps 15 of 15 micro-batches' <<<"$out"
        learns "$n" $((4 * n)) --layers "$n" --width 2 --batch 1 --micro 1 --steps 1
    done
}

@test "--time: a step, its computing, and what is idle of it; the result is right all the same" {
    for n in $(rank_counts); do
        thorough "$n" || [ "$n" -le 2 ] || continue
        learns "$n" 8192 --width 32 --time
        grep -qE '^a step [0-9.]+ ms, computing [0-9.]+ ms: -?[0-9.]+ of a step is idle, measured$' <<<"$out"
    done
    learns 1 8192 --width 32
    [ "$(grep -c measured <<<"$out")" -eq 0 ]
}

@test "--time: by the modelled clock the bubble is near that of the formula" {
    on_gpus && skip "of the CPU build"
    for form in '--micro 2' '--micro 4 --all-forward'; do
        # shellcheck disable=SC2086 # words
        MACHINE=slow-h200 modelled 3 $program --width 128 --batch 384 --steps 1 --time $form
        grep 'is idle' <<<"$out"
    done >"$BATS_TEST_TMPDIR/times"
    diff - <(grep 'is idle' "$BATS_TEST_TMPDIR/times") <<'END'
(N-1)/(M+N-1) = 0.50 of a step is idle, by formula
a step 0.564 ms, computing 0.294 ms: 0.48 of a step is idle, measured
(N-1)/(M+N-1) = 0.33 of a step is idle, by formula
a step 0.594 ms, computing 0.356 ms: 0.40 of a step is idle, measured
END
}

@test "the order of a step, and who has how many micro-batches at a time" {
    on_gpus && skip "one build is enough"
    sed 's/^        exchange(p, done, next)/        if (step == 0)\n            printf("rank %d: %c%zu\\n", p->rank, " FB"[next.way], next.micro);\n&/' \
        "$top/$program.c" >"$BATS_TEST_TMPDIR/told.c"
    build told 14-pipeline
    top=$BATS_TEST_TMPDIR ranks 5 told --micro 6 --batch 6
    for form in '0 F0F1F2F3F4B0F5B1B2B3B4B5' '1 F0F1F2F3B0F4B1F5B2B3B4B5' '4 F0B0F1B1F2B2F3B3F4B4F5B5'; do
        [ "$(sed -n "s/^rank ${form% *}: \([FB]\)/\1/p" <<<"$out" | tr -d '\n')" = "${form#* }" ]
    done
    top=$BATS_TEST_TMPDIR ranks 3 told --micro 6 --batch 6 --all-forward
    for r in 0 1 2; do
        [ "$(sed -n "s/^rank $r: \([FB]\)/\1/p" <<<"$out" | tr -d '\n')" = F0F1F2F3F4F5B0B1B2B3B4B5 ]
    done
}

@test "a step keeps the host waiting for nothing" {
    on_gpus && skip "one build is enough"
    # No more with ten steps than with one.
    {
        cat <<'END'
#include <cuda_runtime.h>
#include <stdio.h>
static int waits;
#define cudaStreamSynchronize(...) (waits++, (cudaStreamSynchronize)(__VA_ARGS__))
#define cudaMemcpy(...) (waits++, (cudaMemcpy)(__VA_ARGS__))
END
        sed 's/^    const size_t weights = network_weights(n);/    printf("rank %d waited %d times\\n", rank, waits);\n&/' "$top/$program.c"
    } >"$BATS_TEST_TMPDIR/waits.c"
    build waits 14-pipeline
    for steps in 1 10; do
        top=$BATS_TEST_TMPDIR ranks 2 waits --steps $steps
        show
        [ "$(grep -c '^rank . waited 1 times$' <<<"$out")" -eq 2 ]
    done
}

@test "wrong usage: one message, exit code 2" {
    cd "$BATS_TEST_TMPDIR"
    misuse $program "--micro 0 is less than 1" --micro 0
    misuse $program "--batch 168 does not divide into 5 micro-batches" --micro 5
    misuse $program "--batch 7 does not divide into 8 micro-batches" --batch 7
    skip_unless_ranks 2
    ranks 2 $program --layers 1
    misused $program "--layers 1 is less than one for each of 2 ranks"
    on_gpus || learns 9 36864 # a layer for each
}

# broken N SED ARGUMENT…: the lesson with something changed, on N ranks.
broken() {
    every_second
    breaks "$1" $program "${@:2}"
}

# Sends before receives, whichever way they go.
sends_first='/next.way == FORWARD &&/,/;/ { H; d; }; /done.way == BACKWARD/,/^    }/ { /^    }/G; }'

@test "send before receive, all forward first: nobody sends against anybody" {
    broken 3 "$sends_first" --all-forward
    [ "$code" -eq 0 ]
}

@test "receive before send, all forward first: deadlock where it turns" {
    broken 3 '/done.way == /,/^    }/ { H; d; }; /next.way == BACKWARD/,/;/ { /;/G; }' --all-forward --steps 1
    [ "$code" -eq 1 ]
    grep -q '^NCCL CHECK: deadlock: ranks wait for one another' <<<"$err"
}

@test "the derivative in the place of the input: the next input is sent back in its stead" {
    broken 3 's/= l > 0 ? x : p->leaving/= x/; s/ncclSend(p->leaving/ncclSend(activation(p, 0, done.micro)/'
    [ "$code" -eq 1 ]
    [[ $(tail -n 1 <<<"$out") == "FAILED: rank 0, weight "* ]]
}

@test "gradients that are not added up: wrong, and only the verdict says so" {
    broken 3 's/micro > 0, p->n.gradient/false, p->n.gradient/'
    [ "$code" -eq 1 ]
    [[ $(tail -n 1 <<<"$out") == "FAILED: rank 0, weight "* ]]
}

@test "a micro-batch that one rank makes smaller: mismatch" {
    broken 3 's/^    const size_t n = p->share \* p->n.width;/    const size_t n = p->share * p->n.width - (p->rank == 1);/'
    [ "$code" -eq 1 ]
    grep -q '^NCCL CHECK: mismatch: ' <<<"$err"
}
