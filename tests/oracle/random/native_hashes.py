# SPDX-License-Identifier: GPL-3.0-or-later
"""Hash embeddings of native_oracle.py: tokens of a hash model, and their vectors."""

import sys
from pathlib import Path

import numpy as np
import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))
import word_hashes


class HashEmbedding:
    """A base of native_oracle.Native, which sets hashed, ngrams, tensors and type."""

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
