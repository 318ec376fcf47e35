# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints that Headscope writes of stacks that transformers knows, and of swapped ones.

    python native_in_transformers.py HEADSCOPE

Uniform `standard` stacks, converted from native checkpoints and from hybrids whose other layers were swapped, must load in
transformers without a tensor left over and give, in float64, the logits of native_oracle.py on the tensors that were
written. A model of transformers whose layers were swapped must be what native_oracle.py makes of its own tensors.
"""

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
import native_oracle
import oracle
import random_models
import random_native

KINDS = [
    ("qwen2", dict(attention_bias=True)),
    ("qwen2", dict(attention_bias=True, tie_word_embeddings=True, num_key_value_heads=2)),
    ("qwen3", dict(attention_bias=False, qk_norm=True)),
    ("qwen3", dict(attention_bias=False, qk_norm=True, num_key_value_heads=1, head_dim=10)),
    ("llama", dict(attention_bias=False)),
    ("llama", dict(attention_bias=False, tie_word_embeddings=True, head_dim=6, num_key_value_heads=3)),
    ("mistral", dict(attention_bias=False, hidden_size=50, num_key_value_heads=3)),  # heads do not divide the width
    ("mistral", dict(attention_bias=False, hidden_size=32, head_dim=10)),
]
TOKENS = [(7 * i * i + 3 * i + 5) % 103 for i in range(90)]


def convert(program, source, destination, *arguments):
    subprocess.run([program, "convert", str(source), str(destination), *arguments], check=True, capture_output=True)
    return destination


def in_transformers(folder):
    """Logits in float64; refuses what does not fit."""
    model, report = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager", output_loading_info=True)
    assert not any(report.values()), report
    return oracle.run(model.eval(), TOKENS, True).logits


def by_the_book(folder, **config):
    """The same tensors as a native model of standard layers."""
    model = native_oracle.load(folder, True)
    model.config |= config
    with torch.no_grad():
        return model.run(TOKENS)[0].numpy()


def standard_stacks(program, folder):
    failures = []
    for number, (written, options) in enumerate(KINDS):
        source = folder / f"native-{number}"
        layers = random_native.MIXERS[-3:] if number % 2 else ["standard"] * 3  # guides are left behind
        random_native.native(source, number, layers, **options)
        made = convert(program, source, folder / f"standard-{number}", "--swap", "all=standard")
        kind = json.loads((made / "config.json").read_text())["model_type"]
        error = abs(in_transformers(made) - by_the_book(made, qk_norm=options.get("qk_norm", False))).max()
        if kind != written or error > 1e-9:
            failures.append(f"{written} {options}: written as {kind}, logits differ by {error:.2g}")
    return failures


def swapped_models(program, folder):
    failures = []
    sources = {
        "llama": random_models.with_options(random_models.llama), "qwen2": random_models.with_options(random_models.qwen2),
        "llama-biases": random_models.with_options(random_models.llama, attention_bias=True, num_key_value_heads=6),
    }
    swaps = {"llama": "1=static_emb_qk", "qwen2": "0,2=rnd_emb_qk", "llama-biases": "0-1=fixed_seq_qk"}
    for name, make in sources.items():
        for swap in (swaps[name], "1=mlp", "all=non_approximate"):
            source = folder / name
            if not source.exists():
                make(source, 3)
            made = convert(program, source, folder / f"{name}-{swap.replace('=', '-').replace(',', '-')}", "--swap", swap)
            case = random_models.Case(made.name, None, lengths=(65, 2))
            vocabulary = json.loads((made / "config.json").read_text())["vocab_size"]
            sequences = acceptance.draw_tokens(case, vocabulary, 3)
            exact, single = acceptance.traces(made, sequences)
            output = folder / f"{made.name}.headscope.h5"
            verdict = acceptance.analyse(program, made, sequences, output, case)
            if verdict is None:
                verdict = acceptance.compare(output, exact, comparison.Tolerances(exact, single), case, 3)
            failures += [f"{made.name}: {failure}" for failure in verdict.failures]
    return failures


def main():
    acceptance.quiet()
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as temporary:
        failures = standard_stacks(program, Path(temporary)) + swapped_models(program, Path(temporary))
    for failure in failures:
        print(failure)
    print("all load in transformers and agree" if not failures else f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
