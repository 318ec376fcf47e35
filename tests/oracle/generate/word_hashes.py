#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hash embeddings by hashlib, hmac, re and numpy in float64: word_hashes.json.

    python word_hashes.py

Texts are split by CPython's re and lowered by its str; digests are hashlib's; sums over n-grams are numpy's. All of it
is written from the definitions, word by word, n-gram by n-gram.
"""

import collections
import hashlib
import hmac
import json
import math
import pathlib
import re

import numpy

TEXTS = ("", " ", "The cat, the CAT!", "<mask> is three words", "İSTANBUL İ! ıI", "e\u0301te\u0301 été", "ΟΔΟΣ ΣΑΣ. Σ ΑΣΒ Α'Σ' ὈΔΥΣΣΕΎΣ",
         "a_b __ 1½Ⅷ²٣x", "don't—stop…now", "中文 字。かな", "ab\u200bcd\u00adef\u2028g\u0085h\u001ci\u00a0j\u3000k", "😀😀 👍🏽x", "ªº ʰΣ ßẞ ŉO ǅ ﬁ",
         "\u0301a\u0307!İ?", "𐐀𐐨 𝒜𝟙", "x\ty\nz\r\n\v\fw", "ÀÉÎ ŞĞ Ω℧ K Å", "3.14e-10 + $5", "नमस्ते ไทย", "a" * 70 + " " + "é" * 40)
WORDS = ("the", "hello", "", "a", "<mask>", "i", "\u0307", "istanbul", "été", "οδος", "中文", "😀😀", "zzzz", "aaaa", "abcabcabcabc", "naïve", "\u0000",
         "x" * 55, "x" * 56, "x" * 64, "é" * 100)
MESSAGES = ("", "a", "abc", "message digest", "abcdefghijklmnopqrstuvwxyz", "1234567890" * 8, "x" * 55, "x" * 56, "x" * 63, "x" * 64, "x" * 119)
KEYS = ("en", "", "schlüssel", "k" * 64, "k" * 65)
CORPUS = ("the cat sat on the mat", "The théâtre: a theme, then thee!", "中文中文 文中 zz aab")
PRIMES = (31, 43, 59, 61, 73, 97, 103, 113)


def words_of(text):
    """[piece, first byte, byte behind] of each word."""
    source = []  # of each character of the lower case: that of the text which it came of
    for place, c in enumerate(text):
        source += [place] * len(c.lower())
    assert len(source) == len(text.lower())
    byte = [0]
    for c in text:
        byte.append(byte[-1] + len(c.encode()))
    return [[m.group(), byte[source[m.start()]], byte[source[m.end() - 1] + 1]]
            for m in re.finditer(r"\w+|[^\w\s]+", text.lower())]


def digest(key, word):
    return hmac.new(key.encode(), word.encode(), hashlib.md5).digest()


def bits_of_digest(data):
    number = int.from_bytes(data, "big")
    return [number >> (127 - i) & 1 for i in range(128)]


def codes(bits, k):
    return [int("".join(map(str, bits[i:i + k])), 2) for i in range(0, len(bits), k)]


def hexed(bits):
    bits = bits + [0] * (-len(bits) % 4)
    return "".join("%x" % code for code in codes(bits, 4))


def ngrams_of(word):
    return [word[i:i + n] for n in (1, 2, 3, 4) for i in range(len(word) - n + 1)]


def counts(word, ngrams):
    seen = collections.Counter(ngrams_of(word))
    return numpy.array([seen[ngram] for ngram in ngrams], numpy.float64)


def products(word, ngrams, normal, planes):
    x, size = counts(word, ngrams), len(ngrams)
    return numpy.array([x @ normal[(numpy.arange(size) + i) % size] for i in range(1, planes + 1)])


def most_frequent(texts, most):
    seen = collections.Counter(ngram for text in texts for word, _, _ in words_of(text) for ngram in ngrams_of(word))
    return [ngram for ngram, _ in sorted(seen.items(), key=lambda item: (-item[1], [ord(c) for c in item[0]]))[:most]]


def lsh_case(rng, ngrams, bits, rows):
    normal = rng.standard_normal(len(ngrams)).astype(numpy.float32)
    wide = normal.astype(numpy.float64)
    return {"ngrams": ngrams, "normal": normal.tolist(), "bits": bits, "rows": rows,
            "hex": [hexed([int(s >= 0) for s in products(word, ngrams, wide, bits)]) for word in WORDS],
            "ids": [5 + int(numpy.argmax(products(word, ngrams, wide, rows))) for word in WORDS]}


def vector(kind, tensors, d, bits, special):
    """The vector of one word, or of a special token where `special` is its id."""
    s = tensors["special"]
    if special is not None:
        return s[special]
    b = numpy.array(bits, numpy.float64)
    if kind == "pool":
        k = int(math.log2(len(tensors["codes"])))
        weights = numpy.exp(tensors["parts"])
        weights /= weights.sum(0)
        return s[5] + sum(weights[j] * tensors["codes"][code] for j, code in enumerate(codes(bits, k)))
    if kind == "add":
        return s[5] + sum(tensors["bits"][j, bit] for j, bit in enumerate(bits)) / math.sqrt(len(bits))
    if kind == "proj":
        centred, made = b - b.mean(), []
        for axis in tensors["axes"]:
            other = axis - axis.mean()
            lengths = max(numpy.sqrt(centred @ centred), 1e-8) * max(numpy.sqrt(other @ other), 1e-8)
            made.append(centred @ other / lengths)
        return s[5] + numpy.array(made)
    assert kind == "linear"
    return tensors["axes"] @ (2 * b - 1)


def embedding_case(rng, kind, d, bits, group=0):
    shapes = {"special": (5 if kind == "linear" else 6, d)}
    if kind == "pool":
        shapes.update(codes=(2 ** group, d), parts=(-(-bits // group), d))
    elif kind == "add":
        shapes["bits"] = (bits, 2, d)
    else:
        shapes["axes"] = (d, bits)
    tensors = {name: rng.standard_normal(shape).round(4) for name, shape in shapes.items()}
    rows = rng.integers(0, 2, (7, bits)).tolist()
    rows[2], rows[3] = [1] * bits, [0] * bits  # all equal: no correlation
    ids = [0, 5, 5, 5, 4, 5, 2]
    made = [vector(kind, tensors, d, row, None if id == 5 else id) for row, id in zip(rows, ids)]
    return {"kind": kind, "hidden": d, "bits": bits, "group_bits": group, "ids": ids, "rows": rows,
            "tensors": {name: {"shape": value.shape, "values": value.ravel().tolist()} for name, value in tensors.items()},
            "vectors": [row.tolist() for row in made]}


def characters_case(rng, d, functions, buckets):
    table, special = rng.standard_normal((functions, buckets, d // functions)).round(4), rng.standard_normal((5, d)).round(4)
    points, ids = [0, 97, 0x10FFFF, 32, 0x4E2D, 0, 0x1F600], [0, 5, 5, 5, 5, 2, 5]
    made = [special[id] if id < 5 else
            numpy.concatenate([table[k, (point + 1) * PRIMES[k] % buckets] for k in range(functions)])
            for point, id in zip(points, ids)]
    tensors = {"special": special, "buckets": table}
    return {"kind": "characters", "hidden": d, "hash_functions": functions, "buckets": buckets, "ids": ids, "points": points,
            "tensors": {name: {"shape": value.shape, "values": value.ravel().tolist()} for name, value in tensors.items()},
            "vectors": [row.tolist() for row in made]}


def main():
    rng = numpy.random.default_rng(28)
    learned = most_frequent(CORPUS, 60)
    # Equal numbers and zeros: which of equal hyperplanes comes first, and the sign of 0.
    tied = {"ngrams": ["a", "b", "ab", "aaaa"], "normal": [0.0, 1.0, -1.0, 1.0], "bits": 9, "rows": 11}
    tied["hex"] = [hexed([int(s >= 0) for s in products(w, tied["ngrams"], numpy.array(tied["normal"]), 9)]) for w in WORDS]
    tied["ids"] = [5 + int(numpy.argmax(products(w, tied["ngrams"], numpy.array(tied["normal"]), 11))) for w in WORDS]
    golden = {
        "md5": [[m, hashlib.md5(m.encode()).hexdigest()] for m in MESSAGES],
        "hmac": [[k, m, digest(k, m).hex()] for k in KEYS for m in ("", "the", "hello", "x" * 56, "é" * 100)],
        "texts": [{"text": t, "words": words_of(t)} for t in TEXTS],
        "words": WORDS,
        "rows": [50260, 1033, 1, 2 ** 31 - 6],
        "ids": [[int.from_bytes(digest("en", w), "big") % n + 5 for w in WORDS] for n in (50260, 1033, 1, 2 ** 31 - 6)],
        "hex": [digest("en", w).hex() for w in WORDS],
        "codes": [codes(bits_of_digest(digest("en", w)), 10) for w in WORDS],
        "corpus": CORPUS, "ngrams": {str(n): most_frequent(CORPUS, n) for n in (1, 12, 60)}, "all_ngrams": len(most_frequent(CORPUS, 10 ** 6)),
        "lsh": [lsh_case(rng, learned, 21, 40), lsh_case(rng, learned, 420, 90), tied],
        "embeddings": [embedding_case(rng, "pool", 3, 13, 5), embedding_case(rng, "pool", 4, 8, 4), embedding_case(rng, "add", 3, 9),
                       embedding_case(rng, "proj", 4, 11), embedding_case(rng, "linear", 3, 10), characters_case(rng, 6, 3, 17),
                       characters_case(rng, 8, 8, 1000)],
    }
    assert golden["hex"][0] == "b9386d96710ddd52bc49ff0033ead10f" and golden["ids"][0][:2] == [20664, 46797]  # thesis
    path = pathlib.Path(__file__).parent / "data/word_hashes.json"
    lines = (json.dumps(name) + ":" + json.dumps(value, separators=(",", ":")) for name, value in golden.items())
    path.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
