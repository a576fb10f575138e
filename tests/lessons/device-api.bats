#!/usr/bin/env bats
# Lesson 26: a kernel that communicates. It is left out where there is no compiler for kernels.

load ../lib

program=26-device-api/device_api

setup_file() {
    build_lessons
}

setup() {
    [ -x "$top/$program" ] || skip 'no compiler for kernels'
}

@test "every number of ranks: the sums of all, of few elements and of more than the blocks take at once" {
    for n in $(rank_counts); do
        all_right "$n" $((3 * n)) elements $program -n 3
        all_right "$n" $((100001 * n)) elements $program -n 100001
    done
}

# wrong WHAT LINE…: device_comm.cu makes that mistake, and each line is reported.
wrong() {
    run timeout 60 mpirun -np 3 --oversubscribe "$BATS_FILE_TMPDIR/device_comm" "$1"
    [ "$status" -ne 0 ] || return 1
    for line in "${@:2}"; do
        command grep -aqF -- "$line" <<<"$output" || { echo "$1: no \"$line\" in: $output"; return 1; }
    done
}

@test "the host's half: what the communicator can do, and each mistake with it" {
    ! on_gpus || skip 'the CPU build names them'
    export NCCL_CHECK_TIMEOUT=1
    "$top/kernels/cpu-nvcc" -g -I"$top/common" -o "$BATS_FILE_TMPDIR/device_comm" "$top/tests/kernels/device_comm.cu" -lnccl
    run timeout 60 mpirun -np 3 --oversubscribe "$BATS_FILE_TMPDIR/device_comm" right
    [[ $status -eq 0 && $output = *'1 LSA teams, yes'*'OK: 3 ranks, all 3 ranks as expected'* ]]
    run env CPU_HOSTS=3 CPU_DEVICES=3 timeout 60 mpirun -np 3 --oversubscribe "$BATS_FILE_TMPDIR/device_comm" multimem
    [[ $status -ne 0 && $output = *'CPU build: lsaMultimem is not there'* && $output = *'3 LSA teams, yes'* ]]
    wrong alone 'mismatch: the ranks call different operations at operation 1' 'on vm: ncclDevCommCreate at'
    wrong window-alone 'NCCL CHECK: mi' 'ncclCommWindowRegister'
    wrong not-launched 'NCCL CHECK: missing: every rank waits' 'a kernel with a device communicator waits at its barriers'
    wrong comm-early 'race: ncclDevCommDestroy takes away what a queued kernel still uses' 'queued: around at device_comm.cu:'
    wrong window-early 'race: ncclCommWindowDeregister takes away what a queued kernel still uses'
    wrong free-early 'memory: ncclMemFree frees a registered buffer'
    wrong comm-late 'memory: kernel around gets a window or a device communicator that is gone'
    wrong dies 'exited'
    wrong few-barriers 'kernel around, block (2,0,0): a session of barrier 2, but lsaBarrierCount is 2.'
}

@test "a sync to which not every thread of a block comes is named: behind an if, after a return" {
    ! on_gpus || skip 'the CPU build names it'
    for how in '0 (1,0,0): 30' '1 (1,0,0): 30' '2 (0,0,0): 1'; do
        run timeout 60 "$BATS_FILE_TMPDIR/device_comm" apart "${how%% *}"
        [[ $status -ne 0 && $output = *"kernel apart, block ${how#* } of 100 threads are in a barrier session's sync"* ]] || { echo "$output"; return 1; }
    done
}

@test "what is not there is refused by name" {
    ! on_gpus || skip 'of the CPU build'
    cd "$BATS_TEST_TMPDIR"
    for name in 'ncclCoopWarp x' 'ncclSymPtr<float> p' 'ncclLLA2ASession<int> s'; do
        printf '#include <nccl_device.h>\n__global__ void k() {\n    %s;\n}\n' "$name" >k.cu
        run "$top/kernels/cpu-nvcc" -c k.cu
        [[ $status -ne 0 && $output = *'CPU build: '* ]]
    done
    printf '#include <nccl_device.h>\n' >k.c
    run mpicc -I"$top/cpu/include" -I"$top/cpu/include/absent" -c k.c
    [[ $status -ne 0 && $output = *'compile this file with kernels/cpu-nvcc'* ]]
}

@test "a timeline has the kernel, on every rank" {
    ! on_gpus || skip 'kernels are not seen on GPUs'
    NCCL_TIMELINE="$BATS_TEST_TMPDIR/run.json" timeout 60 mpirun -np 2 --oversubscribe "$top/$program" >/dev/null
    [ "$(command grep -o '"name":"all_reduce"' "$BATS_TEST_TMPDIR/run.json" | wc -l)" -eq 2 ]
}
