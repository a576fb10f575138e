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

# What a modelled clock is told before the call, and after it.
function clock(name, parameters, way) {
    before = behind = ""
    declared = 0
    way = name ~ /^(Ib|B)cast$|^(Is|S)catterv?$/ ? "1, root" \
        : name ~ /^(Ig|G)atherv?$|^(Ir|R)educe$/ ? "2, root" : "0, 0"
    if (word[1] == "all") {
        before = "STANDIN(mpi_meets)(comm, " way ")"
        if (parameters ~ /MPI_Comm \*newcomm/)
            behind = "result == MPI_SUCCESS && *newcomm != comm ? STANDIN(mpi_made)(*newcomm) : (void)0"
    } else if (name ~ /^(Send|Ssend|Rsend|Bsend|Isend|Issend|Irsend|Ibsend)$/) {
        before = "STANDIN(mpi_sends)(dest, tag, comm)"
    } else if (name ~ /^Recv$/) {
        before = "STANDIN(mpi_receives)(source, tag, comm, &time)"
        behind = before
    } else if (name ~ /^Sendrecv/) {
        behind = "STANDIN(mpi_receives)(source, recvtag, comm, &time)"
        before = "STANDIN(mpi_sends)(dest, sendtag, comm), " behind
    } else if (name == "Irecv") {
        behind = "STANDIN(mpi_posts)(source, tag, comm, *request)"
    } else if (parameters ~ /MPI_Comm comm, MPI_Request \*request$/) {
        behind = "STANDIN(mpi_begins)(comm, " way ", *request)"
    }
}

function tell(what) {
    if (what ~ /&time/ && !declared++)
        print "    MPI_Request time = MPI_REQUEST_NULL;"
    if (what != "") {
        print "    if (OVER_STANDIN)"
        print "        " what ";"
    }
}

BEGIN {
    FS = "|"
    print "/* Made of mpi.list by mpi.awk. */"
    print "#include \"mpi_waits.h\"\n#include \"mpi_requests.h\""
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
    print "    MPI_HERE;"
    if (name ~ /^MPI_Win_(create|allocate)/)
        print "    mpi_under_way(1);" # others use it at any time
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
        if (word[1] == "at") { # the judge is not told
            print "        (void)at;"
            continue
        }
        call = word[1] == "win" ? "mpi_win(&at" : word[1] ~ /vs$/ ? "mpi_uses_vs(&at" : "mpi_uses(&at"
        for (k = 2; k <= m; k++)
            call = call ", " word[k]
        if (word[1] != "win")
            call = call ", " (word[1] ~ /^out/ ? "true" : "false")
        print (condition == "" ? "" : "        if (" condition ")\n    ") "        " call ");"
    }
    if (buffers != "")
        print "    }"
    split(wait, word, " ")
    clock(trim($1), parameters)
    if (word[1] == "all")
        print "    mpi_waits_all(&at, &" word[2] ", " (name ~ /^MPI_(Barrier|Allreduce|Allgather|Alltoall|Reduce_scatter_block)$/ ? "JUDGE_MEETS" : "JUDGE_NO_MESSAGE") ");"
    else if (word[1] == "one")
        print "    mpi_waits_one(&at, &" word[3] ", " word[2] ", " (name ~ /Sendrecv/ ? "JUDGE_MORE" : name ~ /send$/ ? "JUDGE_SENDS" : "JUDGE_RECEIVES") ");"
    else if (word[1] == "any")
        print "    mpi_waits_any(&at);"
    if (name ~ /[Bb]send/)
        print "    mpi_under_way(1);" # the message lies in a buffer, nobody knows how long
    given = " "
    for (i = 1; i <= n && buffers != ""; i++) {
        split(trim(buffer[i]), given_word, " ")
        if (index(given, " " given_word[2] " ") == 0)
            print "    " given_word[2] " = REACHED(" given_word[2] ");"
        given = given given_word[2] " "
    }
    print "    front_depth++;"
    tell(before)
    print "    int result = P" name "(" arguments ");"
    tell(behind)
    print "    front_depth--;"
    if (word[1] == "ask")
        print "    mpi_asked(&at, result == MPI_SUCCESS ? *" word[2] " : 1);"
    else if (word[1] == "later" && word[2] == "any")
        print "    mpi_opens(&at, *request, MPI_COMM_NULL, JUDGE_ANY);"
    else if (word[1] == "later")
        print "    mpi_opens(&at, *request, " word[3] ", " (word[2] == "all" ? "JUDGE_ONE_OF" : "mpi_peer(" word[2] ")") ");"
    else if (word[1] == "-")
        print "    mpi_gives_back();"
    else
        print "    mpi_waited();"
    print "    return result;"
    print "}"
}
