#!/usr/bin/env bats
# Lesson 12: weights, gradients and momentum in shards; the same weights in the end.

load ../lib

program=12-sharded/sharded
usage='[--layers L] [--width W] [--batch B] [--steps S] [--stage STAGE] [--time] [-h]'

setup_file() {
    build_lessons
}

# learns N STAGE L W ARGUMENT…: right on N ranks, with the bytes that the formulas say.
learns() {
    local n=$1 stage=$2 layers=$3 width=$4
    local shard=$(((width * width + n - 1) / n)) passes=$((stage < 3 ? 2 : 3)) s measured
    shift 4
    all_right "$n" $((n * layers * width * width)) weights $program \
        --stage "$stage" --layers "$layers" --width "$width" "$@"
    # In units of one number of each shard: what is divided once, what is not N times.
    for s in 0 1 2 3; do
        kept=$((4 * layers * shard * ((s < 3 ? n : 1) + (s < 2 ? n : 1) + (s < 1 ? n : 1))))
        grep -qE "^stage $s: a rank keeps +$kept bytes" <<<"$out"
        [ "$s" -ne "$stage" ] || measured=$((kept + 4 * 2 * (stage - 1) * n * shard))
    done
    grep -qE "^this is stage $stage: +$measured bytes allocated, $((8 * (stage - 1) * n * shard)) of them for whole layers$" <<<"$out"
    s=$((4 * layers * (n - 1) * shard))
    grep -qxF "a rank sends $((passes * s)) bytes a step, counted; $passes x L x (N - 1) shards = $((passes * s)); lesson 10: $((2 * s))" <<<"$out"
}

@test "every number of ranks and stage: the weights of one process, and lesson 10's losses" {
    ranks 1 10-data-parallel/data_parallel
    grep '^step' <<<"$out" >"$BATS_TEST_TMPDIR/lesson-10"
    for n in $(rank_counts); do
        for stage in $(in_turn "$n" 3 1 2); do
            learns "$n" "$stage" 4 64
            paste <(grep '^step' <<<"$out") "$BATS_TEST_TMPDIR/lesson-10" |
                awk '{ d = $4 - $8; if (d > 1e-4 || d < -1e-4 || $2 != $6) exit 1 }'
        done
    done
}

@test "on one rank: bit for bit" {
    for stage in 1 2 3; do
        learns 1 $stage 3 33
        grep -qx 'largest difference from one process: 0, allowed 0' <<<"$out"
    done
}

@test "one layer, two, three; shards that are filled up; ranks that have nothing but filling" {
    for n in $(rank_counts); do
        thorough "$n" || continue
        learns "$n" 3 1 2 --batch "$n" --steps 2
        learns "$n" 3 2 5 --batch "$n" --steps 2
        learns "$n" 2 3 43 --batch $((3 * n)) --steps 3
        learns "$n" 1 3 43 --batch $((3 * n)) --steps 3
    done
}

@test "--time: two times and their ratio; the result is right all the same" {
    for n in 1 2; do
        rank_counts | grep -qx $n || continue
        learns $n 3 3 16 --time
        grep -qE '^computing only +[0-9]+\.[0-9]+ ms a step$' <<<"$out"
        grep -qE '^both +[0-9]+\.[0-9]+ ms, [0-9.]+ of computing only$' <<<"$out"
    done
    learns 1 3 3 16
    [ "$(grep -cE '^(computing|both)' <<<"$out")" -eq 0 ]
}

@test "--time: what the modelled clock says" {
    on_gpus && skip "of the CPU build"
    modelled 4 $program --time
    diff - <(grep -E '^(computing|both)' <<<"$out") <<'END'
computing only       0.075 ms a step
both                 0.137 ms, 1.842 of computing only
END
}

@test "what a step queues: weights ahead of their layer, gradients at once, the host never waits" {
    on_gpus && skip "one build is enough"
    {
        cat <<'END'
#include <cublas_v2.h>
#include <nccl.h>
#include <stdio.h>
static int noting;
#define NOTE(letter) (void)(noting && printf(letter))
#define noted_network_forward NOTE("f"), network_forward
#define noted_network_gradient NOTE("g"), network_gradient
#define noted_network_backward NOTE("b"), network_backward
#define noted_network_update NOTE("u"), network_update
#define noted_ncclAllGather NOTE("A"), ncclAllGather
#define noted_ncclReduceScatter NOTE("R"), ncclReduceScatter
END
        sed -E 's/(ncclAllGather|ncclReduceScatter|network_(forward|gradient|backward|update))\(/noted_\1(/
            s/^( *)train\(&t, step\);/\1noting = step == 0 \&\& rank == 0; train(\&t, step); if (noting) puts(""); noting = 0;/' \
            "$top/$program.c" |
            awk '{ print } /include "network.h"/ {
                for (i = split("cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize cudaMemcpy", n, " "); i; i--)
                    print "#define " n[i] "(...) (NOTE(\"!\"), " n[i] "(__VA_ARGS__))" }'
    } >"$BATS_TEST_TMPDIR/noted.c"
    build noted 12-sharded
    top=$BATS_TEST_TMPDIR ranks 2 noted --layers 3
    show
    [ "$code" -eq 0 ]
    grep -qx 'AAfAfAfAgRbAgRbgRuuu' <<<"$out"
    top=$BATS_TEST_TMPDIR ranks 2 noted --layers 3 --stage 2
    grep -qx 'AAfAffgRbgRbgRuuu' <<<"$out"
}

@test "wrong usage, and too little memory" {
    cd "$BATS_TEST_TMPDIR"
    misuse $program "--stage 0 is less than 1" --stage 0
    misuse $program "--stage 4 is more than 3" --stage 4
    on_gpus && return
    ranks 1 $program --layers 64 --width 4096 --batch 16M
    show
    [ "$code" -eq 1 ]
    grep -q 'the network needs .* GB of GPU memory' <<<"$err"
}

# broken SED [ARGUMENT…]: the lesson with something changed, on 3 ranks.
broken() {
    every_second
    breaks 3 $program "$@"
    [ "$code" -eq 1 ]
}

race='^NCCL CHECK: race: two streams use one buffer with no event between'

@test "the same in the backward pass: race" {
    broken '/scatter(t, l);/,/GATHERED/ s|wait_for|// &|'
    grep -q "$race" <<<"$err"
}

@test "weights that come while others are in their place: race" {
    # What was computed with is handed over once, at the beginning of a step.
    broken '/so the place is free/ s|^|    if (use == 0)\n|'
    grep -q "$race" <<<"$err"
}

@test "a gradient that leaves before it is there: race" {
    broken '/so the gradient is computed/ s|hand_over|// &|'
    grep -q "$race" <<<"$err"
}

@test "an update that does not wait for the shards: race" {
    broken '/^    wait_for(t, SCATTERED)/ s|^|//|'
    grep -q "$race" <<<"$err"
}

@test "one rank leaves one reduce-scatter out: mismatch" {
    broken 's/^        scatter(t, l);/        if (t->rank != 1 || l != 2) scatter(t, l);/'
    grep -q '^NCCL CHECK: mismatch: the ranks call different operations' <<<"$err"
}

@test "updated with the gradient of its own samples only: FAILED" {
    broken 's/n->gradient\[l\],$/gradients(t, l) + t->rank * t->shard,/'
    [[ $(tail -n 1 <<<"$out") == "FAILED: rank 0, weight "* ]]
}

@test "one bit of one gathered copy: the copies differ" {
    broken 's|^#include "model.h"|#define network_print_losses(n) (((char *)host)[99] ^= t->rank == 1, (network_print_losses)(n))\n&|'
    grep -q 'of the weights differ after the last step' <<<"$err"
}
