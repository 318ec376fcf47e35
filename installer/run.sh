#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# From nothing to something to see: set-up, release build, an analysis of the bundled sample in out/. Where there is a
# display the window opens on it; elsewhere every figure of it is drawn into out/.
#   --figures   figures also where there is a display
set -euo pipefail
cd "$(dirname "$0")/.."
figures=no
for argument in "$@"; do
    case "$argument" in
        --figures) figures=yes ;;
        *) echo "run.sh: expected --figures or nothing; found $argument" >&2; exit 2 ;;
    esac
done
installer/setup.sh
installer/build.sh release headscope
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$PWD/.deps/cache}   # fingerprints of weight files
headscope=build/release/bin/headscope
sample=resources/samples/llama-kjv-shakespeare
mkdir -p out
analysis=out/sample.headscope.h5
analyze() { "$headscope" analyze "$sample" --example lantern --record maps,states -o "$analysis"; }
if [ "$figures" = no ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
    [ -f "$analysis" ] || analyze
    echo "Opening the window on $analysis (figures instead: installer/run.sh --figures)"
    exec "$headscope" "$sample" "$analysis"
fi
[ "$figures" = yes ] || echo "No display (DISPLAY, WAYLAND_DISPLAY): figures go to out/ instead of a window"
analyze
for figure in radar logits indicators thumbnails attention; do
    options=()
    [ "$figure" = attention ] && options=(--layer 2 --head 0)
    for ending in pdf svg png csv; do
        "$headscope" export "$analysis" --figure "$figure" "${options[@]}" -o "out/$figure.$ending"
    done
done
echo
echo "Analysis: out/sample.headscope.h5 (HDF5; docs/file-formats.md)"
echo "Figures:  out/{radar,logits,indicators,thumbnails,attention}.{pdf,svg,png}, their numbers beside them in .csv"
echo "Next:     $headscope analyze MODEL --text 'Your text' -o NAME.headscope.h5     (README.md has a tour)"
