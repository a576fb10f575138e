# Makes the front's MPI functions of mpi.list.
function trim(s) {
    gsub(/^[ \t]+|[ \t]+$/, "", s)
    return s
}

# "const void *buf, int counts[]" -> "buf, counts"
function names_of(parameters, list, n, i, name, out) {
    n = split(parameters, list, ",")
    out = ""
    for (i = 1; i <= n; i++) {
        name = trim(list[i])
        sub(/\[\]$/, "", name)
        sub(/.*[ *]/, "", name)
        out = out (i > 1 ? ", " : "") name
    }
    return out
}

BEGIN {
    FS = "|"
    print "/* Made of mpi.list by mpi.awk. */"
    print "#include \"mpi_front.h\""
}

/^#/ || !/\|/ { next }

{
    name = "MPI_" trim($1)
    parameters = trim($2)
    wait = trim($3)
    arguments = names_of(parameters)
    buffers = trim($4)
    print ""
    print "int " name "(" parameters ") {"
    print "    if (front_depth > 0)"
    print "        return P" name "(" arguments ");"
    print "    AT_HERE;"
    if (name ~ /^MPI_Win_(create|allocate)/)
        print "    mpi_window();"
    n = split(buffers, buffer, ";")
    if (buffers != "")
        print "    if (front_on) {"
    for (i = 1; i <= n && buffers != ""; i++) {
        words = trim(buffer[i])
        condition = ""
        if (match(words, / if /)) {
            condition = substr(words, RSTART + 4)
            words = substr(words, 1, RSTART - 1)
        }
        m = split(words, word, " ")
        call = "mpi_" word[1] "(&at"
        for (k = 2; k <= m; k++)
            call = call ", " word[k]
        print (condition == "" ? "" : "        if (" condition ")\n    ") "        " call ");"
    }
    if (buffers != "")
        print "    }"
    split(wait, word, " ")
    if (word[1] == "all")
        print "    mpi_waits_all(&at, &" word[2] ");"
    else if (word[1] == "one")
        print "    mpi_waits_one(&at, &" word[3] ", " word[2] ");"
    else if (word[1] == "any")
        print "    mpi_waits_any(&at);"
    else if (word[1] == "fence")
        print "    mpi_waits_fence(&at, " word[2] ", " word[3] ");"
    if (word[1] ~ /^(later|window|-)$/)
        print "    mpi_speaks();"
    print "    front_depth++;"
    print "    int result = P" name "(" arguments ");"
    print "    front_depth--;"
    if (word[1] == "ask")
        print "    mpi_asked(&at, result == MPI_SUCCESS ? *" word[2] " : 1);"
    else if (word[1] == "later" && word[2] == "any")
        print "    mpi_opens(&at, *request, MPI_COMM_NULL, JUDGE_ANY, false);"
    else if (word[1] == "later")
        print "    mpi_opens(&at, *request, " word[3] ", " (word[2] == "all" ? "JUDGE_ONE_OF" : "mpi_peer(" word[2] ")") ", false);"
    else if (word[1] == "window")
        print "    mpi_keeps();"
    else if (word[1] == "-")
        print "    mpi_gives_back();"
    else
        print "    mpi_waited();"
    print "    return result;"
    print "}"
}
