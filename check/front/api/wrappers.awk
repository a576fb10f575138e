# Makes the front's functions of a list: each row becomes a macro of its kind, with the function's
# name, its parameters, what else the kind needs, and its arguments.
function trim(s) {
    gsub(/^[ \t]+|[ \t]+$/, "", s)
    return s
}

# "const void *buf, int counts[]" -> "buf, counts"
function names_of(parameters, list, n, i, name, out) {
    n = split(parameters, list, ",")
    for (i = 1; i <= n; i++) {
        name = trim(list[i])
        sub(/\[\]$/, "", name)
        sub(/.*[ *]/, "", name)
        out = out (i > 1 ? ", " : "") name
    }
    return out
}

BEGIN { FS = "|" }

/^# include / {
    print "/* Made of a list by wrappers.awk. */"
    sub(/^# include /, "")
    print "#include \"" $0 "\""
    next
}

/^#/ || !/\|/ { next }

{
    kind = trim($2)
    if (kind == "by hand" || kind == "straight")
        next
    where = trim($5)
    more = trim($4)
    if (where != "")
        print "#if " where
    given = trim($3) == "" ? "" : ", (" trim($3) ")"
    arguments = names_of($3)
    print kind "(" trim($1) given (more == "" ? "" : ", " more) (arguments == "" ? "" : ", " arguments) ")"
    if (where != "")
        print "#endif"
}
