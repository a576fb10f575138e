#!/usr/bin/env bash
# The front and the judge as a library before a program and the stand-in, which has no checks
# then: a selection of check.t's programs, which must get the same reports as from the linked
# form. ALL=yes takes them all.
set -euo pipefail
cd "$(dirname "$0")"

selection=(mismatch-count missing-left-out missing-queued-exit deadlock-host-collective race-pinned memory-host-read
    left-buffer two-threads mpi-ends-first)
[ -z "${ALL:-}" ] || selection=()
FORM=library RANKS=${RANKS:-2} exec ./check.t "${selection[@]}"
