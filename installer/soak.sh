#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# soak.sh [MINUTES]: what depends on chance and on the machine's pace, and therefore is no gate of a change: the window under
# random clicks, trainings that are killed at random moments, mixers that learn, a reproduction, fuzzers; and GPU kernels in
# the emulator under ASan and UBSan, which take too long for a gate. Takes about MINUTES (120): a third for the monkey, a
# third for the fuzzers, the rest for the others. New seeds are drawn and printed;
# HEADSCOPE_SOAK_SEED repeats a run. The report is build/soak/report.md, each part's output lies beside it. Exit status 1
# where a part failed.
set -uo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-120}
[[ $minutes =~ ^[0-9]+$ ]] && [ "$minutes" -ge 6 ] || {
    echo "soak.sh: expected minutes, at least 6; found ${1:-}" >&2
    exit 2
}
seed=${HEADSCOPE_SOAK_SEED:-$RANDOM}
installer/setup.sh || exit 1
installer/build.sh release || exit 1
folder=build/soak report=build/soak/report.md failed=0
mkdir -p "$folder"
{
    echo "# Soak of $(date -u +%F), $minutes minutes, seed $seed"
    echo
    echo "Commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors"
    echo
    echo "| part | seconds | result |"
    echo "| --- | --- | --- |"
} >"$report"

# part NAME MOST_SECONDS COMMAND...: one line of the report
part() {
    local name=$1 most=$2 begin=$SECONDS status=0 result=passed
    shift 2
    echo "== $name: at most $most s"
    timeout --kill-after=20 "$most" "$@" >"$folder/$name.log" 2>&1 || status=$?
    case $status in
        0) ;;
        77) result="left out (see $name.log)" ;;
        124 | 137) result="not over after $most s" ;;
        *) result="FAILED, status $status (see $name.log)" failed=1 ;;
    esac
    echo "| $name | $((SECONDS - begin)) | $result |" >>"$report"
    echo "   $result"
}

third=$((minutes * 20))
program=build/release/bin/headscope
part monkey $((third + 600)) python3 tests/window/monkey.py "$program" --seconds "$third" --seed "$seed"
part kills $((third / 2 + 300)) env HEADSCOPE_KILLS=$((third / 6)) HEADSCOPE_KILL_SEED="$seed" \
    ctest --test-dir build/release -R '^app_train_kills$' --output-on-failure
part mixers_learn $((third + 1800)) ctest --test-dir build/release -R '^app_mixers_learn$' --output-on-failure
part reproduce 3000 ctest --test-dir build/release -L '^reproduce$' --output-on-failure
targets=$(find tests/fuzz/targets -name '*.cpp' ! -name target.cpp | wc -l)
each=$((third * $(nproc) / targets))
part benches 3600 installer/build.sh release benches
part asan_build 3600 installer/build.sh asan test_emulator headscope_gpu_emulator
part asan_emulator 3600 ctest --test-dir build/asan -R '^emulator$' --output-on-failure
part fuzz $((third + 1800)) installer/fuzz.sh $((each > 10 ? each : 10))
cat "$report"
exit $failed
