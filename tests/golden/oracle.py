# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a checkpoint in transformers' own eager mode and keeps what happens inside each attention.

With precise=True everything is float64: the few places where transformers drops to float32 whatever the model's type
(RMSNorm, the softmax, rotary angles) are lifted, nothing else is touched. With precise=False it is plain float32
transformers; the distance between the two is how exact float32 can be on this very model (see comparison.py).
"""

import copy
import types
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, BertModel
from transformers.modeling_rope_utils import dynamic_rope_update


@dataclass
class Site:
    """One attention. scores and weights [H, L, L]; q, k, v before rotary [heads, L, size]."""

    scores: np.ndarray = None
    weights: np.ndarray = None
    allowed: np.ndarray = None
    states: dict = field(default_factory=dict)


@dataclass
class Trace:
    """One sequence. hidden [layers + 1, L, d]: before the first block, then each block's output; logits [L, V] or None."""

    tokens: list
    sites: list
    hidden: np.ndarray
    logits: np.ndarray
    causal: bool


def load(folder, precise, skip=()):
    config = AutoConfig.from_pretrained(folder)
    dtype = torch.float64 if precise else torch.float32
    options = dict(dtype=dtype, attn_implementation="eager")
    if config.model_type != "bert":
        model = AutoModelForCausalLM.from_pretrained(folder, **options)
    elif "BertForMaskedLM" in (config.architectures or []):
        model = AutoModelForMaskedLM.from_pretrained(folder, **options)
    else:
        model = BertModel.from_pretrained(folder, add_pooling_layer=False, **options)
    if skip:
        layers = blocks(model)
        kept = [layer for index, layer in enumerate(layers) if index not in skip]
        decoder = model.get_decoder()
        setattr(decoder, "h" if config.model_type == "gpt2" else "layers", torch.nn.ModuleList(kept))
        decoder.config.num_hidden_layers = len(kept)
    return model.eval()


def blocks(model):
    base = model.base_model
    if model.config.model_type == "gpt2":
        return base.h
    return base.encoder.layer if model.config.model_type == "bert" else base.layers


def projections(model, block):
    """{q, k, v: module} or, in GPT-2, the one module that makes all three."""
    if model.config.model_type == "gpt2":
        return {"qkv": block.attn.c_attn}
    if model.config.model_type == "bert":
        attention = block.attention.self
        return {"q": attention.query, "k": attention.key, "v": attention.value}
    attention = block.self_attn
    return {"q": attention.q_proj, "k": attention.k_proj, "v": attention.v_proj}


def precise_norm(self, hidden):
    variance = hidden.pow(2).mean(-1, keepdim=True)
    return self.weight * (hidden * torch.rsqrt(variance + self.variance_epsilon))


@dynamic_rope_update
def precise_rotary(self, x, position_ids):
    angles = position_ids[..., None].double() * self.inv_freq.double()
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos() * self.attention_scaling, angles.sin() * self.attention_scaling


def make_precise(model):
    for module in model.modules():
        name = type(module).__name__
        if name.endswith("RMSNorm"):
            module.forward = types.MethodType(precise_norm, module)
        elif name.endswith("RotaryEmbedding"):
            module.forward = types.MethodType(precise_rotary, module)


@contextmanager
def watched_softmax(record, precise):
    """Every eager attention ends in this one function; its input is the scores, masked ones at the type's minimum."""
    original = torch.nn.functional.softmax

    def softmax(scores, dim=-1, dtype=None, **kwargs):
        weights = original(scores, dim=dim, dtype=None if precise else dtype, **kwargs)
        if scores.dim() == 4:
            record(scores[0].detach(), weights[0].detach())
        return weights

    torch.nn.functional.softmax = softmax
    try:
        yield
    finally:
        torch.nn.functional.softmax = original


def split_heads(model, name, value):
    """[L, heads * size] -> {q, k, v: [heads, L, size]}"""
    config = model.config
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if name == "qkv":
        parts = zip("qkv", value.split(config.hidden_size, dim=-1))
    else:
        parts = [(name, value)]
    return {part: array.reshape(array.shape[0], -1, size).transpose(0, 1).double().numpy() for part, array in parts}


def run(model, tokens, precise):
    """The trace of one sequence. The model is copied first: dynamic rotary embeddings remember longer sequences."""
    model = copy.deepcopy(model)
    if precise:
        make_precise(model)
    sites, hidden, handles = [], [], []

    def record(scores, weights):
        site = Site(scores.double().numpy(), weights.double().numpy())
        site.allowed = site.scores[0] > torch.finfo(scores.dtype).min / 2
        sites.append(site)

    states = {}
    for layer, block in enumerate(blocks(model)):
        for name, module in projections(model, block).items():
            def keep(module, inputs, output, layer=layer, name=name):
                states.setdefault(layer, {}).update(split_heads(model, name, output[0].detach()))
            handles.append(module.register_forward_hook(keep))

        def before(module, inputs, kwargs, layer=layer):
            value = inputs[0] if inputs else kwargs["hidden_states"]
            if layer == 0:
                hidden.append(value[0].detach().double().numpy())

        def after(module, inputs, output):
            value = output[0] if isinstance(output, tuple) else output
            hidden.append(value[0].detach().double().numpy())

        handles.append(block.register_forward_pre_hook(before, with_kwargs=True))
        handles.append(block.register_forward_hook(after))
    with torch.no_grad(), watched_softmax(record, precise):
        output = model(torch.tensor([tokens]), **({} if model.config.model_type == "bert" else {"use_cache": False}))
    for handle in handles:
        handle.remove()
    for layer, site in enumerate(sites):
        site.states = states[layer]
    logits = getattr(output, "logits", None)
    return Trace(
        list(tokens), sites, np.stack(hidden), None if logits is None else logits[0].double().numpy(),
        model.config.model_type != "bert")
