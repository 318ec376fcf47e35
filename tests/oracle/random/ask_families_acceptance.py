#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""`headscope ask` on random checkpoints that TransformerLens refuses or reads in another way, against transformers with
hooks, in float64: norms behind attention and feed-forward, latent attention, sink logits, experts.

    ask_families_acceptance.py HEADSCOPE
    ask_families_acceptance.py --self-check        no program, as ask_acceptance.py
"""

import copy

import torch

from ask_acceptance import TOKENS, check, run_cases, self_check
from random_decoders import FAMILIES

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


def main():
    generator = torch.Generator().manual_seed(5)
    texts = [torch.randint(3, 101, (TOKENS,), generator=generator).tolist() for _ in range(2)]
    run_cases(check, self_check, texts, of=families)


if __name__ == "__main__":
    main()
