#!/usr/bin/env bats
# Lesson 11: gradients in buckets on a second stream; nothing changes but the time.

load ../lib

program=11-overlap/overlap
usage='[--layers L] [--width W] [--batch B] [--steps S] [--bucket BYTES] [--ctas N] [--time] [-h]'

setup_file() {
    build_lessons
}

# learns N WEIGHTS BUCKETS ARGUMENT…: right on N ranks, with so many buckets.
learns() {
    local n=$1 weights=$2 buckets=$3
    all_right "$n" $((n * weights)) weights $program "${@:4}"
    grep -qx "a rank all-reduces  $((4 * weights)) bytes a step, counted; L x W x W x 4 = $((4 * weights)); buckets: $buckets" <<<"$out"
}

@test "every number of ranks and size of buckets: the weights of one process" {
    for n in $(rank_counts); do
        for form in $(in_turn "$n" 4:16K 2:32K 1:all); do
            learns "$n" 16384 "${form%:*}" --bucket "${form#*:}"
        done
    done
    learns 1 16384 4
    grep '^step' <<<"$out" >"$BATS_TEST_TMPDIR/overlap"
    ranks 1 10-data-parallel/data_parallel
    paste <(grep '^step' <<<"$out") "$BATS_TEST_TMPDIR/overlap" |
        awk '{ d = $4 - $8; if (d > 1e-4 || d < -1e-4 || $2 != $6) exit 1 }'
}

@test "buckets: from the last layer on, closed when they are full; the last may be smaller" {
    learns 1 256 1 --layers 1 --width 16 --bucket 1G
    learns 1 1792 7 --layers 7 --width 16 --bucket 0
    learns 1 1792 7 --layers 7 --width 16 --bucket 1K
    learns 1 1792 4 --layers 7 --width 16 --bucket 1025
    learns 1 1792 3 --layers 7 --width 16 --bucket 3K
    learns 1 1792 1 --layers 7 --width 16 --bucket all
}

@test "--time: three times, their ratio, what is hidden; the result is right all the same" {
    for n in $(rank_counts); do
        thorough "$n" || [ "$n" -le 2 ] || continue
        learns "$n" 512 2 --layers 2 --width 16 --time
        grep -qE '^computing only +[0-9]+\.[0-9]{3} ms a step$' <<<"$out"
        grep -qE '^all-reduce only +[0-9]+\.[0-9]{3} ms$' <<<"$out"
        grep -qE '^both +[0-9]+\.[0-9]{3} ms, [0-9.]+ of computing only$' <<<"$out"
        grep -qE '^hidden +-?[0-9]+\.[0-9]{2} of the shorter of the two$' <<<"$out"
    done
}

@test "--time: what the modelled clock says: hidden, hidden by fewer multiprocessors, not hidden" {
    on_gpus && skip "of the CPU build"
    for form in '' '--ctas 4' '--bucket all'; do
        # shellcheck disable=SC2086 # two words or none
        MACHINE=slow-h200 modelled 2 $program --layers 2 --width 128 --batch 256 --steps 1 --time $form
        grep -E '^(computing|all-reduce|both|hidden)' <<<"$out"
    done >"$BATS_TEST_TMPDIR/times"
    diff - <(grep -E '^(computing|all-reduce|both|hidden)' "$BATS_TEST_TMPDIR/times") <<'END'
computing only       0.079 ms a step
all-reduce only      0.015 ms
both                 0.084 ms, 1.060 of computing only
hidden                0.69 of the shorter of the two
computing only       0.079 ms a step
all-reduce only      0.015 ms
both                 0.079 ms, 1.000 of computing only
hidden                1.00 of the shorter of the two
computing only       0.071 ms a step
all-reduce only      0.008 ms
both                 0.079 ms, 1.105 of computing only
hidden                0.08 of the shorter of the two
END
}

@test "without --time nothing is timed" {
    learns 1 512 2 --layers 2 --width 16
    [ "$(grep -cE '^(computing|both|hidden)' <<<"$out")" -eq 0 ]
}

@test "--ctas reaches NCCL, and only if it is given" {
    on_gpus && skip "one build is enough"
    {
        echo '#include <nccl.h>'
        echo '#include <stdio.h>'
        echo 'static ncclResult_t told(ncclComm_t *comm, int n, ncclUniqueId id, int rank,'
        echo '                         ncclConfig_t *config) {'
        echo '    printf("maxCTAs %d\n", config->maxCTAs == NCCL_CONFIG_UNDEF_INT ? -1 : config->maxCTAs);'
        echo '    return ncclCommInitRankConfig(comm, n, id, rank, config);'
        echo '}'
        sed 's/ncclCommInitRankConfig/told/' "$top/$program.c"
    } >"$BATS_TEST_TMPDIR/told.c"
    build told 11-overlap
    top=$BATS_TEST_TMPDIR ranks 1 told --ctas 4
    show
    grep -qx 'maxCTAs 4' <<<"$out"
    top=$BATS_TEST_TMPDIR ranks 1 told
    grep -qx 'maxCTAs -1' <<<"$out"
}

@test "a step keeps the host waiting for nothing, and sends while it computes" {
    on_gpus && skip "one build is enough"
    # What one step calls, in its order.
    {
        cat <<'END'
#include <cublas_v2.h>
#include <nccl.h>
#include <stdio.h>
static int noting;
#define NOTE(letter) (void)(noting && printf(letter))
END
        sed -E 's/(ncclAllReduce|cudaStreamWaitEvent|cublasSgemm|network_(forward|gradient|backward|update))\(/noted_\1(/
            s/^int main\(/int main(/; s/^( *)train\(&t, step, true\);/\1noting = step == 0 \&\& rank == 0; train(\&t, step, true); if (noting) puts(""); noting = 0;/' \
            "$top/$program.c" |
            awk '{ print } /include "network.h"/ {
                print "#define noted_network_forward NOTE(\"f\"), network_forward"
                print "#define noted_network_gradient NOTE(\"g\"), network_gradient"
                print "#define noted_network_backward NOTE(\"b\"), network_backward"
                print "#define noted_network_update NOTE(\"u\"), network_update"
                print "#define noted_ncclAllReduce NOTE(\"A\"), ncclAllReduce"
                print "#define noted_cudaStreamWaitEvent NOTE(\"w\"), cudaStreamWaitEvent"
                for (i = split("cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize cudaMemcpy", n, " "); i; i--)
                    print "#define " n[i] "(...) (NOTE(\"!\"), " n[i] "(__VA_ARGS__))" }'
    } >"$BATS_TEST_TMPDIR/noted.c"
    build noted 11-overlap
    top=$BATS_TEST_TMPDIR ranks 2 noted --layers 3
    show
    [ "$code" -eq 0 ]
    grep -qx 'fffgwAbgwAbgwAwuwuwu' <<<"$out"
    top=$BATS_TEST_TMPDIR ranks 2 noted --layers 3 --bucket all
    grep -qx 'fffgbgbgwAwu' <<<"$out"
}

@test "wrong usage: one message, exit code 2" {
    cd "$BATS_TEST_TMPDIR"
    misuse $program "--bucket none is not a whole number" --bucket none
    misuse $program "--ctas 65 is more than 64" --ctas 65
    misuse $program "--width all is not a whole number" --width all
    skip_unless_ranks 2
    ranks 2 $program --batch 7
    misused $program "--batch 7 does not divide among 2 ranks"
}

# broken SED: the lesson with something changed, on 3 ranks.
broken() {
    every_second
    breaks 3 $program "$@"
    [ "$code" -eq 1 ]
}

@test "an event that is recorded before the gradient is queued: race" {
    broken 's/^        network_gradient(/        CHECK_CUDA(cudaEventRecord(b->ready, t->computing));\n&/
        /^    CHECK_CUDA(cudaEventRecord(b->ready/ s|^|//|'
    grep -q '^NCCL CHECK: race: ' <<<"$err"
}

@test "a bucket that is forgotten: the ranks' copies differ" {
    broken 's/if (communicate && l == b->first)/if (communicate \&\& l == b->first \&\& b++->first != 1)/; s/send(t, b++)/send(t, b - 1)/'
    grep -q 'of the weights differ after the last step' <<<"$err"
}
