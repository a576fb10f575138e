#!/usr/bin/env bash
# What nccl-check says on this machine's GPUs, and what other tools say of the same programs:
#
#     measure/check.sh FOLDER STAGE…
#
#   programs    every program of tests/check, on two GPUs, with nccl-check and without, where
#               NCCL_DEBUG=WARN is set and NCCL's RAS is asked: about eight minutes; or one half
#               of it: with, without
#   own         the wrong ones with NCCL_CHECK_POINTERS=1, and NCCL_CHECK_MODE where NCCL has it
#   transports  the wrong ones without nccl-check over shared memory, and over sockets
#   sanitizer   the wrong ones under compute-sanitizer, memcheck and initcheck: longer; what is
#               in the folder already is not run again
#   lessons     every lesson, a program with kernels, PyTorch, nccl-tests where NCCL_TESTS_HOME
#               is set, and NVIDIA's examples where NCCL_EXAMPLES says where they are
#               (docs/examples of NCCL's repository), under nccl-check
#   cost        a call of 8 bytes and from 1 MiB on, with and without, in turn
#   write       nccl-check.md, the tables, from the files in the folder; needs no GPU
#
#   JOBS=6        programs at the same time. With 14, on 32 processors, the start of a program
#                 takes ten seconds, and one that is slow cannot be told from one that hangs
#   LIMIT=20      seconds that a wrong program may run, under compute-sanitizer twice as many; RAS is
#                 asked at two thirds of them
#   ROUNDS=5      of the cost's measurement
#   BUDGET=540    seconds after which a stage begins nothing more
#   ONLY='race-*' only the programs of these names
#   BACKEND=cpu   a rehearsal over the stand-in
#
# check-runs.tsv gets a line for each run, check-said.txt what it said. Columns: stage, how,
# kind, program, how it ended, seconds it took, seconds until the first word, the first word.
set -euo pipefail

course=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ $# -ge 2 ] || { sed -n '2,/^set/ { s/^# \{0,1\}//p }' "$0" >&2; exit 2; }
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
export LC_ALL=C.UTF-8 BACKEND=${BACKEND:-cuda}
unset MAKEFLAGS MFLAGS MAKELEVEL
jobs=${JOBS:-6}
limit_wrong=${LIMIT:-20}
budget=${BUDGET:-540}
only=${ONLY:-*}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$course"

[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Else mpirun binds the ranks of each program to the same few processors.
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_rmaps_base_oversubscribe=1
mpirun=(mpirun -np 2)
check=$course/check/nccl-check
cuda_home=${CUDA_HOME:-/usr/local/cuda}
sanitizer=$(command -v compute-sanitizer || echo "$cuda_home/bin/compute-sanitizer")

say() {
    printf '%(%H:%M:%S)T  %s\n' -1 "$*" >&2
}

# --- Building ---------------------------------------------------------------------------------

# What a program here is compiled and linked with.
if [ "$BACKEND" = cpu ]; then
    compile=(-Icpu/include)
    link=(-Lbuild/cpu -lnccl-cpu "-Wl,-rpath,$course/build/cpu" -lm -pthread)
else
    read -ra compile <<<"$(make -s cuda-flags)"
    link=("${compile[@]}" -pthread)
fi

needs_cublas() { # SOURCE
    ! grep -q '<cublas' "$1" || [ "$BACKEND" = cpu ] || echo -lcublas
}

library() {
    [ -z "${built:-}" ] || return 0
    built=yes
    if [ "$BACKEND" = cpu ]; then
        make -s -j 8 BACKEND=cpu cpu-forms >"$work/make.log" 2>&1
    else
        make -s -j 16 check-library >"$work/make.log" 2>&1
    fi || { cat "$work/make.log"; exit 1; }
    # What every program of tests/check is about.
    mkdir -p "$work/bin"
    local file
    for file in tests/check/{wrong,right}/*.c; do
        # shellcheck disable=SC2053 # a pattern
        [[ $(basename "$file" .c) == $only ]] || continue
        ! grep -q '^// ranks: 3' "$file" || continue # two GPUs cannot express it
        echo "$file $(basename "$(dirname "$file")")"
        [[ $file != */wrong/* ]] || echo "$file repaired"
    done >"$work/programs"
    local source kind
    while read -r source kind; do
        while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
        # shellcheck disable=SC2046 # one word or none
        mpicc -O2 -g "${compile[@]}" "-D$([ "$kind" = repaired ] && echo FIXED || echo ASIS)" "$source" \
            "${link[@]}" $(needs_cublas "$source") -o "$work/bin/$kind-$(basename "$source" .c)" \
            >>"$out/check-build.txt" 2>&1 || say "does not compile: $source ($kind)" &
    done <"$work/programs"
    wait
    say "built: $(find "$work/bin" -type f | wc -l) programs"
}

# --- One run ----------------------------------------------------------------------------------

# Puts the seconds since $1 before each line; of a program that prints without end 300 lines.
stamp() {
    local line n=0
    while IFS= read -r line; do
        n=$((n + 1))
        [ "$n" -gt 300 ] ||
            printf '%7.2f  %s\n' "$(bc_seconds "$1" "$EPOCHREALTIME")" "${line:0:600}"
    done
}

# The difference of two values of EPOCHREALTIME, with two digits.
bc_seconds() {
    local a=${1/[.,]/} b=${2/[.,]/} d
    d=$(((b - a) / 10000))
    printf '%d.%02d' $((d / 100)) $((d % 100))
}

# How a run ended, in words. 2 and 3 are what check.h makes of wrong data and a failed call.
end_of() { # CODE LIMIT FILE
    case $1 in
    0) echo 'exit code 0' ;;
    2) echo 'wrong data' ;;
    3) echo "error: $(grep -om1 'returned .*' "$3")" ;;
    124 | 137) echo "runs after $2 s" ;;
    134 | 139) echo crash ;;
    *) echo "exit code $1" ;;
    esac
}

# record STAGE HOW KIND NAME LIMIT WORD COMMAND…: one run. WORD is a pattern: the first line with
# it is what the run is asked for.
record() {
    local stage=$1 how=$2 kind=$3 name=$4 limit=$5 word=$6 code=0 began file first
    shift 6
    file=$work/said-$stage-$how-$kind-$name
    began=$EPOCHREALTIME
    {
        timeout --kill-after=3 "$limit" "$@" 2>&1 </dev/null &&
            code=0 || code=$?
        echo "$code" >"$file.code"
    } | timeout $((limit + 6)) bash -c "$(declare -f stamp bc_seconds); stamp $began" >"$file" ||
        true
    code=$(cat "$file.code" 2>/dev/null || echo 124)
    first=$(grep -m1 -E -- "$word" "$file" || true)
    local took
    took=$(bc_seconds "$began" "$EPOCHREALTIME")
    [ ! -f "$file.ras" ] || cat "$file.ras" >>"$file"
    {
        flock 9
        printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$stage" "$how" "$kind" "$name" \
            "$(end_of "$code" "$limit" "$file")" "$took" \
            "$(awk '{ print $1 }' <<<"$first")" "$(sed -E 's/^ *[0-9.]+  //' <<<"$first")" \
            >>"$out/check-runs.tsv"
        {
            printf '=== %s %s: %s %s (exit code %s)\n' "$stage" "$how" "$kind" "$name" "$code"
            cat "$file"
        } >>"$out/check-said.txt"
    } 9>"$work/lock"
}

# in_turn COMMAND…: as many at a time as allowed, none behind the budget.
in_turn() {
    if [ "$SECONDS" -ge "$budget" ]; then
        echo "$*" >>"$work/left"
        return 0
    fi
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    "$@" &
}

all_done() {
    wait
    [ ! -s "$work/left" ] || say "out of time: $(wc -l <"$work/left") runs were not begun"
}

# --- Stages -----------------------------------------------------------------------------------

# each KIND COMMAND…: COMMAND NAME for each program of this kind that was built.
each() {
    local file kind=$1
    shift
    for file in "$work/bin/$kind-"*; do
        [ ! -f "$file" ] || in_turn "$@" "$kind" "${file#"$work/bin/$kind-"}"
    done
}

checked() { # KIND NAME
    local limit=40
    [ "$1" != wrong ] || limit=$limit_wrong
    record programs nccl-check "$1" "$2" "$limit" 'NCCL CHECK:' \
        "${mpirun[@]}" "$check" "$work/bin/$1-$2"
}

# Without: what NCCL itself has to say, and while it hangs, what RAS knows.
plain() { # KIND NAME
    local limit=40 port=$((20000 + BASHPID % 20000)) ask=
    if [ "$1" = wrong ]; then
        limit=$limit_wrong
        { sleep $((limit * 2 / 3)); ras "$port"; } >"$work/said-programs-plain-$1-$2.ras" 2>&1 &
        ask=$!
    fi
    NCCL_DEBUG=WARN NCCL_RAS_ADDR=localhost:$port record programs plain "$1" "$2" "$limit" \
        'NCCL WARN' "${mpirun[@]}" "$work/bin/$1-$2"
    [ -z "$ask" ] || kill "$ask" 2>/dev/null || true
}

ras() { # PORT
    { exec 3<>"/dev/tcp/localhost/$1"; } 2>/dev/null || return 0
    echo 'verbose status' >&3
    timeout 4 sed -u 's/^/    RAS  /' <&3 || true
}

with() {
    library
    each wrong checked
    each right checked
    each repaired checked
    all_done
}

without() {
    library
    each wrong plain
    each right plain
    each repaired plain
    all_done
}

programs() {
    with
    without
}

own_checks() { # KIND NAME
    NCCL_DEBUG=WARN NCCL_CHECK_POINTERS=1 record own pointers "$1" "$2" "$limit_wrong" 'NCCL WARN' \
        "${mpirun[@]}" "$work/bin/$1-$2"
    ! $has_mode || NCCL_DEBUG=WARN NCCL_CHECK_MODE=DEBUG_GLOBAL record own mode "$1" "$2" "$limit_wrong" \
        'NCCL WARN' "${mpirun[@]}" "$work/bin/$1-$2"
}

own() {
    library
    local nccl
    nccl=$(ldd "$work/bin/"* | awk '/libnccl\.so/ { at = $3 } END { print at }')
    has_mode=false
    ! grep -qa NCCL_CHECK_MODE "${nccl:-/dev/null}" || has_mode=true
    say "NCCL_CHECK_MODE: $has_mode"
    each wrong own_checks
    all_done
}

other_way() { # KIND NAME
    NCCL_DEBUG=WARN NCCL_P2P_DISABLE=1 record transports memory "$1" "$2" "$limit_wrong" 'NCCL WARN' \
        "${mpirun[@]}" "$work/bin/$1-$2"
    NCCL_DEBUG=WARN NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 record transports sockets "$1" "$2" "$limit_wrong" \
        'NCCL WARN' "${mpirun[@]}" "$work/bin/$1-$2"
}

transports() {
    library
    each wrong other_way
    all_done
}

sanitize() { # TOOL KIND NAME
    ! grep -qP "^sanitizer\t$1\t$2\t$3\t" "$out/check-runs.tsv" 2>/dev/null || return 0
    record sanitizer "$1" "$2" "$3" $((limit_wrong * 2)) '^ *[0-9.]+  =+ (Invalid|Uninit|Leaked|Error|Unused|Host|Program hit cudaError[^P])' \
        "${mpirun[@]}" "$sanitizer" --tool "$1" --report-api-errors no \
        "$work/bin/$2-$3"
}

sanitizer() {
    library
    [ -x "$sanitizer" ] || { say 'no compute-sanitizer'; return 0; }
    local tool
    # First those that it could find.
    for tool in memcheck initcheck; do
        for name in memory race missing-left left deadlock mismatch missing setup; do
            for file in "$work/bin/wrong-$name"-*; do
                [ ! -f "$file" ] || in_turn sanitize "$tool" wrong "${file#"$work/bin/wrong-"}"
            done
        done
    done
    all_done
}

# under NAME LIMIT COMMAND…: must end well and without a report.
under() {
    local name=$1 limit=$2
    shift 2
    record lessons nccl-check right "$name" "$limit" 'NCCL CHECK:' "$@"
}

lessons() {
    local lesson program tests=${NCCL_TESTS_HOME:-}
    library
    if [ "$BACKEND" = cpu ]; then # linked to the stand-in without checks
        for lesson in [0-9][0-9]-*/*.c; do
            mpicc -std=c11 -O2 -g -Icommon "${compile[@]}" "$lesson" "${link[@]}" \
                -o "$work/$(basename "$lesson" .c)" 2>>"$out/check-build.txt" ||
                say "does not compile: $lesson"
        done
    else
        make -s -j 16 BACKEND=cuda all >"$work/make.log" 2>&1 || cat "$work/make.log"
        for lesson in [0-9][0-9]-*/*.c; do
            cp "${lesson%.c}" "$work" || true
        done
        nvcc -ccbin mpicxx -cudart shared -g -O2 tests/check/kernels.cu -lnccl \
            -o "$work/kernels" >>"$out/check-build.txt" 2>&1 || say 'kernels.cu does not compile'
        # Linked the way that nvcc takes if nothing is said: one line, and the program runs.
        nvcc -ccbin mpicxx -g -O2 tests/check/kernels.cu -lnccl -o "$work/kernels-static" \
            >>"$out/check-build.txt" 2>&1 || true
    fi
    for lesson in [0-9][0-9]-*/*.c; do
        program=$(basename "$lesson" .c)
        [ -x "$work/$program" ] || continue
        case $program in
        bandwidth) in_turn under "$program" 120 "${mpirun[@]}" "$check" "$work/$program" --max 64K --factor 8 ;;
        *) in_turn under "$program" 60 "${mpirun[@]}" "$check" "$work/$program" ;;
        esac
    done
    for program in kernels kernels-static; do
        [ ! -x "$work/$program" ] ||
            in_turn under "$program" 60 "${mpirun[@]}" "$check" "$work/$program"
    done
    if [ "$BACKEND" != cpu ] && command -v torchrun >/dev/null; then
        cat >"$work/sum.py" <<'END'
import os, torch, torch.distributed as dist
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
x = torch.ones(1 << 20, device="cuda") * (dist.get_rank() + 1)
dist.all_reduce(x)
n = dist.get_world_size()
assert torch.all(x == n * (n + 1) / 2)
dist.destroy_process_group()
print("OK")
END
        in_turn under pytorch 90 torchrun --standalone --nproc_per_node=2 --no-python \
            "$check" python3 "$work/sum.py"
    fi
    local source name start
    for source in "${NCCL_EXAMPLES:-/nowhere}"/0[1-5]*/*/c/main.cc; do
        [ -f "$source" ] || continue
        name=$(basename "$(dirname "$(dirname "$source")")")
        name=nvidia-$(basename "$(dirname "$(dirname "$(dirname "$source")")")")-$name
        mpicxx -DMPI_SUPPORT -g -O2 -I"$NCCL_EXAMPLES/common/include" "${compile[@]}" "$source" \
            "$NCCL_EXAMPLES/common/src/utils.cc" "${link[@]}" -o "$work/$name" \
            >>"$out/check-build.txt" 2>&1 || { say "does not compile: $source"; continue; }
        start=("${mpirun[@]}")
        [[ $source != *single_process* && $source != *pthread* ]] || start=()
        in_turn under "$name" 60 "${start[@]}" "$check" "$work/$name"
    done
    for program in all_reduce sendrecv alltoall; do
        [ ! -x "$tests/build/${program}_perf" ] ||
            in_turn under "nccl-tests-$program" 90 "${mpirun[@]}" "$check" "$tests/build/${program}_perf" \
                -g 1 -b 8 -e 256M -f 8
    done
    all_done
}

cost() {
    local round how largest=268435456
    library
    [ "$BACKEND" != cpu ] || largest=4194304
    mpicc -std=c11 -O2 -g -Icommon "${compile[@]}" measure/check-cost.c "${link[@]}" -o "$work/cost"
    : >"$out/check-cost.txt"
    for ((round = 1; round <= ${ROUNDS:-5}; round++)); do
        for how in plain nccl-check; do
            # As one types it: mpirun binds two ranks to a core each.
            local start=(env -u OMPI_MCA_hwloc_base_binding_policy -u OMPI_MCA_mpi_yield_when_idle
                "${mpirun[@]}")
            [ "$how" = plain ] || start+=("$check")
            timeout 90 "${start[@]}" "$work/cost" "$largest" 2>&1 </dev/null |
                sed "s/^/$round $how /" >>"$out/check-cost.txt" || say "cost: $how failed"
        done
    done
}

write() {
    measure/check-tables.sh "$out" >"$out/nccl-check.md"
}

for stage in "$@"; do
    case $stage in
    programs | with | without | own | transports | sanitizer | lessons | cost | write) ;;
    *) echo "$0: $stage is none of programs, with, without, own, transports, sanitizer, lessons, cost, write" >&2; exit 2 ;;
    esac
done
for stage in "$@"; do
    say "$stage"
    "$stage"
done
say 'done'
