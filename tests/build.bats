#!/usr/bin/env bats
# The Makefile, as people use it: each test works in a copy of its own.

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
    unset BACKEND MAKEFLAGS MFLAGS MAKELEVEL
    export OMPI_MCA_mpi_yield_when_idle=1
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    copy=$BATS_TEST_TMPDIR/course
    mkdir "$copy"
    (cd "$top" && git ls-files -z | xargs -0 cp --parents -t "$copy")
    cd "$copy"
    export CFLAGS='-O0 -g' # many builds: quick ones
}

programs() {
    find . -path './[0-9]*' -type f -perm -u+x | sort
}

@test "make builds every lesson, once" {
    run timeout 120 make -j2
    [ "$status" -eq 0 ]
    [ "$(programs | wc -l)" -eq "$(find . -path './[0-9]*' -name '*.c' | wc -l)" ]
    run timeout 60 make
    [ "$status" -eq 0 ]
    [[ $output != *mpicc* ]]
}

@test "it says which build, and why" {
    run make CUDA_HOME=/nowhere
    [[ ${lines[0]} == "BACKEND=cpu (no CUDA Toolkit found; CUDA_HOME says where it is)" ]]
    run make BACKEND=cpu
    [[ ${lines[0]} == "BACKEND=cpu (as asked)" ]]
    if ! ls /dev/nvidia[0-9]* 2>/dev/null; then
        mkdir -p home/include
        touch home/include/cuda_runtime.h home/include/nccl.h
        run make CUDA_HOME="$copy/home"
        [[ ${lines[0]} == "BACKEND=cpu (no GPU is visible here; "* ]]
        rm home/include/nccl.h
        run make CUDA_HOME="$copy/home" NCCL_HOME=/nowhere
        [[ ${lines[0]} == "BACKEND=cpu (no NCCL found; NCCL_HOME says where it is)" ]]
    fi
}

@test "wrong choices are told in a line" {
    run make BACKEND=gpu
    [ "$status" -ne 0 ]
    [[ $output == *"BACKEND=gpu is none of auto, cpu, cuda"* ]]
    run make BACKEND=cuda CUDA_HOME=/nowhere
    [ "$status" -ne 0 ]
    [[ $output == *"no CUDA Toolkit: set CUDA_HOME"* ]]
    mkdir -p home/include
    touch home/include/cuda_runtime.h
    run make BACKEND=cuda CUDA_HOME="$copy/home" NCCL_HOME=/nowhere
    [ "$status" -ne 0 ]
    [[ $output == *"no NCCL: set NCCL_HOME"* ]]
}

@test "a changed header rebuilds" {
    timeout 120 make -s BACKEND=cpu
    touch -d '+2 seconds' common/lesson.h
    run timeout 120 make BACKEND=cpu
    [ "$(grep -c '^mpicc' <<<"$output")" -ge 5 ]
}

@test "changing the build rebuilds, in both directions" {
    make -n BACKEND=cuda all >/dev/null 2>&1 || skip "no CUDA Toolkit with NCCL here"
    timeout 120 make -s BACKEND=cpu
    [ "$(ldd 01-nccl-broadcast/broadcast | grep -c libnccl)" -eq 0 ]
    timeout 120 make -s BACKEND=cuda
    [ "$(ldd 01-nccl-broadcast/broadcast | grep -c libnccl)" -eq 1 ]
    timeout 120 make -s BACKEND=cpu
    [ "$(ldd 01-nccl-broadcast/broadcast | grep -c libnccl)" -eq 0 ]
}

@test "make inside a lesson's folder builds that lesson" {
    cd 02-nccl-allreduce
    run timeout 120 make BACKEND=cpu
    [ "$status" -eq 0 ]
    [ -x allreduce ]
    [ ! -e ../01-nccl-broadcast/broadcast ]
    run timeout 60 mpirun --oversubscribe -np 2 ./allreduce
    [ "${lines[-1]}" = "OK: 2 ranks, all 8 elements as expected" ]
    make -s clean
    [ ! -e allreduce ]
}

@test "make clean leaves nothing" {
    git init -q . && git add -A
    timeout 120 make -s BACKEND=cpu
    [ -z "$(git status --porcelain --untracked-files=all | grep -v '^A ')" ]
    make -s clean
    [ -z "$(git status --porcelain --ignored | grep -v '^A ')" ]
}

@test "make help lists every target that people type" {
    run make help
    [ "$status" -eq 0 ]
    for target in $(sed -n 's/^\.PHONY: help //p' Makefile); do
        [[ $output == *"make $target"* ]]
    done
}

@test "cpu-flags builds a program from any folder, in C and in C++" {
    mkdir "$BATS_TEST_TMPDIR/elsewhere"
    cd "$BATS_TEST_TMPDIR/elsewhere"
    cat >mine.c <<'END'
#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, version;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    ncclGetVersion(&version);
    if (rank == 0)
        printf("version %d\n", version);
    MPI_Finalize();
}
END
    cp mine.c mine.cpp
    # shellcheck disable=SC2046 # the flags are words
    mpicc mine.c $(make -s -C "$copy" cpu-flags) -o mine
    run timeout 60 mpirun --oversubscribe -np 2 ./mine
    [[ ${lines[-1]} == "version 2"* ]]
    # shellcheck disable=SC2046
    mpicxx mine.cpp $(make -s -C "$copy" cpu-flags) -o mine++
    run timeout 60 mpirun --oversubscribe -np 2 ./mine++
    [[ ${lines[-1]} == "version 2"* ]]
}

@test "make demo runs every lesson on four ranks" {
    run timeout 200 make demo BACKEND=cpu
    [ "$status" -eq 0 ]
    lessons=$(find . -path './[0-9]*' -name '*.c' | wc -l)
    [ "$(grep -c '^\$ mpirun -np 4 ' <<<"$output")" -eq "$lessons" ]
    [ "$(grep -c '^OK: 4 ranks, ' <<<"$output")" -ge 5 ]
}

@test "what is missing is installed, or listed" {
    mkdir bin
    cat >bin/dpkg-query <<'END'
#!/bin/sh
[ "$5" = present ] || [ "$4" = present ] && echo -n installed
END
    cat >bin/apt-get <<'END'
#!/bin/sh
echo "apt-get $*" >>"$CALLS"
END
    cat >bin/sudo <<'END'
#!/bin/sh
echo "sudo $*" >>"$CALLS"
END
    chmod +x bin/*
    export CALLS=$PWD/calls PATH=$PWD/bin:$PATH
    run common/install.sh present
    [ "$status" -eq 0 ] && [ -z "$output" ]
    INSTALL=no run common/install.sh present absent other
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "Missing packages: absent other" ]
    [ "${lines[1]}" = "Install them with: sudo apt-get install absent other" ]
    [ ! -e calls ]
    run common/install.sh present absent
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "Installing: absent" ]
    grep -q 'apt-get install -y --no-install-recommends absent' calls
}
