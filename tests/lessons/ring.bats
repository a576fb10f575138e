#!/usr/bin/env bats
# Lesson 05: the ring, and the one call of cuBLAS that it needs.

load ../lib

ring=05-ring-allreduce/ring_allreduce
usage='[-n COUNT] ' # for misused

setup_file() {
    build_lessons
}

# sums N COUNT ARGUMENT…: the ring's and NCCL's elements are all right.
sums() {
    all_right "$1" $((2 * $1 * $2)) elements $ring -n "$2" "${@:3}"
}

@test "the whole output on 3 ranks, whose number does not divide 4" {
    skip_unless_ranks 3
    ranks 3 $ring -n 4
    expect 0 "OK: 3 ranks, all 24 elements as expected"
    diff - <(echo "$out") <<'END'
Before ring all-reduce:
       -------------------------
GPU 0  | 1   | 2   | 3   | 4   |
       -------------------------
       -------------------------
GPU 1  | 10  | 20  | 30  | 40  |
       -------------------------
       -------------------------
GPU 2  | 100 | 200 | 300 | 400 |
       -------------------------

After step 1 of 4, added up:
       -------------------------
GPU 0  | 1   | 2   | 303 | 404 |
       -------------------------
       -------------------------
GPU 1  | 11  | 20  | 30  | 40  |
       -------------------------
       -------------------------
GPU 2  | 100 | 220 | 300 | 400 |
       -------------------------

After step 2 of 4, added up:
       -------------------------
GPU 0  | 1   | 222 | 303 | 404 |
       -------------------------
       -------------------------
GPU 1  | 11  | 20  | 333 | 444 |
       -------------------------
       -------------------------
GPU 2  | 111 | 220 | 300 | 400 |
       -------------------------

After step 3 of 4, passed on:
       -------------------------
GPU 0  | 111 | 222 | 303 | 404 |
       -------------------------
       -------------------------
GPU 1  | 11  | 222 | 333 | 444 |
       -------------------------
       -------------------------
GPU 2  | 111 | 220 | 333 | 444 |
       -------------------------

After step 4 of 4, passed on:
       -------------------------
GPU 0  | 111 | 222 | 333 | 444 |
       -------------------------
       -------------------------
GPU 1  | 111 | 222 | 333 | 444 |
       -------------------------
       -------------------------
GPU 2  | 111 | 222 | 333 | 444 |
       -------------------------

After ncclAllReduce:
       -------------------------
GPU 0  | 111 | 222 | 333 | 444 |
       -------------------------
       -------------------------
GPU 1  | 111 | 222 | 333 | 444 |
       -------------------------
       -------------------------
GPU 2  | 111 | 222 | 333 | 444 |
       -------------------------

GPU 0 sent 20 bytes; 2(N-1)/N x D = 21.3
GPU 1 sent 20 bytes; 2(N-1)/N x D = 21.3
GPU 2 sent 24 bytes; 2(N-1)/N x D = 21.3
OK: 3 ranks, all 24 elements as expected
END
}

@test "by default one element for each rank; a ring of one has no steps" {
    skip_unless_ranks 2
    ranks 2 $ring
    expect 0 "OK: 2 ranks, all 8 elements as expected"
    [ "$(grep -c '^After step' <<<"$out")" -eq 2 ]
    ranks 1 $ring
    expect 0 "OK: 1 rank, all 2 elements as expected"
    [ "$(grep -c '^After step' <<<"$out")" -eq 0 ]
    grep -qxF 'GPU 0 sent 0 bytes; 2(N-1)/N x D = 0.0' <<<"$out"
}

@test "every number of ranks, counts that they do and do not divide" {
    for n in $(rank_counts); do
        ! thorough "$n" || sums "$n" 1
        sums "$n" 1003 --no-tables
    done
}

@test "40 ranks: every sum is exact" {
    on_gpus && skip "more ranks than GPUs"
    long
    sums 40 70
    [ "$(grep -c '^After step' <<<"$out")" -eq 78 ]
}

@test "the bytes that each rank sends are counted, and stand beside the formula; no tables" {
    for n in $(rank_counts); do
        thorough "$n" || [ "$n" -le 2 ] || continue
        sums "$n" 168 --no-tables
        formula=$((2 * (n - 1) * 168 * 4 / n))
        [ "$(grep -cx "GPU [0-9]* sent $formula bytes; 2(N-1)/N x D = $formula.0" <<<"$out")" -eq "$n" ]
        [ "$(grep -cv '^GPU [0-9]* sent \|^OK: ' <<<"$out")" -eq 0 ]
    done
}

@test "an ncclAllReduce that is left out does not pass for the ring's sums" {
    on_gpus && skip "one build is enough"
    cd "$BATS_TEST_TMPDIR"
    sed '/ncclAllReduce(/ s|^|//|' "$top/$ring.c" >without.c
    build without 05-ring-allreduce
    top=$BATS_TEST_TMPDIR ranks 3 without --no-tables
    show
    [ "$code" -eq 1 ]
    [[ $(tail -n 1 <<<"$out") == 'FAILED: rank 0, element 0 is '* ]]
}

@test "wrong usage: one message, exit code 2" {
    cd "$BATS_TEST_TMPDIR"
    misuse $ring "-n 0 is less than 1" -n 0
    misuse $ring "-n -3 is less than 1" -n -3
    misuse $ring "-n 4x is not a whole number" -n 4x
    misuse $ring "-n  is not a whole number" -n ''
    misuse $ring "-n 99999999999999999999 is too large" -n 99999999999999999999
    misuse $ring "-n needs a number" --no-tables -n
    misuse $ring "unknown option --no-tables=1" --no-tables=1
    misuse $ring "unknown argument 7" 7
    skip_unless_ranks 2
    ranks 2 $ring -n 5 --fast
    misused $ring "unknown option --fast"
    grep -q -- '-n COUNT .*(default 2)$' <<<"$err"
    ranks 2 $ring -h
    [ "$code" -eq 0 ]
    [ "$(grep -c '^usage: ' <<<"$out")" -eq 1 ]
    [ -z "$err" ]
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
    breaks 4 $ring "$@"
    [ "$code" -eq 1 ]
}

@test "a wrong chunk: FAILED" {
    broken 's/rank - step - 1/rank - step - 2/'
    [[ $(tail -n 1 <<<"$out") == "FAILED: rank 0, element 0 is "*", expected 1111 (and "* ]]
}

@test "cuBLAS on the CPU build: strides, order in the stream, error codes" {
    on_gpus && skip "of the CPU build"
    cat >"$BATS_TEST_TMPDIR/axpy.c" <<'END'
#include <cublas_v2.h>
#include <stdio.h>
#include <string.h>

static float x[] = {1, 2, 3, 4}, y[] = {10, 20, 30, 40}, got[4];
static float *device_x, *device_y;
static cudaStream_t stream;

static void start(void) {
    cudaMemcpyAsync(device_x, x, sizeof x, cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(device_y, y, sizeof y, cudaMemcpyHostToDevice, stream);
}
static void result(const char *what) {
    cudaMemcpyAsync(got, device_y, sizeof got, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    printf("%s: %g %g %g %g\n", what, got[0], got[1], got[2], got[3]);
}
int main(void) {
    cublasHandle_t handle, other;
    float alpha = 2;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc((void **)&device_x, sizeof x);
    cudaMalloc((void **)&device_y, sizeof y);
    printf("%d\n", cublasCreate(NULL) == CUBLAS_STATUS_INVALID_VALUE);
    printf("%d", cublasCreate(&handle));
    printf(" %d\n", cublasSetStream(handle, stream));
    start();
    cublasSaxpy(handle, 4, &alpha, device_x, 1, device_y, 1);
    alpha = 100; // it was read by the call
    result("all");
    alpha = 1;
    start();
    cublasSaxpy_64(handle, 2, &alpha, device_x, 2, device_y, 3);
    result("strides 2 and 3");
    start();
    cublasSaxpy(handle, 4, &alpha, device_x, -1, device_y, 1);
    result("backwards");
    start();
    printf("%d %d\n", cublasSaxpy(handle, 0, &alpha, NULL, 1, NULL, 1),
           cublasSaxpy(handle, -1, &alpha, device_x, 1, device_y, 1));
    result("nothing");
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cublasSaxpy(handle, 4, &alpha, device_x, 1, device_y, 1);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, stream);
    cudaGraphLaunch(exec, stream);
    result("twice, by a graph");
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cublasCreate(&other);
    printf("%d", cublasDestroy(other));
    printf(" %d\n", cublasDestroy(other));
    printf("%s: %s\n", cublasGetStatusName(cublasSetStream(other, stream)),
           cublasGetStatusString(CUBLAS_STATUS_NOT_INITIALIZED));
    cublasDestroy(handle);
    cudaFree(device_x);
    cudaFree(device_y);
    cudaStreamDestroy(stream);
    return 0;
}
END
    build axpy
    # (Each call that is to fail has a note.)
    run bash -c "timeout 300 '$BATS_TEST_TMPDIR/axpy' 2>/dev/null"
    [ "$status" -eq 0 ]
    diff - <(printf '%s\n' "${lines[@]:1}") <<'END'
1
0 0
all: 12 24 36 48
strides 2 and 3: 11 20 30 43
backwards: 14 23 32 41
0 0
nothing: 10 20 30 40
twice, by a graph: 12 24 36 48
0 1
CUBLAS_STATUS_NOT_INITIALIZED: the library was not initialized
END
}

@test "cuBLAS on the CPU build: past the end, host memory: memory" {
    on_gpus && skip "of the CPU build"
    for what in 'device + 1' 'host'; do
        cat >"$BATS_TEST_TMPDIR/memory.c" <<END
#include <cublas_v2.h>
int main(void) {
    float *device, host[4], one = 1;
    (void)host;
    cublasHandle_t handle;
    cudaMalloc((void **)&device, 4 * sizeof *device);
    cublasCreate(&handle);
    cublasSaxpy(handle, 4, &one, $what, 1, device, 1);
}
END
        build memory
        run timeout 300 "$BATS_TEST_TMPDIR/memory"
        [ "$status" -eq 1 ]
        [[ $output == *"NCCL CHECK: memory: "*"cublasSaxpy at memory.c:8"* ]]
    done
}
