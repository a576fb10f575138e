#!/usr/bin/env bash
# Runs the programs of pytorch.py on two ranks, each with several tools, and prints a line for each
# run: the tool, the program, its exit code, how many ranks have ended well, and what was said.
#
#     results/measure/pytorch.sh FOLDER [TOOL…]      TOOL: alone check detail recorder
#
#   JOBS=4   programs at a time    LIMIT=60   seconds for each    ONLY='skip count'   only these
#
# Outputs lie in FOLDER, and what the flight recorder's files say in FOLDER/recorder-NAME.trace.
set -euo pipefail
folder=${1:?results/measure/pytorch.sh FOLDER [TOOL…]}
shift
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
[ $# -gt 0 ] || set -- alone check detail recorder
mapfile -t programs < <(if [ -n "${ONLY:-}" ]; then tr ' ' '\n' <<<"$ONLY"; else python3 "$here/pytorch.py" --list; fi)

one() { # TOOL PROGRAM PORT
    local tool=$1 program=$2 out=$folder/$1-$2.txt status=0 before=()
    local traces=$folder/traces-$2
    case $tool in
    check) before=("$here/../../check/nccl-check") ;;
    detail) before=(env TORCH_DISTRIBUTED_DEBUG=DETAIL) ;;
    recorder)
        mkdir -p "$traces"
        before=(env TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1
            TORCH_FR_DUMP_TEMP_FILE="$traces/trace_")
        ;;
    esac
    timeout -k 2 "${LIMIT:-60}" "${before[@]}" torchrun --nproc_per_node=2 --master_port="$3" \
        "$here/pytorch.py" "$program" >"$out" 2>&1 || status=$?
    [ "$tool" != recorder ] ||
        timeout 40 torchfrtrace --prefix trace_ "$traces" >"$folder/$tool-$program.trace" 2>&1 || true
    printf '%-9s %-22s exit %-3s ended %s  %s\n' "$tool" "$program" "$status" \
        "$(grep -c '^ended' "$out" || true)" "$(grep -m 1 -h 'NCCL CHECK' "$out" || true)"
}
export -f one
export folder here

port=21000
# shellcheck disable=SC2016 # bash -c expands them
for tool in "$@"; do
    for program in "${programs[@]}"; do
        echo "$tool $program $((port += 7))"
    done
done | xargs -P "${JOBS:-4}" -L 1 bash -c 'one "$0" "$1" "$2"'
