# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of runs from decoders of every family, and of a fresh GPT-2 of ours, opened in transformers.

    python trained_in_transformers.py HEADSCOPE [--filter TEXT]

A random checkpoint of each family is trained for three steps. The snapshot must load in transformers without a tensor
missing or left over, its weights must have moved, and the logits, attention and indicators that the program makes of it must
be those of transformers in float64.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

sys.path.append(str(Path(__file__).resolve().parents[1] / "random"))
import acceptance
import comparison
import random_models

STEPS = 3
LENGTHS = (65, 2)
# The first case of each, and those whose heads, names or layouts differ from it. Of old files the names are kept, which is
# transformers' own business to read; half precision is trained in float32.
CASES = [
    "gpt2", "gpt2-float16-sharded-untied", "llama", "llama-bf16-sharded-tied", "qwen2", "opt", "opt-post-norm-small-embedding", "bloom", "neox",
    "neox-serial-old", "neox-bf16-sharded-tied", "mistral", "qwen3", "gemma2", "gemma2-tight-caps", "phi",
    "phi-bf16-sharded-tied", "gptj", "gptj-f16-sharded-tied-bare", "olmo2", "gpt-oss", "gpt-oss-packed", "gemma", "gemma3",
    "phi3", "smollm3", "olmo-clipped-biases-old", "olmo3", "granite", "starcoder2", "stablelm",
    "stablelm-key-norms-parallel-old", "falcon-groups", "mpt-cut-old", "cohere-bf16-sharded-key-norms", "nemotron", "exaone4", "apertus",
    "mixtral", "mixtral-stacked-window-old", "qwen2-moe", "granitemoe",
]
PRESETS = ["nano-mhe-decoder"]


def train(program, run, model):
    """`model`: a line of the job."""
    job = run.with_suffix(".toml")
    job.write_text(f"""[model]
{model}
[data]
generator = {{ name = "markov", symbols = 16 }}
sequence_length = 32
[training]
steps = {STEPS}
batch = 4
[optimizer]
learning_rate = 1e-2
[snapshots]
every = {STEPS}
""")
    subprocess.run([program, "train", str(job), "-o", str(run)], check=True, capture_output=True, text=True)
    return run / "snapshots" / "last"


def loads(folder):
    """What transformers says of a checkpoint that does not fit it."""
    _, report = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, output_loading_info=True)
    return {what: names for what, names in report.items() if names}


def run_case(program, case, folder):
    source = folder / case.name
    case.make(source, 3)
    try:
        snapshot = train(program, folder / f"{case.name}-run", f'from = "{source}"')
    except subprocess.CalledProcessError as error:
        return [f"{case.name}: {error.stderr.strip()[-500:]}"]
    failures, exact, sequences = compared(program, case.name, snapshot, folder)
    before, _ = acceptance.traces(source, sequences)
    if abs(exact[0].logits - before[0].logits).max() < 1e-3:
        failures.append(f"{case.name}: the snapshot says what its source says")
    return failures


def run_preset(program, preset, folder):
    """A fresh stack that transformers knows, though our names of its tensors are others."""
    try:
        snapshot = train(program, folder / f"{preset}-run", f'preset = "{preset}"')
    except subprocess.CalledProcessError as error:
        return [f"{preset}: {error.stderr.strip()[-500:]}"]
    return compared(program, preset, snapshot, folder)[0]


def compared(program, name, snapshot, folder):
    """What differs between the program and transformers, with the traces and what they are of."""
    failures = [f"{name}: {what}: {names}" for what, names in loads(snapshot).items()]
    vocabulary = json.loads((snapshot / "config.json").read_text())["vocab_size"]
    short = random_models.Case(f"{name}-snapshot", None, lengths=LENGTHS)
    sequences = acceptance.draw_tokens(short, vocabulary, 3)
    exact, single = acceptance.traces(snapshot, sequences)
    output = folder / f"{name}.headscope.h5"
    verdict = acceptance.analyse(program, snapshot, sequences, output, short)
    if verdict is None:
        verdict = acceptance.compare(output, exact, comparison.Tolerances(exact, single), short, len(exact[0].sites))
    return failures + [f"{name}: {failure}" for failure in verdict.failures], exact, sequences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope")
    parser.add_argument("--filter", default="")
    arguments = parser.parse_args()
    acceptance.quiet()
    known = {case.name: case for case in random_models.cases()}
    failures = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in (*CASES, *PRESETS):
            if arguments.filter not in name:
                continue
            found = (run_preset(arguments.headscope, name, Path(temporary)) if name in PRESETS
                     else run_case(arguments.headscope, known[name], Path(temporary)))
            print(f"{name:32} {'FAILED' if found else 'ok'}", flush=True)
            failures += found
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
