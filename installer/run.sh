#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# From nothing to figures: set-up, release build, an analysis of the bundled sample, every figure of it in out/.
set -euo pipefail
cd "$(dirname "$0")/.."
installer/setup.sh
installer/build.sh release headscope
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$PWD/.deps/cache}   # fingerprints of weight files
headscope=build/release/bin/headscope
sample=resources/samples/llama-kjv-shakespeare
mkdir -p out
"$headscope" analyze "$sample" --example lantern --record maps,states -o out/sample.headscope.h5
for figure in radar logits indicators thumbnails attention; do
    options=()
    [ "$figure" = attention ] && options=(--layer 2 --head 0)
    for ending in pdf svg png csv; do
        "$headscope" export out/sample.headscope.h5 --figure "$figure" "${options[@]}" -o "out/$figure.$ending"
    done
done
echo
echo "Analysis: out/sample.headscope.h5 (HDF5; docs/file-formats.md)"
echo "Figures:  out/{radar,logits,indicators,thumbnails,attention}.{pdf,svg,png}, their numbers beside them in .csv"
echo "Next:     $headscope analyze MODEL --text 'Your text' -o NAME.headscope.h5     (README.md has a tour)"
