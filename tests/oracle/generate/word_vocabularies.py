#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small word vocabularies of Transformer-XL as Python writes them, and the ids that the paper's rules make of texts: lines
stripped, words between white space, <eos> behind each line, <unk> for what is not there.

    word_vocabularies.py      writes tests/oracle/generate/data/words/
"""

import io
import json
import pathlib
import pickle
import re
import sys
import types
from collections import Counter, OrderedDict

import torch

WORDS = ["<eos>", "the", "cat", "<unk>", "sat", "on", "The", "é中", "a", "b", ","]
TEXTS = ["the cat sat", "the cat\nsat on\n", "\nThe zebra <unk> \n\n  the\tcat ,", "a\u00a0b\x1cthe\r\nTHE é中 É中",
         "cat <eos> sat\n\n", "  ", "a\rb\r"]


def vocabulary(**more):
    index = OrderedDict((word, number) for number, word in enumerate(WORDS))
    return {"counter": Counter("the cat sat on the the".split()), "special": ["<eos>"], "min_freq": 0, "max_size": None,
            "lower_case": False, "delimiter": None, "vocab_file": None, "never_split": ("<eos>", "<unk>"),
            "idx2sym": list(WORDS), "sym2idx": index, "eos_idx": 0} | more


def moses():
    """Objects of a module that the reader cannot know, with patterns: what later tokenizers put beside the words."""
    module = types.ModuleType("sacremoses_stand_in")
    module.MosesTokenizer = type("MosesTokenizer", (), {"__module__": module.__name__})
    sys.modules[module.__name__] = module
    made = module.MosesTokenizer()
    made.pattern = re.compile(r"(\d)[,.](?=\d)")
    return {"moses_tokenizer": made, "punctuation": re.compile("[^\\s][,]"), "unk_idx": 3}


def encode(text, lower):
    ids = []
    for line in io.StringIO(text, newline=None):
        words = (line.strip().lower() if lower else line.strip()).split()
        ids += [WORDS.index(word) if word in WORDS else WORDS.index("<unk>") for word in [*words, "<eos>"]]
    return ids


def main():
    folder = pathlib.Path(__file__).parent / "data/words"
    folder.mkdir(exist_ok=True)
    torch.save(vocabulary(), folder / "before_1.6.bin", _use_new_zipfile_serialization=False)
    torch.save(vocabulary(lower_case=True), folder / "archive.bin")
    for protocol in (2, 5):
        (folder / f"protocol{protocol}.pkl").write_bytes(pickle.dumps(vocabulary(**moses()), protocol))
    bad = {"none": {"words": []}, "twice": vocabulary(idx2sym=["a", "b", "a"]), "number": vocabulary(idx2sym=["a", 7]),
           "letters": vocabulary(delimiter=""), "outside": vocabulary(unk_idx=11), "list": ["a"], "empty": vocabulary(idx2sym=[]),
           "lower": vocabulary(lower_case="yes")}
    for name, data in bad.items():
        (folder / f"bad_{name}.pkl").write_bytes(pickle.dumps(data, 4))
    ids = {str(lower).lower(): [encode(text, lower) for text in TEXTS] for lower in (False, True)}
    (folder / "expected.json").write_text(json.dumps({"texts": TEXTS, "lower_case": ids}, indent=1) + "\n")


if __name__ == "__main__":
    main()
