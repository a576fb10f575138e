#!/usr/bin/env bash
# The job scripts on a real Slurm: two nodes of Leonardo's shape on this machine, where two
# users submit the scripts as they stand, built for the CPU. Prints TAP.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
site=/run/leonardo
count=0

# ok STATUS NAME [FILE…]: one test; if it failed, the files are shown.
ok() {
    local status=$1 name=$2
    shift 2
    count=$((count + 1))
    if [ "$status" = 0 ]; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        for file in "$@"; do
            echo "# --- $file"
            sed 's/^/# /' "$file" 2>&1
        done
    fi
}

# --- On this machine: bring the cluster up, and see that nothing of it stays -----------

# state_of_machine: what the cluster must leave as it was.
state_of_machine() {
    cksum /etc/hosts /etc/passwd /etc/group
    ip -brief link
    ip netns list
    find /run /etc/slurm -maxdepth 1 2>/dev/null | sort
}

# left_over PID: the processes of the cluster that tests/jobs/slurm/cluster started as PID.
left_over() {
    grep -ls " - tmpfs leonardo-$1 " /proc/[0-9]*/mountinfo
}

# interrupted SIGNAL: the cluster, killed while a job is under way, leaves nothing.
interrupted() {
    local marker cluster waited=0
    marker=$(mktemp)
    # shellcheck disable=SC2016
    env --default-signal=INT timeout 300 env --default-signal=INT \
        bash -c 'echo $$ >"$1"; exec "$2" bash -c "srun -A t -p boost_usr_prod \
            -q boost_qos_dbg -N 2 sleep 50 & sleep 1; echo up >>\$0; wait" "$1"' \
        bash "$marker" "$here/slurm/cluster" >/dev/null 2>&1 &
    until grep -q up "$marker" || [ $waited = 200 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    cluster=$(head -n 1 "$marker")
    [ -n "$(left_over "$cluster")" ]
    ok $? "a cluster is up, to be ended by SIG$1"
    kill -s "$1" "$cluster"
    { wait $!; } 2>/dev/null
    waited=0
    while [ -n "$(left_over "$cluster")" ] && [ $waited -lt 50 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    [ -z "$(left_over "$cluster")" ]
    ok $? "SIG$1 leaves no process of the cluster"
    rm -f "$marker"
}

if [ "${1:-}" != --inside ]; then
    if ! reason=$("$here/slurm/cluster" --check 2> >(sed 's/^/# /' >&2)); then
        echo "1..0 # SKIP $reason"
        exit 0
    fi
    make -s -C "$top" BACKEND=cpu cpu-flags >/dev/null
    before=$(state_of_machine)
    counter=$(mktemp)
    echo 0 >"$counter"
    timeout -k 20 "${JOBS_TEST_SECONDS:-1500}" "$here/slurm/cluster" \
        "$here/jobs.t" --inside "$counter"
    status=$?
    count=$(cat "$counter")
    [ $status = 0 ]
    ok $? "the tests on the cluster ran to their end (exit code $status)"
    for signal in INT TERM KILL; do
        interrupted $signal
    done
    after=$(state_of_machine)
    [ "$before" = "$after" ]
    ok $? "network, namespaces, /etc and /run are as they were" \
        <(diff <(echo "$before") <(echo "$after"))
    rm -f "$counter"
    echo "1..$count"
    exit 0
fi

# --- On the login node -----------------------------------------------------------------

end=$((SECONDS + 1300)) # no wait goes on past this
lessons=()
for lesson in "$top"/[0-9][0-9]-*/; do
    lessons+=("$(basename "$lesson")")
done
declare -A id # the job numbers, by the names of the cases

# as USER FOLDER COMMAND…: in a login shell of that user.
as() {
    local user=$1 folder=$2
    shift 2
    (cd "$folder" && exec setpriv --reuid "$user" --regid "$user" --clear-groups \
        env -i HOME="$site/home/$user" USER="$user" PATH=/usr/local/bin:/usr/bin:/bin \
        MODULEPATH="${modulepath:-$site/modules}" OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_pml=ob1 \
        HWLOC_COMPONENTS=-linuxio HWLOC_PLUGINS_PATH=/nowhere \
        bash -lc '"$@"' bash "$@")
}

# What a user types once: here the account.
settings=$site/leonardo-settings
echo 'export SBATCH_ACCOUNT=tra26_nccl' >$settings

# submit CASE [VARIABLE=VALUE…] ARGUMENTS OF SBATCH…: from a folder of the case's own, with
# the CPU build unless a variable says otherwise. All build the same library, whose objects are there. The
# lesson is compiled, in a hurry.
quick=(BACKEND=cpu MPICC="$site/mpicc" CFLAGS='-O0 -g')
user=teacher
submit() {
    local case=$1 folder variables=("${quick[@]}")
    shift
    folder=$site/home/$user/$case
    [ -d "$folder" ] || install -d -o "$user" -g "$user" "$folder"
    while [[ ${1:-} == [A-Z]*=* ]]; do
        variables+=("$1")
        shift
    done
    # shellcheck disable=SC2016
    id[$case]=$(as "$user" "$folder" env "${variables[@]}" bash -c 'source "$1"; shift; exec "$@"' \
        bash "$settings" sbatch --parsable "$@" 2>"$site/refused-$case")
}

declare -A described # what scontrol says of the jobs that are over, by their numbers

field() { # field CASE NAME: of scontrol's description of the job; a folder may have spaces in it
    local line=${described[${id[$1]}]:-$(scontrol show job --oneliner "${id[$1]}")}
    [[ $line =~ (^| )$2=(.*) ]] || return 1
    line=${BASH_REMATCH[2]}
    [[ ! $line =~ ' '[A-Za-z/:]+= ]] || line=${line%%"${BASH_REMATCH[0]}"*}
    echo "$line"
}

output_of() {
    field "$1" StdOut
}

# finish: until no job is queued, running or completing. A job that hangs is cancelled.
finish() {
    local line queue job state time
    while queue=$(squeue -h -o '%i %t %M') && [ -n "$queue" ]; do
        if [ $SECONDS -ge $end ]; then
            squeue | sed 's/^/# gave up waiting for /'
            scancel --state=PENDING --user=teacher,student
            scancel --state=RUNNING --user=teacher,student
            return 1
        fi
        while read -r job state time; do
            if [ "$state" = R ] && [[ $time =~ ^([0-9]+): ]] && ((BASH_REMATCH[1] > 4)); then
                echo "# job $job hangs, it is cancelled"
                scancel "$job"
            fi
        done <<<"$queue"
        sleep 1
    done
    while read -r line; do
        [[ ! $line =~ ^JobId=([0-9]+) ]] || described[${BASH_REMATCH[1]}]=$line
    done < <(scontrol show job --oneliner)
}

# ended CASE STATE EXIT_CODE: how a job ended, and that it left only its output behind.
ended() {
    local output folder state
    output=$(output_of "$1")
    state="$(field "$1" JobState) $(field "$1" ExitCode)"
    [ "$state" = "$2 $3" ]
    ok $? "$1: $2, exit code $3" <(echo "$state") "$output" "$site/refused-$1"
    folder=$(field "$1" WorkDir)
    # A job that was cancelled has a moment to clean up.
    for _ in {1..40}; do
        [ -n "$(find "$folder" -mindepth 1 ! -name '*-[0-9]*.out' ! -path "$folder/.*")" ] || break
        sleep 0.5
    done
    [ -z "$(find "$folder" -mindepth 1 ! -name '*-[0-9]*.out' ! -path "$folder/.*")" ]
    ok $? "$1: leaves only its output" <(find "$folder")
}

# says CASE REGEX: that some line of a job's output matches.
says() {
    grep -qE -- "$2" "$(output_of "$1")"
    ok $? "$1: says '$2'" "$(output_of "$1")"
}

# ends_with CASE REGEX: that the last line of a job's output matches. What probe adds (below) may come later: it is
# another rank's, and a launcher passes the ranks' lines on in any order.
ends_with() {
    grep -v '^probe: ' "$(output_of "$1")" | tail -n 1 | grep -qE -- "$2"
    ok $? "$1: ends with '$2'" "$(output_of "$1")"
}

# passed CASE RANKS: a job that went well.
passed() {
    ended "$1" COMPLETED 0:0
    ends_with "$1" "^OK: $2 ranks, all [0-9]+ .* as expected$"
}

# sources: what a fresh clone holds, also where this is no clone.
sources() {
    git -c safe.directory='*' ls-files -z --cached --others --exclude-standard 2>/dev/null ||
        find . -path ./.git -prune -o -path ./build -prune -o -type f -print0
}

# copy NAME: the course as a fresh clone has it.
copy() {
    mkdir "$site/$1"
    (cd "$top" && sources | tar -c --null --files-from=- --ignore-failed-read) 2>/dev/null |
        tar -x -C "$site/$1"
}

read_only() {
    chmod -R a+rX,a-w "$site/$1"
}

# probe: a course whose allreduce tells its environment. With PROBE_SLEEP its ranks sleep so many
# seconds; with PROBE_LATE those of the second node are late in MPI_Init, where Open MPI waits
# until all ranks have told their addresses, and calls usleep and opal_progress in turn.
make_probe() {
    copy probe
    sed -i '/MPI_Init(&argc/a\
        printf("probe: NCCL_DEBUG=%s GPUs=%s\\n", getenv("NCCL_DEBUG"),\
               getenv("CUDA_VISIBLE_DEVICES"));\
        fflush(stdout);\
        extern unsigned sleep(unsigned);\
        sleep(getenv("PROBE_SLEEP") ? (unsigned)atoi(getenv("PROBE_SLEEP")) : 0);' "$site/probe/02-nccl-allreduce/allreduce.c"
    cat >>"$site/probe/02-nccl-allreduce/allreduce.c" <<'END'
#include <dlfcn.h>
#include <poll.h>

int usleep(unsigned microseconds);
int usleep(unsigned microseconds)
{
    if (getenv("PROBE_LATE") && atoi(getenv("SLURM_PROCID")) >= 4) {
        void (*progress)(void);
        *(void **)&progress = dlsym(dlopen(NULL, RTLD_LAZY), "opal_progress");
        for (int i = 0; i < 30; i++) {
            poll(NULL, 0, 10);
            progress();
        }
    }
    return poll(NULL, 0, (int)(microseconds / 1000 + 1));
}
END
    read_only probe
}

# strangers: the processes of the two users on the nodes, whatever Slurm thinks of them.
strangers() {
    local mine
    mine=$(readlink /proc/$$/ns/pid)
    ps -o pidns=,user=,args= -u teacher,student | awk -v mine="${mine//[^0-9]/}" '$1 != mine'
}

# A compiler that copies the library's objects from where make has built them.
cp -R "$top/build/cpu" $site/built
chmod -R a+rX $site/built
cat >$site/cc <<'END'
#!/bin/sh
for word; do
    [ "$was" != -o ] || object=$word
    was=$word
done
kept=/run/leonardo/built/${object##*/build/cpu/}
[ ! -e "$kept.read" ] || exec cp "$kept" "$kept.read" "${object%/*}"
exec gcc "$@"
END
cat >$site/mpicc <<END
#!/bin/sh
exec $site/cc $(mpicc --showme:compile) "\$@" $(mpicc --showme:link)
END
chmod +x $site/cc $site/mpicc
copy course
read_only course
course_before=$(cd $site/course && find . -printf '%p %m %s %T@\n' | sort | cksum)
copy wrong
# Of all lessons in one job, these; with ALL=yes every one.
[ -n "${ALL:-}" ] || (cd $site/wrong && rm -r 0[3-9]-* 1[0-589]-* 2[1-9]-*)
sed -i 's/ncclFloat32, ncclSum/ncclFloat32, ncclMax/' $site/wrong/02-nccl-allreduce/allreduce.c
# One hangs, and the others are run all the same.
sed -i '/MPI_Init(&argc/a extern unsigned sleep(unsigned); sleep(1000);' \
    $site/wrong/01-nccl-broadcast/broadcast.c
read_only wrong
copy broken
echo 'this is not C' >>$site/broken/02-nccl-allreduce/allreduce.c
read_only broken
mkdir $site/empty
make_probe
jobs=$site/course/jobs
# The jobs of lessons: what starts them is the same for all, so those that start in a way of their own. With
# ALL=yes every one, on one node or two, with mpirun or srun, in turn.
runs=('allreduce mpirun 1' 'hello srun 2' 'one_process mpirun 1' 'without_mpi mpirun 2' 'without_mpi srun 2') # PROGRAM LAUNCH NODES
if [ -n "${ALL:-}" ]; then
    runs+=('allreduce mpirun 2' 'allreduce srun 1' 'allreduce srun 2')
    turns=('mpirun 1' 'srun 2' 'srun 1' 'mpirun 2') turns_taken=0
    for lesson in "${lessons[@]}"; do
        program=$(basename "$top/$lesson"/*.c .c)
        [[ ! $program =~ ^(allreduce|hello|one_process|without_mpi)$ ]] || continue
        runs+=("$program ${turns[turns_taken++ % 4]}")
    done
fi
# On a laptop, too, those on one node.
laptop=$(mktemp -d)
trap 'rm -rf "$laptop"' EXIT
cp -R $site/course/. "$laptop"
chmod -R u+w "$laptop"
chown -R teacher: "$laptop"
one_node=()
for run in "${runs[@]}"; do
    [[ $run != *1 ]] || one_node+=("$(cd "$laptop" && echo [0-9][0-9]-*/"${run%% *}".c)")
done
as teacher "$laptop" env "${quick[@]}" make -s -j2 "${one_node[@]%.c}" >/dev/null 2>&1
ok $? 'on a laptop the course is built'

# All jobs that want nothing special go into the queue at once, and Slurm packs them. The
# first two find both nodes free and run at the same time.
for case in twice again; do
    submit $case PROBE_SLEEP=3 --chdir=$site/home/teacher/twice \
        $site/probe/jobs/allreduce.slurm
done
submit all-wrong LIMIT=30 $site/wrong/jobs/all.slurm
for run in "${runs[@]}"; do
    read -r program launch nodes <<<"$run"
    case $program in # all their sizes take the others' time
    bandwidth) options=(--factor 64) ;;
    peer_to_peer) options=(-n 1000) ;;
    *) options=() ;;
    esac
    submit "$program-$launch-$nodes" LAUNCH="$launch" --nodes="$nodes" \
        "$jobs/${program//_/-}.slurm" "${options[@]}"
done
for launch in mpirun srun; do
    submit uneven-$launch LAUNCH=$launch NCCL_DEBUG=INFO --nodes=2 --ntasks=5 \
        $site/probe/jobs/allreduce.slurm -n 1000
    submit cyclic-$launch LAUNCH=$launch --nodes=2 --ntasks=5 --distribution=cyclic \
        "$jobs/allreduce.slurm"
done
submit late LAUNCH=srun PROBE_LATE=yes --nodes=2 $site/probe/jobs/allreduce.slurm
submit hidden --nodes=2 --gpus-per-task=1 --gres=none $site/probe/jobs/allreduce.slurm
submit hidden-mpirun LAUNCH=mpirun --nodes=2 --gpus-per-task=1 "$jobs/hello.slurm"
user=student submit student CHECK=yes LAUNCH=srun MPICC=mpicc OMPI_CC=$site/cc "$jobs/broadcast.slurm"
submit "a folder" --nodes=2 --ntasks-per-node=2 --gres=gpu:2 "$jobs/allreduce.slurm"
submit unbound OMPI_MCA_hwloc_base_report_bindings=yes --ntasks-per-node=2 --gres=gpu:2 "$jobs/allreduce.slurm"
submit usage "$jobs/allreduce.slurm" -n 0
submit no-gpu BACKEND=cuda --partition=lrd_all_serial --gres=none "$jobs/allreduce.slurm"
submit no-gpu-cpu --partition=lrd_all_serial --gres=none "$jobs/allreduce.slurm"
modulepath=/nowhere submit no-module "$jobs/allreduce.slurm"
submit no-compiler MPICC=mpicc OMPI_CC=no-such-compiler "$jobs/allreduce.slurm"
submit no-mpicc MPICC=no-such-mpicc "$jobs/allreduce.slurm"
submit no-build $site/broken/jobs/allreduce.slurm
submit no-cuda BACKEND=cuda "$jobs/allreduce.slurm"
submit stdin <"$jobs/allreduce.slurm"
submit unwritable --chdir=$site/empty --output=$site/home/teacher/unwritable/%x-%j.out \
    "$jobs/allreduce.slurm"
cp "$jobs/allreduce.slurm" $site/home/teacher/moved.slurm
submit moved $site/home/teacher/moved.slurm
submit found COURSE=$site/course $site/home/teacher/moved.slurm
submit sizes --array=0-1 "$jobs/sizes.slurm" --max 8K
# A torchrun that only says where it runs and with what; PATH has it.
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "torchrun on $(hostname): $*"\n' >$site/torchrun
chmod +x $site/torchrun
submit pytorch PATH="$site:/usr/bin:/bin" --nodes=2 "$jobs/pytorch.slurm" 01-nccl-broadcast -n 8
finish

passed twice 4
passed again 4
[[ $(field again StartTime) < $(field twice EndTime) ]] &&
    [[ $(field twice StartTime) < $(field again EndTime) ]]
ok $? "two jobs in one folder, from one course, ran at the same time" \
    <(scontrol show job "${id[twice]}") <(scontrol show job "${id[again]}")

for run in "${runs[@]}"; do
    read -r program launch nodes <<<"$run"
    passed "$program-$launch-$nodes" $((4 * nodes))
done
says hidden-mpirun '^.*rank 7.*lrdn0002'
says hello-srun-2 '^.*rank 7.*lrdn0002'
says without_mpi-mpirun-2 '^8 ranks, counted by Open MPI, met at lrdn0001:'
says without_mpi-srun-2 '^8 ranks, counted by Slurm, met at lrdn0001:'

# The same tables as on a laptop.
for run in "${runs[@]}"; do
    read -r program launch nodes <<<"$run"
    case $program in # times, names
    hello | bandwidth | peer_to_peer | without_mpi | memory_kinds | small_messages | one_sided | paths | failures | nodes)
        continue
        ;;
    one_process) start=(env CPU_DEVICES=4) ;;
    *) start=(mpirun --oversubscribe -np 4) ;;
    esac
    [ "$nodes" = 1 ] || continue
    as teacher "$(dirname "$laptop"/[0-9][0-9]-*/"$program")" timeout 300 \
        "${start[@]}" "./$program" >$site/on-laptop 2>&1
    lines=$(wc -l <$site/on-laptop)
    [ "$lines" -gt 2 ] && cmp -s $site/on-laptop \
        <(tail -n "$lines" "$(output_of "$program-$launch-1")")
    ok $? "$program: the output file ends with what a laptop prints" $site/on-laptop \
        "$(output_of "$program-$launch-1")"
done

ended all-wrong FAILED 1:0
says all-wrong '^FAILED: rank 0, element 0 is 1, expected 4 \(and 15 more\)$'
says all-wrong '^lesson +ranks +verdict +seconds$'
for lesson in $(cd $site/wrong && echo [0-9][0-9]-*); do
    verdict=OK
    case $lesson in
    01-nccl-broadcast) verdict=timeout ;;
    02-nccl-allreduce) verdict=FAILED ;;
    esac
    says all-wrong "^$lesson +4  $verdict +[0-9]+[.][0-9]$"
done

passed student 4
passed "a folder" 4
for launch in mpirun srun; do
    ended uneven-$launch COMPLETED 0:0
    ends_with uneven-$launch '^OK: 5 ranks, all 5000 elements as expected$'
    [ "$(grep -c '^probe: NCCL_DEBUG=INFO' "$(output_of uneven-$launch)")" = 5 ]
    ok $? "uneven-$launch: NCCL_DEBUG reaches all ranks on both nodes" "$(output_of uneven-$launch)"
    ended cyclic-$launch FAILED 1:0
    says cyclic-$launch 'ranks 0 and 4 on lrdn0001 are bound to the same GPU'
done
ended late COMPLETED 0:0
says late '^OK: 8 ranks, all [0-9]+ .* as expected$'
passed hidden 8
passed hidden-mpirun 8
for gpu in 0 1 2 3; do
    [ "$(grep -c "GPUs=$gpu\$" "$(output_of hidden)")" = 2 ]
    ok $? "hidden: one rank a node sees GPU $gpu alone" "$(output_of hidden)"
done
ended unbound COMPLETED 0:0
for rank in 0 1; do
    says unbound "rank $rank is not bound"
done
ended usage FAILED 2:0
says usage '^allreduce: -n 0 is less than 1$'
ended no-gpu FAILED 1:0
ends_with no-gpu '^ERROR: this job has no GPU \(partition lrd_all_serial\)'
[ "$(wc -l <"$(output_of no-gpu)")" = 1 ]
ok $? "no-gpu: says so before it builds" "$(output_of no-gpu)"
passed no-gpu-cpu 4
ended no-module FAILED 1:0
ends_with no-module '^ERROR: module cuda/12.2 does not load'
ended no-compiler FAILED 1:0
ends_with no-compiler "^ERROR: no C compiler: 'mpicc --version' does not run"
ended no-mpicc FAILED 1:0
ends_with no-mpicc "^ERROR: no C compiler: 'no-such-mpicc --version' does not run"
ended no-build FAILED 1:0
says no-build 'allreduce.c:[0-9:]+ error:'
ends_with no-build '^ERROR: the build of 02-nccl-allreduce failed'
ended no-cuda FAILED 1:0
says no-cuda 'BACKEND=cuda, but no CUDA Toolkit'
ends_with no-cuda '^ERROR: the build of 02-nccl-allreduce failed'
ended stdin FAILED 1:0
ends_with stdin 'cannot find the course: submit by path, sbatch jobs/NAME.slurm, or set COURSE$'
ended unwritable FAILED 1:0
ends_with unwritable "^ERROR: cannot write to $site/empty: submit from a folder of your own\$"
ended moved FAILED 1:0
ends_with moved '/leonardo.sh: No such file or directory$'
passed found 4
for i in 0 1; do
    grep -q '^OK: ' "$site/home/teacher/sizes/"sizes-*_$i.out
    ok $? "sizes: job $i of the array ends well" "$site/home/teacher/sizes/"sizes-*_$i.out
done
ended pytorch COMPLETED 0:0
for node in lrdn0001 lrdn0002; do
    says pytorch "^torchrun on $node: --nnodes=2 --nproc_per_node=4 .*/01-nccl-broadcast/broadcast.py -n 8\$"
done

# What Slurm itself refuses.
submit refused SBATCH_PARTITION=lrd_all_serial "$jobs/allreduce.slurm"
grep -q 'Requested node configuration is not available' $site/refused-refused
ok $? "GPUs of a partition that has none: sbatch refuses" $site/refused-refused
as teacher $site/home/teacher sbatch "$jobs/allreduce.slurm" >$site/refused 2>&1
grep -q 'Invalid account' $site/refused
ok $? "no account: sbatch refuses" $site/refused
as teacher $site/home/teacher sbatch --test-only -A tra26_nccl "$jobs/allreduce.slurm" \
    >$site/refused 2>&1
ok $? "the account is taken from -A" $site/refused

# By hand, in an salloc session.
mkdir $site/home/teacher/by-hand && chown teacher: $site/home/teacher/by-hand
# shellcheck disable=SC2016
as teacher $site/home/teacher/by-hand env "${quick[@]}" timeout 300 salloc -A tra26_nccl \
    -p boost_usr_prod -q boost_qos_dbg -N 2 --ntasks-per-node=4 --cpus-per-task=8 \
    --gres=gpu:4 -t 5 bash -c 'source "$1/leonardo.sh" && load_modules &&
        build 02-nccl-allreduce && launch allreduce -n 8 && LAUNCH=srun launch allreduce && ! LAUNCH=ssh launch allreduce' \
    bash "$jobs" >$site/by-hand 2>&1
[ "$(grep -c '^OK: 8 ranks' $site/by-hand)" = 2 ] && grep -q '^ERROR: LAUNCH=ssh is neither mpirun nor srun$' $site/by-hand &&
    [ -z "$(ls -A $site/home/teacher/by-hand)" ]
ok $? "leonardo.sh works by hand in an salloc session" $site/by-hand

# Jobs cancelled while they run, and while they build.
wait_until() { # wait_until COMMAND…: for 40 seconds at most
    local until=$((SECONDS + 40))
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $until ] || return 1
        sleep 0.1
    done
}
running() { [ "$(grep -c '^probe:' "$(output_of "$1")")" = "$2" ]; }
building() { strangers | grep -q slow-compiler; }
# What the script does at its end takes a moment longer than Slurm's word that the job is over.
over() {
    local queue
    queue=$(squeue -h -o %i) && [ -z "$queue$(strangers)" ]
}
cat >$site/slow-compiler <<'END'
#!/bin/bash
[ "$1" = --version ] || sleep 100
END
chmod +x $site/slow-compiler
for case in cancel-mpirun cancel-srun cancel-build; do
    case $case in
    cancel-build) submit $case MPICC=mpicc OMPI_CC=$site/slow-compiler "$jobs/allreduce.slurm" ;;
    *) submit $case LAUNCH=${case#cancel-} PROBE_SLEEP=100 --nodes=2 \
        $site/probe/jobs/allreduce.slurm ;;
    esac
    if [ $case = cancel-build ]; then wait_until building; else wait_until running $case 8; fi
    ok $? "$case: is half way" "$(output_of $case)"
    nodes=$(strangers | awk '{print $1}' | sort -u | wc -l)
    as teacher $site scancel "${id[$case]}"
    wait_until over
    ok $? "$case: $nodes node(s) free again in time" <(squeue)
    ended $case CANCELLED "$(field $case ExitCode)"
    # Slurm's signals reach the nodes in no order. If the second one's is first, mpirun has lost
    # its helper there, says so, and the script is over before it hears anything.
    lost='^ORTE has lost communication with a remote daemon'
    says $case "CANCELLED|$lost"
    says $case "^ERROR: cancelled, or out of time\$|$lost"
    left=$(strangers)
    [ -z "$left" ]
    ok $? "$case: no process left on either node" <(echo "$left")
done

# Another cluster: the same scripts, other names, one file.
scontrol create PartitionName=accelerated Nodes=lrdn0001,lrdn0002 >/dev/null
scontrol delete PartitionName=boost_usr_prod
modulepath=$site/other-modules
submit elsewhere-unprepared "$jobs/allreduce.slurm"
grep -q 'invalid partition' $site/refused-elsewhere-unprepared
ok $? "on another cluster, Leonardo's partition is refused" $site/refused-elsewhere-unprepared
# shellcheck disable=SC2016
sed -n '/^# mycluster.sh/,/^```/{/^```/d;p}' "$jobs/README.md" >$site/mycluster.sh
settings=$site/mycluster.sh
submit elsewhere LAUNCH=srun --nodes=2 "$jobs/allreduce.slurm"
finish
passed elsewhere 8

course_after=$(cd $site/course && find . -printf '%p %m %s %T@\n' | sort | cksum)
[ "$course_before" = "$course_after" ]
ok $? "no job wrote into the course"
echo "# the cluster's tests took $SECONDS s"
echo "$count" >"$2"
