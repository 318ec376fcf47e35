#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# From nothing to something to see: set-up, release build, an analysis of the bundled sample in out/. Where there is a
# display the window opens on it; elsewhere every figure that there is gets drawn into out/: of the sample, of two small
# models trained for seconds, of their evaluations and of costs.
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
analysis=out/sample.headscope.h5 probe=out/sample-repeated.headscope.h5
analyze() { "$headscope" analyze "$sample" --example lantern --record maps,states "${@:2}" -o "$1"; }
if [ "$figures" = no ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
    [ -f "$analysis" ] || analyze "$analysis"
    echo "Opening the window on $analysis (figures instead: installer/run.sh --figures)"
    exec "$headscope" "$sample" "$analysis"
fi
[ "$figures" = yes ] || echo "No display (DISPLAY, WAYLAND_DISPLAY): figures go to out/ instead of a window"
analyze "$analysis"
analyze "$probe" --repeat-token   # the same text with its first token everywhere

# Two models that see the same text for seconds: what is drawn of runs and evaluations.
runs=(out/run-standard out/run-hybrid)
rm -rf "${runs[@]}"
"$headscope" train installer/example-job.toml -o "${runs[0]}" >out/train.log 2>&1
"$headscope" train installer/example-job.toml -o "${runs[1]}" --set model.mixer=non_approximate \
    --set model.layout=even >>out/train.log 2>&1
"$headscope" evaluate "${runs[@]}" --task perplexity --length 8,16,32,64 --tokens 2048 -o out/runs.evaluation.h5 >>out/train.log 2>&1

drawn=()
formats=(pdf svg png csv)
# draw NAME FIGURE FILE... [options]: in all formats, side by side
draw() {
    local name=$1 figure=$2 ending job jobs=()
    for ending in "${formats[@]}"; do
        "$headscope" export "${@:3}" --figure "$figure" -o "out/$name.$ending" & jobs+=($!)
    done
    for job in "${jobs[@]}"; do wait "$job"; done
    drawn+=("$name")
}
draw radar radar "$analysis"
draw logits logits "$analysis" --stage both
draw indicators indicators "$analysis"
draw thumbnails thumbnails "$analysis"
draw attention attention "$analysis" --layer 2 --head 0
formats=(png csv)   # of the others: each file takes a moment
draw attention-logits attention "$analysis" --layer 2 --head 0 --values logits
draw lines lines "$analysis" --layer 1 --head 2 --to-query 24 --to-key 24
draw text text "$analysis"
draw states states "$analysis"
draw loss loss "$analysis"
draw difference difference "$analysis" "$probe" --indicator sink
draw run-loss loss "${runs[@]}"
draw timeline timeline "${runs[0]}" --step 240
draw context-perplexity context-perplexity out/runs.evaluation.h5
draw ablation ablation out/runs.evaluation.h5 --length 64
draw scaling scaling out/runs.evaluation.h5 --length 64
draw cost cost tiny-1m "${runs[1]}"
draw tensors tensors "$sample" --tensor '*.q_proj.weight'
echo
echo "Analysis: $analysis (HDF5; docs/file-formats.md)"
echo "Runs:     ${runs[*]} (docs/training.md)"
echo "Figures:  out/{$(IFS=,; echo "${drawn[*]}")}.png, the first five as .pdf and .svg, their numbers in .csv"
echo "Next:     $headscope analyze MODEL --text 'Your text' -o NAME.headscope.h5     (README.md has a tour)"
