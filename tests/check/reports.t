#!/usr/bin/env bash
# Reports about programs that nobody wrote: random ones in which one rank makes a mistake, and
# random operations of which some race. And about two ranks on one device.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

unset CUDA_VISIBLE_DEVICES CPU_DEVICES NCCL_CPU_CHECK NCCL_CPU_TIMEOUT NCCL_CHECK NCCL_CHECK_TIMEOUT MAKEFLAGS MFLAGS MAKELEVEL

mpirun=(mpirun --oversubscribe)
source "$top/tests/lib.bash"

flags=$(make -s -C "$top" cpu-flags)
for program in random races comms one_device thread_ranks library_lock; do
    # shellcheck disable=SC2086  # several options
    "${MPICC:-mpicc}" -std=c11 -D_DEFAULT_SOURCE -O1 "$top/tests/cpu/$program.c" $flags -o "$program"
done

# One rank of a random program makes a mistake: one report, and the job ends.
mistakes=(- 'leaves a call out' 'gives another count' 'names another root' 'makes another call'
    'takes another communicator')
for mistake in 1 2 3 4 5; do
    for program in "$mistake" $((mistake + 3)); do
        np=$((2 + program % 4)) code=0
        timeout --kill-after=5 300 "${mpirun[@]}" -np "$np" ./random "$program" "$mistake" \
            >stdout 2>stderr || code=$?
        is "exit code $code, $(grep -c 'NCCL CHECK' stderr) reports" 'exit code 1, 1 reports' \
            "random program $program, $np ranks, one ${mistakes[mistake]}"
    done
done

# Which operations of random programs race: the program works it out, and the first that does is
# reported, and ends it. (After a set that comes too early it goes on.)
operations=0 races=0 wrong=()
for program in {1..40}; do
    code=0
    timeout --kill-after=5 300 ./races "$program" >stdout 2>stderr || code=$?
    expected=$(grep '^expected: ' stderr | tail -n 1)
    early=$(grep '^expected: ' stderr | head -n -1 | grep -c race || true)
    reports=$(grep -c '^NCCL CHECK' stderr || true)
    said="exit code $code, $early races before, $reports reports, \
$(grep -c '^NCCL CHECK: race' stderr || true) of a race"
    last=0
    [ "$expected" != 'expected: race' ] || last=1
    races=$((races + last))
    [ "$said" = "exit code $((early + last > 0)), $early races before, $((early + last)) reports, $((early + last)) of a race" ] ||
        wrong+=("$program: $said;")
    operations=$((operations + $(grep -c '^expected: ' stderr)))
done
is "${wrong[*]}" '' "$operations operations of 40 random programs: of $races the first race is reported"
is "$([ "$operations" -gt 600 ] && [ "$races" -gt 15 ] && [ "$races" -lt 38 ] && echo enough)" enough \
    'among these programs are many that race, and many that do not'

# A function of the C++ library touches what it must not: the line is the program's.
cat >fill.cpp <<'CPP'
#include <algorithm>
#include <cuda_runtime.h>
int main() {
    float *device;
    cudaMalloc(&device, 400);
    std::fill(device, device + 100, 1.f); // here
}
CPP
# shellcheck disable=SC2086  # several options
"${MPICXX:-mpicxx}" -O0 fill.cpp $flags -o fill
timeout --kill-after=5 300 ./fill >stdout 2>stderr || true
is "$(grep -o 'at fill.cpp:[0-9]*, byte 0 of 400' stderr)" \
    "at fill.cpp:$(grep -n '// here' fill.cpp | cut -d: -f1), byte 0 of 400" \
    'a report about std::fill names the line that calls it'

# The lessons' macros say what failed: no note says it, too, unless it is asked for. Folders and files
# may have blanks in their names.
mkdir 'a folder'
cat >'a folder/my program.c' <<'C'
#include "check.h"
int main(void) { CHECK_CUDA(cudaSetDevice(99)); }
C
# shellcheck disable=SC2086  # several options
"${MPICC:-mpicc}" -D_DEFAULT_SOURCE -I"$top/common" 'a folder/my program.c' $flags -o 'a folder/mine'
for notes in '' on; do
    code=0
    env ${notes:+NCCL_CHECK_NOTES=$notes} timeout --kill-after=5 300 'a folder/mine' >stdout 2>stderr || code=$?
    is "$code, $(grep -cF 'failed at my program.c:2' stderr) by the macro, \
$(grep -cF 'note: rank 0: cudaSetDevice at my program.c:2 returned cudaErrorInvalidDevice' stderr) by a note" \
        "1, 1 by the macro, $([ -z "$notes" ] && echo 0 || echo 1) by a note" "NCCL_CHECK_NOTES=$notes: who says what failed"
done

# What a rank sends to itself, in another count than it receives: NCCL does not refuse it.
cat >to_itself.c <<'C'
#include "check.h"
int main(void) {
    start();
    int *buf = device_ints(8, rank);
    MUST(ncclGroupStart());
    MUST(ncclSend(buf, 4, ncclInt32, rank, comm, stream));
    MUST(ncclRecv(buf + 4, 3, ncclInt32, rank, comm, stream));
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
C
# shellcheck disable=SC2086  # several options
"${MPICC:-mpicc}" -I"$top/tests/check" to_itself.c $flags -o to_itself
for np in 1 2 3; do
    code=0
    timeout --kill-after=5 300 "${mpirun[@]}" -np $np ./to_itself >stdout 2>stderr || code=$?
    is "$code: $(grep '^NCCL CHECK' stderr)" \
        '1: NCCL CHECK: mismatch: a send and its receive give different counts on communicator 1' \
        "$np ranks: a count sent to oneself is not that which is received"
done

# A report ends the job through MPI_Abort. That waits for a thread of MPI's, which must not wait for
# the thread that reports; else the process ends by itself some seconds later, and mpirun says so.
cat >ends.c <<'C'
#include "check.h"
int main(void) {
    start();
    int *buf = NULL;
    cudaMalloc((void **)&buf, rank == 1 ? (size_t)1 << 60 : 16); // here
    ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream);
    MUST(cudaStreamSynchronize(stream));
    finish();
    return 0;
}
C
# shellcheck disable=SC2086  # several options
"${MPICC:-mpicc}" -O1 -g -I"$top/tests/check" ends.c $flags -o ends
for np in 2 3; do
    code=0
    timeout --kill-after=5 300 "${mpirun[@]}" -np $np ./ends >stdout 2>stderr || code=$?
    is "$code: $(grep -c '^NCCL CHECK: missing: ncclAllReduce' stderr), $(grep -c \
        "2 calls returned errors, the first: cudaMalloc at ends.c:$(grep -n '// here' ends.c |
            cut -d: -f1): out of memory" stderr), $(grep -c 'Primary job *terminated normally' stderr)" \
        '1: 1, 1, 0' "$np ranks: the first call that failed is named, and MPI_Abort ends the job"
done

# A count of -1 is a large one, and so is one whose bytes do not fit into 64 bits.
cat >too_many.c <<'C'
#include "check.h"
int main(int argc, char **argv) {
    start();
    int *buf = device_ints(4, rank);
    size_t count = strtoull(argv[argc - 1], NULL, 0);
    ncclAllReduce(buf, buf, count, ncclInt32, ncclSum, comm, stream);
    cudaStreamSynchronize(stream);
    finish();
    return 0;
}
C
# shellcheck disable=SC2086  # several options
"${MPICC:-mpicc}" -g -I"$top/tests/check" too_many.c $flags -o too_many
for count in 5 -1 0x4000000000000004; do
    code=0
    timeout --kill-after=5 300 "${mpirun[@]}" -np 2 ./too_many -- $count >stdout 2>stderr || code=$?
    is "$code: $(grep -c '^NCCL CHECK: memory: ncclAllReduce(.*) runs past the end of its buffer$' stderr)" \
        '1: 1' "a count of $count, of a buffer of 4"
done

# A call in a group fails: its line is told, not that of the group's end.
cat >failed_in_a_group.c <<'C'
#include "check.h"
int main(void) {
    start();
    int *buf = device_ints(8, rank);
    ncclGroupStart();
    ncclSend(buf, 4, ncclInt32, !rank, comm, stream);
    ncclRecv(buf + 4, 4, ncclInt32, rank == 0 ? 1 : -1, comm, stream); // here
    ncclGroupEnd();
    cudaStreamSynchronize(stream);
    finish();
    return 0;
}
C
# shellcheck disable=SC2086  # several options
"${MPICC:-mpicc}" -g -I"$top/tests/check" failed_in_a_group.c $flags -o failed_in_a_group
timeout --kill-after=5 300 "${mpirun[@]}" -np 2 ./failed_in_a_group >stdout 2>stderr || true
is "$(grep -o 'got an error at [^:]*:[0-9]*: ncclRecv' stderr)" \
    "got an error at failed_in_a_group.c:$(grep -n '// here' failed_in_a_group.c | cut -d: -f1): ncclRecv" \
    'a call that failed in a group is told with its own line'

# A function that computes for longer than the timeout is no reason to say anything.
cat >counts.c <<'C'
#include "check.h"
#include <time.h>
static void counts(void *unused) {
    time_t end = time(NULL) + 3;
    (void)unused;
    while (time(NULL) < end)
        for (int i = 0; i < 500000000; i++)
            ;
}
int main(void) {
    start();
    MUST(cudaLaunchHostFunc(stream, counts, NULL));
    MUST(cudaStreamSynchronize(stream));
    finish();
    return 0;
}
C
# shellcheck disable=SC2086  # several options
"${MPICC:-mpicc}" -O0 -g -I"$top/tests/check" counts.c $flags -o counts
code=0
NCCL_CHECK_TIMEOUT=1 timeout --kill-after=5 300 "${mpirun[@]}" -np 1 ./counts >stdout 2>stderr || code=$?
is "$code: $(cat stderr)" '0: ' 'a function that counts for three seconds, with a timeout of one'

# Nor is a library that sleeps in a lock of its own.
for np in 1 2; do
    code=0
    timeout --kill-after=5 300 "${mpirun[@]}" -np $np ./library_lock >stdout 2>stderr || code=$?
    is "$code: $(tail -n 1 stdout)$(grep '^NCCL CHECK' stderr)" '0: locked: 0' \
        "$np ranks: a lock inside a library is none of the program's sleep"
done

# A setting that is none.
settings() { # LINES SETTING…
    local lines=$1
    shift
    timeout --kill-after=5 300 "${mpirun[@]}" -np 2 env "$@" ./to_itself >stdout 2>stderr || true
    is "$(grep '^NCCL CHECK' stderr)" "$lines" "$*"
}
found='NCCL CHECK: mismatch: a send and its receive give different counts on communicator 1'
settings "NCCL CHECK: NCCL_CHECK=OFF is not on, warn or off: on is taken
NCCL CHECK: NCCL_CHECK_TIMEOUT=soon is not a number of seconds: 5 is taken
$found" NCCL_CHECK=OFF NCCL_CHECK_TIMEOUT=soon
settings "$found" NCCL_CHECK=on NCCL_CHECK_TIMEOUT=20
settings "$found" NCCL_CHECK= NCCL_CHECK_TIMEOUT=

# Two ranks on one device are never let through.
refused() { # TEXT COMMAND…
    local text=$1 code=0
    shift
    timeout --kill-after=5 300 "$@" >stdout 2>stderr || code=$?
    is "$([ "$code" -ne 0 ] && [ "$code" -ne 124 ] && echo ended), $(grep -c \
        'NCCL CHECK: setup: two ranks are bound to the same GPU' stderr) reports" \
        'ended, 1 reports' "$text: reported, and the job ends"
}
refused '3 ranks that take device 0' "${mpirun[@]}" -np 3 ./one_device
refused '2 programs that see the same device' "${mpirun[@]}" \
    -np 1 env CUDA_VISIBLE_DEVICES=1 ./comms : -np 1 env CUDA_VISIBLE_DEVICES=1 ./one_device
line=$(grep -n 'NCCL_IS(ncclInvalidUsage' "$top/tests/cpu/one_device.c" | cut -d: -f1)
is "$(grep -c "rank 1 .*ncclCommInitRank.* at one_device.c:$line" stderr)" 1 'and the line of the program that has it'
refused '3 ranks, 2 devices' "${mpirun[@]}" -np 3 env CPU_DEVICES=2 ./comms
is "$(grep -c 'cudaSetDevice(rank % deviceCount)' stderr)" 1 'and which device each takes'
refused '2 machines, ranks in turn' env CPU_HOSTS=2:cyclic "${mpirun[@]}" -np 4 ./comms
is "$(grep -c 'MPI_COMM_TYPE_SHARED' stderr)" 1 'and that it is the place among the ranks of a machine'

# With NCCL_COMM_ID all ids are the same.
# shellcheck disable=SC2086  # several options
"${MPICC:-mpicc}" -D_DEFAULT_SOURCE "$top/tests/check/wrong/setup-nranks-differ.c" $flags -o nranks
NCCL_COMM_ID=127.0.0.1:1 timeout --kill-after=5 300 "${mpirun[@]}" -np 2 ./nranks >stdout 2>stderr || true
is "$(grep '^NCCL CHECK' stderr)" 'NCCL CHECK: setup: the ranks do not agree on how many they are' \
    'NCCL_COMM_ID, and different nranks'

refused '3 threads without a launcher, 1 device' env CPU_DEVICES=1 ./thread_ranks
is "$(grep -c 'CPU_DEVICES=3 makes them' stderr)" 1 'and how many devices are needed'

finish
