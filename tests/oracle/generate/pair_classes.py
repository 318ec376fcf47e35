#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/oracle/generate/data/pair_classes.json: what transformers makes of pairs of texts, from folder to logits, in float64.

Each case is a checkpoint of class_heads.py with a tokenizer of the kind that its class names, read by AutoTokenizer and
AutoModelForSequenceClassification. `items` are read as one padded batch, cut to `length`; `attention` is of the first
item, uncut. tests/core/evaluation/test_pairs.cpp reads the output.

    python tests/oracle/generate/pair_classes.py
"""

import json
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

sys.path.append(str(Path(__file__).resolve().parents[1] / "models"))
from models import read_golden, rounded, write_checkpoint

ITEMS = [["a b c d", "e f g", 1], ["a", "b c d e f g h i j k", 0], ["k j i h g f e d c b", "a b c d e f g h i", 2],
         ["m n o", None, 0], ["", "p q", 1]]
LENGTH = 12
NAMES = ["input_ids", "token_type_ids", "attention_mask"]
# Not ModernBERT: where a window holds padding alone, transformers' eager attention in float64 makes NaN of a batch.
WITH_ATTENTION = ("bert", "albert", "xlm-roberta")
# Checkpoint and tokenizer_config.json, which together decide whether types reach the model.
CASES = [("bert", {"tokenizer_class": "BertTokenizer"}), ("bert", {}), ("bert", {"tokenizer_class": "PreTrainedTokenizerFast"}),
         ("bert", {"tokenizer_class": "BertTokenizer", "truncation_side": "left"}),
         ("bert", {"tokenizer_class": "BertTokenizer", "model_input_names": ["input_ids", "attention_mask"]}),
         ("roberta", {"tokenizer_class": "PreTrainedTokenizerFast"}),
         ("roberta", {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": NAMES}),
         ("xlm-roberta", {"tokenizer_class": "PreTrainedTokenizerFast"}), ("distilbert", {"tokenizer_class": "DistilBertTokenizer"}),
         ("electra", {"tokenizer_class": "ElectraTokenizerFast"}), ("albert", {"tokenizer_class": "PreTrainedTokenizerFast"}),
         ("nomic-bert", {"tokenizer_class": "BertTokenizer"}), ("mpnet", {"tokenizer_class": "PreTrainedTokenizerFast"})]


def make_tokenizer(padding):
    pieces = [f"[unused{i}]" for i in range(padding)] + ["[PAD]"]
    pieces += [piece for piece in ("[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz")]
    ids = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])])
    return tokenizer


def encoded(tokenizer, items, **options):
    firsts, seconds = [first for first, _, _ in items], [second for _, second, _ in items]
    rows = [tokenizer(a, b, truncation="longest_first", **options) if b is not None else
            tokenizer(a, truncation="longest_first", **options) for a, b in zip(firsts, seconds)]
    return tokenizer.pad(rows, padding_side="right", return_tensors="pt")


def case(name, settings):
    data = read_golden(f"{name}-text-classes")
    settings = {**settings, "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
                "mask_token": "[MASK]"}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_checkpoint(folder, data)
        # Positions that skip padding count from the model's padding token.
        document = make_tokenizer(1 if name == "mpnet" else data["config"].get("pad_token_id") or 0)
        document.save(str(folder / "tokenizer.json"))
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, dtype=torch.float64, attn_implementation="eager").eval()
    batch, whole = encoded(tokenizer, ITEMS, max_length=LENGTH), encoded(tokenizer, ITEMS[:1], max_length=LENGTH)
    labels = torch.tensor([label % model.config.num_labels for _, _, label in ITEMS])
    model.zero_grad()
    logits = model(**batch).logits
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    found = {"model": name, "tokenizer": json.loads(document.to_str()), "tokenizer_config": settings,
             "ids": batch["input_ids"].tolist(), "lengths": batch["attention_mask"].sum(1).tolist(),
             "types": batch["token_type_ids"].tolist() if "token_type_ids" in batch else None,
             "labels": labels.tolist(), "logits": rounded(logits.detach()), "loss": float(loss.detach()),
             "whole": whole["input_ids"][0].tolist()}
    tables = {key: p for key, p in model.named_parameters() if key.endswith("token_type_embeddings.weight")}
    if tables:
        found["type_gradient"] = [float(row.norm()) for row in next(iter(tables.values())).grad]
    if name in WITH_ATTENTION:
        found["attention"] = [rounded(a.detach()) for a in model(**whole, output_attentions=True).attentions]
    return found


def main():
    transformers.logging.set_verbosity_error()
    cases = [case(*one) for one in CASES]
    data = {"items": ITEMS, "length": LENGTH, "cases": cases}
    text = json.dumps(data, separators=(",", ":")).replace('{"model"', '\n{"model"')
    (Path(__file__).parent / "data/pair_classes.json").write_text(text + "\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
