#!/usr/bin/env bats
# Programs that make no MPI call and that no mpirun starts: a shell loop does, here.

load ../lib

setup_file() {
    # shellcheck disable=SC2046  # several options
    "${MPICC:-mpicc}" -std=c11 -D_DEFAULT_SOURCE -g -Wall -Wextra "$top/tests/cpu/by_hand.c" \
        $(make -s -C "$top" BACKEND=cpu cpu-flags) -o "$BATS_FILE_TMPDIR/by_hand"
}

# by_hand N [FAULT]: what the ranks print, sorted, in $out; $err; their exit codes in $codes.
by_hand() {
    local n=$1 rank
    local -a pids=()
    shift
    rm -f "$BATS_TEST_TMPDIR/id"
    for ((rank = 0; rank < n; rank++)); do
        RANK=$rank WORLD_SIZE=$n timeout 300 "$BATS_FILE_TMPDIR/by_hand" "$BATS_TEST_TMPDIR/id" "$@" \
            >"$BATS_TEST_TMPDIR/out.$rank" 2>"$BATS_TEST_TMPDIR/err.$rank" &
        pids+=($!)
    done
    codes=
    for rank in "${!pids[@]}"; do
        wait "${pids[rank]}" && codes+=' 0' || codes+=" $?"
    done
    out=$(cat "$BATS_TEST_TMPDIR"/out.*)
    err=$(cat "$BATS_TEST_TMPDIR"/err.*)
    printf 'exit codes%s\n%s\n%s\n' "$codes" "$out" "$err"
}

@test "a shell loop starts 1, 3 and 8 ranks" {
    for n in 1 3 8; do
        by_hand "$n"
        [ -z "${codes// 0/}" ]
        [ -z "$err" ]
        [ "$(grep -c "^rank .: $((n * (n + 1) / 2))\$" <<<"$out")" -eq "$n" ]
        [ "$(grep -c '^CPU build: ' <<<"$out")" -eq 1 ]
    done
}

@test "a timeline has all ranks; Slurm's variables, without an MPI that srun knows" {
    export NCCL_TIMELINE=$BATS_TEST_TMPDIR/run.json
    SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=1 SLURM_NODELIST=x by_hand 2
    [ "$codes" = ' 0 0' ]
    grep -q '"ranks":2,' "$NCCL_TIMELINE"
}

@test "the checks see all ranks" {
    by_hand 3 count
    grep -q 'NCCL CHECK: mismatch: the ranks give different counts' <<<"$err"
    grep -q 'rank 1 on .*: ncclAllReduce(count 4999' <<<"$err"
    [[ $codes != *' 0'* ]]
    # The other ranks end, too, and have nothing to add.
    [ "$(grep -c '^[NC]' <<<"$err")" -eq 1 ]
}

@test "a rank with the id of the last run ends, and then those who wait for it" {
    by_hand 2
    export RANK WORLD_SIZE=2
    RANK=1 timeout 60 "$BATS_FILE_TMPDIR/by_hand" "$BATS_TEST_TMPDIR/id" >"$BATS_TEST_TMPDIR/early" 2>&1 &
    early=$!
    sleep 0.5
    RANK=0 run timeout 60 "$BATS_FILE_TMPDIR/by_hand" "$BATS_TEST_TMPDIR/id"
    echo "$output"
    [ "$status" -ne 0 ]
    [ "$status" -ne 124 ]
    grep -q 'cannot meet: rank 1 has ended, with the unique id of an earlier run' <<<"$output"
    code=0
    wait "$early" || code=$?
    [ "$code" -ne 0 ]
    grep -q 'has ended (an id of an earlier run?)' "$BATS_TEST_TMPDIR/early"
}

@test "a rank that dies takes the others with it" {
    by_hand 3 killed
    [ "$codes" = ' 1 137 1' ]
    [ "$err" = 'CPU build: rank 1 has crashed, was killed or has called _exit, and all other ranks end with it' ]
    by_hand 3 code
    [ "$codes" = ' 1 7 1' ]
    [ "$err" = 'CPU build: rank 1 has ended with exit code 7, and all other ranks end with it' ]
}
