#!/usr/bin/env bats
# make measure and tests/check as a suite, rehearsed without GPUs; and the size of results/.
# shellcheck disable=SC2016 # Markdown's, and scripts' that are written here

load ../lib

setup_file() {
    build_lessons
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    # A machine without GPUs, whatever this one has.
    mkdir bin
    printf '#!/bin/sh\nexit 9\n' >bin/nvidia-smi
    chmod +x bin/nvidia-smi
    PATH=$PWD/bin:$PATH
    export BACKEND=cpu CPU_DEVICES=2
    unset CUDA_VISIBLE_DEVICES NCCL_TESTS_HOME PARTS RUNS LESSONS RANKS
}

@test "without a GPU there is nothing to measure; a part that there is not" {
    # shellcheck disable=SC2154 # set in lib.bash
    run timeout 300 env -u BACKEND "$top/results/measure/measure.sh"
    [ "$status" -eq 1 ]
    [[ $output == *"no GPU here, so there is nothing to measure" ]]
    PARTS='links everything' run timeout 300 "$top/results/measure/measure.sh" elsewhere
    [ "$status" -eq 2 ]
    [[ $output == *"everything is none of lessons bandwidth nccl-tests links peer three ring "* ]]
    run timeout 300 "$top/results/measure/check.sh" elsewhere with everything
    [ "$status" -eq 2 ]
    [[ $output == *"everything is none of with without own "* ]]
    [ ! -e elsewhere ]
}

@test "results/ has at most 20 files, and 3,500 lines without plots and machine files, its overview 2,500 words" {
    cd "$top/results"
    [ "$(git ls-files . ':!measure' | wc -l)" -le 20 ]
    [ "$(git ls-files -z . ':!measure' ':!*.svg' ':!*.conf' | xargs -0 cat | wc -l)" -le 3500 ]
    [ "$(wc -w <README.md)" -le 2500 ]
}

# The course as it is built, to change something in it.
copy() {
    mkdir build
    cp -a "$top"/{Makefile,common,cpu,check,kernels,exercises,book,[0-9][0-9]-*} .
    mkdir results && cp -a "$top"/results/measure results
    cp -a "$top"/build/{config,cpu,made,lessons} build
}

# A stand-in for nccl-tests, one that answers and one that fails.
nccl_tests() {
    mkdir -p nccl-tests/build
    cat >nccl-tests/build/all_reduce_perf <<'END'
#!/bin/sh
echo '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong'
echo '           8             2     float     sum      -     5.00    0.00    0.00      0     5.00    0.00    0.00      0'
END
    printf '#!/bin/sh\necho no GPU here\nexit 3\n' >nccl-tests/build/broadcast_perf
    chmod +x nccl-tests/build/*
}

@test "what is measured runs without the modelled clock" {
    printf '#!/bin/sh\necho "${NCCL_CPU_CLOCK-unset} $*" >>"%s/ran"\nexit 1\n' "$PWD" >mpirun
    chmod +x mpirun
    NCCL_CPU_CLOCK=h200 BACKEND=cpu PATH=$PWD:$PATH run "$top/results/measure/compositions.pl" --measure --only 20 2
    [ "$status" -ne 0 ]
    grep -qE '^unset .*one_sided' ran
}

@test "a rehearsal of what is measured: command lines and tables; what fails is named, the rest goes on" {
    long
    nccl_tests
    export NCCL_TESTS_HOME=$PWD/nccl-tests
    RANKS=2 LESSONS='0[0-4]-* 16-*' PARTS='lessons bandwidth nccl-tests links production write' \
        run timeout 300 "$top/results/measure/measure.sh" out
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"these failed:"*"nccl-tests/build/broadcast_perf -g 2 -f 2 -a 3 -b 16K -e 64K"* ]]
    [[ $output == *"ring took "*" s"* ]]
    cd out
    for file in machine-2 lessons ring bandwidth-1 bandwidth-2 bandwidth-small nccl-tests production-2; do
        [ -s $file.txt ]
    done
    [ "$(grep -c '^\$ mpirun .* -np 2 [0-9][0-9]-' lessons.txt)" -eq 5 ]
    grep -qxF '$ env CUDA_VISIBLE_DEVICES=0,1 16-one-process/one_process' lessons.txt
    [ "$(grep -c '^OK: 2 ranks' lessons.txt)" -eq 6 ]
    [ "$(grep -c '^\[[0-9.]* s\]$' lessons.txt)" -eq 6 ]
    grep -A 2 'broadcast_perf' nccl-tests.txt | grep -qx '\[exit code 3\]'
    [ "$(grep -c ' 19-small-messages/small_messages$' nccl-tests.txt)" -eq 3 ]
    grep -qE '^\$ env NCCL_ALGO=Tree NCCL_PROTO=LL .*all_reduce_perf .* -b 8 -e 128M -f 16$' production-2.txt
    [ "$(grep -cE '^\$ .*all_reduce_perf .* -b 64M -e 64M -R [012]$' production-2.txt)" -eq 3 ]
    for name in bandwidth-1 bandwidth-2 bandwidth-small; do
        grep -q '^<svg' $name.svg
    done

    grep -qxF "| 16-one-process | OK |" README.md
    grep -qE '^\| 1 MiB \| in 4 pieces \| [0-9.]+ ms \| [0-9.]+ ms, .* busbw \| [0-9.]+ \|$' README.md
    # On a busy machine 64 KiB may cost no more than 8 B did, and the law says so.
    grep -qE '^\| all_to_all \| 8 B: [0-9.]+ µs \| 64 KiB: [0-9.]+ GB/s busbw \| [0-9.]+ µs( \+ n|: these sizes show no)' README.md
    grep -qE '^\| all_reduce \| 64 KiB \|( [0-9.]+ \|){4}$' README.md
    # Of all runs, the least of ours, beside theirs.
    ours=$({ grep '^all_reduce,plain,2,8,' bandwidth-2.csv | cut -d, -f5
        awk '$1 == "all_reduce" && $2 == 8 { print $3 }' nccl-tests.txt; } | sort -n | head -n 1)
    row=$(grep -E '^\| all_reduce \| 8 B \| [0-9.]+ µs \(to' README.md)
    [[ $row == *" | 5.0 µs (to 5.0) | $(awk "BEGIN { printf \"%.2f\", $ours / 5 }") |" ]]
    grep -qE '^one thread per GPU +[0-9.]+ us an all-reduce$' README.md
    grep -qE '^\| 3 ranks, `--deadline 1000 --fault leave --how anew` \| 1 of 1 \| [0-9.]+ to [0-9.]+ \|$' README.md
}

@test "tests/check as a suite: what a tool says, with line, class and rank; who is accused; the tables" {
    copy
    mkdir -p tests/check/right tests/check/wrong
    cp "$top"/tests/check/{run,check.h} tests/check
    cp "$top"/tests/check/right/in-place.c tests/check/right
    cp "$top"/tests/check/wrong/{mismatch-type,mismatch-count,setup-nranks-of-all}.c tests/check/wrong
    sed -i 's|^// rank: 1$|// rank: 7|' tests/check/wrong/mismatch-count.c # which no tool names
    main() { # FILE STATEMENT
        printf '#include "../check.h"\nint main(void) {\n    start();\n%s\n    finish();\n    return 0;\n}\n' \
            "$2" >"tests/check/$1.c"
    }
    main right/accused 'fprintf(stderr, "NCCL CHECK: race\n");'
    main wrong/memory-crashes 'if (!getenv("NCCL_SHM_DISABLE")) raise(SIGSEGV);'
    sed -i '1i #include <signal.h>' tests/check/wrong/memory-crashes.c
    main wrong/missing-hangs '
#ifndef FIXED
    sleep(30);
#endif'
    main wrong/setup-error 'if (rank == 0) MUST(cudaSetDevice(99)); // @set'
    tables() { # STAGE…: what check.sh then writes
        JOBS=2 LIMIT=4 run timeout 300 results/measure/check.sh out "$@" write
        echo "$output"
        [ "$status" -eq 0 ]
        cat out/nccl-check.md
    }
    row() { grep -qE "^\| $1 \|\$" out/nccl-check.md; }
    tables with without
    [[ $output == *"left out, since they need more than 2 ranks: 1"* ]]
    [ "$(grep -cF '| mismatch | 2 | 2 | 2 | 1 | 2 | 0 | 0 | 0 | 0 | 0 | 2 |' <<<"$output")" -eq 1 ]
    [[ $output == *"right: 2 programs; accused: accused"* ]]
    [[ $output == *"did not end well: repaired-memory-crashes repaired-setup-error"* ]]
    [[ $output == *"repaired-memory-crashes said:"*"    "* ]]
    grep -qxF '| missing | 1 | 1 |  |  |  |  |  |' out/nccl-check.md
    grep -qxF '| memory | 1 |  |  |  |  | 1 |  |' out/nccl-check.md
    grep -qxF '| setup | 1 |  |  |  | 1 |  |  |' out/nccl-check.md
    row 'nccl-check \| 5 \| 3 \| 3 \| 1 \| 2 \| [0-9.]+ s \| 7 \| 2' # of calls that fail, too
    row '`setup-error` \| error: returned 101 .* \| – \| `L` note: rank 0: cudaSetDevice .* s'
    row '`mismatch-count` \| .* \| `LC` mismatch: .* s'
    row '`mismatch-type` \| .* \| `LRC` mismatch: .* s'
    ONLY='setup-nranks-*' RANKS=4 tables with
    row '`setup-nranks-of-all` \|  \| .* \| `LRC` setup: .* s'

    # What RAS would say: its last words, and since when. And what lessons take with nccl-check and without.
    printf '%s\n' '=== plain: wrong missing-hangs (exit code 124)' '   4.01  RAS  asked' '   5.02  RAS  asked' \
        '   5.03  RAS    #0-0 (1) MISMATCH' '   6.04  RAS  asked' '   6.05  RAS    #0-0 (1) MISMATCH' \
        '   6.05  RAS    Rank 1 has status FINALIZE' '=== plain: right in-place (exit code 0)' '   4.01  RAS  asked' \
        '=== plain: right accused (exit code 0)' '   4.01  RAS  asked' '   4.01  RAS    #0-0 (1) INCOMPLETE' >>out/said.txt
    sed -i '1i // rank: 1' tests/check/wrong/missing-hangs.c
    rm -r 0[02-8]-* [12]?-*
    ROUNDS=1 tables own lessons cost times
    row '`WARN`, `CHECK_POINTERS` and `CHECK_MODE` at the same time \|  \|  \| .* \| 7 \| 0'
    row '`NCCL_CHECK_MODE=DEBUG_GLOBAL` \| 5 \| 0 \| .* \|  \| '
    row '`missing-hangs` \| hangs \| – \| MISMATCH, 5\.02 s \| – \| –'
    row 'RAS, of those that hang, and of right ones that run for 4 s \| 3 \| 1 \| 0 \| 1 \| 0 \| 5\.0 s \| 2 \| 1'
    grep -qxF '| broadcast | exit code 0 | nothing |' out/nccl-check.md
    row '8 \| call and wait \| [0-9.]+ \| [0-9.]+ \| -?[0-9.]+ µs, -?[0-9.]+ % \| [0-9.]+ \| -?[0-9.]+ µs'
    row '01-nccl-broadcast \| [0-9.]+ \| [0-9.]+ \| [+-][0-9.]+ % \|  \|  \|  \|  \| '
    row '09-pipelined-ring \| .* \|  \|  \| 2 \| [+-][0-9.]+ % \| 0\.0 %'

    # One program by NCCL's other ways, and under something that speaks as compute-sanitizer does.
    printf '%s\n' '#!/bin/bash' 'echo "========= Error: No attachable process found."' \
        'echo "========= Invalid read, says $2"' 'exec "${@:5}"' >bin/compute-sanitizer
    chmod +x bin/compute-sanitizer
    # What was cut off without a word counts only if it had time to begin, and not what can't run under a tool.
    printf '%s\twrong\tmissing-hangs\thangs\t%s\t\t\n' memcheck 4.00 initcheck 75.10 >>out/runs.tsv
    printf "initcheck\twrong\tsetup-error\terror: returned 1 (Cuda failure 'unspecified launch failure')\t9.00\t\t\n" >>out/runs.tsv
    ONLY='memory-*' tables transports sanitizer
    grep -qxF '| `memory-crashes` | crash | crash | exit code 0 |' out/nccl-check.md
    row 'memcheck \| 1 \| 1 \| 0 \| 0 \| 0 \| [0-9.]+ s \|  \| '
    row 'initcheck \| 2 \| 1 \| 0 \| 0 \| 0 \| [0-9.]+ s \|  \| '
    grep -qE '^\| `memory-crashes` \| crash \| – \| .* \| Invalid read, says memcheck, [0-9.]+ s \| Invalid read, says initcheck, ' out/nccl-check.md
}

@test "tests/check as a suite: whether a tool names the rank of the mistake, each of several, and the class" {
    copy
    mkdir -p tests/check/wrong
    cp "$top"/tests/check/{run,check.h} tests/check
    says() { # NAME RANKS LINE…: a program, and what a tool says of it
        echo "// rank: $2" >"tests/check/wrong/race-$1.c"
        printf '%s\n' 'TOOL' "${@:3}" >"$1.said"
    }
    says one 1 'rank 1: at one.c:7'
    says other 1 'rank 0 on host' 'ranks 0 and 11' 'process 1' 'one.c:7: rank 1: got 2' \
        'MPI_ABORT was invoked on rank 1 in communicator' 'mpirun noticed that process rank 1 with PID 7'
    says several '0 2' 'as do ranks 0, 1 and 2'
    says apart '0 2' 'rank 2' 'Rank 0'
    says half '0 2' 'rank 0' 'TOOL: a race'
    says any all '[rank 3]' 'TOOL: a trace'
    says none all 'each rank'
    says broken all 'rank 0'
    cat >bin/compiles <<'END'
#!/bin/bash
[[ $* != *broken* && $* != *compiles* ]] && touch "${@: -1}" && chmod +x "${@: -1}"
END
    chmod +x bin/compiles
    run tests/check/run
    [ "$status" -eq 2 ]
    [[ $output == *"--keep FOLDER --as NAME "* ]]
    echo '// ranks: 3 4' >>tests/check/wrong/race-any.c
    echo '// ranks: 4' >tests/check/wrong/race-of-four.c
    run tests/check/run --compile compiles --kinds wrong --ranks 3 --says '^TOOL' --keep kept -- \
        bash -c 'program={}; cat "${program##*race-}.said"; echo "on {n}"; [[ $program != *-any ]] || exit 3'
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(awk -F '\t' '$10 == "rank" { print $3 }' kept/runs.tsv | sort | xargs)" = 'race-any race-apart race-one race-several' ]
    [ "$(awk -F '\t' '$9 == "class" { print $3 }' kept/runs.tsv)" = race-half ]
    [ "$(awk -F '\t' '$3 == "race-any" { print $4 }' kept/runs.tsv)" = 'exit code 3' ] # and not: a call returned an error
    [[ $output == *"does not compile: "*"/race-broken.c (wrong)"* ]]
    [[ $output == *"left out, since they need more than 3 ranks: 1"* ]]
    [ "$(grep -c 'on 2$' kept/said.txt)-$(grep -c 'on 3$' kept/said.txt)" = 6-1 ]
    grep -qxF '| race | 7 | 7 | 0 | 4 | 0 | 0 | 6 | 0 | 0 | 0 | 1 |' <<<"$output"
}

@test "ask-ras: the last answer as it is, of those before only what is wrong; it ends with the program" {
    cat >program <<'END'
use IO::Socket::INET;
my $ras = IO::Socket::INET->new(LocalAddr => $ENV{NCCL_RAS_ADDR}, Listen => 1, Timeout => 20) or die "no port\n";
while (my $asks = $ras->accept) {
    print scalar <$asks>;
    print $asks "all is well\nMISMATCH\n";
    $ras->timeout(4);
}
exit 7;
END
    run timeout 60 "$top/results/measure/ask-ras" 7 perl program
    echo "$output"
    [ "$status" -eq 7 ]
    [ "$(grep '^RAS' <<<"$output" | head -n 2)" = $'RAS  asked\nRAS  MISMATCH' ]
    [ "$(grep '^RAS' <<<"$output" | tail -n 3)" = $'RAS  asked\nRAS  all is well\nRAS  MISMATCH' ]
    [ "$(grep -c 'all is well' <<<"$output")" -eq 1 ]
    [[ $output == *"verbose status"* ]]

    SECONDS=0
    run timeout 60 "$top/results/measure/ask-ras" 30 echo at once
    [ "$status-$output" = '0-at once' ]
    [ "$SECONDS" -lt 4 ]
}

@test "each wrong program says how it ends alone, as the tables in results/ do" {
    "$top/tests/check/headers" --check
    mkdir -p results tests
    cp "$top/results/wrong-programs.md" results
    cp -r "$top/tests/check" tests
    sed -i '/^\/\/ alone: /d' tests/check/wrong/mismatch-*.c
    run tests/check/headers --check
    [ "$status" -eq 1 ]
    [[ $output == *"mismatch-count: alone: "* ]]
    tests/check/headers
    diff -r tests/check/wrong "$top/tests/check/wrong"
}

@test "a run that fails: counted, shown, exit code 1" {
    copy
    sed -i 's/lesson_verdict("element")/1/' 01-nccl-broadcast/broadcast.c
    # What calls itself compute-sanitizer finds something in lesson 01; and make test passes.
    printf '%s\n' '#!/bin/bash' '[[ $* != *broadcast* ]]' >bin/compute-sanitizer
    printf '%s\n' '#!/bin/bash' '[ "$1" != test ] || { echo "Files=1, Tests=7"; exit 0; }' 'PATH=${PATH#*:} exec make "$@"' >bin/make
    chmod +x bin/compute-sanitizer bin/make
    RUNS=2 LESSONS='0[01]-*' PARTS='repeat memcheck tests write' run timeout 300 results/measure/measure.sh out
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"2 of 2 runs of 01-nccl-broadcast/broadcast"* ]]
    [[ $output == *"run 1 of 01-nccl-broadcast/broadcast, 2 ranks:"* ]]
    grep -qE '^\| `01-nccl-broadcast/broadcast`, 2 runs in a row, .* \| 2 failed or hung, ' out/README.md
    grep -qE '^\| `00-nccl-hello-world/hello`, 2 runs .* \| 0 failed or hung, ' out/README.md
    grep -qE '^\| `compute-sanitizer .*`, 2 command lines on 2 GPUs .* \| \*\*errors:\*\* `mpirun [^`]* 01-nccl-broadcast/broadcast` \|$' out/README.md
    grep -qE '^\| `make test BACKEND=cpu`, 2 GPUs .* \| 7 tests, all pass, [0-9.]+ s \|$' out/README.md
}

@test "training: lessons 11 to 15, PyTorch after each; a row for each" {
    long
    cat >bin/torchrun <<'END'
#!/bin/bash
figures() {
    echo 'PyTorch 9.9.9, NCCL (2, 28, 3), 2 ranks'
    case $* in
    *experts.py*)
        echo 'counts first     0.125 ms a layer, there and back; all ranks send 4096 bytes'
        echo 'padded           0.100 ms, 0.800 of that; capacity 3, so 6144 bytes'
        return
        ;;
    *fsdp.py*) echo 'this is stage 3:          1234567 bytes measured' ;;
    esac
    echo 'computing only      10.000 ms a step'
    echo 'all-reduce only      2.000 ms'
    echo 'both                11.500 ms, 1.150 of computing only'
    echo 'hidden                0.25 of the shorter of the two'
    echo 'a step 20.000 ms, computing 10.000 ms: 0.50 of a step is idle, measured'
    echo 'with the rows        12.000 ms'
    echo 'with the columns     13.000 ms'
}
# As ddp.py has it: several models in one start.
words=$*
before=${words%%.py *}.py rest=${words#*.py }
while [[ $rest == *' then '* ]]; do
    echo "$ torchrun $before ${rest%% then *}"
    figures "$before"
    rest=${rest#* then }
done
[[ $words != *' then '* ]] || echo "$ torchrun $before $rest"
figures "$before"
END
    printf '#!/bin/sh\nexit 0\n' >bin/python3
    chmod +x bin/torchrun bin/python3
    PARTS='training model write' run timeout 300 "$top/results/measure/measure.sh" out
    echo "$output"
    [ "$status" -eq 0 ]
    grep -qE '^time all_reduce +2 +[0-9]+ +[0-9.]+$' out/machine.conf
    grep -qE '^09,2,4096 4,[0-9.]+,$' out/compositions.csv
    # These may have run on another machine than the rest, and each at another time.
    for file in training sharded experts pipeline grid; do
        line=$(sed -nE '1s/^taken: (20[0-9: -]+ UTC), course at (.+)/Taken \1, course at `\2`, on 2 GPUs./p' out/$file-2.txt)
        [ "$(sed -n "/\[2 GPUs\]($file-2.txt)/,/^Taken/p" out/README.md | tail -n 1)" = "${line:?}" ]
    done
    grep -qx 'gpus: 2' out/machine-2.txt
    grep -qxF '## The machine, 2 GPUs' out/README.md
    grep -qF 'float32 without TF32 ([2 GPUs](training-2.txt))' out/README.md
    cat out/training-2.txt
    [ "$(grep -c '^\$ mpirun .* -np 2 11-overlap/overlap --layers 4 --width 32 --batch 16 ' out/training-2.txt)" -eq 5 ]
    [ "$(grep -c '^OK: 2 ranks' out/training-2.txt)" -eq 10 ]
    grep -qx '\$ torchrun .* --layers 2 --width 48 --batch 16' out/training-2.txt
    figures='[0-9.]+ ms \| [0-9.]+ ms \| [0-9.]+ ms \| [0-9.]+ \| -?[0-9.]+'
    for row in 'one layer \| NCCL decides' 'one layer \| 2' '4 layers \| 4' 'all layers \| 4'; do
        [ "$(grep -cE "^\| [42] × [34][28] \| 8 \| lesson 11 \| $row \| $figures \|$" out/README.md)" -eq 2 ]
    done
    row='10.000 ms | 2.000 ms | 11.500 ms | 1.150 | 0.25 |'
    grep -qxF "| 4 × 32 | 8 | PyTorch DDP | 25 MiB | NCCL decides | $row" out/README.md
    grep -qxF "| 2 × 48 | 8 | PyTorch DDP | 25 MiB | NCCL decides | $row" out/README.md
    [ "$(grep -c '^OK: 2 ranks' out/sharded-2.txt)" -eq 6 ]
    [ "$(grep -c '^OK: 2 ranks' out/experts-2.txt)" -eq 6 ]
    for row in '4 × 32 \| 8 \| lesson 12 \| 3' '4 × 32 \| 8 \| lesson 12 \| 1' '2 × 48 \| 8 \| PyTorch FSDP \| 3'; do
        [ "$(grep -cE "^\| $row \| [0-9.]+ MB \| [0-9.]+ ms \| [0-9.]+ ms \| [0-9.]+ \|$" out/README.md)" -eq 1 ]
    done
    for row in '16 \| 8 \| even \| lesson 13' '48 \| 40 \| one \| lesson 13' '48 \| 40 \| uneven \| PyTorch'; do
        [ "$(grep -cE "^\| $row \| [0-9.]+ ms, [0-9.]+ kB \| [0-9.]+ ms, [0-9.]+ kB \| [0-9.]+ \|$" out/README.md)" -eq 1 ]
    done

    [ "$(grep -c '^\$ mpirun .* -np 2 14-pipeline/pipeline ' out/pipeline-2.txt)" -eq 5 ]
    [ "$(grep -c '^OK: 2 ranks' out/pipeline-2.txt)" -eq 5 ]
    grep -qE '^\| 4 × 32 \| 64 \| 2 \| 8 \| in turns \| lesson 14 \| [0-9.]+ ms \| [0-9.]+ ms \| [0-9.]+ \| 0.11 \|$' out/README.md
    grep -qE '^\| 4 × 32 \| 64 \| 2 \| 32 \| all forward \| lesson 14 \| .* \| 0.03 \|$' out/README.md
    grep -qxF '| 4 × 32 | 64 | 2 | 8 | in turns | PyTorch | 10.000 ms | 20.000 ms | 0.50 | 0.11 |' out/README.md
    [ "$(grep -c 'results/measure/pipeline.py' out/pipeline-2.txt)" -eq 1 ]
    # PyTorch starts once for a lesson.
    [ "$(cat out/*-2.txt | grep -c '^\$ torchrun --standalone .*\.py')" -eq 13 ]
    [ "$(cat out/*-2.txt | grep -c '^PyTorch 9')" -eq 9 ]

    [ "$(grep -c '^OK: 2 ranks' out/grid-2.txt)" -eq 2 ]
    for grid in '1 × 2' '2 × 1'; do
        grep -qE "^\| 4 × 32 \| 16 \| $grid \| a row \| lesson 15 \| [0-9.]+ ms \| [0-9.]+ ms \| [0-9.]+ ms \|$" out/README.md
        grep -qxF "| 4 × 32 | 16 | $grid | a row | PyTorch | 10.000 ms | 12.000 ms | 13.000 ms |" out/README.md
    done

    # The same on one GPU, beside it: of a lesson's ways to bring things along one is left.
    CPU_DEVICES=1 PARTS='overlap grid write' run timeout 300 "$top/results/measure/measure.sh" out
    [ "$status" -eq 0 ]
    [ "$(grep -c '^\$ mpirun .* -np 1 11-overlap/overlap ' out/training-1.txt)" -eq 2 ]
    [ "$(grep -c '^OK: 1 rank' out/training-1.txt)" -eq 2 ]
    [ "$(grep -c '^OK: 1 rank' out/grid-1.txt)" -eq 1 ]
    grep -qF 'float32 without TF32 ([1 GPU](training-1.txt), [2 GPUs](training-2.txt))' out/README.md
    grep -qE "^\| 4 × 32 \| 8 \| lesson 11 \| one layer \| NCCL decides \| $figures \|$" out/README.md
    grep -qE '^\| 4 × 32 \| 16 \| 1 × 1 \| a row \| lesson 15 \|' out/README.md
}

@test "scaling.sh: the rows of scaling.md, digit by digit" {
    long
    cd "$top"
    results/measure/scaling.sh 4 >"$BATS_TEST_TMPDIR/rows"
    [ "$(grep -cE '^\| 4 \|' "$BATS_TEST_TMPDIR/rows")" -eq 1 ]
    while read -r row; do
        grep -qxF -- "$row" results/scaling.md
    done <"$BATS_TEST_TMPDIR/rows"
}
