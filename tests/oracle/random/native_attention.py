# SPDX-License-Identifier: GPL-3.0-or-later
"""Attention of native_oracle.py: scores, weights and outputs of every mixer with a matrix, and cross-attention."""

import numpy as np
import torch

from native_options import BASELINES, HEAD_VARIANTS, LAZY


class AttentionMixers:
    """A base of native_oracle.Native, which has the configuration, the tensors, and norm(), linear() and rotate()."""

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
