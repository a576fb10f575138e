#!/usr/bin/env bash
# A report names the line of Python, with the judges over MPI and over TCP; also while another
# thread keeps the interpreter busy, and for calls of a thread that is not the main one. And
# without MPI the ranks' judges find one another.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
tests=0
ok() { # NAME COMMAND…
    tests=$((tests + 1))
    if "${@:2}"; then echo "ok $tests - $1"; else
        echo "not ok $tests - $1"
        sed 's/^/# /' "$folder/out"
    fi
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

loop() { # LINK MISTAKE: leaves the output in $folder/out
    rm -f "$folder"/id "$folder"/second
    NCCL_CHECK_LINK=$1 timeout 120 mpirun --oversubscribe -np 2 -x LD_PRELOAD="$PWD/build/cpu/libnccl-check.so" \
        /usr/bin/python3 tests/pytorch/loop.py "$2" "$folder" >"$folder/out" 2>&1
}
says() { grep -q -- "$1" "$folder/out"; }
silent() { ! says 'NCCL CHECK' && [ "$(grep -c '^ended' "$folder/out")" = 2 ]; }
line_of() { grep -n -- "$1" tests/pytorch/loop.py | head -n 1 | cut -d: -f1; }
called="loop.py:$(line_of 'must(nccl.ncclAllReduce') in all_reduce()"
waits="cudaStreamSynchronize at loop.py:$(line_of '# waits') in loop()"
destroys="ncclCommDestroy at loop.py:$(line_of 'ncclCommDestroy(comm)'), after 3"

gcc -shared -fPIC tests/pytorch/watchdog.c -o "$folder/watchdog.so" -pthread
for link in '' tcp; do
    over=${link:-MPI}
    loop "$link" none
    ok "$over: a right loop is not accused" silent
    loop "$link" skip
    ok "$over: the waiting rank's two lines" says "waits in $waits for .* at $called"
    ok "$over: the other rank's line" says "$destroys"
    loop "$link" other-count
    ok "$over: calls of a thread" says "rank 1 on .*count 512.* at $called"
    loop "$link" watched-cross
    ok "$over: a deadlock beside a watchdog" says "rank 0 on .* waits in cudaDeviceSynchronize at loop.py:$(line_of '# crossed') in cross()"
    [ -z "$link" ] || continue # what follows has nothing to do with the link
    loop "$link" lines
    ok "one of two lines, known again" says "rank 1 on .*count 512.* at loop.py:$(line_of '# second') in lines()"
    loop "$link" held
    ok "a line while another thread has the lock" says "rank 1 on .*count 512.* at loop.py:$(line_of '# held') in held()"
    loop "$link" held_often
    ok "calls hardly wait for the lock" [ "$(grep -c '^soon' "$folder/out")" = 2 ]
    mkdir -p "$folder/torch"
    printf 'def call(function, arguments):\n    function(*arguments)\n' >"$folder/torch/__init__.py"
    loop "$link" places
    ok "more than a thousand lines, in a folder lib/python3" says "rank 1 on .*count 512.* at many.py:1101"
    loop "$link" package
    ok "lines of a program in a package" says "rank 1 on .*count 512.* at many.py:1101"
    rm -r "$folder/torch"
    loop "$link" backward
    ok "the main thread's line, known again" says "rank 1 on .*count 512.* at loop.py:$(line_of '# backward') in backward() (the main thread's line)"
    loop "$link" busy-skip # a line may be missing, if the interpreter's lock comes too late
    ok "$over: beside a thread that computes" says 'missing: ncclAllReduce(count 1024'
    loop "$link" watched-none
    ok "$over: a watchdog accuses nobody" silent
    loop "$link" watched-joins
    ok "$over: one rank makes a communicator, beside a watchdog" says "rank 0 on .* waits in ncclCommInitRank.* at loop.py:.* in start()"
done
echo "1..$tests"
