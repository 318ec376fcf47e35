#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Sets up what building needs: Debian packages (installer/packages.txt), LibTorch and, for Parquet files, Apache Arrow
# (installer/wheels.txt, wheels-arrow.txt, checked by SHA-256) in .deps/, which git ignores. Safe to repeat: seconds when
# nothing is missing, starts over after an interruption. Changes nothing outside the checkout but apt packages.
#   --no-window    leave Qt, plots and fonts out (preset core-only)
#   --no-parquet   leave Arrow out
#   --hip          install hipcc, too (Debian's, with clang 15: 66 MB, 353 MB unpacked), for -DHEADSCOPE_HIP=ON
#   --cuda         fetch the libraries that whole models on an NVIDIA GPU need, too (wheels-cuda.txt, 1.98 GB)
#   --rocm WHEEL   unpack a ROCm torch wheel of LibTorch's version, which you bring, into .deps/libtorch-rocm
set -euo pipefail
cd "$(dirname "$0")/.."

window=yes
parquet=yes
hip=no
cuda=no
rocm=
readonly started=$OLDPWD
while [ $# -gt 0 ]; do
    case "$1" in
        --no-window) window=no ;;
        --no-parquet) parquet=no ;;
        --hip) hip=yes ;;
        --cuda) cuda=yes ;;
        --rocm)
            shift
            [ $# -gt 0 ] || { echo "setup.sh: --rocm: expected a ROCm torch wheel; found nothing" >&2; exit 2; }
            case "$1" in /*) rocm=$1 ;; *) rocm=$started/$1 ;; esac ;;
        *) echo "setup.sh: expected --no-window, --no-parquet, --hip, --cuda, --rocm WHEEL or nothing; found $1" >&2; exit 2 ;;
    esac
    shift
done

say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }
fail() { echo "setup.sh: $*" >&2; exit 1; }

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] ||
    fail "[system] Linux on x86-64 is expected, for the LibTorch wheel is built for it; found $(uname -s) on $(uname -m)"

wanted_packages() {
    local left_out='^$'
    [ "$window" = yes ] || left_out+='|# (window|fonts)'
    [ "$hip" = yes ] || left_out+='|# hip'
    sed -n 's/^\([a-z0-9][^ #]*\)\( *#.*\)\{0,1\}$/\0/p' installer/packages.txt |
        grep -v -E "$left_out" | sed 's/ *#.*//'
}

install_packages() {
    if ! grep -q '^ID=debian' /etc/os-release 2>/dev/null || ! grep -q '^VERSION_ID="\?1[2-9]' /etc/os-release ||
        ! command -v apt-get >/dev/null; then
        missing_tools=""
        for tool in g++ cmake ninja pkg-config python3; do
            command -v "$tool" >/dev/null || missing_tools="$missing_tools $tool"
        done
        cat >&2 <<EOF
setup.sh: this is not Debian 12 or newer, so the packages are yours to install. Wanted, by their Debian 12 names and versions
(other distributions name them alike): g++ 12 or newer with C++20, cmake 3.25, ninja, pkg-config, python3 with pip;
catch2 2.13 (not 3), CLI11 2.x, HDF5 1.10 or newer with its C++ interface, highway (libhwy) 1.0, oniguruma 6.9,
OpenSSL 3 (libcrypto), zlib, libzstd, utf8proc 2.8, nlohmann-json 3.11; for figures Qt 6.4 (base, svg) and QCustomPlot 2.1 built for
Qt 6, and the fonts Noto Sans (core, CJK, colour emoji) and DejaVu.
Tools not found here:${missing_tools:- none}
EOF
        [ -z "$missing_tools" ] || exit 1
        return
    fi
    local missing=() package
    for package in $(wanted_packages); do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    local root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "[apt] root or sudo is needed to install: ${missing[*]}"
        root=(sudo)
    fi
    say "Installing ${#missing[@]} packages: ${missing[*]}"
    "${root[@]}" apt-get update -qq
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
        fail "[apt] expected these packages to install: ${missing[*]}"
}

# Sets $python to one with pip.
find_python() {
    python=python3
    "$python" -m pip --version >/dev/null 2>&1 || python=/usr/bin/python3
    "$python" -m pip --version >/dev/null 2>&1 || fail "[pip] expected python3 with pip; found none"
}

# fetch_wheels NAME LIST SAY [KEEP]: unpacks the wheels of a list into .deps/NAME; KEEP FOLDER arranges them there first.
# False if they cannot be fetched (set -e does not hold in here).
fetch_wheels() {
    local list=$2 target=.deps/$1 stamp
    stamp=$(sha256sum "$list" | cut -d' ' -f1)
    [ "$(cat "$target/stamp" 2>/dev/null)" = "$stamp" ] && return
    mkdir -p .deps
    exec 9>.deps/lock
    flock 9   # a second set-up waits for the first
    [ "$(cat "$target/stamp" 2>/dev/null)" = "$stamp" ] && return
    find_python
    say "$3"
    rm -rf .deps/wheels "$target.partial"
    # pip checks each file against its hash in the list before it is kept.
    "$python" -m pip download --quiet --no-cache-dir --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: \
        --python-version 3.11 --implementation cp --abi cp311 \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 --platform manylinux2014_x86_64 \
        --dest .deps/wheels -r "$list" || return 1
    local wheel
    for wheel in .deps/wheels/*.whl; do
        grep -q "$(sha256sum "$wheel" | cut -d' ' -f1)" "$list" ||
            fail "[$wheel] expected a SHA-256 that $list lists; found $(sha256sum "$wheel" | cut -d' ' -f1)"
        "$python" -m zipfile -e "$wheel" "$target.partial" || return 1
    done
    "${4:-true}" "$target.partial" && echo "$stamp" >"$target.partial/stamp" && rm -rf "$target" .deps/wheels &&
        mv "$target.partial" "$target"
}

# Two libraries, the headers and the license: 70 MB of 170.
keep_parquet() {
    mkdir "$1/lib" && mv "$1"/pyarrow/libarrow.so.* "$1"/pyarrow/libparquet.so.* "$1/lib" &&
        mv "$1/pyarrow/include" "$1"/pyarrow-*.dist-info/licenses "$1" &&
        rm -r "$1"/pyarrow "$1"/pyarrow-*.dist-info
}

# Hard links in LibTorch's folder, where its CUDA library looks for them.
link_cuda() {
    cp -rlf .deps/cuda/nvidia .deps/libtorch/ || fail "[.deps/cuda] expected to link its files into .deps/libtorch"
}

# A ROCm torch has a libtorch_cpu of its own, hence a folder of its own.
unpack_rocm() {
    local target=.deps/libtorch-rocm wanted found
    wanted=$(sed -n 's/^torch==\([^ ]*\) .*/\1/p' installer/wheels.txt)
    [ -f "$rocm" ] || fail "[--rocm] expected the file of a ROCm torch wheel; found no file $rocm"
    found=$(basename "$rocm")
    case "$found" in
        "torch-$wanted+rocm"*.whl) ;;
        *) fail "[--rocm] expected torch-$wanted+rocm*.whl, the version of installer/wheels.txt; found $found" ;;
    esac
    local stamp
    stamp=$(sha256sum "$rocm" | cut -d' ' -f1)
    if [ "$(cat "$target/stamp" 2>/dev/null)" != "$stamp" ]; then
        find_python
        say "Unpacking $found"
        rm -rf "$target.partial"
        "$python" -m zipfile -e "$rocm" "$target.partial" && [ -f "$target.partial/torch/lib/libtorch_hip.so" ] ||
            fail "[$rocm] expected a wheel with torch/lib/libtorch_hip.so; found none"
        echo "$stamp" >"$target.partial/stamp" && rm -rf "$target" && mv "$target.partial" "$target"
    fi
    say "Configure with -DHEADSCOPE_LIBTORCH=$PWD/$target -DHEADSCOPE_HIP=ON"
}

install_packages
fetch_wheels libtorch installer/wheels.txt "Fetching LibTorch (570 MB, once)" ||
    fail "[LibTorch] expected to fetch the wheels of installer/wheels.txt; see the message above. Run it again to start over"
[ "$parquet" = no ] || fetch_wheels arrow installer/wheels-arrow.txt "Fetching Apache Arrow (55 MB, once)" keep_parquet ||
    echo "setup.sh: [Arrow] could not be fetched; see the message above. Parquet files will be refused" >&2
if [ "$cuda" = yes ]; then
    fetch_wheels cuda installer/wheels-cuda.txt "Fetching libraries of CUDA (1.98 GB, once)" ||
        fail "[CUDA] expected to fetch the wheels of installer/wheels-cuda.txt; see the message above. Run it again to start over"
fi
[ ! -f .deps/cuda/stamp ] || link_cuda
[ -z "$rocm" ] || unpack_rocm
