#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# pack.sh [--emulator] [--without-libtorch] BUILD OUT: copies all that run.sh needs on a machine with a GPU into OUT, a
# new folder or a file that ends in .tar.gz, and prints its size. BUILD: a build with -DHEADSCOPE_CUDA=ON or
# -DHEADSCOPE_HIP=ON; with --emulator one without. Libraries come along but for glibc and the driver; --without-libtorch
# leaves out LibTorch's, 460 MB, for a machine whose Python has the same version of torch.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$here/../..
readonly programs=(headscope bench_gpu test_emulator test_attention_cpu test_attention_backward test_recurrent
    test_recurrent_backward test_running test_taylor_state)

fail() {
    echo "pack.sh: $1" >&2
    exit 1
}
emulator=no libtorch=yes
while [ $# -gt 0 ]; do
    case $1 in
        --emulator) emulator=yes ;;
        --without-libtorch) libtorch=no ;;
        *) break ;;
    esac
    shift
done
[ $# -eq 2 ] || fail "expected [--emulator] [--without-libtorch] BUILD OUT; found $*"
build=$1 out=$2
gpu=()
for library in "$build"/lib/libheadscope_gpu_{cuda,hip,emulator}.so; do
    [ ! -f "$library" ] || gpu+=("$library")
done
[[ $emulator = yes || " ${gpu[*]} " =~ _(cuda|hip)\.so ]] ||
    fail "[$build/lib] expected libheadscope_gpu_cuda.so; found none: configure with -DHEADSCOPE_CUDA=ON"

folder=$out scratch=''
if [[ $out = *.tar.gz ]]; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    folder=$scratch/headscope-device
fi
[ ! -e "$folder" ] || [ -f "$folder/commit" ] || fail "[$folder] expected a new folder or a bundle; found another"
rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib"

for program in "${programs[@]}"; do
    [ -x "$build/bin/$program" ] || fail "[$build/bin] expected $program; found none: build the target device_programs"
    strip -o "$folder/bin/$program" "$build/bin/$program"
done
for library in "$build/lib/libheadscope_kernels.so" "${gpu[@]}"; do
    strip --strip-unneeded -o "$folder/lib/${library##*/}" "$library"
done

# "name => path" of all libraries that they load; glibc is the machine's own.
found=$(ldd "${programs[@]/#/$build/bin/}" "${gpu[@]}")
if missing=$(grep -F 'not found' <<<"$found"); then fail "expected all libraries; found: $missing"; fi
while read -r name path; do
    case $name in
        ld-linux* | libc.so.* | libm.so.* | libdl.so.* | librt.so.*) ;;
        libutil.so.* | libpthread.so.* | libresolv.so.*) ;;
        libheadscope_*) ;;
        *)
            [[ $libtorch = no && $path =~ /(torch|nvidia)/ ]] || cp -L "$path" "$folder/lib/$name"
            ;;
    esac
done < <(awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' <<<"$found" | sort -u)
[ "$libtorch" = yes ] || touch "$folder/without-libtorch"

cp "$here"/{run.sh,check.py,bench.py,steps.py} "$folder"
cp -r "$source/resources/samples/llama-kjv-shakespeare" "$folder/sample"
commit=$(git -C "$source" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
[ -z "$(git -C "$source" status --porcelain --untracked-files=no 2>/dev/null)" ] || commit+=" with changes"
echo "$commit" >"$folder/commit"
[ -z "$scratch" ] || tar -C "$scratch" -czf "$out" headscope-device
echo "$out: $(du -shL "$out" | cut -f1), unpacked $(du -sh "$folder" | cut -f1), commit $commit"
