#!/usr/bin/env bats
# Lesson 15: weights are divided in a row, samples between the rows; together what one process
# learns.

load ../lib

program=15-grid/grid
usage='[--layers L] [--width W] [--batch B] [--steps S] [--columns C] [--apart] [--time] [-h]'

setup_file() {
    build_lessons
}

# learns N ROWS WEIGHTS ARGUMENT…: right on N ranks in so many rows, each of which has so many
# weights.
learns() {
    all_right "$1" $(($2 * $3)) weights $program "${@:4}"
}

# columns N: the ways to divide so many ranks.
columns() {
    local c
    for ((c = 1; c <= $1; c++)); do
        (($1 % c)) || echo "$c"
    done
}

@test "every number of ranks, every grid: the weights and losses of one process, and the bytes" {
    learns 1 1 16384
    grep -qx 'largest difference from one process: 0, allowed 0' <<<"$out"
    grep '^step' <<<"$out" >"$BATS_TEST_TMPDIR/alone"
    awk '{ if (NR > 1 && $4 >= last) exit 1; last = $4 }' "$BATS_TEST_TMPDIR/alone"
    for n in $(rank_counts); do
        # shellcheck disable=SC2046 # words
        for c in $(in_turn "$n" $(columns "$n")); do
            rows=$((n / c))
            learns "$n" $rows 16384 --columns "$c"
            paste <(grep '^step' <<<"$out") "$BATS_TEST_TMPDIR/alone" |
                awk '{ d = $4 - $8; if (d > 1e-4 || d < -1e-4 || $2 != $6) exit 1 }'
            grep -qx "in a row     $((bytes = 3 * 256 * 168 / rows)) bytes a step, counted; (L-1) x B/rows x W x 4 = $bytes" <<<"$out"
            grep -qx "in a column  $((bytes = 1024 * (64 / c))) bytes a step, counted; L x W x slice x 4 = $bytes" <<<"$out"
        done
    done
}

@test "as many columns as rows, or more, if nothing is said" {
    on_gpus && skip "more ranks than GPUs"
    while read -r n rows; do
        ranks "$n" $program --steps 1 --layers 2 --width 8 --batch 12
        show
        [ "$(grep -c "row . of $rows, column . of $((n / rows));" <<<"$out")" -eq "$n" ]
    done <<<'1 1
2 1
3 1
4 2
6 2'
}

@test "side by side or apart: where the ranks are, which samples and which slice they have" {
    skip_unless_ranks 4
    learns 4 2 16384 --columns 2
    grep -qx 'rank 1: row 0 of 2, column 1 of 2; samples 0 to 83, slice 32 to 63' <<<"$out"
    grep -qx 'rank 2: row 1 of 2, column 0 of 2; samples 84 to 167, slice 0 to 31' <<<"$out"
    learns 4 2 16384 --columns 2 --apart
    grep -qx 'rank 1: row 1 of 2, column 0 of 2; samples 84 to 167, slice 0 to 31' <<<"$out"
    grep -qx 'rank 2: row 0 of 2, column 1 of 2; samples 0 to 83, slice 32 to 63' <<<"$out"
}

@test "one pair of layers, one sample a row, slices of different size, of one number" {
    for n in $(rank_counts); do
        thorough "$n" || continue
        # shellcheck disable=SC2046 # words
        for c in $(in_turn "$n" $(columns "$n")); do
            learns "$n" $((n / c)) $((2 * 11 * 11)) --layers 2 --width 11 --batch $((n / c)) --columns "$c" --steps 3
        done
        learns "$n" 1 $((6 * (n + 1) * (n + 1))) --layers 6 --width $((n + 1)) --columns "$n"
    done
}

@test "--time: three times; the result is right all the same" {
    for n in $(rank_counts); do
        thorough "$n" || [ "$n" -le 2 ] || continue
        learns "$n" 1 2048 --layers 2 --width 32 --columns "$n" --time
        grep -qE '^computing only +[0-9.]+ ms a step$' <<<"$out"
        grep -qE '^with the rows +[0-9.]+ ms$' <<<"$out"
        grep -qE '^with the columns +[0-9.]+ ms$' <<<"$out"
    done
    learns 1 1 2048 --layers 2 --width 32
    [ "$(grep -cE '^(computing|with)' <<<"$out")" -eq 0 ]
}

@test "--time: what the modelled clock says" {
    on_gpus && skip "of the CPU build"
    modelled 4 $program --time --columns 2
    diff - <(grep -E '^(computing|with)' <<<"$out") <<'END'
computing only          0.045 ms a step
with the rows           0.066 ms
with the columns        0.080 ms
END
}

@test "wrong usage: one message, exit code 2" {
    cd "$BATS_TEST_TMPDIR"
    misuse $program "--columns 2 is more than 1" --columns 2
    misuse $program "--layers 3 is odd: they come in pairs" --layers 3
    skip_unless_ranks 3
    ranks 3 $program --columns 2
    misused $program "--columns 2 does not divide 3 ranks"
    ranks 3 $program --columns 1 --batch 7
    misused $program "--batch 7 does not divide among 3 rows"
    ranks 3 $program --width 2
    misused $program "--width 2 is less than one for each of 3 columns"
}

# broken SED: the lesson with something changed, on 4 ranks in two rows.
broken() {
    every_second
    breaks 4 $program "$@"
    [ "$code" -eq 1 ]
}

wrong='FAILED: rank 0, weight '
differ='of the weights differ after the last step'

@test "one communicator destroyed before the other on half of the ranks: deadlock" {
    broken 's/^    CHECK_NCCL(ncclCommDestroy(g.in_column));/    if (g.row == g.column) CHECK_NCCL(ncclCommDestroy(g.in_row));\n&/
        s/^    CHECK_NCCL(ncclCommDestroy(g.in_row));/    if (g.row != g.column) CHECK_NCCL(ncclCommDestroy(g.in_row));/'
    grep -q '^NCCL CHECK: deadlock: ranks wait for one another' <<<"$err"
    grep -q 'waits in ncclCommDestroy' <<<"$err"
}

@test "without the sum forward: wrong; the loss falls all the same" {
    broken '/add_in_row(g, n->activation\[l + 2\])/ s|add_in_row.*|;|'
    [[ $(tail -n 1 <<<"$out") == "$wrong"* ]]
    grep '^step' <<<"$out" | awk '{ if (NR > 1 && $4 >= last) exit 1; last = $4 }'
}

@test "without the mean: copies in a column differ" {
    broken '/^            average_in_column/ s|average_in_column.*|;|'
    grep -q "$differ" <<<"$err"
}

@test "the other communicator: counts agree, and only the verdict tells" {
    broken 's/ncclSum, g->in_row/ncclSum, g->in_column/'
    [[ $(tail -n 1 <<<"$out") == "$wrong"* ]]
}

@test "a rank that makes its two communicators in the other order is named" {
    broken 's/^    CHECK_NCCL(ncclCommSplit(comm, g.row, g.column/    if (rank == 3) CHECK_NCCL(ncclCommSplit(comm, g.column, g.row, \&g.in_column, NULL));\n&/
        s/^    CHECK_NCCL(ncclCommSplit(comm, g.column/    if (rank != 3) CHECK_NCCL(ncclCommSplit(comm, g.column/'
    [[ $err == *"NCCL CHECK: "* || $err == *"$differ"* || $out == *"$wrong"* ]]
}

@test "rows that are counted one way and columns the other: wrong" {
    broken 's|rank / g.columns;|rank % g.rows;|'
    [[ $(tail -n 1 <<<"$out") == "$wrong"* || $err == *"$differ"* ]]
}

@test "every row takes the same samples: wrong, though all copies agree" {
    broken 's/step \* n->batch + g.row \* g.share/step * n->batch/'
    [[ $(tail -n 1 <<<"$out") == "$wrong"* ]]
}
