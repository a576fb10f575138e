# Whether a list knows all functions that a header declares: awk -f listed.awk LIST HEADER
FNR == 1 { file++ }
file == 1 && !/^#/ && /\|/ {
    split($0, column, "|")
    gsub(/[ \t]/, "", column[1])
    listed[column[1]] = 1
}
file == 1 { next }

# A prototype may stand on several lines: it goes on to the next semicolon or brace.
{ sub(/\/\/.*/, ""); gsub(/\/\*([^*]|\*[^\/])*\*\//, "") }
comment { if (sub(/.*\*\//, "")) comment = 0; else next }
sub(/\/\*.*/, "") { comment = 1 }
/^[ \t]*#/ || directive { directive = /\\$/; next }
{
    n = split(text " " $0, part, /[;{}]/)
    for (i = 1; i < n; i++)
        look(part[i])
    text = part[n]
}
END { exit unknown }

function look(declaration,    name) {
    sub(/^[ \t]+/, "", declaration)
    if (declaration !~ /^[A-Za-z_][A-Za-z0-9_ \t*]*[ \t*](cuda|cublas|nccl)[A-Z][A-Za-z0-9_]*[ \t]*\(/ ||
        declaration ~ /^(typedef|static|return|else)[ \t]/)
        return
    name = declaration
    sub(/[ \t]*\(.*/, "", name)
    sub(/.*[ \t*]/, "", name)
    sub(/(_v2)?(_64)?$/, "", name) # cuBLAS has both with each name
    if (name in listed)
        return
    print ARGV[2] ": " name " does not stand in " ARGV[1] > "/dev/stderr"
    unknown = 1
}
