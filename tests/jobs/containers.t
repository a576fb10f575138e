#!/usr/bin/env bash
# The definitions for Apptainer, as far as they can be judged without a registry of images: their parts, their shell
# commands, and that they install what the dev container does, by the same names. Prints TAP.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
source tests/lib.bash
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

section() { # FILE NAME
    awk -v name="%$2" '/^%/ { on = $1 == name; next } on' "$1"
}

# What %post asks of apt-get is noted and not done; nothing else of it may touch this machine.
mkdir "$work/bin"
printf '#!/bin/sh\necho "$@" >>"%s/asked"\n' "$work" >"$work/bin/apt-get"
printf '#!/bin/sh\n' >"$work/bin/rm"
chmod +x "$work"/bin/*
for what in cpu cuda; do
    file=.devcontainer/$what.def
    is "$(grep -oE '^(Bootstrap|From|%[a-z]+)' $file | xargs)" 'Bootstrap From %post %environment' "$file: its parts"
    for part in post environment; do
        section $file $part >"$work/$part"
        test -s "$work/$part"
        result $? "$file: %$part is there"
        point "$file: shellcheck of %$part" timeout 60 shellcheck -s sh "$work/$part"
    done
    command rm -f "$work/asked"
    point "$file: %post runs" env PATH="$work/bin:/usr/bin:/bin" timeout 60 sh -eu "$work/post"
    is "$(head -n 1 "$work/asked")" update "$file: apt-get update comes first"
    sed -n 's/^install //p' "$work/asked" | tr ' ' '\n' | grep -v '^-' | sort >"$work/packages-$what"
    is "$(comm -23 "$work/packages-$what" <(sort .devcontainer/packages) | xargs)" \
        "$([ $what = cpu ] || echo libnccl-dev libnccl2)" "$file: besides NCCL, only packages of .devcontainer/packages"
    # shellcheck disable=SC2016
    env -i PATH=/usr/bin:/bin sh -c '. "$1"; env' sh "$work/environment" | sort >"$work/env"
    is "$(sed -n '/^ENV/,$p' .devcontainer/Dockerfile | grep -oE '[A-Z][A-Za-z_]+=[^ ]+' | sort | comm -23 - "$work/env")" \
        '' "$file: the environment is that of the dev container"
done
is "$(comm -23 "$work/packages-cpu" "$work/packages-cuda")" '' "cuda.def has all that cpu.def has"
# The compiler and MPI that make demo looks for come with them.
for command in gcc make perl mpicc mpirun; do
    package=$(dpkg -S "$(readlink -f "$(command -v $command)")" 2>/dev/null | sed 's/[:-].*//')
    grep -qE "^(lib)?$package" "$work/packages-cpu"
    result $? "cpu.def installs $command ($package)"
done
finish
