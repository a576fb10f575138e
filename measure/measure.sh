#!/usr/bin/env bash
# Runs the whole course on this machine's GPUs and writes down what comes out:
#
#     make measure                    into build/measured, about ten minutes on four GPUs
#     measure/measure.sh FOLDER       into another folder
#
#   NCCL_TESTS_HOME=…   NVIDIA's nccl-tests, built: measured next to lesson 06
#   RUNS=50             of every lesson in a row, instead of 2 (with STAGES=repeat: ten minutes)
#   STAGES='timed checked write'    only some of it, into a folder that has the rest:
#       timed     what the clock is for: nothing else runs on the machine meanwhile
#       checked   the rest, at the same time; or one part of it: lessons, tests, repeat, memcheck
#       training  not among them: lessons 11 to 15, and PyTorch's ways beside them, into files
#                 NAME-N.txt, N GPUs; or one of them: overlap, sharded, experts, pipeline, grid
#       programs  not among them: what becomes of tests/check's right and wrong programs; on two
#                 GPUs, three minutes
#       peer, three   of timed, lesson 07 alone, and lesson 08 alone; these and training keep the
#                 machine that they ran on in machine-N.txt, N GPUs
#       write     plots and README.md, from the files; needs no GPU
#   CUDA_VISIBLE_DEVICES=0,1        only these GPUs
#   RANKS='2 4'     the lessons on so many ranks, also where that is more than one for a GPU (with
#                   NCCL_MULTI_RANK_GPU_ENABLE=1 and NCCL 2.30)
#   BACKEND=cpu     a rehearsal without GPUs
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
course=$(dirname "$here")
stages=${STAGES:-timed checked write}
for stage in $stages; do
    [[ " timed peer three checked lessons tests repeat memcheck training overlap sharded experts pipeline grid programs write " == *" $stage "* ]] ||
        { echo "$0: STAGES: $stage is none of timed (peer, three), checked (lessons, tests, repeat, memcheck), training (overlap, sharded, experts, pipeline, grid), programs, write" >&2; exit 2; }
done
out=${1:-$course/build/measured}
out=$(mkdir -p "$out" && cd "$out" && pwd)
[ "${BACKEND:-}" = cpu ] || BACKEND=cuda
export BACKEND LC_ALL=C.UTF-8
unset MAKEFLAGS MFLAGS MAKELEVEL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$course"

# --- What there is ------------------------------------------------------------------------

mpirun=(mpirun)
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if [ "$BACKEND" = cpu ]; then
    models='4:32:8 2:48:8' tokens='16:8 48:40' pipelined=4:32:64 gridded=4:32:16
    gpus=${CPU_DEVICES:-4} large=16K largest=64K ring_sizes=262144 runs=${RUNS:-2}
    copy=100000 by_transport=16K
    export OMPI_MCA_mpi_yield_when_idle=1
    mpirun+=(--oversubscribe)
else
    gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
    [ -z "${CUDA_VISIBLE_DEVICES:-}" ] || gpus=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .)
    [ "$gpus" -gt 0 ] || [ "$stages" = write ] || { echo "$0: no GPU here, so there is nothing to measure" >&2; exit 1; }
    models='8:4096:2048 8:4096:4096 16:2048:2048 32:1024:1024' # layers, width, samples a rank
    tokens='64:128 1024:1024 2048:4096 4096:8192' # width, tokens a rank
    pipelined='16:2048:16384' gridded='8:4096:4096 16:2048:4096' # layers, width, batch
    large=64M largest=1G ring_sizes='262144 268435456' runs=${RUNS:-2}
    copy=100000000 by_transport=256M
fi
# Command lines are kept as they are typed in the course's folder.
out=${out#"$course/"}
# 1, 2, 4 and all GPUs, as far as there are so many.
counts=$(printf '%s\n' 1 2 4 "$gpus" | awk -v gpus="$gpus" '$1 <= gpus' | sort -nu)
# The lessons' programs.
forms=$(printf '%s\n' [0-9][0-9]-*/*.c | sed 's/\.c$//')
tests_home=${NCCL_TESTS_HOME:-}
cuda_home=${CUDA_HOME:-/usr/local/cuda}
sanitizer=$(command -v compute-sanitizer || echo "$cuda_home/bin/compute-sanitizer")

# --- Running something, and keeping what it said ---------------------------------------------

say() {
    printf '%(%H:%M:%S)T  %s\n' -1 "$*" >&2
}

# keep FILE SECONDS COMMAND…: the command line and its output, at the end of FILE; its exit
# code if that is not 0. At most so many seconds. Returns 0.
keep() {
    local file=$1 limit=$2 code=0 began ended
    shift 2
    began=$(date +%s.%N)
    printf '$ %s\n' "$*" >>"$file"
    timeout --kill-after=10 "$limit" "$@" >>"$file" 2>&1 </dev/null || code=$?
    ended=$(date +%s.%N)
    [ "$code" -eq 0 ] || printf '[exit code %d]\n' "$code" >>"$file"
    awk -v a="$began" -v b="$ended" 'BEGIN { printf "[%.1f s]\n\n", b - a }' >>"$file"
    [ "$code" -eq 0 ] || { say "exit code $code: $*"; echo "$*" >>"$work/failed"; }
}

fresh() { # FILE…: in $out, empty
    local file
    for file in "$@"; do
        : >"$out/$file"
    done
}

# The same for a part that has a stage of its own: it may be of another day than the rest, and
# of another state of the course, so that is its first line.
begin() { # FILE
    echo "taken: $(date -u '+%Y-%m-%d %H:%M UTC'), course at $(commit)" >"$out/$1"
}

commit() {
    git describe --always --dirty 2>/dev/null || echo unknown
}

# How a form of a lesson is started where its defaults take minutes.
arguments() {
    case $1 in
    *bandwidth) echo "$1 --max ${2:-64K} --factor 8" ;;
    *) echo "$1" ;;
    esac
}

# --- The machine ------------------------------------------------------------------------------

machine() { # FILE
    fresh "$1"
    {
        date -u '+date: %Y-%m-%d %H:%M UTC'
        echo "course: $(commit)"
        echo "gpus: $gpus"
        echo "cpus: $(env -u OMP_NUM_THREADS nproc)" # which nproc would follow
        awk '/MemTotal/ { printf "memory: %.0f GiB\n", $2 / 1048576 }' /proc/meminfo
        sed -nE 's/^PRETTY_NAME="?([^"]*)"?/system: \1/p' /etc/os-release
        echo "kernel: $(uname -r)"
        echo "compiler: $(mpicc --version | head -n 1)"
        echo "mpi: $(mpirun --version | head -n 1)"
        "${mpirun[@]}" -np 1 00-nccl-hello-world/hello | sed -n 's/^NCCL /nccl: &/p'
        env | sort | grep -v '^NCCL_TESTS_HOME' | sed -n 's/^\(NCCL_[A-Z_]*=\)/environment: \1/p'
        echo
    } >>"$out/$1"
    if [ "$BACKEND" != cpu ]; then
        keep "$out/$1" 30 nvidia-smi
        keep "$out/$1" 30 nvidia-smi topo -m
    fi
    keep "$out/$1" 30 lscpu
}

# --- What the clock is for --------------------------------------------------------------------

# aside FILE.c: built like a lesson, in a folder of its own: $work/FILE/FILE.
aside() {
    local name
    name=$(basename "$1" .c)
    mkdir -p "$work/$name"
    cp "$1" "$work/$name"
    printf 'PROGRAM := %s\ninclude %s/common/build.mk\n' "$name" "$course" >"$work/$name/Makefile"
    make -s -C "$work/$name" >/dev/null
}

# hello, from mpirun to the prompt: three runs as they are, then one of a copy that notes the
# time after each call.
hello_time() {
    local run began code
    fresh hello-time.txt
    for run in 1 2 3 4; do
        began=$(date +%s.%N)
        timeout 60 "${mpirun[@]}" -np "$gpus" 00-nccl-hello-world/hello >/dev/null || return 0
        [ "$run" -eq 1 ] || # the first one loads libraries from disk
            awk -v a="$began" -v b="$(date +%s.%N)" -v n="$gpus" -v run="$((run - 1))" \
                'BEGIN { printf "run %d: hello on %d ranks, mpirun to prompt %.2f s\n", run, n, b - a }' \
                >>"$out/hello-time.txt"
    done
    awk 'NR == 1 { print "#include <stdio.h>\n#include <time.h>"
            print "#pragma GCC diagnostic ignored \"-Wmisleading-indentation\"" # stamps, behind an if
            print "static double stamp_at[99]; static const char *stamp_of[99]; static int stamps;"
            print "static double stamp_now(void) { struct timespec t; timespec_get(&t, TIME_UTC);"
            print "    return (double)t.tv_sec + (double)t.tv_nsec / 1e9; }"
            print "static void stamp(const char *of) { if (stamps < 99) {"
            print "    stamp_of[stamps] = of; stamp_at[stamps++] = stamp_now(); } }" }
        /return exit_code;/ {
            print "    if (rank == 0) for (int i = 0; i < stamps; i++)"
            print "        fprintf(stderr, \"stamp %.6f %s\\n\", stamp_at[i], stamp_of[i]);" }
        match($0, /(MPI_|cuda|nccl)[A-Za-z_]+\(/) && /CHECK_.*\);$/ {
            $0 = $0 " stamp(\"" substr($0, RSTART, RLENGTH - 1) "\");" }
        /lesson_one_gpu_per_rank\(\);/ { $0 = $0 " stamp(\"lesson_one_gpu_per_rank\");" }
        { print }
        /^int main/ { print "    stamp(\"mpirun, until the program starts\");" }' \
        00-nccl-hello-world/hello.c >"$work/hello.c"
    aside "$work/hello.c"
    code=0
    began=$(date +%s.%N)
    timeout 60 "${mpirun[@]}" -np "$gpus" "$work/hello/hello" \
        >/dev/null 2>"$work/stamps" || code=$?
    [ "$code" -eq 0 ] || return 0
    {
        printf '\nwhere it goes, on rank 0 of another run (calls above 10 ms):\n'
        awk -v began="$began" -v ended="$(date +%s.%N)" '
            function line(seconds, what) { printf "%8.3f s  %s\n", seconds, what }
            BEGIN { last = began }
            /^stamp / {
                at = $2; sub(/^stamp [0-9.]+ /, "")
                if (at - last >= 0.01) line(at - last, $0); else rest += at - last
                last = at
            }
            END { line(rest, "all other calls"); line(ended - last, "from MPI_Finalize to the prompt")
                line(ended - began, "together") }' "$work/stamps"
    } >>"$out/hello-time.txt"
}

ring_time() {
    local count pieces
    [ "$gpus" -gt 1 ] || return 0 # a ring of one has no steps
    fresh ring.txt
    for count in $ring_sizes; do
        for pieces in 1 2 4 8; do
            # In small pieces it is the number of messages that costs, whatever else is done.
            [ "$count" -gt 1000000 ] || [ "$pieces" = 4 ] || continue
            keep "$out/ring.txt" 120 "${mpirun[@]}" -np "$gpus" 09-pipelined-ring/pipelined_ring \
                -n "$count" --pieces "$pieces" --time
        done
    done
}

plot() { # NAME: NAME.csv to NAME.svg, where there is gnuplot
    if command -v gnuplot >/dev/null; then
        make -s plot CSV="$out/$1.csv" SVG="$out/$1.svg" || say "no plot of $1.csv"
    fi
}

bandwidth() {
    local n mode
    for n in $counts; do
        fresh "bandwidth-$n.txt"
        # In the folder, so that the command line that is kept is one that anybody can type.
        keep "$out/bandwidth-$n.txt" 150 "${mpirun[@]}" -np "$n" 06-bandwidth/bandwidth \
            --max "$largest" --csv "$out/bandwidth-$n.csv"
    done
    # Small messages, launched in four ways.
    fresh bandwidth-small.txt bandwidth-small.csv
    for mode in '' --graph --register '--register --graph'; do
        # shellcheck disable=SC2086 # words
        keep "$out/bandwidth-small.txt" 60 "${mpirun[@]}" -np "$gpus" 06-bandwidth/bandwidth \
            --op all_reduce,all_gather,reduce_scatter --max 64K --csv "$work/small.csv" $mode
        if [ -s "$out/bandwidth-small.csv" ]; then
            sed 1d "$work/small.csv" >>"$out/bandwidth-small.csv"
        else
            cp "$work/small.csv" "$out/bandwidth-small.csv"
        fi
    done
}

# Why the times of a large all-to-all differ: several starts of a program that has several
# pairs of buffers.
buffers() {
    local start
    fresh buffers.txt
    aside measure/buffers.c
    for start in 1 2 3; do
        say "buffers, start $start"
        keep "$out/buffers.txt" 60 "${mpirun[@]}" -np "$gpus" "$work/buffers/buffers"
    done
    sed -i "s|$work/buffers/||" "$out/buffers.txt" # gone when this ends
}

# NVIDIA's own figures, right after ours of bandwidth-N.txt; those that vary from run to run (of
# small messages, and of a large all-to-all) twice more, in turn with ours, and small ones
# warmed up as long. -a 3 is the slowest rank's time, as in lesson 06.
nccl_tests() {
    local round all='broadcast reduce all_reduce reduce_scatter all_gather alltoall sendrecv'
    [ -n "$tests_home" ] || return 0
    fresh nccl-tests.txt
    theirs "$all" -b 8 -e "$largest"
    for round in 2 3; do
        say "nccl-tests, round $round"
        ours --max 64K
        theirs "$all" -b 8 -e 64K -w 20000 -n 1000
        ours --op all_to_all --min "$large"
        theirs alltoall -b "$large" -e "$largest"
    done
}

beside=nccl-tests.txt # where what nccl-tests print is kept

ours() { # ARGUMENT…
    keep "$out/$beside" 60 "${mpirun[@]}" -np "$gpus" 06-bandwidth/bandwidth "$@"
}

theirs() { # NAMES ARGUMENT…
    local name program start names=$1
    shift
    for name in $names; do
        program=$tests_home/build/${name}_perf
        [ -x "$program" ] || program=$tests_home/${name}_perf
        [ -x "$program" ] || { say "no ${name}_perf in $tests_home"; continue; }
        # Built with MPI: one process a GPU, like ours.
        start=("$program" -g "$gpus")
        ! ldd "$program" 2>/dev/null | grep -q libmpi ||
            start=("${mpirun[@]}" -np "$gpus" "$program" -g 1)
        keep "$out/$beside" 90 "${start[@]}" -f 2 -a 3 "$@"
    done
}

# Whether PyTorch is there, and sees the GPUs.
have_pytorch() {
    export OMP_NUM_THREADS=1 # as torchrun sets it, with a warning
    command -v torchrun && python3 -c 'import torch; assert torch.cuda.is_available()'
} >/dev/null 2>&1

# in_pytorch FILE [ARGUMENT…]
in_pytorch() {
    local file=$1
    shift
    keep "$out/$file" 120 torchrun --standalone --nproc_per_node="$gpus" measure/collectives.py "$@"
}

pytorch() {
    have_pytorch || return 0
    fresh pytorch.txt
    in_pytorch pytorch.txt
}

# Copies from GPU to GPU, and what an all-reduce costs on each of NCCL's ways between them. The
# last of the three says which way that was.
peer() {
    local way
    begin peer.txt
    [ "$BACKEND" = cpu ] || keep "$out/peer.txt" 30 nvidia-smi topo -m
    keep "$out/peer.txt" 150 "${mpirun[@]}" -np "$gpus" 07-peer-to-peer/peer_to_peer -n "$copy"
    keep "$out/peer.txt" 60 "${mpirun[@]}" -np "$gpus" 07-peer-to-peer/peer_to_peer -n 2048
    for way in NCCL_DEBUG=WARN NCCL_P2P_DISABLE=1 'NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1'; do
        # shellcheck disable=SC2086 # words
        keep "$out/peer.txt" 150 env $way "${mpirun[@]}" -np "$gpus" 06-bandwidth/bandwidth \
            --op all_reduce --max "$by_transport" --factor 32
        keep "$out/peer.txt" 60 bash -c "env $way NCCL_DEBUG=INFO ${mpirun[*]} -np $gpus \
02-nccl-allreduce/allreduce | grep -o 'via [A-Z].*' | sort | uniq -c"
    done
}

# Where a reduce and a broadcast in turn lose time against nccl-tests' rows of each.
pair() {
    begin pair.txt
    aside measure/pair.c
    keep "$out/pair.txt" 120 "${mpirun[@]}" -np "$gpus" "$work/pair/pair"
    sed -i "s|$work/pair/||" "$out/pair.txt" # gone when this ends
}

# Three ways to one sum, ours before and after nccl-tests' parts and PyTorch's.
three() {
    local turn beside=three.txt
    begin three.txt
    for turn in 1 2; do
        keep "$out/three.txt" 150 "${mpirun[@]}" -np "$gpus" 08-three-all-reduces/three_all_reduces \
            --time --max "$largest"
        [ "$turn" -eq 1 ] || continue
        [ -z "$tests_home" ] || theirs 'all_reduce reduce broadcast reduce_scatter all_gather' \
            -b 16 -e "$largest" -f 4 -w 100 -n 100
        ! have_pytorch || in_pytorch three.txt every
    done
}

# With one GPU nothing travels, and a lesson's ways are one.
of_several() { # WAY…: the first alone on one GPU
    [ "$gpus" -gt 1 ] && printf '%s\n' "$@" || printf '%s\n' "$1"
}

# Lesson 11 on some models: how many multiprocessors NCCL gets, how much goes into a bucket.
# PyTorch's DDP on the same model comes right after, and once with as few multiprocessors.
overlap() {
    local model layers width share form program=11-overlap/overlap
    begin "training-$gpus.txt"
    for model in $models; do
        IFS=: read -r layers width share <<<"$model"
        model="--layers $layers --width $width --batch $((share * gpus))"
        of_several '--ctas 0' '--ctas 8' '--ctas 4' '--ctas 2' \
            "--ctas 4 --bucket $((4 * width * width * 4))" '--ctas 4 --bucket all' | while read -r form; do
            # shellcheck disable=SC2086 # words
            keep "$out/training-$gpus.txt" 120 "${mpirun[@]}" -np "$gpus" $program $model --steps 3 $form --time
        done
        have_pytorch || continue
        of_several '' 'env NCCL_MAX_CTAS=4' | while read -r form; do
            # shellcheck disable=SC2086 # words
            keep "$out/training-$gpus.txt" 120 $form torchrun --standalone --nproc_per_node="$gpus" \
                measure/ddp.py $model
        done
    done
}

# Lesson 12 on the same models, in its stages; PyTorch's fully_shard right after.
sharded() {
    local model layers width share stage program=12-sharded/sharded
    begin "sharded-$gpus.txt"
    for model in $models; do
        IFS=: read -r layers width share <<<"$model"
        model="--layers $layers --width $width --batch $((share * gpus))"
        for stage in $(of_several 3 2 1); do
            # shellcheck disable=SC2086 # words
            keep "$out/sharded-$gpus.txt" 120 "${mpirun[@]}" -np "$gpus" $program $model --steps 3 --stage $stage --time
        done
        have_pytorch || continue
        for stage in $(of_several 3 2); do
            # shellcheck disable=SC2086 # words
            keep "$out/sharded-$gpus.txt" 120 torchrun --standalone --nproc_per_node="$gpus" \
                measure/fsdp.py $model --stage $stage
        done
    done
}

# Lesson 13: a layer's tokens there and back, in two ways; PyTorch's all_to_all_single right after.
experts() {
    local size width share load program=13-experts/experts
    begin "experts-$gpus.txt"
    for size in $tokens; do
        IFS=: read -r width share <<<"$size"
        size="--width $width --batch $((share * gpus))"
        for load in $(of_several even uneven one); do
            # shellcheck disable=SC2086 # words
            keep "$out/experts-$gpus.txt" 120 "${mpirun[@]}" -np "$gpus" $program $size --layers 2 --steps 1 --load $load --time
            # shellcheck disable=SC2086 # words
            ! have_pytorch || keep "$out/experts-$gpus.txt" 120 torchrun --standalone \
                --nproc_per_node="$gpus" measure/experts.py $size --load $load
        done
    done
}

# Lesson 14: in how many micro-batches, and in which order; PyTorch, which takes half a minute to
# start, on eight of them right after.
pipeline() {
    local model layers width batch micro form
    begin "pipeline-$gpus.txt"
    for model in $pipelined; do
        IFS=: read -r layers width batch <<<"$model"
        for micro in $(of_several 8 1 2 4 32); do
            model="--layers $layers --width $width --batch $batch --micro $micro"
            of_several '' --all-forward | while read -r form; do
                # shellcheck disable=SC2086 # words
                keep "$out/pipeline-$gpus.txt" 120 "${mpirun[@]}" -np "$gpus" 14-pipeline/pipeline $model --steps 3 $form --time
                # shellcheck disable=SC2086 # words
                ! have_pytorch || [ "$micro" != 8 ] || keep "$out/pipeline-$gpus.txt" 120 \
                    torchrun --standalone --nproc_per_node="$gpus" measure/pipeline.py $model $form
            done
        done
    done
}

# Lesson 15: every grid; PyTorch on the same right after.
grid() {
    local model layers width batch columns form
    begin "grid-$gpus.txt"
    for model in $gridded; do
        IFS=: read -r layers width batch <<<"$model"
        for ((columns = 1; columns <= gpus; columns++)); do
            ((gpus % columns == 0)) || continue
            model="--layers $layers --width $width --batch $batch --columns $columns"
            for form in '' --apart; do
                # With one row, or one column, both placements are the same.
                [ -z "$form" ] || ((columns > 1 && columns < gpus)) || continue
                # shellcheck disable=SC2086 # words
                keep "$out/grid-$gpus.txt" 120 "${mpirun[@]}" -np "$gpus" 15-grid/grid $model --steps 3 $form --time
            done
            # shellcheck disable=SC2086 # words
            ! have_pytorch || keep "$out/grid-$gpus.txt" 120 \
                torchrun --standalone --nproc_per_node="$gpus" measure/grid.py $model
        done
    done
}

# --- What only has to be right ----------------------------------------------------------------

every_lesson() {
    local n form
    begin lessons.txt
    for n in ${RANKS:-$counts}; do
        while read -r form; do
            # shellcheck disable=SC2046 # words
            keep "$out/lessons.txt" 60 "${mpirun[@]}" -np "$n" $(arguments "$form")
        done <<<"$forms"
    done
}

tests() {
    fresh "tests-$gpus.txt"
    if [ "$BACKEND" = cpu ]; then
        keep "$out/tests-$gpus.txt" 500 prove --timer tests/wrong-use.bats
    else
        keep "$out/tests-$gpus.txt" 500 make test BACKEND=cuda
    fi
}

# What is looked for is a wrong access. Calls that fail are the lessons' own to report, and
# NCCL makes some that it expects to: it asks for kernels that the GPU at hand does not have.
memcheck() { # FORM
    # shellcheck disable=SC2046 # words
    keep "$work/memcheck-${1//\//-}" 300 "${mpirun[@]}" -np "$gpus" "$sanitizer" \
        --tool memcheck --report-api-errors no --error-exitcode 1 $(arguments "$1" 4K)
}

# repeat FORM: so many runs in a row, on all GPUs, on one less and so on in turn; one line more
# in repeat.txt.
repeat() {
    local run n failed=0 began said=$work/said-${1//\//-}
    began=$(date +%s)
    for ((run = 1; run <= runs; run++)); do
        n=$((gpus - (run - 1) % gpus))
        # shellcheck disable=SC2046 # words
        if ! timeout --kill-after=5 60 "${mpirun[@]}" -np "$n" $(arguments "$1" 4K) \
            >"$said" 2>&1 </dev/null || ! grep -q '^OK: ' "$said"; then
            failed=$((failed + 1))
            { echo "run $run of $1, $n ranks:"; cat "$said"; } >>"$work/failed-runs"
        fi
    done
    [ "$failed" -eq 0 ] || echo "$failed of $runs runs of $1" >>"$work/failed"
    echo "mpirun -np N $(arguments "$1" 4K): $runs runs in a row, N from $gpus to 1 in turn," \
        "$failed failed or hung, $(($(date +%s) - began)) s" >>"$out/repeat.txt"
}

# All at once: none of this is timed, and a machine that is busy finds more.
checked() { # PART…
    local form part
    # Else mpirun binds the ranks of each to the same few processors.
    export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
    for part in "$@"; do
        case $part in
        lessons) every_lesson & ;;
        tests) tests & ;;
        programs) programs & ;;
        repeat)
            fresh repeat.txt
            while read -r form; do
                repeat "$form" &
            done <<<"$forms"
            ;;
        memcheck)
            wait # for the others: it takes the whole machine
            [ -x "$sanitizer" ] || { say 'no compute-sanitizer: memcheck.txt is left out'; continue; }
            while read -r form; do
                memcheck "$form" &
            done <<<"$forms"
            wait
            begin memcheck.txt
            cat "$work"/memcheck-* >>"$out/memcheck.txt"
            ;;
        esac
    done
    wait
}

# The programs with which the checks of the CPU build are tested, two ranks each. The right ones
# and the repaired ones must pass; what the wrong ones do is for the record.
programs() {
    local file
    fresh programs.txt
    cp tests/check/check.h "$work"
    for file in tests/check/{right,wrong}/*.c; do
        # What managed memory does is up to the driver; and three ranks need three GPUs.
        ! grep -qE 'cudaMallocManaged|^// ranks: 3' "$file" || continue
        if [[ $file == */right/* ]]; then
            program right "$file" &
        else
            program wrong "$file" &
            program repaired "$file" &
        fi
        while [ "$(jobs -rp | wc -l)" -ge 8 ]; do wait -n || true; done
    done
    wait
    sort -o "$out/programs.txt" "$out/programs.txt"
}

# program KIND FILE.c: builds and runs it; one line more in programs.txt: how it ended.
program() {
    local base name limit=15 code=0 end
    base=$(basename "$2" .c)
    name=$1-$base
    [ "$1" = wrong ] || limit=40
    {
        echo '#define _DEFAULT_SOURCE // for usleep'
        [ "$1" != repaired ] || echo '#define FIXED'
        cat "$2"
    } >"$work/$name.c"
    aside "$work/$name.c" 2>/dev/null
    timeout --kill-after=5 "$limit" "${mpirun[@]}" -np 2 "$work/$name/$name" \
        >"$work/$name.out" 2>&1 </dev/null || code=$?
    # 2 and 3 are what check.h makes of wrong data and of a call that fails.
    case $code in
    0) end='exit code 0' ;;
    2) end='wrong data' ;;
    3) end="error: $(grep -om1 'returned .*' "$work/$name.out")" ;;
    124 | 137) end="runs after $limit s" ;;
    134 | 139) end='crash' ;;
    *) end="exit code $code" ;;
    esac
    echo "$1 $base: $end" >>"$out/programs.txt"
    [ "$1" = wrong ] || [ "$code" -eq 0 ] || echo "$1 $2: $end" >>"$work/failed"
}

# --- README.md --------------------------------------------------------------------------------

# Tables and plots from the files.
write_readme() {
    local csv
    for csv in "$out"/bandwidth-*.csv; do
        [ ! -f "$csv" ] || plot "$(basename "$csv" .csv)"
    done
    {
        printf '# What came out\n\n'
        "$here/tables.sh" "$out"
    } >"$work/README.md"
    cp "$work/README.md" "$out/README.md"
}

SECONDS=0
if [ "$stages" != write ]; then
    say "building (BACKEND=$BACKEND)"
    make -s all >/dev/null
fi
for stage in $stages; do
    case $stage in
    timed)
        say 'machine, hello' && machine machine.txt && hello_time
        say 'ring' && ring_time
        say 'bandwidth' && bandwidth && buffers
        say 'nccl-tests, PyTorch (where there are any)' && nccl_tests && pytorch
        say 'copies, three all-reduces' && peer && three && pair
        ;;
    three)
        say "$stage" && machine "machine-$gpus.txt" && three && pair
        ;;
    peer | overlap | sharded | experts | pipeline | grid)
        say "$stage" && machine "machine-$gpus.txt" && "$stage"
        ;;
    checked)
        say "every lesson, the tests, $runs runs in a row, memcheck"
        checked lessons tests repeat memcheck
        ;;
    lessons | tests | repeat | memcheck | programs)
        say "$stage" && checked "$stage"
        ;;
    training)
        say 'training' && machine "machine-$gpus.txt" && overlap && sharded && experts && pipeline && grid
        ;;
    write)
        write_readme
        ;;
    esac
done
say "done in $SECONDS s: $out"
if [ -s "$work/failed" ]; then
    say 'these failed:' && cat "$work/failed" >&2
    [ ! -s "$work/failed-runs" ] || cat "$work/failed-runs" >&2
    exit 1
fi
