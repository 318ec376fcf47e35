# SPDX-License-Identifier: GPL-3.0-or-later
"""Mixers with a state in native_oracle.py: query, key, value and decay of each token, and the implicit matrix."""

import torch

from native_options import recurrent_sizes
from native_recurrences import convolved, in_chunks, recurrence, titans, ttt_linear


class StateMixers:
    """A base of native_oracle.Native, which has the configuration, the tensors, and norm(), linear() and rotate()."""

    def convolved_heads(self, stem, options, x):
        """Query, key and value [heads, L, size], as many as there are of values, before their norms and positions."""
        silu, activation = torch.nn.functional.silu, options.get("qk_activation", "silu")
        parts = {}
        for name in "qkv":
            parts[name] = self.linear(f"{stem}{name}_proj", x)
            if options["conv_size"]:
                parts[name] = convolved(parts[name], self.tensors[f"{stem}{name}_conv1d.weight"])
            if options["conv_size"] or "num_key_value_heads" not in options:
                act = {"silu": silu, "relu": torch.relu, "elu": lambda x: torch.nn.functional.elu(x) + 1,
                       "identity": lambda x: x}["silu" if name == "v" else activation]
                parts[name] = act(parts[name])
            size = options["value_dim" if name == "v" else "head_dim"]
            parts[name] = parts[name].unflatten(-1, (-1, size)).transpose(0, 1)
        heads = options["num_value_heads"]
        return {name: part.repeat_interleave(heads // len(part), 0) for name, part in parts.items()}

    def decays(self, mixer, stem, options, x):
        """ln of what each token leaves of the state, [heads, L, 1 or key size]."""
        heads = options["num_value_heads"]
        if mixer == "kda":
            logits = self.linear(stem + "f_b_proj", self.linear(stem + "f_a_proj", x)) + self.tensors[stem + "dt_bias"]
            step = torch.nn.functional.softplus(logits).unflatten(-1, (heads, -1)).transpose(0, 1)
            return -self.tensors[stem + "A_log"].exp().view(-1, 1, 1) * step
        if mixer == "lightning":
            layer, last = int(stem.split(".")[2]), len(self.mixers) - 1
            slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1).to(self.type) / heads) * (1 - layer / (last + 1e-5) + 1e-5)
            return -slopes[:, None, None].expand(-1, len(x), 1)
        if mixer in ("gated_deltanet", "natsl"):
            step = torch.nn.functional.softplus(self.linear(stem + "a_proj", x) + self.tensors[stem + "dt_bias"])
            return (-self.tensors[stem + "A_log"].exp() * step).T[..., None]
        if mixer == "gla":
            logits = self.linear(stem + "gk_proj.1", self.linear(stem + "gk_proj.0", x))
            decay = torch.nn.functional.logsigmoid(logits) / 16
            decay = decay.clamp_min(options["clamp_min"]) if options["clamp_min"] < 0 else decay
            decay = decay.unflatten(-1, (-1, options["head_dim"])).transpose(0, 1)
            return decay.repeat_interleave(heads // len(decay), 0)
        rates = torch.log1p(-torch.exp2(-5 - torch.arange(heads).to(self.type))) if mixer == "retnet" else torch.zeros(heads)
        return rates.to(self.type)[:, None, None].expand(-1, len(x), 1)

    def recurrent(self, mixer, stem, x):
        """A mixer with a state: [L, heads * value size], and its implicit matrix [heads, L, L], which is what it would
        return of the unit matrix as values."""
        options = recurrent_sizes(self.config, mixer)
        parts = self.convolved_heads(stem, options, x)
        delta, heads = mixer.endswith("deltanet") or mixer == "kda", options["num_value_heads"]
        query, key = parts["q"], parts["k"]
        if delta and options.get("qk_norm") == "sum":
            query, key = (part / part.sum(-1, keepdim=True) for part in (query, key))
        elif delta:
            query, key = (part / torch.sqrt(part.pow(2).sum(-1, keepdim=True) + 1e-6) for part in (query, key))
        if mixer == "retnet":
            query, key = self.rotate(query, options["rope_theta"]), self.rotate(key, options["rope_theta"])
        if mixer == "lightning":  # no scale
            query = query * query.shape[2] ** 0.5
        write = torch.ones(heads, len(x), dtype=self.type)
        if delta and options.get("use_beta", True):
            write = torch.sigmoid(self.linear(stem + "b_proj", x)).T
        if options.get("allow_neg_eigval"):
            write = 2 * write
        walk = lambda value: recurrence(query, key, value, write, self.decays(mixer, stem, options, x), delta)
        unit = torch.eye(len(x), dtype=self.type).expand(heads, -1, -1)
        mixed = walk(parts["v"])
        if mixer == "lightning":
            gate = torch.sigmoid(self.linear(stem + "g_proj", x))
            return self.norm(stem + "o_norm.weight", mixed.transpose(0, 1).flatten(1)) * gate, walk(unit)
        normal = self.norm(stem + "o_norm.weight", mixed).transpose(0, 1).flatten(1)
        if mixer == "kda":
            return normal * torch.sigmoid(self.linear(stem + "g_b_proj", self.linear(stem + "g_a_proj", x))), walk(unit)
        if options["use_gate"]:
            normal = normal * torch.nn.functional.silu(self.linear(stem + "g_proj", x))
        return normal, walk(unit)

    def types(self, stem, options, x):
        """[heads, chunks, 2]: (1, 0) where a chunk is softmax's, (0, 1) where it is linear."""
        chunks = x.split(options["chunk_size"])
        scores = self.linear(stem + "score_proj", torch.stack([chunk.mean(0) for chunk in chunks]))
        linear = (scores[:, 1::2] > scores[:, ::2]).T.to(self.type)
        return torch.stack([1 - linear, linear], -1)

    def natsl(self, stem, x):
        """[L, heads * value size], what the softmax branch did, and the linear branch's implicit matrix."""
        options, length = recurrent_sizes(self.config, "natsl"), len(x)
        heads, wide, size = options["num_heads"], options["num_softmax_heads"], options["chunk_size"]
        parts = self.convolved_heads(stem, options, x)
        types = self.types(stem, options, x)
        flat = lambda part: part.transpose(0, 1).flatten(1)
        narrow = lambda rows: rows.unflatten(1, (wide, -1)).transpose(0, 1)
        rows = {name: flat(part) for name, part in parts.items()}
        read = rows if options["softmax_reads_conv"] else {n: self.linear(f"{stem}{n}_proj", x) for n in "qkv"}

        # Softmax.
        states = {name: narrow(part) for name, part in read.items()}
        for name in "qk":
            states[name] = self.norm(f"{stem}{name}_norm.weight", states[name])
        turned = {n: self.rotate(states[n], options["rope_theta"]) if options["rotary"] else states[n] for n in "qk"}
        scores = turned["q"] @ turned["k"].transpose(1, 2) / states["q"].shape[2] ** 0.5
        chunk = torch.arange(length) // size
        own = (chunk[:, None] == chunk).to(self.type) * (options["inside_chunk"] != "linear")
        softmax = types[..., 0].repeat_interleave(wide // heads, 0)[:, chunk]  # [wide, keys]
        factors = torch.where(chunk[:, None] == chunk, own, softmax[:, None, :]).tril()
        seen = factors > 0
        highest = scores.masked_fill(~seen, -torch.inf).amax(-1, keepdim=True)
        # Hidden keys count, too, as a factor of 0; rows that see none are 0 whatever the factors.
        terms = (scores - highest.nan_to_num(neginf=0)).exp() * factors * seen.any(-1, keepdim=True)
        total = terms.sum(-1, keepdim=True)
        weights = terms / torch.where(total > 0, total, torch.ones_like(total))
        by_softmax = weights @ states["v"]

        # Gated DeltaNet.
        query, key = (parts[n] / torch.sqrt(parts[n].pow(2).sum(-1, keepdim=True) + 1e-6) for n in "qk")
        write = torch.sigmoid(self.linear(stem + "b_proj", x)).T * (2 if options["allow_neg_eigval"] else 1)
        walk = lambda value: in_chunks(query, key, value, write, self.decays("natsl", stem, options, x), types[..., 1],
                                       size, options["decay_in_softmax_chunks"], options["inside_chunk"] != "softmax")
        by_state = narrow(flat(walk(parts["v"])))

        shares = 1
        if options["weights"] != "none":
            source = rows["q"] if options["weights"] == "query" else x
            shares = torch.softmax(self.linear(stem + "weight_proj", source).unflatten(1, (wide, 2)), -1).transpose(0, 1)
        first, second = (shares, shares) if options["weights"] == "none" else (shares[..., :1], shares[..., 1:])
        if options["norm"] == "sum":
            mixed = self.norm(stem + "o_norm.weight", first * by_state + second * by_softmax)
        else:
            mixed = (first * self.norm(stem + "linear_norm.weight", by_state)
                     + second * self.norm(stem + "softmax_norm.weight", by_softmax))
        gate = torch.nn.functional.silu(self.linear(stem + "g_proj", x))
        implicit = walk(torch.eye(length, dtype=self.type).expand(heads, -1, -1))
        return flat(mixed) * gate, (scores, weights, states, None, seen), implicit

    def mamba2(self, stem, x):
        """As recurrent(): a token decays each head by e^(-dt e^A_log) and writes dt B x^T, C reads, D x goes beside."""
        options, length = recurrent_sizes(self.config, "mamba2"), len(x)
        heads, groups, size = options["num_heads"], options["num_groups"], options["state_size"]
        wide, shared = heads * options["head_dim"], groups * size
        gate, mixed, step = self.linear(stem + "in_proj", x).split([wide, wide + 2 * shared, heads], -1)
        if options["conv_size"]:
            mixed = convolved(mixed, self.tensors[stem + "conv1d.weight"]) + self.tensors[stem + "conv1d.bias"]
        value, key, query = torch.nn.functional.silu(mixed).split([wide, shared, shared], -1)
        value = value.unflatten(-1, (heads, -1)).transpose(0, 1)
        # Head n is of group n // (heads / groups).
        key, query = (part.unflatten(-1, (groups, size)).transpose(0, 1).repeat_interleave(heads // groups, 0)
                      for part in (key, query))
        step = torch.nn.functional.softplus(step + self.tensors[stem + "dt_bias"]).T
        decay = (-self.tensors[stem + "A_log"].exp()[:, None] * step)[..., None]
        direct = self.tensors[stem + "D"][:, None, None]
        # recurrence() divides by the root of the key's size.
        walk = lambda value: recurrence(query * size**0.5, key, value, step, decay, False) + direct * value
        parts = (walk(value).transpose(0, 1).flatten(1) * torch.nn.functional.silu(gate)).unflatten(-1, (groups, -1))
        normal = parts * torch.rsqrt(parts.pow(2).mean(-1, keepdim=True) + self.config.get("rms_norm_eps", 1e-6))
        unit = torch.eye(length, dtype=self.type).expand(heads, -1, -1)
        return normal.flatten(1) * self.tensors[stem + "norm.weight"], walk(unit)

    def learner(self, mixer, stem, x):
        """ttt_linear or titans: [L, heads * size]."""
        options = recurrent_sizes(self.config, mixer)
        parts, size = self.convolved_heads(stem, options, x), options["mini_batch_size"]
        query, key = (parts[n] / torch.sqrt(parts[n].pow(2).sum(-1, keepdim=True) + 1e-6) for n in "qk")
        said = lambda name: torch.sigmoid(self.linear(f"{stem}{name}_proj", x)).T
        gain, offset, memory = (self.tensors[stem + name] for name in ("memory_norm.weight", "memory_norm.bias", "memory"))
        rate = options["base_lr"] * said("lr") / options["head_dim"]
        if mixer == "ttt_linear":
            rate = rate / (torch.arange(len(x)) % size + 1)
            mixed = ttt_linear(query, key, parts["v"], gain, offset, rate, memory, self.tensors[stem + "memory_bias"], size)
        else:
            mixed = titans(query, key, parts["v"], gain, offset, rate, said("forget"), said("momentum"), memory, size)
        normal = self.norm(stem + "o_norm.weight", mixed).transpose(0, 1).flatten(1)
        return normal * torch.nn.functional.silu(self.linear(stem + "g_proj", x)) if options["use_gate"] else normal
