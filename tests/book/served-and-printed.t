#!/usr/bin/env bash
# make book PDF=yes and SERVE=yes, only with ALL=yes. Prints TAP.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ -n "${ALL:-}" ] || { echo '1..0 # SKIP only with ALL=yes (make test-long)'; exit; }
command -v chromium chromium-browser google-chrome >/dev/null || { echo '1..0 # SKIP there is no chromium here'; exit; }
failed=0
make -s book PDF=yes >/dev/null
build/book-python/bin/python tests/book/printed.py build/book.pdf || failed=1

port=$((20000 + $$ % 20000))
setsid make -s book SERVE=yes PORT=$port >/dev/null 2>&1 &
server=$!
trap 'kill -- -$server 2>/dev/null' EXIT
page=
for _ in {1..600}; do
    page=$(build/book-python/bin/python -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:$port/01-nccl-broadcast/').read().decode())" 2>/dev/null || true)
    [ -z "$page" ] || break
    sleep 0.2
done
if [[ $page == *'01 Broadcast: one rank has it, all get it'* ]]; then
    echo 'ok 3 - make book SERVE=yes serves it'
else
    echo 'not ok 3 - make book SERVE=yes serves it'
    failed=1
fi
busy=$(make -s book SERVE=yes PORT=$port 2>&1) && failed=1
if [[ $busy == *"port $port is taken"* && $busy != *Traceback* ]]; then
    echo 'ok 4 - and says so if the port is taken'
else
    echo 'not ok 4 - and says so if the port is taken'
    failed=1
fi
echo '1..4'
exit $failed
