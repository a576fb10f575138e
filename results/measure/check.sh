#!/usr/bin/env bash
# What nccl-check says on this machine's GPUs, and what other tools say of the same programs:
#
#     results/measure/check.sh FOLDER STAGE…
#
#   with        every program of tests/check for two ranks, with nccl-check: about four minutes
#   without     without it; NCCL_DEBUG=WARN is set, and NCCL's RAS is asked: as long
#   own         the wrong ones with NCCL_CHECK_MODE, which NCCL 2.29.7 and newer has; the right ones and repaired
#               ones with NCCL_CHECK_POINTERS and NCCL_DEBUG=WARN as well
#   transports  the wrong ones without nccl-check over shared memory, and over sockets
#   sanitizer   the wrong ones and the right ones under compute-sanitizer, memcheck and initcheck: longer
#   lessons     every lesson, a program with kernels, PyTorch, nccl-tests where NCCL_TESTS_HOME
#               is set, and NVIDIA's examples where NCCL_EXAMPLES says where they are
#               (docs/examples of NCCL's repository), under nccl-check
#   cost        a call of 8 bytes and from 1 MiB on, with and without, in turn
#   times       every lesson with and without, in turn: the seconds from mpirun to the prompt, and the times that it prints
#   write       nccl-check.md, the tables, from the files in the folder; needs no GPU
#
#   JOBS=6        programs at the same time. With 14, on 32 processors, the start of a program
#                 takes ten seconds, and one that is slow cannot be told from one that hangs
#   LIMIT=15      seconds that a wrong program may run, under compute-sanitizer five times as many; RAS is
#                 asked until two thirds of them are over
#   ROUNDS=5      of cost and times
#   ONLY='race-*' only the programs of these names
#   RANKS=4       also those that need more than two ranks, up to so many; on fewer GPUs with
#                 NCCL_MULTI_RANK_GPU_ENABLE=1 (NCCL 2.30)
#   BACKEND=cpu   a rehearsal over the stand-in
#
# tests/check/run runs the programs and writes runs.tsv and said.txt; a folder's last run of a program counts.
set -euo pipefail

course=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[ $# -ge 2 ] || { sed -n '2,/^set/ { s/^# \{0,1\}//p }' "$0" >&2; exit 2; }
stages='with without own transports sanitizer lessons cost times write'
for stage in "${@:2}"; do
    [[ " $stages " == *" $stage "* ]] || { echo "$0: $stage is none of $stages" >&2; exit 2; }
done
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
export LC_ALL=C.UTF-8 BACKEND=${BACKEND:-cuda}
unset MAKEFLAGS MFLAGS MAKELEVEL
jobs=${JOBS:-6}
limit=${LIMIT:-15}
only=${ONLY:-*}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$course"

[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Else mpirun binds the ranks of each program to the same few processors.
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_rmaps_base_oversubscribe=1
mpirun=(mpirun -np 2)
each=(mpirun -np '{n}') # of the programs of tests/check
# For times: as one types it, mpirun binds two ranks to a core each.
as_typed=(env -u OMPI_MCA_hwloc_base_binding_policy -u OMPI_MCA_mpi_yield_when_idle)
check=$course/check/nccl-check
sanitizer=$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")

say() {
    printf '%(%H:%M:%S)T  %s\n' -1 "$*" >&2
}

# What a program here is compiled and linked with.
if [ "$BACKEND" = cpu ]; then
    make -s BACKEND=cpu cpu-forms
    compile=(-Icpu/include -Icpu/include/absent)
    link=(-Lbuild/cpu -lnccl-cpu "-Wl,-rpath,$course/build/cpu" -lm -pthread)
else
    make -s -j 16 check-library
    read -ra compile <<<"$(make -s cuda-flags)"
    link=("${compile[@]}" -pthread)
fi

# --- The programs of tests/check --------------------------------------------------------------

# What NCCL says is a line with WARN. Without GDRCopy NCCL 2.32 has one on its RMA transport in every program.
warning='NCCL WARN ([^R]|R[^M])'

# suite NAME KINDS LIMIT PATTERN COMMAND…: with this tool; no pattern: nccl-check, whose note is about a failed call.
words=() # what else the tool calls a class
suite() {
    tests/check/run --keep "$out" --as "$1" --kinds "$2" --limit "$3" ${4:+--says "$4"} --class failed=note "${words[@]}" --only "$only" --ranks "${RANKS:-2}" --jobs "$jobs" -- "${@:5}"
}

with() {
    suite nccl-check wrong "$limit" '' "${each[@]}" "$check" {}
    suite nccl-check 'right repaired' 40 '' "${each[@]}" "$check" {}
}

# Without: what NCCL itself has to say, and while it hangs, what RAS knows.
without() {
    suite plain wrong "$limit" "$warning" env NCCL_DEBUG=WARN results/measure/ask-ras $((limit * 2 / 3)) "${each[@]}" {}
    suite plain 'right repaired' 40 "$warning" env NCCL_DEBUG=WARN results/measure/ask-ras 30 "${each[@]}" {}
}

own() {
    local set=(NCCL_DEBUG=WARN NCCL_CHECK_MODE=DEBUG_GLOBAL)
    suite mode wrong "$limit" "$warning" env "${set[@]}" "${each[@]}" {}
    suite own 'right repaired' 40 "$warning" env "${set[@]}" NCCL_CHECK_POINTERS=1 "${each[@]}" {}
}

transports() {
    suite memory wrong "$limit" "$warning" env NCCL_DEBUG=WARN NCCL_P2P_DISABLE=1 "${each[@]}" {}
    suite sockets wrong "$limit" "$warning" env NCCL_DEBUG=WARN NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 "${each[@]}" {}
}

sanitizer() {
    [ -x "$sanitizer" ] || { say 'no compute-sanitizer'; return 0; }
    local tool words=(--class 'memory=memory|Invalid|Uninitialized')
    for tool in memcheck initcheck; do
        suite "$tool" 'wrong right' $((limit * 5)) '=+ (Invalid|Uninit|Leaked|Error: [^N]|Unused|Host|Program hit cudaError[^P])' \
            "${each[@]}" "$sanitizer" --tool "$tool" --report-api-errors no {}
    done
}

# --- Other programs -----------------------------------------------------------------------------

at_once() { # COMMAND…: as many at a time as allowed
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    "$@" &
}

# under NAME LIMIT COMMAND…: must end well and without a report.
under() {
    local code=0 said=$work/said-$1
    timeout --kill-after=3 "$2" "${@:3}" >"$said" 2>&1 </dev/null || code=$?
    printf '%s\texit code %s\t%s\n' "$1" "$code" "$(grep -aom1 'NCCL CHECK:.*' "$said" || true)" >>"$work/lessons"
}

# The lessons as programs in $work.
build_lessons() {
    local lesson
    if [ "$BACKEND" = cpu ]; then # linked to the stand-in without checks
        for lesson in [0-9][0-9]-*/*.c; do
            mpicc -std=c11 -O2 -g -Icommon "${compile[@]}" "$lesson" "${link[@]}" \
                -o "$work/$(basename "$lesson" .c)" 2>>"$out/build.txt" ||
                say "does not compile: $lesson"
        done
    else
        make -s -j 16 BACKEND=cuda all >"$work/make.log" 2>&1 || cat "$work/make.log"
        for lesson in [0-9][0-9]-*/*.c; do
            cp "${lesson%.c}" "$work" || true
        done
    fi
}

lessons() {
    local lesson program tests=${NCCL_TESTS_HOME:-}
    build_lessons
    if [ "$BACKEND" != cpu ]; then
        nvcc -ccbin mpicxx -cudart shared -g -O2 tests/check/kernels.cu -lnccl \
            -o "$work/kernels" >>"$out/build.txt" 2>&1 || say 'kernels.cu does not compile'
        # Linked the way that nvcc takes if nothing is said: one line, and the program runs.
        nvcc -ccbin mpicxx -g -O2 tests/check/kernels.cu -lnccl -o "$work/kernels-static" \
            >>"$out/build.txt" 2>&1 || true
    fi
    for lesson in [0-9][0-9]-*/*.c; do
        program=$(basename "$lesson" .c)
        [ -x "$work/$program" ] || continue
        case $program in
        one_process) at_once under "$program" 60 "$check" "$work/$program" ;;
        bandwidth) at_once under "$program" 120 "${mpirun[@]}" "$check" "$work/$program" --max 64K --factor 8 ;;
        *) at_once under "$program" 60 "${mpirun[@]}" "$check" "$work/$program" ;;
        esac
    done
    for program in kernels kernels-static; do
        [ ! -x "$work/$program" ] ||
            at_once under "$program" 60 "${mpirun[@]}" "$check" "$work/$program"
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
        at_once under pytorch 90 torchrun --standalone --nproc_per_node=2 --no-python \
            "$check" python3 "$work/sum.py"
    fi
    local source name start
    for source in "${NCCL_EXAMPLES:-/nowhere}"/0[1-5]*/*/c/main.cc; do
        [ -f "$source" ] || continue
        name=$(basename "$(dirname "$(dirname "$source")")")
        name=nvidia-$(basename "$(dirname "$(dirname "$(dirname "$source")")")")-$name
        mpicxx -DMPI_SUPPORT -g -O2 -I"$NCCL_EXAMPLES/common/include" "${compile[@]}" "$source" \
            "$NCCL_EXAMPLES/common/src/utils.cc" "${link[@]}" -o "$work/$name" \
            >>"$out/build.txt" 2>&1 || { say "does not compile: $source"; continue; }
        start=("${mpirun[@]}")
        [[ $source != *single_process* && $source != *pthread* ]] || start=()
        at_once under "$name" 60 "${start[@]}" "$check" "$work/$name"
    done
    for program in all_reduce sendrecv alltoall; do
        [ ! -x "$tests/build/${program}_perf" ] ||
            at_once under "nccl-tests-$program" 90 "${mpirun[@]}" "$check" "$tests/build/${program}_perf" \
                -g 1 -b 8 -e 256M -f 8
    done
    wait
    sort "$work/lessons" >"$out/check-lessons.tsv"
}

cost() {
    local round how largest=268435456
    [ "$BACKEND" != cpu ] || largest=8
    mpicc -std=c11 -O2 -g -Icommon "${compile[@]}" results/measure/check-cost.c "${link[@]}" -o "$work/cost"
    : >"$out/check-cost.txt"
    for ((round = 1; round <= ${ROUNDS:-5}; round++)); do
        for how in plain nccl-check; do
            local start=("${as_typed[@]}" "${mpirun[@]}")
            [ "$how" = plain ] || start+=("$check")
            timeout 90 "${start[@]}" "$work/cost" "$largest" 2>&1 </dev/null |
                sed "s/^/$round $how /" >>"$out/check-cost.txt" || say "cost: $how failed"
        done
    done
}

# What a lesson is asked to measure here.
measured() { # LESSON
    local large=16M ring=67108864 training='--layers 32 --width 1024 --batch 2048' experts='--width 4096 --batch 8192' \
        pipeline='--layers 16 --width 1024 --batch 16384 --micro 8'
    [ "$BACKEND" != cpu ] || large=64K ring=262144 training='' experts='' pipeline=''
    case $1 in
    06) echo '--op all_reduce --max 64K --factor 8 --csv /dev/stdout' ;;
    08) echo "--time --max $large" ;;
    09) echo "-n $ring --pieces 4 --time" ;;
    11 | 12 | 15) echo "$training --steps 1 --time" ;;
    13) echo "$experts --layers 2 --steps 1 --load uneven --time" ;;
    14) echo "$pipeline --steps 1 --time" ;;
    16) echo '--rounds 1000' ;;
    esac
}

# The microseconds that it has printed: numbers before a unit, or those of a table whose head has "us".
printed() { # LESSON
    case $1 in
    06) awk -F, 'NF > 5 && $5 + 0 > 0 { print $5 }' ;;
    08 | 19 | 21) grep -E '^[a-z0-9 ,]+( +[0-9.*]+){2,}$' | grep -oE '[0-9]+\.[0-9]+' ;;
    *) grep -oE '[0-9.]+ (ms|us)\b' | awk '{ print $2 == "ms" ? $1 * 1000 : $1 }' ;;
    esac | tr '\n' ' '
}

# timed ROUND HOW LESSON COMMAND…: a line of check-times.tsv.
timed() {
    local began=$EPOCHREALTIME code=0 said=$work/timed-$3
    "${as_typed[@]}" timeout --kill-after=3 90 "${@:4}" >"$said" 2>&1 </dev/null || code=$?
    printf '%s\t%s\t%s\t%d\t%d\t%s\n' "$1" "$2" "$3" "$code" $(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000)) \
        "$(printed "${3%%-*}" <"$said")" >>"$out/check-times.tsv"
}

# both_ways ROUND LESSON ARGUMENTS: without nccl-check and with it.
both_ways() {
    local program start=("${mpirun[@]}") arguments
    program=$work/$(basename "$2"/*.c .c)
    [[ $2 != 16-* ]] || start=()
    read -ra arguments <<<"$3"
    timed "$1" plain "$2" "${start[@]}" "$program" "${arguments[@]}"
    timed "$1" nccl-check "$2" "${start[@]}" "$check" "$program" "${arguments[@]}"
}

# Lessons that measure nothing three at a time, the others alone.
times() {
    local round lesson jobs=3 short='^(0[0-57]|10|17|22|23)-'
    build_lessons
    : >"$out/check-times.tsv"
    for ((round = 1; round <= ${ROUNDS:-5}; round++)); do
        for lesson in [0-9][0-9]-*; do
            ! [[ $lesson =~ $short ]] || at_once both_ways "$round" "$lesson" ''
        done
        wait
        for lesson in [0-9][0-9]-*; do
            [[ $lesson =~ $short ]] || both_ways "$round" "$lesson" "$(measured "${lesson%%-*}")"
        done
    done
}

write() {
    results/measure/check-tables.sh "$out" >"$out/nccl-check.md"
}

for stage in "$@"; do
    say "$stage"
    "$stage"
done
say 'done'
