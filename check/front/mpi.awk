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

# What a modelled clock is told before the call, and behind it.
function clock(name, parameters, way, requests, n) {
    before = behind = ""
    told = 0
    way = name ~ /^(Ib|B)cast$|^(Is|S)catterv?$/ ? "1, root" \
        : name ~ /^(Ig|G)atherv?$|^(Ir|R)educe$/ ? "2, root" : "0, 0"
    if (word[1] == "all") {
        before = "standin_mpi_meets(comm, " way ")"
        if (parameters ~ /MPI_Comm \*newcomm/)
            behind = "result == MPI_SUCCESS && *newcomm != comm ? standin_mpi_made(*newcomm) : (void)0"
    } else if (name ~ /^(Send|Ssend|Rsend|Bsend|Isend|Issend|Irsend|Ibsend)$/) {
        before = "standin_mpi_sends(dest, tag, comm)"
    } else if (name ~ /^Recv$/) {
        before = "standin_mpi_receives(source, tag, comm, &time)"
        behind = before
    } else if (name ~ /^Sendrecv/) {
        behind = "standin_mpi_receives(source, recvtag, comm, &time)"
        before = "standin_mpi_sends(dest, sendtag, comm), " behind
    } else if (name == "Irecv") {
        behind = "standin_mpi_posts(source, tag, comm, *request)"
    } else if (parameters ~ /MPI_Comm comm, MPI_Request \*request$/) {
        behind = "standin_mpi_begins(comm, " way ", *request)"
    } else if (name ~ /^(Wait|Test)/) {
        n = parameters ~ /^int count/ ? "count" : parameters ~ /^int incount/ ? "incount" : "1"
        requests = parameters ~ /requests\[\]/ ? "requests" : "request"
        before = "notes = standin_mpi_notes(" n ", " requests ")"
        behind = "standin_mpi_ended(notes, " n ", " requests ")"
    }
}

# What all ranks of the communicator must give alike: how many bytes, of which type.
function alike(name, parameters) {
    if (name ~ /neighbor|[vw]$/)
        return "MPI_NOT_ALIKE"
    if (name ~ /^i?gather$/)
        return "IS_ROOT(root) ? mpi_data(recvcount, recvtype) : mpi_data(sendcount, sendtype)"
    if (name ~ /^i?scatter$/)
        return "IS_ROOT(root) ? mpi_data(sendcount, sendtype) : mpi_data(recvcount, recvtype)"
    if (parameters ~ /int count, MPI_Datatype type/)
        return "mpi_data(count, type)"
    if (parameters ~ /int recvcount, MPI_Datatype recvtype/)
        return "mpi_data(recvcount, recvtype)"
    if (parameters ~ /int recvcount, MPI_Datatype type/)
        return "mpi_data(recvcount, type)"
    return "MPI_NOT_ALIKE"
}

function tell(what) {
    if (what ~ /&time/ && !told++)
        print "    MPI_Request time = MPI_REQUEST_NULL;"
    if (what ~ /^notes/)
        print "    void *notes = NULL;"
    if (what != "") {
        print "    if (standin_host_blocks)"
        print "        " what ";"
    }
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
    print "    MPI_HERE;"
    if (name ~ /^MPI_Win_(create|allocate)/)
        print "    mpi_window();"
    sends = sends_if = ""
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
        if (word[1] == "in" && wait ~ /^later /) {
            sends = word[2] ", " word[3] ", " word[4]
            sends_if = condition
        }
        call = "mpi_" word[1] "(&at"
        for (k = 2; k <= m; k++)
            call = call ", " word[k]
        print (condition == "" ? "" : "        if (" condition ")\n    ") "        " call ");"
    }
    if (buffers != "")
        print "    }"
    split(wait, word, " ")
    clock(trim($1), parameters)
    collective = wait ~ /^(all|later all) /
    if (collective)
        print "    mpi_collective(&at, " word[word[1] == "all" ? 2 : 3] \
            ", " (parameters ~ /int root,/ ? "root" : "-1") \
            ", " (parameters ~ /MPI_Op op,/ ? "mpi_reduction(op)" : "-1") \
            ", " alike(tolower(substr(name, 5, 1)) substr(name, 6), parameters) ");"
    if (name ~ /^MPI_I?[Ss]catterv$/)
        print "    mpi_parts(root, true, sendcounts, sendtype, recvcount, recvtype);"
    else if (name ~ /^MPI_I?[Gg]atherv$/)
        print "    mpi_parts(root, false, recvcounts, recvtype, sendcount, sendtype);"
    else if (name ~ /^MPI_I?[Aa]llgatherv$/)
        print "    mpi_parts(-1, false, recvcounts, recvtype, sendbuf == MPI_IN_PLACE ? -1 : sendcount, sendtype);"
    if (word[1] == "all")
        print "    mpi_waits_all(&at, &" word[2] ", " (name ~ /^MPI_(Bcast|Scatterv?)$/ ? "root" : "-1") \
            ", " (name ~ /^MPI_(Barrier|Allreduce|Allgather|Alltoall|Reduce_scatter_block)$/ ? "JUDGE_MEETS" : "JUDGE_NO_MESSAGE") ");"
    else if (word[1] == "one")
        print "    mpi_waits_one(&at, &" word[3] ", " word[2] ", " (name ~ /Sendrecv/ ? "JUDGE_MORE" : name ~ /send$/ ? "JUDGE_SENDS" : "JUDGE_RECEIVES") ");"
    else if (word[1] == "any")
        print "    mpi_waits_any(&at);"
    else if (word[1] == "fence")
        print "    mpi_waits_fence(&at, " word[2] ", " word[3] ");"
    if (word[1] ~ /^(later|window|-)$/)
        print "    mpi_speaks();"
    if (name ~ /[Bb]send/)
        print "    mpi_under_way(1);" # the message lies in a buffer, nobody knows how long
    completes = name ~ /^MPI_Win_(fence|complete|unlock|flush|free)/
    if (completes)
        print "    MPI_Win done = " (parameters ~ /MPI_Win \*win/ ? "*win;" : "win;")
    print "    front_depth++;"
    tell(before)
    print "    int result = P" name "(" arguments ");"
    tell(behind)
    print "    front_depth--;"
    if (completes)
        print "    mpi_window_done(done);"
    if (word[1] ~ /^(later|window|-)$/)
        print "    mpi_spoke();"
    if (collective)
        print "    mpi_collective_was(result);"
    if (collective && parameters ~ /MPI_Comm \*newcomm/) {
        print "    if (result == MPI_SUCCESS)"
        print "        mpi_communicator(*newcomm);"
    }
    if (word[1] == "ask")
        print "    mpi_asked(&at, result == MPI_SUCCESS ? *" word[2] " : 1);"
    else if (word[1] == "later" && word[2] == "any")
        print "    mpi_opens(&at, *request, MPI_COMM_NULL, JUDGE_ANY, false);"
    else if (word[1] == "later")
        print "    mpi_opens(&at, *request, " word[3] ", " (word[2] == "all" ? "JUDGE_ONE_OF" : "mpi_peer(" word[2] ")") ", false);"
    else if (word[1] == "window")
        print "    mpi_window_has(&at, win, " (parameters ~ /request$/ ? "*request" : "MPI_REQUEST_NULL") ");"
    else if (word[1] == "-")
        print "    mpi_gives_back();"
    else
        print "    mpi_waited();"
    if (sends != "") {
        print "    if (result == MPI_SUCCESS" (sends_if == "" ? "" : " && (" sends_if ")") ")"
        print "        mpi_sends(*request, " sends ");"
    }
    print "    return result;"
    print "}"
}
