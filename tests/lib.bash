# What the tests in bash share, those that bats runs and those that print TAP themselves: Open MPI's settings, the points,
# building, and running a program on some ranks.
# shellcheck shell=bash disable=SC2034 # what is set here is for the tests

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../common/one-machine.sh
source "$top/common/one-machine.sh"
export MASTER_PORT=$((20000 + $$ % 12000)) # lesson 17's: two tests at the same time would meet at its default
# What the caller has set for programs or for make would change what is printed, or built.
unset MAKEFLAGS MFLAGS MAKELEVEL
lessons='01-nccl-broadcast/broadcast 02-nccl-allreduce/allreduce
03-reduce-scatter-allgather/reduce_scatter_allgather 04-all-to-all/all_to_all'

# The last line of Open MPI 5's own on stderr is a null byte: none of it is binary for that.
grep() {
    command grep -a "$@"
}

# --- TAP, for a test without bats: its points, and the plan at the end ----------------------

number=0
failed=0
label='' # in front of each point's text

result() { # STATUS TEXT [FILE…]: the files are shown if it failed
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $label$2"
    else
        echo "not ok $number - $label$2"
        failed=1
        [ $# -le 2 ] || tail -n 60 "${@:3}" 2>&1 | sed 's/^/#   /'
    fi
}

# point TEXT COMMAND…: whether a command succeeds, also in $worked; what it prints, if not.
point() {
    local log
    log=$(mktemp)
    worked=0
    "${@:2}" >"$log" 2>&1 || worked=1
    result "$worked" "$1" "$log"
    rm -f "$log"
}

is() { # GOT EXPECTED TEXT
    local status=0
    [ "$1" = "$2" ] || status=1
    result "$status" "$3"
    [ "$status" -eq 0 ] || printf '%s\n' "got:" "$1" "expected:" "$2" | sed 's/^/#   /'
}

skipped() { # TEXT WHY
    result 0 "$1 # SKIP $2"
}

finish() {
    echo "1..$number"
    exit "$failed"
}

# --- Building and running, for bats ------------------------------------------------------

build_lessons() {
    make -s -C "$top" all >/dev/null
}

on_gpus() {
    [ "${BACKEND:-auto}" = cuda ]
}

# How many GPUs a program sees.
gpus() {
    if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
        tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .
    else
        nvidia-smi -L | grep -c '^GPU'
    fi
}

# Numbers of ranks to try: on GPUs, as many as there are; else 8 only with ALL=yes (make test-long), since 4 and 7
# tell all that it tells.
rank_counts() {
    local n most=7
    [ -z "${ALL:-}" ] || most=8
    on_gpus && most=$(gpus)
    for n in 1 2 3 4 7 8; do
        [ "$n" -gt "$most" ] || echo "$n"
    done
}

# Whether N ranks are tried with everything, not only with what is usual: one rank and an odd number, and with
# ALL=yes (make test-long) also the most. On GPUs, where every run takes seconds, only as many as there are.
thorough() {
    if on_gpus; then
        [ "$1" -eq "$(rank_counts | tail -n 1)" ]
    else
        [[ $1 == [13] || $1 == 8 && -n ${ALL:-} ]]
    fi
}

# long: a test of make test-long (ALL=yes), not of make test.
long() {
    [ -n "${ALL:-}" ] || skip "make test-long"
}

# every_second: of such tests of a file, every second is one of make test; the others are make test-long's.
every_second() {
    ((BATS_TEST_NUMBER % 2)) || long
}

# in_turn N FORM…: what of a test's forms N ranks are tried with: one of them, in turn. All with ALL=yes, and on
# the most GPUs.
in_turn() {
    local n=$1
    shift
    if [ -n "${ALL:-}" ] || { on_gpus && thorough "$n"; }; then
        printf '%s\n' "$@"
    else
        echo "${@:1 + n % $#:1}"
    fi
}

skip_unless_ranks() {
    rank_counts | grep -qx "$1" || skip "fewer than $1 GPUs"
}

# ranks N PROGRAM [ARGUMENT…]: standard output into $out, standard error into $err (less
# what mpirun itself says of an exit code), exit code into $code.
ranks() {
    local n=$1 program=$2
    shift 2
    code=0
    timeout 300 mpirun --oversubscribe -np "$n" "$top/$program" "$@" \
        >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || code=$?
    out=$(grep -v '^CPU build: ' "$BATS_TEST_TMPDIR/out" || true)
    err=
    [ ! -s "$BATS_TEST_TMPDIR/err" ] || err=$(without_mpirun <"$BATS_TEST_TMPDIR/err")
}

# modelled N PROGRAM [ARGUMENT…]: the same by the CPU build's modelled clock, whose times are the same
# digits on every run; MACHINE names another machine than h200.
modelled() {
    NCCL_CPU_CLOCK=${MACHINE:-h200} ranks "$@"
    show >&2
    [ "$code" -eq 0 ]
}

# mpirun frames its remarks with dashes; what is left is the program's.
without_mpirun() {
    awk '/^-----/ { framed = !framed; next } !framed && NF' |
        grep -v '^\[.*\] \|^Primary job\|mpirun detected' || true
}

# build NAME [LESSON]: NAME.c of the test's own folder, for the CPU build, with the headers that
# lie in a lesson's folder. A test then runs it with top=$BATS_TEST_TMPDIR ranks N NAME.
build() {
    local flags=$BATS_FILE_TMPDIR/cpu-flags
    cd "$BATS_TEST_TMPDIR" || return
    [ -s "$flags" ] || make -s -C "$top" cpu-flags >"$flags"
    # shellcheck disable=SC2046 # the flags are words
    mpicc -I"$top/common" ${2:+-I"$top/$2"} "$1.c" $(cat "$flags") -o "$1"
}

# breaks N PROGRAM SED [ARGUMENT…]: a lesson in which sed has changed something, on N ranks of the
# CPU build. It stands as broken.c in what is reported.
breaks() {
    local n=$1 program=$2 change=$3
    shift 3
    on_gpus && skip "one build is enough"
    sed "$change" "$top/$program.c" >"$BATS_TEST_TMPDIR/broken.c"
    [ "$(cat "$BATS_TEST_TMPDIR/broken.c")" != "$(cat "$top/$program.c")" ]
    build broken "${program%/*}"
    top=$BATS_TEST_TMPDIR ranks "$n" broken "$@"
    show
}

# all_right N COUNT THING PROGRAM [ARGUMENT…]: ends well on N ranks, with so many things as expected and
# no word on standard error.
all_right() {
    echo "$1 ranks ${*:5}"
    ranks "$1" "${@:4}"
    expect 0 "OK: $(plural "$1"), all $2 $3 as expected"
    [ -z "$err" ]
}

plural() { # N: as the verdict says it
    [ "$1" -eq 1 ] && echo "1 rank" || echo "$1 ranks"
}

# misuse PROGRAM MESSAGE ARGUMENT…: without mpirun, which takes a second or two over every job
# that fails.
misuse() {
    local program=$1 message=$2
    shift 2
    code=0
    timeout 300 "$top/$program" "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || code=$?
    out=$(grep -v '^CPU build: ' "$BATS_TEST_TMPDIR/out" || true)
    err=$(cat "$BATS_TEST_TMPDIR/err")
    misused "$program" "$message"
}

# misused PROGRAM MESSAGE: said once, then the usage line, which begins with the program and
# $usage, where a file has set it; exit code 2.
misused() {
    local name=${1##*/}
    show
    [ "$code" -eq 2 ]
    [ -z "$out" ]
    [ "$(grep -c "^$name: " <<<"$err")" -eq 1 ]
    [ "$(head -n 1 <<<"$err")" = "$name: $2" ]
    [[ $(sed -n 2p <<<"$err") == "usage: $name ${usage:-}"* ]]
}

# show: for bats, which prints it when a test fails.
show() {
    printf 'exit code %s\n--- stdout\n%s\n--- stderr\n%s\n' "$code" "$out" "$err"
}

# expect CODE LINE: the exit code, and the last line of the output.
expect() {
    show
    [ "$code" -eq "$1" ]
    [ "$(tail -n 1 <<<"$out")" = "$2" ]
}
