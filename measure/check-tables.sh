#!/usr/bin/env bash
# The tables of nccl-check.md, from what check.sh wrote into a folder: measure/check-tables.sh FOLDER
set -euo pipefail

folder=${1:?which folder?}
runs=$folder/check-runs.tsv

# The newest run of each counts.
newest() { # STAGE HOW KIND
    awk -F '\t' -v stage="$1" -v how="$2" -v kind="$3" \
        '$1 == stage && $2 == how && $3 == kind { line[$4] = $0 }
         END { for (name in line) print line[name] }' "$runs" | sort -t "$(printf '\t')" -k 4
}

has() { # STAGE HOW KIND
    [ -n "$(newest "$@")" ]
}

# --- How many ------------------------------------------------------------------------------

ends_plain() { # KIND
    newest programs plain "$1" | awk -F '\t' '
        { n++; hang += $5 ~ /^runs after/; well += $5 == "exit code 0" }
        END { if (n) printf "of %d %d hang, %d end with exit code 0", n, hang, well; else print "not run" }'
}

counts() {
    echo '| programs | of them | without nccl-check | with |'
    echo '| --- | --- | --- | --- |'
    local kind
    for kind in right repaired; do
        printf '| %s | %d | %s | %d end with exit code 0 and no word |\n' "$kind" \
            "$(newest programs nccl-check $kind | wc -l)" "$(ends_plain "$kind")" \
            "$(newest programs nccl-check $kind | awk -F '\t' '$5 == "exit code 0" && $8 == ""' | wc -l)"
    done
    printf '| wrong | %d | %s | %d are named, within %s s |\n' \
        "$(newest programs nccl-check wrong | wc -l)" "$(ends_plain wrong)" \
        "$(newest programs nccl-check wrong | awk -F '\t' '$8 != "" && $8 !~ /not checked/' | wc -l)" \
        "$(newest programs nccl-check wrong | awk -F '\t' '$7 > most { most = $7 } END { print most + 0 }')"
    echo
    echo 'The seconds count from mpirun on; to start takes two to four of them.'
}

# --- What says something -----------------------------------------------------------------------

# One line a program: name, how it ended alone, and for each tool the seconds and the words.
says() {
    {
        newest programs plain wrong | sed 's/^/alone\t/'
        newest own pointers wrong | sed 's/^/pointers\t/'
        newest own mode wrong | sed 's/^/mode\t/'
        newest sanitizer memcheck wrong | sed 's/^/memcheck\t/'
        newest sanitizer initcheck wrong | sed 's/^/initcheck\t/'
        newest programs nccl-check wrong | sed 's/^/check\t/'
        ras | sed 's/^/ras\t/'
    } | awk -F '\t' '
        function cell(tool, name,    word) {
            if (!((tool, name) in ran)) return " "
            return (tool, name) in said ? said[tool, name] : "–"
        }
        function short(words, most) {
            gsub(/\|/, "/", words)
            return length(words) > most ? substr(words, 1, most) "…" : words
        }
        $1 == "ras" { ran["ras", $2] = 1; if ($3 != "") said["ras", $2] = $3; next }
        {
            name = $5; ran[$1, name] = 1; names[name] = 1
            if ($1 == "alone") end[name] = $6 ~ /^runs after/ ? "hangs" : $6
            words = $9
            sub(/.*NCCL WARN /, "", words)
            sub(/.*NCCL CHECK: /, "", words)
            sub(/^=+ /, "", words)
            # Cut off by its time, slow as it is under compute-sanitizer: silent says nothing.
            if ($1 ~ /check$/ && $1 != "check" && $9 == "" && $6 ~ /^runs after/ && end[name] != "hangs")
                delete ran[$1, name]
            if ($9 != "") said[$1, name] = short(words, $1 == "check" ? 200 : 90) ", " $8 " s"
        }
        END {
            split("alone ras pointers mode memcheck initcheck check", tools, " ")
            split("`NCCL_DEBUG=WARN`,RAS,`NCCL_CHECK_POINTERS=1`,`NCCL_CHECK_MODE`,memcheck,initcheck,nccl-check", titles, ",")
            head = "| program | alone |"
            line = "| --- | --- |"
            for (t = 1; t <= 7; t++)
                if (any(tools[t])) { head = head " " titles[t] " |"; line = line " --- |" }
            print head "\n" line
            n = 0
            for (name in names) list[++n] = name
            for (i = 1; i <= n; i++) # few: sorted as they are printed
                for (k = i + 1; k <= n; k++)
                    if (list[k] < list[i]) { t = list[i]; list[i] = list[k]; list[k] = t }
            for (i = 1; i <= n; i++) {
                name = list[i]
                row = "| `" name "` | " end[name] " |"
                for (t = 1; t <= 7; t++)
                    if (any(tools[t])) row = row " " cell(tools[t], name) " |"
                print row
            }
        }
        function any(tool,    key, part) {
            for (key in ran) { split(key, part, SUBSEP); if (part[1] == tool) return 1 }
            return 0
        }'
}

# What RAS said of those that still ran when it was asked: the words it has for what is wrong.
ras() {
    awk '
        function flush() { if (asked) print name "\t" words; asked = 0; words = "" }
        /^=== / { flush(); name = $5; plain = ($2 == "programs" && $3 == "plain:" && $4 == "wrong") }
        plain && /^ *RAS  / {
            asked = 1
            if (match($0, /(MISMATCH|INCOMPLETE|TIMEOUT|NOCOMM|DEAD|Communicator ranks have.*)/)) {
                word = substr($0, RSTART, RLENGTH)
                if (index(words, word) == 0) words = words (words == "" ? "" : "; ") word
            }
        }
        END { flush() }' "$folder/check-said.txt"
}

# The right and the repaired ones end with exit code 0 and no word, or have a line of their own.
one_gpu() {
    echo '| program | | alone | nccl-check |'
    echo '| --- | --- | --- | --- |'
    local kind
    for kind in right repaired wrong; do
        {
            newest programs plain "$kind" | sed 's/^/alone\t/'
            newest programs nccl-check "$kind" | sed 's/^/check\t/'
        } | awk -F '\t' -v kind="$kind" '
            { sub(/^error: *$/, "an exit code of its own", $6) }
            $1 == "alone" { end[$5] = $6 ~ /^runs after/ ? "hangs" : $6; next }
            {
                words = $9
                sub(/.*NCCL CHECK: /, "", words)
                gsub(/\|/, "/", words)
                if (kind != "wrong" && end[$5] == "exit code 0" && $6 == "exit code 0" && words == "") {
                    clean++
                    next
                }
                printf "| `%s` | %s | %s | %s |\n", $5, kind, end[$5], words == "" ? "–" : words ", " $8 " s"
            }
            END { if (clean) printf "| %d programs | %s | exit code 0 | exit code 0 and no word |\n", clean, kind }'
    done
}

# --- Transports ----------------------------------------------------------------------------------

transports() {
    echo '| program | NVLink | shared memory | sockets |'
    echo '| --- | --- | --- | --- |'
    {
        newest programs plain wrong | sed 's/^/0\t/'
        newest transports memory wrong | sed 's/^/1\t/'
        newest transports sockets wrong | sed 's/^/2\t/'
    } | awk -F '\t' '
        { end = $6 ~ /^runs after/ ? "hangs" : $6; gsub(/\|/, "/", end); gsub(/0x[0-9a-f]+/, "…", end)
          gsub(/rank [01] and rank [01]/, "ranks 0 and 1", end); names[$5] = 1; ends[$5, $1] = end }
        function differs(name, way) { return ends[name, 0] != "" && ends[name, way] != "" && ends[name, way] != ends[name, 0] }
        END { for (name in names) if (differs(name, 1) || differs(name, 2))
            printf "| `%s` | %s | %s | %s |\n", name, ends[name, 0], ends[name, 1], ends[name, 2] }' | sort
}

# --- Cost -------------------------------------------------------------------------------------------

cost() {
    awk '
        $3 ~ /^[0-9]+$/ { n[$2, $3]++; for (i = 4; i <= 9; i++) took[$2, $3, i, n[$2, $3]] = $i; sizes[$3] = 1 }
        function sort(v, n,    i, k, t) {
            for (i = 1; i <= n; i++) for (k = i + 1; k <= n; k++) if (v[k] < v[i]) { t = v[i]; v[i] = v[k]; v[k] = t }
        }
        # Of all starts; with LESS of what each took more there than in column LESS.
        function median(how, bytes, column, less,    i, v) {
            for (i = 1; i <= n[how, bytes]; i++)
                v[i] = took[how, bytes, column, i] - (less ? took[how, bytes, less, i] : 0)
            sort(v, n[how, bytes])
            return v[int((n[how, bytes] + 1) / 2)]
        }
        function row(bytes, what, column,    without, more) {
            without = median("nccl-check", bytes, column); more = median("nccl-check", bytes, column + 3, column)
            printf "| %d | %s | %.2f | %.2f | %.2f µs, %.1f %% | %.2f | %.2f µs |\n", bytes, what, without,
                median("nccl-check", bytes, column + 3), more, more / without * 100,
                median("plain", bytes, column), median("plain", bytes, column + 3, column)
        }
        END {
            print "| bytes | µs of | not checked | checked | the checks cost | started without nccl-check | and measured the same way |"
            print "| --- | --- | --- | --- | --- | --- | --- |"
            for (s in sizes) list[++m] = s + 0
            sort(list, m)
            for (i = 1; i <= m; i++) {
                row(list[i], "the call", 4)
                row(list[i], "call and wait", 5)
                row(list[i], "one of 20 queued", 6)
            }
        }' "$folder/check-cost.txt"
}

lessons() {
    echo '| program | ends | nccl-check says |'
    echo '| --- | --- | --- |'
    newest lessons nccl-check right |
        awk -F '\t' '{ gsub(/\|/, "/", $8); printf "| %s | %s | %s |\n", $4, $5, $8 == "" ? "nothing" : $8 }'
}

echo '## The programs of tests/check'
echo
counts
if [ -s "$folder/check-said.txt" ] && has programs plain wrong; then
    echo
    echo '## What says something about a wrong program'
    echo
    echo '– is: not a word. An empty field of RAS: the program had ended, or no communicator was there to be asked.'
    echo 'Of memcheck and initcheck: it was cut off, though alone it ends. Under them a start takes 15 to 28 s;'
    echo 'what hangs was given 28 or 30.'
    echo
    says
fi
newer=$folder/check-runs-one-gpu.tsv
if [ -s "$newer" ]; then
    echo
    echo '## Newer programs, on one GPU'
    echo
    cat <<'END'
Two ranks share it (NCCL 2.30.7, `NCCL_MULTI_RANK_GPU_ENABLE=1`). – is: not a word.
END
    echo
    (runs=$newer one_gpu)
fi
if has transports memory wrong; then
    echo
    echo '## Where it depends on the way that the data takes'
    echo
    echo 'Those that end otherwise there; all the others end alike in all three ways. A race, and memory that was'
    echo 'given back, may end otherwise in the next run, too.'
    echo
    transports
fi
if has lessons nccl-check right; then
    echo
    echo '## The lessons and other programs under nccl-check'
    echo
    lessons
fi
if [ -s "$folder/check-cost.txt" ]; then
    echo
    echo '## What it costs'
    echo
    cat <<END
An all-reduce on two GPUs, \`check-cost.c\`, started $(awk '$1 > most { most = $1 } END { print most }' "$folder/check-cost.txt") times with nccl-check and as often without, in turn; medians of
the starts. *Not checked* and *checked* are of the same starts, in turn within each: \`pncclAllReduce\` goes
past the checks. The last two columns are of the starts without nccl-check. There the two ways are one, and
their difference is what this measurement is worth.
END
    echo
    cost
fi
