#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# build.sh PRESET [TARGET...]: configures and builds a preset quietly; on failure shows the compiler's words.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
export CCACHE_DIR=${CCACHE_DIR:-$PWD/.deps/ccache}   # nothing outside the checkout is written
mkdir -p "build/$preset"
log=build/$preset/build.log
# Two jobs for each 4 GiB: a file that includes LibTorch takes up to 1.4 GB.
memory=$(awk '/MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo)
jobs=$(nproc)
[ "$memory" -ge "$jobs" ] || jobs=$((memory > 0 ? memory : 1))
if ! { cmake --preset "$preset" ${HEADSCOPE_CMAKE_ARGS:-} && cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}; } >"$log" 2>&1; then
    grep -E 'error|Error|FAILED' "$log" | head -n 20 >&2 || true
    tail -n 30 "$log" >&2
    echo "build.sh: [$preset] expected the build to pass; see $log" >&2
    exit 1
fi
