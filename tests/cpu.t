#!/usr/bin/env bash
# Unit tests of cpu/: builds the programs of tests/cpu and runs them, those with MPI at several
# rank counts, those without on several devices. Their points become points of this test.
#   SANITIZE=1   built with AddressSanitizer and UndefinedBehaviorSanitizer, fewer rank counts
#   RANKS='2 3'  these rank and device counts
#   ONLY='p2p'   these programs
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

unset CUDA_VISIBLE_DEVICES CPU_DEVICES CPU_HOSTS NCCL_CPU_CHECK NCCL_CPU_TIMEOUT MAKEFLAGS MFLAGS MAKELEVEL
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

sanitize=${SANITIZE:-}
# shellcheck disable=SC2206  # a list of words
ranks=(${RANKS:-$([ -n "$sanitize" ] && echo 2 3 || echo 1 2 3 4 7 8)})
over_mpi=(collectives p2p comms streams arguments early random)
alone=(initall threads)
label=${sanitize:+sanitized }
banner='CPU build: no GPU is used, MPI carries the NCCL calls.'
number=0
failed=0

result() { # STATUS TEXT
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        failed=1
    fi
}

wanted() {
    [ -z "${ONLY:-}" ] || [[ " $ONLY " == *" $1 "* ]]
}

# run NAME COMMAND…: the program's points, then one for how it ended: in time, with its plan
# kept, the banner as its first line and nowhere else, and no report about a correct program.
run() {
    local name=$label$1 line code=0 points=0 plan=-1 banners=0 first=
    shift
    timeout --kill-after=5 "${LIMIT:-60}" "$@" >stdout 2>stderr || code=$?
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
    ! grep -qE 'NCCL CHECK|runtime error|Sanitizer' stderr || why+=("reported something:")
    [ "$code" -eq 0 ] || why+=("exit code $code")
    result "${#why[@]}" "$name: ends well"
    if [ "${#why[@]}" -gt 0 ]; then
        printf '#   %s\n' "${why[@]}"
        head -n 30 stderr | sed 's/^/#   /'
    fi
}

is() { # GOT EXPECTED TEXT
    local status=0
    [ "$1" = "$2" ] || status=1
    result "$status" "$label$3"
    [ "$status" -eq 0 ] || printf '#   got      %s\n#   expected %s\n' "$1" "$2"
}

# --- Build -----------------------------------------------------------------------------

mpirun=(mpirun --oversubscribe)
flags=$(make -s -C "$top" cpu-flags ${sanitize:+SANITIZE=1})
build() {
    # shellcheck disable=SC2086  # several options
    "${MPICC:-mpicc}" -std=c11 -D_DEFAULT_SOURCE -O1 -Wall -Wextra -Werror \
        "$top/tests/cpu/$1.c" $flags -o "$1" >"$1.log" 2>&1
}
programs=("${over_mpi[@]}" "${alone[@]}" cuda one_device devices races)
for program in "${programs[@]}"; do
    build "$program" &
    # Two at a time.
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do
        wait -n || true
    done
done
wait
for program in "${programs[@]}"; do
    status=0
    [ -x "$program" ] || status=1
    result "$status" "$label$program compiles without a warning, and links"
    sed -n '1,30s/^/#   /p' "$program.log"
done

# --- Run -------------------------------------------------------------------------------

for program in "${over_mpi[@]}"; do
    for np in "${ranks[@]}"; do
        if wanted "$program" && [ -x "$program" ]; then
            run "$program, $np ranks" "${mpirun[@]}" -np "$np" "./$program"
        fi
    done
done
for program in "${alone[@]}"; do
    for n in "${ranks[@]}"; do
        if wanted "$program" && [ -x "$program" ]; then
            run "$program, $n devices" env CPU_DEVICES="$n" "./$program"
        fi
    done
done
if wanted cuda && [ -x cuda ]; then
    run 'cuda, 3 devices' env CPU_DEVICES=3 ./cuda
fi

# Slurm may give each rank its own GPU, which that rank then knows as device 0.
if wanted visible && [ -x comms ]; then
    run 'comms, 2 ranks, each sees one device' "${mpirun[@]}" \
        -np 1 env CUDA_VISIBLE_DEVICES=0 ./comms : -np 1 env CUDA_VISIBLE_DEVICES=1 ./comms
fi

# Two ranks on one device are never let through.
if wanted one_device && [ -x one_device ]; then
    refused() { # TEXT COMMAND…
        local text=$1 code=0 status=1
        shift
        timeout --kill-after=5 30 "$@" >stdout 2>stderr || code=$?
        if [ "$code" -ne 124 ] && [ "$code" -ne 0 ] &&
            grep -q 'NCCL CHECK: setup: two ranks are bound to the same GPU' stderr; then
            status=0
        fi
        result "$status" "$label$text: reported, and the job ends"
        [ "$status" -eq 0 ] || head -n 20 stdout stderr | sed 's/^/#   /'
    }
    run 'one_device, 3 ranks, checks off' \
        "${mpirun[@]}" -np 3 env NCCL_CPU_CHECK=off ./one_device
    refused '3 ranks that take device 0' "${mpirun[@]}" -np 3 ./one_device
    refused '2 ranks that see the same device' "${mpirun[@]}" \
        -np 1 env CUDA_VISIBLE_DEVICES=1 ./comms : -np 1 env CUDA_VISIBLE_DEVICES=1 ./comms
    refused '3 ranks, 2 devices' "${mpirun[@]}" -np 3 env CPU_DEVICES=2 ./comms
fi

# One rank of a random program makes a mistake: one report, and the job ends.
mistakes=(- 'leaves a call out' 'gives another count' 'names another root' 'makes another call'
    'takes another communicator')
if wanted random && [ -x random ] && [ -z "$sanitize" ]; then
    for mistake in 1 2 3 4 5; do
        for program in 1 2 3 4 5 6 7 8; do
            np=$((2 + program % 4)) code=0
            timeout --kill-after=5 30 "${mpirun[@]}" -np "$np" ./random "$program" "$mistake" \
                >stdout 2>stderr || code=$?
            is "exit code $code, $(grep -c 'NCCL CHECK' stderr) reports" 'exit code 1, 1 reports' \
                "random program $program, $np ranks, one ${mistakes[mistake]}"
        done
    done
fi

# Which operations of random programs race: what the program works out, and what is reported.
if wanted races && [ -x races ] && [ -z "$sanitize" ]; then
    for first in 1 11 21; do
        code=0
        NCCL_CPU_CHECK=warn timeout --kill-after=5 60 ./races "$first" "$((first + 9))" \
            >stdout 2>stderr || code=$?
        is "exit code $code, $(awk '/^expected: / { wrong += said != expected; expected = $2; said = "none" }
                /^NCCL CHECK: race/ { said = "race" }
                END { print wrong + (said != expected) }' stderr) disagree" 'exit code 0, 0 disagree' \
            "600 operations of random programs, some of which race, from $first"
    done
fi

# --- The environment says how many devices there are -------------------------------------

if wanted devices && [ -x devices ]; then
    devices() { # ENVIRONMENT…: what the program prints behind the banner
        timeout 20 env "$@" ./devices | tail -n +2
    }
    all=$(devices CPU_DEVICES=5)
    read -r -a bus <<<"$all" # cudaSuccess 5 BUS0 BUS1 …
    none='cudaErrorNoDevice 0 cudaErrorNoDevice cudaErrorNoDevice'
    is "${bus[*]:0:2}" 'cudaSuccess 5' 'CPU_DEVICES=5'
    is "$(devices CPU_DEVICES=1)" "cudaSuccess 1 ${bus[2]:-}" 'CPU_DEVICES=1'
    is "$(devices -u CPU_DEVICES | cut -d' ' -f1,2)" 'cudaSuccess 4' 'four devices without MPI'
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

echo "1..$number"
exit "$failed"
