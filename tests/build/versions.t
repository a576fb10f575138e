#!/usr/bin/env bash
# Every lesson, and the library of nccl-check, compile and link against old and new CUDA and
# NCCL, without a warning; and nccl-check stands in front of a program linked with them. The
# headers of the CPU build are compared with those whose version they have. Open MPI 5
# does what MPICH does in other.t. All come as Python wheels, about 3 GB; no GPU is used.
#
#     tests/build/versions.t VERSION…              only the library, before these versions of NCCL for CUDA 12
#     tests/build/versions.t openmpi [VERSION…]    only Open MPI, these versions
# shellcheck disable=SC2317 # point calls the functions
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/course"
(cd "$top" && git ls-files -z | xargs -0 cp --parents -t "$work/course")
unset BACKEND CUDA_HOME NCCL_HOME LIBRARY_PATH CPATH MAKEFLAGS MFLAGS MAKELEVEL

source "$top/tests/lib.bash"
source "$top/tests/build/other_mpi.bash"

wheels() { # PIP'S OPTIONS AND PACKAGES…
    timeout 600 python3 -m pip install --quiet --no-deps --only-binary=:all: --no-cache-dir \
        --disable-pip-version-check --root-user-action=ignore --no-compile "$@"
}

# home NAME PACKAGE…: $work/NAME, laid out as a toolkit is: one include, one lib64, libraries by
# their plain names.
home() {
    local home=$work/$1 wheels=$work/wheels folder library
    shift
    rm -rf "$home" "$wheels"
    mkdir -p "$home"
    wheels --target "$wheels" "$@" || return
    for folder in "$wheels"/nvidia/*/; do
        [ ! -d "$folder/include" ] || cp -rlf "$folder/include" "$home"
        [ ! -d "$folder/lib" ] || cp -rlfT "$folder/lib" "$home/lib64"
    done
    for library in "$home"/lib64/*.so.*; do
        ln -sf "${library##*/}" "${library%%.so.*}.so"
    done
    rm -rf "$wheels"
}

# built TARGET…: against what is in $work/cuda and $work/nccl.
built() {
    timeout 300 make -C "$work/course" CUDA_HOME="$work/cuda" NCCL_HOME="$work/nccl" \
        BACKEND=cuda WARNINGS='-Wall -Wextra -Werror' -B "$@"
}

# loads: the tests of nccl-check that ask for the real CUDA; none of them may be left out.
loads() {
    CUDA_HOME=$work/cuda NCCL_HOME=$work/nccl timeout 300 bats \
        -f 'real CUDA|seen while the program runs|calls CUDA.s driver' \
        "$work/course/tests/check/nccl-check.bats" >"$work/tap" 2>&1 || { cat "$work/tap"; return 1; }
    cat "$work/tap"
    [ "$(grep -c '^ok' "$work/tap")" -eq 3 ] && ! grep -q '# skip' "$work/tap"
}

cuda() { # NAME PACKAGE…
    point "$1 can be had" home cuda "${@:2}"
    cuda=$1
}
nccl() { # NAME PACKAGE TARGET…
    local name="$cuda and NCCL $1"
    point "$name can be had" home nccl "$2"
    point "$name: make ${*:3}, without a warning" \
        built "${@:3}"
    point "$name: nccl-check stands in front of a program" loads
}

# declared: no comparison of the headers is left out.
declared() {
    CUDA_HOME=$work/cuda NCCL_HOME=$work/nccl timeout 120 "$work/course/tests/cpu/api.t" >"$work/tap" ||
        { cat "$work/tap"; return 1; }
    cat "$work/tap"
    ! grep -q '# SKIP' "$work/tap"
}

# crossed COURSE: the library that was built with one MPI before a program that was built, in
# COURSE, with the other: $MPICC and ${mpirun[@]}.
crossed() {
    local library=$work/course/build/cpu/libnccl-check.so code=0
    MPICC=mpicc make -s -C "$work/course" BACKEND=cpu cpu-forms || return
    "$MPICC" -g "$1/tests/check/wrong/mismatch-count.c" -I"$1/cpu/include" -L"$1/build/cpu" \
        -lnccl-cpu -Wl,-rpath,"$1/build/cpu" -pthread -o "$work/crossed" || return
    NCCL_CHECK_LIBRARY=$library timeout 60 "${mpirun[@]}" -np 2 "$1/check/nccl-check" \
        "$work/crossed" >"$work/out" 2>&1 || code=$?
    cat "$work/out"
    [ "$code" -eq 1 ] && [ "$(grep -c 'NCCL CHECK: ' "$work/out")" -eq 1 ] &&
        grep -q 'NCCL CHECK: mismatch: .* different counts' "$work/out"
}

# Its wheel is a whole Open MPI, which finds its files from where its commands lie. Of the networks
# that it knows the ranks of one machine need none, and to look for them takes a second.
openmpi() { # VERSION
    local name="Open MPI $1" folder=$work/openmpi-${1//\*/newest} # a star is more than one to a shell
    local -x OMPI_MCA_btl=self,sm
    point "$name can be had" wheels --ignore-installed --prefix "$folder" "openmpi==$1"
    [ "$worked" -eq 0 ] || return 0
    [ ! -d "$folder/local" ] || folder+=/local # Debian's Python
    name=$("$folder/bin/mpirun" --version | sed -n 's/^mpirun (\(.*\)) /\1 /p')
    mpirun=("$folder/bin/mpirun" --oversubscribe)
    MPICC=$folder/bin/mpicc with "$name" linked library
    MPICC=$folder/bin/mpicc point "$name: a library that was built with $(mpirun --version |
        sed -n 's/^mpirun (\(.*\)) /\1 /p')" crossed "$work/${name// /-}" || true
}

if [ "${1:-}" = openmpi ]; then
    shift
    for version in "${@:-5.*}"; do
        openmpi "$version"
    done
    finish
fi

cuda 'CUDA 12.2' nvidia-cuda-runtime-cu12==12.2.140 nvidia-cuda-nvcc-cu12==12.2.140 \
    nvidia-cublas-cu12==12.2.5.6
if [ $# -gt 0 ]; then
    for version; do
        nccl "$version" "nvidia-nccl-cu12==$version" check-library
    done
else
    nccl 2.18 nvidia-nccl-cu12==2.18.3 all check-library
    nccl 2.20 nvidia-nccl-cu12==2.20.5 check-library
    nccl 2.22 nvidia-nccl-cu12==2.22.3 all check-library
    nccl 2.25 nvidia-nccl-cu12==2.25.1 check-library
    nccl 2.28 nvidia-nccl-cu12==2.28.9 check-library
    cuda 'CUDA 13.0' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' \
        'nvidia-cublas==13.0.*'
    nccl 2.32 nvidia-nccl-cu13==2.32.3 all check-library
    point 'CUDA 13.0 and NCCL 2.32 declare what the CPU build declares' declared
    cuda 'The newest CUDA' nvidia-cuda-runtime nvidia-cuda-crt nvidia-cublas
    nccl 'of today' nvidia-nccl-cu13 all check-library
    openmpi 5.0.8
    openmpi '5.*'
fi
finish
