#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# fuzz.sh [SECONDS] [TARGET...]: runs the fuzzers (tests/fuzz) under ASan and UBSan, each for SECONDS (60), as many at a
# time as there are processors, and prints what each one did and how much of its reader it reached. Fails on any
# finding; the inputs that led to one are kept in build/fuzz/findings. The corpus grows in build/fuzz/corpus from run to
# run; HEADSCOPE_FUZZ_JOBS says how many run at a time. 77: clang is not to be had.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=60
if [ $# -gt 0 ] && [[ $1 =~ ^[0-9]+$ ]]; then
    seconds=$1
    shift
fi

installer/setup.sh --no-window
missing=()
for package in $(sed 's/ *#.*//' installer/packages-fuzz.txt); do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ] && command -v apt-get >/dev/null; then
    root=()
    [ "$(id -u)" -eq 0 ] || root=(sudo)
    { "${root[@]}" apt-get update -qq &&
        "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/dev/null || true
fi
for tool in clang++ llvm-profdata llvm-cov; do
    command -v "$tool" >/dev/null || {
        echo "fuzz.sh: [$tool] expected the packages of installer/packages-fuzz.txt; found none" >&2
        exit 77
    }
done
installer/build.sh fuzz fuzz

fuzz=$PWD/build/fuzz/bin/fuzz
out=$PWD/build/fuzz
export LLVM_PROFILE_FILE=/dev/null
# LibTorch is not instrumented, so that containers that it fills look overfull; leaks of its own are listed.
export ASAN_OPTIONS=detect_container_overflow=0:detect_odr_violation=0:strict_string_checks=1:detect_stack_use_after_return=1:allocator_may_return_null=0:handle_abort=1
export LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1
listing=$(HEADSCOPE_FUZZ_TARGET=list "$fuzz")
if [ $# -eq 0 ]; then
    mapfile -t names < <(cut -f1 <<<"$listing")
else
    names=("$@")
fi
mkdir -p "$out/findings" "$out/logs"

# One target: its own corpus first (that is where new inputs go), then the committed inputs.
run_one() {
    local name=$1 longest
    longest=$(awk -F'\t' -v name="$name" '$1 == name {print $2}' <<<"$listing")
    [ -n "$longest" ] || { echo "fuzz.sh: [$name] expected one of: $(cut -f1 <<<"$listing" | tr '\n' ' ')" >&2; return 2; }
    local inputs=("$out/corpus/$name") folder
    mkdir -p "$out/corpus/$name"
    for folder in corpus regressions; do
        [ -d "tests/fuzz/$folder/$name" ] && inputs+=("$PWD/tests/fuzz/$folder/$name")
    done
    local options=(-max_len="$longest" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=256 -print_final_stats=1
                   -artifact_prefix="$out/findings/$name-" -verbosity=1)
    [ -f "tests/fuzz/dictionaries/$name.dict" ] && options+=(-dict="tests/fuzz/dictionaries/$name.dict")
    export HEADSCOPE_FUZZ_TARGET=$name
    local status=0
    "$fuzz" "${options[@]}" -max_total_time="$seconds" "${inputs[@]}" >"$out/logs/$name.log" 2>&1 || status=$?
    # Coverage of the whole corpus, line by line.
    LLVM_PROFILE_FILE=$out/logs/$name.profraw "$fuzz" "${options[@]}" -runs=0 "${inputs[@]}" >"$out/logs/$name.replay.log" 2>&1 || status=$?
    return "$status"
}

report_one() {
    local name=$1 log=$out/logs/$1.log sources=() lines="no coverage"
    read -r -a sources <<<"$(awk -F'\t' -v name="$name" '$1 == name {print $3}' <<<"$listing")"
    if llvm-profdata merge -sparse "$out/logs/$name.profraw" -o "$out/logs/$name.profdata" 2>/dev/null; then
        lines=$(llvm-cov report "$fuzz" -instr-profile="$out/logs/$name.profdata" "${sources[@]/#/$PWD/}" 2>/dev/null |
            awk '$1 == "TOTAL" {printf "%d of %d lines (%s)", $8 - $9, $8, $10}')
    fi
    local runs speed reached files
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    speed=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    reached=$(grep -o 'cov: [0-9]* ft: [0-9]* corp: [0-9]*' "$log" | tail -n 1)
    printf '%-15s %9s runs %6s/s  %s  %s of %s\n' "$name" "${runs:-?}" "${speed:-?}" "${reached:-nothing}" \
        "$lines" "${sources[*]}"
}

jobs=${HEADSCOPE_FUZZ_JOBS:-$(nproc)}
declare -A status=()
declare -A running=()
reap() {
    local process code=0
    wait -n -p process "${!running[@]}" || code=$?
    status[${running[$process]}]=$code
    unset "running[$process]"
}
for name in "${names[@]}"; do
    [ ${#running[@]} -lt "$jobs" ] || reap
    run_one "$name" &
    running[$!]=$name
done
while [ ${#running[@]} -gt 0 ]; do reap; done

failed=()
{
    for name in "${names[@]}"; do
        if [ "${status[$name]}" -ne 0 ]; then failed+=("$name"); fi
        [ "${status[$name]}" -eq 2 ] || report_one "$name"
    done
} >"$out/report.txt"
cat "$out/report.txt"
for name in "${failed[@]}"; do
    echo "fuzz.sh: [$name] expected no finding; found:" >&2
    grep -h -E '^finding:|ERROR: |runtime error:|SUMMARY:|Test unit written' "$out/logs/$name.log" "$out/logs/$name.replay.log" 2>/dev/null |
        sort -u | head -n 8 >&2 || true
done
[ ${#failed[@]} -eq 0 ]
