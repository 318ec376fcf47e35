# SPDX-License-Identifier: GPL-3.0-or-later
"""Native checkpoints (docs/file-formats.md, "Native checkpoints") computed by the book, dense and layer by layer.

An oracle: written from the definitions of the mixers (Deconstructing Attention, arXiv 2510.11602, and the choices that
docs/dev/decisions.md lists) and the file format alone, with every L x L matrix spelled out. precise=True is float64, precise=False
the same in float32: the distance between the two is how exact float32 can be on the very model (comparison.py). Attention
is in native_attention.py, mixers with a state in native_states.py, hash embeddings in native_hashes.py.

    python native_oracle.py FOLDER TOKENS.json     # logits of one sequence, for a look
"""

import json
import sys
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch

from native_attention import AttentionMixers
from native_hashes import HashEmbedding
from native_options import HEAD_VARIANTS, LEARNERS, RECURRENT
from native_states import StateMixers

ACTIVATIONS = {
    "silu": torch.nn.functional.silu, "gelu": torch.nn.functional.gelu, "relu": torch.relu,
    "gelu_pytorch_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
}


class Native(HashEmbedding, AttentionMixers, StateMixers):
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

    def token_map(self, stem, x):
        """The mixer linear: [L, d], and its matrix [1, L, L]."""
        block = self.tensors[stem + "token_proj.weight"][: len(x), : len(x)]
        return block @ self.linear(stem + "hidden_proj", x), block[None]

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
        if kind == "spans":
            return self.linear("qa_outputs", x)
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
