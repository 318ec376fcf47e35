# SPDX-License-Identifier: GPL-3.0-or-later
"""Random checkpoints of Transformer-XL in its old format (pytorch_model.bin), for the acceptance test. See random_models.py.

    python random_xl.py FOLDER        # every case as a folder
"""

import json
import sys
from pathlib import Path

import torch

from random_models import Case, with_options
from xl_oracle import filled, shapes

SIZES = dict(model_type="transfo-xl", vocab_size=101, cutoffs=[17, 40, 77], d_model=30, d_embed=24, n_head=3, d_head=7,
             d_inner=43, div_val=2, n_layer=3, mem_len=300, clamp_len=-1, same_length=False, layer_norm_epsilon=1e-3)


def values(config, seed, gain):
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in shapes(config).items():
        noise = torch.randn(shape, generator=generator)
        if "layer_norm" in name:
            tensors[name] = 1.0 + 0.2 * noise if name.endswith("weight") else 0.2 * noise
        elif len(shape) == 1:
            tensors[name] = 0.2 * noise
        elif "emb_layers" in name or "out_layers" in name:
            tensors[name] = 0.4 * noise
        elif name.endswith(("r_w_bias", "r_r_bias")):
            tensors[name] = 0.5 * noise
        else:
            tensors[name] = noise / shape[1] ** 0.5
            if "qkv_net" in name:
                tensors[name][: 2 * shape[0] // 3] *= gain
    return tied(config, tensors)


def tied(config, tensors):
    """What is the same tensor in the model: the file has it under each of its names."""
    config = filled(config)
    for name in list(tensors):
        if name.endswith(("r_w_bias", "r_r_bias")) and not config["untie_r"]:
            tensors[name] = tensors["transformer." + name.split(".")[-1]]
        number = name.split(".")[2] if name.startswith("crit.out") else ""
        if name.startswith("crit.out_layers") and name.endswith("weight") and config["tie_weight"]:
            tensors[name] = tensors[f"transformer.word_emb.emb_layers.{number}.weight"]
        if name.startswith("crit.out_projs") and config["tie_projs"][int(number)]:
            tensors[name] = tensors[f"transformer.word_emb.emb_projs.{0 if config['div_val'] == 1 else number}"]
    return tensors


def xl(folder, seed, gain=1.5, segments=None, **options):
    config = SIZES | options
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    torch.save(values(config, seed, gain), folder / "pytorch_model.bin")
    if segments:
        (folder / "segments.json").write_text(json.dumps(segments))


def cases():
    def case(name, lengths=(1, 65, 130), segment=0, memory=None, **options):
        said, arguments = {}, []
        if segment:
            said, arguments = {"tokens": segment}, ["--segment", str(segment)]
        if memory is not None:
            said, arguments = said | {"memory": memory}, arguments + ["--memory", str(memory)]
        return Case(f"transfo-xl-{name}", with_options(xl, segments=said, **options), lengths=lengths, arguments=arguments)

    return [
        case("plain"),
        case("same-length-pre-norm-clamped", same_length=True, mem_len=40, clamp_len=23, pre_lnorm=True),
        case("one-table", div_val=1, cutoffs=[], d_embed=30),
        case("one-table-mapped-untied", div_val=1, tie_word_embeddings=False, proj_share_all_but_first=False),
        case("one-table-mapped", div_val=1, untie_r=False),
        case("shared-biases-untied-clamped", untie_r=False, tie_word_embeddings=False, tie_projs=[True, False, True, False],
             clamp_len=50),
        case("segments", segment=23, mem_len=40),
        case("segments-clamped", segment=23, mem_len=60, clamp_len=30),
        case("segments-without-memory", segment=23, memory=0),
        case("segments-short-memory", segment=40, memory=9, pre_lnorm=True),
        case("segments-same-length", segment=17, same_length=True, mem_len=40),
    ]


if __name__ == "__main__":
    for one in cases():
        one.make(Path(sys.argv[1]) / one.name, 1)
