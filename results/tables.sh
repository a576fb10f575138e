#!/usr/bin/env bash
# Prints the figures of a folder that measure.sh filled, as Markdown: tables.sh FOLDER.
# Leaves out what the folder does not have.
set -euo pipefail
cd "$1"

fact() { # NAME: its line of machine.txt
    sed -n "s/^$1: //p" machine.txt
}

# Of a file of keep's: for each command line the command, the last line of its output that
# matches a pattern, its exit code and seconds, with tabs between.
commands() { # FILE PATTERN
    awk -v pattern="$2" '
        /^\$ / { command = substr($0, 3); found = ""; code = 0; next }
        /^\[exit code/ { code = $3 + 0; next }
        /^\[[0-9.]+ s\]$/ { print command "\t" found "\t" code "\t" substr($1, 2); next }
        $0 ~ pattern { found = $0 }' "$1"
}

if [ -f machine.txt ]; then
    echo "## The machine"
    echo
    echo "| | |"
    echo "| --- | --- |"
    echo "| taken | $(fact date), course at \`$(fact course)\` |"
    cards=$(awk -F'|' '/^\| +[0-9]+ +NVIDIA/ { sub(/^ +[0-9]+ +/, "", $2); sub(/ +(On|Off|N\/A) *$/, "", $2); n[$2]++ }
        END { for (name in n) printf "%s%d × %s", comma++ ? ", " : "", n[name], name }' machine.txt)
    driver=$(sed -nE 's/.*Driver Version: ([0-9.]+).*/, driver \1/p' machine.txt)
    [ -z "$cards" ] || echo "| GPUs | $cards$driver |"
    echo "| software | $(fact nccl); $(fact mpi); $(fact compiler); $(fact system), Linux $(fact kernel) |"
    echo "| host | $(fact cpus) processors, $(fact memory) |"
    [ -z "$(fact environment)" ] || echo "| environment | $(fact environment | paste -sd' ') |"
    echo
    echo "More in [machine.txt](machine.txt)."
    echo
fi

if [ -f lessons.txt ]; then
    echo "## Every lesson"
    echo
    echo "Verdict, and seconds from \`mpirun\` to the prompt on a busy machine. The outputs are in"
    echo "[lessons.txt](lessons.txt)."
    echo
    commands lessons.txt '^(OK|FAILED):' | awk -F'\t' '
        { match($1, /-np [0-9]+/); n = substr($1, RSTART + 4, RLENGTH - 4)
          match($1, /[0-9][0-9]-[a-z0-9_\/-]*/); lesson = substr($1, RSTART, RLENGTH); sub(/\/.*/, "", lesson)
          if (!(n in column)) { column[n] = ++columns; head = head " " n " GPU" (n > 1 ? "s" : "") " |" ; rule = rule " --- |" }
          if (!(lesson in row)) { row[lesson] = ++rows; name[rows] = lesson }
          cell[row[lesson], column[n]] = ($3 == 0 && $2 ~ /^OK/ ? "OK" : "**exit code " $3 "**") ", " $4 " s" }
        END { print "| lesson |" head; print "| --- |" rule
          for (r = 1; r <= rows; r++) { line = "| " name[r] " |"
            for (c = 1; c <= columns; c++) line = line " " cell[r, c] " |"
            print line } }'
    echo
fi

if [ -f tests.txt ] || [ -f memcheck.txt ] || [ -f repeat.txt ]; then
    echo "## Right, again and again"
    echo
    echo "| | |"
    echo "| --- | --- |"
    if [ -f tests.txt ]; then
        commands tests.txt '^(Result|Files)' | awk -F'\t' '{ print "| `" $1 "` ([output](tests.txt)) | " ($3 == 0 ? "passes" : "**fails**") ", " $4 " s |" }'
    fi
    if [ -f memcheck.txt ]; then
        commands memcheck.txt 'ERROR SUMMARY' | awk -F'\t' '{ n++; if ($3 != 0) bad = bad " `" $1 "`" }
            END { print "| `compute-sanitizer --tool memcheck`, " n " lessons ([output](memcheck.txt)) | " (bad ? "**errors:**" bad : "no errors") " |" }'
    fi
    if [ -f repeat.txt ]; then
        sed -E "s/^(mpirun .*): ([0-9]+ runs in a row), (.*), ([0-9]+ s)\$/| \`\1\`, \2 | \3, \4 |/" repeat.txt
    fi
    echo
fi

if [ -f hello-time.txt ]; then
    echo "## From mpirun to the prompt"
    echo
    echo '```'
    cat hello-time.txt
    echo '```'
    echo
fi

if [ -f ring.txt ]; then
    echo "## Lesson 05: the ring beside ncclAllReduce"
    echo
    echo "Both in the same run ([output](ring.txt)). In 4 pieces is what \`--pipelined\` takes; all forms in"
    echo "pieces have registered buffers."
    echo
    echo "| size | form | ring | ncclAllReduce | ratio of the bandwidths |"
    echo "| --- | --- | --- | --- | --- |"
    awk '/^[0-9]+ ranks?, D = / { size = $5 }
        /^ring, / { form = $0; sub(/^ring, /, "", form); sub(/  .*/, "", form); match($0, /[0-9.]+ ms/); ring = substr($0, RSTART, RLENGTH) }
        /^ncclAllReduce / { nccl = $2 " ms, " $6 " GB/s busbw" }
        /^ratio / { printf "| %.0f MiB | %s | %s | %s | %s |\n", size / 1048576, form, ring, nccl, $2 }' ring.txt
    echo
fi

tables=$(compgen -G 'bandwidth-[0-9]*.txt' | sort -t- -k2 -n || true)
if [ -n "$tables" ]; then
    echo "## Lesson 06: what a collective costs"
    for table in $tables; do
        name=${table%.txt}
        n=${name#bandwidth-}
        echo
        echo "$n GPU$([ "$n" = 1 ] || echo s) ([rows]($table), [CSV]($name.csv)):"
        echo
        [ ! -f "$name.svg" ] || printf '![Time and bus bandwidth against size](%s.svg)\n\n' "$name"
        echo "| operation | smallest | largest | T = α + n/β |"
        echo "| --- | --- | --- | --- |"
        awk '$2 ~ /^[0-9]+$/ && $3 ~ /^[0-9.]+$/ {
                if ($1 != name) { name = $1; first = $2 " B: " $3 " µs" }
                last = $2 " B: " $5 " GB/s busbw" }
            /^  T = / { law = $0; sub(/^  T = /, "", law); sub(/;$/, "", law)
                print "| " name " | " first " | " last " | " law " |" }' "$table"
    done
    echo
fi

if [ -f bandwidth-small.csv ]; then
    echo "### Small messages: CUDA graphs and registered buffers"
    echo
    [ ! -f bandwidth-small.svg ] || printf '![Time and bus bandwidth of small messages](bandwidth-small.svg)\n\n'
    echo "Time in µs ([rows](bandwidth-small.txt), [CSV](bandwidth-small.csv)):"
    echo
    echo "| operation | size | plain | graph | register | both |"
    echo "| --- | --- | --- | --- | --- | --- |"
    awk -F, 'NR > 1 { key = $1 FS $4; if (!(key in seen)) { seen[key] = ++keys; order[keys] = key }
            time[key, $2] = sprintf("%.1f", $5) }
        END { for (i = 1; i <= keys; i++) { split(order[i], part, FS)
            if (part[2] != 8 && part[2] != 16 && part[2] != 1024 && part[2] != 65536) continue
            print "| " part[1] " | " part[2] " B | " time[order[i], "plain"] " | " time[order[i], "graph"] " | " \
                time[order[i], "register"] " | " time[order[i], "register+graph"] " |" } }' bandwidth-small.csv
    echo
fi

if [ -f nccl-tests.txt ]; then
    gpus=$(fact gpus)
    echo "## Beside nccl-tests"
    echo
    echo "Lesson 06 and nccl-tests (out of place), one after the other ([output](nccl-tests.txt)):"
    echo "our time over theirs, and our bus bandwidth over theirs."
    echo
    echo "| operation | size | our time | their time | ratio | our busbw | their busbw | ratio |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
    awk -v csv="bandwidth-$gpus.csv" '
        BEGIN { ours["alltoall"] = "all_to_all"; ours["sendrecv"] = "send_recv"
            while ((getline line < csv) > 0) { split(line, c, ","); time[c[1], c[4]] = c[5]; bus[c[1], c[4]] = c[7] } }
        /^\$ / { match($0, /[a-z_]+_perf/); name = substr($0, RSTART, RLENGTH - 5); if (name in ours) name = ours[name]; next }
        $1 ~ /^[0-9]+$/ && $8 ~ /^[0-9.]+$/ && (name, $1) in time && ($1 <= 16 || $1 == 65536 || $1 >= 67108864) {
            printf "| %s | %d B | %.1f µs | %.1f µs | %.2f | %.1f GB/s | %.1f GB/s | %s |\n", name, $1,
                time[name, $1], $6, time[name, $1] / $6, bus[name, $1], $8,
                ($8 > 0 ? sprintf("%.3f", bus[name, $1] / $8) : "") }' nccl-tests.txt
    echo
fi

if [ -f pytorch.txt ]; then
    echo "## Beside PyTorch"
    echo
    echo '```'
    grep -v '^$' pytorch.txt
    echo '```'
    echo
fi
