#!/usr/bin/env bash
# What the other tests do with Open MPI and gcc, in small with MPICH, and with clang. MPICH's
# commands are called by Debian's names for them: mpicc and mpirun stay Open MPI's. clang compiles the
# programs only; judge.t has it look at the judge. ALL=yes (make test-long) has more lessons and programs, and
# loads the checks before programs of MPICH, too.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source "$top/tests/lib.bash"
source "$top/tests/build/other_mpi.bash"

if [ -z "${ALL:-}" ]; then
    lessons=(01-nccl-broadcast/broadcast 13-experts/experts)
    programs=(mismatch-count missing-queued-exit deadlock-host-collective race-pinned two-threads mpi-ends-first)
fi
if command -v mpicc.mpich mpirun.mpich >/dev/null; then
    mpirun=(mpirun.mpich)
    MPICC=mpicc.mpich with MPICH linked ${ALL:+library}
else
    result 0 'MPICH # SKIP not installed under the names mpicc.mpich and mpirun.mpich'
fi
if command -v clang >/dev/null; then
    mpirun=(mpirun --oversubscribe)
    # A compiler decides on the lines of calls, and on what of memory is touched when.
    # shellcheck disable=SC2034 # other_mpi.bash's
    programs=(mismatch-count race-pinned memory-host-read ${ALL:+left-buffer})
    MPICC=mpicc OMPI_CC=clang over clang linked
else
    result 0 'clang # SKIP not installed'
fi
finish
