#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh [--hip | --emulator] [--operators] [--seconds N] [-o TABLE.md] [FOLDER]: correctness, then speed, of the GPU
# kernels in a bundle of pack.sh (the folder of this script by default) or in a build folder. Wants bash and Python 3.8
# alone. Whole models must run on the card, unless --operators was given here or to pack.sh. Ends within N seconds (22
# or more; by default 540, on the emulator 110) and appends a section for docs/gpu.md to TABLE.md (gpu.md in $OUT, or
# here). A failed step does not stop the others; exit status 1 if one failed.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 2

usage() {
    echo "run.sh: expected [--hip | --emulator] [--operators] [--seconds N] [-o TABLE.md] [FOLDER]; found $1" >&2
    exit 2
}
backend=cuda seconds='' table=${OUT:-.}/gpu.md folder='' operators=()
while [ $# -gt 0 ]; do
    case $1 in
        --hip | --emulator) backend=${1#--} ;;
        --operators) operators=(--operators) ;;
        --seconds)
            [[ ${2:-} =~ ^[0-9]+$ && $2 -ge 22 ]] || usage "--seconds ${2:-nothing}"
            seconds=$2
            shift
            ;;
        -o)
            [ -n "${2:-}" ] || usage "-o without a file"
            table=$2
            shift
            ;;
        -*) usage "$1" ;;
        *)
            [ -z "$folder" ] || usage "two folders"
            folder=$1
            ;;
    esac
    shift
done
[ -n "$folder" ] || folder=$here
[ -n "$seconds" ] || { [ "$backend" = emulator ] && seconds=110 || seconds=540; }
[ -x "$folder/bin/headscope" ] || usage "$folder without bin/headscope"
folder=$(cd "$folder" && pwd)
sample=$folder/sample
[ -d "$sample" ] || sample=$here/../../resources/samples/llama-kjv-shakespeare

[ ! -f "$folder/operators" ] || operators=(--operators)

# Search path of the programs alone: the bundle, then a LibTorch that pack.sh left out.
libraries=$folder/lib:$folder/libtorch/torch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if [ -f "$folder/without-libtorch" ]; then
    torch=${HEADSCOPE_TORCH:-$(python3 -c '
import importlib.util
found = importlib.util.find_spec("torch")
print(found.submodule_search_locations[0] if found else "")')}
    libraries+=:$torch/lib:$torch/../nvidia/cu13/lib
    expected=$(cat "$folder/without-libtorch")
    found=$(sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$torch/version.py" 2>/dev/null) || found='no torch'
    [ "$backend" = emulator ] || [ "$found" = "$expected" ] ||
        echo "run.sh: expected torch $expected; found $found: HEADSCOPE_TORCH names its folder" >&2
fi
# The program keeps rates of earlier analyses in its cache.
XDG_CACHE_HOME=$(mktemp -d) || exit 2
export XDG_CACHE_HOME PYTHONDONTWRITEBYTECODE=1
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT

card() {
    case $backend in
        cuda) nvidia-smi --id=0 --query-gpu=name,driver_version --format=csv,noheader | sed 's/, /, driver /' ;;
        hip) rocm-smi --showproductname --showdriverversion --csv | sed -n '2,3p' | paste -sd ' ' ;;
        emulator) echo "Emulator (its times mean nothing)" ;;
    esac
}
commit=$(cat "$folder/commit" 2>/dev/null || git -C "$here" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
name=$(card 2>/dev/null) || name="no tool of the $backend driver"
title="$name, commit $commit, $(date -u +%Y-%m-%d)"
echo "$title"
mkdir -p "$(dirname "$table")" || exit 2
printf '### %s\n\n' "$title" >>"$table" || exit 2
before=$(wc -l <"$table")

# step SCRIPT SECONDS ARGUMENT...
status=0
step() {
    local code=0
    echo "== $SECONDS s: $1"
    timeout --kill-after=5 "$(($2 + 5))" python3 "$here/$1" --backend "$backend" --programs "$folder" \
        --libraries "$libraries" --seconds "$2" --table "$table" "${@:3}" || code=$?
    if [ "$code" -ne 0 ]; then
        echo "$1 ended with status $code"
        status=1
    fi
}
# bench.py has a sixth of the time, or 10 seconds.
step check.py $((seconds - (seconds > 120 ? seconds / 6 : 20))) --sample "$sample" "${operators[@]}"
step bench.py $((seconds - SECONDS - 5))
echo "== $SECONDS s: $table"
tail -n "+$((before - 1))" "$table"
exit "$status"
