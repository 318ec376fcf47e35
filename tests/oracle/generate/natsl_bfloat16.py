# SPDX-License-Identifier: GPL-3.0-or-later
"""NAtS-L in bfloat16: writes natsl_bfloat16.json, of the models in models/native-natsl-*.json.

native_oracle.py in float64 with what a layer hands on rounded to bfloat16, as the program does: embeddings, norms, maps,
convolutions, the mean of a chunk, its scores, the two branches, their weights, and sums. Types are decided by the rounded
scores, softmax at a tie. Beside them, without any rounding, how much larger the linear score is, and how large the
products are whose sums the two scores are: a bfloat16 step of that is what a type may depend on.

    python natsl_bfloat16.py [OUT.json]
"""

import json
import sys
import tempfile
from pathlib import Path

import torch

sys.path += [str(Path(__file__).resolve().parents[1] / folder) for folder in ("models", "random")]
from models import ids, read_golden, rounded, write_checkpoint
from native_oracle import Native
from native_models import ABLATIONS

OUT = Path(__file__).resolve().parent / "data/natsl_bfloat16.json"
CASES = ["native-natsl-options", *(f"native-natsl-{name}" for name in ABLATIONS)]


def stepped(x):
    return x.to(torch.bfloat16).to(x.dtype)


class Plain(Native):
    """Keeps what decides the types of the first layer."""

    def types(self, stem, options, x):
        means = torch.stack([chunk.mean(0) for chunk in x.split(options["chunk_size"])])
        weight = self.tensors[stem + "score_proj.weight"]
        scores, sizes = means @ weight.T, means.abs() @ weight.abs().T
        self.difference = (scores[:, 1::2] - scores[:, ::2]).T
        self.products = sizes.unflatten(1, (-1, 2)).amax(2).T
        return super().types(stem, options, x)


class Stepped(Native):
    def norm(self, name, x):
        return stepped(super().norm(name, stepped(x)))

    def linear(self, stem, x):
        return stepped(super().linear(stem, stepped(x)))

    def rotate(self, x, theta=None):
        return stepped(super().rotate(x, theta))

    def convolved_heads(self, stem, options, x):
        return {name: stepped(part) for name, part in super().convolved_heads(stem, options, x).items()}

    def natsl(self, stem, x):
        mixed, *seen = super().natsl(stem, x)
        return stepped(mixed), *seen

    def types(self, stem, options, x):
        self.decided = super().types(stem, options, x)
        return self.decided


TEXTS = 40  # of the first model alone: more types, some of them near a tie


def case(name, texts):
    data = read_golden(name)
    found = dict(model=name, tokens=[ids(21, 37, salt) for salt in range(texts)], difference=[], size=[], linear=[])
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        write_checkpoint(Path(folder), data)
        plain, steps = Plain(folder, True), Stepped(folder, True)
        for tokens in found["tokens"]:
            plain.run(tokens)
            logits = steps.run(tokens)[0]
            found["difference"] += rounded(plain.difference)
            found["size"] += rounded(plain.products)
            found["linear"] += steps.decided[..., 1].flatten().int().tolist()
            found.setdefault("logits", rounded(stepped(logits)))  # of the first text
    return found


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    cases = [case(name, TEXTS if name == CASES[0] else 1) for name in CASES]
    out.write_text(json.dumps({"cases": cases}) + "\n")


if __name__ == "__main__":
    main()
