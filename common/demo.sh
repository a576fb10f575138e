#!/usr/bin/env bash
# make demo: runs every lesson on 4 ranks, or on as many as there are GPUs, and says how many ended well.
#
# BACKEND is cpu or cuda; RANKS, if set, is the number of ranks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ranks=${RANKS:-4}
if [ "$BACKEND" = cuda ]; then
    gpus=$(nvidia-smi -L | grep -c '^GPU')
    ranks=${RANKS:-$((gpus < 4 ? gpus : 4))}
else
    # shellcheck source=one-machine.sh
    source common/one-machine.sh
fi

# What a lesson is started with; {} is its program.
declare -A starts=(
    [06]='mpirun -np {ranks} {} --op all_reduce'
    [16]='CPU_DEVICES={ranks} {}'
    [23]='mpirun -np {ranks} {} --fault leave --join'
)

rule=$(printf '%.0s─' {1..90})
lessons=0
failed=()
not_here=() # exit code 2: it needs more ranks
begun=$SECONDS
while IFS=$'\t' read -r folder program _ _ question; do
    start=${starts[${folder%%-*}]:-'mpirun -np {ranks} {}'}
    start=${start/mpirun/mpirun --oversubscribe}
    start=${start//'{ranks}'/$ranks}
    start=${start//'{}'/$folder/$program}
    if [ ! -x "$folder/$program" ] && [ -f "$folder/$program.cu" ]; then
        continue # make has said what it needs
    fi
    lessons=$((lessons + 1))
    printf '\n%s\n%s\n%s\n\n$ %s\n' "$rule" "$(sed -n '1s/^# //p' "$folder/README.md")" "$question" "$start"
    code=0
    timeout 300 bash -c "$start" </dev/null || code=$?
    case $code in
    0) ;;
    2) not_here+=("$folder") ;;
    *) failed+=("$folder") ;;
    esac
done < <(common/lessons.sh)

printf '\n%s\n%s of %s OK' "$rule" $((lessons - ${#failed[@]} - ${#not_here[@]})) "$lessons"
if [ ${#failed[@]} -gt 0 ]; then
    printf '; failed: %s' "${failed[*]}"
fi
[ ${#not_here[@]} -eq 0 ] || printf '; not with %s rank%s: %s' "$ranks" "$([ "$ranks" -eq 1 ] || echo s)" "${not_here[*]}"
printf ' (%s s)\n' $((SECONDS - begun))
[ "$BACKEND" != cpu ] || echo 'This was the CPU build: its times say nothing about GPUs.'
[ ${#failed[@]} -eq 0 ] || echo 'A lesson has failed: errors.md says what its message means.'
echo 'Now read common/cuda.md, then 00-nccl-hello-world/README.md.'
[ ${#failed[@]} -eq 0 ]
