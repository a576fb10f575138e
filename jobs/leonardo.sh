# What all job scripts share: the modules, the build, the launch. Source it, also by hand
# inside an salloc session:
#
#   source jobs/leonardo.sh
#   load_modules && build 02-nccl-allreduce && launch allreduce -n 8
#
# Another cluster, or another choice, through the environment of sbatch:
#   BACKEND   cuda (the default), cpu or auto, as for make
#   LAUNCH    mpirun (the default) or srun
#   MODULES   the modules to load, in this order; MODULES= loads none, and keeps those that are loaded
#   CHECK     yes runs the program under nccl-check (check/README.md)
#   COURSE    the course's folder, where scontrol can't say where the script lies
#   LIMIT     the seconds after which the program is ended; all.slurm sets 60
# shellcheck shell=bash

course=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BACKEND=${BACKEND:-cuda}
MODULES=${MODULES-cuda/12.2 gcc/12.2.0 openmpi/4.1.6--gcc--12.2.0-cuda-12.2 \
nccl/2.22.3-1--gcc--12.2.0-cuda-12.2-spack0.22}
# Only srun can show each rank its own GPU alone, which is what --gpus-per-task asks for.
LAUNCH=${LAUNCH:-$([ -n "${SLURM_GPUS_PER_TASK:-}" ] && echo srun || echo mpirun)}
CHECK=${CHECK:-no}
programs= # build's folder, where launch finds them

fail() {
    echo "ERROR: $*" >&2
    return 1
}

load_modules() {
    local - module init=${MODULESHOME:-/usr/share/modules}/init/bash
    set +u # the module commands of some clusters use variables that are not set
    if [ -n "$MODULES" ] && ! command -v module >/dev/null; then
        [ -r "$init" ] || fail "no module command here; MODULES= does without" || return
        # shellcheck disable=SC1090
        source "$init"
    fi
    # A job inherits the modules of the shell that submitted it. A compiler or an MPI among them would get in the way.
    [ -z "$MODULES" ] || module purge
    for module in $MODULES; do
        module load "$module" ||
            fail "module $module does not load: 'module avail' shows what there is," \
                "and MODULES='…' sbatch … takes it" || return
    done
}

# build FOLDER…: the programs of these lessons, for this job alone. The course's folder may
# be another user's and is only read. The sources go to local disk, and the programs to a
# folder below the current one, which all nodes of the job see.
build() {
    [ -n "${SLURM_JOB_ID:-}" ] || fail "not inside a Slurm job: salloc first" || return
    if [ "$BACKEND" = cuda ] &&
        [[ ! $(scontrol show job "$SLURM_JOB_ID") =~ (TRES|Tres)[^$'\n']*gpu ]]; then
        fail "this job has no GPU (partition ${SLURM_JOB_PARTITION:-unknown}):" \
            "ask for some with --partition and --gres, or take BACKEND=cpu" || return
    fi
    "${MPICC:-mpicc}" --version >/dev/null 2>&1 ||
        fail "no C compiler: '${MPICC:-mpicc} --version' does not run" || return
    programs=${programs:-$(mktemp -d "$PWD/programs-$SLURM_JOB_ID-XXXXXX")} ||
        fail "cannot write to $PWD: submit from a folder of your own" || return
    sources=$(mktemp -d) || return
    trap 'rm -rf "$programs" "$sources"' EXIT
    trap 'fail "cancelled, or out of time"; exit 1' TERM
    cp -R "$course"/{Makefile,common,cpu,check,kernels} "${@/#/$course/}" "$sources" ||
        fail "cannot copy $* from $course" || return
    chmod -R u+w "$sources"
    # -B: what was built in the course's folder is not to be trusted here.
    make -s -B -j 8 -C "$sources" BACKEND="$BACKEND" ||
        fail "the build of $* failed, the lines above say why" || return
    if [ "$CHECK" = yes ]; then
        cp "$course/check/nccl-check" "$programs"
        if [ "$BACKEND" != cpu ]; then # there they are in the programs
            make -s -j 8 -C "$sources" check-library ||
                fail "the build of nccl-check failed, the lines above say why" || return
            cp "$sources/build/cuda/libnccl-check.so" "$programs"
        fi
    fi
    find "$sources"/[0-9][0-9]-* -type f -perm -u+x -exec mv -t "$programs" {} +
    rm -rf "$sources"
}

# launch PROGRAM [ARGUMENT…]: one rank a task; how many and where is what Slurm granted.
launch() {
    local what=("$programs/$1") options=() limit=()
    [ -z "${LIMIT:-}" ] || limit=(timeout -k 5 "$LIMIT")
    # One process drives all GPUs of the node: it needs no launcher. On the CPU build it is told how
    # many GPUs there are.
    local how=$LAUNCH
    if [ "$1" = one_process ]; then
        how=none
        export CPU_DEVICES=${CPU_DEVICES:-${SLURM_GPUS_ON_NODE:-4}}
    fi
    # Where ranks meet that do without MPI: at the first node, at a port of this job's own.
    MASTER_ADDR=${MASTER_ADDR:-$(scontrol show hostnames "${SLURM_JOB_NODELIST:-}" | head -n 1)}
    MASTER_PORT=${MASTER_PORT:-$((20000 + ${SLURM_JOB_ID:-0} % 10000))}
    export MASTER_ADDR MASTER_PORT
    shift
    [ "$CHECK" != yes ] || what=("$programs/nccl-check" "${what[@]}")
    case $how in
    none)
        "${limit[@]}" "${what[@]}" "$@"
        ;;
    srun)
        # srun does not take the cores per task from sbatch by itself. Without the ring
        # (PMIxCollFence in mpi.conf's manual), a node may leave MPI_Init before the others are
        # through, and its first message finds a rank that crashes on it.
        SLURM_PMIX_FENCE=ring "${limit[@]}" srun --kill-on-bad-exit=1 \
            --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" "${what[@]}" "$@"
        ;;
    mpirun)
        # By itself it would bind each of two ranks to one core, and all NCCL's threads with it.
        options=(--bind-to none)
        [ -z "${SLURM_NTASKS:-}" ] || options+=(-np "$SLURM_NTASKS")
        [[ ${SLURM_DISTRIBUTION:-} != cyclic* ]] || options+=(--map-by node)
        # mpirun starts one helper a node through srun: it must see all GPUs of the node,
        # not those of one task.
        env -u SLURM_GPUS_PER_TASK -u SLURM_TRES_PER_TASK \
            "${limit[@]}" mpirun "${options[@]}" "${what[@]}" "$@"
        ;;
    *)
        fail "LAUNCH=$LAUNCH is neither mpirun nor srun"
        ;;
    esac
}
