#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/oracle/generate/data/tokenizer/truncation.json: what the `tokenizers` library leaves of pairs of texts by "longest_first".

`lengths`: for pairs of up to 9 tokens each and every room for both, the tokens that are left of each text, as
[first, second, room, left of first, left of second]. `pairs`: ids and types of a pair cut on either side, by a tokenizer
that is in the file. Run by hand; tests/core/data/test_truncation.cpp reads the output.

    python tests/oracle/generate/truncation.py
"""

import json
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, processors

FOLDER = Path(__file__).resolve().parent / "data/tokenizer"
ADDED = 3


def make_tokenizer():
    vocabulary = {token: i for i, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrst"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def main():
    tokenizer = make_tokenizer()
    plain = json.loads(tokenizer.to_str())
    first, second = "a b c d e f g h i".split(), "j k l m n o p q r".split()
    lengths = []
    for n in range(10):
        for m in range(10):
            for room in range(n + m + 2):
                tokenizer.enable_truncation(room + ADDED, strategy="longest_first")
                regions = tokenizer.encode(" ".join(first[:n]), " ".join(second[:m])).sequence_ids
                lengths.append([n, m, room, regions.count(0), regions.count(1)])
    pairs = []
    for side in ("right", "left"):
        for n, m, room in ((9, 9, 7), (2, 9, 8), (9, 1, 4), (3, 3, 6), (5, 9, 13)):
            tokenizer.enable_truncation(room + ADDED, strategy="longest_first", direction=side)
            found = tokenizer.encode(" ".join(first[:n]), " ".join(second[:m]))
            pairs.append({"side": side, "text": " ".join(first[:n]), "pair": " ".join(second[:m]),
                          "length": room + ADDED, "ids": found.ids, "types": found.type_ids})
        tokenizer.enable_truncation(5, strategy="longest_first", direction=side)
        found = tokenizer.encode(" ".join(first))
        pairs.append({"side": side, "text": " ".join(first), "pair": None, "length": 5, "ids": found.ids,
                      "types": found.type_ids})
    data = {"tokenizer": plain, "lengths": lengths, "pairs": pairs}
    (FOLDER / "truncation.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")
    print(len(lengths), "lengths,", len(pairs), "pairs")


if __name__ == "__main__":
    main()
