#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/oracle/generate/data/tokenizer/pairs.json: what the `tokenizers` library (0.23) makes of pairs of awkward texts with the
files of tokenizer_files.py, as they are and with every kind of post-processor. Run by hand; its output is committed and
tests/core/tokenizer/test_golden.cpp reads it.

    pip install tokenizers==0.23.3
    python3 tests/oracle/generate/tokenizer_pairs.py
"""
import json
import random
from pathlib import Path

from tokenizers import Tokenizer, processors

FOLDER = Path(__file__).resolve().parent / "data/tokenizer"
NAMES = ["gpt2", "roberta", "llama3", "llama2", "bert_uncased", "bert_cased", "clip", "t5", "unigram_bytes"]
PAIRS = 6  # of texts, for each file

BERT = processors.BertProcessing(("b", 2), ("a", 1))
ROBERTA = processors.RobertaProcessing(("b", 2), ("a", 1), trim_offsets=True, add_prefix_space=True)
BYTE_LEVEL = processors.ByteLevel(trim_offsets=True)
TWICE = processors.TemplateProcessing(single="$A", pair="$B:7 b:2 $A:5 $B:1", special_tokens=[("b", 2)])
TYPES = processors.TemplateProcessing(single="a $A b", pair="a:3 $A b $B:1 b:1", special_tokens=[("a", 1), ("b", 2)])
FIRST_ALONE = processors.TemplateProcessing(single="$A", pair="a $A $B", special_tokens=[("a", 1)])
OTHERS = [None, BERT, ROBERTA, BYTE_LEVEL, TWICE, TYPES, FIRST_ALONE] + [processors.Sequence(list(some)) for some in (
    (BYTE_LEVEL, TYPES), (TWICE, ROBERTA), (BERT, BERT), (BERT, TYPES), (ROBERTA, TWICE), (TYPES, BYTE_LEVEL))]


def regions(found, post):
    """Where the library says which text a token is of: it loses that where processors follow each other, or a template
    has a text twice."""
    if post is TWICE or isinstance(post, processors.Sequence):
        return []
    return [0 if sequence is None else sequence + 1 for sequence in found.sequence_ids]


def main():
    texts = json.loads((FOLDER / "expected.json").read_text())["texts"]
    usable = [i for i, text in enumerate(texts) if text.strip()]
    rng = random.Random(24)
    cases = []
    for name in NAMES:
        document = json.loads((FOLDER / f"{name}.json").read_text())
        for post in ["own", *OTHERS] if name in ("bert_cased", "roberta") else ["own"]:
            if post != "own":
                document["post_processor"] = json.loads(post.__getstate__()) if post else None
            tokenizer = Tokenizer.from_str(json.dumps(document))
            case = {"file": name, "encodings": []}
            if post != "own":
                case["post_processor"] = document["post_processor"]
            for _ in range(PAIRS if post == "own" else 3):
                a, b = rng.sample(usable, 2)
                for add in (True, False):
                    found = tokenizer.encode(texts[a], texts[b], add_special_tokens=add)
                    case["encodings"].append({"texts": [a, b], "add": add, "ids": found.ids, "types": found.type_ids,
                                              "special": sum(found.special_tokens_mask),
                                              "characters": [list(span) for span in found.offsets],
                                              "regions": regions(found, post)})
            cases.append(case)
    (FOLDER / "pairs.json").write_text(json.dumps(cases, separators=(",", ":")).replace('{"file"', '\n{"file"') + "\n")


if __name__ == "__main__":
    main()
