# SPDX-License-Identifier: GPL-3.0-or-later
"""Native checkpoints (docs/file-formats.md, "Native checkpoints") computed by the book, dense and layer by layer.

An oracle: written from the definitions of the mixers (Deconstructing Attention, arXiv 2510.11602, and the choices that
docs/dev/decisions.md lists) and the file format alone, with every L x L matrix spelled out. precise=True is float64, precise=False
the same in float32: the distance between the two is how exact float32 can be on the very model (comparison.py).

ttt_linear() and titans() were compared with the plain operators of flash-linear-attention 0.6.0 (learners_against_fla.py).

    python native_oracle.py FOLDER TOKENS.json     # logits of one sequence, for a look
"""

import json
import sys
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))
import word_hashes

# Mixers with a state, and what their options are where a configuration leaves them out.
RECURRENT = {
    "gated_deltanet": dict(num_heads=0, num_value_heads=0, head_dim=0, expand_v=2.0, conv_size=4, use_gate=True,
                           allow_neg_eigval=False),
    "deltanet": dict(num_heads=0, num_value_heads=0, head_dim=0, expand_v=1.0, conv_size=4, use_gate=False,
                     allow_neg_eigval=False, use_beta=True, qk_activation="silu", qk_norm="l2"),
    "retnet": dict(num_heads=0, num_key_value_heads=0, head_dim=0, expand_v=2.0, use_gate=True, rope_theta=0.0),
    "gla": dict(num_heads=0, num_key_value_heads=0, head_dim=0, expand_v=2.0, conv_size=0, use_gate=True, clamp_min=0.0),
    "natsl": dict(num_heads=0, head_dim=0, expand_v=2.0, num_softmax_heads=0, chunk_size=64, conv_size=4,
                  softmax_reads_conv=True, rotary=True, rope_theta=10000.0, decay_in_softmax_chunks=True,
                  inside_chunk="both", norm="each", weights="query", choice="argmax", allow_neg_eigval=False,
                  score_gradient_all=False),
    "lightning": dict(num_heads=0, head_dim=0, expand_v=1.0),
    "kda": dict(num_heads=0, head_dim=0, expand_v=1.0, conv_size=4, allow_neg_eigval=False),
    "mamba2": dict(num_heads=0, head_dim=0, state_size=128, num_groups=1, conv_size=4),
    "ttt_linear": dict(num_heads=0, head_dim=0, conv_size=4, use_gate=True, mini_batch_size=16, base_lr=1.0),
    "titans": dict(num_heads=0, head_dim=0, conv_size=4, use_gate=True, mini_batch_size=16, base_lr=1.0),
}
LEARNERS = ("ttt_linear", "titans")  # whose state learns; they have no implicit matrix
GLA_RANK = 16
# The same of Lazy Attention, which has no state.
LAZY = dict(window=512, distance_bias=True, normaliser="elastic", offset="per_length", offset_init=-1.0)
# Baselines of the third paper: softmax attention with one change, and options as above.
BASELINES = {
    "sigmoid": {}, "alibi": {}, "sink_logits": {},
    "streaming_llm": dict(first=4, window=1020, positions="text"),
}
# Softmax attention whose heads share their maps.
HEAD_VARIANTS = ("sha", "mqa", "skv", "el_att", "mhe_add", "mhe_mul")


def recurrent_sizes(config, mixer):
    """A recurrent mixer's options, every one filled in."""
    options = RECURRENT[mixer] | config.get("mixers", {}).get(mixer, {})
    usual_heads = config["num_attention_heads"] * (2 if mixer == "mamba2" else 1)
    options["num_heads"] = options["num_heads"] or usual_heads
    options["head_dim"] = options["head_dim"] or config["head_dim"]
    queries = options["num_heads"]
    options["num_value_heads"] = options.get("num_value_heads") or queries
    options["sharing"] = queries // (options.get("num_key_value_heads") or queries)
    options["value_dim"] = round(options["head_dim"] * options.get("expand_v", 1))
    options["conv_size"] = options.get("conv_size", 0)
    if mixer == "natsl":
        options["num_softmax_heads"] = options["num_softmax_heads"] or queries
    return options


def recurrence(query, key, value, write, log_decay, delta):
    """Token by token. query, key [H, L, dk], value [H, L, dv], write [H, L], log_decay [H, L, 1 or dk]; the state
    S [H, dk, dv] decays, takes in k (w v)^T, or by the delta rule k (w (v - S^T k))^T, and is read by q / sqrt(dk)."""
    state = torch.zeros(*key.shape[::2], value.shape[2], dtype=value.dtype)
    rows = []
    for i in range(key.shape[1]):
        state = log_decay[:, i].exp()[..., None] * state
        news = value[:, i] - torch.einsum("hkv,hk->hv", state, key[:, i]) if delta else value[:, i]
        state = state + torch.einsum("hk,hv->hkv", key[:, i], write[:, i, None] * news)
        rows.append(torch.einsum("hkv,hk->hv", state, query[:, i]) / key.shape[2] ** 0.5)
    return torch.stack(rows, 1)


def in_chunks(query, key, value, write, log_decay, linear, size, decays_dropped, reads_own_chunk):
    """recurrence() by the delta rule with NAtS-L's chunks of `size` tokens: at a chunk's end the state is what it was at
    the start, decayed or not, plus linear [H, chunks] times what the chunk's tokens made of that."""
    state = start = torch.zeros(*key.shape[::2], value.shape[2], dtype=value.dtype)
    since, rows = 0, []
    for i in range(key.shape[1]):
        decay = log_decay[:, i, :, None]
        since = since + decay
        state = decay.exp() * state
        news = write[:, i, None] * (value[:, i] - torch.einsum("hkv,hk->hv", state, key[:, i]))
        state = state + torch.einsum("hk,hv->hkv", key[:, i], news)
        seen = state if reads_own_chunk else since.exp() * start
        rows.append(torch.einsum("hkv,hk->hv", seen, query[:, i]) / key.shape[2] ** 0.5)
        if (i + 1) % size == 0:
            old = since.exp() * start if decays_dropped else start
            start = old + linear[:, i // size, None, None] * (state - old)
            state, since = start, 0
    return torch.stack(rows, 1)


def layer_norm(x):
    """x less its mean, over what is returned beside it."""
    spread = (x.var(-1, unbiased=False, keepdim=True) + 1e-6).sqrt()
    return (x - x.mean(-1, keepdim=True)) / spread, spread


def ttt_linear(query, key, value, gain, offset, rate, memory, bias, size):
    """Token by token, what flash-linear-attention's plain operator computes mini-batch by mini-batch: each token moves a map
    by the gradient of how far the norm of what the map makes of its key is from value - key, all tokens of a mini-batch from
    the map that it began with. query, key, value [H, L, D], gain, offset, bias [H, D], rate [H, L], memory [H, D, D]."""
    query = query / key.shape[2] ** 0.5
    rows, slopes = [], (0, 0)
    for i in range(key.shape[1]):
        with torch.enable_grad():  # autograd says the gradient, not the formula that the operator has of it
            start = memory.detach().requires_grad_(), bias.detach().requires_grad_()
            made = torch.einsum("hkv,hk->hv", start[0], key[:, i]) + start[1]
            apart = gain * layer_norm(made)[0] + offset - (value - key)[:, i]
            own = torch.autograd.grad(apart.pow(2).sum() / 2, start)
        slopes = [sum + slope for sum, slope in zip(slopes, own)]
        now = [begun - rate[:, i].view(-1, *[1] * (begun.dim() - 1)) * sum for begun, sum in zip((memory, bias), slopes)]
        rows.append(torch.einsum("hkv,hk->hv", now[0], query[:, i]) + now[1])
        if (i + 1) % size == 0:
            (memory, bias), slopes = now, (0, 0)
    output = torch.stack(rows, 1)
    return output + layer_norm(output)[0] * gain[:, None] + offset[:, None]


def titans(query, key, value, gain, offset, rate, forgotten, momentum, memory, size):
    """As ttt_linear(): the map forgets, and a surprise that has momentum moves it. What a token adds to the surprise is the
    operator's: D times the norm's slope less two means over its spread, where a gradient would divide the slope, too."""
    start, surprise, rows = memory, torch.zeros_like(memory), []
    for i in range(key.shape[1]):
        normal, spread = layer_norm(torch.einsum("hkv,hk->hv", start, key[:, i]))
        slope = gain * (gain * normal + offset - (value - key)[:, i])
        means = slope.mean(-1, keepdim=True) + normal * (slope * normal).mean(-1, keepdim=True)
        step = torch.einsum("hk,hv->hkv", key[:, i], key.shape[2] * slope - means / spread)
        surprise = momentum[:, i, None, None] * surprise - 2 * rate[:, i, None, None] * step
        memory = (1 - forgotten[:, i, None, None]) * memory + surprise
        rows.append(torch.einsum("hkv,hk->hv", memory, query[:, i]))
        if (i + 1) % size == 0:
            start = memory
    output = torch.stack(rows, 1)
    return output + layer_norm(output)[0] * gain[:, None] + offset[:, None]


def convolved(x, weight):
    """Of each channel, the last taps inputs: x [L, channels], weight [channels, 1, taps]."""
    taps = weight.shape[2]
    padded = torch.cat([torch.zeros(taps - 1, x.shape[1], dtype=x.dtype), x])
    return sum(weight[:, 0, tap] * padded[tap : tap + len(x)] for tap in range(taps))


ACTIVATIONS = {
    "silu": torch.nn.functional.silu, "gelu": torch.nn.functional.gelu, "relu": torch.relu,
    "gelu_pytorch_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
}


class Native:
    def __init__(self, folder, precise, skip=()):
        folder = Path(folder)
        self.config = json.loads((folder / "config.json").read_text())
        self.type = torch.float64 if precise else torch.float32
        self.tensors = {}
        for path in sorted(folder.glob("*.safetensors")):
            for name, tensor in safetensors.torch.load_file(path).items():
                self.tensors[name] = tensor if tensor.dtype == torch.int64 else tensor.to(self.type)
        layers = self.config["num_hidden_layers"]
        self.mixers = self.config.get("layers") or ["standard"] * layers
        self.pre_norm = self.config.get("norm_place", "pre") == "pre"
        # The names before a layer's number, and the number of the first layer, in the tower that is computed.
        self.stack, self.tower, self.first = self.config.get("stack", "decoder"), "", 0
        self.causal = self.stack != "encoder"
        self.layers = [layer for layer in range(layers) if layer not in skip]
        self.heads = self.config["num_attention_heads"]
        self.groups = self.config.get("num_key_value_heads", self.heads)
        self.size = self.config.get("head_dim") or self.config["hidden_size"] // self.heads
        self.hashed = self.config.get("embedding", {"kind": "table"})
        self.ngrams = json.loads((folder / "ngrams.json").read_text()) if self.hashed.get("hash") == "lsh" else []

    def read(self, token):
        """A token of a hash model, (id as /tokens/ids has it, bits or a code point): a number, a word as it stands, or
        {"hash": HEX}."""
        settings = self.hashed
        if settings["kind"] == "table" or isinstance(token, int):
            return token, None
        if settings["kind"] == "characters":
            return 5, ord(token)
        if isinstance(token, dict):
            bits = [int(bit) for digit in token["hash"] for bit in f"{int(digit, 16):04b}"]
            return 5, bits[: settings["bits"]]
        rows, count = settings["kind"] == "emb", settings.get("bits", 0)
        if settings["hash"] == "md5":
            data = word_hashes.digest(settings.get("key", "en"), token)
            return (int.from_bytes(data, "big") % settings["rows"] + 5, None) if rows else (5, word_hashes.bits_of_digest(data))
        normal = self.tensors["model.hash_normal"].double().numpy()
        sums = word_hashes.products(token, self.ngrams, normal, settings["rows"] if rows else count)
        return (5 + int(np.argmax(sums)), None) if rows else (5, [int(s >= 0) for s in sums])

    def ids(self, tokens):
        return [self.read(token)[0] for token in tokens]

    def words(self, tokens):
        """[L, d] of what a hash embedding makes of tokens."""
        if self.hashed["kind"] == "emb":
            return self.tensors["model.embed_tokens.weight"][torch.tensor(self.ids(tokens))]
        special, rows = self.tensors["model.embed_special.weight"], []
        for token in tokens:
            id, said = self.read(token)
            rows.append(special[id] if id < 5 else self.word(said) + (special[5] if len(special) > 5 else 0))
        return torch.stack(rows)

    def word(self, said):
        part, kind = lambda name: self.tensors[f"model.embed_{name}.weight"], self.hashed["kind"]
        if kind == "characters":
            buckets = part("buckets")
            return torch.cat([rows[(said + 1) * prime % len(rows)] for rows, prime in zip(buckets, word_hashes.PRIMES)])
        bits = torch.tensor(said, dtype=self.type)
        if kind == "linear":
            return part("axes") @ (2 * bits - 1)
        if kind == "add":
            return sum(part("bits")[j, bit] for j, bit in enumerate(said)) / len(said) ** 0.5
        if kind == "pool":
            weights = torch.softmax(part("parts"), 0)
            codes = word_hashes.codes(said, self.hashed["group_bits"])
            return sum(weights[j] * part("codes")[code] for j, code in enumerate(codes))
        axes = part("axes") - part("axes").mean(1, keepdim=True)
        bits = bits - bits.mean()
        return axes @ bits / (axes.norm(dim=1).clamp_min(1e-8) * bits.norm().clamp_min(1e-8))

    def norm(self, name, x):
        """RMS, or of layer norms those with a bias beside their gain."""
        bias = self.tensors.get(name.removesuffix("weight") + "bias")
        if self.config.get("norm") == "layer" and bias is not None:
            centred, variance = x - x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True)
            return self.tensors[name] * centred / (variance + self.config.get("layer_norm_eps", 1e-12)).sqrt() + bias
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.tensors[name] * (x * torch.rsqrt(variance + self.config.get("rms_norm_eps", 1e-6)))

    def linear(self, stem, x):
        y = x @ self.tensors[stem + ".weight"].T
        bias = self.tensors.get(stem + ".bias")
        return y if bias is None else y + bias

    def rotate(self, x, theta=None, positions=None):
        """[heads, L, size]: the first half of a head pairs with the second. Frequencies are float32 numbers; positions:
        those of the L vectors, 0 to L - 1 where nothing is said."""
        if not theta and self.positions() != "rotary":
            return x
        theta, size = theta or self.config.get("rope_theta", 10000.0), x.shape[-1]
        frequencies = 1.0 / (theta ** (torch.arange(0, size, 2).float() / size))
        positions = torch.arange(x.shape[1]) if positions is None else positions
        angles = (positions.to(self.type)[:, None] * frequencies.to(self.type)).repeat(1, 2)
        first, second = x.chunk(2, dim=-1)
        return x * angles.cos() + torch.cat((-second, first), dim=-1) * angles.sin()

    def positions(self):
        return self.config.get("positions") or ("rotary" if self.config.get("rotary", True) else "none")

    def mask(self, length):
        """[L, L], true for what a query sees."""
        every = torch.ones(length, length, dtype=torch.bool)
        return every.tril() if self.causal else every

    def part(self, stem, name, x):
        return self.linear(f"{stem}{name}_proj", x).unflatten(-1, (-1, self.size)).transpose(0, 1)

    def query_key(self, stem, x, mixer):
        """After SiLU and norms, before rotary: [heads, L, size], [groups, L, size]."""
        query, key = self.part(stem, "q", x), self.part(stem, "k", x)
        if mixer == "non_approximate":
            query = torch.nn.functional.silu(query)
        if self.config.get("qk_norm"):
            query, key = self.norm(stem + "q_norm.weight", query), self.norm(stem + "k_norm.weight", key)
        return query, key

    def weights(self, stem, mixer, query, key):
        """Scores and weights [heads, L, L] of rotated queries and keys, both [heads, L, size]."""
        length = query.shape[1]
        allowed = self.mask(length)
        if mixer == "non_approximate":
            scores = ((query * key).sum(-1) / self.size**0.5)[:, None, :].expand(-1, length, -1)
        else:
            scores = query @ key.transpose(1, 2) / self.size**0.5
        if mixer == "lazy":
            return self.lazy(stem, scores, allowed)
        if mixer != "approximate":
            masked = scores.masked_fill(~allowed, -torch.inf)
            if mixer == "standard" and self.config.get("mixers", {}).get("standard", {}).get("normaliser") == "sparsemax":
                return scores, self.sparsemax(masked)
            return scores, torch.softmax(masked, dim=-1)
        options = self.config.get("mixers", {}).get("approximate", {})
        if options.get("second_order", "full") == "full":
            second = scores**2 / 2
        else:
            second = query**2 @ (key**2).transpose(1, 2) / self.size / 2
        orders = [torch.ones_like(scores), scores, second]
        orders = [order.masked_fill(~allowed, 0) for order in orders]
        # By what an error of one in the score moves each order; squares of a head's numbers move as their root does.
        full = options.get("second_order", "full") == "full"
        moved = [order.masked_fill(~allowed, 0) for order in
                 (torch.zeros_like(scores), torch.ones_like(scores), scores.abs() if full else (2 * second).sqrt())]
        sizes = [order.abs() for order in orders]
        if options.get("normalisation", "joint") == "joint":
            orders, moved, sizes = [sum(orders)], [sum(moved)], [sum(sizes)]
        weights, error = 0, 0
        for terms, move, size in zip(orders, moved, sizes):
            total = terms.sum(-1, keepdim=True)
            weights = weights + terms / total + self.rounding(terms, total, size)
            error = error + move / total.abs() + terms.abs() * move.sum(-1, keepdim=True) / total**2
        self.taylor = orders[-1].sum(-1), moved[-1].sum(-1), error
        return scores, weights

    def lazy(self, stem, scores, allowed):
        """Scores with their bias by distance, and weights max(softmax + tau / i, 0), i counted from 1."""
        options = LAZY | self.config.get("mixers", {}).get("lazy", {})
        place = torch.arange(scores.shape[1])
        if options["distance_bias"]:
            distance = place[:, None] - place
            table = self.tensors[stem + "distance_bias"][:, distance.clamp(0, options["window"] - 1)]
            scores = scores + torch.where((distance >= 0) & (distance < options["window"]), table, 0)
        masked = scores.masked_fill(~allowed, -torch.inf)
        if options["normaliser"] == "sparsemax":
            return scores, self.sparsemax(masked)
        if options["normaliser"] == "entmax":
            return scores, self.entmax(masked)
        weights = torch.softmax(masked, dim=-1)
        if options["normaliser"] == "softmax":
            return scores, weights
        offset = -torch.ones(self.heads, dtype=self.type) if options["offset"] == "fixed" else self.tensors[stem + "offset"]
        offset = offset[:, None, None] / (1 if options["offset"] == "constant" else place[:, None] + 1)
        constant = torch.logsumexp(masked, -1)
        # An error of one in every score moves the constant by as much, and a share of the softmax by twice itself.
        self.taylor = constant, torch.ones_like(constant), 2 * weights
        return scores, torch.relu(weights + offset).masked_fill(~allowed, 0)

    def entmax(self, masked):
        """max((s - t) / 2, 0)^2, rows of which sum to 1 (Peters et al. 2019): of the k largest halves, t / 2 is their mean
        less the root of what their squared deviations leave of 1, over k."""
        thresholds = []
        for row in masked.flatten(0, -2):
            halves = row[row > -torch.inf].sort(descending=True).values / 2
            for k in range(len(halves), 0, -1):
                mean = halves[:k].mean()
                left = (1 - (halves[:k] - mean).square().sum()) / k
                if left >= 0 and halves[k - 1] >= mean - left.sqrt():
                    thresholds.append(2 * (mean - left.sqrt()))
                    break
        threshold = torch.stack(thresholds).view(masked.shape[:-1])
        roots = ((masked - threshold[..., None]) / 2).clamp_min(0)
        # An error of one in every score moves the threshold by as much, and so a root by one.
        self.taylor = threshold, torch.ones_like(threshold), 2 * roots
        return roots**2

    def sparsemax(self, masked):
        """max(s - t, 0) with t such that a row sums to 1 (Martins & Astudillo 2016): t is what the k largest scores less
        one have as their mean, for the largest k whose smallest score lies above that."""
        threshold = torch.empty(masked.shape[:-1], dtype=masked.dtype)
        for place in torch.cartesian_prod(*(torch.arange(size) for size in masked.shape[:-1])):
            row = masked[tuple(place)]
            ordered = sorted((float(score) for score in row if score > -torch.inf), reverse=True)
            means = [(sum(ordered[:k]) - 1) / k for k in range(1, len(ordered) + 1)]
            threshold[tuple(place)] = [mean for mean, score in zip(means, ordered) if score > mean][-1]
        weights = (masked - threshold[..., None]).clamp_min(0)
        # An error of one in every score moves the threshold by as much, and a weight of the support by twice that.
        self.taylor = threshold, torch.ones_like(threshold), 2 * (weights > 0).to(weights.dtype)
        return weights

    def rounding(self, terms, total, size):
        """What rounding to float32, half a unit of the `size` of what is added up, does to each weight where a total
        nearly cancels. A row of one key would hide it: here x / x is 1 whatever x is, and so nothing of it would reach the
        tolerances of what comes after; a total that is added up in another precision than the terms shows it. A quarter of
        that bound, as tolerances are four times the distance of float32."""
        if self.type == torch.float64:
            return 0
        apart = (size + terms.abs() / total.abs() * size.sum(-1, keepdim=True)) / total.abs()
        signs = 1 - 2 * (torch.arange(terms.shape[-2])[:, None] + torch.arange(terms.shape[-1])) % 2
        return torch.finfo(torch.float32).eps / 2 / 4 * signs * apart

    def head_variant(self, stem, mixer, x, read=None):
        """Query, key and value [heads, L, size], as many as attend, after embeddings and norms and before rotary. Keys and
        values are of what is read: x, or what an encoder returned."""
        read = x if read is None else read
        query = self.part(stem, "q", x)
        key = self.part(stem, "k", read) if mixer != "el_att" else read.unflatten(-1, (-1, self.size)).transpose(0, 1)
        value = self.part(stem, "v", read) if mixer not in ("skv", "el_att") else key
        if mixer.startswith("mhe"):
            own = {name: self.tensors[f"{stem}{name}_head_embedding"][:, None, :] for name in "qkv"}
            join = (lambda x, e: x + e) if mixer == "mhe_add" else (lambda x, e: x * (e + 1))
            query, key, value = join(query, own["q"]), join(key, own["k"]), join(value, own["v"])
        if self.config.get("qk_norm"):
            query, key = self.norm(stem + "q_norm.weight", query), self.norm(stem + "k_norm.weight", key)
        return query, key, value

    def options(self, mixer):
        return BASELINES[mixer] | self.config.get("mixers", {}).get(mixer, {})

    def streaming(self, query, key):
        """Scores [heads, L, L] and which pairs there are, [L, L], of unrotated queries and keys: what each query finds in a
        cache of the text's first keys and the last ones, itself among them."""
        options, length = self.options("streaming_llm"), query.shape[1]
        scores = torch.zeros(len(query), length, length, dtype=self.type)
        allowed = torch.zeros(length, length, dtype=torch.bool)
        for i in range(length):
            cache = torch.tensor([j for j in range(i + 1) if j < options["first"] or i - j < options["window"]])
            places = torch.arange(len(cache)) if options["positions"] == "cache" else cache
            keys = self.rotate(key[:, cache], positions=places)
            own = self.rotate(query[:, i : i + 1], positions=places[-1:])
            scores[:, i, cache] = (own @ keys.transpose(1, 2))[:, 0] / self.size**0.5
            allowed[i, cache] = True
        return scores, allowed

    def slopes(self):
        """ALiBi's: a geometric row that ends at 2^-8 for a power of two of heads; other numbers of heads take the largest
        such row, and then every second one of the row twice as long."""
        row = lambda heads: [2 ** (-8 * (head + 1) / heads) for head in range(heads)]
        power = 2 ** int(np.log2(self.heads))
        return torch.tensor((row(power) + row(2 * power)[::2])[: self.heads], dtype=self.type)

    def baseline(self, stem, mixer, query, key):
        """Scores, weights and which pairs there are, of unrotated queries and keys of all heads; then the sink logits and
        their shares of each row, where there are any."""
        length = query.shape[1]
        if mixer == "streaming_llm":
            scores, allowed = self.streaming(query, key)
        else:
            turn = self.rotate if mixer != "alibi" else lambda x: x
            scores = turn(query) @ turn(key).transpose(1, 2) / self.size**0.5
            allowed = self.mask(length)
        if mixer == "alibi":
            apart = torch.arange(length)[:, None] - torch.arange(length)
            scores = scores - self.slopes()[:, None, None] * apart
        if mixer == "sigmoid":
            bias = self.options(mixer).get("bias")
            scores = scores + (-np.log(self.config["max_position_embeddings"]) if bias is None else bias)
            weights = torch.where(allowed, 1 / (1 + (-scores).exp()), 0)
            self.taylor = torch.zeros(scores.shape[:2]), torch.zeros(scores.shape[:2]), weights * (1 - weights)
            return scores, weights, allowed
        masked = scores.masked_fill(~allowed, -torch.inf)
        if mixer != "sink_logits":
            return scores, torch.softmax(masked, -1), allowed
        sinks = self.tensors[stem + "sinks"]
        every = torch.softmax(torch.cat([masked, sinks[:, None, None].expand(-1, length, 1)], -1), -1)
        return scores, every[..., :-1], allowed, sinks, every[..., -1]

    def attention(self, stem, mixer, query, key, value):
        """Unrotated query and key; returns [L, heads * size] and what happened."""
        share = len(query) // len(key)
        self.taylor = None  # row constants, their errors and those of weights that are no softmax
        more = ()
        if mixer in BASELINES or mixer in HEAD_VARIANTS:
            scores, weights, *more = self.baseline(stem, mixer, query, key.repeat_interleave(share, 0))
        else:
            scores, weights = self.weights(stem, mixer, self.rotate(query), self.rotate(key).repeat_interleave(share, 0))
            more = (self.mask(query.shape[1]),)
        output = weights @ value.repeat_interleave(share, 0)
        states = {"q": query, "k": key, "v": value}
        return output.transpose(0, 1).flatten(1), (scores, weights, states, self.taylor, *more)

    def cross(self, stem, mixer, x, memory):
        """[L, heads * size] and what happened: every query sees the whole source, without positions."""
        query, key, value = self.head_variant(stem, mixer, x, memory)
        share, self.taylor = len(query) // len(key), None
        scores = query @ key.repeat_interleave(share, 0).transpose(1, 2) / self.size**0.5
        sparse = mixer == "standard" and self.config.get("mixers", {}).get("standard", {}).get("normaliser") == "sparsemax"
        weights = self.sparsemax(scores) if sparse else torch.softmax(scores, -1)
        output = (weights @ value.repeat_interleave(share, 0)).transpose(0, 1).flatten(1)
        allowed = torch.ones(scores.shape[1:], dtype=torch.bool)
        states = {"q": query, "k": key, "v": value}
        return output.repeat(1, self.heads * self.size // output.shape[1]), (scores, weights, states, self.taylor, allowed)

    def token_map(self, stem, x):
        """The mixer linear: [L, d], and its matrix [1, L, L]."""
        block = self.tensors[stem + "token_proj.weight"][: len(x), : len(x)]
        return block @ self.linear(stem + "hidden_proj", x), block[None]

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

    def mlp(self, stem, x):
        gate = torch.nn.functional.silu(self.linear(stem + "gate_proj", x))
        return self.linear(stem + "down_proj", gate * self.linear(stem + "up_proj", x))

    def stem(self, layer):
        return f"model.{self.tower}layers.{layer - self.first}."

    def add(self, x, norm, part):
        """A part of a block on its residual stream, norm(..) being of what it reads or of the sum."""
        return x + part(self.norm(norm, x)) if self.pre_norm else self.norm(norm, x + part(x))

    def mixed(self, layer, name, read, reads, embeddings):
        """[L, d] of a layer's mixer on one stream that reads `read`, and what happened."""
        mixer, own = self.mixers[layer], self.stem(layer) + "self_attn."
        if mixer == "fnet":
            return torch.fft.fft(torch.fft.fft(read, dim=1), dim=0).real, None
        if mixer == "linear":
            return self.token_map(own, read)
        if mixer == "mlp":
            output, seen = self.mlp(own, read), None
        elif mixer == "natsl":
            output, *seen = self.natsl(own, read)
        elif mixer == "mamba2":
            output, seen = self.mamba2(own, read)
        elif mixer in LEARNERS:
            output, seen = self.learner(mixer, own, read), None
        elif mixer in RECURRENT:
            output, seen = self.recurrent(mixer, own, read)
        elif mixer in HEAD_VARIANTS:
            output, seen = self.attention(own, mixer, *self.head_variant(own, mixer, read))
            output = output.repeat(1, self.heads * self.size // output.shape[1])
        else:
            source = read
            if mixer == "static_emb_qk":
                source = reads(embeddings[name])
            elif mixer in ("rnd_emb_qk", "fixed_seq_qk"):
                source = embeddings["guides"][mixer][: read.shape[0]]
            query, key = self.query_key(own, source, mixer)
            output, seen = self.attention(own, mixer, query, key, self.part(own, "v", read))
        return self.linear(own + "o_proj", output), seen

    def feed_forward(self, stem, x):
        act = ACTIVATIONS[self.config.get("hidden_act", "silu")]
        if self.config.get("feed_forward", "gated") == "plain":
            return self.linear(stem + "mlp.down_proj", act(self.linear(stem + "mlp.up_proj", x)))
        gate = act(self.linear(stem + "mlp.gate_proj", x))
        return self.linear(stem + "mlp.down_proj", gate * self.linear(stem + "mlp.up_proj", x))

    def block(self, layer, streams, embeddings, memory=None):
        """One layer of all sequences in lockstep: {name: [L, d]} -> the same, and what the text's attentions did."""
        stem = self.stem(layer)
        reads = (lambda x: self.norm(stem + "input_layernorm.weight", x)) if self.pre_norm else lambda x: x
        embeddings = embeddings | {"guides": {name: reads(x) for name, x in streams.items()}}
        after, seen = {}, []
        for name, x in streams.items():
            def own(read):
                output, happened = self.mixed(layer, name, read, reads, embeddings)
                if name == "text":
                    seen.extend(happened if isinstance(happened, list) else [happened])
                return output

            def cross(read):
                output, happened = self.cross(stem + "cross_attn.", self.mixers[layer], read, memory)
                seen.append(happened)
                return self.linear(stem + "cross_attn.o_proj", output)

            x = self.add(x, stem + "input_layernorm.weight", own)
            if memory is not None:
                x = self.add(x, stem + "cross_attention_layernorm.weight", cross)
            if self.config["intermediate_size"] > 0:
                x = self.add(x, stem + "post_attention_layernorm.weight", lambda read: self.feed_forward(stem, read))
            after[name] = x
        return after, seen

    def embed(self, ids):
        """What the first layer reads."""
        config, prefix, length = self.config, f"model.{self.tower}", len(ids)
        table = self.hashed["kind"] == "table"
        x = self.tensors["model.embed_tokens.weight"][torch.as_tensor(ids)] if table else self.words(ids)
        x = x * config.get("embedding_scale", 1)
        size = x.shape[1]
        if self.positions() == "learned":
            x = x + self.tensors[prefix + "embed_positions.weight"][:length]
        if self.positions() == "sinusoidal":
            place, pair = torch.arange(length, dtype=self.type)[:, None], torch.arange(size) // 2
            angles = place * 10000.0 ** (-2 * pair.to(self.type) / size)
            x = x + torch.where(torch.arange(size) % 2 == 0, angles.sin(), angles.cos())
        if config.get("type_vocab_size", 0):
            x = x + self.tensors["model.embed_types.weight"][0]
        return self.norm(prefix + "embed_norm.weight", x) if config.get("embedding_norm") else x

    def run_tower(self, tower, layers, causal, tokens, memory=None):
        """What a tower returns [L, d]; hidden [its layers + 1, L, d]; what happened."""
        self.tower, self.first, self.causal = tower, layers[0] if layers else 0, causal
        streams, length = {"text": self.embed(tokens)}, len(tokens)
        used = {self.mixers[layer] for layer in layers if layer in self.layers}
        if "rnd_emb_qk" in used:
            streams["rnd_emb_qk"] = self.tensors["model.guide"][0, :length]
        if "fixed_seq_qk" in used:
            streams["fixed_seq_qk"] = self.embed(self.tensors["model.guide_ids"][:length])
        embeddings, hidden, seen = dict(streams), [streams["text"]], []
        for layer in layers:
            if layer not in self.layers:
                continue
            streams, happened = self.block(layer, streams, embeddings, memory)
            hidden.append(streams["text"])
            seen += happened
        final = streams["text"]
        return self.norm(f"model.{tower}norm.weight", final) if self.pre_norm else final, hidden, seen

    def head(self, x):
        """Logits of rows [L, d]; of a head of the text's classes the first row's are these."""
        kind = self.config.get("head", {}).get("kind", "language")
        if kind == "none":
            return None
        if kind == "token_classes":
            return self.linear("classifier", x)
        if kind == "sequence_classes" and self.stack == "decoder":  # of the last row
            return x @ self.tensors["score.weight"].T
        if kind == "sequence_classes":
            return self.linear("classifier", torch.tanh(self.linear("head.dense", x)))
        if kind == "masked_language":
            x = self.norm("head.norm.weight", ACTIVATIONS[self.config.get("hidden_act", "silu")](self.linear("head.dense", x)))
        logits = x @ self.tensors.get("lm_head.weight", self.tensors["model.embed_tokens.weight"]).T
        return logits + self.tensors["lm_head.bias"] if "lm_head.bias" in self.tensors else logits

    def run(self, tokens, target=None):
        """logits [L, V], hidden [layers + 1, L, d], and for each site None or (scores, weights, {q, k, v}, ...), or the
        implicit matrix of a mixer with a state. With a target: of an encoder-decoder, the encoder's sites and hidden
        states first, without what the decoder's first block reads."""
        layers, memory, sites = range(len(self.mixers)), None, []
        if self.stack != "encoder_decoder":
            final, hidden, sites = self.run_tower("", layers, self.stack == "decoder", tokens)
            return self.head(final), hidden, sites
        first = self.config["num_encoder_layers"]
        memory, before, sites = self.run_tower("encoder.", layers[:first], False, tokens)
        final, hidden, more = self.run_tower("decoder.", layers[first:], True, target, memory)
        return self.head(final), before + hidden[1:], sites + more


def load(folder, precise, skip=()):
    return Native(folder, precise, skip)


def run(model, tokens, precise, target=None):
    """An oracle.Trace; layers without a matrix have a Site with neither scores nor weights."""
    import oracle

    with torch.no_grad():
        logits, hidden, seen = model.run(tokens, target)
    numpy = lambda tensor: tensor.double().numpy()
    sites = []
    for happened in seen:
        if happened is None:
            sites.append(oracle.Site())
            continue
        if torch.is_tensor(happened):
            sites.append(oracle.Site(implicit=numpy(happened)))
            continue
        scores, weights, states, taylor, *more = happened
        allowed = more[0].numpy() if more else np.tril(np.ones(scores.shape[1:], dtype=bool))
        site = oracle.Site(numpy(scores), numpy(weights), allowed)
        if len(more) > 1:
            site.sink_logits, site.virtual_sink = (numpy(value) for value in more[1:])
        if taylor is not None:
            site.row_constant, site.constant_error, site.unit_error = (numpy(value) for value in taylor)
        site.states = {name: numpy(value) for name, value in states.items()}
        sites.append(site)
    boundaries = [numpy(x) for x in hidden]  # of two towers: of two lengths
    return oracle.Trace(model.ids(tokens), sites, boundaries if target else np.stack(boundaries),
                        None if logits is None else numpy(logits), model.stack != "encoder")


if __name__ == "__main__":
    with torch.no_grad():
        print(Native(sys.argv[1], True).run(json.loads(Path(sys.argv[2]).read_text()))[0])
