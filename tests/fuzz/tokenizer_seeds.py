# SPDX-License-Identifier: GPL-3.0-or-later
"""Seeds and words of make_seeds.py for tokenizers, their files, patterns and chat templates."""
import json
import re

from seed_sources import GOLDEN, HERE, text_of

PATTERN_WORDS = ("\\p{L}", "\\p{N}", "\\P{Lu}", "[^", "]", "(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>", ")",
                 "|", "*", "+", "?", "{1,3}", "{2}", "*?", "++", "\\s", "\\S", "\\w", "\\W", "\\d", "\\b", "^", "$",
                 "\\r\\n", "&&", "[[:alpha:]]", "\\K", "\\G", "\\X", "\\R", "\\1", "(?<n>", "\\k<n>", "\\g<n>", "(?~",
                 "\\x{10ffff}", "\\u00e9")
TEXT_WORDS = ("'s", "'LL", "'\u017f", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "123", "\u0663",
              "\u00bd", "\u0301", "\u0323", "\u1112\u1161\u11ab", "\uac01", "\u212b", "\ufb01", "\u4e2d",
              "\U0001f469\u200d\U0001f467", "\ufe0f", "\u0130", "\u03a3", "\u2581", "\u0120", "<s>", "</s>", "<mask>",
              "[MASK]", "<|end|>", "<0x41>", "Wonderland", "\ufffd", "\0", "\U0010ffff")


def pattern():
    text = "It's 12345 o'clock; DON'T  x\n\n\ty_z é 中文 ½٣ 'ſ\u00a0 ?!"
    seeds = {str(i): f"{p}\n{text}" for i, p in enumerate([
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", r"\s+", "", "a|", r"\d{1,3}",
        r"(?<=\p{L})\p{N}", r"\b", r"(a|aa)+$", r"[^\r\n\p{L}\p{N}]?+\p{L}+", r"\p{Han}|\p{^Lu}|[[:punct:]]", r"(?i:É)",
        r"x\Ky", r"(?=.)", r"[\p{L}&&[^a-z]]+", r"(?<n>.)\k<n>", r"\X", r"(?>a*)b", r"(", "[z-a]", r"\p{Nope}",
    ])}
    seeds["spaces"] = "x\n" + "  \r\n \t\n\u3000 a  b   \n"
    return seeds


def tokenizer_json():
    words = {w: i for i, w in enumerate("[UNK] a b ##b ab H e l o _ , ▁ Ġ <s>".split())}
    merges = ["a b", "l l"]
    models = {
        "bpe": {"type": "BPE", "vocab": {**words, "ll": 14}, "merges": merges, "unk_token": "[UNK]"},
        "bpe-pairs": {"type": "BPE", "vocab": {**words, "ll": 14}, "merges": [["a", "b"], ["l", "l"]], "fuse_unk": True,
                      "unk_token": "[UNK]", "ignore_merges": True, "dropout": 0.1},
        "bpe-bytes": {"type": "BPE", "vocab": {f"<0x{b:02X}>": b for b in range(256)}, "merges": [],
                      "byte_fallback": True},
        "bpe-suffix": {"type": "BPE", "vocab": {"a": 0, "b</w>": 1, "ab</w>": 2}, "merges": ["a b</w>"],
                       "end_of_word_suffix": "</w>", "continuing_subword_prefix": ""},
        "wordpiece": {"type": "WordPiece", "vocab": words, "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 20},
        "unigram": {"type": "Unigram", "unk_id": 0, "byte_fallback": False,
                    "vocab": [["<unk>", 0.0], ["a", -1.5], ["b", -2.0], ["ab", -2.5], ["▁", -3.0], ["▁a", -1.0]]},
        "wordlevel": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"},
    }
    normalizers = [
        {"type": "NFC"}, {"type": "NFD"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Lowercase"}, {"type": "Nmt"},
        {"type": "StripAccents"}, {"type": "Prepend", "prepend": "▁"}, {"type": "ByteLevel"},
        {"type": "Strip", "strip_left": True, "strip_right": True},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": ""},
        {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
         "lowercase": True},
        {"type": "Precompiled", "precompiled_charsmap": "BAAAAAEAAAA="},
        {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
    ]
    pre = [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True},
        {"type": "Split", "pattern": {"Regex": r"\p{L}+|\d"}, "behavior": "MergedWithNext", "invert": True},
        {"type": "Split", "pattern": {"String": " "}, "behavior": "Contiguous", "invert": False},
        {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Isolated"},
        {"type": "Whitespace"}, {"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"}, {"type": "UnicodeScripts"},
        {"type": "CharDelimiterSplit", "delimiter": "-"}, {"type": "FixedLength", "length": 3},
        {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Punctuation"}]},
    ]
    template = {"type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [13], "tokens": ["<s>"]}}}
    post = [template, {"type": "ByteLevel", "trim_offsets": True}, {"type": "BertProcessing", "sep": ["a", 1],
            "cls": ["b", 2]}, {"type": "RobertaProcessing", "sep": ["a", 1], "cls": ["b", 2], "trim_offsets": True,
            "add_prefix_space": True}, {"type": "Sequence", "processors": [{"type": "ByteLevel"}, template]}]
    decoders = [{"type": "ByteLevel"}, {"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "Metaspace",
                "replacement": "▁"}, {"type": "BPEDecoder", "suffix": "</w>"}, {"type": "ByteFallback"},
                {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0},
                {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}]
    added = [{"id": 13, "content": "<s>", "single_word": False, "lstrip": True, "rstrip": False, "normalized": False,
              "special": True},
             {"id": 20, "content": "aB", "single_word": True, "lstrip": False, "rstrip": True, "normalized": True,
              "special": False}]

    def document(model, **parts):
        return text_of({"version": "1.0", "truncation": None, "padding": None, "added_tokens": parts.get("added", []),
                        "normalizer": parts.get("normalizer"), "pre_tokenizer": parts.get("pre"),
                        "post_processor": parts.get("post"), "decoder": parts.get("decoder"), "model": model})

    seeds = {name: document(model) for name, model in models.items()}
    small = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "▁": 3, "Ġ": 4, "<s>": 5}, "merges": ["a b"]}
    for kind, list_of in (("normalizer", normalizers), ("pre", pre), ("post", post), ("decoder", decoders)):
        for i, part in enumerate(list_of):
            model = models["bpe"] if kind == "post" else small
            seeds[f"{kind}-{i}-{part['type'].lower()}"] = document(model, **{kind: part})
    seeds["added"] = document(small, added=added, normalizer={"type": "Lowercase"})
    return seeds


def chat_template():
    golden = json.loads((GOLDEN / "tokenizer" / "chat_templates.json").read_text(encoding="utf-8"))
    seeds = {name: text for name, text in golden["templates"].items() if len(text) <= 4096}
    # One that is refused would end the others beside it.
    sources = [source for source, result in golden["table"] if result is not None]
    for i in range(0, len(sources), 12):
        seeds[f"table-{i:03}"] = "\n".join(sources[i:i + 12])
    return seeds


def chat_words():
    spelled = set()
    for path in sorted((HERE.parent.parent / "core" / "tokenizer" / "template").glob("*.cpp")):
        spelled.update(re.findall(r'"([a-z_]{2,20}|[-+*/%~<>=!]{1,2})"', path.read_text()))
    return {*spelled, "{%", "%}", "{{", "}}", "{#", "#}", "{%-", "-%}", "{{-", "-}}", "|", "(", ")", "[", "]", "[::-1]",
            "messages", "message.content", "'role'", "loop.index0", "namespace(x=1)", "ns.x", " is ", " not ", " in ",
            "{% endif %}", "{% endfor %}", "{% endset %}", "{% endmacro %}", "{% raw %}", "{% endraw %}"}


def tokenizer_folder():
    """Files of a folder: name, line feed, content; a NUL byte between them."""
    pieces = ["<unk>", "<s>", "</s>", "<pad>", "<mask>", "a", "b", "H", "e", "l", "o", "Ġ", "ab", "ll", "Ã", "©"]
    vocabulary = text_of({piece: i for i, piece in enumerate(pieces)})
    merges = "#version: 0.2\na b\nl l\n"
    words = "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "##b", "a", ",", "中", "world"]) + "\n"

    def folder(**files):
        return "\0".join(f"{name.replace('__', '.')}\n{content}" for name, content in files.items())

    seeds = {"words": folder(vocab__txt=words), "bytes": folder(vocab__json=vocabulary, merges__txt=merges),
             "nothing": folder(config__json="{}"), "no-merges": folder(vocab__json=vocabulary),
             "both": folder(vocab__txt=words, vocab__json=vocabulary, merges__txt=merges),
             "json": folder(tokenizer__json='{"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}}',
                            vocab__txt=words)}
    for kind in ("GPT2Tokenizer", "RobertaTokenizerFast", "DebertaTokenizer", "GPTNeoXTokenizerFast", "Qwen2Tokenizer",
                 "CodeGenTokenizer", "LlamaTokenizer"):
        settings = {"tokenizer_class": kind, "add_prefix_space": True, "bos_token": "<s>",
                    "added_tokens_decoder": {"16": {"content": "<x>", "lstrip": True, "normalized": False,
                                                    "rstrip": False, "single_word": False, "special": True}}}
        seeds[kind.lower()] = folder(vocab__json=vocabulary, merges__txt=merges, tokenizer_config__json=text_of(settings))
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": False, "strip_accents": True,
                "tokenize_chinese_chars": False, "additional_special_tokens": ["[X]"]}
    seeds["bert"] = folder(vocab__txt=words, tokenizer_config__json=text_of(settings),
                           special_tokens_map__json='{"unk_token":{"content":"[UNK]","lstrip":false}}',
                           added_tokens__json='{"<new>":11}')
    seeds["mpnet"] = folder(vocab__txt=words.replace("[", "<").replace("]", ">"), config__json='{"model_type":"mpnet"}')
    return seeds


def sentencepiece():
    models = json.loads((GOLDEN / "tokenizer" / "sentencepiece.json").read_text())["models"]
    seeds = {name.replace(" ", "-"): bytes.fromhex(model) for name, model in models.items()}
    seeds["no-rules"] = b"".join(b"\n" + bytes([len(p)]) + p for p in (b"\n\5<unk>\x18\2", b"\n\4\xe2\x96\x81a", b"\n\1b"))
    seeds["nothing"] = b""
    return seeds


def tokenizer_text():
    names = (HERE / "tokenizers.txt").read_text().split()
    golden = json.loads((GOLDEN / "tokenizer" / "expected.json").read_text())
    texts = [t for t in golden["texts"] if t]
    seeds = {}
    for i, text in enumerate(texts):
        seeds[f"{i}"] = bytes([i % (len(names) + 1)]) + text.encode()
    return seeds
