#!/usr/bin/env bash
# make break: lists the ways to break lessons' programs on purpose; N=04 lists those of a lesson.
# make break N=04a: shows one change, runs the changed program and shows what is reported.
#
# N=04a is the file 04-…/break/a-NAME.diff, and cuda-a is common/break/a-NAME.diff:
#   its first line says in one sentence what is changed;
#   "Run: mpirun -np 4 ./PROGRAM -n 5", variables in front if need be, says how it is run;
#   "Report: TEXT" is what some line of the output must begin with;
#   after an empty line comes the change, as diff -u prints it.
#
# BACKEND is cpu or cuda, FLAGS what the compiler is given for it. RANKS, if set, replaces the number of ranks; LESSONS is where the lessons are.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
lessons=${LESSONS:-$top}

stop() {
    printf 'make break: %s\n' "$1" >&2
    exit 2
}

# shellcheck source=one-machine.sh
source "$top/common/one-machine.sh"

# list FOLDER: what there is in the folders of this pattern.
list() {
    local diff lesson
    # shellcheck disable=SC2231 # $1 is a pattern
    for diff in "$lessons"/$1/break/*.diff; do
        [[ $diff =~ /([0-9]+-[^/]*|common)/break/([a-z])- ]] || continue
        lesson=${BASH_REMATCH[1]%%-*}
        printf '%s%s  %s\n' "${lesson/common/cuda-}" "${BASH_REMATCH[2]}" "$(head -n 1 "$diff")"
    done
}

if [ $# -eq 0 ]; then
    here=$(basename "$PWD")
    [[ $here == [0-9][0-9]-* || $here == common ]] || here='[0-9co][0-9o]*'
    list "$here"
    exit
fi

none="there is no N=$1: make break lists all there are, such as N=04a"
if [[ $1 =~ ^([0-9][0-9]|cuda)$ ]]; then
    folder="$1-*"
    found=$(list "${folder/cuda-\*/common}")
    [ -n "$found" ] || stop "$none"
    printf '%s\n' "$found"
    exit
fi
[[ ! $1 =~ ^[0-9][0-9]\.[0-9]+$ ]] ||
    stop "N=$1 is an exercise: make exercise N=$1. Ways to break a lesson have letters: make break N=${1%.*}"
[[ $1 =~ ^([0-9][0-9]|cuda-)([a-z])$ ]] || stop "$none"
folder="${BASH_REMATCH[1]%-}-*"
diff=$(compgen -G "$lessons/${folder/cuda-\*/common}/break/${BASH_REMATCH[2]}-*.diff") ||
    stop "$none"
lesson=${diff%/break/*}
source=$(sed -n 's/^--- \(a\/\)\{0,1\}\([^[:space:]]*\).*/\2/p' "$diff" | head -n 1)
run=$(sed -n 's/^Run: //p' "$diff")
report=$(sed -n 's/^Report: //p' "$diff")

# The changed program, built beside nothing else, under its own name: reports name its lines.
command -v patch >/dev/null || stop 'needs the program patch (apt-get install patch)'
work=$top/build/break/$1
rm -rf "$work"
mkdir -p "$work"
find "$lesson" -maxdepth 1 '(' -name '*.[ch]' -o -name '*.cu' ')' -exec cp -t "$work" {} +
patch --silent --fuzz=0 -d "$work" "$work/$source" "$diff" || stop "$diff does not fit ${lesson##*/}/$source"
flags=${FLAGS:-$(make -s --no-print-directory -C "$top" "$BACKEND-flags")}
[ "$BACKEND" = cpu ] || ! grep -qE 'cublas_v2|"network.h"' "$work"/*.[ch] || flags+=' -lcublas'
if [[ $source == *.cu ]]; then
    compile=("$top/kernels/cpu-nvcc")
    [ "$BACKEND" = cpu ] || compile=(nvcc -cudart shared)
    # shellcheck disable=SC2046 # flags of MPI
    "${compile[@]}" -g -w -lineinfo -I"$top/common" "$work/$source" -o "$work/${source%.cu}" -lnccl \
        $([ "$BACKEND" = cpu ] || mpicc -show | tr ' ' '\n' | grep '^-[ILl]')
else
    # shellcheck disable=SC2086 # the flags are words
    ${MPICC:-mpicc} -std=c11 -g -w -I"$top/common" "$work/$source" $flags -o "$work/${source%.c}"
fi

if [ -n "${RANKS:-}" ] && [[ $run =~ ' -np '[0-9]+ ]]; then
    run=${run/"${BASH_REMATCH[0]}"/ -np $RANKS}
fi
awk 'NR == 1 { print; print "" } /^@@/ { if (hunks++) print "…"; next } hunks' "$diff"
printf '\nRun: %s\n' "$run"
if [ "$BACKEND" = cuda ]; then
    make -s --no-print-directory -C "$top" check-library
    run=${run/ .\// "'$top/check/nccl-check'" ./}
fi
cd "$work"
timeout 300 bash -c "$run" >out 2>err </dev/null || true
# What mpirun itself says of a job that has failed tells nothing: it stands between lines of dashes.
awk '/^-----/ { framed = !framed; next } !framed && NF && !/^\[[^ ]*:[0-9]+\] |^[0-9]+ total processes /' err |
    cat out -
if ! grep -aqF -- "$report" out err; then
    echo "make break: nothing reported \"$report\"" >&2
    exit 1
fi
