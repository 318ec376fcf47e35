# SPDX-License-Identifier: GPL-3.0-or-later
"""Transformer-XL (arXiv 1901.02860) by the book, from folders in the format of transfo-xl-wt103, which transformers has no
code for any more: segment by segment, the hidden states of each kept as the memory of the next, relative positions by a
table of sines and cosines and a map, a vocabulary in clusters. The first segment has no memory, as in the paper.

An oracle: written from the paper's formulas and the format's names. precise=True is float64, precise=False the same in
float32, as in native_oracle.py. A folder may hold segments.json, {"tokens": N, "memory": M}: how its texts are read.

    python xl_oracle.py FOLDER TOKENS.json     # logits of one sequence, for a look
"""

import json
import sys
from pathlib import Path

import numpy as np
import safetensors.torch
import torch

DEFAULTS = dict(vocab_size=267735, cutoffs=[20000, 40000, 200000], d_model=1024, d_embed=1024, n_head=16, d_head=64,
                d_inner=4096, div_val=4, pre_lnorm=False, n_layer=18, mem_len=1600, clamp_len=1000, same_length=True,
                proj_share_all_but_first=True, untie_r=True, layer_norm_epsilon=1e-5, tie_word_embeddings=True)


def filled(config):
    config = DEFAULTS | config
    clusters = len(config["cutoffs"]) + 1
    shared = [False] + [config["proj_share_all_but_first"]] * (clusters - 1)
    return {"tie_projs": shared, "tie_weight": config["tie_word_embeddings"]} | config


def ends(config):
    return [0, *config["cutoffs"], config["vocab_size"]]


def shapes(config):
    """Every tensor of a file and its shape, as the model saved it: what is tied lies there twice."""
    config = filled(config)
    d, heads, size = config["d_model"], config["n_head"], config["d_head"]
    inner, wide, divisor = config["d_inner"], config["d_embed"], config["div_val"]
    edges = ends(config)
    counts = [end - begin for begin, end in zip(edges, edges[1:])]
    names = {"transformer.pos_emb.inv_freq": (d // 2,)}
    if divisor == 1:
        names |= {"transformer.word_emb.emb_layers.0.weight": (config["vocab_size"], wide),
                  "crit.out_layers.0.weight": (config["vocab_size"], wide), "crit.out_layers.0.bias": (config["vocab_size"],)}
        if wide != d:
            names["transformer.word_emb.emb_projs.0"] = (d, wide)
            names |= {f"crit.out_projs.{n}": (d, wide) for n in range(len(counts))}
    else:
        for n, count in enumerate(counts):
            own = wide // divisor**n
            names |= {f"transformer.word_emb.emb_layers.{n}.weight": (count, own),
                      f"transformer.word_emb.emb_projs.{n}": (d, own), f"crit.out_layers.{n}.weight": (count, own),
                      f"crit.out_layers.{n}.bias": (count,), f"crit.out_projs.{n}": (d, own)}
    if len(counts) > 1:
        names |= {"crit.cluster_weight": (len(counts) - 1, wide), "crit.cluster_bias": (len(counts) - 1,)}
    biases = ("r_w_bias", "r_r_bias")
    if not config["untie_r"]:
        names |= {f"transformer.{name}": (heads, size) for name in biases}
    for layer in range(config["n_layer"]):
        stem = f"transformer.layers.{layer}."
        names |= {stem + f"dec_attn.{name}": (heads, size) for name in biases}
        names |= {stem + "dec_attn.qkv_net.weight": (3 * heads * size, d), stem + "dec_attn.o_net.weight": (d, heads * size),
                  stem + "dec_attn.r_net.weight": (heads * size, d), stem + "pos_ff.CoreNet.0.weight": (inner, d),
                  stem + "pos_ff.CoreNet.0.bias": (inner,), stem + "pos_ff.CoreNet.3.weight": (d, inner),
                  stem + "pos_ff.CoreNet.3.bias": (d,)}
        for norm in ("dec_attn.layer_norm", "pos_ff.layer_norm"):
            names |= {f"{stem}{norm}.weight": (d,), f"{stem}{norm}.bias": (d,)}
    return names


class TransformerXl:
    def __init__(self, folder, precise, skip=()):
        folder = Path(folder)
        self.config = filled(json.loads((folder / "config.json").read_text()))
        self.type = torch.float64 if precise else torch.float32
        weights = folder / "pytorch_model.bin"
        tensors = torch.load(weights, weights_only=True) if weights.exists() else safetensors.torch.load_file(
            folder / "model.safetensors")
        self.tensors = {name: tensor.to(self.type) for name, tensor in tensors.items()}
        self.layers = [layer for layer in range(self.config["n_layer"]) if layer not in skip]
        segments = folder / "segments.json"
        self.segments = json.loads(segments.read_text()) if segments.exists() else {}
        self.edges = ends(self.config)

    def embedded(self, tokens):
        config, tensors = self.config, self.tensors
        rows = []
        for token in tokens:
            n = 0 if config["div_val"] == 1 else next(n for n in range(len(self.edges)) if token < self.edges[n + 1])
            begin = 0 if config["div_val"] == 1 else self.edges[n]
            row = tensors[f"transformer.word_emb.emb_layers.{n}.weight"][token - begin]
            projection = tensors.get(f"transformer.word_emb.emb_projs.{n}")
            rows.append(row if projection is None else projection @ row)
        return torch.stack(rows) * config["d_model"] ** 0.5

    def norm(self, stem, x):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.tensors[stem + ".weight"], self.tensors[stem + ".bias"],
                                              self.config["layer_norm_epsilon"])

    def positions(self, count):
        """Rows for distances 0 .. count - 1, [count, d]."""
        d = self.config["d_model"]
        distance = torch.arange(count, dtype=self.type)
        if self.config["clamp_len"] > 0:
            distance = distance.clamp(max=self.config["clamp_len"])
        angles = torch.outer(distance, 1.0 / 10000.0 ** (torch.arange(0, d, 2, dtype=self.type) / d))
        return torch.cat([angles.sin(), angles.cos()], -1)

    def attention(self, layer, x, memory):
        """What heads give [q, heads * size] for a segment x [q, d] behind `memory` [m, d]; scores, weights [H, q, m + q], what is
        seen [q, m + q], and the segment's queries, keys and values [H, q, size]."""
        config, stem = self.config, f"transformer.layers.{layer}.dec_attn."
        heads, size = config["n_head"], config["d_head"]
        read = torch.cat([memory, x])
        if config["pre_lnorm"]:
            read = self.norm(stem + "layer_norm", read)
        query, key, value = (read @ self.tensors[stem + "qkv_net.weight"].T).unflatten(-1, (3, heads, size)).unbind(1)
        query = query[len(memory):]
        at_key = (self.positions(len(read)) @ self.tensors[stem + "r_net.weight"].T).unflatten(-1, (heads, size))
        bias = lambda name: self.tensors[("transformer." if not config["untie_r"] else stem) + name]
        content = torch.einsum("ihc,jhc->hij", query + bias("r_w_bias"), key)
        by_distance = torch.einsum("ihc,xhc->hix", query + bias("r_r_bias"), at_key)
        distance = (torch.arange(len(x))[:, None] + len(memory)) - torch.arange(len(read))
        place = distance.clamp(min=0).expand(heads, -1, -1)
        scores = (content + by_distance.gather(2, place)) / size**0.5
        seen = distance >= 0
        if config["same_length"]:
            seen &= distance < self.memory_length()
        weights = torch.softmax(scores.masked_fill(~seen, -torch.inf), -1)
        mixed = torch.einsum("hij,jhc->ihc", weights, value).flatten(1)
        own = {"q": query, "k": key[len(memory):], "v": value[len(memory):]}
        return mixed, scores, weights, seen, {name: part.transpose(0, 1) for name, part in own.items()}

    def memory_length(self):
        said = self.segments.get("memory", -1)
        return self.config["mem_len"] if said < 0 else said

    def block(self, layer, x, mixed):
        config, stem = self.config, f"transformer.layers.{layer}."
        t = self.tensors
        inner = lambda y: torch.relu(y @ t[stem + "pos_ff.CoreNet.0.weight"].T + t[stem + "pos_ff.CoreNet.0.bias"]) @ t[
            stem + "pos_ff.CoreNet.3.weight"].T + t[stem + "pos_ff.CoreNet.3.bias"]
        x = x + mixed @ t[stem + "dec_attn.o_net.weight"].T
        if config["pre_lnorm"]:
            return x + inner(self.norm(stem + "pos_ff.layer_norm", x))
        x = self.norm(stem + "dec_attn.layer_norm", x)
        return self.norm(stem + "pos_ff.layer_norm", x + inner(x))

    def head(self, hidden):
        """Log-probabilities [L, V]."""
        config, t = self.config, self.tensors
        one, clusters = config["div_val"] == 1, len(self.edges) - 1

        def logits(n):
            begin, end = self.edges[n], self.edges[n + 1]
            source = "transformer.word_emb.emb_layers" if config["tie_weight"] else "crit.out_layers"
            rows = slice(begin, end) if one else slice(None)
            table = 0 if one else n
            weight, bias = t[f"{source}.{table}.weight"][rows], t[f"crit.out_layers.{table}.bias"][rows]
            if n == 0 and clusters > 1:
                weight, bias = torch.cat([weight, t["crit.cluster_weight"]]), torch.cat([bias, t["crit.cluster_bias"]])
            x = hidden
            if not one or config["d_embed"] != config["d_model"]:
                tied = f"transformer.word_emb.emb_projs.{table}"
                x = hidden @ t[tied if config["tie_projs"][n] else f"crit.out_projs.{n}"]
            return torch.log_softmax(x @ weight.T + bias, -1)

        first, frequent = logits(0), self.edges[1]
        parts = [first[:, :frequent]]
        parts += [first[:, frequent + n - 1, None] + logits(n) for n in range(1, clusters)]
        return torch.cat(parts, -1)

    def run(self, tokens):
        """logits [L, V], hidden [layers + 1, L, d], and each layer's attention over the whole text (the fields of oracle.Site)."""
        length = len(tokens)
        step = self.segments.get("tokens", 0) or length
        memories = [torch.zeros(0, self.config["d_model"], dtype=self.type) for _ in self.layers]
        pieces, seen = [], [[] for _ in self.layers]
        for begin in range(0, length, step):
            x = self.embedded(tokens[begin:begin + step])
            states = [x]
            for n, layer in enumerate(self.layers):
                before = begin - len(memories[n])
                mixed, *happened = self.attention(layer, x, memories[n])
                seen[n].append((before, *happened))
                kept = torch.cat([memories[n], x])
                memories[n] = kept[max(0, len(kept) - self.memory_length()):]
                x = self.block(layer, x, mixed)
                states.append(x)
            pieces.append(torch.stack(states))
        hidden = torch.cat(pieces, 1)
        return self.head(hidden[-1]), list(hidden), [whole(parts, length) for parts in seen]


def whole(parts, length):
    """One text's matrices out of its segments'."""
    heads = parts[0][1].shape[0]
    scores = torch.zeros(heads, length, length, dtype=parts[0][1].dtype)
    weights, allowed = torch.zeros_like(scores), torch.zeros(length, length, dtype=torch.bool)
    row = 0
    for before, own_scores, own_weights, own_seen, _ in parts:
        rows, columns = slice(row, row + own_scores.shape[1]), slice(before, before + own_scores.shape[2])
        scores[:, rows, columns], weights[:, rows, columns], allowed[rows, columns] = own_scores, own_weights, own_seen
        row = rows.stop
    states = {name: torch.cat([part[4][name] for part in parts], 1) for name in "qkv"}
    return dict(scores=scores, weights=weights, allowed=allowed, states=states)


def load(folder, precise, skip=()):
    return TransformerXl(folder, precise, skip)


def run(model, tokens, precise):
    """An oracle.Trace."""
    import oracle

    numpy = lambda value: {k: numpy(v) for k, v in value.items()} if isinstance(value, dict) else (
        value.numpy() if value.dtype == torch.bool else value.double().numpy())
    with torch.no_grad():
        logits, hidden, seen = model.run(tokens)
    return oracle.Trace(list(tokens), [oracle.Site(**numpy(one)) for one in seen], np.stack([numpy(x) for x in hidden]),
                        numpy(logits), True)


if __name__ == "__main__":
    with torch.no_grad():
        print(TransformerXl(sys.argv[1], True).run(json.loads(Path(sys.argv[2]).read_text()))[0])
