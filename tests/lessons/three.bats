#!/usr/bin/env bats
# Lesson 08: the same sum in three ways.

load ../lib

three=08-three-all-reduces/three_all_reduces
usage='[-n COUNT] [--time] [--max BYTES] ' # for misused

setup_file() {
    build_lessons
}

@test "the whole output on 3 ranks" {
    skip_unless_ranks 3
    ranks 3 $three
    expect 0 "OK: 3 ranks, all 27 elements as expected"
    [ -z "$err" ]
    sums='       -------------------
GPU 0  | 111 | 222 | 333 |
       -------------------
       -------------------
GPU 1  | 111 | 222 | 333 |
       -------------------
       -------------------
GPU 2  | 111 | 222 | 333 |
       -------------------'
    diff - <(echo "$out") <<END
Before:
       -------------------
GPU 0  | 1   | 2   | 3   |
       -------------------
       -------------------
GPU 1  | 10  | 20  | 30  |
       -------------------
       -------------------
GPU 2  | 100 | 200 | 300 |
       -------------------

After ncclAllReduce:
$sums

After ncclReduce, ncclBroadcast:
$sums

After ncclReduceScatter, ncclAllGather:
$sums

OK: 3 ranks, all 27 elements as expected
END
}

@test "every number of ranks, every count: all elements of all three ways" {
    for n in $(rank_counts); do
        for count in $(in_turn "$n" 1 5 1003); do
            ranks "$n" $three -n "$count"
            expect 0 "OK: $(plural "$n"), all $((3 * n * n * count)) elements as expected"
            [ -z "$err" ]
            [ "$(grep -c '^After' <<<"$out")" -eq 3 ]
        done
    done
}

@test "--time: every size, checked in every way; the bytes are those of the formulas" {
    for n in $(rank_counts); do
        thorough "$n" || [ "$n" -le 2 ] || continue
        sizes='' all=0
        for size in 4 16 64 256; do
            count=$((size / n * n))
            [ "$count" -eq 0 ] || sizes+="$((4 * count))"$'\n'
            all=$((all + 3 * n * count))
        done
        ranks "$n" $three --time --max 1K
        expect 0 "OK: $(plural "$n"), all $all elements as expected"
        [ -z "$err" ]
        [ "$(grep -c '^GPU' <<<"$out")" -eq 0 ]
        [ "$(awk '/^ +[0-9]+ / { print $1 }' <<<"$out")" = "${sizes%$'\n'}" ]
        awk -v n="$n" '/^ +[0-9]+ / {
                ring = 2 * (n - 1) / n * $1; chain = (n > 2 ? 2 : n - 1) * $1
                bad += NF != 7 || $2 != ring || $4 != chain || $6 != ring || $3 <= 0 || $5 <= 0 || $7 <= 0 }
            END { exit bad }' <<<"$out"
        grep -qE '^ncclCommSplit and the first all_reduce, of 4 B: [0-9]+ µs$' <<<"$out"
    done
}

@test "--time: what the modelled clock says: two calls cost twice as much, large ones by their bytes" {
    on_gpus && skip "of the CPU build"
    modelled 4 $three --time --max 1M
    diff - <(awk '$1 ~ /^(16|1024|65536|1048576)$/' <<<"$out") <<'END'
         16             24        8.52             32       12.55             24       14.18
       1024           1536        9.88           2048       11.72           1536       14.57
      65536          98304       11.48         131072       18.79          98304       17.32
    1048576        1572864       19.49        2097152       38.95        1572864       25.53
END
}

@test "--time: the default sizes, in steps of four" {
    skip_unless_ranks 2
    ranks 2 $three --time
    expect 0 "OK: 2 ranks, all 131064 elements as expected"
    [ "$(awk '/^ +[0-9]+ / { print $1 }' <<<"$out" | tr '\n' ' ')" = "16 64 256 1024 4096 16384 65536 " ]
}

@test "wrong usage: one message, exit code 2" {
    cd "$BATS_TEST_TMPDIR"
    misuse $three "-n 0 is less than 1" -n 0
    misuse $three "--max 15 is less than 16" --time --max 15
    misuse $three "--max needs a number" --max
    misuse $three "unknown option --size" --size 7
    misuse $three "unknown argument 7" 7
    ranks 1 $three -n 900000000000
    show
    [ "$code" -eq 1 ]
    grep -q 'the buffers need 7200 GB of GPU memory' <<<"$err"
}

# broken SED: the lesson with something changed, on 3 ranks.
broken() {
    every_second
    breaks 3 $three "$@"
    [ "$code" -eq 1 ]
}

@test "a half left out: FAILED, and in which elements" {
    broken '/CHECK_NCCL(ncclBroadcast(/ s|^|//|'
    [ "$(tail -n 1 <<<"$out")" = "FAILED: rank 1, element 0 is 0, expected 111 (and 5 more)" ]
    broken '/CHECK_NCCL(ncclAllGather(/ s|^|//|'
    [ "$(tail -n 1 <<<"$out")" = "FAILED: rank 0, element 1 is 0, expected 222 (and 5 more)" ]
}

@test "parts that are as large as the whole: past the end" {
    broken 's|part = count / (size_t)s->nranks|part = count|'
    grep -q '^NCCL CHECK: memory: ncclReduceScatter(.*) runs past the end of its buffer$' <<<"$err"
}
