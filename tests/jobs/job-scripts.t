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
    difference=$(diff <(sed -e "s/=allreduce/=${program//_/-}/" -e '/--time/d' \
        -e "s/02-nccl-allreduce/$lesson/; s/launch allreduce/launch $program/" \
        jobs/allreduce.slurm) <(sed '/--time/d' "$script" 2>&1) | sed 's/^/# /')
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

# What lesson 20 says where NCCL is too old, by the expression of all.slurm.
said=$(sed -nE 's/.*"(one_sided needs NCCL [^"]*)".*/\1/p' 20-one-sided/report.h)
expression=$(sed -nE "s/^ *needs=.*sed -nE '(.*)' .*/\1/p" jobs/all.slurm)
test "$(sed -nE "$expression" <<<"$said")" = 'needs NCCL 2.29'
result $? "all.slurm knows a lesson that needs a newer NCCL"

finish
