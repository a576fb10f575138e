#!/usr/bin/env bash
# Measures the course on this machine's GPUs, and writes down what comes out:
#
#     make measure                                all of it, into build/measured
#     make measure PARTS='lessons nccl-tests'     these parts, beside what the folder has already
#     results/measure/measure.sh FOLDER                   into another folder
#
# The parts, and how many minutes each takes on two GPUs:
#
#     lessons      every lesson as it is, on 1, 2, 4 and all GPUs: is it right? (1)
#     bandwidth    lesson 06: seven collectives, 8 B to 1 GiB, and small messages in four ways (1)
#     nccl-tests   lessons 06 and 19 and NVIDIA's nccl-tests in turn, where NCCL_TESTS_HOME is set (1)
#     links        lessons 07, 08 and 09, nccl-tests and PyTorch beside 08; or one of them: peer, three, ring (2)
#     training     lessons 11 to 15, and PyTorch's way right after each (10's step is 11's with --bucket all); or
#                  one of them: overlap, sharded, experts, pipeline, grid (6)
#     production   lessons 16, 18 to 21, and 23 to 25; the times from a fault to the next step (1)
#     model        machine.conf: this machine for the modelled clock (cpu/clock.md), made of single operations, and
#                  compositions.csv, to compare its predictions with; on two or more GPUs, not among all (4)
#     write        README.md with the tables, and plots, from the files; needs no GPU
#
# Only by name:
#
#     repeat       every lesson RUNS times in a row (50 runs: 20 minutes)
#     memcheck     every lesson under compute-sanitizer (5)
#     tests        make test BACKEND=cuda (5)
#     wrong        tests/check with nccl-check and without, and what NCCL's own checks say (12); single stages,
#                  and other tools: results/measure/check.sh
#
#   NCCL_TESTS_HOME=…   nccl-tests, built            RUNS=50     of repeat
#   CUDA_VISIBLE_DEVICES=0,1   only these GPUs       BACKEND=cpu     a rehearsal without GPUs
#   LESSONS='0[0-4]-*'         of lessons, repeat and memcheck only these
#   RANKS='2 4'     of lessons; where that is more than one for a GPU: NCCL_MULTI_RANK_GPU_ENABLE=1, NCCL 2.30
set -euo pipefail

course=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
training='overlap sharded experts pipeline grid'
links='peer three ring'
names="lessons bandwidth nccl-tests links $links training $training production model write repeat memcheck tests wrong"
asked=${PARTS:-lessons bandwidth nccl-tests links training production write}
parts=
for part in $asked; do
    case $part in
    training) parts+=" $training" ;;
    links) parts+=" $links" ;;
    *)
        [[ " $names " == *" $part "* ]] || { echo "$0: PARTS: $part is none of $names" >&2; exit 2; }
        parts+=" $part"
        ;;
    esac
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
    gpus=${CPU_DEVICES:-4} large=16K largest=64K ring_sizes=262144 turns=1
    copy=100000 by_transport=16K rounds=20 exchange=4096
    export OMPI_MCA_mpi_yield_when_idle=1
    mpirun+=(--oversubscribe)
else
    gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
    [ -z "${CUDA_VISIBLE_DEVICES:-}" ] || gpus=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .)
    [ "$gpus" -gt 0 ] || [ "$asked" = write ] || { echo "$0: no GPU here, so there is nothing to measure" >&2; exit 1; }
    models='8:4096:2048 32:1024:1024' # layers, width, samples a rank
    tokens='64:128 4096:8192' # width, tokens a rank
    pipelined='16:2048:16384' gridded=8:4096:4096 # layers, width, batch
    large=64M largest=1G ring_sizes='262144 268435456' turns=3
    copy=100000000 by_transport=256M rounds=1000 exchange=1048576
fi
# Command lines are kept as they are typed in the course's folder.
out=${out#"$course/"}
# 1, 2, 4 and all GPUs, as far as there are so many.
counts=$(printf '%s\n' 1 2 4 "$gpus" | awk -v gpus="$gpus" '$1 <= gpus' | sort -nu)
visible=${CUDA_VISIBLE_DEVICES:-$(seq -s, 0 $((gpus - 1)))}
programs=$(for lesson in ${LESSONS:-[0-9][0-9]-*}; do compgen -G "$lesson/*.c" || compgen -G "$lesson/*.cu"; done | sed -E 's/\.cu?$//')
tests_home=${NCCL_TESTS_HOME:-}
sanitizer=$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")
runs=${RUNS:-2}

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

# A part may be of another day than the rest, and of another state of the course: the first line of
# its files.
begin() { # FILE
    echo "taken: $(date -u '+%Y-%m-%d %H:%M UTC'), course at $(commit)" >"$out/$1"
}

commit() {
    git describe --always --dirty 2>/dev/null || echo unknown
}

# start N PROGRAM [MAX]: in $start, how it is started on N GPUs, by mpirun or by itself; in $below, what is put
# before the program. Lesson 06 by default takes minutes. Returns 1 for lesson 07 on one GPU, where one rank has nothing
# to copy, and for what is not built: lessons with kernels need a compiler for them.
below=()
start() {
    [[ $1-$2 != 1-07-* ]] && [ -x "$2" ] || return 1
    case $2 in
    16-*) start=(env "CUDA_VISIBLE_DEVICES=$(cut -d, -f "1-$1" <<<"$visible")" "${below[@]}" "$2") ;;
    06-*) start=("${mpirun[@]}" -np "$1" "${below[@]}" "$2" --max "${3:-64K}" --factor 8) ;;
    *) start=("${mpirun[@]}" -np "$1" "${below[@]}" "$2") ;;
    esac
}

# --- The machine ------------------------------------------------------------------------------

machine() { # FILE
    : >"$out/$1"
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

# --- What takes how long ----------------------------------------------------------------------

ring() {
    local count pieces
    [ "$gpus" -gt 1 ] || return 0 # a ring of one has no steps
    begin ring.txt
    for count in $ring_sizes; do
        for pieces in 4 1; do
            # Of little data it is the number of messages that costs, whatever else is done.
            [ "$count" -gt 1000000 ] || [ "$pieces" = 4 ] || continue
            keep "$out/ring.txt" 120 "${mpirun[@]}" -np "$gpus" 09-pipelined-ring/pipelined_ring \
                -n "$count" --pieces "$pieces" --time
        done
    done
}

bandwidth() {
    local n mode sizes
    for n in $counts; do
        begin "bandwidth-$n.txt"
        sizes="--max $largest"
        [ "$n" -gt 1 ] || sizes="--max $large --factor 8" # nothing travels
        # In the folder, so that the command line that is kept is one that anybody can type.
        # shellcheck disable=SC2086 # words
        keep "$out/bandwidth-$n.txt" 150 "${mpirun[@]}" -np "$n" 06-bandwidth/bandwidth \
            $sizes --csv "$out/bandwidth-$n.csv"
    done
    # Small messages, launched in four ways.
    begin bandwidth-small.txt
    : >"$out/bandwidth-small.csv"
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

# NVIDIA's own figures: of large messages, to compare with bandwidth's; of small ones in turn with ours, and of an
# all-reduce, which varies from run to run, once more. -a 3 is the slowest rank's time, as in lesson 06. And
# lesson 19's sum of 128 bytes in a graph, on windows, three times.
nccl_tests() {
    local all='broadcast reduce all_reduce reduce_scatter all_gather alltoall sendrecv' small='-b 8 -e 64K -f 8 -w 1000 -n 1000'
    [ -n "$tests_home" ] || { say 'no NCCL_TESTS_HOME: nccl-tests is left out'; return 0; }
    begin nccl-tests.txt
    theirs "$all" -b "$large" -e "$largest"
    ours --max 64K --factor 8
    # shellcheck disable=SC2086 # words
    theirs "$all" $small
    for _ in 1 2 3; do
        keep "$out/nccl-tests.txt" 60 "${mpirun[@]}" -np "$gpus" 19-small-messages/small_messages
        theirs all_reduce -b 128 -e 128 -R 2 -G 20
    done
    ours --op all_reduce --max 64K --factor 8
    # shellcheck disable=SC2086 # words
    theirs all_reduce $small
}

beside=nccl-tests.txt # where what nccl-tests print is kept

ours() { # ARGUMENT…
    keep "$out/$beside" 60 "${mpirun[@]}" -np "$gpus" 06-bandwidth/bandwidth "$@"
}

under=() # what stands before nccl-tests' command lines: env and variables

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
        keep "$out/$beside" 90 "${under[@]}" "${start[@]}" -f 2 -a 3 "$@"
    done
}

export OMP_NUM_THREADS=1 # as torchrun sets it, with a warning

# Whether PyTorch is there, and sees the GPUs.
have_pytorch() {
    command -v torchrun && python3 -c 'import torch; assert torch.cuda.is_available()'
} >/dev/null 2>&1

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

# What single operations take, and compositions of them on 2 and on all GPUs.
model() {
    results/measure/aside machine
    local turn several=(2 "$gpus") machines=() short=() long=$work/long.csv
    [ "$gpus" -gt 2 ] || several=(2)
    # What is short changes from run to run, so it is measured in turn and the medians count. The runs stay beside them.
    for ((turn = 1; turn <= turns; turn++)); do
        machines+=("$out/machine-$turn.conf") short+=("$out/short-$turn.csv")
        timeout --kill-after=10 100 "${mpirun[@]}" -np "$gpus" build/machine/machine </dev/null |
            sed '/^CPU build/d' >"${machines[-1]}" || echo results/measure/machine.c >>"$work/failed"
        results/measure/compositions.pl --measure --short "${several[@]}" >"${short[-1]}" ||
            echo 'results/measure/compositions.pl --measure --short' >>"$work/failed"
    done
    results/measure/compositions.pl --measure --long "${several[@]}" >"$long" ||
        echo 'results/measure/compositions.pl --measure --long' >>"$work/failed"
    results/measure/median.pl "${machines[@]}" >"$out/machine.conf" || echo 'results/measure/median.pl' >>"$work/failed"
    { results/measure/median.pl "${short[@]}" || echo 'results/measure/median.pl' >>"$work/failed"; sed 1d "$long"; } >"$out/compositions.csv"
}

# Three ways to one sum, ours before nccl-tests' parts and PyTorch's.
three() {
    local beside=three.txt
    begin three.txt
    keep "$out/three.txt" 150 "${mpirun[@]}" -np "$gpus" 08-three-all-reduces/three_all_reduces \
        --time --max "$largest"
    [ -z "$tests_home" ] || theirs 'all_reduce reduce broadcast reduce_scatter all_gather' \
        -b 16 -e "$largest" -f 4 -w 100 -n 100
    ! have_pytorch || keep "$out/three.txt" 120 torchrun --standalone --nproc_per_node="$gpus" results/measure/collectives.py
}

# With one GPU nothing travels, and a lesson's ways are one.
of_several() { # WAY…: the first alone on one GPU
    [ "$gpus" -gt 1 ] && printf '%s\n' "$@" || printf '%s\n' "$1"
}

# PyTorch's way of a lesson, on all its models in one start, which takes up to half a minute.
pytorch() { # FILE PROGRAM MODEL…
    local file=$1 program=$2 model them=
    shift 2
    have_pytorch || return 0
    for model in "$@"; do them+="${them:+ then }$model"; done
    # shellcheck disable=SC2086 # words
    keep "$out/$file" 150 torchrun --standalone --nproc_per_node="$gpus" "results/measure/$program" $them
}

# Lesson 11 on some models: how many multiprocessors NCCL gets, how much goes into a bucket.
# PyTorch's DDP on the same models comes right after.
overlap() {
    local model layers width share form program=11-overlap/overlap each=()
    begin "training-$gpus.txt"
    for model in $models; do
        IFS=: read -r layers width share <<<"$model"
        model="--layers $layers --width $width --batch $((share * gpus))"
        of_several '--ctas 0' '--ctas 4' '--ctas 2' \
            "--ctas 4 --bucket $((4 * width * width * 4))" '--ctas 4 --bucket all' | while read -r form; do
            # shellcheck disable=SC2086 # words
            keep "$out/training-$gpus.txt" 120 "${mpirun[@]}" -np "$gpus" $program $model --steps 3 $form --time
        done
        each+=("$model")
    done
    pytorch "training-$gpus.txt" ddp.py "${each[@]}"
}

# Lesson 12 on the same models, in its stages; PyTorch's fully_shard right after.
sharded() {
    local model layers width share stage program=12-sharded/sharded each=()
    begin "sharded-$gpus.txt"
    for model in $models; do
        IFS=: read -r layers width share <<<"$model"
        model="--layers $layers --width $width --batch $((share * gpus))"
        for stage in $(of_several 3 2 1); do
            # shellcheck disable=SC2086 # words
            keep "$out/sharded-$gpus.txt" 120 "${mpirun[@]}" -np "$gpus" $program $model --steps 3 --stage $stage --time
        done
        each+=("$model --stage 3")
    done
    pytorch "sharded-$gpus.txt" fsdp.py "${each[@]}"
}

# Lesson 13: a layer's tokens there and back, in two ways; PyTorch's all_to_all_single right after.
experts() {
    local size width share load program=13-experts/experts each=()
    begin "experts-$gpus.txt"
    for size in $tokens; do
        IFS=: read -r width share <<<"$size"
        size="--width $width --batch $((share * gpus))"
        for load in $(of_several uneven even one); do
            # shellcheck disable=SC2086 # words
            keep "$out/experts-$gpus.txt" 120 "${mpirun[@]}" -np "$gpus" $program $size --layers 2 --steps 1 --load $load --time
        done
        each+=("$size --load uneven")
    done
    pytorch "experts-$gpus.txt" experts.py "${each[@]}"
}

# Lesson 14: in how many micro-batches, and in which order; PyTorch on eight of them in turns right after.
pipeline() {
    local model layers width batch micro form orders
    begin "pipeline-$gpus.txt"
    for model in $pipelined; do
        IFS=: read -r layers width batch <<<"$model"
        for micro in $(of_several 8 1 32); do
            model="--layers $layers --width $width --batch $batch --micro $micro"
            orders=('')
            [ "$micro" -lt 8 ] || orders+=(--all-forward) # of fewer both orders take the same time
            of_several "${orders[@]}" | while read -r form; do
                # shellcheck disable=SC2086 # words
                keep "$out/pipeline-$gpus.txt" 120 "${mpirun[@]}" -np "$gpus" 14-pipeline/pipeline $model --steps 3 $form --time
            done
        done
        pytorch "pipeline-$gpus.txt" pipeline.py "--layers $layers --width $width --batch $batch --micro 8"
    done
}

# Lesson 15: every grid; PyTorch on the same right after.
grid() {
    local model layers width batch columns form each=()
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
            each+=("$model")
        done
    done
    pytorch "grid-$gpus.txt" grid.py "${each[@]}"
}

# Lessons 16 to 23, with nccl-tests on the same sizes right after 18, 20 and 21. Three ranks can share two GPUs from
# NCCL 2.30 on.
production() {
    local way n=$gpus
    [ "$gpus" -ge 3 ] || ! grep -qE '^nccl: NCCL 2\.[3-9][0-9]' "$out/machine-$gpus.txt" || n=3
    begin "production-$gpus.txt"
    start "$gpus" 16-one-process/one_process
    keep "$out/production-$gpus.txt" 60 "${start[@]}" --rounds "$rounds"
    for way in 18-memory/memory_kinds 19-small-messages/small_messages 20-one-sided/one_sided \
        "20-one-sided/one_sided -n $exchange" 21-paths/paths \
        24-network/nodes '24-network/nodes --no-p2p' '24-network/nodes --no-p2p --no-shm' 25-kernels/kernels; do
        [ -x "${way%% *}" ] || continue
        # Lesson 20 needs NCCL 2.29.
        [[ $way != 20-* ]] || ! grep -qE '^nccl: NCCL 2\.(1.|2[0-8])' "$out/machine-$gpus.txt" || continue
        # shellcheck disable=SC2086 # words
        keep "$out/production-$gpus.txt" 90 "${mpirun[@]}" -np "$gpus" $way
        [ -z "$tests_home" ] || beside_production "$way"
    done
    # Through host memory the largest sizes would take long, and over sockets minutes.
    for way in NCCL_P2P_DISABLE=1 'NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1'; do
        # shellcheck disable=SC2086 # words
        keep "$out/production-$gpus.txt" 90 env $way "${mpirun[@]}" -np "$gpus" 21-paths/paths -n 131072
    done
    for way in '--how shrink' '--how anew' --join; do
        # shellcheck disable=SC2086 # words
        keep "$out/production-$gpus.txt" 60 env NCCL_MULTI_RANK_GPU_ENABLE=1 "${mpirun[@]}" -np "$n" \
            23-failures/failures --deadline 1000 --fault leave $way
    done
}

beside_production() { # PROGRAM
    local beside=production-$gpus.txt under=() registered
    case $1 in
    18-*) for registered in 0 1 2; do theirs all_reduce -b 64M -e 64M -R $registered; done ;;
    *one_sided) theirs sendrecv -b 4K -e 4M -f 1024 -w 100 -n 100 ;;
    21-*)
        theirs all_reduce -b 8 -e 128M -f 16
        under=(env NCCL_ALGO=Ring NCCL_PROTO=Simple)
        theirs all_reduce -b 8 -e 128M -f 16
        under=(env NCCL_ALGO=Tree NCCL_PROTO=LL)
        theirs all_reduce -b 8 -e 128M -f 16
        ;;
    esac
}

# --- What only has to be right ----------------------------------------------------------------

# at_once COMMAND…: beside up to seven others; `wait` waits for all.
at_once() {
    while [ "$(jobs -rp | wc -l)" -ge 8 ]; do wait -n || true; done
    "$@" &
}

# Each into a file of its own, in the end one after the other into NAME.txt.
gather() { # NAME
    wait
    begin "$1.txt"
    cat "$work/$1"-* >>"$out/$1.txt"
}

lessons() {
    local n program
    for n in ${RANKS:-$counts}; do
        for program in $programs; do
            start "$n" "$program" || continue
            at_once keep "$work/lessons-$n-${program//\//-}" 60 "${start[@]}"
        done
    done
    gather lessons
}

# What is looked for is a wrong access. Calls that fail are the lessons' own to report, and
# NCCL makes some that it expects to: it asks for kernels that the GPU at hand does not have.
memcheck() {
    local program
    [ -x "$sanitizer" ] || { say 'no compute-sanitizer: memcheck is left out'; return 0; }
    local below=("$sanitizer" --tool memcheck --report-api-errors no --error-exitcode 1)
    for program in $programs; do
        start "$gpus" "$program" 4K || continue
        [[ $program != 23-* ]] || start+=(--deadline 60000) # a step takes longer under the sanitizer
        at_once keep "$work/memcheck-${program//\//-}" 300 "${start[@]}"
    done
    gather memcheck
}

tests() {
    begin "tests-$gpus.txt"
    keep "$out/tests-$gpus.txt" 500 make test "BACKEND=$BACKEND"
}

# So many runs of a lesson in a row, on all GPUs, on one less and so on in turn; one line more in
# repeat.txt.
in_a_row() { # PROGRAM
    local run n failed=0 began said=$work/said-${1//\//-}
    began=$(date +%s)
    for ((run = 1; run <= runs; run++)); do
        n=$((gpus - (run - 1) % gpus))
        start "$n" "$1" 4K || continue
        if ! timeout --kill-after=5 60 "${start[@]}" >"$said" 2>&1 </dev/null || ! grep -q '^OK: ' "$said"; then
            failed=$((failed + 1))
            { echo "run $run of $1, $n ranks:"; cat "$said"; } >>"$work/failed-runs"
        fi
    done
    [ "$failed" -eq 0 ] || echo "$failed of $runs runs of $1" >>"$work/failed"
    echo "$1: $runs runs in a row, N from $gpus to 1 in turn, $failed failed or hung, $(($(date +%s) - began)) s" \
        >>"$out/repeat.txt"
}

repeat() {
    local program
    begin repeat.txt
    for program in $programs; do
        at_once in_a_row "$program"
    done
    wait
}

wrong() {
    local stage
    for stage in with without own write; do
        results/measure/check.sh "$out" "$stage" || echo "results/measure/check.sh $out $stage" >>"$work/failed"
    done
}

# --- README.md --------------------------------------------------------------------------------

# Tables and plots from the files.
write_readme() {
    local csv
    for csv in "$out"/bandwidth-*.csv; do
        [ ! -f "$csv" ] || ! command -v gnuplot >/dev/null ||
            make -s plot CSV="$csv" SVG="${csv%.csv}.svg" || say "no plot of $csv"
    done
    {
        printf '# What came out\n\n'
        results/measure/tables.sh "$out"
    } >"$work/README.md"
    cp "$work/README.md" "$out/README.md"
}

SECONDS=0
if [ "$asked" != write ]; then
    say "building (BACKEND=$BACKEND)"
    make -s all >/dev/null
    machine "machine-$gpus.txt"
fi
for part in $parts; do
    began=$SECONDS
    say "$part"
    if [ "$part" = write ]; then
        write_readme
    elif [[ " lessons repeat memcheck tests " == *" $part "* ]]; then
        # Else mpirun binds the ranks of each to the same few processors.
        (export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 && "$part")
    else
        "${part//-/_}"
    fi
    say "$part took $((SECONDS - began)) s"
done
say "done in $SECONDS s: $out"
if [ -s "$work/failed" ]; then
    say 'these failed:' && cat "$work/failed" >&2
    [ ! -s "$work/failed-runs" ] || cat "$work/failed-runs" >&2
    exit 1
fi
