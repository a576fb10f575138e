#!/usr/bin/env bats
# Lesson 06: rows, results, the CSV file, the fit and the plot.

load ../lib

bandwidth=06-bandwidth/bandwidth
usage='[--op NAMES] ' # for misused
operations='broadcast reduce all_reduce reduce_scatter all_gather all_to_all send_recv'

setup_file() {
    build_lessons
}

# expected_rows N SIZE…: operation and size of each row.
expected_rows() {
    local n=$1 operation size grain
    shift
    for operation in $operations; do
        grain=4
        [[ $operation != *_scatter && $operation != all_gather && $operation != all_to_all ]] ||
            grain=$((4 * n))
        for size in "$@"; do
            [ $((size / grain)) -eq 0 ] || echo "$operation $((size / grain * grain))"
        done
    done
}

# checked N: of the rows on standard input, how many elements all ranks check.
checked() {
    local n=$1 operation size sum=0
    while read -r operation size; do
        case $operation in
        reduce | reduce_scatter) sum=$((sum + size / 4)) ;;
        *) sum=$((sum + n * size / 4)) ;;
        esac
    done
    echo $sum
}

rows() { # of $out: operation and size
    awk '$2 ~ /^[0-9]+$/ && $3 ~ /^[0-9.]+$/ { print $1, $2 }' <<<"$out"
}

@test "every number of ranks: a row for each operation and size, every result right" {
    for n in $(rank_counts); do
        local factor=8 sizes=(8 64 512 4096)
        thorough "$n" || factor=512 sizes=(8 4096)
        ranks "$n" $bandwidth --min 8 --max 4096 --factor $factor
        expected=$(expected_rows "$n" "${sizes[@]}")
        expect 0 "OK: $(plural "$n"), all $(checked "$n" <<<"$expected") elements as expected"
        [ -z "$err" ]
        diff <(echo "$expected") <(rows)
        [ "$(head -n 2 <<<"$out" | tr -s ' ')" = "operation size time algbw busbw
 (B) (µs) (GB/s) (GB/s)" ]
    done
}

@test "the default sizes" {
    skip_unless_ranks 2
    ranks 2 $bandwidth --op broadcast
    expect 0 "$(tail -n 1 <<<"$out")"
    [ "$(rows | head -n 1)" = "broadcast 8" ]
    [ "$(rows | awk 'p && $2 != 2 * p { print } { p = $2 }')" = "" ]
    on_gpus && last=1073741824 || last=65536
    [ "$(rows | tail -n 1)" = "broadcast $last" ]
}

@test "--op: some of them, in the lesson's order" {
    skip_unless_ranks 2
    ranks 2 $bandwidth --op send_recv,reduce --min 16 --max 16 --op all_gather
    expect 0 "OK: 2 ranks, all 20 elements as expected"
    [ "$(rows)" = "reduce 16
all_gather 16
send_recv 16" ]
}

@test "sizes with K, M and G; left out where a rank has no element, or no memory" {
    skip_unless_ranks 2
    ranks 2 $bandwidth --op reduce_scatter --min 4 --max 1K --factor 16
    expect 0 "OK: 2 ranks, all 272 elements as expected"
    grep -q '^reduce_scatter  *4  left out: less than one element for each of 2 ranks$' <<<"$out"
    [ "$(rows)" = "reduce_scatter 64
reduce_scatter 1024" ]
    ranks 2 $bandwidth --op broadcast --max 1000000G --factor 1000000000000
    expect 0 "OK: 2 ranks, all 4 elements as expected"
    grep -q '^broadcast  *8000000000000  left out, like all larger sizes: two such buffers do not fit into memory$' <<<"$out"
    ranks 2 $bandwidth --min 90000G --max 90000G
    show
    [ "$code" -eq 1 ]
    [ "$(grep -c 'no size fits: --min is 96636764160000 bytes, and there is room for' <<<"$err")" -eq 1 ]
}

@test "--csv: one line a row, and the columns fit each other" {
    skip_unless_ranks 2
    n=$(rank_counts | awk '$1 <= 3' | tail -n 1)
    csv=$BATS_TEST_TMPDIR/bandwidth.csv
    ranks "$n" $bandwidth --min 64 --max 4K --factor 8 --csv "$csv"
    [ "$code" -eq 0 ]
    [ "$(head -n 1 "$csv")" = "operation,mode,ranks,bytes,time_us,algbw_GB_per_s,busbw_GB_per_s,repeats" ]
    [ "$(awk -F, 'NF != 8' "$csv")" = "" ]
    diff <(rows) <(awk -F, 'NR > 1 { print $1, $4 }' "$csv")
    # Bandwidth is bytes over time; the bus factors are those of nccl-tests.
    awk -F, -v n="$n" '
        function off(a, b) { return a > b * 1.001 || a < b * 0.999 }
        BEGIN {
            factor["broadcast"] = factor["reduce"] = factor["send_recv"] = 1
            factor["all_reduce"] = 2 * (n - 1) / n
            factor["reduce_scatter"] = factor["all_gather"] = factor["all_to_all"] = (n - 1) / n
        }
        NR > 1 && ($2 != "plain" || $3 != n || $5 <= 0 || $8 < 2 ||
            off($6, $4 / $5 / 1000) || off($7, $6 * factor[$1])) { print; bad = 1 }
        END { exit bad }' "$csv"
    ranks 2 $bandwidth --csv /nowhere/at/all.csv
    [ "$code" -eq 1 ]
    [ "$(grep -c 'cannot write /nowhere/at/all.csv: No such file or directory' <<<"$err")" -eq 1 ]
}

@test "--register and --graph, alone and together" {
    skip_unless_ranks 2
    csv=$BATS_TEST_TMPDIR/bandwidth.csv
    for modes in --register --graph '--register --graph'; do
        # shellcheck disable=SC2086 # words
        ranks 2 $bandwidth --min 64 --max 1K --factor 16 --csv "$csv" $modes
        expect 0 "OK: 2 ranks, all $(expected_rows 2 64 1024 | checked 2) elements as expected"
        [ -z "$err" ]
        [ "$(awk -F, 'NR > 1 { print $2 }' "$csv" | uniq -c | tr -s ' ')" = " 14 $(tr ' ' + <<<"${modes//--/}")" ]
    done
}

@test "wrong usage: one message, exit code 2" {
    cd "$BATS_TEST_TMPDIR"
    misuse $bandwidth "--op sum is none of its values" --op reduce,sum
    misuse $bandwidth "--op  is none of its values" --op reduce,
    misuse $bandwidth "--op needs a value" --op
    misuse $bandwidth "--min is larger than --max" --min 1K --max 512
    misuse $bandwidth "--min 3 is less than 4" --min 3
    misuse $bandwidth "--max 8KB is not a whole number" --max 8KB
    misuse $bandwidth "--max 9999999999G is too large" --max 9999999999G
    misuse $bandwidth "--factor 1 is less than 2" --factor 1
    skip_unless_ranks 2
    ranks 2 $bandwidth -n 4
    misused $bandwidth "unknown option -n"
    ranks 2 $bandwidth -h
    [ "$code" -eq 0 ]
    [ "$(grep -c '^usage: ' <<<"$out")" -eq 1 ]
    grep -q 'broadcast, reduce, all_reduce, reduce_scatter, all_gather, all_to_all, send_recv' <<<"$out"
    [ -z "$err" ]
}

@test "a wrong result: FAILED" {
    on_gpus && skip "one build is enough"
    cd "$BATS_TEST_TMPDIR"
    local folder=$top/06-bandwidth
    for change in 's/c->count, ncclFloat, ncclSum, c->comm/c->count, ncclFloat, ncclMax, c->comm/' \
        's/next, c->comm/previous, c->comm/; t; s/previous, c->comm/next, c->comm/' \
        's/ncclRecv(recv + at/ncclRecv(recv + (c->nranks - 1) * c->part - at/'; do
        cp "$folder"/*.[ch] .
        sed -i "$change" operations.h
        [ "$(cat operations.h)" != "$(cat "$folder/operations.h")" ]
        build bandwidth
        top=$BATS_TEST_TMPDIR ranks 3 bandwidth --max 64
        show
        [ "$code" -eq 1 ]
        [[ $(tail -n 1 <<<"$out") == "FAILED: rank 0, element "* ]]
        [ -n "${ALL:-}" ] || break
    done
}

@test "the fit: exact lines, noise, and sizes that show no law" {
    on_gpus && skip "of both builds"
    cat >"$BATS_TEST_TMPDIR/fit.c" <<'END'
#include "law.h"

static void fit(const char *what, double alpha, double beta, double noise, int n) {
    struct law law = {0};
    for (int i = 0; i < n; i++) {
        double bytes = (double)(8ull << i), seconds = alpha + bytes / beta;
        law_add(&law, bytes, seconds * (1 + (i % 2 ? noise : -noise)));
    }
    law_fit(&law);
    printf("%s: %d alpha %.0f beta %.0f rms %.2f worst %.2f\n", what, law.fits,
           law.alpha * 1e6, law.beta / 1e9, law.rms, law.worst);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    fit("exact", 10e-6, 200e9, 0, 28);
    fit("noise", 10e-6, 200e9, 0.05, 28);
    fit("two sizes", 10e-6, 200e9, 0, 2);
    fit("no latency", 0, 1e9, 0, 10);
    fit("no bandwidth", 10e-6, INFINITY, 0, 2);
    fit("one size", 10e-6, 1e9, 0, 1);
    struct law steep = {0};
    law_add(&steep, 1, 1);
    law_add(&steep, 10, 20);
    law_add(&steep, 100, 400);
    law_fit(&steep);
    printf("steeper than a line: alpha %g, slope above 0: %d\n", steep.alpha, steep.beta > 0);
    MPI_Finalize();
}
END
    build fit 06-bandwidth
    top=$BATS_TEST_TMPDIR ranks 1 fit
    diff - <(echo "$out") <<'END'
exact: 1 alpha 10 beta 200 rms 0.00 worst 0.00
noise: 1 alpha 10 beta 200 rms 0.05 worst 0.05
two sizes: 1 alpha 10 beta 200 rms 0.00 worst 0.00
no latency: 1 alpha 0 beta 1 rms 0.00 worst 0.00
no bandwidth: 0 alpha 10 beta inf rms 0.00 worst 0.00
one size: 0 alpha 0 beta 0 rms 0.00 worst 0.00
steeper than a line: alpha 0, slope above 0: 1
END
}

@test "the stopwatch: medians and quarters, the slowest rank, settled or not" {
    on_gpus && skip "of both builds"
    cat >"$BATS_TEST_TMPDIR/watch.c" <<'END'
#include "clock.h"

// A clock that only this program moves: it may define MPI's functions itself.
static double now;
double MPI_Wtime(void) { return now; }

static void batch(struct stopwatch *watch, double seconds, int repeat) {
    stopwatch_start(watch);
    now += seconds;
    stopwatch_stop(watch, repeat);
}

static int until_settled(double seconds, double wobble) {
    struct stopwatch watch = {0};
    while (!stopwatch_settled(&watch))
        batch(&watch, seconds * (1 + (watch.nbatches % 2 ? wobble : -wobble)), 1);
    return watch.nbatches;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = lesson_self().rank;
    const double odd[] = {5, 1, 4, 2, 3}, even[] = {4, 1, 3, 2};
    struct stopwatch a = {0}, b = {0}, c = {0}, full = {0};
    for (int i = 0; i < 5; i++)
        batch(&a, odd[i], 1);
    for (int i = 0; i < 4; i++)
        batch(&b, even[i], 1);
    batch(&c, rank == 0 ? 30 : 10, 10);
    for (int i = 0; i < 300; i++)
        batch(&full, 300 - i, 1);
    if (rank == 0) {
        printf("medians %g %g, quarters %g %g\n", a.seconds, b.seconds,
               stopwatch_quantile(&a, 0.25), stopwatch_quantile(&a, 0.75));
        printf("full: %d batches, shortest %g\n", full.nbatches, full.batches[0]);
    }
    printf("slowest %g of %g\n", c.seconds, c.spent);
    int counts[] = {until_settled(5e-3, 1e-3), until_settled(1.3e-3, 1e-3), until_settled(4e-3, 0.1),
                    until_settled(10, 0.1), until_settled(1e-6, 1e-3), until_settled(1e-6, 0)};
    if (rank == 0)
        printf("batches until settled: %d %d %d %d %d %d\n", counts[0], counts[1], counts[2],
               counts[3], counts[4], counts[5]);
    MPI_Finalize();
}
END
    build watch
    top=$BATS_TEST_TMPDIR ranks 2 watch
    show
    # Five at least; 10 ms together at least; where they differ, more than 30 ms; 10 at most, and
    # 200 on GPUs; but if all are the same, as on a modelled clock, no more than five.
    diff <(sort <<<"$out") <(sort <<'END'
medians 3 2.5, quarters 2 4
full: 10 batches, shortest 1
slowest 3 of 30
slowest 3 of 30
batches until settled: 5 8 8 5 10 5
END
    )
}

@test "make plot: SVG with a line for each operation; says what is missing" {
    cd "$BATS_TEST_TMPDIR"
    if command -v gnuplot; then
        run make -s -C "$top" plot CSV=/nowhere/bandwidth.csv
        [ "$status" -ne 0 ]
        [[ $output == *"no /nowhere/bandwidth.csv here: mpirun -np 4 ./bandwidth --csv"* ]]
        ranks 1 $bandwidth --max 1K --factor 8 --csv "$PWD/bandwidth.csv"
        run make -s -C "$top/06-bandwidth" plot CSV="$PWD/bandwidth.csv" SVG="$PWD/a.svg"
        [ "$status" -eq 0 ]
        [ -z "$output" ]
        head -n 1 a.svg | grep -q '<?xml'
        tail -n 2 a.svg | grep -q '</svg>'
        for operation in $operations; do
            [ "$(grep -c "<text>.*$operation" a.svg)" -ge 1 ]
        done
        grep -q 'bus bandwidth (GB/s)' a.svg
    else
        run make -s -C "$top" plot
        [[ $output == *"make plot needs gnuplot"* ]]
        skip "gnuplot is not installed"
    fi
}

# slow PROGRAM: a copy in which an all-reduce takes 60 ms, as it takes milliseconds on GPUs where ranks share one.
slow() {
    {
        cat <<'END'
#define _GNU_SOURCE
#include <nccl.h>
#include <unistd.h>
#define ncclAllReduce(...) (usleep(60000), (ncclAllReduce)(__VA_ARGS__))
END
        cat "$top/$1.c"
    } >"$BATS_TEST_TMPDIR/slow.c"
    build slow "${1%/*}"
}

@test "06, 19 and 21: where calls take milliseconds, only a few are timed, and a line says so" {
    on_gpus && skip "of the CPU build"
    for each in '06-bandwidth/bandwidth --op all_reduce --max 1K' '19-small-messages/small_messages --values 3' \
        '21-paths/paths -n 64'; do
        read -ra words <<<"$each"
        slow "${words[0]}"
        begun=$SECONDS
        top=$BATS_TEST_TMPDIR ranks 2 slow "${words[@]:1}"
        show
        [ "$code" -eq 0 ]
        [ "$(grep -c '^A call of a few bytes takes [0-9]* ms here (do ranks share a GPU?), so each time' <<<"$out")" -eq 1 ]
        echo "$((SECONDS - begun)) s"
        [ $((SECONDS - begun)) -lt 30 ]
    done
    # Where they are fast, none of this.
    ranks 2 19-small-messages/small_messages --values 3
    ! grep -q 'a few bytes' <<<"$out"
}
