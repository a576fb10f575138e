#!/usr/bin/env bats
# nccl-check: before which programs it loads the checks, and what it says before the others;
# the library goes on where it can, and gives up in one line where it cannot. ALL=yes (make test-long) compiles kernels.

bats_require_minimum_version 1.5.0
load ../lib

setup_file() {
    make -s -C "$BATS_TEST_DIRNAME/../.." BACKEND=cpu cpu-forms >/dev/null
}

# shellcheck disable=SC2154 # lib.bash
check=$top/check/nccl-check
unset NCCL_CHECK NCCL_CPU_CHECK NCCL_CHECK_TIMEOUT NCCL_CPU_TIMEOUT

# over_standin SOURCE NAME: linked with the stand-in without checks.
over_standin() {
    local compiler=mpicc
    [[ $1 != *.cpp ]] || compiler=mpicxx
    "$compiler" -g "$1" -I"$top/cpu/include" -L"$top/build/cpu" -lnccl-cpu \
        -Wl,-rpath,"$top/build/cpu" -pthread -o "$BATS_TEST_TMPDIR/$2"
}

# started ARGUMENT…: of mpirun; what it prints in $out and $err, exit code in $code.
started() {
    code=0
    timeout 300 mpirun --oversubscribe "$@" >"$BATS_TEST_TMPDIR/out" \
        2>"$BATS_TEST_TMPDIR/err" || code=$?
    out=$(grep -v '^CPU build: ' "$BATS_TEST_TMPDIR/out" || true)
    err=$(without_mpirun <"$BATS_TEST_TMPDIR/err")
}

# needs_cuda: the flags of the real CUDA and NCCL in $cuda, and the library built for them, in a hurry and
# for this file alone. They have functions that the stand-in has not; tests/build/versions.t brings several
# of both along.
needs_cuda() {
    cuda=$(make -s -C "$top" BACKEND=cuda cuda-flags 2>/dev/null) ||
        skip "no CUDA Toolkit with NCCL here (CUDA_HOME, NCCL_HOME)"
    local how=(-C "$top" BACKEND=cuda CFLAGS=-O0 cuda_build="$BATS_FILE_TMPDIR/build/cuda" check-library)
    # The judge knows of no CUDA: newer than the notes on how to build, it is not compiled again.
    make -n "${how[@]}" >/dev/null
    [ -e "$BATS_FILE_TMPDIR/build/cuda/libnccl-check.so" ] ||
        (cd "$top/build/cpu" && find check/judge -name '*.o' -exec cp --parents -t "$BATS_FILE_TMPDIR/build/cuda" {} +)
    make -s -j2 "${how[@]}" >/dev/null
    mkdir -p "$BATS_FILE_TMPDIR/check"
    cp "$check" "$BATS_FILE_TMPDIR/check" # beside which it looks for build/cuda
    check=$BATS_FILE_TMPDIR/check/nccl-check
}

@test "without a program it says how it is used" {
    run "$check"
    [ "$status" -eq 2 ]
    [[ $output == *"mpirun -np 4 nccl-check ./broadcast"* ]]
    run "$check" --help
    [ "$status" -eq 0 ]
}

@test "a wrong program over the stand-in is named, under all names of the settings" {
    over_standin "$top/tests/check/wrong/mismatch-count.c" wrong
    started -np 2 "$check" "$BATS_TEST_TMPDIR/wrong"
    [ "$code" -eq 1 ]
    [[ $err == "NCCL CHECK: mismatch: "* ]]
    [ "$(grep -c 'NCCL CHECK' <<<"$err")" -eq 1 ]
    over_standin "$top/tests/check/wrong/left-buffer.c" left
    for variable in NCCL_CHECK NCCL_CPU_CHECK; do
        started -np 2 env "$variable=off" "$check" "$BATS_TEST_TMPDIR/left"
        [ "$code" -eq 0 ]
        [ -z "$err" ]
    done
}

@test "rank 0's settings are everybody's" {
    over_standin "$top/tests/check/wrong/left-buffer.c" left
    started -np 1 -x NCCL_CHECK=off "$check" "$BATS_TEST_TMPDIR/left" : \
        -np 1 "$check" "$BATS_TEST_TMPDIR/left"
    [ "$code" -eq 0 ]
    [ -z "$err" ]
}

@test "two ranks on one GPU are NCCL's business where it is told to allow them" {
    over_standin "$top/tests/check/right/in-place.c" shares
    cat >"$BATS_TEST_TMPDIR/older.c" <<'END'
int pncclGetVersion(int *version) {
    *version = 22907;
    return 0;
}
END
    cc -shared -fPIC "$BATS_TEST_TMPDIR/older.c" -o "$BATS_TEST_TMPDIR/older.so"
    export CPU_DEVICES=1
    local setup='^NCCL CHECK: setup: two ranks are bound to the same GPU'
    for variables in NCCL_MULTI_RANK_GPU_ENABLE=0 \
        "NCCL_MULTI_RANK_GPU_ENABLE=1 LD_PRELOAD=$BATS_TEST_TMPDIR/older.so"; do
        # shellcheck disable=SC2086 # words
        started -np 2 env $variables "$check" "$BATS_TEST_TMPDIR/shares"
        show
        [ "$code" -eq 1 ]
        grep -q "$setup" <<<"$err"
    done
    started -np 2 env NCCL_MULTI_RANK_GPU_ENABLE=1 "$check" "$BATS_TEST_TMPDIR/shares"
    show
    [ "$code" -eq 0 ]
    [ -z "$err" ]
}

@test "where a process runs without it, all do" {
    over_standin "$top/tests/check/wrong/left-buffer.c" left
    started -np 1 -x NCCL_CHECK_TIMEOUT=0.5 "$check" "$BATS_TEST_TMPDIR/left" : \
        -np 1 "$BATS_TEST_TMPDIR/left"
    [ "$code" -eq 0 ]
    [ "$err" = "NCCL CHECK: not checked: of 2 processes only 1 run under nccl-check" ]
}

@test "without memory it says so, and the job goes on" {
    over_standin "$top/tests/check/nccl-check/no_memory.c" no_memory
    started -np 2 "$check" "$BATS_TEST_TMPDIR/no_memory"
    [ "$code" -eq 0 ]
    [ "$out" = OK ]
    [ "$err" = "NCCL CHECK: not checked from here on: no memory is left for the checks" ]
}

@test "a process that is forked off is none of its business" {
    over_standin "$top/tests/check/nccl-check/forks.c" forks
    started -np 2 "$check" "$BATS_TEST_TMPDIR/forks"
    [ "$code" -eq 0 ]
    [ "$out" = OK ]
    [ -z "$err" ]
}

@test "a crash on the device is told to the program after what the judges know" {
    # shellcheck disable=SC2046 # several options
    gcc -shared -fPIC -DBELOW "$top/tests/check/nccl-check/crashes.c" -I"$top/cpu/include" \
        $(mpicc --showme:compile) -o "$BATS_TEST_TMPDIR/libcrash.so"
    mpicc -g "$top/tests/check/nccl-check/crashes.c" -I"$top/cpu/include" -L"$BATS_TEST_TMPDIR" -lcrash \
        -L"$top/build/cpu" -lnccl-cpu -Wl,-rpath,"$top/build/cpu":"$BATS_TEST_TMPDIR" -pthread \
        -o "$BATS_TEST_TMPDIR/crashes"
    started -np 2 "$check" "$BATS_TEST_TMPDIR/crashes"
    [ "$code" -eq 1 ]
    [[ $err == *"deadlock: ranks wait for one another"*"waits in cudaDeviceSynchronize at crashes.c"* ]]
    started -np 2 "$check" "$BATS_TEST_TMPDIR/crashes" right
    [ "$code" -eq 3 ]
    [[ $err != *deadlock* ]]
    [[ $err == *"cudaDeviceSynchronize at crashes.c"*"returned cudaErrorIllegalAddress"* ]]
}

@test "a communicator that has a name is called by it" {
    over_standin "$top/tests/check/nccl-check/names.c" names
    started -np 3 "$check" "$BATS_TEST_TMPDIR/names"
    [ "$code" -eq 1 ]
    [[ $err == *"give different counts at operation 1 on communicator 2 (mesh_dp:1)"* ]]
    [[ $err == *"communicator 2 (mesh_dp:1) has 3 ranks"* ]]
    started -np 3 "$check" "$BATS_TEST_TMPDIR/names" one
    [[ $err == *"at operation 1 on communicator 1 (default_pg:0)"* ]]
}

@test "what a C++ object releases after main is not left behind" {
    over_standin "$top/tests/check/nccl-check/cxx_end.cpp" cxx_end
    started -np 2 "$check" "$BATS_TEST_TMPDIR/cxx_end"
    [ "$code" -eq 0 ]
    [ "$out" = OK ]
    [ -z "$err" ]
}

@test "CUDA, NCCL and MPI that come with a library which is loaded later, as in Python" {
    cat >"$BATS_TEST_TMPDIR/host.c" <<'END'
#include <dlfcn.h>
int main(int argc, char **argv) {
    void *plugin = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    int (*run)(void) = plugin ? (int (*)(void))dlsym(plugin, "run") : 0;
    return run ? run() : 77;
}
END
    gcc "$BATS_TEST_TMPDIR/host.c" -o "$BATS_TEST_TMPDIR/host" -ldl
    for define in '' -DFIXED; do
        mpicc -g -shared -fPIC -Dmain=run $define "$top/tests/check/wrong/mismatch-count.c" \
            -I"$top/cpu/include" -L"$top/build/cpu" -lnccl-cpu -Wl,-rpath,"$top/build/cpu" \
            -o "$BATS_TEST_TMPDIR/plugin.so"
        started -np 2 env NCCL_CHECK_LIBRARY="$top/build/cpu/libnccl-check.so" "$check" \
            "$BATS_TEST_TMPDIR/host" "$BATS_TEST_TMPDIR/plugin.so"
        if [ -n "$define" ]; then
            [ "$code" -eq 0 ]
            [ -z "$err" ]
        else
            [ "$code" -eq 1 ]
            line=$(sed -n '/@allreduce$/=' "$top/tests/check/wrong/mismatch-count.c" | tail -n 1)
            [[ $err == "NCCL CHECK: mismatch: "*"mismatch-count.c:$line"* ]]
        fi
    done
}

@test "a program of the CPU build has the checks already" {
    # shellcheck disable=SC2046 # several options
    mpicc "$top/tests/check/wrong/mismatch-count.c" $(make -s -C "$top" cpu-flags) \
        -o "$BATS_TEST_TMPDIR/wrong"
    started -np 2 "$check" "$BATS_TEST_TMPDIR/wrong"
    [ "$code" -eq 1 ]
    [ "$(grep -c 'NCCL CHECK' <<<"$err")" -eq 1 ]
}

@test "one line where the checks cannot stand in front of a program, which runs" {
    over_standin "$top/tests/check/nccl-check/devices.c" devices
    run env NCCL_CHECK_LIBRARY=/no/such.so "$check" "$BATS_TEST_TMPDIR/devices"
    [ "$status" -eq 0 ]
    [[ $output == *"NCCL CHECK: not checked: there is no library /no/such.so: "* ]]
    [[ $output == *"devices: some"* ]]

    run "$check" mpirun --version
    [ "$status" -eq 0 ]
    [[ $output == *"nccl-check belongs between the launcher and the program: mpirun"* ]]

    cd "$BATS_TEST_TMPDIR"
    echo 'int main(void) { return 0; }' >nothing.c
    gcc -static nothing.c -o static
    run "$check" ./static
    [ "$status" -eq 0 ]
    [[ $output == "NCCL CHECK: not checked: it is linked statically"* ]]
    export SLURM_PROCID=0 WORLD_SIZE=2 # torchrun under srun: the second rank of the first node
    run env RANK=1 "$check" ./static
    [ -z "$output" ]
    for rank in 0 1; do
        env RANK="$rank" NCCL_CHECK=maybe LD_PRELOAD="$top/build/cpu/libnccl-check.so" /bin/true
    done 2>said
    [ "$(grep -c 'NCCL_CHECK=maybe is not' said)" -eq 1 ]
    unset SLURM_PROCID WORLD_SIZE

    echo 'int other_mpi(void) { return 0; }' >other.c
    gcc -shared -fPIC -Wl,-soname,libmpi.so.99 other.c -o libmpi.so.99
    echo 'int other_mpi(void); int main(void) { return other_mpi(); }' >uses.c
    gcc uses.c ./libmpi.so.99 -Wl,-rpath,"$PWD" -o other
    run env NCCL_CHECK_LIBRARY="$top/build/cpu/libnccl-check.so" "$check" ./other
    [ "$status" -eq 0 ]
    [[ $output == *"NCCL CHECK: not checked: it uses another MPI (libmpi.so.99"* ]]
}

@test "a program without CUDA and MPI is left alone" {
    export NCCL_CHECK_LIBRARY=$top/build/cpu/libnccl-check.so
    run "$check" echo hello
    [ "$status" -eq 0 ]
    [ "$output" = hello ]
    run "$check" bash -c 'exit 7'
    [ "$status" -eq 7 ]
    run -127 "$check" no-such-program
}

@test "ranks that were forked off, without MPI" {
    needs_cuda
    cd "$BATS_TEST_TMPDIR"
    local include
    include=$(tr ' ' '\n' <<<"$cuda" | grep -A1 '^-I\|^-isystem' | tr '\n' ' ')
    # shellcheck disable=SC2086 # several options
    gcc -shared -fPIC -w -DBELOW "$top/tests/check/nccl-check/forked_ranks.c" $include -o libbelow.so
    # shellcheck disable=SC2086
    gcc -g "$top/tests/check/nccl-check/forked_ranks.c" $include ./libbelow.so -Wl,-rpath,"$PWD" -o ranks
    run env LD_PRELOAD="$BATS_FILE_TMPDIR/build/cuda/libnccl-check.so" timeout 60 ./ranks
    [ "$status" -eq 0 ]
    [ "$output" = $'ended\nended' ]
    run env LD_PRELOAD="$BATS_FILE_TMPDIR/build/cuda/libnccl-check.so" timeout 60 ./ranks wrong
    [ "$status" -eq 1 ]
    [[ $output == *"NCCL CHECK: mismatch: the ranks give different counts"* ]]
    run env LD_PRELOAD="$BATS_FILE_TMPDIR/build/cuda/libnccl-check.so" timeout 60 ./ranks stopped
    [ "$status" -eq 1 ]
    [[ $output == *"NCCL CHECK: mismatch: the ranks give different counts"* ]]
    run env LD_PRELOAD="$BATS_FILE_TMPDIR/build/cuda/libnccl-check.so" timeout 60 ./ranks killed
    [ "$output" = $'NCCL CHECK: rank 1 has gone without a word (killed?)\nended' ]
    run env NCCL_CHECK_TIMEOUT=60 LD_PRELOAD="$BATS_FILE_TMPDIR/build/cuda/libnccl-check.so" timeout 60 ./ranks early
    [ "$output" = $'ended\nsoon' ]
    run env LD_PRELOAD="$BATS_FILE_TMPDIR/build/cuda/libnccl-check.so" timeout 60 ./ranks past
    [ "$(grep -c 'NCCL CHECK: memory: ' <<<"$output")" = 1 ]
    [[ $output != *ended ]]
    run env HANGS=yes LD_PRELOAD="$BATS_FILE_TMPDIR/build/cuda/libnccl-check.so" timeout 60 ./ranks leaves
    [ "$status" -eq 1 ]
    [[ $output == *"  rank 1 on "*": has ended, after 0 operations on the communicator"* ]]

    # How large the job is, nobody says: the first communicator was a part of it.
    run env -u RANK -u WORLD_SIZE LD_PRELOAD="$BATS_FILE_TMPDIR/build/cuda/libnccl-check.so" timeout 60 ./ranks groups
    [ "$status" -eq 0 ]
    [ "$(grep -c '^ended$' <<<"$output")" = 4 ]
    [[ $output == *"NCCL CHECK: not checked from here on: a communicator has more ranks than the first one"* ]]
    [[ $output != *"NCCL CHECK: setup"* ]]
}

@test "a PyTorch that has NCCL in it is named" {
    needs_cuda
    cd "$BATS_TEST_TMPDIR"
    cat >torch.c <<'END'
#include <stdlib.h>
const int _ZTIN4c10d16ProcessGroupNCCLE = 1;
int cudaGetDevice(int *device) { return *device = 0; }
int cudaMalloc(void **pointer, size_t bytes) { return !(*pointer = malloc(bytes)); }
END
    gcc -shared -fPIC torch.c -o torch.so
    run env LD_PRELOAD="$BATS_FILE_TMPDIR/build/cuda/libnccl-check.so" /usr/bin/python3 -c '
import ctypes
torch, pointer = ctypes.CDLL("./torch.so"), ctypes.c_void_p()
for _ in range(2):
    print(ctypes.CDLL(None).cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(4)), flush=True)'
    [ "$status" -eq 0 ]
    [[ $output == "NCCL CHECK: not checked from here on: NCCL is linked statically into PyTorch"*$'\n0\n0' ]]
}

@test "before the real CUDA and NCCL it loads, and finds all it needs" {
    needs_cuda
    # shellcheck disable=SC2086 # several options
    gcc "$top/tests/check/nccl-check/devices.c" $cuda -o "$BATS_TEST_TMPDIR/devices"
    alone=$("$BATS_TEST_TMPDIR/devices" 2>&1)
    run env LD_BIND_NOW=1 "$check" "$BATS_TEST_TMPDIR/devices"
    [ "$status" -eq 0 ]
    [ "$output" = "$alone" ]
}

@test "a CUDA runtime that is linked statically is seen before the program runs" {
    cd "$BATS_TEST_TMPDIR"
    echo 'int ncclGetVersion(int *version) { return *version = 0; }' >nccl.c
    gcc -shared -fPIC -Wl,-soname,libnccl.so.2 nccl.c -o libnccl.so.2
    echo 'const char *cuda = "libcuda.so.1"; int cudaGetDeviceCount(int *n) { return *n = 0; }' >cudart.c
    gcc -I"$top/cpu/include" "$top/tests/check/nccl-check/devices.c" cudart.c ./libnccl.so.2 \
        -Wl,-rpath,"$PWD" -o devices
    run env NCCL_CHECK_LIBRARY="$top/build/cpu/libnccl-check.so" "$check" ./devices
    [ "$status" -eq 0 ]
    [[ $output == "NCCL CHECK: not checked: the CUDA runtime is linked statically"* ]]
    [[ $output == *"NCCL: 0" ]]
    echo 'int ncclGetVersion(int *); int main(void) { int v; return ncclGetVersion(&v); }' >alone.c
    gcc alone.c ./libnccl.so.2 -Wl,-rpath,"$PWD" -o alone
    run env NCCL_CHECK_LIBRARY="$top/build/cpu/libnccl-check.so" "$check" ./alone
    [ "$status" -eq 0 ]
    [[ $output == "NCCL CHECK: not checked: it calls nothing of the CUDA runtime"* ]]
}

@test "a CUDA runtime that is linked statically is seen while the program runs" {
    needs_cuda
    # shellcheck disable=SC2086 # several options
    gcc "$top/tests/check/nccl-check/devices.c" ${cuda/-lcudart/-lcudart_static} -ldl -lrt -pthread \
        -o "$BATS_TEST_TMPDIR/devices"
    run env LD_PRELOAD="$BATS_FILE_TMPDIR/build/cuda/libnccl-check.so" "$BATS_TEST_TMPDIR/devices"
    [ "$status" -eq 0 ]
    [[ $output == *"NCCL CHECK: not checked from here on: the CUDA runtime is linked statically"* ]]
    [ "$(grep -c 'NCCL CHECK' <<<"$output")" -eq 1 ]
    [[ $output == *"NCCL: 0"* ]]
}

@test "a program that calls CUDA's driver: what it puts in order is not seen" {
    needs_cuda
    cd "$BATS_TEST_TMPDIR"
    echo 'int cuCtxSynchronize(void) { return 41; }' >driver.c
    gcc -shared -fPIC -Wl,-soname,libcuda.so.1 driver.c -o libcuda.so.1
    echo 'int cuCtxSynchronize(void); int main(void) { return cuCtxSynchronize() + 1; }' >calls.c
    gcc calls.c ./libcuda.so.1 -Wl,-rpath,"$PWD" -o calls
    run "$check" ./calls
    [ "$status" -eq 42 ]
    [[ $output == "NCCL CHECK: not checked from here on: the program calls cuCtxSynchronize, "* ]]
}

@test "a program in C++ with kernels compiles, and its launches come by the front" {
    long
    needs_cuda
    command -v nvcc >/dev/null || skip "no nvcc"
    # shellcheck disable=SC2046 # several options
    nvcc -ccbin mpicxx -cudart shared -g "$top/tests/check/kernels.cu" \
        $(tr ' ' '\n' <<<"$cuda" | grep -v -- -Wl) -o "$BATS_TEST_TMPDIR/kernels"
    nm -D --undefined-only "$BATS_TEST_TMPDIR/kernels" | sed 's/@.*//' |
        awk '/aunchKernel|cudaLaunch/ { print $2 }' | sort >"$BATS_TEST_TMPDIR/launches"
    [ -s "$BATS_TEST_TMPDIR/launches" ]
    nm -D --defined-only "$BATS_FILE_TMPDIR/build/cuda/libnccl-check.so" | awk '{ print $3 }' | sort |
        comm -23 "$BATS_TEST_TMPDIR/launches" - | tee "$BATS_TEST_TMPDIR/missing"
    [ ! -s "$BATS_TEST_TMPDIR/missing" ]
}
