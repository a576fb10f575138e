#!/usr/bin/env bats
# Wrong use: one clear message on stderr, not one a rank; exit code 2 for wrong usage, 1 for
# a failure at run time; never a hang.

load ../lib

setup_file() {
    build_lessons
}

some_ranks=2

setup() {
    on_gpus && some_ranks=1
    true
}

# usage_error LESSON MESSAGE ARGUMENT…: one rank speaks for all of them.
usage_error() {
    local lesson=$1 message=$2
    shift 2
    ranks "$some_ranks" "$lesson" "$@"
    misused "$lesson" "$message"
}

@test "counts that are none" {
    for lesson in $lessons; do
        misuse "$lesson" "-n 0 is less than 1" -n 0
        misuse "$lesson" "-n abc is not a whole number" -n abc
    done
    lesson=02-nccl-allreduce/allreduce
    usage_error $lesson "-n abc is not a whole number" -n abc
    misuse $lesson "-n -5 is less than 1" -n -5
    misuse $lesson "-n 4x is not a whole number" -n 4x
    misuse $lesson "-n 1.5 is not a whole number" -n 1.5
    misuse $lesson "-n  is not a whole number" -n ""
    misuse $lesson "-n 99999999999999999999 is too large" -n 99999999999999999999
    misuse $lesson "-n needs a number" -n
    misuse $lesson "-n p is not a whole number" -np 4 # meant for mpirun
}

@test "unknown options and extra arguments" {
    for lesson in 00-nccl-hello-world/hello $lessons; do
        misuse "$lesson" "unknown option -x" -x
        misuse "$lesson" "unknown argument 7" 7
    done
    misuse 00-nccl-hello-world/hello "unknown option -n" -n 4
    usage_error 01-nccl-broadcast/broadcast "unknown argument 5" -n 4 5
}

@test "-h explains, once, with exit code 0" {
    for lesson in 00-nccl-hello-world/hello $lessons; do
        ranks "$some_ranks" "$lesson" -h
        show
        [ "$code" -eq 0 ]
        [ "$(grep -c '^usage: ' <<<"$out")" -eq 1 ]
        [ -z "$err" ]
    done
}

# failure MESSAGE…: exit code 1, told once, by one rank, with these texts in it.
failure() {
    show
    [ "$code" -eq 1 ]
    [ "$(grep -cE '^rank [0-9]+ on |^ranks [0-9]+( and|,) ' <<<"$err")" -eq 1 ]
    for text in "$@"; do
        grep -qF -- "$text" <<<"$err"
    done
}

@test "no GPU" {
    for lesson in 00-nccl-hello-world/hello $lessons; do
        CUDA_VISIBLE_DEVICES='' ranks "$some_ranks" "$lesson"
        failure "rank 0 on $(hostname -s 2>/dev/null || uname -n)" "cudaGetDeviceCount(&ndevices) failed at" \
            "no CUDA-capable device is detected" "Run on a node with GPUs" "make BACKEND=cpu"
    done
}

@test "no GPU on the CPU build, either way" {
    on_gpus && skip "the CPU build's own variable"
    CPU_DEVICES=0 ranks 2 01-nccl-broadcast/broadcast
    failure "no CUDA-capable device is detected"
}

@test "more ranks than GPUs" {
    local gpus=2
    on_gpus && gpus=$(gpus)
    for lesson in 00-nccl-hello-world/hello $lessons; do
        on_gpus || export CPU_DEVICES=2
        ranks $((2 * gpus)) "$lesson"
        failure "ranks 0 and $gpus on" "bound to the same GPU, number 0 (0000:" \
            "NCCL wants one GPU per rank" "at most -np $gpus here, or more nodes"
        ! on_gpus || break # where every run takes seconds
    done
}

@test "GPUs enough, but two ranks on one" {
    on_gpus && skip "needs a machine whose ranks are not in one block"
    CPU_DEVICES=2 CUDA_VISIBLE_DEVICES=3,3 ranks 2 01-nccl-broadcast/broadcast
    failure "ranks 0 and 1 on" "placed node by node"
}

@test "NCCL_MULTI_RANK_GPU_ENABLE=1: ranks share a GPU, as since NCCL 2.30" {
    on_gpus && skip "NCCL 2.30 and newer allow it"
    CPU_DEVICES=1 NCCL_MULTI_RANK_GPU_ENABLE=1 ranks 2 01-nccl-broadcast/broadcast
    show
    [ "$code" -eq 0 ]
    [ -z "$err" ]
}

@test "too little memory" {
    for lesson in $lessons; do
        ranks "$some_ranks" "$lesson" -n 900000000000
        failure "the buffers need" "GB of GPU memory, and the GPU has" "choose a smaller -n"
    done
}

@test "a call that fails: rank, host, call, file and line, the library's words, a hint" {
    on_gpus && skip "one build is enough"
    cd "$BATS_TEST_TMPDIR"
    sed 's/ncclInt32, 0, comm/ncclInt32, rank == 1 ? 77 : 0, comm/' \
        "$top/01-nccl-broadcast/broadcast.c" >broken.c
    build broken
    top=$BATS_TEST_TMPDIR ranks 3 broken
    line=$(grep -n '? 77' broken.c | cut -d: -f1)
    failure "rank 1 on " "failed at broken.c:$line" "NCCL says: invalid argument" \
        "root 77, and the communicator has 3 ranks" "Hint: an argument is out of range"
    ! grep -q "NCCL WARN" <<<"$err"
    top=$BATS_TEST_TMPDIR NCCL_DEBUG=warn ranks 3 broken
    failure "NCCL WARN ncclBroadcast: root 77, and the communicator has 3 ranks"
    sed 's/cudaSetDevice(rank % ndevices)/cudaSetDevice(rank + 9)/' \
        "$top/01-nccl-broadcast/broadcast.c" >broken.c
    build broken
    top=$BATS_TEST_TMPDIR ranks 3 broken
    failure "rank 0 on " "cudaSetDevice(rank + 9) failed at broken.c:" \
        "CUDA says: invalid device ordinal (cudaErrorInvalidDevice)"
    cp "$top"/23-failures/*.h .
    sed 's/CHECK_BEGUN(nccl/CHECK_NCCL(nccl/' "$top/23-failures/failures.c" >broken.c
    build broken
    top=$BATS_TEST_TMPDIR ranks 2 broken
    failure "Hint: this is no error: ask ncclCommGetAsyncError"
}

@test "a call of MPI's that fails is explained as well, by every lesson" {
    on_gpus && skip "one build is enough"
    cd "$BATS_TEST_TMPDIR"
    sed 's/MPI_BYTE, 0, MPI_COMM_WORLD/MPI_BYTE, 99, MPI_COMM_WORLD/' \
        "$top/01-nccl-broadcast/broadcast.c" >broken.c
    build broken
    top=$BATS_TEST_TMPDIR ranks 2 broken
    failure "rank 0 on " "MPI_Bcast(&id, sizeof id, MPI_BYTE, 99, MPI_COMM_WORLD) failed at broken.c:" \
        "MPI says: MPI_ERR_ROOT"
    for program in "$top"/[0-9][0-9]-*/*.c; do
        grep -q 'MPI_Init(' "$program" || continue # 16 and 17 do without MPI
        grep -A 2 'MPI_Init(' "$program" | grep -q 'MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)'
    done
}

@test "a wrong result: FAILED names the first, and counts the others" {
    on_gpus && skip "one build is enough"
    cd "$BATS_TEST_TMPDIR"
    sed 's/host\[i\], 42)/host[i], rank == 2 \&\& i > 2 ? 43 : 42)/' \
        "$top/01-nccl-broadcast/broadcast.c" >broken.c
    build broken
    top=$BATS_TEST_TMPDIR ranks 3 broken -n 11
    expect 1 "FAILED: rank 2, element 3 is 42, expected 43 (and 7 more)"
    top=$BATS_TEST_TMPDIR ranks 3 broken
    expect 1 "FAILED: rank 2, element 3 is 42, expected 43"
    top=$BATS_TEST_TMPDIR ranks 2 broken
    expect 0 "OK: 2 ranks, all 8 elements as expected"
    sed 's/letter((int)/letter(1 + (int)/' \
        "$top/04-all-to-all/all_to_all.c" >broken.c
    build broken
    top=$BATS_TEST_TMPDIR ranks 2 broken
    expect 1 "FAILED: rank 0, element 0 is A0, expected B0 (and 3 more)"
}
