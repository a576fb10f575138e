#!/usr/bin/env bash
# Kernels without a GPU: programs compiled by cpu-nvcc. Many small cases in each, so that little is compiled.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
source "$top/common/one-machine.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if ! command -v clang++ >/dev/null; then
    echo '1..0 # SKIP clang is not installed'
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make -s -C "$top" BACKEND=cpu build/cpu/libnccl-cpu.a >/dev/null 2>&1 || make -s -C "$top" BACKEND=cpu cpu-forms
nvcc=$top/kernels/cpu-nvcc
cd "$top/tests/kernels"
tests=0

# is NAME COMMAND…: it succeeds.
is() {
    local name=$1
    shift
    tests=$((tests + 1))
    if timeout 120 "$@" >"$work/log" 2>&1; then
        echo "ok $tests - $name"
    else
        tail -n 30 "$work/log" | sed 's/^/# /'
        echo "not ok $tests - $name"
    fi
}

# says WORDS COMMAND…: what it prints matches.
says() {
    local words=$1
    shift
    timeout 60 "$@" >"$work/out" 2>&1 || true
    cat "$work/out"
    grep -qE "$words" "$work/out"
}
# quiet COMMAND…: it ends well, and nothing is reported.
quiet() {
    timeout 60 "$@" >"$work/out" 2>&1 || { cat "$work/out"; return 1; }
    cat "$work/out"
    ! grep -q 'NCCL CHECK' "$work/out"
}
export -f says quiet 2>/dev/null || true

case_of() {
    local function=$1
    shift
    tests=$((tests + 1))
    if "$function" "${@:2}" >"$work/log" 2>&1; then
        echo "ok $tests - $1"
    else
        tail -n 30 "$work/log" | sed 's/^/# /'
        echo "not ok $tests - $1"
    fi
}

for program in plain together library wrong; do
    is "$program.cu compiles" "$nvcc" -std=c++14 -g -o "$work/$program" "$program.cu" -lnccl
done
is 'plain kernels: indices, arguments, pointers in memory, variables, order, wrong launches' "$work/plain"
is 'shared memory, barriers, atomics, warps, half' "$work/together"
case_of quiet 'CUB, Thrust, cuRAND, cooperative groups, cuda/atomic and functional, 8-bit floats, inline PTX' "$work/library"
two_files() {
    "$nvcc" -DPART=1 -dc -Xcompiler -fPIC -o "$work/one.o" two.cu && "$nvcc" -DPART=2 -dc -o "$work/two.o" two.cu &&
        "$nvcc" -o "$work/two" "$work/one.o" "$work/two.o" && quiet "$work/two"
}
case_of two_files 'kernels use device functions and variables of another file, also with -fPIC'
wrong=$work/wrong
case_of quiet 'halves of a buffer on two streams are no race' "$wrong" 0
case_of quiet 'what a kernel writes through a struct counts as written' "$wrong" 1
case_of says 'one element too many: kernel, block, thread, line and buffer' \
    'kernel scale uses.*block \(4096,0,0\), thread \(0,0,0\).*wrong.cu:1[01]; 0 bytes past the end of the nearest buffer, of 4194304' "$wrong" 2
case_of says 'a kernel reads on one stream what NCCL writes on another' 'NCCL CHECK: race' "$wrong" 3
case_of says 'the host'\''s memory is named' 'a buffer of copy is not memory that a GPU can use' "$wrong" 4
case_of says 'freed memory is named' 'a buffer of copy was freed before' "$wrong" 5
case_of says 'a launch that CUDA refuses is named' 'copy at wrong.cu:[0-9]+ returned cudaErrorInvalidValue' "$wrong" 6
case_of says 'NCCL sends what a kernel writes on another stream' 'NCCL CHECK: race' "$wrong" 7
line=$(grep -n '255 - i' wrong.cu | cut -d: -f1)
case_of says 'a wrong address behind a barrier has its line' "kernel turn uses .*wrong.cu:$line; 0 bytes past the end" "$wrong" 8
case_of says 'a division by zero is named' 'kernel divide divides an integer by zero: block \(0,0,0\), thread \(0,0,0\), at wrong.cu' "$wrong" 9
case_of quiet 'of an empty share no element is used: no race, no freed memory' "$wrong" 10
case_of says 'a loop whose step is the grid is part of races' 'stride at wrong.cu:[0-9]+ writes' "$wrong" 11
case_of says 'a condition in two dimensions, too' 'plane at wrong.cu:[0-9]+ writes' "$wrong" 14
case_of says 'an address that is no multiple of 16 is named' 'kernel wide uses an address that is not .*aligned.*wrong.cu:' "$wrong" 12
case_of says 'a loop whose step is the grid names the thread, too' 'kernel stride uses.*: block \(61,0,0\), thread \(68,0,0\)' "$wrong" 15
line=$(grep -n ' all\[threadIdx.x\] = x' wrong.cu | tail -n 1 | cut -d: -f1)
case_of says 'a launch without its shared memory' "kernel reverse uses shared memory past the 0 bytes .*, thread \(0,0,0\), at wrong.cu:$line" "$wrong" 16
case_of says 'a launch with too little shared memory' 'kernel reverse writes shared memory past the 256 bytes' "$wrong" 17
case_of says 'freed memory in a struct' 'kernel fill uses .*; the buffer that was there has been freed' "$wrong" 18
case_of says 'memory before a buffer is named' 'kernel part uses.*; 32 bytes before the nearest buffer, of 4194304' "$wrong" 13
# Options that Makefiles have.
options() {
    cd "$work" && printf '%s\n' '#include "other.h"' 'int main() { return other; }' >of.cu && echo 'enum { other = 0 };' >other.h &&
        "$nvcc" -Xcompiler -Wall,-Wextra,-Werror,-fPIC -MMD -MP --forward-unknown-to-host-compiler -dc of.cu -odir . &&
        grep -q 'of.o:.*of.cu.*other.h' <(tr -d '\\\n' <of.d) && "$nvcc" -dlink of.o -o linked.o && "$nvcc" -lib of.o -o libof.a &&
        echo '"of.o" linked.o' >objects && "$nvcc" @objects -o of -run && "$nvcc" --options-file objects -o of -run &&
        OMPI_CXX=$nvcc MPICH_CXX=$nvcc mpicxx of.o -lnccl -lcudart -o last && ./last
}
case_of options 'warnings as errors, -MMD, -dlink, -lib, -run, a file of arguments, a link by mpicxx'
# Clang compiles for a library other than the one gcc would link.
openmp() {
    cd "$work" && printf '%s\n' 'int main() {' '    int sum = 0;' '#pragma omp parallel for reduction(+ : sum)' \
        '    for (int i = 0; i < 5; i++) sum += i;' '    return sum - 10;' '}' >omp.cu &&
        "$nvcc" -Xcompiler -fopenmp -c omp.cu && "$nvcc" -Xcompiler -fopenmp omp.o -o omp && ./omp
}
# shellcheck disable=SC2016 # of the script that is written
no_openmp() {
    cd "$work" && printf '%s\n' '#!/bin/sh' 'case $1 in -print-file-name*) echo libomp.so ;; *) exec clang++ "$@" ;; esac' >clang-without &&
        chmod +x clang-without && ! CPU_NVCC_CLANG=$PWD/clang-without "$nvcc" -Xcompiler -fopenmp omp.cu -o omp 2>said &&
        grep -q "^cpu-nvcc: -fopenmp needs clang's library of OpenMP: sudo apt-get install libomp-dev$" said
}
if clang++ -x c++ -fopenmp - -o "$work/omp" <<<'int main() {}' 2>/dev/null; then
    case_of openmp '-fopenmp for the host'\''s half'
fi
case_of no_openmp '-fopenmp without its library: one line says what to install'
# A shared library's kernels and the program's calls have one library for both: it knows what is left behind.
shared() {
    cd "$work" && printf '%s\n' '__global__ void set(int *x) { *x = 3; }' 'void launch(int *x) { set<<<1, 1>>>(x); }' >set.cu &&
        printf '%s\n' '#include <cuda_runtime.h>' 'void launch(int *x);' 'int main() {' '    int *x, y = 0;' '    cudaMalloc(&x, 4);' \
            '    launch(x);' '    cudaMemcpy(&y, x, 4, cudaMemcpyDefault);' '    return y - 3;' '}' >uses.cu &&
        "$nvcc" -shared -Xcompiler -fPIC -o libset.so set.cu && "$nvcc" -o uses uses.cu -L. -lset -Xlinker "-rpath=$work" &&
        ./uses 2>said && grep -q 'left behind' said
}
case_of shared 'kernels in a shared library'
# CMake asks nvcc for its lines, and links with what they name.
# shellcheck disable=SC2016 # CMake's
cmakes() {
    mkdir -p "$work/cmake" && cp "$work/of.cu" "$work/other.h" "$work/cmake" && cd "$work/cmake" &&
        printf '%s\n' 'cmake_minimum_required(VERSION 3.18)' 'project(of LANGUAGES CXX CUDA)' 'find_package(CUDAToolkit REQUIRED)' \
            'find_library(nccl nccl REQUIRED)' 'add_executable(of of.cu)' 'target_link_libraries(of PRIVATE CUDA::cudart ${nccl})' \
            'set_target_properties(of PROPERTIES CUDA_SEPARABLE_COMPILATION ON)' >CMakeLists.txt &&
        timeout 100 cmake -B made -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_PREFIX_PATH="$top/build/cpu/toolkit" . && timeout 100 cmake --build made && made/of
}
if command -v cmake >/dev/null; then
    case_of cmakes 'CMake takes it for nvcc'
fi
# What is not there is refused by its name when it is compiled.
refuses() {
    printf '%s\n' "$2" 'int main() {}' >"$work/refused.cu"
    ! "$nvcc" "$work/refused.cu" -o "$work/refused" 2>"$work/said" && grep -q "$1" "$work/said"
}
case_of refuses 'tensor cores are refused' 'mma.h' '#include <mma.h>'
case_of refuses 'a barrier of the whole grid is refused' 'grid.sync() is not there' \
    '#include <cooperative_groups.h>
    __global__ void k(int *x) { *x = 1; cooperative_groups::this_grid().sync(); *x = 2; }'
case_of refuses 'a device function of another file needs -dc' 'of another file needs -dc: twice(float)' \
    '__device__ float twice(float x); __global__ void k(float *x) { *x = twice(*x); }'
case_of refuses 'a header of Thrust that is not there is refused' 'cpu-nvcc: thrust/sort.h is not there' '#include <thrust/sort.h>'
case_of refuses 'a part of CUB that is not there is refused' 'cpu-nvcc: cub::BlockScan is not there' \
    '#include <cub/cub.cuh>
    __global__ void k() { using scan = cub::BlockScan<int, 128>; }'
case_of refuses 'an intrinsic that is not there is refused' 'cpu-nvcc: __vavgu4 is not there' \
    '__global__ void k(unsigned *x) { *x = __vavgu4(x[0], x[1]); }'
case_of refuses 'a call of CUDA that is not there is refused' 'cpu-nvcc: cudaGraphGetNodes is not there' \
    'cudaError_t f(cudaGraph_t g, size_t *n) { return cudaGraphGetNodes(g, nullptr, n); }'
case_of refuses 'a variable of another file needs -dc' 'of another file needs -dc: n' \
    'extern __device__ int n; __global__ void k() { n++; }'
case_of refuses 'inline PTX is refused' 'inline PTX is not there: "bfind.u32 ' \
    '__global__ void k(unsigned *x) { asm("bfind.u32 %0, %1;" : "=r"(x[0]) : "r"(x[1])); }'

# A kernel in a file of C, or its launch: the compiler's errors name the way. What only declares one, or has its
# words in comments, strings and variables, compiles without a word. (gcc knows "unavailable" since version 12.)
flags=$(make -s -C "$top" BACKEND=cpu cpu-flags | sed 's/ [^ ]*libnccl-cpu.*//')
compiles() { # FILE
    # shellcheck disable=SC2086 # several options
    "${MPICC:-mpicc}" -std=gnu11 -Wall -Wextra -fsyntax-only "$1" $flags 2>"$work/said"
}
directs() { # LINE OF THE FILE, TEXT
    printf '#include <cuda_runtime.h>\n%s\n' "$2" >"$work/kernel.c"
    ! compiles "$work/kernel.c" && cat "$work/said" &&
        grep -q "^[^ ]*kernel.c:$1:.*kernels and <<< >>> need a file named .cu, and the compiler kernels/cpu-nvcc" "$work/said"
}
if "${MPICC:-mpicc}" -E -x c - <<<'__has_attribute(unavailable)' 2>/dev/null | grep -q '^1'; then
    case_of directs 'a kernel in a .c file: named .cu, cpu-nvcc compiles it' 3 '__global__ void k(int *x) {
    x[blockIdx.x] = 1; }'
fi
case_of directs 'its launch, too' 4 '__global__ void k(void) {}
void f(void) {
    k<<<1, 1>>>(); }'
# What else the compilers say of them has a row in errors.md.
has_row() { # FILE, MESSAGE
    printf '#include <cuda_runtime.h>\n__global__ void k(void) {}\nint main() { k<<<1, 1>>>(); }\n' >"$work/$1"
    ! env -u OMPI_LDFLAGS LC_ALL=C "${MPICXX:-mpicxx}" "$work/$1" -I"$top/cpu/include" -o "$work/kernel" 2>"$work/said" &&
        grep -qF "$2" "$work/said" && grep -qF "$2" "$top/errors.md"
}
case_of has_row 'errors.md: a launch in a .cpp file' kernel.cpp "expected primary-expression before '<' token"
case_of has_row 'errors.md: a .cu file for the linker' kernel.cu 'file format not recognized; treating as linker script'
has_words() {
    cat >"$work/words.c" <<'END'
// k<<<1, 2>>>(blockIdx)
#include <cuda_runtime.h>
__host__ __device__ static inline float twice(float x) { return 2 * x; }
__global__ void elsewhere(float *x); /* threadIdx.x */
const char *f(int threadIdx) {
    const int blockIdx = (int)twice(3);
    return threadIdx < blockIdx ? "k<<<1, 2>>>()" : "blockIdx";
}
END
    compiles "$work/words.c" && ! grep . "$work/said"
}
case_of has_words 'their words in a .c file are nothing to say a word about'
echo "1..$tests"
