#!/usr/bin/env bash
# What the compilers and the linters say of the sources.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source "$top/tests/lib.bash"

# The same, where ALL=yes.
long() {
    if [ -n "${ALL:-}" ]; then
        point "$1" timeout 300 "${@:2}"
    else
        skipped "$1" "only with ALL=yes (make test-long)"
    fi
}

mapfile -t sources < <(git ls-files '*.c' '*.h')
# The lessons' job scripts differ from allreduce.slurm in names and time only (job-scripts.t).
mapfile -t shell < <(git grep -lE '^#! ?/(usr/)?bin/(env )?bash' -- . ':!jobs/*.slurm' &&
    git ls-files '*.bash' jobs/leonardo.sh jobs/all.slurm jobs/allreduce.slurm)

private_copy() {
    git ls-files -z | xargs -0 cp --parents -t "$work"
}
private_copy

point 'clang-format' timeout 300 clang-format --dry-run --Werror "${sources[@]}"
# gcc, clang and the tests' own runs look at all of this, too: only with ALL=yes.
parts=(cpu/src/*/*.c [0-9][0-9]-*/*.c common/*.c results/measure/cpu-cost.c)
long 'cppcheck' cppcheck -D__linux__ -D__x86_64__ --quiet --error-exitcode=1 --inline-suppr --std=c11 \
    --enable=warning,portability --suppress=missingIncludeSystem -Icommon -Icpu/include -Icpu -Icpu/src "${parts[@]}"
mapfile -t folders < <(find check -type d)
mapfile -t checks < <(git ls-files 'check/*.c')
long 'cppcheck of the checks' cppcheck -D__linux__ -D__x86_64__ -DOVER_STANDIN=1 \
    --quiet --error-exitcode=1 --inline-suppr --std=c11 --enable=warning,portability \
    --suppress=missingIncludeSystem -Icpu/include -Icpu "${folders[@]/#/-I}" "${checks[@]}"
point 'shellcheck' timeout 300 shellcheck -x -P SCRIPTDIR:tests -e SC2154,SC2034 "${shell[@]}"
# What the tests use was built without a warning, if it was built with -Werror (make test).
strict='-Wall -Wextra -Werror'
work_of=$top
if make -n -C "$top" BACKEND=cpu WARNINGS="$strict" all 2>/dev/null | grep -q -e ' -c '; then
    work_of=$work
fi
point 'CPU build without a warning' timeout 300 make -C "$work_of" BACKEND=cpu WARNINGS="$strict"
if make -C "$work" -n BACKEND=cuda all >/dev/null 2>&1; then
    point 'CUDA build compiles and links, without a warning' \
        timeout 300 make -C "$work" -B BACKEND=cuda CFLAGS=-O0 WARNINGS='-Wall -Wextra -Werror'
else
    skipped "CUDA build" "no CUDA Toolkit with NCCL here (CUDA_HOME, NCCL_HOME)"
fi
finish
