#!/usr/bin/env bash
# Makes a machine for the modelled clock of what lesson 06 measured:
#     mpirun -np 4 06-bandwidth/bandwidth --csv four.csv
#     cpu/machines/make.sh four.csv … >mine.conf
#     NCCL_CPU_CLOCK=./mine.conf mpirun -np 4 …
# NCCL's times come from the files, one for each number of ranks. All else stands as in h200.conf, to
# be replaced by what you know of your machine.
set -euo pipefail

if [ $# -eq 0 ]; then
    echo "usage: make.sh FILE.csv … >MACHINE.conf   (files of bandwidth --csv)" >&2
    exit 2
fi
echo '# NCCL: operation, ranks, bytes, µs'
awk -F, 'FNR == 1 && $1 != "operation" { print "make.sh: " FILENAME " is not of bandwidth --csv" >"/dev/stderr"; exit 1 }
    $2 == "plain" { printf "time %-15s %3d %11d %12.4f\n", $1, $3, $4, $5 }' "$@"
echo
echo '# As h200.conf: replace what you know.'
grep -vE '^(#.*NVIDIA H200|#.*Source of|# What NCCL|measured )' "$(dirname "$0")/h200.conf" |
    sed '/./,$!d'
