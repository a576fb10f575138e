#!/usr/bin/env bats
# Lessons 16 to 24: what else a job in production asks for.

# shellcheck disable=SC2030,SC2031 # each test has a shell of its own

load ../lib

setup_file() {
    build_lessons
}

# One rank, an odd number and the most: what a lesson that takes longer is tried on.
few_counts() {
    for n in $(rank_counts); do
        ! thorough "$n" || echo "$n"
    done
}

# alone N [ARGUMENT…]: lesson 16, which no launcher starts, with N GPUs.
alone() {
    code=0
    CPU_DEVICES=$1 CUDA_VISIBLE_DEVICES=$(seq -s, 0 $(($1 - 1))) timeout 300 \
        "$top/16-one-process/one_process" "${@:2}" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || code=$?
    out=$(grep -v '^CPU build: ' "$BATS_TEST_TMPDIR/out")
    err=$(cat "$BATS_TEST_TMPDIR/err")
    show
}

@test "16: the sum on every GPU of one process, by one thread and by many" {
    for n in $(rank_counts); do
        for how in '' --threads; do
            # shellcheck disable=SC2086 # one word or none
            alone "$n" -n 3 $how
            expect 0 "OK: $(plural "$n"), all $((3 * n)) elements as expected"
            [ -z "$err" ]
        done
    done
    NCCL_CPU_CLOCK='' alone 2 --rounds 20
    grep -qE '^one thread, one group +[0-9.]+ us an all-reduce$' <<<"$out"
    grep -qE '^one thread per GPU +[0-9.]+ us an all-reduce$' <<<"$out"
    # Whose times these are is said on the CPU build, unless its clock is a modelled one; an empty name is no machine.
    on_gpus || grep -qxF "CPU build: these are times of this computer's CPU, not of GPUs." "$BATS_TEST_TMPDIR/out"
}

@test "16: the modelled machine: one thread launches for one GPU after the other" {
    on_gpus && skip "of the CPU build"
    for n in 2 8; do
        NCCL_CPU_CLOCK=h200 alone "$n" --rounds 50 >&2
        [ "$(grep -c '^CPU build: ' "$BATS_TEST_TMPDIR/out")" -eq 1 ]
        awk '/one group/ { print $5 }' <<<"$out"
    done >"$BATS_TEST_TMPDIR/times"
    awk '{ t[NR] = $1 } END { exit !(t[2] > 3.5 * t[1] && t[2] < 4.5 * t[1]) }' "$BATS_TEST_TMPDIR/times"
}

# shell N ENVIRONMENT…: lesson 17 started by a shell loop, with $options; $out and $err are of all ranks together.
shell() {
    local n=$1 rank pids=()
    shift
    rm -f "$BATS_TEST_TMPDIR"/{out,err}.*
    for ((rank = 0; rank < n; rank++)); do
        env "$@" RANK="$rank" WORLD_SIZE="$n" timeout 300 "$top/17-without-mpi/without_mpi" \
            "${options[@]}" >"$BATS_TEST_TMPDIR/out.$rank" 2>"$BATS_TEST_TMPDIR/err.$rank" 3>&- &
        pids+=($!)
    done
    code=0
    for rank in "${pids[@]}"; do
        wait "$rank" || code=$?
    done
    out=$(cat "$BATS_TEST_TMPDIR"/out.* | grep -v '^CPU build: ' || true)
    err=$(cat "$BATS_TEST_TMPDIR"/err.*)
    show
}

port() { # a port that is free now, as is the next; below those that the system gives to whoever connects
    perl -MIO::Socket::INET -e 'for (1 .. 200) {
        my $port = 10000 + int rand 20000;
        my @free = grep { $_ } map { scalar IO::Socket::INET->new(Listen => 1, LocalAddr => "0.0.0.0", LocalPort => $_) } $port, $port + 1;
        print($port), exit if @free == 2 }
        exit 1'
}

@test "17: ranks that a shell loop has started meet, on every number of ranks" {
    for n in $(rank_counts); do
        local options=()
        [ "$n" -lt 7 ] || options=(--roots 3)
        shell "$n" MASTER_PORT="$(port)"
        expect 0 "OK: $(plural "$n"), all $((4 * n)) elements as expected"
        [ -z "$err" ]
        grep -q "^$(plural "$n"), counted by torchrun, met at 127.0.0.1:" <<<"$out"
    done
}

@test "17: the port is free again as soon as all ranks have ended" {
    on_gpus && skip "of the CPU build, where a rank starts an mpirun that may end after it"
    local options=() free
    free=$(port)
    for _ in {1..5}; do
        shell 2 CPU_DEVICES=1 MASTER_PORT="$free"
        [ "$code" -ne 0 ]
        shell 1 MASTER_PORT="$free"
        expect 0 "OK: 1 rank, all 4 elements as expected"
    done
}

@test "17: mpirun's variables, Slurm's and PMI's" {
    skip_unless_ranks 2
    # In a Slurm job all of mpirun's ranks see these: they are those of the job's script.
    SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 MASTER_PORT=$(port) NCCL_COMM_ID=127.0.0.1:$(port) \
        ranks 2 17-without-mpi/without_mpi -n 5
    expect 0 "OK: 2 ranks, all 10 elements as expected"
    grep -q '^2 ranks, counted by Open MPI,' <<<"$out"
    for names in 'Slurm SLURM_PROCID SLURM_NTASKS' 'PMI PMI_RANK PMI_SIZE'; do
        read -r who rank size <<<"$names"
        code=0
        out=$(env "$rank=0" "$size=1" MASTER_PORT="$(port)" timeout 300 "$top/17-without-mpi/without_mpi") || code=$?
        err=
        expect 0 "OK: 1 rank, all 4 elements as expected"
        grep -q "^1 rank, counted by $who," <<<"$out"
    done
}

@test "17: without a local rank, ranks that are dealt out in turn choose the same GPU" {
    on_gpus && skip "of the CPU build, which can pretend to be two machines"
    local options=()
    shell 4 CPU_HOSTS=2:cyclic CPU_DEVICES=2 MASTER_PORT="$(port)"
    [ "$code" -ne 0 ]
    grep -q '^NCCL CHECK: setup: two ranks are bound to the same GPU' <<<"$err"
    shell 4 CPU_HOSTS=2 CPU_DEVICES=2 MASTER_PORT="$(port)"
    expect 0 "OK: 4 ranks, all 16 elements as expected"
}

@test "17: the store takes more values than a thousand ranks need" {
    on_gpus && skip "one build is enough"
    cat >"$BATS_TEST_TMPDIR/many.c" <<'EOF'
#define _GNU_SOURCE // accept4
#include "store.h"

int main(int argc, char **argv) {
    struct store *s = store_open("127.0.0.1", atoi(argv[argc - 1]), 0, 30);
    int last = 0;
    for (int i = 0; i < 3000; i++) {
        char key[32];
        snprintf(key, sizeof key, "rank %d", i);
        store_set(s, key, &i, sizeof i);
    }
    store_get(s, "rank 2999", &last, sizeof last);
    lesson_pause(-1); // returns at once
    return last != 2999;
}
EOF
    # shellcheck disable=SC2046 # several options
    mpicc "$BATS_TEST_TMPDIR/many.c" -I"$top/common" -I"$top/17-without-mpi" $(make -s -C "$top" cpu-flags) -lpthread -o "$BATS_TEST_TMPDIR/many"
    timeout 50 "$BATS_TEST_TMPDIR/many" "$(port)"
}

# refused TEXT VARIABLE=VALUE…: lesson 17, one process with these variables, ends with exit code 1 and this text.
refused() {
    code=0
    err=$(env "${@:2}" timeout 50 "$top/17-without-mpi/without_mpi" 2>&1) || code=$?
    echo "${*:2}: exit code $code: $err"
    [ "$code" -eq 1 ]
    grep -qF "$1" <<<"$err"
}

@test "17: a wrong address, a port in use, torchrun's own store, a rank that never comes, a stranger" {
    on_gpus && skip "one build is enough"
    refused 'MASTER_ADDR=no-such-machine.invalid: ' MASTER_ADDR=no-such-machine.invalid
    refused 'MASTER_ADDR=::1: ' MASTER_ADDR=::1

    # What the environment says is looked at before all else.
    refused 'RANK=-1: it must be a whole number from 0 to 1, because ranks count from 0' RANK=-1 WORLD_SIZE=2
    refused 'rank 3 on this machine: RANK=3: it must be a whole number from 0 to 1,' RANK=3 WORLD_SIZE=2
    refused 'WORLD_SIZE=0: it must be a whole number from 1 to ' RANK=0 WORLD_SIZE=0
    refused 'WORLD_SIZE=: it must be' RANK=0 WORLD_SIZE=
    refused 'RANK is set, but WORLD_SIZE is not' RANK=0
    refused 'WORLD_SIZE is set, but RANK is not' WORLD_SIZE=2
    refused 'MASTER_PORT=abc: it must be a whole number from 1 to 65535' MASTER_PORT=abc
    refused 'MASTER_PORT=80000: it must be' MASTER_PORT=80000
    refused 'MASTER_PORT=65535: it must be a whole number from 1 to 65534' MASTER_PORT=65535 TORCHELASTIC_RUN_ID=none
    refused 'Invalid NCCL_COMM_ID [foo], please use format: <ipv4>:<port> or ' NCCL_COMM_ID=foo MASTER_PORT="$(port)"
    refused 'STORE_SECONDS=0: it must be a whole number from 1 ' STORE_SECONDS=0

    # The perl process listens and says nothing; it is also a store that never answers.
    exec 4< <(exec perl -MIO::Socket::INET -e '$| = 1; my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "0.0.0.0", LocalPort => $ARGV[0]);
        print $s->sockport, "\n"; sleep 60' "$(port)")
    local listener=$!
    read -r taken <&4
    shell 1 MASTER_PORT="$taken"
    [ "$code" -eq 1 ]
    grep -q "cannot listen at port $taken: Address already in use" <<<"$err"
    # torchrun's store is there, and its ranks take the next port.
    shell 2 TORCHELASTIC_RUN_ID=none TORCHELASTIC_USE_AGENT_STORE=True GROUP_RANK=0 LOCAL_WORLD_SIZE=2 \
        MASTER_ADDR=localhost MASTER_PORT="$taken"
    expect 0 "OK: 2 ranks, all 8 elements as expected"
    grep -q "^2 ranks, counted by torchrun, met at localhost:$((taken + 1))$" <<<"$out"
    exec 4<&-
    kill "$listener"

    free=$(port)
    refused ": nobody answers at 127.0.0.1:$free" RANK=1 WORLD_SIZE=2 STORE_SECONDS=1 MASTER_PORT="$free"
    grep -q '^rank 1 on ' <<<"$err"

    # Somebody else answers: noise, an HTTP server, a store that says the wrong key, the question, the wrong length.
    exec 6< <(exec perl -MIO::Socket::INET -e '$| = 1; alarm 60; my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1");
        print $s->sockport, "\n";
        for ("x" x 300, "HTTP/1.1 400 Bad Request\r\n", ["rank 0", 1, 128], ["unique id 0", 0, 128], ["unique id 0", 1, 8], "") {
            my $c = $s->accept; sysread $c, my $question, 304;
            my ($key, @numbers) = ref ? @$_ : ();
            print $c ref ? pack("a8 a32 a256 i2", "course1", $key, "", @numbers) : $_; close $c }')
    local other=$!
    read -r taken <&6
    for _ in {1..4}; do
        refused "what answers at 127.0.0.1:$taken is not this program's store" RANK=1 WORLD_SIZE=2 STORE_SECONDS=5 MASTER_PORT="$taken"
    done
    refused '"unique id 0" has 8 bytes in the store, and this rank means 128' RANK=1 WORLD_SIZE=2 STORE_SECONDS=5 MASTER_PORT="$taken"
    refused "127.0.0.1:$taken has closed the connection, and \"unique id 0\" was not there yet" \
        RANK=1 WORLD_SIZE=2 STORE_SECONDS=5 MASTER_PORT="$taken"
    exec 6<&-
    wait "$other" || true

    # What comes to a port is dropped, as by a firewall: here because the queue of a listener is full.
    exec 5< <(exec perl -MIO::Socket::INET -e '$| = 1; my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1");
        my @c = map { IO::Socket::INET->new(PeerAddr => "127.0.0.1:" . $s->sockport, Blocking => 0) } 1 .. 4;
        print $s->sockport, "\n"; sleep 60')
    local full=$!
    read -r taken <&5
    refused ": nobody answers at 127.0.0.1:$taken" RANK=1 WORLD_SIZE=2 STORE_SECONDS=1 MASTER_PORT="$taken"
    exec 5<&-
    kill "$full"

    # Rank 1 of three never comes. Rank 0, stopped for a moment, says so, and ends; rank 2 would wait longer.
    free=$(port)
    RANK=0 WORLD_SIZE=3 STORE_SECONDS=2 MASTER_PORT=$free "$top/17-without-mpi/without_mpi" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    (sleep 0.5 && kill -STOP $! && kill -CONT $!) 3>&- &
    refused "the store at 127.0.0.1:$free has closed the connection, and \"rank 1\" was not there yet: has rank 0 ended?" \
        RANK=2 WORLD_SIZE=3 MASTER_PORT="$free"
    cat "$BATS_TEST_TMPDIR/err"
    grep -q 'has no "rank 1" after 2 s' "$BATS_TEST_TMPDIR/err"

    # A stranger speaks first; the ranks meet all the same.
    free=$(port)
    perl -MIO::Socket::INET -e 'for (1 .. 100) {
        my $s = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or select(undef, undef, undef, 0.05), next;
        print $s "GET / HTTP/1.1\r\n" x 100; sleep 1; exit }' "$free" 3>&- &
    shell 2 MASTER_PORT="$free"
    expect 0 "OK: 2 ranks, all 8 elements as expected"
}

@test "18: every kind of memory gives the same sums; double buffering is not slower by the model" {
    for n in $(few_counts); do
        all_right "$n" $((6 * 1000 * n)) elements 18-memory/memory_kinds -n 1000
    done
    [ "$(grep -cE '^(cuda|nccl)[A-Za-z, ]+ +[0-9.]+ +[0-9.]+$' <<<"$out")" -eq 6 ]
    on_gpus && return
    all_right 2 14000 elements 18-memory/memory_kinds -n 1000 --managed
    modelled 2 18-memory/memory_kinds -n 250000
    awk '/^copy, then sum/ { exit !($12 < 0.95 * $4) }' <<<"$out"
}

@test "19: the sums of every way, and the staircase of the modelled machine" {
    for n in $(few_counts); do
        all_right "$n" $((6 * 3 * 7 * n)) elements 19-small-messages/small_messages -n 7 --values 3
    done
    on_gpus && return
    modelled 2 19-small-messages/small_messages
    awk '$NF ~ /^[0-9.]+$/ && NF > 3 { t[++n] = $(NF - 1) }
        END { exit !(n == 7 && t[2] > 5 * t[3] && t[3] > t[4] && t[4] >= t[5] && t[5] >= t[7] && t[7] > t[1]) }' <<<"$out"
}

@test "20: put and signal bring what send and receive bring; the queue loses nothing" {
    skip_unless_nccl 2.29
    for n in $(few_counts); do
        queue=0
        [ "$n" -eq 1 ] || queue=$((10 * 50))
        all_right "$n" $((8 * 50 * n + queue)) elements 20-one-sided/one_sided -n 50
    done
    [ "$n" -eq 1 ] || all_right 2 $((8 * 2 + 0)) elements 20-one-sided/one_sided -n 1 --items 0
    [ "$n" -eq 1 ] || all_right 2 $((8 * 2 + 3)) elements 20-one-sided/one_sided -n 1 --items 3
}

# skip_unless_nccl VERSION: on GPUs, where the NCCL of the build may be older.
skip_unless_nccl() {
    on_gpus || return 0
    ranks 1 20-one-sided/one_sided
    ! grep -q '^one_sided needs NCCL' <<<"$err" || skip "NCCL is older than $1"
}

@test "21: every size in every way; ring and tree by the law" {
    for n in $(few_counts); do
        all_right "$n" $((7 * (2 + 32) * n)) elements 21-paths/paths -n 32
    done
    ranks 1 21-paths/paths -n 2 --model
    awk '$1 ~ /^(8|16|32|64|128|256|512|1024)$/ && NF == 11 { n++; ring[n] = $2; tree[n] = $4 }
        END { exit !(n == 8 && ring[8] > 30 * tree[8] && ring[1] == tree[1]) }' <<<"$out"
    grep -q '^by the figures of an H200 (latency of LL, bandwidth of Simple):$' <<<"$out" # whichever machine is modelled
}

@test "22: without a fault, and with a rank that is only slow, it ends well; a fault that nobody has is refused" {
    for n in $(few_counts); do
        local fault=()
        on_gpus || [ "$n" -ne 3 ] || fault=(--fault slow)
        all_right "$n" $((5 * n)) values 22-hangs/hangs "${fault[@]}"
    done
    # A fault that no rank would have, in one process: rank 1 of one, a step after the last, a branch after it.
    for fault in '--fault skip' '--fault slow --rank 0 --step 5' '--fault branch --rank 0 --step 4'; do
        code=0
        # shellcheck disable=SC2086 # several words
        err=$("$top/22-hangs/hangs" $fault 2>&1) || code=$?
        echo "$fault: exit code $code: $err"
        [ "$code" -eq 1 ]
        more=
        [[ $fault != *branch* ]] || more=', and after the last all leave the loop'
        grep -qxF "hangs: nobody would have the fault: the ranks are 0 to 0, the steps 0 to 4$more" <<<"$err"
    done
}

# fault NAME: lesson 22 with this fault, on 3 ranks, is named as 22-hangs/tools.md shows.
fault() {
    ranks 3 22-hangs/hangs --fault "$1"
    show
    [ "$code" -eq 1 ]
    sed -E 's/ on [^ :]+:/ on vm:/; s/(lesson\.h:)[0-9]+/\1…/; /^  Hint/,$d' <<<"$err" |
        diff - <(awk -v fault="$1" '/^## / { here = $2 == fault } here && /^```/ { inside = !inside; next } here && inside' \
            "$top/22-hangs/tools.md")
}

@test "22: the faults that are a wrong program are named, with both lines" {
    on_gpus && skip "of the CPU build"
    fault skip
    fault branch
    fault order
    fault count
}

@test "22: on GPUs, the timeline of a report has the parts of both ranks" {
    on_gpus || skip "of GPUs; tests/check/timeline.t sees the CPU build's"
    skip_unless_ranks 2
    make -s -C "$top" check-library
    NCCL_TIMELINE=$BATS_TEST_TMPDIR/run.json ranks 2 check/nccl-check "$top/22-hangs/hangs" --fault branch
    show
    grep -q '^NCCL CHECK: deadlock' <<<"$err"
    grep -q '"ranks":2,' "$BATS_TEST_TMPDIR/run.json"
}

@test "22: a rank that is stopped is not accused, and all go on when it wakes; one that is dead ends the job" {
    on_gpus && skip "of the CPU build"
    NCCL_CHECK_TIMEOUT=0.5 ranks 2 22-hangs/hangs --fault stopped 3>&- &
    for _ in {1..100}; do
        stopped=$(pgrep -f "^$top/22-hangs/hangs --fault stopped" --runstates T) && break
        sleep 0.1
    done
    sleep 1.5 # longer than the checks wait for a rank that could go on
    kill -CONT "$stopped"
    wait
    show
    echo "stopped: $stopped"
    out=$(grep -v '^CPU build: ' "$BATS_TEST_TMPDIR/out") err=$(without_mpirun <"$BATS_TEST_TMPDIR/err") code=0
    expect 0 "OK: 2 ranks, all 10 values as expected"
    [ -z "$err" ]

    ranks 2 22-hangs/hangs --fault dead
    [ "$code" -ne 0 ]
    [ "$(tail -n 1 <<<"$out")" = "step 2: loss 0.3750" ]
    grep -q 'rank 1 .*exited on signal 9 (Killed)' "$BATS_TEST_TMPDIR/err"
    [[ $err != *'NCCL CHECK'* ]]
}

# failures N ARGUMENT…: lesson 23 with a deadline; on GPUs a first collective takes longer, while other tests start.
failures() {
    local deadline=500
    ! on_gpus || deadline=4000
    ranks "$1" 23-failures/failures --deadline "$deadline" "${@:2}"
}

# survives N ARGUMENT…: it goes on without the last rank.
survives() {
    failures "$@"
    show
    [ "$code" -eq 0 ]
    [[ $(tail -n 1 <<<"$out") == "OK: $(plural "$1"), all "*" weights as expected" ]]
    grep -qE "^step +3: not done after" <<<"$out"
    grep -qE "^step +3: loss [0-9.]+, $(plural $(($1 - 1)))," <<<"$out"
}

@test "23: without a fault: every number of ranks, the weights of the mean" {
    for n in $(few_counts); do
        all_right "$n" $((12 * 1024 * n)) weights 23-failures/failures
    done
    misuse 23-failures/failures '--join needs --fault leave' --join
    misuse 23-failures/failures 'only one --fault at a time' --fault leave --fault stop
    misuse 23-failures/failures '--fault needs two ranks: one has to go on' --fault exit
}

@test "23: a deadline that is much too short: whoever is late learns that it is out" {
    on_gpus && skip "there even the first step takes longer than many such deadlines"
    for ms in 1 2; do
        failures 3 --deadline "$ms"
        show
        [ "$code" -eq 0 ]
        [[ $(tail -n 1 <<<"$out") == "OK: 3 ranks, all "*" weights as expected" ]]
    done
}

@test "23: a rank leaves: the others shrink, or begin anew" {
    skip_unless_ranks 3
    survives 3 --fault leave --how shrink
    survives 2 --fault leave --how anew
}

@test "23: the last rank is stopped, on a machine of its own, and rank 1; they learn that rank 0 has gone on" {
    skip_unless_ranks 3
    # Long enough for the signal to come before they have agreed, on a busy machine, too.
    CPU_HOSTS=2 ranks 3 23-failures/failures --deadline "$(on_gpus && echo 4000 || echo 1500)" --fault stop 3>&- &
    for _ in {1..600}; do
        ! grep -q '^step  2: ' "$BATS_TEST_TMPDIR/out" 2>/dev/null || break
        sleep 0.1
    done
    for process in $(pgrep -f "^$top/23-failures/failures .*--fault stop"); do
        ! tr '\0' '\n' <"/proc/$process/environ" | grep -qx 'OMPI_COMM_WORLD_RANK=1' || stopped=$process
    done
    kill -STOP "$stopped"
    for _ in {1..600}; do # until rank 0 has gone on alone, after three deadlines
        ! grep -qE '^step +3: loss [0-9.]+, 1 rank,' "$BATS_TEST_TMPDIR/out" || break
        sleep 0.1
    done
    kill -CONT "$stopped"
    wait
    show
    grep -qE '^step +3: loss [0-9.]+, 1 rank,' "$BATS_TEST_TMPDIR/out"
    grep -qxE 'OK: 3 ranks, all [0-9]+ weights as expected' "$BATS_TEST_TMPDIR/out"
}

@test "23: a rank dies, and the launcher lets the others live: they go on" {
    skip_unless_ranks 3
    mpirun --version | grep -q 'Open MPI) 4' || skip "the setting is of Open MPI 4"
    export OMPI_MCA_orte_enable_recovery=1
    failures 3 --fault exit
    show
    [ "$(tail -n 1 <<<"$out")" = "OK: 2 ranks left, $((2 * 1024 * 12)) weights checked, 0 wrong" ]
    grep -qE "^step +3: loss [0-9.]+, 2 ranks," <<<"$out"
    on_gpus && return
    # One that is killed after its last step: the other waits in the verdict, for a minute, here for a second.
    breaks 2 23-failures/failures 's/^#include "faults.h"/#include <unistd.h>\n#define alarm(s) (alarm)((s) \/ 60)\n&/
        s/const int exit_code = model_verdict/if (t.rank == 1)\nraise(SIGKILL);\n&/'
    [[ $err == 'A rank was lost after its last step: given up after 60 s.' && $out != *OK:* ]]
}

@test "23: a rank leaves, the others shrink; it joins again, with their weights" {
    skip_unless_ranks 3
    survives 3 --fault leave --join
    grep -qE '^step +8: loss [0-9.]+, 3 ranks,' <<<"$out"
}

@test "24: the sum in three steps, on any number of ranks and nodes; what leaves a node is counted" {
    for n in $(few_counts); do
        all_right "$n" $((2 * 840 * n)) elements 24-network/nodes -n 840
    done
    on_gpus && return
    # Two nodes: 2 and 2, also when they are dealt out in turn; 4 and 3, which share nothing; three of one.
    while read -r n hosts team one three; do
        CPU_HOSTS=$hosts NCCL_CPU_CLOCK=leonardo ranks "$n" 24-network/nodes -n 840 --no-p2p
        show
        [ "$code" -eq 0 ]
        grep -qx "${hosts%%:*} nodes, teams of $team, a buffer of 3360 B; bytes as rings would send them" <<<"$out"
        [ "$(awk '/^(one all|in three|  [a-z])/ { print $(NF - 1) }' <<<"$out" | xargs)" = "$one $three 0 $three 0" ]
        grep -qx "OK: $n ranks, all $((2 * 840 * n)) elements as expected" <<<"$out"
        grep -qx 'CPU build: --no-p2p and --no-shm change nothing here.' "$BATS_TEST_TMPDIR/out"
    done <<<'4 2 2 5040 3360
4 2:cyclic 2 5040 3360
7 2 1 5760 5760
3 3 1 4480 4480'
}
