#!/usr/bin/env bash
# What can be said of the job scripts without running them. Prints TAP.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

source tests/lib.bash

# The program's name, with hyphens, is the name of its job.
while IFS=$'\t' read -r lesson program _; do
    script=jobs/${program//_/-}.slurm
    test -f "$script"
    result $? "$lesson has a job script, $script"
    shape='--time'
    [ "$program" != one_process ] || shape='--(time|nodes|ntasks-per-node|cpus-per-task)' # one process, no ranks
    difference=$(diff <(sed -E -e "s/=allreduce/=${program//_/-}/" -e "/$shape/d" \
        -e "s/02-nccl-allreduce/$lesson/; s/launch allreduce/launch $program/" \
        jobs/allreduce.slurm) <(sed -E "/$shape/d" "$script" 2>&1) | sed 's/^/# /')
    test -z "$difference"
    result $? "$script differs from allreduce.slurm in names and time only"
    [ -z "$difference" ] || echo "$difference"
    grep -qE "^$lesson +4  OK" jobs/README.md
    result $? "the summary in jobs/README.md shows $lesson"
done < <(common/lessons.sh)
is "$(common/lessons.sh | cut -f 1)" "$(printf '%s\n' [0-9][0-9]-*)" "README.md's tables have a row for each lesson's folder, in order"

! grep -nE -- '^#SBATCH.*(-A|account)' jobs/*.slurm
result $? "no account is written in"

# Started by hand: one line, and nothing else is tried.
for script in jobs/*.slurm; do
    said=$(env -u SLURM_JOB_ID bash "$script" 2>&1)
    [ $? = 1 ] && [[ $said == "$script: line "*": submit this script: sbatch $script" ]]
    result $? "$script says that it is for sbatch"
done

head=$(sed -n '/^#SBATCH/s/ *#[^S].*//p' jobs/allreduce.slurm)
test "$head" = '#SBATCH --partition=boost_usr_prod
#SBATCH --qos=boost_qos_dbg
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gres=gpu:4
#SBATCH --time=00:05:00
#SBATCH --output=%x-%j.out'
result $? "the job asks for what Leonardo has"

# A job that asks nothing of a cluster: what Slurm would say, said by stand-ins, which tell how they were called.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
cat >"$work/bin/scontrol" <<'END'
#!/bin/sh
case $2 in
hostnames) printf 'lrdn0001\nlrdn0002\n' ;;
job) printf 'JobId=1\n   Command=%s/jobs/x.slurm\nJobId=2\n   Command=%s/jobs/x.slurm\n' "$TOLD" "$TOLD" ;;
esac
END
printf '#!/bin/sh\necho "srun $*"\n' >"$work/bin/srun"
printf '#!/bin/sh\n' >"$work/bin/torchrun"
chmod +x "$work"/bin/*
job() { # SCRIPT [VARIABLE=VALUE…] [-- ARGUMENT…]
    local script=$1 variables=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        variables+=("$1")
        shift
    done
    [ $# = 0 ] || shift
    (cd "$work" && env PATH="$work/bin:/usr/bin:/bin" MODULES= SLURM_JOB_ID=123456 SLURM_JOB_NUM_NODES=2 \
        SLURM_JOB_NODELIST='lrdn000[1-2]' SLURM_CPUS_PER_TASK=32 SLURM_GPUS_ON_NODE=4 TOLD="$PWD/nowhere" \
        "${variables[@]}" timeout 60 bash "$script" "$@" 2>&1)
}

# The README's table has the command that pytorch.slurm runs.
said=$(job "$PWD/jobs/pytorch.slurm" COURSE="$PWD")
# shellcheck disable=SC2016 # what the README has between backticks
expected=$(sed -nE 's/^\| two nodes .*`(srun --nodes=2 --ntasks=2 .*)` \|$/\1/p' jobs/README.md |
    sed -E 's/\\\|/|/; s/\$SLURM_JOB_ID/123456/; s/\$\(scontrol[^)]*\)/lrdn0001/; s/\$\(\(.*\)\)/23456/; s/ allreduce.py//')
said=${said/ --kill-on-bad-exit=1/}
is "${said%" $PWD"/*}" "$expected" "pytorch.slurm starts one torchrun a node, as jobs/README.md has it"
is "${said##* }" "$PWD/02-nccl-allreduce/allreduce.py" "the twin of lesson 02, if none is named"
said=$(job "$PWD/jobs/pytorch.slurm" COURSE="$PWD" -- 10-data-parallel --steps 3)
[[ $said == *" $PWD/10-data-parallel/data_parallel.py --steps 3" ]]
result $? "a lesson and options are passed on"
said=$(job "$PWD/jobs/pytorch.slurm" COURSE="$PWD" CHECK=yes)
[[ $said == srun*" $PWD/check/nccl-check torchrun --nnodes=2 "* ]]
result $? "CHECK=yes: the checks before torchrun"
said=$(job "$PWD/jobs/pytorch.slurm" COURSE="$PWD" CHECK=no)
[[ $said == srun*" --kill-on-bad-exit=1 torchrun --nnodes=2 "* ]]
result $? "CHECK=no: none"
said=$(job "$PWD/jobs/pytorch.slurm" COURSE="$PWD" -- 06-bandwidth)
[ $? = 1 ] && [[ $said == "ERROR: lesson 06-bandwidth has no Python program: 00-nccl-hello-world/hello.py "* ]]
result $? "a lesson without a twin is refused, and those with one are named"
mkdir "$work/plain" && ln -s /usr/bin/{env,timeout,bash,sed,head,find,dirname} "$work/plain"
said=$(job "$PWD/jobs/pytorch.slurm" COURSE="$PWD" PATH="$work/plain")
[ $? = 1 ] && [[ $said == "ERROR: no torchrun here: activate an environment with PyTorch before sbatch"* ]]
result $? "no torchrun: says so"

# Where the course is: by scontrol, also if it tells of a whole array, and by COURSE, which comes first.
said=$(job "$PWD/jobs/pytorch.slurm" TOLD="$PWD")
[[ $said == srun*"$PWD/02-nccl-allreduce/allreduce.py" ]]
result $? "scontrol tells where the course is"
cp jobs/pytorch.slurm "$work/mine.slurm"
said=$(job "$work/mine.slurm" COURSE="$PWD")
[[ $said == srun*"$PWD/02-nccl-allreduce/allreduce.py" ]]
result $? "a copy finds the course by COURSE"

# The array: as many ranges as jobs, each a size further, up to what the lesson ends with.
sed -e '/^load_modules/,/^build/d; s/^launch/echo/' jobs/sizes.slurm >"$work/sizes.slurm"
last=$(sed -nE 's/^#SBATCH --array=0-([0-9]+)%.*/\1/p' jobs/sizes.slurm)
all=$(for ((i = 0; i <= last; i++)); do job "$work/sizes.slurm" COURSE="$PWD" SLURM_ARRAY_TASK_ID=$i; done |
    sed -E 's/.*--min (.*) --max (.*)/\1 \2/' | tr ' ' '\n' | numfmt --from=iec | xargs)
steps=1 before=0
for size in $all; do
    [ "$before" = 0 ] || [ "$size" -ge $((2 * before)) ] || steps=0
    before=$size
done
test "$steps $before" = "1 $((1 << 30))"
result $? "sizes.slurm: the ranges follow one another up to 1 GiB ($all)"
said=$(job "$work/sizes.slurm" COURSE="$PWD" SLURM_ARRAY_TASK_ID=$((last + 1)))
[ $? = 2 ] && [[ $said == "sizes.slurm: there is no range $((last + 1))"* ]]
result $? "a job too many is refused"

# Modules of the shell are put away before those of the job come, unless none are asked for.
loaded() { (MODULES=$1; module() { echo "$*"; }; source jobs/leonardo.sh; load_modules) | xargs; }
is "$(loaded 'a/1 b/2')" 'purge load a/1 load b/2' "the job's modules replace those of the shell"
is "$(loaded '')" '' "MODULES= leaves the modules alone"

# What lesson 20 says where NCCL is too old, by the expression of all.slurm.
said=$(sed -nE 's/.*"(one_sided needs NCCL [^"]*)".*/\1/p' 20-one-sided/report.h)
expression=$(sed -nE "s/^ *needs=.*sed -nE '(.*)' .*/\1/p" jobs/all.slurm)
test "$(sed -nE "$expression" <<<"$said")" = 'needs NCCL 2.29'
result $? "all.slurm knows a lesson that needs a newer NCCL"

finish
