#!/usr/bin/env bash
# The modelled clock of the CPU build (NCCL_CPU_CLOCK): the same digits on every run, its rules, its
# machines, what it predicts, and what it costs. ALL=yes (make test-long) tries more ranks and predicts more lessons.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$top/tests/clock"

unset CUDA_VISIBLE_DEVICES CPU_DEVICES MAKEFLAGS MFLAGS MAKELEVEL
for variable in "${!NCCL_@}"; do
    unset "$variable"
done
source "$top/tests/lib.bash"

ranks() { # N PROGRAM ARGUMENT…
    timeout --kill-after=5 300 mpirun --oversubscribe -np "$@"
}

read -r -a flags <<<"$(make -s -C "$top" BACKEND=cpu cpu-flags)"
for program in times rules work; do
    "${MPICC:-mpicc}" -std=gnu11 -O2 -g -Wall -Wextra "$program.c" "${flags[@]}" -lm -o "$work/$program"
done

# --- The same digits, whatever the processors do ----------------------------------------

for n in 1 3 ${ALL:+8}; do
    NCCL_CPU_CLOCK=h200 ranks "$n" "$work/times" >"$work/first" 2>"$work/err" || sed 's/^/#   /' "$work/err"
    NCCL_CPU_CLOCK=h200 ranks "$n" "$work/times" >"$work/second" 2>"$work/err" || sed 's/^/#   /' "$work/err"
    is "$(cat "$work/second")" "$(cat "$work/first")" "$n ranks: the same digits again"
    is "$(grep -c ' [0-9]' "$work/first")" $((14 * n)) "$n ranks: all of them"
done

# With a timeline, and without checks: neither may cost modelled time.
is "$(NCCL_TIMELINE=$work/run.json NCCL_CPU_CLOCK=h200 ranks 3 "$work/times" 2>&1)" \
    "$(NCCL_CHECK=off NCCL_CPU_CLOCK=h200 ranks 3 "$work/times" 2>&1)" \
    'a timeline and the checks cost no modelled time'

# --- Its rules ---------------------------------------------------------------------------

for n in 1 3 ${ALL:+7}; do
    NCCL_CPU_CLOCK=h200 ranks "$n" "$work/rules" >"$work/out" 2>"$work/err" || sed 's/^/#   /' "$work/err"
    while IFS= read -r line; do
        result "$([ "${line%% *}" = ok ] && echo 0 || echo 1)" "$n ranks: ${line#*- }"
    done < <(grep -E '^(not )?ok ' "$work/out")
    is "$(grep -cE '^(not )?ok ' "$work/out")" $((21 + 2 * (n > 1))) "$n ranks: all rules"
done

# --- Machines ----------------------------------------------------------------------------

takes() { # COMMAND…: µs
    timeout --kill-after=5 300 "$@" | awk '/^all-reduce/ { print $2 }'
}

first() { # of what it prints
    NCCL_CPU_CLOCK=$1 timeout 300 "$work/work" 1 1 2>&1 | head -n 1
}
plain='CPU build: no GPU is used, MPI carries the NCCL calls.'
is "$(first '')" "$plain" 'without the variable the first line is as ever'
for file in "$top"/cpu/machines/*.conf; do
    name=$(basename "$file" .conf)
    is "$(first "$name")" "${plain%.}; times are modelled on $name" "the first line says $name"
done
cp "$top/cpu/machines/pcie.conf" "$work/mine.conf"
is "$(first "$work/mine.conf")" "${plain%.}; times are modelled on mine" "a file of the user's own"
cp "$top/cpu/machines/pcie.conf" "$work/mine-2.32.conf"
is "$(first "$work/mine-2.32.conf")" "${plain%.}; times are modelled on mine-2.32" 'a dot in its name'

on_4() { # MACHINE [VARIABLE=VALUE…]: µs that an all-reduce of 4 MB takes on 4 ranks
    NCCL_CPU_CLOCK=$1 takes env "${@:2}" mpirun --oversubscribe -np 4 "$work/work" 4 1000000
}
h200=$(on_4 h200) leonardo=$(on_4 leonardo) nodes=$(on_4 leonardo CPU_HOSTS=2) pcie=$(on_4 pcie)
cp "$top/cpu/machines/h200.conf" "$work/mine.conf"
printf '%s\n' 'as leonardo.conf' 'gpus_per_node 2' >"$work/as.conf"
is "$(on_4 "$work/mine.conf")" "$h200" 'a copy of a machine lies anywhere'
is "$(on_4 "$work/as.conf")" "$nodes" 'a machine may be as another, but for what it says'
is "$(on_4 "$work/as.conf" CPU_HOSTS=1)" "$leonardo" 'CPU_HOSTS=1: its two nodes are one'

# What a file says of an operation replaces what it takes over, wherever the `as` stands.
alone_us() { # LINE…: of an all-reduce of 4 MB on 2 ranks
    printf '%s\n' "$@" >"$work/mine.conf"
    NCCL_CPU_CLOCK=$work/mine.conf takes mpirun --oversubscribe -np 2 "$work/work" 4 1000000
}
taken=$(alone_us 'as leonardo.conf')
for own in 'time all_reduce 2 4000000 1000' 'law all_reduce 10 6.1' 'slower all_reduce 20'; do
    before=$(alone_us "$own" 'as leonardo.conf') behind=$(alone_us 'as leonardo.conf' "$own")
    is "$before" "$behind" "as in front or behind: $own"
    result "$(awk -v a="$before" 'BEGIN { print !(a > 200 && a < 1200) }')" "and it holds ($before µs, not $taken)"
done

"$top/cpu/machines/make.sh" "$top"/cpu/machines/h200-[421].csv >"$work/made.conf"
is "$(on_4 "$work/made.conf")" "$h200" 'machines/make.sh makes one of what bandwidth --csv wrote'

# results/measure/machine.c, which measures a machine, finds on the modelled one what that was made of; and what it
# prints is a machine.
"${MPICC:-mpicc}" -std=gnu11 -O1 -I"$top/common" "$top/results/measure/machine.c" "${flags[@]}" -lm -o "$work/machine"
NCCL_CPU_CLOCK=h200 ranks 2 "$work/machine" 2>"$work/err" | sed '/^CPU build/d' >"$work/made.conf"
for name in nccl_us nccl_more_us send_us window_us one_sided_us graph_us event_us mpi_us; do
    is "$(awk -v n=$name '$1 == n { printf "%.1f", $2 }' "$work/made.conf")" \
        "$(awk -v n=$name '$1 == n { printf "%.1f", $2 }' "$top/cpu/machines/h200.conf")" "measured on the modelled h200: $name"
done
a=$(NCCL_CPU_CLOCK=$work/made.conf takes mpirun --oversubscribe -np 2 "$work/work" 4 32768)
b=$(NCCL_CPU_CLOCK=h200 takes mpirun --oversubscribe -np 2 "$work/work" 4 32768)
result "$(awk -v a="$a" -v b="$b" 'BEGIN { print !(a > 0.95 * b && a < 1.1 * b) }')" \
    "an all-reduce takes as long on the machine that it makes ($a µs, $b µs)"

wrong() { # NCCL_CPU_CLOCK LINE TEXT
    local code=0
    NCCL_CPU_CLOCK=$1 timeout 300 "$work/work" 1 1 >"$work/out" 2>"$work/err" || code=$?
    is "$code: $(cat "$work/out" "$work/err")" "2: CPU build: NCCL_CPU_CLOCK: $2" "$3"
}
machines=$(cd "$top/cpu/machines" && printf '%s, ' *.conf | sed 's/\.conf//g; s/, $//')
wrong nonesuch "no machine nonesuch; there are $machines, and a file of your own needs a slash: ./nonesuch" \
    'a machine that is not known: which there are'
wrong "$work/nonesuch.conf" "$work/nonesuch.conf: No such file or directory" 'a file that is not there'
wrong "$work" "$work: Is a directory" 'a folder'
echo 'as nonesuch.conf' >"$work/mine.conf"
wrong "$work/mine.conf" "$work/mine.conf:1: $top/cpu/machines/nonesuch.conf: No such file or directory" \
    'a machine that is as one that is not there'
echo "as mine.conf" >"$work/mine.conf"
wrong "$work/mine.conf" "$work/mine.conf is as itself" 'a machine that is as itself'
for line in 'gpus_per_node many' 'link_GBs 3,7' 'link_GBs 300 GB' 'link_GBs = 300' 'link_GBs 0' 'link_GBs -3' \
    'link_GBs nan' 'hop_us inf' 'linkGBs 300' 'law all_reduce 5' 'law sum 5 5' 'law all_reduce 5 0' \
    'time all_reduce 0 8 5' 'time all_reduce 4 8 -5' 'slower all_reduce 0' 'as h200.conf pcie.conf' 'as'; do
    printf '# mine\n%s # of mine\n' "$line" >"$work/mine.conf"
    wrong "$work/mine.conf" "$work/mine.conf:2: not a line of a machine: $line " "a line that is none: $line"
done
sed '/^link_GBs/d' "$top/cpu/machines/pcie.conf" >"$work/mine.conf"
wrong "$work/mine.conf" "$work/mine.conf does not give link_GBs" 'a figure that is missing'
sed '/^law reduce /d' "$top/cpu/machines/pcie.conf" >"$work/mine.conf"
wrong "$work/mine.conf" "$work/mine.conf does not say how long reduce takes" 'an operation that is missing'
code=0
NCCL_CPU_CLOCK=nonesuch ranks 3 "$work/work" 1 1 >"$work/out" 2>"$work/err" || code=$?
is "$code: $(grep -c '^CPU build' "$work/err")" '2: 1' 'on three ranks it is said once'

# More nodes, and less bandwidth: it takes longer.
slower() { # µs µs TEXT
    result "$(awk -v a="$1" -v b="$2" 'BEGIN { print !(a > 0 && b > 1.2 * a) }')" "$3 ($1 µs, $2 µs)"
}
slower "$h200" "$leonardo" 'an all-reduce takes longer on A100 than on H200'
slower "$leonardo" "$pcie" 'and longer where there is no NVLink'
slower "$leonardo" "$nodes" 'and on two nodes longer than on one'

# Settings that differ between ranks.
as_given=$(NCCL_CPU_CLOCK=h200 takes mpirun --oversubscribe -np 3 "$work/work" 4 1000000)
differing=$(takes mpirun --oversubscribe -np 1 env NCCL_CPU_CLOCK=h200 "$work/work" 4 1000000 : \
    -np 1 env NCCL_CPU_CLOCK=nonesuch CPU_HOSTS=2 "$work/work" 4 1000000 : -np 1 "$work/work" 4 1000000)
is "$differing" "$as_given" "where ranks are told different machines, rank 0's holds"

# --- Ways, graphs and windows --------------------------------------------------------------

# NCCL_ALGO and NCCL_PROTO, for a communicator that is made then: by the law of cpu/clock.md.
(cd "$top" && make -s BACKEND=cpu -C 21-paths) >/dev/null
NCCL_CPU_CLOCK=h200 ranks 4 "$top/21-paths/paths" -n 32768 >"$work/out" 2>&1
is "$(awk '$1 == 8 || $1 == 32768 { $1 = $1; print }' "$work/out")" \
    '8 8.53 10.73* 18.23 31.43 11.03 18.83 38.03
32768 11.32 11.15* 18.42 31.61 11.51 19.05 38.20' 'the ways of an all-reduce on 4 ranks'
NCCL_CPU_CLOCK=h200 ranks 2 "$top/21-paths/paths" -n 32768 >"$work/out" 2>&1
is "$(awk '$1 == 32768 { $1 = $1; print }' "$work/out")" '32768 7.43 8.23* 12.13 18.53 9.43 10.03 18.23' \
    'and on 2, where what was measured between the start and the rate counts'
forced=$(NCCL_PROTO=^LL,LL128 NCCL_ALGO=ring NCCL_CPU_CLOCK=h200 takes mpirun --oversubscribe -np 4 "$work/work" 4 1000000)
is "$forced" 54.083 '^LL,LL128 leaves Simple'
between=$(NCCL_ALGO=Ring CPU_HOSTS=2 NCCL_CPU_CLOCK=leonardo takes mpirun --oversubscribe -np 2 "$work/work" 4 1000000)
is "$(awk -v us="$between" 'BEGIN { print (us >= 320) }')" 1 "two ranks on two nodes: 4 MB take no less than the network's 12.5 GB/s"

# --- What it predicts --------------------------------------------------------------------

# The table of cpu/clock.md is made of results/compositions.csv. Some lines of it are predicted again here, to
# the digit; `results/measure/compositions.pl` predicts all.
grep -E "^lesson|^09,2,.* 4,|^11,2,32x1024x1024 1 8,${ALL:+|^13 .*4096x8192 one|^15 .*16x2048x4096 1,}" \
    "$top/results/compositions.csv" >"$work/compositions.csv"
cp "$work/compositions.csv" "$work/some.csv"
code=0
"$top/results/measure/compositions.pl" --file "$work/compositions.csv" --write >/dev/null 2>"$work/err" || code=$?
is "$code $(cat "$work/err" "$work/compositions.csv")" "0 $(cat "$work/some.csv")" \
    'lessons are predicted as results/compositions.csv says'
is "$("$top/results/measure/compositions.pl" --only none | grep '^| ')" \
    "$(sed -n '/^| lesson | compositions/,/^```/p' "$top/cpu/clock.md" | grep '^| ')" \
    'the error that cpu/clock.md states is that of the file'
# Graphs, windows and puts, from another machine.
grep -E '^lesson|^19|^20.*,4096,' "$top/results/two-h200-2.32.csv" >"$work/small.csv"
"$top/results/measure/compositions.pl" --file "$work/small.csv" --machine results/two-h200-2.32.conf --write >/dev/null 2>"$work/err" || true
is "$(cat "$work/err" "$work/small.csv")" "$(grep -E '^lesson|^19|^20.*,4096,' "$top/results/two-h200-2.32.csv")" \
    'and lessons 19 and 20 as two-h200-2.32.csv says'
# In its text are the errors over all files, and each other file's in a table.
errors() { # FILE…: mean and worst of all, and of those of 100 µs and more
    awk -F, 'FNR > 1 { off = $5 / $4 - 1; size = off < 0 ? -off : off
            for (i = 1; i <= ($4 >= 100 ? 2 : 1); i++) {
                n[i]++; sum[i] += size; if (size > most[i]) { most[i] = size; worst[i] = off } } }
        END { printf "%d %.1f %.0f %d %.1f %.0f\n", n[1], 100 * sum[1] / n[1], 100 * worst[1], n[2], 100 * sum[2] / n[2], 100 * worst[2] }' "$@"
}
text=$(tr '\n' ' ' <"$top/cpu/clock.md")
read -r n mean worst nlarge meanlarge worstlarge <<<"$(errors "$top"/results/{compositions,two-h200-2.32,two-h100-2.32,two-h200-2.28}.csv)"
is "$(grep -oE "have $n such|\*\*a mean of $mean %\*\*|worst one is off by $worst %|the $nlarge that take 100 µs or more, the mean is $meanlarge %, and the worst $worstlarge %" <<<"$text" | wc -l)" \
    4 "and its text states those of all four files: $n $mean $worst $nlarge $meanlarge $worstlarge"
for file in two-h200-2.32 two-h100-2.32 two-h200-2.28; do
    read -r n mean worst nlarge meanlarge worstlarge <<<"$(errors "$top/results/$file.csv")"
    row=$(grep "$file.csv" "$top/cpu/clock.md" | sed 's/.*) | /| /')
    is "$row" "| $n | $mean % | $([ "$worst" -lt 0 ] || echo +)$worst % | $nlarge | $meanlarge % | ${worstlarge#-} % |" "and those of $file"
done
# Where a call takes longer than its operation on the GPU, what was measured in a row is the host's pace: it
# counts in a row, and one that is waited for ends sooner after its call (14 + 5 + 2 µs).
printf '%s\n' 'time all_reduce 2 8 14' 'time all_reduce 2 65536 16' 'time all_reduce 2 4000000 60' 'nccl_us 12' 'gpu_us 5' \
    'as h200.conf' >"$work/host.conf"
for case in '1 2 21' '20 2 14' '1 1000000 76'; do
    read -r times count wanted <<<"$case"
    us=$(NCCL_CPU_CLOCK=$work/host.conf takes mpirun --oversubscribe -np 2 "$work/work" "$times" "$count")
    result "$(awk -v a="$us" -v b="$wanted" 'BEGIN { print !(a >= b && a < b + 1) }')" "a slow host: $times of $count ($us µs)"
done
# On windows a collective is measured in a graph, so there nothing is taken off.
printf '%s\n' 'time all_reduce 2 8 14' 'time all_reduce 2 1000000 20' 'direct all_reduce 2 8 3.8' 'gpu_us 5' 'as h200.conf' >"$work/windows.conf"
(cd "$top" && make -s BACKEND=cpu -C 19-small-messages) >/dev/null
result "$(NCCL_CPU_CLOCK=$work/windows.conf ranks 2 "$top/19-small-messages/small_messages" |
    awk '/^windows and a graph/ { us = $(NF - 1) } END { print !(us > 3.7 && us < 5) }')" 'a graph of an all-reduce on windows takes what was measured'
# Several runs of the same: the medians.
for us in '9.5 200' '14 100' '8 300'; do
    printf 'time all_reduce 2 8 %s # NCCL 2.32.3\nway Ring LL 0 118 8:%s\n08,2,16,%s,\n' "${us% *}" "${us#* }" "${us% *}" >"$work/run-${us% *}"
done
is "$("$top/results/measure/median.pl" "$work"/run-*)" $'time all_reduce 2 8 9.5 # NCCL 2.32.3\nway Ring LL 0 118 8:200\n08,2,16,9.5,' 'medians of three runs'
is "$("$top/results/measure/median.pl" "$work/run-8" "$work/run-14" | head -n 1)" 'time all_reduce 2 8 11 # NCCL 2.32.3' 'and of two'
# A run that fails predicts nothing, and the file stays as it was.
mkdir "$work/failing"
printf '#!/bin/sh\nexit 3\n' >"$work/failing/mpirun"
chmod +x "$work/failing/mpirun"
code=0
PATH=$work/failing:$PATH "$top/results/measure/compositions.pl" --file "$work/compositions.csv" --only 09 --write >/dev/null 2>&1 || code=$?
result "$([ "$code" -ne 0 ] && cmp -s "$work/compositions.csv" "$work/some.csv"; echo $?)" 'a run that fails predicts nothing'

# --- What it costs -----------------------------------------------------------------------

# Processor time of the shortest round, on one rank: it does not depend on what else runs here. The two in
# turn, since a processor's pace changes.
for _ in 1 2 3 4; do
    "$work/work" 20 60000 really | tail -n 1 >>"$work/without"
    NCCL_CPU_CLOCK=h200 "$work/work" 20 60000 really | tail -n 1 >>"$work/with"
done
without=$(sort -n "$work/without" | head -n 1) with=$(sort -n "$work/with" | head -n 1)
result "$(awk -v a="$with" -v b="$without" 'BEGIN { print !(a > 0 && a <= 1.5 * b) }')" \
    "a run takes at most half as long again ($with s, without $without s)"

finish
