#!/usr/bin/env bash
# Unit tests of cpu/: builds the programs of tests/cpu and runs them, those with MPI at several
# rank counts, those without on several devices. Their points become points of this test.
#   SANITIZE=1   built with AddressSanitizer and UndefinedBehaviorSanitizer, on 3 ranks
#   RANKS='2 3'  these rank and device counts
#   ONLY='p2p'   these programs
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# Processes without mpirun share a folder of Open MPI's, and one of another test may remove it while one here begins.
export OMPI_MCA_orte_tmpdir_base=$work

unset CUDA_VISIBLE_DEVICES CPU_DEVICES CPU_HOSTS NCCL_CPU_CHECK NCCL_CPU_TIMEOUT MAKEFLAGS MFLAGS MAKELEVEL
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

sanitize=${SANITIZE:-}
# How many ranks or devices a program gets: one and three. The longest, and one that waits a second at every
# mistake, get fewer. ALL=yes (make test-long) gives more.
long=' newer collectives random meetings arguments '
counts() { # PROGRAM
    local all="1 3${ALL:+ 2 8}"
    [[ $long != *" $1 "* ]] || all="3${ALL:+ 1 2 7}"
    [[ $1 != meetings ]] || all="1${ALL:+ 2 3 7}" # see below
    [ -z "$sanitize" ] || all=3
    echo "${RANKS:-$all}"
}
over_mpi=(newer collectives p2p comms streams arguments early random groups hosts meetings ipc)
# What the stand-in makes of mistakes: nobody is to end these for a mistake.
unchecked=' cuda newer groups hosts meetings graphs illegal mpi_fails one_device '
alone=(initall threads)
source "$top/tests/lib.bash"
label=${sanitize:+sanitized }
banner='CPU build: no GPU is used, MPI carries the NCCL calls.'

wanted() {
    [ -z "${ONLY:-}" ] || [[ " $ONLY " == *" $1 "* ]]
}

# run NAME COMMAND…: the program's points, then one for how it ended: in time, with its plan
# kept, the banner as its first line and nowhere else, and no report about a correct program.
run() {
    local name=$1 line code=0 points=0 plan=-1 banners=0 first=
    shift
    timeout --kill-after=5 "${LIMIT:-300}" "$@" >stdout 2>stderr || code=$?
    first=$(head -n 1 stdout)
    while IFS= read -r line; do
        if [[ $line =~ ^(not\ )?ok\ [0-9]+\ -\ (.*) ]]; then
            points=$((points + 1))
            result "$([ -z "${BASH_REMATCH[1]}" ] && echo 0 || echo 1)" \
                "$name: ${BASH_REMATCH[2]}"
        elif [[ $line =~ ^1\.\.([0-9]+)$ ]]; then
            plan=${BASH_REMATCH[1]}
        elif [ "$line" = "$banner" ]; then
            banners=$((banners + 1))
        else
            echo "# ${line#\# }"
        fi
    done <stdout
    local why=()
    [ "$code" -ne 124 ] || why+=("ran into the time limit")
    [ "$plan" -eq "$points" ] || why+=("planned $plan points, made $points")
    [ "$first" = "$banner" ] || why+=("its first line is: $first")
    [ "$banners" -eq 1 ] || why+=("said $banners times that this is the CPU build")
    # (Each call that is to fail has a note of its own.)
    ! grep -v 'NCCL CHECK: note: ' stderr | grep -qE 'NCCL CHECK|runtime error|Sanitizer' ||
        why+=("reported something:")
    [ "$code" -eq 0 ] || why+=("exit code $code")
    result "${#why[@]}" "$name: ends well"
    if [ "${#why[@]}" -gt 0 ]; then
        printf '#   %s\n' "${why[@]}"
        head -n 30 stderr | sed 's/^/#   /'
    fi
}

# --- Build -----------------------------------------------------------------------------

mpirun=(mpirun --oversubscribe)
flags=$(make -s -C "$top" cpu-flags ${sanitize:+SANITIZE=1})
if [ -n "$sanitize" ]; then
    make -s -C "$top" cpu-standin SANITIZE=1 >/dev/null
else
    make -s -C "$top" cpu-forms >/dev/null
fi
# Programs that make mistakes on purpose get the stand-in alone.
alone_flags=${flags//libnccl-cpu.a/libnccl-cpu.so -Wl,-rpath,$top/build/cpu${sanitize:+-sanitize}}
build() {
    local with=$flags
    [[ $unchecked != *" $1 "* ]] || with=$alone_flags
    # shellcheck disable=SC2086  # several options
    "${MPICC:-mpicc}" -std=c11 -D_DEFAULT_SOURCE -O0 -Wall -Wextra -Werror \
        "$top/tests/cpu/$1.c" $with -o "$1" >"$1.log" 2>&1
}
programs=("${over_mpi[@]}" "${alone[@]}" aware cuda cuda_more cublas cublas_types refused graphs illegal one_device devices without_mpi
    no_launcher thread_ranks mpi_fails)
for program in "${programs[@]}"; do
    wanted "$program" || continue
    build "$program" &
    # Two at a time.
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do
        wait -n || true
    done
done
wait
for program in "${programs[@]}"; do
    wanted "$program" || continue
    status=0
    [ -x "$program" ] || status=1
    result "$status" "$program compiles without a warning, and links"
    sed -n '1,30s/^/#   /p' "$program.log"
done

# --- Run -------------------------------------------------------------------------------

for program in "${over_mpi[@]}"; do
    for np in $(counts "$program"); do
        if wanted "$program" && [ -x "$program" ]; then
            run "$program, $np ranks" "${mpirun[@]}" -np "$np" "./$program"
        fi
    done
done
for program in "${alone[@]}"; do
    for n in $(counts "$program"); do
        if wanted "$program" && [ -x "$program" ]; then
            run "$program, $n devices" env CPU_DEVICES="$n" "./$program"
        fi
    done
done
for program in cuda cuda_more graphs illegal; do
    if wanted "$program" && [ -x "$program" ]; then
        run "$program, 3 devices" env CPU_DEVICES=3 "./$program"
    fi
done

# Enough devices for two ranks in each process: more is tried than without, and all of that, too.
if wanted meetings && [ -x meetings ] && [ -z "$sanitize" ]; then
    for np in 2 ${ALL:+3}; do
        run "meetings, $np ranks, 8 devices" "${mpirun[@]}" -np "$np" env CPU_DEVICES=8 ./meetings
    done
fi

# What the manual does not allow, and the checks name.
if wanted ipc && [ -x ipc ]; then
    run 'ipc freed, 3 ranks' env NCCL_CHECK=off "${mpirun[@]}" -np 3 ./ipc freed
fi

# An MPI that takes device memory.
if wanted aware && [ -x aware ]; then
    run 'aware, 3 ranks' env CPU_MPI=cuda-aware "${mpirun[@]}" -np 3 ./aware
fi

# A program that uses no MPI, but is started by mpirun.
if wanted without_mpi && [ -x without_mpi ]; then
    run 'without_mpi, 3 processes' env NCCL_CHECK_TIMEOUT=0.5 "${mpirun[@]}" -np 3 ./without_mpi id stderr
fi

if wanted no_launcher && [ -x no_launcher ]; then
    run 'no_launcher' ./no_launcher
fi

if wanted thread_ranks && [ -x thread_ranks ]; then
    run 'thread_ranks' env CPU_DEVICES=3 ./thread_ranks
    run 'thread_ranks, 2 processes' "${mpirun[@]}" -np 2 env CPU_DEVICES=3 ./thread_ranks
fi

# A limit is said with the setting that changes it.
if wanted refused && [ -x refused ]; then
    said=$(CPU_DEVICES=2 CPU_MEMORY=2M timeout 300 ./refused 2>stderr)
    is "${said#*$'\n'}" $'cudaErrorMemoryAllocation\ncudaErrorInvalidDevice\ncudaErrorInvalidDevice\ninvalid argument (see ncclGetLastError)' \
        'no memory, no device'
    is "$(grep -c 'CPU build: 3145728 bytes .* 2097152 of 2097152 left. CPU_MEMORY=' stderr), $(grep -c \
        'CPU build: cudaGetDeviceProperties(2), and the last device is 1. CPU_DEVICES=4 .*CPU_HOSTS' stderr)" '1, 1' \
        'each is said once, with the setting'
    is "$(CPU_MEMORY=4m timeout 300 ./refused 2>/dev/null | sed -n 2p)" cudaSuccess 'more memory: CPU_MEMORY'
fi

# MPI fails: the job ends, and says why.
if wanted mpi_fails && [ -x mpi_fails ]; then
    code=0
    timeout --kill-after=5 300 "${mpirun[@]}" -np 3 ./mpi_fails >stdout 2>stderr || code=$?
    said=$(grep -c 'CPU build: rank 1 .* MPI_Isend failed' stderr || true)
    is "$([ "$code" -ne 0 ] && [ "$code" -ne 124 ] && echo ended), said $said times" \
        'ended, said 1 times' 'an MPI call of the library fails'
fi

# The leak checker is at work: it tells what this library and MPI keep, if nothing says that it is
# theirs, and what a program forgets.
if wanted leaks && [ -n "$sanitize" ]; then
    cat >forgets.c <<'END'
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    char *volatile forgotten = malloc(12345);
    forgotten = NULL;
    MPI_Finalize();
    return forgotten != NULL;
}
END
    # shellcheck disable=SC2086  # several options
    "${MPICC:-mpicc}" -O0 forgets.c $flags -o forgets
    code=0
    timeout --kill-after=5 300 "${mpirun[@]}" -np 2 ./forgets >stdout 2>stderr || code=$?
    is "$([ "$code" -ne 0 ] && [ "$code" -ne 124 ] && echo ended), $(grep -c \
        'SUMMARY: .* 12345 byte(s) leaked in 1 allocation' stderr) reports" 'ended, 2 reports' \
        'memory that a program forgets is reported, and nothing else'
fi

# The library's forms. Linked, it is the front and the stand-in in one, and has no names but those
# of CUDA, cuBLAS, NCCL and MPI, and of functions of the C library, before which the front stands.
# Apart, the stand-in offers pncclX beside ncclX, and the few questions that the front asks it.
if wanted forms && [ -z "$sanitize" ]; then
    lib=$top/build/cpu
    status=0
    "${MPICC:-mpicc}" -std=c11 -D_DEFAULT_SOURCE -I"$top/cpu/include" "$top/tests/cpu/interposed.c" \
        -L"$lib" -lnccl-cpu -Wl,-rpath,"$lib" -o interposed || status=1
    result "$status" 'interposed links with the shared library'
    run 'interposed, 1 device' env CPU_DEVICES=1 ./interposed
    # shellcheck disable=SC2086  # several options
    "${MPICC:-mpicc}" -std=c11 "$top/tests/cpu/interposed.c" $flags -o interposed
    run 'interposed, linked' env CPU_DEVICES=1 NCCL_TIMELINE=interposed.json ./interposed
    is "$(grep -c '"ncclAllReduce.*"bytes"' interposed.json)" 1 'the checks see the call once'
    names() { # FILE OPTION…
        nm --defined-only "${@:2}" "$lib/$1" | awk 'NF == 3 { print $3 }' | sort
    }
    # others PATTERN FILE OPTION…: its names that do not match.
    others() {
        names "${@:2}" | grep -vE "^($1)\$" | tr '\n' ' ' || true
    }
    # (Compiled kernels use those with __ and standin_reach_….)
    api='((cu|cuda|cublas|nccl|MPIX?_)[A-Z]|__cuda[A-Z]|__kernel_|standin_reach_).*'
    ldd "$lib/libnccl-check.so" | awk '/\/lib(c|pthread)\.so/ { print $3 }' | xargs -n 1 nm -D |
        sed -n 's/.* [TWi] \([^@]*\).*/\1/p' | sort -u >system
    is "$([ "$(wc -l <system)" -gt 1000 ] && others "$api|pnccl[A-Z].*" libnccl-cpu.a -g | tr ' ' '\n' |
        grep . | comm -23 - system)" '' 'the library that is linked has no other names'
    is "$(others "$api|pnccl[A-Z].*|standin_[a-z_]+|mlockall|sched_yield" libnccl-cpu.so -D)" '' \
        'the stand-in as a shared library has no other names'
    is "$(others "$api" libnccl-check.so -D | tr ' ' '\n' | grep . | comm -23 - system)" '' \
        'what is loaded before it has no other names'
    is "$(comm -13 <(names libnccl-cpu.a -g) <(names libnccl-cpu.so -D) |
        grep -v '^standin_' | tr '\n' ' ')" '' \
        'the library that is linked has all that the stand-in has'
    is "$(comm -13 <(names libnccl-cpu.so -D) <(names libnccl-cpu.so -D | grep '^nccl' | sed 's/^/p/') |
        tr '\n' ' ')" '' 'all names of NCCL stand there twice'
fi
for program in cublas cublas_types; do
    if wanted "$program" && [ -x "$program" ]; then
        run "$program" "./$program"
    fi
done

# A program may have a function of NCCL's name, as it may before a library that is loaded.
if wanted own; then
    cat >own.c <<'END'
#include <nccl.h>
#include <stdio.h>
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices) {
    (void)comms, (void)devices;
    printf("%d of my own\n", n);
    return ncclSuccess;
}
int main(void) {
    int version;
    ncclComm_t comm;
    return ncclCommInitAll(&comm, 3, NULL) || ncclGetVersion(&version);
}
END
    # shellcheck disable=SC2086  # several options
    "${MPICC:-mpicc}" own.c $flags -o own && is "$(timeout 300 ./own | tail -n 1)" '3 of my own' \
        "a function of the program's own goes before NCCL's"
fi

# Slurm may give each rank its own GPU, which that rank then knows as device 0.
if wanted visible && [ -x comms ]; then
    run 'comms, 2 ranks, each sees one device' "${mpirun[@]}" \
        -np 1 env CUDA_VISIBLE_DEVICES=0 ./comms : -np 1 env CUDA_VISIBLE_DEVICES=1 ./comms
fi

# Two ranks on one device are refused.
if wanted one_device && [ -x one_device ]; then
    run 'one_device, 3 ranks' "${mpirun[@]}" -np 3 ./one_device
fi

# --- The environment says how many devices there are -------------------------------------

if wanted devices && [ -x devices ]; then
    devices() { # ENVIRONMENT…: what the program prints after the banner
        timeout 300 env "$@" ./devices | tail -n +2
    }
    all=$(devices CPU_DEVICES=5)
    read -r -a bus <<<"$all" # cudaSuccess 5 BUS0 BUS1 …
    none='cudaErrorNoDevice 0 cudaErrorNoDevice cudaErrorNoDevice'
    is "${bus[*]:0:2}" 'cudaSuccess 5' 'CPU_DEVICES=5'
    is "$(devices CPU_DEVICES=1)" "cudaSuccess 1 ${bus[2]:-}" 'CPU_DEVICES=1'
    is "$(devices -u CPU_DEVICES | cut -d' ' -f1,2)" 'cudaSuccess 8' 'eight devices without MPI'
    is "$(devices CUDA_VISIBLE_DEVICES=0,1 CPU_DEVICES=5)" "cudaSuccess 2 ${bus[*]:2:2}" \
        'CUDA_VISIBLE_DEVICES comes before CPU_DEVICES'
    is "$(devices CUDA_VISIBLE_DEVICES=2,0)" "cudaSuccess 2 ${bus[4]:-} ${bus[2]:-}" \
        'CUDA_VISIBLE_DEVICES gives the order'
    is "$(devices CUDA_VISIBLE_DEVICES=1,-1,0)" "cudaSuccess 1 ${bus[3]:-}" \
        'CUDA_VISIBLE_DEVICES ends at the first index that is none'
    for nothing in CUDA_VISIBLE_DEVICES= CUDA_VISIBLE_DEVICES=-1 CPU_DEVICES=0; do
        is "$(devices $nothing | cut -d' ' -f1-4)" "$none" "$nothing means no device"
    done
fi

finish
