#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""`headscope ask` on random checkpoints that TransformerLens refuses or reads in another way, against transformers with
hooks, in float64: norms behind attention and feed-forward, latent attention, sink logits, experts, layers with a state.

    ask_families_acceptance.py HEADSCOPE
    ask_families_acceptance.py --self-check        no program, as ask_acceptance.py
"""

import copy
import json
import pathlib
import sys
import tempfile

import torch

from ask_acceptance import (AGAINST, ANSWER, TOKENS, Hooked, ask, check, compare, expected_attribution, expected_lens, loss,
                            make, metric, of_head, of_position, read, run_cases, self_check, zero)
from decoder_families import FAMILIES
from oracle_hybrids import Float64
from random_hybrids import FAMILIES as HYBRIDS, PARTIAL

BLOCKS = ("model.layers.{}", "self_attn.o_proj")
PLAIN = (*BLOCKS, "mlp", "model.norm")
NORMS_BEHIND = (*BLOCKS, "post_feedforward_layernorm", "model.norm", "post_attention_layernorm")


def families():
    names = {"olmo2": NORMS_BEHIND, "gemma3": NORMS_BEHIND, "gpt_oss": PLAIN, "deepseek_v3": PLAIN}
    made = {}
    for family, modules in names.items():
        kind, config_of, options = FAMILIES[family]
        config = config_of(**copy.deepcopy(options | {"initializer_range": 0.3}))
        config._experts_implementation = "eager"
        made[family] = (kind, config, *modules)
    return made


class HookedHybrid(Hooked):
    """`mixers`: names of the output projections of a block, in the order of its sites. Computes in float64 where the model's
    code asks for float32."""

    def __init__(self, model, mixers, feed, norm):
        super().__init__(model, "model.layers.{}", "", feed, norm)
        self.by_layer = [[f"{name}.{one}" for one in mixers(model.get_submodule(name))] for name in self.blocks]
        self.projections = self.attentions = [name for names in self.by_layer for name in names]
        sys.modules[type(model).__module__].torch = Float64()


def mixers_of_qwen(block):
    return ["linear_attn.out_proj" if hasattr(block, "linear_attn") else "self_attn.o_proj"]


def mixers_of_falcon(_):
    return ["self_attn.o_proj", "mamba.out_proj"]


HYBRID_CASES = {
    "qwen3_5": (mixers_of_qwen, "mlp", "model.norm"),
    "falcon_h1": (mixers_of_falcon, "feed_forward", "model.final_layernorm"),
}


def expected_hybrid_patch(hooked, clean, corrupted):
    """Of mixer_output, behind gates and norms of heads, where a layer has one projection."""
    _, seen = hooked.record(clean)
    run = lambda before=None, after=None: metric(hooked.run(corrupted, before, after))
    outputs = lambda names: [[[run(after={name: of_position(p, seen["out", name])}) for p in range(TOKENS)] for name in names]]
    wanted = {"clean": [metric(hooked.run(clean))], "corrupted": [run()], "value/hidden": outputs(hooked.blocks),
              "value/feed_forward_output": outputs(hooked.feeds)}
    if len(hooked.projections) == len(hooked.blocks):
        wanted["value/mixer_output"] = [[[run(before={name: of_position(p, seen["in", name])}) for p in range(TOKENS)]
                                         for name in hooked.projections]]
    return wanted


def expected_hybrid_ablate(hooked, ids):
    """Zeros ahead of a gate, or of a norm of one head, are zeros at the projection."""
    run = lambda before=None, after=None: loss(hooked.run(ids, before, after), ids)
    return {
        "baseline": [run()],
        "head": [[[run(before={name: of_head(h, hooked.heads, None)}) for h in range(hooked.heads)]
                  for name in hooked.projections]],
        "attention": [[run(after={name: zero for name in names}) for names in hooked.by_layer]],
        "feed_forward": [[run(after={name: zero}) for name in hooked.feeds]],
    }


def expected_hybrid_attribution(hooked, ids):
    """Without heads where a layer joins two mixers."""
    if len(hooked.projections) == len(hooked.blocks):
        return expected_attribution(hooked, ids)
    both = hooked.projections
    hooked.projections = hooked.attentions = [names[0] for names in hooked.by_layer]
    wanted = expected_attribution(hooked, ids)
    hooked.projections = hooked.attentions = both
    del wanted["head"]
    return wanted


def check_hybrid(program, name, hooked, texts, folder):
    clean, corrupted = texts
    files = {}
    for key, ids in (("clean", clean), ("corrupted", corrupted)):
        files[key] = folder / f"{key}.json"
        files[key].write_text(json.dumps([ids]))
    output, model = folder / "out.ask.h5", folder / "model"
    choice = ["--answer", ",".join(map(str, ANSWER)), "--against", ",".join(map(str, AGAINST))]
    ask(program, "lens", model, output, "--tokens", files["clean"])
    compare(f"{name}, lens", expected_lens(hooked, clean), read(output, "lens"))
    wanted = expected_hybrid_patch(hooked, clean, corrupted)
    sites = ",".join(key.removeprefix("value/") for key in wanted if key.startswith("value/"))
    ask(program, "patch", model, output, "--clean-tokens", files["clean"], "--corrupted-tokens", files["corrupted"],
        "--sites", sites, *choice)
    compare(f"{name}, patch", wanted, read(output, "patch"))
    ask(program, "ablate", model, output, "--tokens", files["clean"])
    compare(f"{name}, ablate", expected_hybrid_ablate(hooked, clean), read(output, "ablate"))
    ask(program, "attribution", model, output, "--tokens", files["clean"], *choice)
    compare(f"{name}, attribution", expected_hybrid_attribution(hooked, clean), read(output, "attribution"))


def self_check_hybrid(name, hooked, texts):
    clean, corrupted = texts
    patch = expected_hybrid_patch(hooked, clean, corrupted)
    assert abs(patch["value/hidden"][0][-1][-1] - patch["clean"][0]) < 1e-9, "the last position decides"
    expected_lens(hooked, clean)
    assert len(expected_hybrid_ablate(hooked, clean)["head"][0]) == len(hooked.projections)
    expected_hybrid_attribution(hooked, clean)
    print(f"{name}: patches agree with themselves")


def run_hybrids(texts):
    for name, names in HYBRID_CASES.items():
        kind, config_of, options = HYBRIDS[name]
        turned = {"rope_parameters": PARTIAL} if name == "qwen3_5" else {}  # an even number of dimensions
        config = config_of(**copy.deepcopy(options | {"initializer_range": 0.3} | turned))
        model = make(kind, config)
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            model.save_pretrained(folder / "model")
            hooked = HookedHybrid(model, *names)
            if sys.argv[1] == "--self-check":
                self_check_hybrid(name, hooked, texts)
            else:
                check_hybrid(sys.argv[1], name, hooked, texts, folder)


def main():
    generator = torch.Generator().manual_seed(5)
    texts = [torch.randint(3, 101, (TOKENS,), generator=generator).tolist() for _ in range(2)]
    run_cases(check, self_check, texts, of=families)
    run_hybrids(texts)


if __name__ == "__main__":
    main()
