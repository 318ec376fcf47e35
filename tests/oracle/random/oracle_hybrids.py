# SPDX-License-Identifier: GPL-3.0-or-later
"""What oracle.py must know of models with a state in some layers, and of Differential Transformer: which layers those are,
their implicit matrices, and how transformers' own operators compute in float64.

An implicit matrix is what the model's operator returns with the unit matrix as values; of MiniMax's lightning attention and
of differential attention, which are no functions of their own, it is the definition."""

import sys
from contextlib import contextmanager

import torch

OPERATORS = ("torch_chunk_gated_delta_rule", "chunk_kimi_delta_attention")
SCAN = "mamba2_chunk_scan"  # of values first, D included
HYBRIDS = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_5", "qwen3_5_moe", "olmo_hybrid", "minimax", "diffllama",
           "kimi_linear", "lfm2", "falcon_h1", "nemotron_h", "mamba2", "bamba", "granitemoehybrid", "jamba")
WITH_IMAGES = ("qwen3_5", "qwen3_5_moe")


class Float64:
    """torch, whose float32 is float64: what these models' code asks for whatever the model's type."""

    float32 = float = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


def is_hybrid(model):
    return model.config.model_type in HYBRIDS


def attention_of(block):
    """The softmax attention of a layer; None: it has a state, a convolution or a feed-forward alone."""
    if getattr(block, "block_type", "full_attention") != "full_attention":
        return None
    attention = getattr(block, "self_attn", getattr(block, "mixer", None))
    others = ("KimiLinearDeltaAttention", "MiniMaxLightningAttention", "Mamba2Mixer")
    return None if type(attention).__name__ in others else attention


def bare_layers(model, blocks):
    """Those that are their feed-forward alone, without a site."""
    if model.config.model_type != "nemotron_h":
        return []
    return [layer for layer, block in enumerate(blocks) if block.block_type in ("mlp", "moe")]


def places(model, blocks):
    """The layer of each site, in a file's order."""
    sites = 2 if model.config.model_type in ("diffllama", "falcon_h1") else 1
    bare = bare_layers(model, blocks)
    return [layer for layer in range(len(blocks)) if layer not in bare for _ in range(sites)]


def in_order(model, sites):
    """A file has softmax attention before the state beside it; Falcon-H1 computes that one first."""
    if model.config.model_type != "falcon_h1":
        return sites
    return [site for first in range(0, len(sites), 2) for site in (sites[first + 1], sites[first])]


def make_precise(module):
    """Decays of lightning attention, which are kept in float32."""
    if type(module).__name__ != "MiniMaxLightningAttention":
        return
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    module.slope_rate = module.get_slope_rate()
    module.query_decay, module.key_decay, module.diagonal_decay = module.decay_factors(module.slope_rate)
    torch.set_default_dtype(before)


def unit(value):
    """The unit matrix as values [B, L, H, L] in the place of `value` [B, L, H, dv]."""
    batch, length, heads = value.shape[:3]
    return torch.eye(length, dtype=value.dtype)[None, :, None].expand(batch, -1, heads, -1)


def lightning(module, projected):
    """q_i . k_j e^(-slope (i - j)): [B, H, L, L], of what qkv_proj returned."""
    parts = module.act_fn(projected).unflatten(-1, (module.num_attention_heads, -1)).transpose(1, 2)
    query, key, _ = parts.split(module.head_dim, dim=-1)
    place = torch.arange(projected.shape[1])
    distance = (place[:, None] - place).to(projected.dtype)
    slope = module.slope_rate.to(projected.dtype)
    return (query @ key.transpose(-1, -2) * torch.exp(-slope * distance.clamp_min(0))).tril()


def difference(module, weights):
    """Of differential attention: the first half of the heads less lambda times the second. weights [B, H, L, L]."""
    wide = weights.dtype
    factor = lambda n: torch.exp((getattr(module, f"lambda_q{n}") * getattr(module, f"lambda_k{n}")).to(wide).sum())
    first, second = weights.chunk(2, dim=1)
    return first - (factor(1) - factor(2) + module.lambda_init) * second


@contextmanager
def watched(model, blocks, precise, record):
    """For one run: record(implicit) [B, H, L, L] of every layer with a state, as they come; None of a
    convolution and of Mamba, whose every channel has one of its own, and of FNet's layers."""
    module = sys.modules[type(model).__module__]
    saved = {name: getattr(module, name) for name in ("torch", SCAN, *OPERATORS) if hasattr(module, name)}
    handles = []
    for block in blocks:
        attention = getattr(block, "self_attn", None)
        if type(attention).__name__ == "MiniMaxLightningAttention":
            handles.append(attention.qkv_proj.register_forward_hook(
                lambda _, inputs, output, own=attention: record(lightning(own, output))))
        for part in (getattr(block, name, None) for name in ("conv", "mamba", "fourier")):
            if type(part).__name__ in ("Lfm2ShortConv", "JambaMambaMixer", "FNetFourierTransform"):
                handles.append(part.register_forward_hook(lambda *_: record(None)))

    def through(operator):
        def call(query, key, value, **options):
            record(operator(query, key, unit(value), **options)[0].transpose(1, 2))
            return operator(query, key, value, **options)
        return call

    for name in OPERATORS:
        if name in saved:
            setattr(module, name, through(saved[name]))
    if SCAN in saved:
        def scan(value, *others, **options):
            record(saved[SCAN](unit(value), *others, **options | dict(return_final_states=False)).transpose(1, 2))
            return saved[SCAN](value, *others, **options)

        setattr(module, SCAN, scan)
    if precise:
        module.torch = Float64()
    try:
        yield
    finally:
        for name, value in saved.items():
            setattr(module, name, value)
        for handle in handles:
            handle.remove()
