# What is asked of an MPI or a compiler that the other tests do not use: the library, a few lessons,
# and a few wrong programs, which must get the same reports, each once.
#
# Sourced after lib.bash; $top is the course, $work a folder that is removed at the end.
# shellcheck shell=bash

lessons=(01-nccl-broadcast/broadcast 04-all-to-all/all_to_all 05-ring-allreduce/ring_allreduce
    10-data-parallel/data_parallel 13-experts/experts)
# One of each kind of report, an exit code of its own, and right programs that ask for much.
programs=(mismatch-count missing-left-out missing-queued-exit deadlock-host-collective race-pinned
    memory-host-read setup-same-rank left-buffer two-threads mpi-ends-first init-all)
# What is loaded before a program finds the same; that it is found there is what matters.
in_small=(mismatch-count missing-left-out deadlock-host-collective two-threads)

# The caller's settings would change what is printed, or built.
unset SANITIZE MAKEFLAGS MFLAGS MAKELEVEL NCCL_CPU_CHECK NCCL_CPU_TIMEOUT
make -s -C "$top" BACKEND=cpu cpu-flags >/dev/null

# with NAME FORM…: all of it in a copy of the course, with $MPICC and ${mpirun[@]}; the wrong
# programs with the library that is linked, or with the one that is loaded (nccl-check).
with() {
    local name=$1 course=$work/${1// /-} status=0
    # gcc warns of what MPICH's header says of a status that is ignored.
    local -x BACKEND=cpu CFLAGS='-O0 -g' WARNINGS=
    shift
    mkdir "$course"
    (cd "$top" && git ls-files -z | xargs -0 cp --parents -t "$course")
    # What reads no mpi.h is the same with every MPI: newer than the notes on how to build, it is not compiled again.
    make -n -C "$course" cpu-flags >/dev/null
    (cd "$top" && grep -rL --include='*.o.d' --exclude-dir=shared 'mpi\.h' build/cpu | sed 's/\.d$//' |
        xargs cp --parents -t "$course")
    make -s -j2 -C "$course" cpu-flags ${2:+cpu-forms} "${lessons[@]}" >"$work/log" 2>&1 || status=1
    compiled "$status" "$name: the library and ${#lessons[@]} lessons compile" || return 0
    runs "$name" "$course" "$course" "$@"
}

# The same for another compiler of lessons, over the library that is there.
over() {
    local name=$1 status=0 flags
    local -x BACKEND=cpu
    flags=$(make -s -C "$top" BACKEND=cpu cpu-flags)
    for lesson in "${lessons[@]}"; do
        mkdir -p "$work/over/${lesson%/*}"
        # shellcheck disable=SC2086 # words
        "$MPICC" -std=c11 -O0 -g -I"$top/common" "$top/$lesson.c" $flags -o "$work/over/$lesson" \
            >>"$work/log" 2>&1 || status=1
    done
    compiled "$status" "$name: ${#lessons[@]} lessons compile" || return 0
    runs "$name" "$work/over" "$top" "${@:2}"
}

compiled() { # STATUS WHAT
    result "$1" "$2"
    [ "$1" -eq 0 ] || { grep -E 'error|\*\*\*' "$work/log" | head -n 20 | sed 's/^/#   /'; return 1; }
}

# runs NAME LESSONS COURSE FORM…: the lessons of one folder, and the programs of a course.
runs() {
    local name=$1 course=$2 checks=$3 form lesson n=2 code status line
    shift 3
    for lesson in "${lessons[@]}"; do
        code=0
        timeout 300 "${mpirun[@]}" -np "$n" "$course/$lesson" >"$work/out" 2>"$work/err" || code=$?
        status=0
        [[ $code = 0 && ! -s $work/err && $(tail -n 1 "$work/out") = "OK: $n ranks, "* ]] || status=1
        [ "$(grep -c '^CPU build: ' "$work/out")" -eq 1 ] || status=1
        result "$status" "$name: $lesson, $n ranks"
        [ "$status" -eq 0 ] || tail -n 10 "$work/out" "$work/err" | sed 's/^/#   /'
        n=$((5 - n)) # 2 and 3 in turn
    done
    # The exit code for a wrong option is the program's.
    code=0
    timeout 300 "${mpirun[@]}" -np 2 "$course/${lessons[0]}" -n 0 >"$work/out" 2>"$work/err" || code=$?
    status=0
    [ "$code $(grep -c '^broadcast: -n 0 is less than 1$' "$work/err")" = '2 1' ] || status=1
    result "$status" "$name: a wrong option is said once, exit code 2"
    [ "$status" -eq 0 ] || sed "s/^/#   (exit code $code) /" "$work/err"
    # The points of check.t.
    for form; do
        n=2 these=("${programs[@]}")
        if [ "$form" != linked ]; then
            n=3 these=("${in_small[@]}")
        fi
        while IFS= read -r line; do
            case $line in
            'ok '* | 'not ok '*)
                status=0
                [[ $line != not* ]] || status=1
                result "$status" "$name, $form: ${line#*- }"
                ;;
            1..*) echo "# $name, $form: ${line#1..} points" ;;
            *) echo "# ${line#\# }" ;;
            esac
        done < <(MPIRUN=${mpirun[*]} FORM=$form RANKS=$n "$checks/tests/check/check.t" \
            "${these[@]}" </dev/null 2>/dev/null || true)
    done
}
