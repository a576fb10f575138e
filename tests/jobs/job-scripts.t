#!/usr/bin/env bash
# What can be said of the job scripts without running them. Prints TAP.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

count=0
ok() { # ok STATUS NAME
    count=$((count + 1))
    [ "$1" = 0 ] && echo "ok $count - $2" || echo "not ok $count - $2"
}

# The program's name, with hyphens, is the name of its job.
for lesson in [0-9][0-9]-*/; do
    program=$(basename "$lesson"*.c .c)
    script=jobs/${program//_/-}.slurm
    test -f "$script"
    ok $? "$lesson has a job script, $script"
    difference=$(diff <(sed -e "s/=allreduce/=${program//_/-}/" -e '/--time/d' \
        -e "s/02-nccl-allreduce/${lesson%/}/; s/launch allreduce/launch $program/" \
        jobs/allreduce.slurm) <(sed '/--time/d' "$script" 2>&1) | sed 's/^/# /')
    test -z "$difference"
    ok $? "$script differs from allreduce.slurm in names and time only"
    [ -z "$difference" ] || echo "$difference"
    grep -qE "^${lesson%/} +4  OK" jobs/README.md
    ok $? "the summary in jobs/README.md shows ${lesson%/}"
done

! grep -nE -- '^#SBATCH.*(-A|account)' jobs/*.slurm
ok $? "no account is written in"

# Started by hand: one line, and nothing else is tried.
for script in jobs/*.slurm; do
    said=$(env -u SLURM_JOB_ID bash "$script" 2>&1)
    [ $? = 1 ] && [[ $said == "$script: line "*": submit this script: sbatch $script" ]]
    ok $? "$script says that it is for sbatch"
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
ok $? "the job asks for what Leonardo has"

# What lesson 20 says where NCCL is too old, by the expression of all.slurm.
said=$(sed -nE 's/.*"(one_sided needs NCCL [^"]*)".*/\1/p' 20-one-sided/report.h)
expression=$(sed -nE "s/^ *needs=.*sed -nE '(.*)' .*/\1/p" jobs/all.slurm)
test "$(sed -nE "$expression" <<<"$said")" = 'needs NCCL 2.29'
ok $? "all.slurm knows a lesson that needs a newer NCCL"

echo "1..$count"
