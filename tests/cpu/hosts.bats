#!/usr/bin/env bats
# CPU_HOSTS: the CPU build pretends that a machine is several.

load ../lib

setup_file() {
    ! on_gpus || skip "the CPU build's own variable"
    build_lessons
}

# places: of each rank's line of hello, the host and the GPU.
places() {
    sed -n 's/^rank [0-9]* of [0-9]* on \([^:]*\): GPU \([0-9]*\),.*/\1 \2/p' <<<"$out"
}

# local_rank NAME: hello with the rank's number among those of its own host for its GPU.
local_rank() {
    cd "$BATS_TEST_TMPDIR" || return
    sed 's/CHECK_CUDA(cudaSetDevice(rank % ndevices));/MPI_Comm here;\
        CHECK_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank,\
                                      MPI_INFO_NULL, \&here));\
        int mine;\
        CHECK_MPI(MPI_Comm_rank(here, \&mine));\
        CHECK_MPI(MPI_Comm_free(\&here));\
        CHECK_CUDA(cudaSetDevice(mine));/' "$top/00-nccl-hello-world/hello.c" >"$1.c"
    build "$1"
}

@test "in blocks: two hosts, their names, and as many GPUs on each as it has ranks" {
    name=$(uname -n)
    name=${name%%.*}
    for n in 1 3 4; do
        CPU_HOSTS=2 ranks "$n" 00-nccl-hello-world/hello
        expect 0 "OK: $(plural "$n"), all $((3 * n)) answers as expected"
        [ -z "$err" ]
        if [ "$n" -eq 1 ]; then
            [ "$(places)" = "$name 0" ]
            continue
        fi
        first=$(((n + 1) / 2))
        for ((r = 0; r < n; r++)); do
            host=$((r >= first)) gpus=$((r < first ? first : n - first))
            [ "$(places | sed -n "$((r + 1))p")" = "${name:0:24}-$host $((r % gpus))" ]
        done
    done
}

@test "more hosts than ranks: each rank has one" {
    CPU_HOSTS=9 ranks 3 00-nccl-hello-world/hello
    expect 0 "OK: 3 ranks, all 9 answers as expected"
    [ "$(places | cut -d' ' -f2 | tr '\n' ' ')" = "0 0 0 " ]
    [ "$(places | sort -u | wc -l)" -eq 3 ]
}

@test "dealt out in turn, rank % deviceCount is wrong, and the number on the host is right" {
    CPU_HOSTS=2:cyclic ranks 4 00-nccl-hello-world/hello
    show
    [ "$code" -eq 1 ]
    grep -q '^ranks 0 and 2 on .*-0 are bound to the same GPU, number 0 ' <<<"$err"
    grep -q "^ *A rank's number on its own node is right in every order: see exercise 00.3" <<<"$err"
    local_rank local
    for n in 1 2 3 4; do
        for hosts in $(in_turn $((n / 2)) 2 2:cyclic); do
            top=$BATS_TEST_TMPDIR CPU_HOSTS=$hosts ranks "$n" local
            expect 0 "OK: $(plural "$n"), all $((3 * n)) answers as expected"
            [ -z "$err" ]
            [ "$(places | sort -u | wc -l)" -eq "$n" ]
        done
    done
}

@test "the lessons run on pretended hosts" {
    for lesson in $lessons; do
        CPU_HOSTS=2 ranks 3 "$lesson" -n 1000
        show
        [ "$code" -eq 0 ]
        [ -z "$err" ]
    done
}

@test "a report names the pretended host, and CPU_DEVICES counts the GPUs of each" {
    cd "$BATS_TEST_TMPDIR"
    sed '/cudaStreamSynchronize/d' "$top/01-nccl-broadcast/broadcast.c" >early.c
    build early
    top=$BATS_TEST_TMPDIR CPU_HOSTS=2 ranks 2 early
    show
    [ "$code" -eq 1 ]
    grep -qE '^  rank [01] on .*-[01]: cudaMemcpy at ' <<<"$err"
    CPU_HOSTS=2 CPU_DEVICES=1 ranks 2 00-nccl-hello-world/hello
    expect 0 "OK: 2 ranks, all 6 answers as expected"
    CPU_HOSTS=2 CPU_DEVICES=1 ranks 4 00-nccl-hello-world/hello
    show
    [ "$code" -eq 1 ]
    grep -q '^ranks 0 and 1 on .*-0 are bound to the same GPU' <<<"$err"
}
