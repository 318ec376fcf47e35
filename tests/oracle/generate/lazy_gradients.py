#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden gradients of Lazy Attention: PyTorch's autograd through native_oracle.py in float64, on the models of
native_models.py. Central differences of the loss confirm every number of an offset and of a distance bias.

    python3 lazy_gradients.py            writes data/lazy_gradients.json
    python3 lazy_gradients.py --check    compares the committed file with a fresh run, native_oracle.py with the specification's
                                         numbers, and its entmax with the package `entmax`, where that is on PYTHONPATH

The loss is the mean next-token loss.
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
STEM = "model.layers.0.self_attn."
TENSORS = ("offset", "distance_bias", "q_proj.weight", "k_norm.weight", "v_proj.weight")
CASES = ("small-window", "no-bias", "constant", "fixed", "softmax", "entmax")


class Trained(native_oracle.Native):
    def __init__(self, folder):
        super().__init__(folder, True)
        for tensor in self.tensors.values():
            tensor.requires_grad_(True)

    def loss(self, tokens):
        logits = self.run(tokens)[0]
        rows = torch.log_softmax(logits[:-1], -1)
        return -rows[torch.arange(len(rows)), torch.tensor(tokens[1:])].mean()


def check_differences(model, tokens, name, step=1e-6):
    for part in ("offset", "distance_bias"):
        tensor = model.tensors.get(STEM + part)
        if tensor is None:
            continue
        for place in np.ndindex(*tensor.shape):
            def moved(by):
                with torch.no_grad():
                    tensor[place] += by
                    loss = float(model.loss(tokens))
                    tensor[place] -= by
                return loss

            slope = (moved(step) - moved(-step)) / (2 * step)
            np.testing.assert_allclose(float(tensor.grad[place]), slope, rtol=1e-5, atol=2e-9, err_msg=f"{name} {part} {place}")


def document():
    out = []
    for name in CASES:
        data = read_golden(f"native-lazy-{name}")
        # Without positions: their angles are float32 numbers, and gradients are compared to more digits.
        data["config"]["rotary"] = False
        with tempfile.TemporaryDirectory() as folder:
            write_checkpoint(pathlib.Path(folder), data)
            model = Trained(folder)
            [tokens] = data["ids"]
            model.loss(tokens).backward()
            check_differences(model, tokens, name)
            gradients = {STEM + part: model.tensors[STEM + part].grad for part in TENSORS if STEM + part in model.tensors}
        out.append({"model": f"native-lazy-{name}",
                    "gradients": {key: [float(f"{x:.9g}") for x in value.flatten()] for key, value in gradients.items()}})
    return "[\n" + ",\n".join(json.dumps(case) for case in out) + "\n]\n"


def check_numbers():
    """The specification's: three keys, s_ij = (j - 1) / 2, v = 1, 2, 4."""
    oracle = native_oracle.Native.__new__(native_oracle.Native)
    oracle.config, oracle.heads, oracle.type = {"mixers": {"lazy": {"distance_bias": False}}}, 1, torch.float64
    scores = torch.tensor([[[0.0, 0.5, 1.0]] * 3], dtype=torch.float64)
    for tau, expected in ((-1.0, (0, 0.244919, 0.692588)), (-0.5, (0.5, 0.872459, 1.659970))):
        oracle.tensors = {"offset": torch.tensor([tau], dtype=torch.float64)}
        _, weights = oracle.lazy("", scores, torch.ones(3, 3, dtype=torch.bool).tril())
        output = weights[0] @ torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
        np.testing.assert_allclose(output.numpy(), expected, atol=5e-7)
        assert tau != -1.0 or output[0] == 0


def check_entmax():
    try:
        import entmax
    except ImportError:
        print("the package entmax is not there: not compared")
        return
    oracle = native_oracle.Native.__new__(native_oracle.Native)
    generator = torch.Generator().manual_seed(7)
    for width, spread in ((1, 1.0), (2, 3.0), (7, 0.01), (40, 1.0), (40, 30.0), (130, 4.0)):
        scores = spread * torch.randn(3, 5, width, generator=generator, dtype=torch.float64)
        np.testing.assert_allclose(oracle.entmax(scores), entmax.entmax15(scores, dim=-1), atol=1e-12)


def main():
    text, path = document(), DATA / "lazy_gradients.json"
    if "--check" not in sys.argv[1:]:
        path.write_text(text)
        return
    check_numbers()
    check_entmax()
    for fresh, stored in zip(json.loads(text), json.loads(path.read_text()), strict=True):
        for name, numbers in fresh["gradients"].items():
            np.testing.assert_allclose(numbers, stored["gradients"][name], rtol=1e-7, atol=1e-12)


if __name__ == "__main__":
    main()
