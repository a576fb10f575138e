#!/usr/bin/env bash
# Prints the figures of a folder that measure.sh filled, as Markdown: tables.sh FOLDER.
# Leaves out what the folder does not have.
set -euo pipefail
cd "$1"

fact() { # NAME FILE: its line of a machine-N.txt
    sed -n "s/^$1: //p" "$2"
}

gpus_of() { # FILE: on how many its first program ran
    awk 'match($0, /^\$ .*-np [0-9]+/) {
        n = substr($0, 1, RLENGTH); sub(/.* /, "", n); print n " GPU" (n > 1 ? "s" : ""); exit }' "$1"
}

# A sentence on when a file was begun, as its first line says: another day, perhaps, than that of
# the rest. ON: on which GPUs, otherwise those of its first program.
taken() { # FILE [ON]
    # shellcheck disable=SC2016 # Markdown's
    sed -nE '1s/^taken: (.*), course at (.*)/Taken \1, course at `\2`, on '"${2:-$(gpus_of "$1")}"'./p' "$1"
}

# The files of a stage that keeps one for each number of GPUs, as links.
outputs() { # NAME
    local file separator=''
    for file in "$1"-[0-9]*.txt; do
        printf '%s[%s](%s)' "$separator" "$(gpus_of "$file")" "$file"
        separator=', '
    done
}

# Of such a stage: a table for each of its files, which AWK prints. AWK can use option(NAME), what
# the command line at hand gives after --NAME, and ranks_of(), on how many ranks it runs.
tables() { # NAME AWK
    local file
    for file in "$1"-[0-9]*.txt; do
        echo
        taken "$file"
        echo
        awk '
            function option(name, otherwise,   i) {
                for (i = 1; i < NF; i++) if ($i == "--" name) return $(i + 1)
                return otherwise }
            function ranks_of(   n) {
                n = $0; sub(/.*(-np |nproc_per_node=)/, "", n); sub(/ .*/, "", n)
                return n }'"$2" "$file"
    done
    echo
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

# For awk: a size in bytes as one says it.
# shellcheck disable=SC2016 # awk's
size_of='function size_of(n) {
    return n % 1073741824 == 0 ? n / 1073741824 " GiB" : n % 1048576 == 0 ? n / 1048576 " MiB" : \
        n % 1024 == 0 ? n / 1024 " KiB" : n " B" }'

# And the operation that a command line of nccl-tests measures, as lesson 06 calls it.
# shellcheck disable=SC2016 # awk's
their_name='function their_name(command) {
    if (!match(command, /[a-z_]+_perf/)) return ""
    command = substr(command, RSTART, RLENGTH - 5)
    return command == "alltoall" ? "all_to_all" : command == "sendrecv" ? "send_recv" : command }'

machine() { # FILE
    local cards driver
    echo "| | |"
    echo "| --- | --- |"
    echo "| taken | $(fact date "$1"), course at \`$(fact course "$1")\` |"
    cards=$(awk -F'|' '/^\| +[0-9]+ +NVIDIA/ { sub(/^ +[0-9]+ +/, "", $2); sub(/ +(On|Off|N\/A) *$/, "", $2); n[$2]++ }
        END { for (name in n) printf "%s%d × %s", comma++ ? ", " : "", n[name], name }' "$1")
    driver=$(sed -nE 's/.*Driver Version: ([0-9.]+).*/, driver \1/p' "$1")
    [ -z "$cards" ] || echo "| GPUs | $cards$driver |"
    echo "| software | $(fact nccl "$1"); $(fact mpi "$1"); $(fact compiler "$1"); $(fact system "$1"), Linux $(fact kernel "$1") |"
    echo "| host | $(fact cpus "$1") processors, $(fact memory "$1") |"
    [ -z "$(fact environment "$1")" ] || echo "| environment | $(fact environment "$1" | paste -sd' ') |"
    echo
    echo "More in [$1]($1)."
    echo
}

for file in $(compgen -G 'machine-[0-9]*.txt'); do
    echo "## The machine, $(fact gpus "$file") GPU$([ "$(fact gpus "$file")" = 1 ] || echo s)"
    echo
    machine "$file"
done

if [ -f lessons.txt ]; then
    echo "## Every lesson"
    echo
    echo "Their verdicts; the whole outputs are in [lessons.txt](lessons.txt)."
    taken lessons.txt 'the GPUs above'
    echo
    commands lessons.txt '^(OK|FAILED):' | awk -F'\t' '
        { n = match($1, /-np [0-9]+/) ? substr($1, RSTART + 4, RLENGTH - 4) : gsub(/,/, "&", $1) + 1
          match($1, /[0-9][0-9]-[a-z0-9-]*/); lesson = substr($1, RSTART, RLENGTH)
          if (!(n in column)) { column[n] = ++columns; head = head " " n " rank" (n > 1 ? "s" : "") " |" ; rule = rule " --- |" }
          if (!(lesson in row)) { row[lesson] = ++rows; name[rows] = lesson }
          cell[row[lesson], column[n]] = $3 == 0 && $2 ~ /^OK/ ? "OK" : "**exit code " $3 "**" }
        END { print "| lesson |" head; print "| --- |" rule
          for (r = 1; r <= rows; r++) { line = "| " name[r] " |"
            for (c = 1; c <= columns; c++) line = line " " cell[r, c] " |"
            print line } }'
    echo
fi

tests=$(compgen -G 'tests-[0-9]*.txt' | sort -t- -k2 -n || true)
if [ -n "$tests" ] || [ -f memcheck.txt ] || [ -f repeat.txt ]; then
    echo "## Right, again and again"
    echo
    echo "| | |"
    echo "| --- | --- |"
    for file in $tests; do
        commands "$file" '^Files=' | awk -F'\t' -v file="$file" '
            { n = file; gsub(/[^0-9]/, "", n); match($2, /Tests=[0-9]+/)
              print "| `" $1 "`, " n " GPU" (n > 1 ? "s" : "") " ([output](" file ")) | " \
                  substr($2, RSTART + 6, RLENGTH - 6) " tests, " ($3 == 0 ? "all pass" : "**some fail**") ", " $4 " s |" }'
    done
    if [ -f memcheck.txt ]; then
        commands memcheck.txt 'ERROR SUMMARY' | awk -F'\t' -v gpus="$(gpus_of memcheck.txt)" '{ n++; if ($3 != 0) bad = bad " `" $1 "`" }
            END { print "| `compute-sanitizer --tool memcheck`, " n " command lines on " gpus " ([output](memcheck.txt)) | " (bad ? "**errors:**" bad : "no errors") " |" }'
    fi
    if [ -f repeat.txt ]; then
        # shellcheck disable=SC2016 # a pattern
        sed -nE 's/^([0-9]+-.*): ([0-9]+ runs in a row, N from .* in turn), (.*), ([0-9]+ s)$/| `\1`, \2 | \3, \4 |/p' repeat.txt | sort
    fi
    echo
fi

if [ -f ring.txt ]; then
    echo "## Lesson 09: the pipelined ring beside ncclAllReduce"
    echo
    echo "Both in the same run, the ring with registered buffers; in 4 pieces is what the lesson takes"
    echo "([output](ring.txt))."
    taken ring.txt
    echo
    echo "| size | form | ring | ncclAllReduce | ratio of the bandwidths |"
    echo "| --- | --- | --- | --- | --- |"
    awk "$size_of"'/^[0-9]+ ranks?, D = / { size = $5 }
            /^ring, / { form = $0; sub(/^ring, /, "", form); sub(/  .*/, "", form); match($0, /[0-9.]+ ms/); ring = substr($0, RSTART, RLENGTH) }
            /^ncclAllReduce / { nccl = $2 " ms, " $6 " GB/s busbw" }
            /^ratio / { printf "| %s | %s | %s | %s | %s |\n", size_of(size), form, ring, nccl, $2 }' ring.txt
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
        awk -v n="$n" "$size_of"'$2 ~ /^[0-9]+$/ && $3 ~ /^[0-9.]+$/ {
                if ($1 != name) { name = $1; first = size_of($2) ": " $3 " µs" }
                last = size_of($2) ": " (n > 1 ? $5 " GB/s busbw" : $4 " GB/s algbw") }
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
    awk -F, "$size_of"'NR > 1 { key = $1 FS $4; if (!(key in seen)) { seen[key] = ++keys; order[keys] = key }
            time[key, $2] = sprintf("%.1f", $5) }
        END { for (i = 1; i <= keys; i++) { split(order[i], part, FS)
            if (part[2] != 8 && part[2] != 16 && part[2] != 1024 && part[2] != 65536) continue
            print "| " part[1] " | " size_of(part[2]) " | " time[order[i], "plain"] " | " time[order[i], "graph"] " | " \
                time[order[i], "register"] " | " time[order[i], "register+graph"] " |" } }' bandwidth-small.csv
    echo
fi

if [ -f peer.txt ]; then
    echo "## Lesson 07: a copy from GPU to GPU"
    echo
    echo "One pair at a time, on $(gpus_of peer.txt) ([output](peer.txt))."
    taken peer.txt
    echo
    awk '/^\$ .*peer_to_peer/ { bytes = 4 * $NF; shown = 0 }
        /^(Peer access|Through the host|Directly|By NCCL)/ && bytes && (bytes > 8192 || /GB/) {
            if (!shown++) print (n++ ? "\n" : "") bytes " B a copy:\n\n```"; inside = 1 }
        /^OK/ && inside { print "```"; inside = 0; bytes = 0 }
        inside' peer.txt
    echo
    echo "And an all-reduce, on each of NCCL's ways between the GPUs (times, bus bandwidths):"
    echo
    awk "$size_of"'
        /^\$ env / { way = ""; sizes = 0
            for (i = 3; $i ~ /^NCCL_(P2P|SHM)/; i++) way = way (way ? ", " : "") "`" $i "`" }
        $1 == "all_reduce" { row[++sizes] = $2; time[sizes] = $3; busbw[sizes] = $5 }
        /^\[[0-9.]+ s\]$/ && sizes {
            if (!headed++) print "| | " size_of(row[1]) " | " size_of(row[sizes]) " |\n| --- | --- | --- |"
            printf "| %s | %s µs | %.2f ms, %s GB/s |\n", way ? way : "as it is", time[1], time[sizes] / 1000, busbw[sizes]
            sizes = 0 }' peer.txt
    echo
fi

if [ -f three.txt ]; then
    echo "## Lesson 08: three ways to one sum"
    echo
    echo "Times in µs, on $(gpus_of three.txt) ([output](three.txt)). nccl-tests: the sum of its times for"
    echo "the parts, the second part in place. The ratios are lesson 08's time over the other's."
    taken three.txt
    echo
    awk "$size_of$their_name"'
        /^\$ / { name = their_name($0); lesson = $0 ~ /three_all_reduces/; torch = $0 ~ /collectives/ }
        lesson && $1 ~ /^[0-9]+$/ && NF == 7 {
            if (!($1 in known)) { known[$1] = 1; order[++sizes] = $1 }
            for (w = 1; w <= 3; w++) ours[w, $1] = $(2 * w + 1) }
        lesson && /^ncclCommSplit/ { split_cost = $0; sub(/^.*: /, "", split_cost) }
        name && $1 ~ /^[0-9]+$/ && $8 ~ /^[0-9.]+$/ {
            w = name == "all_reduce" ? 1 : name ~ /^(reduce|broadcast)$/ ? 2 : 3
            parts[w, $1] += name ~ /^(broadcast|all_gather)$/ ? $10 : $6; nparts[w, $1]++ }
        torch && $3 == "B" && $5 == "us" {
            w = $1 == "all_reduce" ? 1 : $1 == "reduce_broadcast" ? 2 : 3; pytorch[w, $2] = $4 }
        function cell(w, size, other) { return other[w, size] ? sprintf("%s (%.2f)", other[w, size], ours[w, size] / other[w, size]) : "" }
        END {
            split("all_reduce|reduce, broadcast|reduce_scatter, all_gather", way, "|")
            for (w = 1; w <= 3; w++) {
                print (w > 1 ? "\n" : "") "| " way[w] " | lesson 08 | nccl-tests (ratio) | PyTorch (ratio) |\n| --- | --- | --- | --- |"
                for (i = 1; i <= sizes; i++) { size = order[i]
                    if (nparts[w, size] != (w == 1 ? 1 : 2)) delete parts[w, size]
                    printf "| %s | %s | %s | %s |\n", size_of(size), ours[w, size], cell(w, size, parts), cell(w, size, pytorch) } }
            if (split_cost) print "\nA communicator by `ncclCommSplit`, and the first all-reduce on it: " split_cost "." }' three.txt
    echo
fi

# What lesson 06 and nccl-tests got, of all runs: WHICH is median or least, and stands beside the
# least and the most. OURS and THEIRS are the columns of the two, CSV that of our CSV file; KEPT
# says which sizes.
beside_nccl_tests() { # WHICH UNIT DECIMALS RATIO-DECIMALS OURS THEIRS CSV KEPT
    echo "| operation | size | lesson 06 | nccl-tests | ratio |"
    echo "| --- | --- | --- | --- | --- |"
    awk -v csv="bandwidth-$(gpus_of nccl-tests.txt | cut -d" " -f1).csv" -v which="$1" -v unit="$2" -v decimals="$3" -v digits="$4" \
        -v ours="$5" -v theirs="$6" -v column="$7" "$size_of$their_name"'
        function kept(size) { return '"$8"' }
        function add(whose, name, size, value,   i, n) { # sorted
            if (!kept(size + 0)) return
            if (whose == "theirs" && !((name, size) in seen)) { seen[name, size] = 1; order[++rows] = name SUBSEP size }
            n = ++runs[whose, name, size]
            for (i = n; i > 1 && values[whose, name, size, i - 1] > value + 0; i--)
                values[whose, name, size, i] = values[whose, name, size, i - 1]
            values[whose, name, size, i] = value + 0 }
        function one(whose, key,   n) { n = which == "least" ? 1 : runs[whose, key]
            return (values[whose, key, int((n + 1) / 2)] + values[whose, key, int((n + 2) / 2)]) / 2 }
        function cell(whose, key,   n, text) { n = runs[whose, key]
            text = sprintf("%.*f %s", decimals, one(whose, key), unit)
            if (n > 1 && which == "least") text = text sprintf(" (to %.*f)", decimals, values[whose, key, n])
            else if (n > 1) text = text sprintf(" (%.*f to %.*f)", decimals, values[whose, key, 1], decimals, values[whose, key, n])
            return text }
        BEGIN { while ((getline line < csv) > 0) { split(line, c, ","); add("ours", c[1], c[4], c[column]) } }
        /^\$ / { name = their_name($0) }
        $2 ~ /^[0-9]+$/ && $3 ~ /^[0-9.]+$/ && NF == 5 { add("ours", $1, $2, $ours) }
        $1 ~ /^[0-9]+$/ && $8 ~ /^[0-9.]+$/ { add("theirs", name, $1, $theirs) }
        END { for (i = 1; i <= rows; i++) { key = order[i]; split(key, part, SUBSEP)
            if (runs["ours", key])
                printf "| %s | %s | %s | %s | %.*f |\n", part[1], size_of(part[2]), cell("ours", key), \
                    cell("theirs", key), digits, one("ours", key) / one("theirs", key) } }' nccl-tests.txt
    echo
}

if [ -f nccl-tests.txt ]; then
    echo "## Beside nccl-tests"
    echo
    echo "Lesson 06 and nccl-tests (out of place, the slowest rank's time)"
    echo "([output](nccl-tests.txt)). First large messages: our bus bandwidth, and ours over theirs. Where"
    echo "there are several runs, which took turns, it is their median, with the least and the most."
    echo
    beside_nccl_tests median GB/s 1 3 5 8 7 'size >= 67108864'
    echo "Then the time of small ones: the least of several runs, which took turns, with the most. It is mostly"
    echo "the host's to launch them, and what else the host does only adds to it."
    echo
    beside_nccl_tests least µs 1 2 3 6 5 'size == 8 || size == 4096 || size == 32768'
fi

if compgen -G "training-[0-9]*.txt" >/dev/null; then
    echo "## Lesson 11: gradients that travel while others are computed"
    echo
    echo "L layers of W × W, B samples a rank, float32 without TF32 ($(outputs training))."
    echo "*Computing only* is a step without communication, measured in turns with the other two; *both*"
    echo "is a training step, beside it how many times computing only; *hidden* the part of the shorter of"
    echo "the two that costs nothing. PyTorch is DistributedDataParallel on the same model, right after."
    # shellcheck disable=SC2016 # awk's
    tables training '
        function flush() { if (both != "") printf "| %s | %s | %s | %s | %s | %s ms | %s ms | %s ms | %s | %s |\n",
            model, share, who, bucket, ctas, compute, reduce, both, ratio, hidden; both = "" }
        BEGIN { print "| L × W | B | | bucket | CTAs | computing only | all-reduce only | both | ratio | hidden |"
            print "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |" }
        /^\$ / { flush(); width = option("width"); layer = 4 * width * width
            model = option("layers") " × " width; torch = /torchrun/
            share = option("batch") / ranks_of(); who = torch ? "PyTorch DDP" : "lesson 11"
            bucket = option("bucket", torch ? "25 MiB" : "one layer")
            if (bucket ~ /^[0-9]+$/) bucket = bucket / layer " layers" # as many as fill it
            if (bucket == "all") bucket = "all layers"
            ctas = torch ? 0 : option("ctas", 0)
            if (ctas == 0) ctas = "NCCL decides" }
        /^computing only/ { compute = $3 } /^all-reduce only/ { reduce = $3 }
        /^both/ { both = $2; ratio = $4 } /^hidden/ { hidden = $2 }
        END { flush() }'
fi

if compgen -G "sharded-[0-9]*.txt" >/dev/null; then
    echo "## Lesson 12: weights, gradients and momentum in shards"
    echo
    echo "L layers of W × W, B samples a rank, float32 without TF32 ($(outputs sharded))."
    echo "*Kept* is what a rank has in memory of weights, gradients and momentum, with room for the layers in"
    echo "use; of PyTorch what it has after a step. *Computing only* is a step without communication, measured in"
    echo "turns with a training step. PyTorch is \`fully_shard\` on the same model, right after; there computing"
    echo "only has the whole update."
    # shellcheck disable=SC2016 # awk's
    tables sharded '
        function flush() { if (both != "") printf "| %s | %s | %s | %s | %.1f MB | %s ms | %s ms | %s |\n",
            model, share, who, stage, kept / 1e6, compute, both, ratio; both = "" }
        BEGIN { print "| L × W | B | | stage | kept | computing only | a step | ratio |"
            print "| --- | --- | --- | --- | --- | --- | --- | --- |" }
        /^\$ / { flush(); model = option("layers") " × " option("width"); stage = option("stage")
            share = option("batch") / ranks_of(); who = /torchrun/ ? "PyTorch FSDP" : "lesson 12" }
        /^this is stage/ { kept = $5 } /^computing only/ { compute = $3 }
        /^both/ { both = $2; ratio = $4 }
        END { flush() }'
fi

if compgen -G "experts-[0-9]*.txt" >/dev/null; then
    echo "## Lesson 13: tokens to their experts and back"
    echo
    echo "Of one layer, with the counts sent first, and in blocks of one size that hold the largest: time,"
    echo "and the bytes that all ranks send ($(outputs experts)). Both in turns; PyTorch right after,"
    echo "with as many tokens for each rank."
    # shellcheck disable=SC2016 # awk's
    tables experts '
        function flush() { if (blocks != "") printf "| %s | %s | %s | %s | %s ms, %s | %s ms, %s | %s |\n",
            width, share, load, who, first, size(bytes), blocks, size(padded), ratio; blocks = "" }
        function size(n) { return n < 1e6 ? sprintf("%.1f kB", n / 1e3) : sprintf("%.1f MB", n / 1e6) }
        BEGIN { print "| numbers a token | tokens a rank | load | | counts first | padded | ratio |"
            print "| --- | --- | --- | --- | --- | --- | --- |" }
        /^\$ / { flush(); width = option("width"); load = option("load")
            share = option("batch") / ranks_of(); who = /torchrun/ ? "PyTorch" : "lesson 13" }
        /^counts first/ { first = $3; bytes = $(NF - 1) }
        /^padded/ { blocks = $2; ratio = $4; padded = $(NF - 1) }
        END { flush() }'
fi

if compgen -G "pipeline-[0-9]*.txt" >/dev/null; then
    echo "## Lesson 14: layers divided among the ranks"
    echo
    echo "M micro-batches of a batch of B, on N ranks ($(outputs pipeline)). *Computing* is that of all"
    echo "micro-batches without any transfer, on the slowest rank, in turns with the step. PyTorch is"
    echo "\`torch.distributed.pipelining\` on the same model, right after."
    # shellcheck disable=SC2016 # awk's
    tables pipeline '
        BEGIN { print "| L × W | B | N | M | order | | computing | a step | idle | (N−1)/(M+N−1) |"
            print "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |" }
        /^\$ / { ranks = ranks_of()
            model = option("layers") " × " option("width") " | " option("batch"); micro = option("micro")
            order = /--all-forward/ ? "all forward" : "in turns"; who = /torchrun/ ? "PyTorch" : "lesson 14" }
        /^a step / { printf "| %s | %d | %d | %s | %s | %s ms | %s ms | %s | %.2f |\n", model, ranks, micro,
            order, who, $6, $3, $8, (ranks - 1) / (micro + ranks - 1) }'
fi

if compgen -G "grid-[0-9]*.txt" >/dev/null; then
    echo "## Lesson 15: a grid of ranks"
    echo
    echo "A batch of B divided among the rows, every layer among the columns ($(outputs grid)). A step"
    echo "without communication, with the all-reduces in the rows (of activations), and with those in the"
    echo "columns too (of gradients). PyTorch is \`parallelize_module\` in the rows and \`dist.all_reduce\` in"
    echo "the columns, right after."
    # shellcheck disable=SC2016 # awk's
    tables grid '
        BEGIN { print "| L × W | B | rows × columns | side by side | | computing only | with the rows | with the columns |"
            print "| --- | --- | --- | --- | --- | --- | --- | --- |" }
        /^\$ / { ranks = ranks_of()
            columns = option("columns")
            model = option("layers") " × " option("width") " | " option("batch") " | " ranks / columns " × " columns
            near = /--apart/ ? "a column" : "a row"; who = /torchrun/ ? "PyTorch" : "lesson 15" }
        /^computing only/ { compute = $3 } /^with the rows/ { rows = $4 }
        /^with the columns/ { printf "| %s | %s | %s | %s ms | %s ms | %s ms |\n", model, near, who, compute, rows, $4 }'
fi

for file in $(compgen -G 'production-[0-9]*.txt'); do
    echo
    echo "## Lessons 16, 18 to 21, and 23 to 25"
    echo
    taken "$file"
    echo
    echo 'What they print, less drawings and verdicts; of nccl-tests the columns are bytes, count, type, operation, root, and'
    echo 'time (µs), bandwidth and bus bandwidth (GB/s) and errors, out of place and in place:'
    echo
    echo '```'
    awk '/^\$ / { shown = !/23-failures/ } shown' "$file" |
        grep -vE '^(OK|FAILED|#|\[[0-9.]+ s)|^ +-+$|^GPU +[0-9]+ +\||^Before|^After' | cat -s
    echo '```'
    echo
    echo 'Lesson 23, seconds from the last good step to the next one:'
    echo
    echo '| | ended well | seconds |'
    echo '| --- | --- | --- |'
    awk '/^\$ / { way = /23-failures/ ? $0 : ""; sub(/.*-np /, "", way); sub(/[^ ]* --deadline/, "ranks, `--deadline", way) }
        way == "" { next }
        /^\$ / { if (!(way in runs)) order[++ways] = way; runs[way]++; lost = 0 }
        /not done/ { lost = 1 }
        lost && /: loss/ { s = $(NF - 1); lost = 0
            if (!(way in least) || s < least[way]) least[way] = s; if (s > most[way]) most[way] = s }
        /^OK/ { well[way]++ }
        END { for (i = 1; i <= ways; i++) { way = order[i]
            printf "| %s` | %d of %d | %s to %s |\n", way, well[way], runs[way], least[way], most[way] } }' "$file"
done
