#!/usr/bin/env bats
# Lesson 10: every number of ranks learns what one process learns, and says so if not.

load ../lib

program=10-data-parallel/data_parallel
usage='[--layers L] [--width W] [--batch B] [--steps S] [-h]' # for misused

setup_file() {
    build_lessons
}

# learns N WEIGHTS ARGUMENT…: right on N ranks, each with so many weights.
learns() {
    all_right "$1" $(($1 * $2)) weights $program "${@:3}"
}

@test "every number of ranks: the weights of one process, and the same losses" {
    learns 1 16384
    grep -qx 'largest difference from one process: 0, allowed 0' <<<"$out"
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
        thorough "$n" || continue
        learns "$n" 4 --layers 1 --width 2 --batch "$n" --steps 1
        learns "$n" 5547 --layers 3 --width 43 --batch $((11 * n)) --steps 4
        grep -qx 'a rank all-reduces  22188 bytes a step, counted; L x W x W x 4 = 22188' <<<"$out"
    done
}

@test "more ranks than divide the usual batch: the next batch that they do divide" {
    on_gpus && skip "more ranks than GPUs"
    learns 5 16384 --steps 2
    long
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

@test "network.h: gradients are the loss's slopes; the update has momentum; data have numbers" {
    on_gpus && skip "one build is enough"
    cat >"$BATS_TEST_TMPDIR/slopes.c" <<'END'
#include "network.h"

enum { W = 4, B = 5 };
static struct network n = {.layers = 3, .width = W, .batch = B, .steps = 1};
static cublasHandle_t blas;
static float weights[3 * W * W], got[3 * W * W], samples[2 * B * W], wanted[2 * B * W];

static double loss(void) {
    float distance;
    cudaMemcpy(n.weight[0], weights, sizeof weights, cudaMemcpyHostToDevice);
    network_load(&n, 7, B, NULL);
    for (int l = 0; l < 3; l++)
        network_forward(blas, W, W, B, n.weight[l], n.activation[l], n.activation[l + 1]);
    network_loss(blas, W, B, B, n.activation[3], n.wanted, n.distance);
    cudaMemcpy(&distance, n.distance, sizeof distance, cudaMemcpyDeviceToHost);
    return (double)distance * distance / 2 / B;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    cublasCreate(&blas);
    network_malloc(&n, B);
    network_first(&n, 3, weights);
    loss();
    for (int l = 3; l-- > 0;) {
        network_gradient(blas, W, W, B, n.activation[l], n.activation[l + 1], false, n.gradient[l]);
        network_backward(blas, W, W, B, n.weight[l], n.activation[l + 1], n.activation[l]);
    }
    cudaMemcpy(got, n.gradient[0], sizeof got, cudaMemcpyDeviceToHost);
    double off = 0, largest = 0;
    for (int i = 0; i < 3 * W * W; i++) {
        // The loss is quadratic in each weight, so this slope is exact but for rounding.
        const float was = weights[i];
        weights[i] = was + 0.125f;
        double slope = loss();
        weights[i] = was - 0.125f;
        slope = (slope - loss()) / 0.25;
        weights[i] = was;
        off = fmax(off, fabs(slope - got[i]));
        largest = fmax(largest, fabs(slope));
    }
    printf("slopes: %d\n", off < 1e-5 && largest > 0.1);

    // Half the samples, then the other half added to it.
    loss();
    network_gradient(blas, W, W, 2, n.activation[2], n.activation[3], false, n.gradient[2]);
    network_gradient(blas, W, W, B - 2, n.activation[2] + 2 * W, n.activation[3] + 2 * W, true,
                     n.gradient[2]);
    cudaMemcpy(samples, n.gradient[2], W * W * sizeof(float), cudaMemcpyDeviceToHost);
    off = 0;
    for (int i = 0; i < W * W; i++)
        off = fmax(off, fabs(samples[i] - got[2 * W * W + i]));
    printf("in parts: %d\n", off < 1e-6);

    cudaMemcpy(n.gradient[0], got, sizeof got, cudaMemcpyHostToDevice);
    float after[3 * W * W];
    for (int i = 0; i < 2; i++)
        network_update(blas, &n, 3 * W * W, n.gradient[0], n.momentum[0], n.weight[0]);
    cudaMemcpy(after, n.weight[0], sizeof after, cudaMemcpyDeviceToHost);
    off = 0;
    for (int i = 0; i < 3 * W * W; i++) // g, then 0.9 g + g
        off = fmax(off, fabs(after[i] - (weights[i] - 0.1 / 3 * 2.9 * got[i])));
    printf("momentum: %d\n", off < 1e-6);

    network_samples(&n, 10, 6, samples, wanted);
    network_samples(&n, 13, 2, samples + 6 * W, wanted + 6 * W);
    printf("numbers: %d %d\n", !memcmp(samples + 3 * W, samples + 6 * W, 2 * W * sizeof(float)),
           !memcmp(samples, samples + W, W * sizeof(float)));
    printf("wanted: %d\n", wanted[1] == (samples[1] + samples[2]) / 2 &&
                               wanted[W - 1] == (samples[W - 1] + samples[0]) / 2);
    network_free(&n);
    cublasDestroy(blas);
    MPI_Finalize();
}
END
    build slopes
    top=$BATS_TEST_TMPDIR ranks 1 slopes
    show
    [ "$(tr '\n' ' ' <<<"$out")" = "slopes: 1 in parts: 1 momentum: 1 numbers: 1 0 wanted: 1 " ]
}

@test "too little memory" {
    on_gpus && skip "up to the GPU"
    ranks 1 $program --layers 64 --width 4096 --batch 16M
    show
    [ "$code" -eq 1 ]
    grep -q 'the network needs .* GB of GPU memory' <<<"$err"
    grep -q 'choose fewer --layers, a smaller --width or --batch' <<<"$err"
}

# broken SED: the lesson with something changed, on 3 ranks.
broken() {
    every_second
    breaks 3 $program "$@"
    [ "$code" -eq 1 ]
}

differ='of the weights differ'

@test "without the average the copies differ after the last step" {
    broken '/ncclAllReduce(g/ s|^|//|'
    grep -q "$differ after the last step" <<<"$err"
}

@test "one bit of one weight on one rank: the copies differ" {
    broken 's|^    network_print_losses|    if (rank == 1) cudaMemset(n.weight[0] + 99, 1, 1);\n&|'
    grep -q "$differ after the last step" <<<"$err"
}

@test "layers in another order on one rank: no call differs, but the copies do" {
    broken 's|float \*g = n.gradient\[l\]|float *g = n.gradient[rank == 1 ? n.layers - 1 - l : l]|'
    grep -q "$differ after the last step" <<<"$err"
}

@test "all ranks take the first share of the batch: all the same, and all wrong" {
    broken 's/step \* n.batch + rank \* share/step * n.batch/'
    [[ $(tail -n 1 <<<"$out") == "FAILED: rank 0, weight 0 is "* ]]
}

@test "one rank averages one weight less: mismatch" {
    broken 's/(g, g, layer,/(g, g, layer - (rank == 1),/'
    grep -q '^NCCL CHECK: mismatch: the ranks give different counts' <<<"$err"
}
