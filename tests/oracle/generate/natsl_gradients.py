#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden gradients of NAtS-L: PyTorch's autograd through native_oracle.py in float64 with the types as real factors, on
the models of native_models.py. Finite differences of the forward pass whose factors are moved confirm the gradient of
every factor, of chunks that were chosen and, with score_gradient_all, of those that were not.

    python3 natsl_gradients.py            writes data/natsl_gradients.json
    python3 natsl_gradients.py --check    compares the committed file with a fresh run

The loss is the mean next-token loss. What reaches a factor goes through the softmax of its chunk's two scores
(straight through).
"""

import json
import pathlib
import sys
import tempfile

import numpy as np
import torch

sys.path += [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("models", "random")]
import native_oracle
from models import read_golden, write_checkpoint

DATA = pathlib.Path(__file__).resolve().parent / "data"
TENSORS = ("score_proj.weight", "k_proj.weight", "q_norm.weight", "A_log")
CASES = [(name, everything) for name in ("options", "softmax-inside", "linear-inside", "kept-whole", "one-norm")
         for everything in (False, True)]


class Trained(native_oracle.Native):
    """`factors`: the types of each layer, as the forward pass had them, and of a later pass: what it shall have."""

    def __init__(self, folder, everything, factors=None):
        super().__init__(folder, True)
        self.everything, self.given, self.factors = everything, factors, []
        for tensor in self.tensors.values():
            tensor.requires_grad_(factors is None)

    def types(self, stem, options, x):
        chosen = super().types(stem, options, x)
        if self.given is not None:
            self.factors.append(None)
            return self.given[len(self.factors) - 1]
        means = torch.stack([chunk.mean(0) for chunk in x.split(options["chunk_size"])])
        scores = self.linear(stem + "score_proj", means)
        shares = torch.softmax(torch.stack([scores[:, ::2].T, scores[:, 1::2].T], -1), -1)
        factors = chosen.detach() + (shares - shares.detach())
        factors.retain_grad()
        self.factors.append(factors)
        return factors if self.everything else factors * chosen.detach()

    def loss(self, tokens):
        logits = self.run(tokens)[0]
        rows = torch.log_softmax(logits[:-1], -1)
        return -rows[torch.arange(len(rows)), torch.tensor(tokens[1:])].mean()


def check_factors(model, folder, tokens, everything, name, step=1e-6):
    """Central differences of the loss for each factor of the first layer. Rows that see no key jump when a hidden block
    enters with any factor at all: there the derivative of a row of zeros is 0, and nothing is compared."""
    values = [factors.detach() for factors in model.factors]
    found = model.factors[0].grad
    for place in np.ndindex(*values[0].shape):
        chosen = float(values[0][place]) == 1
        if not chosen and not everything:
            assert found[place] == 0, (name, place)
            continue
        if not chosen and place[2] == 0 and name == "linear-inside":
            continue

        def moved(by):
            given = [value.clone() for value in values]
            given[0][place] += by
            with torch.no_grad():
                return float(Trained(folder, everything, given).loss(tokens))

        # Hidden blocks have a slope on one side: a factor below 0 is none.
        if chosen:
            slope = (moved(step) - moved(-step)) / (2 * step)
        else:
            slope = (4 * moved(step) - moved(2 * step) - 3 * moved(0)) / (2 * step)
        np.testing.assert_allclose(float(found[place]), slope, rtol=1e-5, atol=2e-9, err_msg=f"{name} {place}")


def document():
    out = []
    for name, everything in CASES:
        data = read_golden(f"native-natsl-{name}")
        with tempfile.TemporaryDirectory() as folder:
            # Without positions: their angles are float32 numbers, and gradients are compared to more digits.
            data["config"]["mixers"]["natsl"]["rotary"] = False
            write_checkpoint(pathlib.Path(folder), data)
            model = Trained(folder, everything)
            [tokens] = data["ids"]
            model.loss(tokens).backward()
            check_factors(model, folder, tokens, everything, name)
            stem = "model.layers.0.self_attn."
            gradients = {stem + part: model.tensors[stem + part].grad for part in TENSORS}
            gradients["model.layers.0.input_layernorm.weight"] = model.tensors["model.layers.0.input_layernorm.weight"].grad
        out.append({"model": f"native-natsl-{name}", "score_gradient_all": everything,
                    "gradients": {key: [float(f"{x:.9g}") for x in value.flatten()] for key, value in gradients.items()}})
    return "[\n" + ",\n".join(json.dumps(case) for case in out) + "\n]\n"


def main():
    text, path = document(), DATA / "natsl_gradients.json"
    if "--check" not in sys.argv[1:]:
        path.write_text(text)
        return
    for fresh, stored in zip(json.loads(text), json.loads(path.read_text()), strict=True):
        for name, numbers in fresh["gradients"].items():
            np.testing.assert_allclose(numbers, stored["gradients"][name], rtol=1e-7, atol=1e-12)


if __name__ == "__main__":
    main()
