# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders of flash-linear-attention computed by the book: its models of version 0.6.0, layer by layer, token by token.

An oracle: written from what that library's configurations, layers and naive operators say. It needs no triton, and so runs
where the library does not. precise=True is float64, precise=False the same in float32, as in native_oracle.py.

    python fla_oracle.py FOLDER TOKENS.json                    # logits of one sequence, for a look
    python fla_oracle.py --against LIBRARY FOLDER              # its recurrences against the library's fla/ops/*/naive.py
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import safetensors.torch
import torch

from native_recurrences import convolved, recurrence

COMMON = dict(vocab_size=32000, hidden_size=2048, hidden_act="swish", norm_eps=1e-6, tie_word_embeddings=False,
              fuse_norm=True, attn=None)
# Defaults of each configuration class.
DEFAULTS = {
    "gated_deltanet": dict(num_hidden_layers=21, hidden_ratio=4, num_heads=6, head_dim=256, expand_v=2.0, num_v_heads=None,
                           use_gate=True, use_short_conv=True, conv_size=4, allow_neg_eigval=False,
                           output_gate_activation="swish"),
    "delta_net": dict(num_hidden_layers=24, hidden_ratio=4, num_heads=16, expand_k=1.0, expand_v=1.0, use_gate=False,
                      use_short_conv=True, conv_size=4, allow_neg_eigval=False, use_beta=True, qk_norm="l2",
                      qk_activation="silu"),
    "retnet": dict(num_hidden_layers=24, hidden_ratio=2, num_heads=8, num_kv_heads=None, expand_k=1.0, expand_v=2.0,
                   use_output_gate=True, feature_map=None),
    "gla": dict(num_hidden_layers=24, hidden_ratio=4, num_heads=4, num_kv_heads=None, expand_k=0.5, expand_v=1.0,
                use_output_gate=True, use_short_conv=False, conv_size=4, clamp_min=None, feature_map=None),
    "transformer": dict(num_hidden_layers=24, hidden_ratio=4, num_heads=32, num_kv_heads=None, qkv_bias=False, qk_norm=False,
                        window_size=None, rope_theta=10000.0),
    "mamba2": dict(num_hidden_layers=48, norm_eps=1e-5, hidden_act="silu", head_dim=64, state_size=128, expand=2, conv_kernel=4,
                   n_groups=1, use_bias=False, use_conv_bias=True, D_has_hdim=False, rmsnorm=True, norm_before_gate=False,
                   dt_limit=(0.0, float("inf"))),
}
GLA_RANK = 16
silu = torch.nn.functional.silu


def filled(config):
    """Every key that the library would have."""
    return COMMON | DEFAULTS[config["model_type"]] | config


def feed_forward(config):
    if config.get("intermediate_size"):
        return config["intermediate_size"]
    ratio = 4 if config["hidden_ratio"] is None else config["hidden_ratio"]
    return 256 * ((int(config["hidden_size"] * ratio * 2 / 3) + 255) // 256)


def is_ours(config):
    """transformers has a Mamba2, too, which says these numbers otherwise."""
    foreign = "layer_norm_epsilon" in config or "time_step_limit" in config
    return config["model_type"] in DEFAULTS and not (config["model_type"] == "mamba2" and foreign)


def attention_of(config, layer):
    """What `attn` says of a layer; None: it has the model's own mixer."""
    if config["model_type"] == "transformer":
        return config
    listed = config["attn"] or []
    for one in [listed] if isinstance(listed, dict) else listed:
        if layer in one["layers"]:
            return dict(num_kv_heads=None, qkv_bias=False, qk_norm=False, window_size=None, rope_theta=10000.0) | one
    return None


def sizes(config):
    """heads of queries, of keys, of values; key size, value size; taps (0: no convolution)."""
    kind, heads = config["model_type"], config["num_heads"]
    if kind == "gated_deltanet":
        taps = config["conv_size"] if config["use_short_conv"] else 0
        value = int(config["head_dim"] * config["expand_v"])
        return heads, heads, config["num_v_heads"] or heads, config["head_dim"], value, taps
    few = config.get("num_kv_heads") or heads
    key, value = (int(config["hidden_size"] * config[name]) // heads for name in ("expand_k", "expand_v"))
    taps = config["conv_size"] if kind != "retnet" and config["use_short_conv"] else 0
    return heads, few, few, key, value, taps


def mamba_sizes(config):
    """heads, numbers of all heads together, numbers that go through the convolution."""
    wide = int(config["expand"] * config["hidden_size"])
    return wide // config["head_dim"], wide, wide + 2 * config["n_groups"] * config["state_size"]


def norm_name(config):
    if config["model_type"] in ("gated_deltanet", "delta_net"):
        return "o_norm"
    return "g_norm_swish_gate" if config["use_output_gate"] and config["fuse_norm"] else "g_norm"


class Fla:
    def __init__(self, folder, precise, skip=()):
        folder = Path(folder)
        self.config = filled(json.loads((folder / "config.json").read_text()))
        self.type = torch.float64 if precise else torch.float32
        self.tensors = {}
        for path in sorted(folder.glob("*.safetensors")):
            self.tensors |= {name: tensor.to(self.type) for name, tensor in safetensors.torch.load_file(path).items()}
        self.layers = [layer for layer in range(self.config["num_hidden_layers"]) if layer not in skip]
        self.walk = recurrence   # query, key, value, write, log_decay, delta

    def norm(self, name, x, epsilon=None):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.tensors[name + ".weight"] * (x * torch.rsqrt(variance + (epsilon or self.config["norm_eps"])))

    def linear(self, stem, x):
        y = x @ self.tensors[stem + ".weight"].T
        bias = self.tensors.get(stem + ".bias")
        return y if bias is None else y + bias

    def rotate(self, x, theta):
        size = x.shape[-1]
        frequencies = 1.0 / (theta ** (torch.arange(0, size, 2, dtype=torch.float32) / size))
        angles = torch.arange(x.shape[1]).to(self.type)[:, None] * frequencies.to(self.type)
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1)

    def softmax(self, stem, said, x):
        heads = said["num_heads"]
        part = lambda name, count: self.linear(stem + name, x).unflatten(-1, (count, -1)).transpose(0, 1)
        few = said["num_kv_heads"] or heads
        query, key, value = part("q_proj", heads), part("k_proj", few), part("v_proj", few)
        if said["qk_norm"]:
            query, key = self.norm(stem + "q_norm", query, 1e-5), self.norm(stem + "k_norm", key, 1e-5)
        states = {"q": query, "k": key, "v": value}
        turned = [self.rotate(part, said["rope_theta"]) for part in (query, key)]
        scores = turned[0] @ turned[1].repeat_interleave(heads // few, 0).transpose(1, 2) / query.shape[2] ** 0.5
        place = torch.arange(len(x))
        distance = place[:, None] - place
        allowed = (distance >= 0) & (distance < (said["window_size"] or len(x)))
        weights = torch.softmax(scores.masked_fill(~allowed, -torch.inf), -1)
        mixed = (weights @ value.repeat_interleave(heads // few, 0)).transpose(0, 1).flatten(1)
        return mixed, dict(scores=scores, weights=weights, allowed=allowed, states=states)

    def activated(self, x, name):
        kinds = {"silu": silu, "swish": silu, "relu": torch.relu, "elu": lambda x: torch.nn.functional.elu(x) + 1,
                 "identity": lambda x: x, "sigmoid": torch.sigmoid, "sqrelu": lambda x: torch.relu(x) ** 2,
                 "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh")}
        return kinds[name](x)

    def heads(self, stem, x):
        """Query, key and value [heads, L, size] of a mixer with a state, as many as there are of its outputs."""
        config = self.config
        of_query, of_key, of_value, key_size, value_size, taps = sizes(config)
        delta = config["model_type"] in ("gated_deltanet", "delta_net")
        kinds = dict.fromkeys("qk", config.get("qk_activation", "silu")) | {"v": "silu"}
        made = {}
        for name, count, size in (("q", of_query, key_size), ("k", of_key, key_size), ("v", of_value, value_size)):
            part = self.linear(f"{stem}{name}_proj", x)
            if taps:
                part = convolved(part, self.tensors[f"{stem}{name}_conv1d.weight"])
            if taps or delta:
                part = self.activated(part, kinds[name])
            made[name] = part.unflatten(-1, (count, size)).transpose(0, 1)
        heads = max(of_query, of_value)
        return {name: part.repeat_interleave(heads // len(part), 0) for name, part in made.items()}

    def recurrent(self, stem, x):
        """[L, heads * value size], and the implicit matrix: what the recurrence makes of the unit matrix as values."""
        config, kind = self.config, self.config["model_type"]
        parts = self.heads(stem, x)
        query, key, heads = parts["q"], parts["k"], len(parts["v"])
        if config.get("feature_map"):
            query, key = (self.activated(part, config["feature_map"]) for part in (query, key))
        write = torch.ones(heads, len(x), dtype=self.type)
        log_decay = torch.zeros(heads, len(x), 1, dtype=self.type)
        delta = kind in ("gated_deltanet", "delta_net")
        if kind == "delta_net" and config["qk_norm"] == "sum":
            query, key = (part / part.sum(-1, keepdim=True) for part in (query, key))
        elif delta:
            query, key = (part / torch.sqrt(part.pow(2).sum(-1, keepdim=True) + 1e-6) for part in (query, key))
        if delta and config.get("use_beta", True):
            write = torch.sigmoid(self.linear(stem + "b_proj", x)).T
        if delta and config["allow_neg_eigval"]:
            write = 2 * write
        if kind == "gated_deltanet":
            step = torch.nn.functional.softplus(self.linear(stem + "a_proj", x) + self.tensors[stem + "dt_bias"])
            log_decay = (-self.tensors[stem + "A_log"].exp() * step).T[..., None]
        if kind == "retnet":
            query, key = self.rotate(query, 10000.0), self.rotate(key, 10000.0)
            log_decay = log_decay + torch.log1p(-torch.exp2(-5 - torch.arange(heads).to(self.type)))[:, None, None]
        if kind == "gla":
            logits = self.linear(stem + "gk_proj.1", self.linear(stem + "gk_proj.0", x))
            decay = torch.nn.functional.logsigmoid(logits) / 16
            if config["clamp_min"] is not None:
                decay = decay.clamp_min(config["clamp_min"])
            decay = decay.unflatten(-1, (-1, query.shape[2])).transpose(0, 1)
            log_decay = decay.repeat_interleave(heads // len(decay), 0)
        read = lambda values: self.walk(query, key, values, write, log_decay, delta)
        unit = torch.eye(len(x), dtype=self.type).expand(heads, -1, -1)
        mixed = self.norm(stem + norm_name(config), read(parts["v"])).transpose(0, 1).flatten(1)
        if config["use_gate"] if delta else config["use_output_gate"]:
            mixed = mixed * self.activated(self.linear(stem + "g_proj", x), config.get("output_gate_activation", "silu"))
        return mixed, dict(implicit=read(unit))

    def mamba(self, stem, x):
        """[L, heads * head size], and the implicit matrix, D of each head on its diagonal; none where D is of each number."""
        config = self.config
        heads, wide, mixed = mamba_sizes(config)
        gate, inner, step = self.linear(stem + "in_proj", x).split([wide, mixed, heads], -1)
        inner = convolved(inner, self.tensors[stem + "conv1d.weight"])
        if config["use_conv_bias"]:
            inner = inner + self.tensors[stem + "conv1d.bias"]
        groups = config["n_groups"] * config["state_size"]
        value, key, query = silu(inner).split([wide, groups, groups], -1)
        value = value.unflatten(-1, (heads, -1)).transpose(0, 1)
        key, query = (part.unflatten(-1, (config["n_groups"], -1)).transpose(0, 1).repeat_interleave(
            heads // config["n_groups"], 0) for part in (key, query))
        step = torch.nn.functional.softplus(step + self.tensors[stem + "dt_bias"]).clamp(*config["dt_limit"]).T
        log_decay = (-self.tensors[stem + "A_log"].exp()[:, None] * step)[..., None]
        # Without the recurrence's divisor.
        read = lambda values: self.walk(query * query.shape[2] ** 0.5, key, values, step, log_decay, False)
        direct = self.tensors[stem + "D"]
        seen = {}
        if config["D_has_hdim"]:
            output = read(value) + direct.unflatten(0, (heads, -1))[:, None] * value
        else:
            output = read(value) + direct[:, None, None] * value
            unit = torch.eye(len(x), dtype=self.type).expand(heads, -1, -1)
            seen = dict(implicit=read(unit) + direct[:, None, None] * unit)
        output = output.transpose(0, 1).flatten(1)
        if not config["rmsnorm"]:
            return output * silu(gate), seen
        if not config["norm_before_gate"]:
            output = output * silu(gate)
        parts = output.unflatten(-1, (config["n_groups"], -1))
        parts = parts * torch.rsqrt(parts.pow(2).mean(-1, keepdim=True) + config["norm_eps"])
        output = parts.flatten(1) * self.tensors[stem + "norm.weight"]
        return output * silu(gate) if config["norm_before_gate"] else output, seen

    def run_mamba(self, tokens):
        x = self.tensors["backbone.embeddings.weight"][torch.tensor(tokens)]
        hidden, seen = [x], []
        for layer in self.layers:
            stem = f"backbone.layers.{layer}."
            mixed, happened = self.mamba(stem + "mixer.", self.norm(stem + "norm", x))
            x = x + self.linear(stem + "mixer.out_proj", mixed)
            hidden.append(x)
            seen.append(happened)
        head = "backbone.embeddings" if self.config["tie_word_embeddings"] else "lm_head"
        return self.linear(head, self.norm("backbone.norm_f", x)), hidden, seen

    def run(self, tokens):
        """logits [L, V], hidden [layers + 1, L, d], and what each layer's attention was (the fields of oracle.Site)."""
        if self.config["model_type"] == "mamba2":
            return self.run_mamba(tokens)
        x = self.tensors["model.embeddings.weight"][torch.tensor(tokens)]
        hidden, seen = [x], []
        for layer in self.layers:
            stem = f"model.layers.{layer}."
            said = attention_of(self.config, layer)
            normed = self.norm(stem + "attn_norm", x)
            mixed, happened = self.softmax(stem + "attn.", said, normed) if said else self.recurrent(stem + "attn.", normed)
            x = x + self.linear(stem + "attn.o_proj", mixed)
            normed = self.norm(stem + "mlp_norm", x)
            inner = silu(self.linear(stem + "mlp.gate_proj", normed)) * self.linear(stem + "mlp.up_proj", normed)
            x = x + self.linear(stem + "mlp.down_proj", inner)
            hidden.append(x)
            seen.append(happened)
        head = "model.embeddings" if self.config["tie_word_embeddings"] else "lm_head"
        return self.linear(head, self.norm("model.norm", x)), hidden, seen


def load(folder, precise, skip=()):
    return Fla(folder, precise, skip)


def run(model, tokens, precise):
    """An oracle.Trace."""
    import oracle

    numpy = lambda value: {k: numpy(v) for k, v in value.items()} if isinstance(value, dict) else (
        value.numpy() if value.dtype == torch.bool else value.double().numpy())
    with torch.no_grad():
        logits, hidden, seen = model.run(tokens)
    return oracle.Trace(list(tokens), [oracle.Site(**numpy(one)) for one in seen], np.stack([numpy(x) for x in hidden]),
                        numpy(logits), True)


def naive(library, kind):
    """The library's own recurrence in the form of native_recurrences.recurrence; float32, as they all are."""
    if kind in ("transformer", "mamba2"):   # which have none of that kind
        return recurrence
    place = {"gated_deltanet": "gated_delta_rule", "delta_net": "delta_rule", "retnet": "retention", "gla": "gla"}[kind]
    spec = importlib.util.spec_from_file_location(place, Path(library) / "fla/ops" / place / "naive.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    swapped = lambda part: part.transpose(0, 1)[None]

    def walk(query, key, value, write, log_decay, delta):
        if kind == "gated_deltanet":
            made = module.naive_recurrent_gated_delta_rule(
                swapped(query), swapped(key), swapped(value), swapped(write), swapped(log_decay[..., 0]))[0]
        elif kind == "gla":
            made = module.naive_recurrent_gla(swapped(query), swapped(key), swapped(value), swapped(log_decay))[0]
        elif kind == "retnet":
            return module.naive_retention(query[None], key[None], value[None])[0]
        else:
            return module.delta_rule_recurrence(query[None], key[None], value[None], write[None])[0][0]
        return made[0].transpose(0, 1).to(value.dtype)

    return walk


def against(library, folder):
    """Ours in float64, and with the library's recurrence in its float32: the largest distance over the largest logit."""
    model = Fla(folder, True)
    generator = np.random.default_rng(1)
    worst = 0.0
    for length in (1, 63, 64, 65):
        tokens = generator.integers(0, model.config["vocab_size"], length).tolist()
        with torch.no_grad():
            model.walk = recurrence
            ours, _, happened = model.run(tokens)
            model.walk = naive(library, model.config["model_type"])
            theirs, _, other = model.run(tokens)
        worst = max(worst, float((ours - theirs).abs().max() / ours.abs().max()))
        for one, two in zip(happened, other):
            if "implicit" in one:
                worst = max(worst, float((one["implicit"] - two["implicit"]).abs().max() / one["implicit"].abs().max()))
    return worst


if __name__ == "__main__":
    if sys.argv[1] == "--against":
        print(Path(sys.argv[3]).name, against(sys.argv[2], sys.argv[3]))
    else:
        with torch.no_grad():
            print(Fla(sys.argv[1], True).run(json.loads(Path(sys.argv[2]).read_text()))[0])
