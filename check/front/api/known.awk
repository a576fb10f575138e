# Whether a list knows all functions that a header declares: awk -f known.awk LIST HEADER
FNR == 1 { file++ }
file == 1 && !/^#/ && /\|/ {
    split($0, column, "|")
    gsub(/[ \t]/, "", column[1])
    known[column[1]] = 1
}
file == 2 && /^[A-Za-z_].*[ *](cuda|cublas|nccl)[A-Z][A-Za-z0-9_]*[ \t]*\(/ && !/^(typedef|static|return)/ {
    name = $0
    sub(/[ \t]*\(.*/, "", name)
    sub(/.*[ *]/, "", name)
    sub(/(_v2)?(_64)?$/, "", name) # cuBLAS has both with each name
    if (name ~ /^(cuda|cublas|nccl)[A-Z]/ && !(name in known)) {
        print ARGV[2] ": " name " does not stand in " ARGV[1] > "/dev/stderr"
        unknown = 1
    }
}
END { exit unknown }
