#!/usr/bin/env bash
# The unit tests of cpu/ again, built with AddressSanitizer and UndefinedBehaviorSanitizer.
set -euo pipefail
SANITIZE=1 exec "$(dirname "${BASH_SOURCE[0]}")/cpu.t"
