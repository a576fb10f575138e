#!/usr/bin/env bats
# The Makefile, as people use it: each test works in a copy of the course in which everything is
# built for the CPU. ALL=yes (make test-long) copies every lesson, not every fifth.

setup_file() {
    unset BACKEND MAKEFLAGS MFLAGS MAKELEVEL
    built=$BATS_FILE_TMPDIR/built
    mkdir "$built"
    cd "$BATS_TEST_DIRNAME/../.."
    timeout 900 make -s BACKEND=cpu all
    {
        git ls-files -z
        printf '%s\0' [0-9]*/*.c [0-9]*/*.cu common/cuda.c | sed -z 's/\.cu\?$//'
        find build/config build/cpu build/lessons build/made -type f -print0
    } | xargs -0 cp -a --parents -t "$built"
}

setup() {
    source "$BATS_TEST_DIRNAME/../../common/one-machine.sh"
    copy=$BATS_TEST_TMPDIR/course
    cp -a "$BATS_FILE_TMPDIR/built" "$copy"
    cd "$copy" || return
}

programs() {
    find . -path './[0-9]*' -type f -perm -u+x | sort
}

@test "make says which build it makes, and builds every lesson, once" {
    rm $(programs)
    run make -n BACKEND=cpu
    [ "$(grep -c "^echo 'BACKEND=" <<<"$output")" -eq 1 ]
    [ "$(grep "^echo 'CC [0-9]" <<<"$output")" = "$(printf "echo 'CC %s'\n" [0-9]*/*.c)" ]
    rm -r 0[3-9]* [12]*
    run timeout 400 make BACKEND=cpu
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "BACKEND=cpu (as asked)" ]
    [ "$(programs | wc -l)" -eq 3 ]
    run timeout 400 make BACKEND=cpu
    [ "$status" -eq 0 ]
    [ "$output" = "BACKEND=cpu (as asked)" ]
}

# said PATTERN ARGUMENT…: what make says of its choice.
said() {
    local pattern=$1
    shift
    run make -s announce "$@"
    echo "$output"
    [ "$status" -eq 0 ]
    # shellcheck disable=SC2053 # a pattern
    [[ $output == $pattern ]]
}

@test "it says which build, and why" {
    said 'BACKEND=cpu (no CUDA Toolkit found; CUDA_HOME says where it is)' CUDA_HOME=/nowhere
    said 'BACKEND=cpu (as asked)' BACKEND=cpu
    # A CUDA Toolkit, and a machine with a GPU.
    mkdir -p bin home/include
    touch home/include/cuda_runtime.h
    said 'BACKEND=cpu (no NCCL found; NCCL_HOME says where it is)' \
        CUDA_HOME="$copy/home" NCCL_HOME=/nowhere
    touch home/include/nccl.h home/include/nccl_device.h
    printf '#!/bin/sh\necho "GPU 0: one"\n' >bin/nvidia-smi
    chmod +x bin/nvidia-smi
    PATH=$copy/bin:$PATH said "BACKEND=cuda (CUDA in $copy/home, NCCL in $copy/home, and a GPU is visible)" \
        CUDA_HOME="$copy/home" NCCL_HOME="$copy/home"
    said 'BACKEND=cpu (as asked)' CUDA_HOME="$copy/home" NCCL_HOME="$copy/home" BACKEND=cpu
    ls /dev/nvidia[0-9]* 2>/dev/null || {
        printf '#!/bin/sh\nexit 9\n' >bin/nvidia-smi
        PATH=$copy/bin:$PATH said 'BACKEND=cpu (no GPU is visible here; *' \
            CUDA_HOME="$copy/home" NCCL_HOME="$copy/home"
    }
}

@test "wrong choices are told in a line" {
    run make BACKEND=gpu
    [ "$status" -ne 0 ]
    [[ $output == *"BACKEND=gpu is none of auto, cpu, cuda"* ]]
    run make BACKEND=cuda CUDA_HOME=/nowhere
    [ "$status" -ne 0 ]
    [[ $output == *"no CUDA Toolkit: set CUDA_HOME"* ]]
    run make -s cuda-flags CUDA_HOME=/nowhere
    [ "$status" -eq 2 ]
    [[ $output == *'make cuda-flags, but no CUDA Toolkit: set CUDA_HOME'*', or take make cpu-flags'* ]]
    mkdir -p home/include
    touch home/include/cuda_runtime.h
    run make BACKEND=cuda CUDA_HOME="$copy/home" NCCL_HOME=/nowhere
    [ "$status" -ne 0 ]
    [[ $output == *"no NCCL: set NCCL_HOME"* ]]
}

@test "without mpicc, or in a path with a space, make says so at once" {
    for goal in all cpu-flags exercise; do
        run make "$goal" BACKEND=cpu MPICC=mpicc-nowhere
        echo "$output"
        [ "$status" -ne 0 ]
        [ "${#lines[@]}" -eq 1 ]
        [[ $output == *"no mpicc-nowhere here. Install Open MPI (on Debian and Ubuntu \`make demo\` does: "* ]]
    done
    run make help MPICC=mpicc-nowhere
    [ "$status" -eq 0 ]
    mkdir 'my folder'
    mv 01-nccl-broadcast common cpu check Makefile 'my folder'
    for folder in . 01-nccl-broadcast; do
        run make -C "my folder/$folder" --no-print-directory
        echo "$output"
        [ "$status" -ne 0 ]
        [ "${#lines[@]}" -eq 1 ]
        [[ $output == *"make cannot work in a folder whose path has a space, '$copy/my folder"* ]]
    done
}

# alone FOLDER: the lesson is built for GPUs with nothing but common/ beside it. One with kernels needs a real CUDA.
alone() {
    local where=(CUDA_HOME="$home" NCCL_HOME="$home") program
    program=$(basename "$1"/*.c* | sed 's/\.cu\{0,1\}$//')
    mkdir "$home/$1"
    cp -a "$1" common "$home/$1"
    rm -f "$home/$1/$1/$program"
    if compgen -G "$1/*.cu" >/dev/null; then
        make -s cuda-flags >/dev/null 2>&1 && command -v nvcc >/dev/null || return 0
        where=()
    fi
    make -s -C "$home/$1/$1" "${where[@]}" WARNINGS='-Wall -Wextra -Werror'
    [ -x "$home/$1/$1/$program" ]
}

@test "a lesson's folder and common/ are enough: each builds for GPUs, alone in an empty place" {
    # The stand-in's headers, and its library by the names of the real ones: a CUDA and an NCCL that are everywhere.
    export home=$BATS_TEST_TMPDIR/home
    make -s BACKEND=cpu cpu-standin
    mkdir -p "$home/lib"
    cp -a cpu/include "$home/include"
    [ ! -d "$home/include/absent" ] || cp "$home"/include/absent/* "$home/include"
    for name in nccl cudart cublas; do
        ln -s "$copy/build/cpu/libnccl-cpu.so" "$home/lib/lib$name.so"
    done
    export -f alone
    printf '%s\n' [0-9][0-9]-* | xargs -P 2 -I{} bash -euo pipefail -c 'alone {}'
    # What it builds is a program: it runs.
    cd "$home/02-nccl-allreduce/02-nccl-allreduce"
    run timeout 300 mpirun --oversubscribe -np 2 ./allreduce
    [ "${lines[-1]}" = "OK: 2 ranks, all 8 elements as expected" ]
    # No CUDA, or the CPU build is asked for, which is not here: one line says it.
    make -s clean
    for arguments in BACKEND=cpu "CUDA_HOME=/nowhere NCCL_HOME=$home" "CUDA_HOME=$home NCCL_HOME=/nowhere"; do
        # shellcheck disable=SC2086 # words
        run make $arguments
        echo "$output"
        [ "$status" -eq 2 ]
        [ "${#lines[@]}" -eq 1 ]
        [[ $output == *' cpu/, check/ and kernels/ of the course beside common/'* ]]
    done
}

# compiled FILE: what make would compile again if FILE had changed.
compiled() {
    run make -n -W "$copy/$1" BACKEND=cpu
    [ "$status" -eq 0 ]
    output=$(sed -n "s/^echo 'CC \(.*\)'$/\1/p" <<<"$output" | sort)
    echo "$output"
}

@test "a changed header compiles what includes it, and nothing else" {
    compiled 15-grid/report.h
    [ "$output" = 15-grid/grid.c ]
    compiled common/lesson.h
    [ "$output" = "$(printf '%s\n' [0-9]*/*.c | sort)" ]
    compiled cpu/src/blas/arithmetic.h
    [ "$output" = "$(printf '%s\n' "$(grep -l '"blas/arithmetic.h"' cpu/src/*/*.c)" [0-9]*/*.c common/cuda.c | sort)" ]
}

@test "V=1 shows the commands, and -s shows nothing" {
    touch 02-nccl-allreduce/allreduce.c
    run timeout 400 make V=1 BACKEND=cpu
    [[ $output == *"mpicc "*"02-nccl-allreduce/allreduce.c"* ]]
    [[ $output != *"CC 02"* ]]
    touch 02-nccl-allreduce/allreduce.c
    run timeout 400 make -s BACKEND=cpu
    [ "$output" = "BACKEND=cpu (as asked)" ]
}

@test "a new source in any folder is built, and one that moves" {
    mkdir cpu/src/new
    echo 'int cpu_new_source(void) { return 7; }' >cpu/src/new/source.c
    sed 's/cpu_new/check_new/' cpu/src/new/source.c >check/judge/history/other.c
    timeout 300 make -s BACKEND=cpu cpu-flags
    nm build/cpu/libnccl-cpu.a | grep -q cpu_new_source
    nm build/cpu/libnccl-cpu.a | grep -q check_new_source
    mv check/judge/history/other.c check/judge/other.c
    rm -r cpu/src/new
    timeout 300 make -s BACKEND=cpu cpu-flags
    nm build/cpu/libnccl-cpu.a | grep -q check_new_source
    run grep -c cpu_new_source <(nm build/cpu/libnccl-cpu.a)
    [ "$output" -eq 0 ]
    # A new folder of the checks is one more to look for headers in, so all would be compiled again.
    mkdir check/judge/new
    mv check/judge/other.c check/judge/new
    make -n BACKEND=cpu all | grep -xF "echo 'CC check/judge/new/other.c'"
}

@test "changing the build rebuilds, in both directions" {
    make -n BACKEND=cuda all >/dev/null 2>&1 || skip "no CUDA Toolkit with NCCL here"
    cd 01-nccl-broadcast
    [ "$(ldd broadcast | grep -c libnccl)" -eq 0 ]
    timeout 600 make -s BACKEND=cuda
    [ "$(ldd broadcast | grep -c libnccl)" -eq 1 ]
    timeout 600 make -s BACKEND=cpu
    [ "$(ldd broadcast | grep -c libnccl)" -eq 0 ]
}

@test "make inside a lesson's folder builds that lesson" {
    make -s clean-lesson
    [ -z "$(programs)" ]
    cd 02-nccl-allreduce
    run timeout 600 make BACKEND=cpu
    [ "$status" -eq 0 ]
    [ -x allreduce ]
    [ ! -e ../01-nccl-broadcast/broadcast ]
    run timeout 300 mpirun --oversubscribe -np 2 ./allreduce
    [ "${lines[-1]}" = "OK: 2 ranks, all 8 elements as expected" ]
    make -s clean
    [ ! -e allreduce ]
}

@test "make builds the lesson that its folder or its program names" {
    make -s clean-lesson
    for goal in 02-nccl-allreduce 02-nccl-allreduce/ 02-nccl-allreduce/allreduce '-C 02-nccl-allreduce allreduce'; do
        # shellcheck disable=SC2086 # two words, the last time
        run make -n --no-print-directory BACKEND=cpu $goal
        echo "$output"
        [ "$status" -eq 0 ]
        [ "$(grep "^echo 'CC " <<<"$output")" = "echo 'CC 02-nccl-allreduce/allreduce.c'" ]
    done
    run timeout 600 make --no-print-directory BACKEND=cpu 02-nccl-allreduce
    [ "$output" = $'BACKEND=cpu (as asked)\nCC 02-nccl-allreduce/allreduce.c' ]
    [ "$(programs)" = ./02-nccl-allreduce/allreduce ]
}

@test "make clean leaves nothing, and git sees nothing of what is built" {
    git init -q .
    (cd "$BATS_TEST_DIRNAME/../.." && git ls-files -z) | xargs -0 git add -f
    [ -z "$(git status --porcelain --untracked-files=all | grep -v '^A ')" ]
    [ -n "$(git status --porcelain --ignored | grep -v '^A ')" ]
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
    run timeout 300 mpirun --oversubscribe -np 2 ./mine
    [[ ${lines[-1]} == "version 2"* ]]
    # shellcheck disable=SC2046
    mpicxx mine.cpp $(make -s -C "$copy" cpu-flags) -o mine++
    run timeout 300 mpirun --oversubscribe -np 2 ./mine++
    [[ ${lines[-1]} == "version 2"* ]]
    # A lesson that is copied as README.md says.
    flags=$(make -s -C "$copy" cpu-flags)
    for lesson in "$copy"/[0-9]*/; do
        [[ $lesson == */?[05]-* || -n ${ALL:-} ]] || continue
        rm -rf mine && mkdir mine
        compgen -G "$lesson*.c" >/dev/null || continue # 25: kernels.cu
        cp "$lesson"*.[ch] "$copy"/common/*.h mine
        # shellcheck disable=SC2086
        mpicc -fsyntax-only mine/*.c $flags
    done
}

@test "make install: pkg-config alone builds a program, without the course" {
    usr=$BATS_TEST_TMPDIR/usr
    run timeout 600 make install PREFIX="$usr" BACKEND=cpu CUDA_HOME=/nowhere
    echo "$output"
    [ "$status" -eq 0 ]
    [ "${lines[-2]}" = "Installed in $usr: bin/nccl-check, bin/cpu-nvcc, lib/libnccl-cpu.a (pkg-config nccl-cpu), and their man pages." ]
    [ "${lines[-1]}" = "No headers of CUDA and NCCL here (CUDA_HOME, NCCL_HOME): on GPUs nccl-check does not work." ]
    run make BACKEND=cpu
    echo "$output"
    [ "$output" = 'BACKEND=cpu (as asked)' ] # nothing is compiled again
    version=$(make -s version)
    rm -r "$copy"
    mkdir "$BATS_TEST_TMPDIR/mine"
    cd "$BATS_TEST_TMPDIR/mine"
    cp "$BATS_TEST_DIRNAME/../../02-nccl-allreduce/allreduce.c" "$BATS_TEST_DIRNAME"/../../common/*.h .
    export PKG_CONFIG_PATH=$usr/lib/pkgconfig
    [ "$(pkg-config --modversion nccl-cpu)" = "$version" ]
    # shellcheck disable=SC2046 # the flags are words
    mpicc allreduce.c $(pkg-config --cflags --libs nccl-cpu) -o allreduce
    NCCL_CPU_CLOCK=h200 run timeout 300 mpirun --oversubscribe -np 2 ./allreduce
    echo "$output"
    [ "${lines[-1]}" = "OK: 2 ranks, all 8 elements as expected" ]
    [[ ${lines[0]} == *h200* ]]
    [ "$("$usr/bin/nccl-check" --version)" = "nccl-check $version" ]
    run timeout 300 "$usr/bin/nccl-check" ./allreduce
    [ "${lines[-1]}" = "OK: 1 rank, all 4 elements as expected" ]
    man -l "$usr/share/man/man1/nccl-check.1" | grep -q NCCL_CHECK_TIMEOUT
    man -l "$usr/share/man/man7/nccl-cpu.7" | grep -q CPU_DEVICES
}

@test "common/one-machine.sh: more ranks than cores, and as root, with nothing else set" {
    run env -i PATH="$PATH" HOME="$HOME" bash -c \
        "source common/one-machine.sh && timeout 300 mpirun -np $(($(nproc) + 2)) true"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "one version stands everywhere" {
    version=$(make -s version)
    [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]
    [[ $(grep -m 1 '^## ' CHANGELOG.md) =~ ^"## $version, "(20[0-9]{2}-[0-9]{2}-[0-9]{2})$ ]]
    grep -qxF "version: $version" CITATION.cff
    grep -qxF "date-released: ${BASH_REMATCH[1]}" CITATION.cff
}

@test "make demo: each lesson with its title and its question, and how many ended well" {
    sed -i 's/lesson_expect(0, /&1 + /' 00-nccl-hello-world/hello.c
    # Those that are started in ways of their own, and a few of the others.
    rm -r 0[3-589]-* 1[0-57-9]-* 2[0-256]-*
    run timeout 900 make demo BACKEND=cpu
    [ "$status" -ne 0 ]
    lessons=$(printf '%s\n' [0-9]*/*.c | wc -l)
    [ "$(grep -cE '^\$ .*[0-9]{2}-[a-z0-9-]+/[a-z_]+' <<<"$output")" -eq "$lessons" ]
    grep -E ' OK|FAILED' <<<"$output" | tail -n 30
    [[ $output == *"$((lessons - 1)) of $lessons OK; failed: 00-nccl-hello-world ("*" s)"$'\n'*errors.md*$'\n'"Now read common/cuda.md"* ]]
    for readme in [0-9]*/README.md; do
        [[ $output == *"$(sed -n '1s/^# //p' "$readme")"$'\n'[A-Z]*$'?\n\n$ '*"${readme%/*}"* ]]
    done
    # Now with three lessons only, on one rank, with which 07 can do nothing; the others are right.
    rm -r 0[26]-* [12]*
    sed -i 's/(0, 1 + /(0, /' 00-nccl-hello-world/hello.c
    RANKS=1 run timeout 400 make demo BACKEND=cpu
    [ "$status" -eq 0 ]
    [[ ${lines[-3]} == "2 of 3 OK; not with 1 rank: 07-peer-to-peer ("*" s)" ]] || { echo "$output" | tail -n 20; false; }
    [ "${lines[-2]}" = "This was the CPU build: its times say nothing about GPUs." ]
    [[ ${lines[-1]} == "Now read common/cuda.md"* ]]
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
