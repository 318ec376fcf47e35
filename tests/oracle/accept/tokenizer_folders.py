# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokenizer folders from before tokenizer.json: vocab.json with merges.txt, vocab.txt, and the files beside them in all
the ways in which versions of transformers have written them. (name, {file: text}), as transformers reads them."""
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))
import tokenizer_files


def lines_of(data):
    merges = [" ".join(m) if isinstance(m, list) else m for m in data["model"]["merges"]]
    return "#version: 0.2\n" + "\n".join(merges) + "\n"


def byte_level(special=(), rest=()):
    """Special pieces in front, as in RoBERTa's files, and behind, as in GPT-2's."""
    data = json.loads(tokenizer_files.byte_level(add_prefix_space=False).to_str())
    pieces = sorted(data["model"]["vocab"], key=data["model"]["vocab"].get)
    vocabulary = {p: i for i, p in enumerate([*special, *pieces, *rest])}
    return {"vocab.json": json.dumps(vocabulary, ensure_ascii=False), "merges.txt": lines_of(data)}


def word_piece(special=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")):
    data = json.loads(tokenizer_files.word_piece(True).to_str())
    old = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    pieces = [p for p in sorted(data["model"]["vocab"], key=data["model"]["vocab"].get) if p not in old]
    return {"vocab.txt": "\n".join([*special, *pieces]) + "\n"}


def clip():
    """Pieces that end a word carry </w>; the two special ones come last."""
    data = json.loads(tokenizer_files.clip().to_str())
    pieces = [p for p in sorted(data["model"]["vocab"], key=data["model"]["vocab"].get) if p != "<|end|>"]
    vocabulary = {p: i for i, p in enumerate([*pieces, "<|startoftext|>", END])}
    return {"vocab.json": json.dumps(vocabulary, ensure_ascii=False), "merges.txt": lines_of(data)}


def token(content, **flags):
    return {"__type": "AddedToken", "content": content, "lstrip": False, "normalized": False, "rstrip": False,
            "single_word": False, **flags}


def proteins():
    pieces = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>"]
    return {"vocab.txt": "\n".join(pieces)}


def with_files(files, config=None, model=None, special=None, added=None):
    named = {"tokenizer_config.json": config, "config.json": model, "special_tokens_map.json": special, "added_tokens.json": added}
    return {**files, **{name: json.dumps(value, ensure_ascii=False) for name, value in named.items() if value is not None}}


END = "<|endoftext|>"
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>"]


def folders():
    gpt2 = byte_level(rest=[END])
    roberta = byte_level(ROBERTA, ["<mask>"])
    bert = word_piece()
    cls = {"tokenizer_class": "BertTokenizer"}
    yield "gpt2", with_files(gpt2, {"tokenizer_class": "GPT2Tokenizer"})
    yield "gpt2_by_model_type", with_files(gpt2, None, {"model_type": "gpt2"})
    yield "gpt2_fast_class", with_files(gpt2, {"tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": True}, {"model_type": "gpt2"})
    yield "gpt2_bos", with_files(gpt2, {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": token(END, normalized=True)},
                                 {"model_type": "gpt2"})
    yield "gpt2_new_tokens", with_files(
        gpt2, {"tokenizer_class": "GPT2Tokenizer", "pad_token": "<pad>", "unk_token": None, "add_bos_token": True, "add_eos_token": True},
        {"model_type": "gpt2"}, {"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False, "normalized": False,
                                                                   "rstrip": True, "single_word": False},
                                 "additional_special_tokens": ["<|a|>", "<|b|>"]},
        {"<|a|>": 700, "<|b|>": 701, "Wonder": 699, "<s>": 698})
    yield "opt", with_files(
        byte_level(["<s>", "<pad>", "</s>", "<unk>"]),
        {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "errors": "replace", "bos_token": token("</s>", normalized=True),
         "eos_token": token("</s>", normalized=True), "unk_token": token("</s>", normalized=True), "pad_token": "<pad>"},
        {"model_type": "opt"}, {"bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>", "pad_token": "<pad>"})
    yield "phi", with_files(
        gpt2, {"tokenizer_class": "CodeGenTokenizer", "add_prefix_space": False, "added_tokens_decoder": {
            str(421 + n): {"content": " " * n, "lstrip": False, "normalized": True, "rstrip": False, "single_word": False, "special": False}
            for n in (2, 3, 4)} | {"420": {"content": END, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
                                           "special": True}}}, {"model_type": "phi"},
        {"bos_token": "ignored"}, {"ignored too": 500})
    yield "codegen_bos", with_files(gpt2, {"tokenizer_class": "CodeGenTokenizer", "add_bos_token": False}, {"model_type": "codegen"})
    yield "roberta", with_files(roberta, {"tokenizer_class": "RobertaTokenizer"}, {"model_type": "roberta"})
    yield "roberta_old", with_files(
        roberta, {"tokenizer_class": "RobertaTokenizer", "trim_offsets": False, "add_prefix_space": True, "mask_token": token("<mask>", lstrip=True),
                  "cls_token": token("<s>", normalized=True)}, {"model_type": "roberta"},
        {"bos_token": "<s>", "mask_token": {"content": "<mask>", "single_word": False, "lstrip": True, "rstrip": False, "normalized": False}})
    yield "bart", with_files(roberta, {"model_max_length": 1024}, {"model_type": "bart"})
    yield "blenderbot", with_files(roberta, {"tokenizer_class": "BlenderbotTokenizer"}, {"model_type": "blenderbot"})
    yield "blenderbot_by_model_type", with_files(roberta, {"add_prefix_space": False, "mask_token": "<mask>"}, {"model_type": "blenderbot"})
    yield "neox", with_files(gpt2, {"tokenizer_class": "GPTNeoXTokenizer", "add_bos_token": False, "add_eos_token": True},
                             {"model_type": "gpt_neox"})
    yield "qwen2", with_files(
        byte_level(), {"tokenizer_class": "Qwen2Tokenizer", "bos_token": None, "eos_token": "<|im_end|>", "pad_token": END, "unk_token": None,
                       "additional_special_tokens": ["<|im_start|>", "<|im_end|>"], "added_tokens_decoder": {
            str(420 + i): {"content": c, "lstrip": i == 1, "normalized": False, "rstrip": False, "single_word": False, "special": i < 3}
            for i, c in enumerate([END, "<|im_start|>", "<|im_end|>", "<tool_call>"])}}, {"model_type": "qwen2"})
    yield "qwen3_image", with_files(byte_level(rest=[END]), {"tokenizer_class": "Qwen2Tokenizer", "image_token": "<|image|>",
                                                             "extra_special_tokens": {"audio_token": "<|audio|>"}}, {"model_type": "qwen3"})
    yield "deberta", with_files(byte_level(["[CLS]", "[PAD]", "[SEP]", "[UNK]"], ["[MASK]"]),
                                {"tokenizer_class": "DebertaTokenizer", "add_prefix_space": True}, {"model_type": "deberta"})
    yield "bert", with_files(bert, cls, {"model_type": "bert"})
    yield "bert_cased", with_files(bert, {**cls, "do_lower_case": False, "strip_accents": None, "tokenize_chinese_chars": True},
                                   {"model_type": "bert"})
    yield "bert_accents", with_files(bert, {**cls, "do_lower_case": True, "strip_accents": False, "tokenize_chinese_chars": False},
                                     {"model_type": "bert"})
    yield "bert_by_model_type", with_files(bert, {"do_lower_case": False}, {"model_type": "distilbert"})
    yield "bert_own_tokens", with_files(
        word_piece(["<pad>", "<unk>", "<cls>", "<sep>"]), {**cls, "mask_token": "<mask>"}, {"model_type": "bert"},
        {"cls_token": "<cls>", "sep_token": "<sep>", "unk_token": "<unk>", "pad_token": {
            "content": "<pad>", "single_word": True, "lstrip": True, "rstrip": True, "normalized": False}},
        {"[ENT]": 600, "entity": 601, "<mask>": 599})
    yield "bert_odd_lines", {**with_files(bert, cls, {"model_type": "bert"}), "vocab.txt": bert["vocab.txt"].replace("\n", " \r\n") + "\n\nthe\n"}
    yield "electra", with_files(bert, {"do_lower_case": True}, {"model_type": "electra"})
    yield "mpnet", with_files(word_piece(["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]), {"tokenizer_class": "MPNetTokenizer"},
                              {"model_type": "mpnet"})
    yield "clip", with_files(clip(), {"tokenizer_class": "CLIPTokenizer"}, {"model_type": "clip"})
    yield "clip_by_model_type", with_files(clip(), {"model_max_length": 77}, {"model_type": "clip"}, {
        "bos_token": {"content": "<|startoftext|>", "lstrip": False, "normalized": True, "rstrip": False, "single_word": False},
        "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>", "unk_token": "<|endoftext|>"})
    yield "esm", with_files(proteins(), {"tokenizer_class": "EsmTokenizer"})
    yield "esm_by_model_type", with_files(
        proteins(), {"model_max_length": 1024}, {"model_type": "esm"}, {"mask_token": {
            "content": "<mask>", "single_word": False, "lstrip": True, "rstrip": False, "normalized": False}},
        {"<new>": 33})
