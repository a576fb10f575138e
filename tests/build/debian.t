#!/usr/bin/env bash
# The first hour of somebody with a fresh Debian: what README.md tells to type, in a system that debootstrap has
# made, with nothing of this machine in it but the course. An installation that the course forgets shows there.
# Of make test it runs what calls programs of other packages. Needs root and the network; of make test-long.
#
#     FULL=yes tests/build/debian.t     all of make test
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
source tests/lib.bash

# In namespaces of its own, so that nothing stays mounted and no process stays, whatever happens.
if [ "${1:-}" != apart ]; then
    if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null || ! unshare -mpf true 2>/dev/null; then
        echo '1..0 # skip needs root, mounts, and debootstrap (apt-get install debootstrap)'
        exit
    fi
    exec unshare -mpf --kill-child "$0" apart
fi
system=$(mktemp -d)
trap 'umount -R "$system" || umount -lR "$system"; rm -rf --one-file-system "$system"' EXIT
mount --bind "$system" "$system" # one mount, with which all those in it go
timeout 600 debootstrap --variant=minbase bookworm "$system" >"$system.log" 2>&1 ||
    { tail -n 5 "$system.log" && result 1 'debootstrap makes a Debian' && finish; }
rm -f "$system.log"
mount -t proc proc "$system/proc"
mount -t sysfs -o ro sysfs "$system/sys"
mount -t tmpfs -o mode=1777 tmpfs "$system/tmp"
mkdir -p "$system/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
for device in null zero random urandom tty; do
    [ -e "$system/dev/$device" ] || { touch "$system/dev/$device" && mount --bind "/dev/$device" "$system/dev/$device"; }
done
cp /etc/resolv.conf "$system/etc"
echo '127.0.0.1 localhost' >"$system/etc/hosts" # as Debian's installer does, and debootstrap doesn't
# The course as somebody would clone it: what is committed, and what was changed since.
git ls-files -co --exclude-standard -z | xargs -0 tar c --ignore-failed-read 2>/dev/null |
    (mkdir "$system/course" && cd "$system/course" && tar x && git init -q && git add -A &&
        git -c user.name=a -c user.email=a@b commit -qm a)

# typed COMMANDS: by a newcomer, in that system; a shell of its own, with no variable of ours.
# shellcheck disable=SC2317 # points call it
typed() {
    env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        timeout "$seconds" chroot "$system" bash -euc "$1" </dev/null
}

# The commands of a block of README.md that has this line: without sudo, which root does not need, and with an address.
block() {
    awk -v line="$1" '/^```/ { if (inside && found) { printf "%s", text; exit } inside = /^```(sh|console)/; text = ""; found = 0; next }
        inside { text = text $0 "\n"; found = found || index($0, line) == 1 }' README.md
}
start=$(block 'git clone' | sed 's/^sudo //; s/apt-get install/& -y --no-install-recommends/; s/ADDRESS/\/course/')
run=$(block '$ source common' | sed -n 's/^\$ //p')
test=$(block 'make test  ' | sed "s/ *#.*//; s,make test,& LONGEST= TESTS='tests/check/nccl-check.bats tests/lessons/production.bats',")
[ -z "${FULL:-}" ] || test='make test'

seconds=600
# shellcheck disable=SC2317 # point calls these
first() {
    typed "apt-get update -q; $start" >"$system/said" 2>&1
    tail -n 40 "$system/said"
    grep -q 'Not solved yet' "$system/said" &&
        grep -qE "^([0-9]+) of \\1 OK" "$system/said"
}
point 'the two commands: all lessons, and the first exercise' first
# shellcheck disable=SC2317
lesson() {
    typed "cd ~/nccl-course; $run" | tee "$system/said"
    [ "$(tail -n 1 "$system/said")" = 'OK: 4 ranks, all 16 elements as expected' ]
}
point 'a lesson by itself' lesson
seconds=1500
[ -z "${FULL:-}" ] || seconds=5400
# shellcheck disable=SC2317
tests() {
    typed "cd ~/nccl-course; $test" >"$system/said" 2>&1 || { grep -v '\.\. ok$' "$system/said" | tail -n 60 && return 1; }
    grep -q '^All tests successful' "$system/said"
}
point 'make test, in part, without CUDA' tests
finish
