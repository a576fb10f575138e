#!/usr/bin/env bash
# Every lesson, and the library of nccl-check, compile and link against old and new CUDA and
# NCCL, without a warning.
# Headers and libraries come as Python wheels, about 2 GB; nothing is run.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/course"
cp -r "$top"/{Makefile,common,cpu,check} "$top"/[0-9][0-9]-*/ "$work/course"

tests=0
# check NAME PACKAGE…: one TAP line for one set of wheels.
check() {
    local name=$1 home=$work/home log=$work/log library
    shift
    tests=$((tests + 1))
    rm -rf "$home" "$work/wheels"
    mkdir -p "$home"
    if ! python3 -m pip install --quiet --no-deps --only-binary=:all: --no-cache-dir \
        --disable-pip-version-check --root-user-action=ignore \
        --no-compile --target "$work/wheels" "$@" >"$log" 2>&1; then
        sed 's/^/# /' "$log"
        echo "not ok $tests - $name: pip install $*"
        return
    fi
    # The layout of a toolkit: one include, one lib64, libraries by their plain names.
    for folder in "$work"/wheels/nvidia/*/; do
        [ ! -d "$folder/include" ] || cp -rlf "$folder/include" "$home"
        [ ! -d "$folder/lib" ] || cp -rlfT "$folder/lib" "$home/lib64"
    done
    for library in "$home"/lib64/*.so.*; do
        ln -sf "${library##*/}" "${library%%.so.*}.so"
    done
    if timeout 300 make -C "$work/course" BACKEND=cuda CUDA_HOME="$home" NCCL_HOME="$home" \
        WARNINGS='-Wall -Wextra -Werror' -B all check-library >"$log" 2>&1; then
        echo "ok $tests - $name"
    else
        sed 's/^/# /' "$log"
        echo "not ok $tests - $name"
    fi
}

cuda_12_2='nvidia-cuda-runtime-cu12==12.2.140 nvidia-cuda-nvcc-cu12==12.2.140
nvidia-cublas-cu12==12.2.5.6'
# shellcheck disable=SC2086 # a list of words
{
    check 'CUDA 12.2 and NCCL 2.18' $cuda_12_2 nvidia-nccl-cu12==2.18.3
    check 'CUDA 12.2 and NCCL 2.22' $cuda_12_2 nvidia-nccl-cu12==2.22.3
}
check 'the newest CUDA and NCCL' nvidia-cuda-runtime nvidia-cuda-crt nvidia-cublas \
    nvidia-nccl-cu13
echo "1..$tests"
