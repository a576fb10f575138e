#!/usr/bin/env bats
# The lessons as a student runs them: every number of ranks, several counts, whole outputs.
# With BACKEND=cuda, the same on real GPUs.

load ../lib

setup_file() {
    build_lessons
}

elements() { # of all ranks together that a lesson checks with -n COUNT on N ranks
    case $1 in
    *reduce_scatter* | *all_to_all) echo $(($3 * $2 * $2)) ;;
    *) echo $(($2 * $3)) ;;
    esac
}

# The first line says that it is the CPU build, and no other does.
says_which_build() {
    [ "$(head -n 1 "$BATS_TEST_TMPDIR/out")" = "CPU build: no GPU is used, MPI carries the NCCL calls." ]
    [ "$(grep -c 'CPU build' "$BATS_TEST_TMPDIR/out")" -eq 1 ]
}

@test "every lesson, every number of ranks, -n 1 to 100000" {
    local counts='1 5 17 1000 100000'
    ! on_gpus || counts='1 100000'
    for lesson in $lessons; do
        counts="${counts#* } ${counts%% *}"
        for n in $(ALL=yes rank_counts); do
            # shellcheck disable=SC2086 # words
            for count in $(in_turn "$n" $counts); do
                echo "$lesson: $n ranks, -n $count"
                ranks "$n" "$lesson" -n "$count"
                expect 0 "OK: $(plural "$n"), all $(elements "$lesson" "$n" "$count") elements as expected"
                [ -z "$err" ]
                on_gpus || says_which_build
            done
        done
    done
}

@test "hello: one line a rank, in rank order, with versions and bus ids" {
    for n in $(ALL=yes rank_counts); do
        ranks "$n" 00-nccl-hello-world/hello
        expect 0 "OK: $(plural "$n"), all $((3 * n)) answers as expected"
        [ -z "$err" ]
        on_gpus || says_which_build
        [[ $(head -n 1 <<<"$out") =~ ^NCCL\ 2\.[0-9]+\.[0-9]+,\ CUDA\ runtime\ 1[0-9]\.[0-9]+,\ driver ]]
        for ((r = 0; r < n; r++)); do
            line=$(sed -n "$((r + 2))p" <<<"$out")
            [[ $line =~ ^rank\ $r\ of\ $n\ on\ [^:]+:\ GPU\ $r,\ .+,\ 0000:[0-9A-F]{2}:[0-9A-F]{2}\.0\;\ communicator:\ rank\ $r\ of\ $n,\ GPU\ $r$ ]]
        done
    done
}

@test "broadcast: the whole output on 2 ranks" {
    skip_unless_ranks 2
    ranks 2 01-nccl-broadcast/broadcast
    expect 0 "OK: 2 ranks, all 8 elements as expected"
    diff - <(echo "$out") <<'END'
Before broadcast:
       ---------------------
GPU 0  | 42 | 42 | 42 | 42 |
       ---------------------
       ---------------------
GPU 1  | 0  | 0  | 0  | 0  |
       ---------------------

After broadcast:
       ---------------------
GPU 0  | 42 | 42 | 42 | 42 |
       ---------------------
       ---------------------
GPU 1  | 42 | 42 | 42 | 42 |
       ---------------------

OK: 2 ranks, all 8 elements as expected
END
}

@test "allreduce: the whole output on 3 ranks" {
    skip_unless_ranks 3
    ranks 3 02-nccl-allreduce/allreduce
    diff - <(echo "$out") <<'END'
Before all-reduce:
       -----------------
GPU 0  | 1 | 1 | 1 | 1 |
       -----------------
       -----------------
GPU 1  | 1 | 1 | 1 | 1 |
       -----------------
       -----------------
GPU 2  | 1 | 1 | 1 | 1 |
       -----------------

After all-reduce:
       -----------------
GPU 0  | 3 | 3 | 3 | 3 |
       -----------------
       -----------------
GPU 1  | 3 | 3 | 3 | 3 |
       -----------------
       -----------------
GPU 2  | 3 | 3 | 3 | 3 |
       -----------------

OK: 3 ranks, all 12 elements as expected
END
}

@test "reduce-scatter, all-gather: the whole output on 4 ranks" {
    skip_unless_ranks 4
    ranks 4 03-reduce-scatter-allgather/reduce_scatter_allgather
    diff - <(echo "$out") <<'END'
Before reduce-scatter:
       -----------------
GPU 0  | 1 | 2 | 3 | 4 |
       -----------------
       -----------------
GPU 1  | 2 | 3 | 4 | 5 |
       -----------------
       -----------------
GPU 2  | 3 | 4 | 5 | 6 |
       -----------------
       -----------------
GPU 3  | 4 | 5 | 6 | 7 |
       -----------------

After reduce-scatter:
       ------
GPU 0  | 10 |
       ------
       ------
GPU 1  | 14 |
       ------
       ------
GPU 2  | 18 |
       ------
       ------
GPU 3  | 22 |
       ------

After all-gather:
       ---------------------
GPU 0  | 10 | 14 | 18 | 22 |
       ---------------------
       ---------------------
GPU 1  | 10 | 14 | 18 | 22 |
       ---------------------
       ---------------------
GPU 2  | 10 | 14 | 18 | 22 |
       ---------------------
       ---------------------
GPU 3  | 10 | 14 | 18 | 22 |
       ---------------------

OK: 4 ranks, all 16 elements as expected
END
}

@test "all-to-all: the whole output on 4 ranks" {
    skip_unless_ranks 4
    ranks 4 04-all-to-all/all_to_all
    diff - <(echo "$out") <<'END'
Before all-to-all:
       ---------------------
GPU 0  | A0 | A1 | A2 | A3 |
       ---------------------
       ---------------------
GPU 1  | B0 | B1 | B2 | B3 |
       ---------------------
       ---------------------
GPU 2  | C0 | C1 | C2 | C3 |
       ---------------------
       ---------------------
GPU 3  | D0 | D1 | D2 | D3 |
       ---------------------

After all-to-all:
       ---------------------
GPU 0  | A0 | B0 | C0 | D0 |
       ---------------------
       ---------------------
GPU 1  | A1 | B1 | C1 | D1 |
       ---------------------
       ---------------------
GPU 2  | A2 | B2 | C2 | D2 |
       ---------------------
       ---------------------
GPU 3  | A3 | B3 | C3 | D3 |
       ---------------------

OK: 4 ranks, all 16 elements as expected
END
}

@test "all-to-all with two elements a pair, on 2 ranks" {
    skip_unless_ranks 2
    ranks 2 04-all-to-all/all_to_all -n 2
    grep -q '^GPU 0  | A0 | A1 | B0 | B1 |$' <<<"$out"
    grep -q '^GPU 1  | A2 | A3 | B2 | B3 |$' <<<"$out"
}

@test "after Z comes AA" {
    on_gpus && skip "more ranks than GPUs"
    long
    ranks 28 04-all-to-all/all_to_all
    expect 0 "OK: 28 ranks, all 784 elements as expected"
    grep -q '^GPU 25 | Z0 ' <<<"$out"
    grep -q '^GPU 26 | AA0 ' <<<"$out"
    grep -q '^GPU 27 | AB0 ' <<<"$out"
}

@test "a verdict over nothing is no success" {
    breaks 2 01-nccl-broadcast/broadcast 's/lesson_expect(.*);/continue;/'
    expect 1 'FAILED: nothing was checked'
}

@test "memory that nobody has written is no letter" {
    on_gpus && skip "it may hold anything there"
    cd "$BATS_TEST_TMPDIR"
    # A scatter: each rank gets one block of four.
    sed -e 's/CHECK_NCCL(ncclSend/if (rank == 0) &/' -e 's/CHECK_NCCL(ncclRecv/if (peer == 0) &/' \
        "$top/04-all-to-all/all_to_all.c" >scatter.c
    build scatter
    top=$BATS_TEST_TMPDIR ranks 4 scatter
    show
    grep -qxF 'GPU 3  | A3 | ?  | ?  | ?  |' <<<"$out"
    [ "$(tail -n 1 <<<"$out")" = 'FAILED: rank 0, element 1 is ?, expected B0 (and 11 more)' ]
}

@test "above 16 elements the table shows the ends, and how many lie between" {
    ranks 1 01-nccl-broadcast/broadcast -n 16
    grep -q '^GPU 0  \(| 42 \)\{16\}|$' <<<"$out"
    ranks 1 01-nccl-broadcast/broadcast -n 17
    grep -q '^GPU 0  | 42 | 42 | 42 | 42 | ... 9 more ... | 42 | 42 | 42 | 42 |$' <<<"$out"
    # The frame is as wide as the row.
    [ "$(awk '/^GPU 0/ { print length; exit }' <<<"$out")" -eq \
        "$(awk '/^ +-+$/ { print length; exit }' <<<"$out")" ]
    ranks 1 03-reduce-scatter-allgather/reduce_scatter_allgather -n 100
    grep -q '^GPU 0  | 1   | 2   | 3   | 4   | ... 92 more ... | 97  | 98  | 99  | 100 |$' <<<"$out"
}

@test "as many elements as a program really sends" {
    ranks 1 01-nccl-broadcast/broadcast -n 40000000
    expect 0 "OK: 1 rank, all 40000000 elements as expected"
    skip_unless_ranks 2
    ranks 2 02-nccl-allreduce/allreduce -n 10000000
    expect 0 "OK: 2 ranks, all 20000000 elements as expected"
}

@test "the program of common/cuda.md" {
    run timeout 300 "$top/common/cuda"
    [ "$status" -eq 0 ]
    [[ ${lines[-1]} =~ ^1000000\ elements\ copied\ within\ the\ GPU\ in\ [0-9]+\.[0-9]+\ ms,\ 0\ wrong$ ]]
    CUDA_VISIBLE_DEVICES='' run timeout 300 "$top/common/cuda"
    [ "$status" -eq 1 ]
    [[ ${lines[-1]} == "CUDA says: no CUDA-capable device is detected" ]]
}

@test "without mpirun a lesson is one rank" {
    # Such processes share a folder of Open MPI's, and one that ends may remove it while another begins.
    export OMPI_MCA_orte_tmpdir_base=$BATS_TEST_TMPDIR
    for lesson in 00-nccl-hello-world/hello $lessons; do
        run timeout 300 "$top/$lesson"
        echo "$lesson, exit code $status: $output"
        [ "$status" -eq 0 ]
        [[ ${lines[-1]} == "OK: 1 rank, all "* ]]
    done
}

@test "a basic lesson has at most 100 lines, a later one 255; no line is for one build only" {
    for folder in "$top"/[0-9][0-9]-*/; do
        most=255
        [[ $folder != */0[0-4]-* ]] || most=100
        [ "$(cat "$folder"*.c | wc -l)" -le "$most" ]
        ! grep -n '# *if' "$folder"*.c
        [ "$(wc -l <"$folder"Makefile)" -le 2 ]
        [ -f "$folder"README.md ]
    done
}

# badly_placed FILE…: each #include that does not stand at the top of its file, after comments, macros and other includes.
badly_placed() {
    awk 'FNR == 1 { code = 0; comment = 0 } /^\/\*/ { comment = 1 } comment { if (/\*\//) comment = 0; next }
        /^#include/ && code { print FILENAME ":" FNR ": " $0 } !/^#|^\/\/|^$/ { code = 1 }' "$@"
}

@test "includes stand at the top of a file, and every header compiles alone" {
    on_gpus && skip "one build is enough"
    printf '%s\n' '/* A' ' * int */' '#include "a.h"' '' 'int a;' '#include "b.h"' >"$BATS_TEST_TMPDIR/a.c"
    [ "$(badly_placed "$BATS_TEST_TMPDIR/a.c")" = "$BATS_TEST_TMPDIR/a.c:6: #include \"b.h\"" ]
    cd "$top"
    run badly_placed [0-9][0-9]-*/*.[ch] common/*.[ch]
    echo "$output"
    [ -z "$output" ]
    echo 'static inline struct ring *none(struct ring *r) { return r + 1; }' >"$BATS_TEST_TMPDIR/a.h"
    flags=$(make -s cpu-flags)
    # shellcheck disable=SC2086 # the flags are words
    ! mpicc -std=c11 -fsyntax-only -Icommon $flags -x c "$BATS_TEST_TMPDIR/a.h" 2>/dev/null
    # shellcheck disable=SC2086 # the flags are words
    for folder in [0-9][0-9]-* common; do
        ls "$folder"/*.h >/dev/null 2>&1 || continue
        mpicc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -Icommon ${flags%% *.a*} -x c "$folder"/*.h
    done
}

@test "a lesson's folder works when copied alone with common/*.h" {
    on_gpus && skip "one build is enough"
    cp "$top"/02-nccl-allreduce/allreduce.c "$top"/common/*.h "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR"
    # shellcheck disable=SC2046 # the flags are words
    mpicc -I. allreduce.c $(make -s -C "$top" cpu-flags) -o allreduce
    run timeout 300 mpirun --oversubscribe -np 2 ./allreduce
    [ "$status" -eq 0 ]
    [ "${lines[-1]}" = "OK: 2 ranks, all 8 elements as expected" ]
}
