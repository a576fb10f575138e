#!/usr/bin/env bats
# Lesson 13: tokens go to the rank of their expert and come back, however many there are.

load ../lib

program=13-experts/experts
usage='[--layers L] [--width W] [--batch B] [--steps S] [--load LOAD] [--capacity C] [--time] [-h]'

setup_file() {
    build_lessons
}

# learns N WEIGHTS ARGUMENT…: right on N ranks, each with so many weights.
learns() {
    all_right "$1" $(($1 * $2)) weights $program "${@:3}"
    grep -qE '^all [0-9]+ tokens are back in their places, with the right values$' <<<"$out"
}

# computes FEWEST MOST: tokens in a layer of an expert. dropped COUNT OF. sends BYTES.
computes() {
    grep -qE "^an expert computes $1 to $2 tokens in a layer; " <<<"$out"
}
dropped() {
    grep -qE "; dropped: $1 of $2$" <<<"$out"
}
sends() {
    grep -qE "^all ranks send $1 bytes a step, counted; \(4 L - 1\) x .* x W x 4 = $1$" <<<"$out"
}

@test "every number of ranks and every load: what one process gets" {
    for n in $(rank_counts); do
        for load in $(in_turn "$n" even,one uneven even one empty); do
            learns "$n" 16384 --load "$load"
            grep -qx 'largest difference from one process: [0-9.e-]*, allowed 1.5e-05' <<<"$out"
            dropped 0 6720
            sends 645120
            # (Each step has other tokens, so that it need not fall each time.)
            grep '^step' <<<"$out" | awk 'NR == 1 { first = $4 } END { exit !($4 < 0.8 * first) }'
            case $load in
            empty) computes 0 '[1-9][0-9]*' ;;
            one) computes 0 168 ;;
            uneven) [ "$n" -eq 1 ] || grep '^an expert' <<<"$out" | awk '{ exit !(2 * $4 < $6) }' ;;
            esac
            [ "$n" -gt 1 ] || break # one rank has one expert for all
        done
    done
}

@test "one rank has one expert, and all tokens choose it: lesson 10's losses" {
    ranks 1 10-data-parallel/data_parallel
    losses=$(grep '^step' <<<"$out")
    learns 1 16384
    computes 168 168
    [ "$(grep '^step' <<<"$out")" = "$losses" ]
}

@test "few tokens, one layer, widths that divide nothing" {
    for n in $(rank_counts); do
        thorough "$n" || continue
        learns "$n" 4 --layers 1 --width 2 --batch "$n" --steps 3
        sends $((3 * n * 2 * 4))
        learns "$n" 3698 --layers 2 --width 43 --batch $((5 * n)) --steps 3
        sends $((7 * 5 * n * 43 * 4))
    done
}

@test "an even load is even" {
    for n in $(rank_counts); do
        thorough "$n" || continue
        learns "$n" 512 --layers 2 --width 16 --batch $((3 * n * n)) --load even
        computes $((3 * n)) $((3 * n))
    done
}

@test "a capacity: what is above it is dropped, and skips the layer" {
    for n in $(rank_counts); do
        thorough "$n" || continue
        # Three tokens of each rank for each expert, in two places.
        learns "$n" 512 --layers 2 --width 16 --batch $((3 * n * n)) --load even --capacity 2
        computes $((2 * n)) $((2 * n))
        dropped $((n * n * 2 * 10)) $((3 * n * n * 2 * 10))
        sends $((7 * n * n * 2 * 16 * 4))
        learns "$n" 16384 --capacity 5
        learns "$n" 16384 --capacity 7 --load one
    done
    dropped '[1-9][0-9]*' 6720
}

@test "a capacity that is large enough drops nothing: the same losses" {
    n=$(rank_counts | awk '$1 <= 3' | tail -n 1)
    learns "$n" 16384
    losses=$(grep '^step' <<<"$out")
    learns "$n" 16384 --capacity $((168 / n))
    dropped 0 6720
    paste <(grep '^step' <<<"$out") <(echo "$losses") |
        awk '{ d = $4 - $8; if (d > 1e-4 || d < -1e-4 || $2 != $6) exit 1 }'
}

@test "--time: both ways, their ratio, their bytes" {
    for n in 1 2; do
        rank_counts | grep -qx $n || continue
        learns $n 16384 --time --load even
        grep -qE "^counts first +[0-9]+\.[0-9]{3} ms a layer, there and back; all ranks send 86016 bytes$" <<<"$out"
        c=$((168 / n / n))
        grep -qE "^padded +[0-9]+\.[0-9]{3} ms, [0-9.]+ of that; capacity $c, so 86016 bytes$" <<<"$out"
        learns $n 16384 --time --capacity 3
        grep -qE "; capacity 3, so $((n * n * 3 * 512)) bytes$" <<<"$out"
    done
    learns 1 16384
    [ "$(grep -cE '^(counts|padded)' <<<"$out")" -eq 0 ]
}

@test "--time: what the modelled clock says: to ask first costs a wait of the host" {
    on_gpus && skip "of the CPU build"
    modelled 4 $program --time
    diff - <(grep -E '^(counts|padded)' <<<"$out") <<'END'
counts first     0.039 ms a layer, there and back; all ranks send 86016 bytes
padded           0.017 ms, 0.436 of that; capacity 29, so 237568 bytes
END
}

@test "wrong usage: one message, exit code 2" {
    cd "$BATS_TEST_TMPDIR"
    misuse $program "--load full is none of its values" --load full
    misuse $program "--capacity -1 is less than 0" --capacity -1
    skip_unless_ranks 2
    ranks 2 $program --batch 7
    misused $program "--batch 7 does not divide among 2 ranks"
}

# broken SED [ARGUMENT…]: the lesson with something changed, on 3 ranks.
broken() {
    every_second
    breaks 3 $program "$@"
    [ "$code" -eq 1 ]
}

tokens='numbers of the 168 tokens are not what their experts make of them'

@test "sends without a group: NCCL refuses the one to oneself" {
    broken '/ncclGroup/ s|CHECK_NCCL|// &|'
    grep -q '^rank [0-9]* on .*: ncclSend(.* failed at broken.c:' <<<"$err"
    grep -q 'a send to oneself, or a receive from oneself, without the other half' <<<"$err"
}

@test "one rank has another capacity: mismatch" {
    broken 's/^    allocate(&t);/    t.capacity += rank == 1;\n&/' --capacity 5
    grep -q '^NCCL CHECK: mismatch: ' <<<"$err"
}

@test "an empty expert whose receive is not left out: NCCL refuses that from oneself" {
    broken 's/if (in\[peer\] > 0)/if (in[peer] > 0 || t->rank == 1)/' --load one
    grep -q '^rank 1 on .*: ncclGroupEnd() failed at broken.c:' <<<"$err"
    grep -q 'a send to oneself, or a receive from oneself, without the other half' <<<"$err"
}

@test "the way back with the counts of the way there: no call differs, but the tokens do" {
    broken 's/exchange(t, y, t->come\[l\], t->leaving, t->leave\[l\])/exchange(t, y, t->leave[l], t->leaving, t->come[l])/'
    grep -q "$tokens" <<<"$err"
}

@test "two tokens that change places on the way: the tokens differ" {
    broken 's/^    to_places(t, l, t->n.activation\[l\]);/&\n    size_t *place = t->place[l], p = place[3]; place[3] = place[4]; place[4] = p;/'
    grep -q "$tokens" <<<"$err"
}

@test "places that nobody takes, and what was there before in them: the tokens differ" {
    broken 's|^#include "places.h".*|#define cudaMemsetAsync(...) cudaSuccess\n&\n#undef cudaMemsetAsync|' --capacity 14
    grep -q "$tokens" <<<"$err"
}

@test "dropped tokens that come back as zeros: the tokens differ" {
    broken 's/from_places(t, l, t->n.activation\[l + 1\], t->n.activation\[l\])/from_places(t, l, t->n.activation[l + 1], y)/' --capacity 5
    grep -q "$tokens" <<<"$err"
}

@test "an expert without tokens keeps an old gradient: FAILED" {
    broken 's/if (coming == 0)/if (coming == 0 \&\& l > 9)/; s/^    else$/    else if (coming)/' --load even,one
    [[ $(tail -n 1 <<<"$out") == "FAILED: rank "* ]] || grep -q "$tokens" <<<"$err"
}

@test "first weights of one seed for all experts: the tokens differ" {
    broken 's|^#include "model.h"|#define network_first(n, seed, host) (network_first)(n, 0, host)\n&|'
    grep -q "$tokens" <<<"$err"
}
