#!/usr/bin/env bash
# The tables of wrong-programs.md and nccl-check.md, from what check.sh wrote into a folder: results/measure/check-tables.sh FOLDER
set -euo pipefail

folder=${1:?which folder?}
runs=$folder/runs.tsv

# The newest run of each counts. Under compute-sanitizer a program starts so slowly that it says nothing if it was cut
# off without a word within 65 s; and initcheck makes ncclCommWindowRegister fail.
newest() { # HOW KIND
    [ -s "$runs" ] || return 0
    awk -F '\t' -v how="$1" -v kind="$2" '
        $1 != how || $2 != kind { next }
        how ~ /^(mem|init)check$/ && $7 == "" && ($4 == "hangs" && $5 < 65 || $4 ~ /unspecified launch failure/) { next }
        { line[$3] = $0 }
        END { for (name in line) print line[name] }' "$runs" | sort -t "$(printf '\t')" -k 3
}

has() { # HOW KIND
    [ -n "$(newest "$@")" ]
}

# For awk: the first n of v, in order. They are few.
sort='
        function sort(v, n,    i, k, t) {
            for (i = 1; i <= n; i++) for (k = i + 1; k <= n; k++) if (v[k] < v[i]) { t = v[i]; v[i] = v[k]; v[k] = t }
        }'

# --- How many ------------------------------------------------------------------------------

# How the wrong programs end by themselves, by class.
ends() {
    echo '| class | programs | hang | exit code 0 | wrong data, which only its own check sees | a call returns an error | crash | ended otherwise |'
    echo '| --- | --- | --- | --- | --- | --- | --- | --- |'
    newest plain wrong | awk -F '\t' '
        { class = $3; sub(/-.*/, "", class); end = $4; sub(/:.*/, "", end); if (end ~ /^exit code [^0]/) end = "ended"
          n[class]++; n["all"]++; count[class, end]++; count["all", end]++ }
        END { split("hangs|exit code 0|wrong data|error|crash|ended", ends, "|")
            for (i = 1; i <= split("mismatch missing deadlock race memory setup failed left all", order, " "); i++) if (n[order[i]]) {
                printf "| %s | %d |", order[i], n[order[i]]
                for (e = 1; e <= 6; e++) printf " %s |", count[order[i], ends[e]]
                print "" } }'
}

# What each tool says: of wrong programs with line, rank and class right, of right ones nothing. RAS spoke in the same
# runs as WARN, and a rank in what it said is not WARN's.
tools() {
    echo '| tool | wrong programs | it speaks of | and names a line of the mistake | and its rank | and its class | within | right and repaired programs | it speaks of |'
    echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- |'
    local how
    for how in plain mode own memcheck initcheck nccl-check; do
        ! { has "$how" wrong || has "$how" right; } || { newest "$how" wrong; newest "$how" repaired; newest "$how" right; } |
            awk -F '\t' -v how="$how" '
                FILENAME != "-" { if ($3 != "") ras[$2] = 1; next }
                $2 == "wrong" { n++; spoke += $7 != ""; line += $7 != "" && $8 == "line"
                    rank += $7 != "" && $10 == "rank" && !(how == "plain" && $3 in ras)
                    both += $7 != "" && $8 == "line" && $9 == "class"; if ($6 > most) most = $6 + 0; next }
                { right++; accused += $7 != "" }
                END { name["plain"] = "`NCCL_DEBUG=WARN`"; name["mode"] = "`NCCL_CHECK_MODE=DEBUG_GLOBAL`"
                    name["own"] = "`WARN`, `CHECK_POINTERS` and `CHECK_MODE` at the same time"
                    printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", name[how] ? name[how] : how, n, n ? spoke + 0 : "",
                        n ? line + 0 : "", n ? rank + 0 : "", n ? both + 0 : "",
                        spoke ? sprintf("%.1f s", most) : "", right ? right : "", right ? accused + 0 : "" }' <(ras wrong) -
        [ "$how" != plain ] || ras_row
    done
    echo
    echo 'The seconds count from mpirun on; to start takes two to four of them.'
}

# Of the wrong ones that hang, and of the right ones that still ran when it was asked. RAS knows no lines and no classes.
ras_row() {
    {
        newest plain wrong | awk -F '\t' '$4 == "hangs" { print "hangs\t" $3 }'
        grep '^// rank: ' "$(dirname "$0")"/../../tests/check/wrong/*.c | sed 's|.*/||; s|\.c:// rank: |\t|; s/^/rank\t/'
        ras wrong
        ras right
        ras repaired
    } |
        awk -F '\t' '
            $1 == "hangs" { hangs[$2]; n++; next }
            $1 == "rank" { rank[$2] = $3; next }
            $1 != "wrong" { right++; accused += $3 != ""; next }
            $3 != "" && $2 in hangs {
                spoke++; all = $4 != ""
                if (rank[$2] != "all") for (i = split(rank[$2], wanted, " "); i > 0; i--) if (index($4 " ", " " wanted[i] " ") == 0) all = 0
                named += all
                since = $3; sub(/.*, /, "", since); if (since + 0 > most) most = since + 0
            }
            END { if (most) printf "| RAS, of those that hang, and of right ones that run for 4 s | %d | %d | 0 | %d | 0 | %.1f s | %s | %s |\n",
                n, spoke, named, most, right, right ? accused + 0 : "" }'
}

# --- What says something -----------------------------------------------------------------------

# One line a program: name, how it ended alone, and for each tool the seconds and the words.
says() {
    local how
    {
        for how in plain mode memcheck initcheck nccl-check; do newest "$how" wrong; done
        ras wrong | sed 's/^wrong/ras/'
    } | awk -F '\t' "$sort"'
        function cell(tool, name) {
            if (!((tool, name) in ran)) return " "
            if (!((tool, name) in said)) return "–"
            if (tool == "plain" && ("ras", name) in said) sub(/R/, "", right[tool, name]) # it was RAS
            return (right[tool, name] == "" ? "" : "`" right[tool, name] "` ") said[tool, name]
        }
        function short(words, most) {
            gsub(/\|/, "/", words)
            return length(words) > most ? substr(words, 1, most) "…" : words
        }
        { used[$1] }
        $1 == "ras" { ran["ras", $2] = 1; if ($3 != "") said["ras", $2] = $3; next }
        {
            name = $3; ran[$1, name] = 1; names[name]
            if ($1 == "plain") end[name] = $4
            words = $7
            sub(/.*NCCL WARN /, "", words)
            sub(/.*NCCL CHECK: /, "", words)
            sub(/^=+ /, "", words)
            right[$1, name] = ($8 == "line" ? "L" : "") ($10 == "rank" ? "R" : "") ($8 == "line" && $9 == "class" ? "C" : "")
            if ($7 != "") said[$1, name] = short(words, $1 == "nccl-check" ? 200 : 90) ", " $6 " s"
        }
        END {
            last = split("plain ras mode memcheck initcheck nccl-check", tools, " ")
            split("`NCCL_DEBUG=WARN`,RAS,`NCCL_CHECK_MODE`,memcheck,initcheck,nccl-check", titles, ",")
            head = "| program | alone |"
            line = "| --- | --- |"
            for (t = 1; t <= last; t++)
                if (tools[t] in used) { head = head " " titles[t] " |"; line = line " --- |" }
            print head "\n" line
            for (name in names) list[++n] = name
            sort(list, n)
            for (i = 1; i <= n; i++) {
                name = list[i]
                row = "| `" name "` | " end[name] " |"
                for (t = 1; t <= last; t++)
                    if (tools[t] in used) row = row " " cell(tools[t], name) " |"
                print row
            }
        }'
}

# ras KIND: KIND, program, the words that RAS had for what is wrong when it was asked last, and since when, the ranks.
# Only of programs that still ran when it was asked.
ras() {
    awk -v kind="$1" '
        function answer() { # ends
            if (words != before) { since = at; before = words }
            words = ""
        }
        function flush() {
            if (asked) { answer(); print kind "\t" name "\t" before (before == "" ? "" : ", " since " s") "\t" ranks }
            asked = 0; words = before = ""
        }
        /^=== / { flush(); name = $4; plain = ($2 == "plain:" && $3 == kind) }
        plain && /^ *[0-9.]+ +RAS  asked$/ { if (asked) answer(); asked = 1; at = $1; ranks = ""; next }
        plain && asked && /RAS  / && match($0, /(MISMATCH|INCOMPLETE|TIMEOUT|NOCOMM|DEAD|Communicator ranks have.*)/) {
            word = substr($0, RSTART, RLENGTH)
            if (index(words, word) == 0) words = words (words == "" ? "" : "; ") word
        }
        plain && asked && /RAS  .* Rank [0-9]+ / { match($0, /Rank [0-9]+/); ranks = ranks " " substr($0, RSTART + 5, RLENGTH - 5) }
        END { flush() }' "$folder/said.txt"
}

# --- Transports ----------------------------------------------------------------------------------

transports() {
    echo '| program | NVLink | shared memory | sockets |'
    echo '| --- | --- | --- | --- |'
    { newest plain wrong; newest memory wrong; newest sockets wrong; } | awk -F '\t' '
        { end = $4; gsub(/\|/, "/", end); gsub(/0x[0-9a-f]+/, "…", end)
          gsub(/rank [01] and rank [01]/, "ranks 0 and 1", end); gsub(/[0-9]+ bytes instead of [0-9]+/, "… bytes", end); names[$3]; ends[$3, $1] = end }
        function differs(name, way) { return ends[name, "plain"] != "" && ends[name, way] != "" && ends[name, way] != ends[name, "plain"] }
        END { for (name in names) if (differs(name, "memory") || differs(name, "sockets"))
            printf "| `%s` | %s | %s | %s |\n", name, ends[name, "plain"], ends[name, "memory"], ends[name, "sockets"] }' | sort
}

# --- Cost -------------------------------------------------------------------------------------------

cost() {
    awk "$sort"'
        $3 ~ /^[0-9]+$/ { n[$2, $3]++; for (i = 4; i <= 9; i++) took[$2, $3, i, n[$2, $3]] = $i; sizes[$3] = 1 }
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

# The rounds' medians, and in all.
times() {
    echo '| lesson | seconds without | with nccl-check | difference | times under 100 µs | with nccl-check | longer times | with nccl-check | these without, from round to round |'
    echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- |'
    awk -F '\t' "$sort"'
        # Of time I of a lesson (0: the seconds) in all rounds; spread: the largest less the smallest.
        function median(how, lesson, i,    r, n, v, parts) {
            for (r = 1; r <= rounds; r++) {
                split(times[how, lesson, r], parts, " ")
                v[++n] = i == 0 ? took[how, lesson, r] : parts[i] + 0
            }
            sort(v, n)
            spread = v[n] - v[1]
            return v[int((n + 1) / 2)]
        }
        function mean(long) { return n[long] ? sprintf("%d | %+.1f %%", n[long], more[long] / n[long] * 100) : " | " }
        { if ($1 > rounds) rounds = $1 + 0
          took[$2, $3, $1] = $5 / 1000; times[$2, $3, $1] = $6
          if (!($3 in known)) { known[$3]; name[++m] = $3 }
          if ($4 != 0) bad[$3] = " (exit code " $4 ")" }
        END {
            for (l = 1; l <= m; l++) {
                lesson = name[l]
                a = median("plain", lesson, 0); b = median("nccl-check", lesson, 0)
                sum_a += a; sum_b += b
                split("", n); split("", more); apart = 0
                for (i = split(times["plain", lesson, 1], parts, " "); i >= 1; i--) {
                    without = median("plain", lesson, i); long = without >= 100
                    n[long]++; if (long) apart += spread / without
                    more[long] += median("nccl-check", lesson, i) / without - 1
                }
                printf "| %s%s | %.2f | %.2f | %+.1f %% | %s | %s | %s |\n", lesson, bad[lesson], a, b, (b / a - 1) * 100, mean(0), mean(1),
                    n[1] ? sprintf("%.1f %%", apart / n[1] * 100) : ""
            }
            printf "| all | %.2f | %.2f | %+.1f %% | | | | | |\n", sum_a, sum_b, (sum_b / sum_a - 1) * 100
        }' <(sort -t "$(printf '\t')" -k 3,3 "$folder/check-times.tsv")
}

lessons() {
    echo '| program | ends | nccl-check says |'
    echo '| --- | --- | --- |'
    awk -F '\t' '{ gsub(/\|/, "/", $3); printf "| %s | %s | %s |\n", $1, $2, $3 == "" ? "nothing" : $3 }' "$folder/check-lessons.tsv"
}

if has plain wrong; then
    echo '## What becomes of a wrong program'
    echo
    ends
fi
if [ -s "$runs" ]; then
    echo
    echo '## What each tool says of the programs of tests/check'
    echo
    tools
fi
if has plain wrong; then
    echo
    echo '## Program by program'
    echo
    cat <<'END'
Before what a tool says stands what is right in it: `L` a line of the mistake, `R` the rank, `C` the class. (Of RAS the
table above counts them.) A dash is: not a word. An empty field of RAS: the program had ended, or no communicator was
there to be asked. Of memcheck and initcheck: the program was cut off before they could say anything, or cannot run
under them.
END
    echo
    says
fi
if has memory wrong; then
    echo
    echo '## Where it depends on the way that the data takes'
    echo
    echo 'Those that end otherwise there; all the others end alike in all three ways. A race, and memory that was'
    echo 'given back, may end otherwise in the next run, too.'
    echo
    transports
fi
if [ -s "$folder/check-lessons.tsv" ]; then
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
if [ -s "$folder/check-times.tsv" ]; then
    echo
    echo '## Lessons with nccl-check and without'
    echo
    echo "Seconds from \`mpirun\` to the prompt, and the times that lessons measure themselves: medians of $(awk '$1 > most { most = $1 } END { print most }' "$folder/check-times.tsv") runs, in turn."
    echo
    times
fi
