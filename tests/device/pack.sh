#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# pack.sh [--emulator] [--without-libtorch | --operators] BUILD OUT: copies all that run.sh needs on a machine with a
# GPU into OUT, a new folder or a file that ends in .tar.gz, and prints its size. BUILD: one with -DHEADSCOPE_CUDA=ON
# or -DHEADSCOPE_HIP=ON; with --emulator one without. Libraries come along but for glibc and the driver, also those by
# which LibTorch runs whole models on the GPU (installer/setup.sh --cuda), 3.9 GB. --without-libtorch leaves LibTorch
# out, for a machine whose Python has the same version of torch; --operators takes 460 MB of it: single operators run on
# the GPU.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$here/../..
readonly programs=(headscope bench_gpu test_emulator test_attention_cpu test_attention_backward test_recurrent
    test_recurrent_backward test_running test_taylor_state)

fail() {
    echo "pack.sh: $*" >&2
    exit 1
}
emulator=no libtorch=all
while [ $# -gt 0 ]; do
    case $1 in
        --emulator) emulator=yes ;;
        --without-libtorch) libtorch=none ;;
        --operators) libtorch=processor ;;
        *) break ;;
    esac
    shift
done
[ $# -eq 2 ] || fail "expected [--emulator] [--without-libtorch | --operators] BUILD OUT; found $*"
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
commit=$(git -C "$source" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
[ -z "$(git -C "$source" status --porcelain --untracked-files=no 2>/dev/null)" ] || commit+=" with changes"
echo "$commit" >"$folder/commit"

for program in "${programs[@]}"; do
    [ -x "$build/bin/$program" ] || fail "[$build/bin] expected $program; found none: build the target device_programs"
    strip -o "$folder/bin/$program" "$build/bin/$program"
done
for library in "$build/lib/libheadscope_kernels.so" "${gpu[@]}"; do
    strip --strip-unneeded -o "$folder/lib/${library##*/}" "$library"
done

# "name => path" of all libraries that they load; glibc is the machine's own.
loaded() { ldd "$@" | awk '$2 == "=>" {print $1, $3}' | sort -u; }
found=$(loaded "${programs[@]/#/$build/bin/}" "${gpu[@]}")
if missing=$(grep ' not$' <<<"$found"); then fail "expected all libraries; found none of ${missing// not/}"; fi

# LibTorch's folder, its version, and its library of each GPU, which the programs open at run time.
root=$(sed -n 's|^libtorch_cpu.so \(.*\)/torch/lib/libtorch_cpu.so$|\1|p' <<<"$found")
version=$(sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$root/torch/version.py" 2>/dev/null) || true
operators=()
for kind in cuda hip; do
    [[ ! " ${gpu[*]} " =~ _$kind\.so ]] || operators+=("$root/torch/lib/libtorch_$kind.so")
done
[ ${#operators[@]} -gt 0 ] || [ $libtorch = none ] || libtorch=processor
case $libtorch in
    none) echo "$version" >"$folder/without-libtorch" ;;
    processor) [ ${#operators[@]} -eq 0 ] || touch "$folder/operators" ;;
    all)
        for library in "${operators[@]}"; do
            missing=$library
            [ ! -f "$library" ] || missing=$(loaded "$library" | grep -E '^lib(torch|c10|cu|nv|nccl)' |
                grep -vF " $root/" | cut -d' ' -f1) || true
            [ -z "$missing" ] || fail "[$root] expected libraries for whole models; found none of" \
                "${missing//$'\n'/ }: installer/setup.sh --cuda fetches them; or take --without-libtorch or --operators"
        done
        mkdir -p "$folder/libtorch/torch"
        cp -RL "$root/torch/lib" "$folder/libtorch/torch"
        rm -rf "$folder/libtorch/torch/lib"/{libtorch_python.so,libtorch_cuda_linalg.so,libshm*}
        [ ! -d "$root/nvidia" ] || (folder=$(cd "$folder" && pwd) && cd "$root" &&
            find nvidia -name '*.so*' -exec cp -L --parents -t "$folder/libtorch" {} +)
        ;;
esac
while read -r name path; do
    case $name in
        ld-linux* | libc.so.* | libm.so.* | libdl.so.* | librt.so.*) ;;
        libutil.so.* | libpthread.so.* | libresolv.so.*) ;;
        libheadscope_*) ;;
        *)
            [[ $libtorch != processor && -n $root && $path = "$root"/* ]] || cp -L "$path" "$folder/lib/$name"
            ;;
    esac
done <<<"$found"

cp "$here"/{run.sh,check.py,bench.py,differences.py,models.py,steps.py} "$folder"
cp -r "$source/resources/samples/llama-kjv-shakespeare" "$folder/sample"
[ -z "$scratch" ] || tar -C "$scratch" -czf "$out" headscope-device
echo "$out: $(du -shL "$out" | cut -f1), unpacked $(du -sh "$folder" | cut -f1), commit $commit"
