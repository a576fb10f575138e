#!/usr/bin/env bats
# Lesson 07: copies between GPUs, and what the CPU build says of wrong ones.

load ../lib

peer=07-peer-to-peer/peer_to_peer
usage='[-n COUNT] ' # for misused
ways='Through the host, GB/s
Directly, GB/s
By NCCL, GB/s'

setup_file() {
    build_lessons
}

# table TITLE: the rows below a title, as they are.
table() {
    sed -n "/^${1//\//\\/}\$/,/^\$/p" <<<"$out" | sed 1,2d | sed '/^$/d'
}

# complete N: all four tables have a row and a column for each rank, a figure for each pair,
# and none for a rank with itself.
complete() {
    local n=$1 title
    [ "$(grep -c '^GPU' <<<"$out")" -eq $((4 * n)) ]
    while read -r title; do
        table "$title" | awk -v n="$n" '
            { bad += $1 != "GPU" || $2 != NR - 1 || NF != n + 2
              for (to = 0; to < n; to++)
                  bad += to == NR - 1 ? $(to + 3) != "-" : $(to + 3) !~ /^[0-9]+\.[0-9]$/ }
            END { exit bad || NR != n }'
    done <<<"$ways"
    table 'Peer access / performance rank / atomics' | awk -v n="$n" '
        { for (to = 0; to < n; to++)
              bad += to == NR - 1 ? $(to + 3) != "-" : $(to + 3) !~ /^(yes|no)\/[0-9]+\/(yes|no)$/ }
        END { exit bad || NR != n }'
}

@test "one rank alone has nothing to copy: it says that it needs two, exit code 2" {
    ranks 1 $peer
    show
    [ "$code" -eq 2 ]
    [ -z "$out" ]
    [ "$err" = 'peer_to_peer needs two ranks: mpirun -np 2 ./peer_to_peer' ]
}

@test "every number of ranks, small and odd counts: a figure for each pair, all elements right" {
    for n in $(rank_counts); do
        [ "$n" -gt 1 ] || continue
        for count in $(in_turn "$n" 1003 1); do
            ranks "$n" $peer -n "$count"
            expect 0 "OK: $n ranks, all $((3 * n * (n - 1) * count)) elements as expected"
            [ -z "$err" ]
            complete "$n"
        done
    done
}

@test "the default: 1 MiB a copy" {
    skip_unless_ranks 2
    ranks 2 $peer
    expect 0 "OK: 2 ranks, all 1572864 elements as expected"
    grep -q '^from, to     GPU 0     GPU 1$' <<<"$out"
}

@test "ranks that share a GPU, as NCCL 2.30 can let them: a pair without a link" {
    on_gpus && skip "NCCL 2.30 and newer allow it"
    CPU_DEVICES=1 NCCL_MULTI_RANK_GPU_ENABLE=1 ranks 2 $peer -n 100
    expect 0 "OK: 2 ranks, all 600 elements as expected"
    [ -z "$err" ]
    [ "$(table 'Peer access / performance rank / atomics' | tr -s ' ')" = $'GPU 0 - same GPU\nGPU 1 same GPU -' ]
    [ "$(table 'Directly, GB/s' | grep -c '[0-9]\.[0-9]')" -eq 2 ]
}

@test "a rank that sees its own GPU only: nothing through the host, the rest as before" {
    on_gpus && skip "of both builds"
    code=0
    timeout 300 mpirun --oversubscribe -np 1 env CUDA_VISIBLE_DEVICES=0 "$top/$peer" -n 100 \
        : -np 1 env CUDA_VISIBLE_DEVICES=1 "$top/$peer" -n 100 >"$BATS_TEST_TMPDIR/out" \
        2>"$BATS_TEST_TMPDIR/err" || code=$?
    out=$(grep -v '^CPU build: ' "$BATS_TEST_TMPDIR/out") err=$(cat "$BATS_TEST_TMPDIR/err")
    expect 0 "OK: 2 ranks, all 400 elements as expected"
    [ "$(table 'Peer access / performance rank / atomics' | tr -s ' ')" = "GPU 0 - not seen
GPU 1 not seen -" ]
    [ "$(table 'Through the host, GB/s' | tr -s ' ')" = "GPU 0 - -
GPU 1 - -" ]
    table 'Directly, GB/s' | grep -qE '^GPU 1 +[0-9.]+ +-$'
}

@test "two machines: only NCCL goes from one to the other" {
    on_gpus && skip "of the CPU build"
    CPU_HOSTS=2 ranks 4 $peer -n 100
    expect 0 "OK: 4 ranks, all $(((4 + 4 + 12) * 100)) elements as expected"
    [ "$(table 'Peer access / performance rank / atomics' | tail -n 1 | tr -s ' ')" = \
        "GPU 3 far away far away yes/0/yes -" ]
    for way in 'Through the host, GB/s' 'Directly, GB/s'; do
        table "$way" | head -n 1 | grep -qE '^GPU 0 +- +[0-9.]+ +- +-$'
    done
    table 'By NCCL, GB/s' | head -n 1 | grep -qE '^GPU 0 +-( +[0-9.]+){3}$'
}

@test "a handle of another machine opens nothing" {
    on_gpus && skip "of the CPU build"
    cat >"$BATS_TEST_TMPDIR/far.c" <<'END'
#include "lesson.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    void *memory, *opened;
    cudaIpcMemHandle_t handle;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK_CUDA(cudaMalloc(&memory, 100));
    CHECK_CUDA(cudaIpcGetMemHandle(&handle, memory));
    MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 3, MPI_COMM_WORLD);
    cudaError_t error = cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess);
    lesson_print_in_order(cudaGetErrorName(error));
    if (error == cudaSuccess)
        CHECK_CUDA(cudaIpcCloseMemHandle(opened));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_CUDA(cudaFree(memory));
    MPI_Finalize();
}
END
    build far
    top=$BATS_TEST_TMPDIR CPU_HOSTS=2 ranks 4 far
    expect 0 cudaErrorDeviceUninitialized
    [ "$(tr '\n' ' ' <<<"$out")" = \
        "cudaErrorInvalidValue cudaErrorInvalidValue cudaSuccess cudaErrorDeviceUninitialized " ]
}

@test "wrong usage: one message, exit code 2" {
    cd "$BATS_TEST_TMPDIR"
    misuse $peer "-n 0 is less than 1" -n 0
    misuse $peer "-n x is not a whole number" -n x
    misuse $peer "unknown argument 7" 7
    skip_unless_ranks 2
    ranks 2 $peer -n 900000000000
    show
    [ "$code" -eq 1 ]
    grep -q 'the buffers need 10800 GB of GPU memory' <<<"$err"
}

# broken SED [ARGUMENT…]: the lesson with something changed, on 3 ranks.
broken() {
    every_second
    breaks 3 $peer "$1" -n 1000 "${@:2}"
}

@test "closed while it is still written to: race" {
    on_gpus && skip "of the CPU build"
    cat >"$BATS_TEST_TMPDIR/close.c" <<'END'
#include "lesson.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    void *mine, *theirs;
    cudaIpcMemHandle_t handle;
    cudaStream_t stream;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK_CUDA(cudaSetDevice(rank));
    CHECK_CUDA(cudaStreamCreate(&stream));
    CHECK_CUDA(cudaMalloc(&mine, 100));
    CHECK_CUDA(cudaIpcGetMemHandle(&handle, mine));
    MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 1, MPI_COMM_WORLD);
    if (rank == 0) {
        CHECK_CUDA(cudaIpcOpenMemHandle(&theirs, handle, cudaIpcMemLazyEnablePeerAccess));
        CHECK_CUDA(cudaMemsetAsync(theirs, 0, 100, stream));
        CHECK_CUDA(cudaIpcCloseMemHandle(theirs));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
END
    build close
    top=$BATS_TEST_TMPDIR ranks 2 close
    show
    [ "$code" -eq 1 ]
    grep -q '^NCCL CHECK: race: cudaIpcCloseMemHandle closes a buffer that a queued operation still uses$' <<<"$err"
    grep -q 'queued: cudaMemsetAsync at close.c:17' <<<"$err"
}

@test "a handle that stays open: left behind" {
    broken '/CHECK_CUDA(cudaIpcCloseMemHandle/ s/CHECK.*/;/'
    [ "$code" -eq 0 ]
    grep -q '^NCCL CHECK: left behind: ' <<<"$err"
    grep -q ': 2 opened IPC handles (made at broken.c:' <<<"$err"
}

@test "a copy to the wrong place: FAILED" {
    broken 's/cudaMemcpyAsync(far, s->source, s->bytes/& - 4/'
    [ "$code" -eq 1 ]
    [[ $(tail -n 1 <<<"$out") == "FAILED: rank 0, element 999 is 0, expected 2999 (and "* ]]
}
