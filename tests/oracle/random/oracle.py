# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a checkpoint in transformers' own eager mode and keeps what happens inside each attention.

With precise=True everything is float64: the few places where transformers drops to float32 whatever the model's type
(RMSNorm, the softmax, rotary angles) are lifted, nothing else is touched. With precise=False it is plain float32
transformers; the distance between the two is how exact float32 can be on this very model (see comparison.py).
"""

import copy
import json
import types
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.integrations.mxfp4 import convert_moe_packed_tensors
from transformers.modeling_rope_utils import dynamic_rope_update
from transformers.models.ministral3 import modeling_ministral3

import fla_oracle
import native_oracle
import oracle_encoders
import oracle_hybrids
import xl_oracle
from decoder_families import falcon_groups


@dataclass
class Site:
    """One attention. scores and weights [H, L, L]; q, k, v before rotary [heads, L, size]; the share of the sink logits
    in each row [H, L], and these logits [H], where there are any. Without weights: a layer that has no matrix, or one with
    a state, whose implicit matrix [H, L, L] is signed."""

    scores: np.ndarray = None
    weights: np.ndarray = None
    allowed: np.ndarray = None
    states: dict = field(default_factory=dict)
    virtual_sink: np.ndarray = None
    sink_logits: np.ndarray = None
    # For weights that are no softmax: the rows' constants [H, L], and how far an error of one in every score moves these and
    # the weights [H, L, L], to first order.
    row_constant: np.ndarray = None
    constant_error: np.ndarray = None
    unit_error: np.ndarray = None
    implicit: np.ndarray = None


@dataclass
class Trace:
    """One sequence. hidden [layers + 1, L, d]: before the first block, then each block's output; logits [L, V] or None."""

    tokens: list
    sites: list
    hidden: np.ndarray
    logits: np.ndarray
    causal: bool
    bare: tuple = ()  # layers without a site


def unpacked(folder):
    """A copy of a checkpoint with MXFP4 experts, unpacked by transformers itself: its loader wants accelerate for that."""
    copy_of = Path(f"{folder}-unpacked")
    copy_of.mkdir(exist_ok=True)
    tensors = safetensors.torch.load_file(Path(folder) / "model.safetensors")
    for name in [name.removesuffix("_blocks") for name in tensors if name.endswith("_blocks")]:
        tensors[name] = convert_moe_packed_tensors(
            tensors.pop(name + "_blocks"), tensors.pop(name + "_scales"), dtype=torch.float32)
    safetensors.torch.save_file(tensors, copy_of / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((Path(folder) / "config.json").read_text())
    config.pop("quantization_config")
    (copy_of / "config.json").write_text(json.dumps(config))
    return copy_of


def load(folder, precise, skip=()):
    written = json.loads((Path(folder) / "config.json").read_text())
    if written["model_type"] == "headscope":
        return native_oracle.load(folder, precise, skip)
    if written["model_type"] == "transfo-xl":
        return xl_oracle.load(folder, precise, skip)
    if fla_oracle.is_ours(written):
        return fla_oracle.load(folder, precise, skip)
    if "quantization_config" in written:
        folder = unpacked(folder)
    config = AutoConfig.from_pretrained(folder)
    dtype = torch.float64 if precise else torch.float32
    options = dict(dtype=dtype, attn_implementation="eager")
    if config.model_type in oracle_encoders.ENCODERS:
        model = oracle_encoders.load(folder, config, options)
    else:
        kind = AutoModelForImageTextToText if config.model_type in (
            "mistral3", "llama4", *oracle_hybrids.WITH_IMAGES) else AutoModelForCausalLM
        model = kind.from_pretrained(folder, **options)
    if skip:
        layers = blocks(model)
        kept = [layer for index, layer in enumerate(layers) if index not in skip]
        decoder = model.get_decoder()
        setattr(decoder, "h" if config.model_type == "gpt2" else "layers", torch.nn.ModuleList(kept))
        decoder.config.num_hidden_layers = len(kept)
    model.config._experts_implementation = "eager"
    return model.eval()


# Norms of queries and keys that come after heads have been put before positions.
HEADS_FIRST = ("phi", "stablelm", "gemma3_text", "exaone4", "apertus")


def text_config(model):
    return model.config.get_text_config()


def blocks(model):
    if (known := oracle_encoders.blocks(model)) is not None:
        return known
    if model.config.model_type.startswith("llama4"):
        return getattr(model, "language_model", model).model.layers
    base = model.base_model
    if model.config.model_type in ("gpt2", "gptj", "falcon"):
        return base.h
    if model.config.model_type == "mpt":
        return base.blocks
    return getattr(base, "language_model", base).layers


DEEPSEEK = ("deepseek_v2", "deepseek_v3", "kimi_linear")


def projections(model, block):
    """{q, k, v: module} or, in GPT-2, the one module that makes all three. Of a layer with a state: none."""
    hybrid = oracle_hybrids.is_hybrid(model)
    if hybrid and oracle_hybrids.attention_of(block) is None:
        return {}
    if model.config.model_type == "gpt2":
        return {"qkv": block.attn.c_attn}
    if oracle_encoders.blocks(model) is not None:
        return oracle_encoders.projections(model, block)
    if model.config.model_type == "gpt_neox":
        return {"by_head": block.attention.query_key_value}
    if model.config.model_type == "falcon":
        return {"by_group": block.self_attention.query_key_value}
    if model.config.model_type == "mpt":
        return {"qkv": block.attn.Wqkv}
    attention = oracle_hybrids.attention_of(block) if hybrid else block.attn if model.config.model_type == "gptj" else block.self_attn
    if model.config.model_type in DEEPSEEK:
        return {"latent_q": attention.q_proj or attention.q_b_proj, "shared_k": attention.kv_a_proj_with_mqa,
                "latent_kv": attention.kv_b_proj}
    # Queries and keys that have norms of their own are what these norms return.
    if model.config.model_type == "phi3":
        return {"qkv": attention.qkv_proj}
    norms = {part: getattr(attention, f"{part}_norm", getattr(attention, f"{part}_layernorm", None)) for part in "qk"}
    return {"q": norms["q"] or attention.q_proj, "k": norms["k"] or attention.k_proj, "v": attention.v_proj}


def precise_norm(self, hidden):
    variance = hidden.pow(2).mean(-1, keepdim=True)
    if type(self).__name__.startswith("Gemma"):
        return (1 + self.weight) * (hidden * torch.rsqrt(variance + self.eps))
    epsilon = self.eps if type(self).__name__.startswith("Llama4") else self.variance_epsilon
    return self.weight * (hidden * torch.rsqrt(variance + epsilon))


@dynamic_rope_update
def precise_rotary(self, x, position_ids):
    # For text, Qwen3.5's three positions of each token are equal.
    position_ids = position_ids[0] if position_ids.dim() == 3 else position_ids
    angles = position_ids[..., None].double() * self.inv_freq.double()
    if type(self).__name__ in ("DeepseekV2RotaryEmbedding", "Llama4TextRotaryEmbedding"):
        return torch.polar(torch.ones_like(angles), angles) * self.attention_scaling
    if type(self).__name__.startswith("Cohere"):
        angles = angles.repeat_interleave(2, dim=-1)
    elif type(self).__name__ != "GptOssRotaryEmbedding":
        angles = torch.cat((angles, angles), dim=-1)
    return angles.cos() * self.attention_scaling, angles.sin() * self.attention_scaling


def precise_layer_norm(self, hidden):
    return self.weight * torch.nn.functional.layer_norm(hidden, hidden.shape[-1:], eps=self.variance_epsilon)


def precise_growth(positions, slope, step):
    return (1 + slope * torch.log(1 + torch.floor(positions.double() / step)))[:, None, :, None]


@contextmanager
def lifted(model):
    """float64 throughout, for one run: `float()` is what some families' scores, routers and rotations drop to float32 by."""
    saved = torch.Tensor.float, modeling_ministral3.get_llama_4_attn_scale
    routers = torch.Tensor.type, torch.Tensor.softmax
    torch.Tensor.float = lambda self: self if self.is_floating_point() else saved[0](self)
    torch.Tensor.type = lambda self, *kind: self if kind == (torch.float32,) else routers[0](self, *kind)
    torch.Tensor.softmax = lambda self, dim, dtype=None: routers[1](self, dim=dim)
    modeling_ministral3.get_llama_4_attn_scale = precise_growth
    try:
        with oracle_encoders.precise(model):
            yield
    finally:
        torch.Tensor.float, modeling_ministral3.get_llama_4_attn_scale = saved
        torch.Tensor.type, torch.Tensor.softmax = routers


def precise_bare_norm(self, hidden):
    return torch.nn.functional.layer_norm(hidden, self.normalized_shape, eps=1e-5)


def precise_gptj(self, query, key, value, attention_mask=None):
    scores = torch.matmul(query, key.transpose(-1, -2)) / self.scale_attn
    weights = torch.nn.functional.softmax(scores if attention_mask is None else scores + attention_mask, dim=-1)
    return torch.matmul(weights, value), weights


def precise_positions(table):
    """GPT-J's table of sines and cosines again, from the same float32 frequencies."""
    count, size = table.shape
    frequencies = 1.0 / (10000 ** (torch.arange(0, size, 2, dtype=torch.int64) / size))
    angles = torch.arange(count).double()[:, None] * frequencies.double()
    return torch.cat((angles.sin(), angles.cos()), dim=1)


def make_precise(model):
    hybrid = oracle_hybrids.is_hybrid(model)
    for module in model.modules():
        name = type(module).__name__
        oracle_hybrids.make_precise(module)
        if hybrid and not name.endswith("RotaryEmbedding"):
            continue  # oracle_hybrids.watched lifts the rest
        if name.endswith("RMSNorm"):
            module.forward = types.MethodType(precise_norm, module)
        elif name in ("CohereLayerNorm", "Cohere2LayerNorm"):
            module.forward = types.MethodType(precise_layer_norm, module)
        elif name == "OlmoLayerNorm":
            module.forward = types.MethodType(precise_bare_norm, module)
        elif name.endswith("VisionRotaryEmbedding"):
            continue
        elif name.endswith("RotaryEmbedding") and isinstance(module.rope_type, dict):
            module.forward = types.MethodType(oracle_encoders.precise_rotary, module)
        elif name.endswith("RotaryEmbedding"):
            module.forward = types.MethodType(precise_rotary, module)
        elif name == "GPTJAttention":
            module._attn = types.MethodType(precise_gptj, module)
            module.embed_positions = precise_positions(module.embed_positions)


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
    config = text_config(model)
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    if clip := getattr(getattr(config, "attn_config", config), "clip_qkv", None):
        value = value.clamp(-clip, clip)
    if name in ("latent_q", "shared_k", "latent_kv"):
        return latent_heads(config, name, value)
    if name == "qkv":
        groups = getattr(config, "num_key_value_heads", None) or heads
        parts = zip("qkv", value.split([heads * size, groups * size, groups * size], dim=-1))
    elif name == "by_group":
        groups = value.unflatten(-1, (falcon_groups(config), -1, size))
        parts = zip("qkv", (groups[:, :, :-2].flatten(1, 2), groups[:, :, -2], groups[:, :, -1]))
    elif name == "by_head":
        parts = zip("qkv", value.unflatten(-1, (-1, 3, size)).unbind(-2))
    elif config.model_type in HEADS_FIRST and value.dim() == 3:  # after a norm
        parts = [(name, value.transpose(0, 1))]
    else:
        parts = [(name, value)]
    return {part: array.reshape(array.shape[0], -1, size).transpose(0, 1).double().numpy() for part, array in parts}


def latent_heads(config, name, value):
    """DeepSeek's: the part of a key that all heads share comes out of another map, and is put behind its own in run()."""
    if name == "shared_k":
        return {name: value[:, config.kv_lora_rank:].double().numpy()}
    # The latent part comes as one head's.
    parts = value.flatten(0, -2).unflatten(-1, (config.num_attention_heads, -1)).transpose(0, 1).double().numpy()
    if name == "latent_q":
        return {"q": parts}
    return {"k": parts[..., :config.qk_nope_head_dim], "v": parts[..., config.qk_nope_head_dim:]}


def with_sink(scores, weights, logits):
    """gpt-oss puts a last column of sink logits into the softmax, and takes each row's maximum off first."""
    shift = logits.double()[:, None] - scores[:, :, -1].double()
    site = Site((scores[:, :, :-1].double() + shift[:, :, None]).numpy(), weights[:, :, :-1].double().numpy())
    site.virtual_sink, site.sink_logits = weights[:, :, -1].double().numpy(), logits.double().numpy()
    return site


def run(model, tokens, precise):
    """The trace of one sequence. The model is copied first: dynamic rotary embeddings remember longer sequences."""
    if isinstance(model, native_oracle.Native):
        return native_oracle.run(model, tokens, precise)
    if isinstance(model, xl_oracle.TransformerXl):
        return xl_oracle.run(model, tokens, precise)
    if isinstance(model, fla_oracle.Fla):
        return fla_oracle.run(model, tokens, precise)
    model = copy.deepcopy(model)
    if precise:
        make_precise(model)
    sites, hidden, handles, calls = [], [], [], []
    differential = model.config.model_type == "diffllama"
    causal = model.config.model_type not in oracle_encoders.ENCODERS and bool(getattr(model.config, "is_causal", True))

    def record(scores, weights):
        calls.append(1)
        if differential and len(calls) % 2 == 0:
            return  # transformers computes the same weights twice, for two halves of the values
        if model.config.model_type == "gpt_oss":
            site = with_sink(scores, weights, blocks(model)[len(sites)].self_attn.sinks.detach())
        else:
            site = Site(oracle_encoders.relative(model, scores).double().numpy(), weights.double().numpy())
        site.allowed = site.scores[0] > torch.finfo(scores.dtype).min / 2
        sites.append(site)
        if differential:  # what the maps make together is a site of its own
            own = blocks(model)[len(sites) // 2].self_attn
            record_implicit(oracle_hybrids.difference(own, weights[None].detach()))

    def record_implicit(weights):
        sites.append(Site() if weights is None else Site(implicit=weights[0].detach().double().numpy()))

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
    watched = oracle_hybrids.watched(model, blocks(model), precise, record_implicit)
    with torch.no_grad(), lifted(model) if precise else nullcontext(), watched_softmax(record, precise), watched:
        output = model(torch.tensor([tokens]), **({"use_cache": False} if causal else {}))
    for handle in handles:
        handle.remove()
    hybrid = oracle_hybrids.is_hybrid(model)
    sites = oracle_hybrids.in_order(model, sites) if hybrid else sites
    layers = oracle_hybrids.places(model, blocks(model)) if hybrid else range(len(sites))
    for layer, site in zip(layers, sites, strict=True):
        site.states = states.get(layer, {})
        if (shared := site.states.pop("shared_k", None)) is not None:
            own = site.states["k"]
            site.states["k"] = np.concatenate((own, np.broadcast_to(shared, (len(own), *shared.shape))), axis=-1)
    logits = getattr(output, "logits", None)
    return Trace(
        list(tokens), sites, np.stack(hidden), None if logits is None else logits[0].double().numpy(),
        causal, oracle_hybrids.bare_layers(model, blocks(model)) if hybrid else ())
