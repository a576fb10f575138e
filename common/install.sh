#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages given as arguments that are missing, after saying
# so. INSTALL=no, and any other system, gets the list instead.
set -euo pipefail

missing=()
for package in "$@"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
done

if ! command -v apt-get >/dev/null; then
    # Not Debian: its packages have other names here, its commands have not.
    absent=()
    for tool in make mpicc mpirun; do
        command -v "$tool" >/dev/null || absent+=("$tool")
    done
    [ ${#absent[@]} -eq 0 ] && exit 0
    echo "Missing: ${absent[*]}. Install a C compiler, make and Open MPI (on Debian: $*)." >&2
    exit 1
fi
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "${INSTALL:-yes}" = no ]; then
    echo "Missing packages: ${missing[*]}" >&2
    echo "Install them with: sudo apt-get install ${missing[*]}" >&2
    exit 1
fi

sudo=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "Missing packages: ${missing[*]}; ask an administrator to install them" >&2
        exit 1
    fi
    sudo=(sudo)
fi
echo "Installing: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${sudo[@]}" apt-get update &&
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "apt-get could not install: ${missing[*]}" >&2
    exit 1
fi
