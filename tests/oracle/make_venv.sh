#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# make_venv.sh FOLDER: leaves FOLDER/python, which runs the interpreter that the slow tests compare with.
# That is a virtual environment with requirements.txt (3 GB, made once and again only when the file changes), or
# $HEADSCOPE_ORACLE_PYTHON where that is set. An interrupted download starts over.
# make_venv.sh --lens FOLDER: also fills FOLDER/lens with requirements-lens.txt (300 MB), for the tests and benchmarks
# that compare with TransformerLens and kvpress; without it they are skipped.
set -euo pipefail
lens=no
if [ "${1:-}" = --lens ]; then
    lens=yes
    shift
fi
requirements=$(dirname "$(readlink -f "$0")")/requirements.txt
folder=${1:?make_venv.sh: a folder is expected}
mkdir -p "$folder"
folder=$(readlink -f "$folder")

install_lens() {
    [ "$lens" = yes ] || return 0
    rm -rf "$folder/lens" "$folder/lens.new"
    "$folder/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps \
        --target "$folder/lens.new" -r "$(dirname "$requirements")/requirements-lens.txt"
    mv "$folder/lens.new" "$folder/lens"
}

launcher() {
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$1" >"$folder/python.new"
    chmod +x "$folder/python.new"
    mv "$folder/python.new" "$folder/python"
    "$folder/python" -c 'import h5py, numpy, safetensors, tokenizers, torch, transformers, xarray
print("torch", torch.__version__, "transformers", transformers.__version__)'
}

if [ -n "${HEADSCOPE_ORACLE_PYTHON:-}" ]; then
    launcher "$HEADSCOPE_ORACLE_PYTHON"
    install_lens
    exit
fi

stamp=$(cat "$requirements" <(python3 -V) | sha256sum | cut -d' ' -f1)
if [ "$(cat "$folder/stamp" 2>/dev/null)" != "$stamp" ]; then
    rm -rf "$folder/venv" "$folder/stamp"
    python3 -m venv "$folder/venv" || {
        echo "make_venv.sh: [python3] expected the venv module (Debian: python3-venv), or HEADSCOPE_ORACLE_PYTHON; found none" >&2
        exit 1
    }
    "$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
        --only-binary=:all: -r "$requirements"
    echo "$stamp" >"$folder/stamp"
fi
launcher "$folder/venv/bin/python"
install_lens
