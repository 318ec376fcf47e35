# SPDX-License-Identifier: GPL-3.0-or-later
"""What oracle.py must know of the encoders after BERT, of OPT and of BLOOM: where transformers keeps their
blocks and projections, how a checkpoint without a head is loaded, and which places drop to float32."""

import copy
import types
from contextlib import contextmanager

import numpy as np
import torch
import transformers
from transformers.modeling_rope_utils import dynamic_rope_update
from transformers.models.bloom import modeling_bloom
from transformers.models.modernbert import modeling_modernbert

LIKE_ROBERTA = ("roberta", "xlm-roberta", "camembert", "data2vec-text")
LIKE_BERT = ("bert", "electra", "mpnet", "esm", "fnet", *LIKE_ROBERTA)
LIKE_LLAMA = ("eurobert", "nomic_bert")
ENCODERS = ("distilbert", "albert", "modernbert", *LIKE_BERT, *LIKE_LLAMA)
WITH_POOLER = ("bert", "albert", "mpnet", "esm", "fnet", *LIKE_ROBERTA)


def load(folder, config, options):
    """An encoder with its head for masked words, or alone."""
    if any(name.endswith("ForMaskedLM") for name in config.architectures or []):
        model = transformers.AutoModelForMaskedLM.from_pretrained(folder, **options)
    else:
        pooler = {"add_pooling_layer": False} if config.model_type in WITH_POOLER else {}
        model = transformers.AutoModel.from_pretrained(folder, **pooler, **options)
    if config.model_type == "albert":
        unroll(model)
    return model


def unroll(model):
    """ALBERT's shared layers as modules of their own, so that each can be watched."""
    encoder, config = model.base_model.encoder, model.config
    passes = config.num_hidden_layers
    shared = [int(i / (passes / config.num_hidden_groups)) for i in range(passes)]
    encoder.albert_layer_groups = torch.nn.ModuleList(
        copy.deepcopy(encoder.albert_layer_groups[group]) for group in shared)
    config.num_hidden_groups = passes


def blocks(model):
    """The list of blocks, or None for a family that is not from here."""
    base, kind = model.base_model, model.config.model_type
    if kind in LIKE_BERT:
        return base.encoder.layer
    if kind in LIKE_LLAMA:
        return base.layers
    if kind == "albert":
        return [layer for group in base.encoder.albert_layer_groups for layer in group.albert_layers]
    return {"distilbert": lambda: base.transformer.layer, "modernbert": lambda: base.layers,
            "opt": lambda: base.decoder.layers, "bloom": lambda: base.h}.get(kind, lambda: None)()


def projections(model, block):
    kind = model.config.model_type
    if kind == "fnet":
        return {}
    if kind == "modernbert":
        return {"qkv": block.attn.Wqkv}
    if kind == "bloom":
        return {"by_head": block.self_attention.query_key_value}
    if kind == "distilbert":
        attention = block.attention
        return {"q": attention.q_lin, "k": attention.k_lin, "v": attention.v_lin}
    if kind == "mpnet":
        attention = block.attention.attn
        return {"q": attention.q, "k": attention.k, "v": attention.v}
    if kind == "opt" or kind in LIKE_LLAMA:
        attention = block.self_attn
        return {"q": attention.q_proj, "k": attention.k_proj, "v": attention.v_proj}
    attention = block.attention if kind == "albert" else block.attention.self
    return {"q": attention.query, "k": attention.key, "v": attention.value}


def slopes(heads):
    """ALiBi's, in float64."""
    power = 2 ** int(np.log2(heads))
    powers = [(k + 1) / power for k in range(power)] + [(2 * k + 1) / (2 * power) for k in range(heads - power)]
    return 2.0 ** (-8.0 * np.asarray(powers))


def relative(model, scores):
    """BLOOM, Falcon and MPT add slope * j; the program's scores, and the spec's, have - slope * (i - j)."""
    kind, positions = model.config.model_type, torch.arange(scores.shape[1])
    own = torch.from_numpy(slopes(scores.shape[0]))[:, None, None]
    if kind == "falcon" and model.config.alibi:  # all in bfloat16; eager attention adds it twice, and scales it with the scores
        steps = (own.bfloat16() * positions[None, :, None]).double() * 2 / model.config.head_dim ** 0.5
    elif kind == "mpt":  # which has 0 at the last key
        steps = own * (positions - (scores.shape[1] - 1))[None, :, None]
    elif kind == "bloom":
        steps = own * positions[None, :, None]
    else:
        return scores
    return torch.where(scores > torch.finfo(scores.dtype).min / 2, scores.double() - steps, scores.double())


@dynamic_rope_update
def precise_rotary(self, x, position_ids, layer_type=None):
    prefix = f"{layer_type}_" if layer_type else ""  # ESM has one set
    angles = position_ids[..., None].double() * getattr(self, prefix + "inv_freq").double()
    angles = torch.cat((angles, angles), dim=-1)
    scaling = getattr(self, prefix + "attention_scaling")
    return angles.cos() * scaling, angles.sin() * scaling


def rotate(query, key, cosine, sine, unsqueeze_dim=1):
    cosine, sine = cosine.unsqueeze(unsqueeze_dim), sine.unsqueeze(unsqueeze_dim)
    return tuple(x * cosine + modeling_modernbert.rotate_half(x) * sine for x in (query, key))


@contextmanager
def precise(model):
    """float64 throughout, for one run of a model that may be changed."""
    saved = modeling_modernbert.apply_rotary_pos_emb, modeling_bloom._get_alibi_slopes
    modeling_modernbert.apply_rotary_pos_emb = rotate
    modeling_bloom._get_alibi_slopes = lambda heads, device: torch.from_numpy(slopes(heads))
    for module in model.modules():
        if type(module).__name__ == "ModernBertRotaryEmbedding":
            module.forward = types.MethodType(precise_rotary, module)
    try:
        yield
    finally:
        modeling_modernbert.apply_rotary_pos_emb, modeling_bloom._get_alibi_slopes = saved
