# SPDX-License-Identifier: GPL-3.0-or-later
"""Losses, right answers and gradients of what native models are trained for, under fixed corruptions, in float64.

native_oracle.py computes each text alone, torch's autograd its gradient, and the texts' sums are what tests/core/model
compares a padded batch of them with. Weights follow from their names (models.py).

    python tests/oracle/generate/objective_losses.py     writes tests/oracle/generate/data/objective_losses.json
"""

import json
import sys
import tempfile
from pathlib import Path

import torch

sys.path += [str(Path(__file__).resolve().parents[1] / folder) for folder in ("models", "random")]
import native_oracle
import native_shapes
import random_native
from models import ids, write_checkpoint

VOCABULARY = 37
LENGTHS = (9, 6, 1 + 3)  # of the texts of a batch


def element(numbers, index):
    return float(f"{numbers.flatten()[index].item():.12g}")


def labels_of(kind, length, salt):
    """One for each token, -1: not counted; the first and the last token never are."""
    classes = VOCABULARY if kind == "masked" else 3
    wanted = [(n * 5 + salt) % classes for n in ids(length, VOCABULARY, salt + 11)]
    every = 3 if kind == "masked" else 1
    return [-1 if i in (0, length - 1) or i % every else label for i, label in enumerate(wanted)]


def case(name, kind, layers, *, classes=2, **options):
    config = dict(vocab_size=VOCABULARY, hidden_size=24, intermediate_size=27, num_hidden_layers=len(layers),
                  num_attention_heads=4, num_key_value_heads=4, head_dim=6, max_position_embeddings=24, rope_theta=100.0,
                  rms_norm_eps=1e-4, qk_norm=False, rotary=True, attention_bias=True, tie_word_embeddings=False, mixers={}) | options
    if config.get("positions", "rotary") != "rotary":
        config["rotary"] = False
    config |= {"model_type": "headscope", "layers": list(layers)}
    shapes = {key: list(shape) for key, shape in native_shapes.shapes(config).items()}
    data = {"name": name, "objective": kind, "classes": classes, "config": config,
            "tensors": dict(sorted(shapes.items())), "file_type": "F32", "shards": 1}
    texts = [ids(length, VOCABULARY, salt) for salt, length in enumerate(LENGTHS)]
    targets = [ids(length - 2, VOCABULARY, salt + 5) for salt, length in enumerate(LENGTHS)]
    data["ids"] = texts
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(Path(folder), data | {"ids": texts})
        model = native_oracle.load(folder, True)
    for tensor in model.tensors.values():
        tensor.requires_grad_()
    loss, correct, counted, said = 0, 0, 0, []
    for n, text in enumerate(texts):
        if kind == "translation":
            logits = model.run(text, targets[n])[0]
            wanted = targets[n][1:] + [2]
        elif kind == "classify":
            logits = model.run(text)[0][:1]
            wanted = [0.75 * n - 0.5] if classes == 1 else [(3 * n + 1) % classes]
        elif kind == "spans":
            logits = model.run(text)[0].T
            wanted = [(n + 2) % len(text), len(text) - 1 if n else 0]
        else:
            logits = model.run(text)[0]
            wanted = labels_of(kind, len(text), n)
        said.append(wanted)
        if kind == "classify" and classes == 1:
            loss = loss + (logits.flatten() - torch.tensor(wanted, dtype=torch.float64)).square().sum()
            counted += 1
            continue
        wanted = torch.tensor(wanted)
        if kind == "spans":  # the mean of the start's and the end's cross-entropy
            loss = loss + torch.nn.functional.cross_entropy(logits, wanted)
            correct += int((logits.argmax(-1) == wanted).all())
            counted += 1
            continue
        loss = loss + torch.nn.functional.cross_entropy(logits, wanted, ignore_index=-1, reduction="sum")
        correct += int((logits.argmax(-1) == wanted).sum())
        counted += int((wanted >= 0).sum())
    loss.backward()
    if kind == "translation":
        data["target"] = targets
    data["wanted"] = said
    data |= {"loss": element(loss.detach(), 0), "correct": correct, "counted": counted, "gradients": {}}
    for key, tensor in sorted(model.tensors.items()):
        gradient = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
        last = gradient.numel() - 1
        data["gradients"][key] = [element(gradient.norm(), 0), *(element(gradient, i) for i in (0, last // 2, last))]
    return data


def cases():
    bert, vaswani = (random_native.MANNERS[name] for name in ("bert", "vaswani"))
    yield case("masked", "masked", ["mhe_mul", "standard"], **bert)
    yield case("masked-plain-head", "masked", ["skv", "mhe_add"], stack="encoder", norm="layer",
               positions="none", tie_word_embeddings=True)
    yield case("shuffle-random", "shuffle_random", ["sha", "fnet"],
               **bert | {"head": {"kind": "token_classes", "classes": 3}})
    yield case("classify", "classify", ["linear", "el_att"], classes=4,
               **bert | {"head": {"kind": "sequence_classes", "classes": 4}})
    yield case("number", "classify", ["standard", "mqa"], classes=1,
               **bert | {"head": {"kind": "sequence_classes", "classes": 1}})
    yield case("spans", "spans", ["standard", "mqa"], **bert | {"head": {"kind": "spans"}})
    yield case("translation", "translation", ["standard", "mhe_add", "mhe_mul"], num_encoder_layers=1, **vaswani)


if __name__ == "__main__":
    path = Path(__file__).parent / "data/objective_losses.json"
    path.write_text("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases()) + "\n]\n")
