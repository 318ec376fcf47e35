#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the seeds of the fuzz targets, tests/fuzz/corpus/<target>/made-*: small inputs of every kind that a reader
knows, good ones and such that break one rule. What fuzzing added lies beside them under other names and is left alone.
Also their dictionaries, tests/fuzz/dictionaries/<target>.dict.

    python3 tests/fuzz/make_seeds.py

Needs Python alone. Configurations come from tests/oracle/models/data: run it again when a family was added there.
"""
import json
import random
import re
import struct
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ORACLE = HERE.parent / "oracle"
GOLDEN = ORACLE / "generate" / "data"


def text_of(document):
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def write(target, seeds):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("made-*"):
        old.unlink()
    for name, seed in seeds.items():
        (folder / f"made-{name}").write_bytes(seed if isinstance(seed, bytes) else seed.encode())


def words_of(document, words):
    """The keys, short strings and shapes of a JSON document."""
    if isinstance(document, dict):
        for key, value in document.items():
            words.add(text_of(key) + ":")
            words_of(value, words)
    elif isinstance(document, list):
        for value in document:
            words_of(value, words)
    elif isinstance(document, str) and document.isascii() and 2 <= len(document) <= 24:
        words.add(text_of(document))


def dictionary(target, texts, more=()):
    words = set(more)
    for one in texts:
        for part in (one.decode("utf-8", "replace") if isinstance(one, bytes) else one).split("\0"):
            try:
                words_of(json.loads(part[part.find("{"):]), words)
            except ValueError:
                pass
    path = HERE / "dictionaries" / f"{target}.dict"
    path.parent.mkdir(exist_ok=True)
    spelled = sorted({word if isinstance(word, bytes) else word.encode() for word in words})
    quoted = ("".join(chr(b) if 0x20 <= b < 0x7F and b not in b'\\"' else f"\\x{b:02x}" for b in word)
              for word in spelled)
    path.write_text("# made by make_seeds.py\n" + "".join(f'"{word}"\n' for word in quoted))


def spelled_in(folder, pattern):
    """String literals of our sources that look like keys or names of parts: new ones get into the dictionaries."""
    found = set()
    for path in sorted((HERE.parent.parent / "core" / folder).rglob("*.cpp")):
        if folder == "tokenizer" and path.parent.name == "template":
            continue  # another language
        found.update(re.findall(pattern, path.read_text()))
    return {text_of(word) for word in found}


def text():
    return {
        "plain": "Headscope, 12 heads.\n",
        "scripts": "é 中文 العربية हिन्दी 👩‍👩‍👧 \U0010ffff",
        "controls": "\0\a\x1b[31m\x7f\u0085\u2028\u202e\ufeff",
        "broken": b"ok \xc3 \xe4\xb8 \xf0\x9f\x91 \xff\xfe \x80 end",
        "overlong": b"\xc0\x80 \xe0\x80\x80 \xf0\x80\x80\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xf8\x88\x80\x80\x80",
    }


def json_seeds():
    return {
        "all-kinds": '{"a":[1,-2,0.5,1e-3,true,false,null,"x\\u00e9\\n"],"b":{"c":{}},"d":[],"":-0}',
        "escapes": '"\\"\\\\\\/\\b\\f\\n\\r\\t\\ud83d\\ude00\\u0000"',
        "lone-surrogate": '["\\ud800"]',
        "numbers": "[0,-0,1.0,1E+2,18446744073709551615,18446744073709551616,-9223372036854775808,"
                   "-9223372036854775809,1e308,4.9e-324,1e-400]",
        "too-large": "[1e309]",
        "bad-number": "[01]",
        "twice": '{"a":1,"a":2}',
        "deepest": "[" * 64 + "]" * 64,
        "too-deep": "[" * 65 + "]" * 65,
        "space": " \t\r\n{ \"a\" : [ 1 , 2 ] } \n",
        "mark": "\ufeff{}",
        "comment": "[1] // no",
        "behind": "{} {}",
        "no-utf8": b'["\xff"]',
    }


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def structured(size, header):
    return f"s{size}\n" + (header if isinstance(header, str) else text_of(header))


def safetensors():
    two = {"a": entry("F32", [2, 3], 0, 24), "b": entry("BF16", [5], 24, 34)}
    header = text_of(two)
    seeds = {
        "two": structured(34, two),
        "metadata": structured(4, {"__metadata__": {"format": "pt"}, "x": entry("I32", [], 0, 4)}),
        "empty": structured(0, "{}"),
        "spaces": structured(8, text_of({"x": entry("C64", [1], 0, 8)}) + "   "),
        "no-elements": structured(1, {"e": entry("F64", [0, 7], 0, 0), "x": entry("U8", [1], 0, 1)}),
        "small-types": structured(8, {"a": entry("F4", [4], 0, 2), "b": entry("F6_E2M3", [8], 2, 8)}),
        "half-a-byte": structured(1, {"a": entry("F4", [3], 0, 1)}),
        "overlap": structured(12, {"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 4, 12)}),
        "hole": structured(12, {"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 8, 12)}),
        "wrapped": structured(0, {"a": entry("F32", [2**62, 4], 0, 0)}),
        "beyond": structured(0, {"a": entry("U8", [2**63 - 1], 0, 2**63 - 1)}),
        "twice": structured(4, '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],'
                               '"data_offsets":[0,4]}}'),
        "extra-key": structured(1, '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}}'),
        "unknown-type": structured(1, {"a": entry("Q4", [1], 0, 1)}),
        "whole-file": struct.pack("<Q", len(header)) + header.encode() + bytes(34),
        "long-length": struct.pack("<Q", 2**63) + b"{}",
        "all-types": structured(8 * 22, {
            t: entry(t, [8 * 8 // bits], 8 * i, 8 * i + 8) for i, (t, bits) in enumerate({
                "BOOL": 8, "F4": 4, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
                "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
                "C64": 64, "I64": 64, "U64": 64, "F64": 64}.items())}),
    }
    return seeds


def shard_index():
    one, two = "one.safetensors", "two.safetensors"
    return {
        "both": text_of({"metadata": {"total_size": 17}, "weight_map": {"a": one, "b": one, "c": two}}),
        "one": text_of({"weight_map": {"a": one, "b": one}}),
        "two": text_of({"weight_map": {"c": two}}),
        "missing-tensor": text_of({"weight_map": {"a": one, "b": one, "d": one}}),
        "left-over": text_of({"weight_map": {"a": one, "c": two}}),
        "missing-shards": text_of({"weight_map": {"a": "x.safetensors", "b": "y.safetensors"}}),
        "outside": text_of({"weight_map": {"a": "../one.safetensors"}}),
        "absolute": text_of({"weight_map": {"a": "/etc/passwd"}}),
        "folder": text_of({"weight_map": {"a": "."}}),
        "not-text": text_of({"weight_map": {"a": 1}}),
        "no-map": text_of({"weight_map": []}),
    }


def pytorch():
    """The pickles of generate/data/pytorch with their storages' sizes; the smallest files whole; pickles by hand."""
    seeds = {}
    for path in sorted((GOLDEN / "pytorch").glob("*.pt")):
        if path.stat().st_size < 2000:
            seeds[f"{path.stem}-file"] = path.read_bytes()
        try:
            archive = zipfile.ZipFile(path)
        except zipfile.BadZipFile:
            continue
        if path.stem == "no_checksums":
            continue  # zipfile refuses it
        sizes = {m.filename.split("/data/")[1]: m.file_size for m in archive.infolist() if "/data/" in m.filename}
        keys = [str(i) for i in range(len(sizes))]
        for member in archive.namelist():
            if member.endswith("/data.pkl") and sorted(sizes) == sorted(keys) and len(keys) <= 8:
                seeds[path.stem] = f"p{','.join(str(sizes[k]) for k in keys)}\n".encode() + archive.read(member)
    tensor = (b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0" b"0"
              b"X\x03\0\0\0cpuK\x06tQK\0(K\x02K\x03t(K\x03K\x01t\x89ccollections\nOrderedDict\n)RtR")
    seeds["one"] = b"p24\n\x80\x02}X\x01\0\0\0w" + tensor + b"s."
    seeds["state-dict"] = b"p24\n\x80\x02}X\x0a\0\0\0state_dict}X\x01\0\0\0w" + tensor + b"ssX\x05\0\0\0epochK\x03s."
    seeds["beyond"] = seeds["one"].replace(b"K\0(K\x02", b"K\1(K\x02")
    seeds["strides"] = seeds["one"].replace(b"(K\x03K\x01t", b"(K\x00K\x00t")
    seeds["evil"] = b"p\n\x80\x02cos\nsystem\nX\x02\0\0\0id\x85R."
    seeds["memo"] = b"p\n\x80\x04\x95\x05\0\0\0\0\0\0\0]\x94h\0a."
    seeds["numbers"] = (b"p\n\x80\x05]\x94(\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"
                       b"G?\xf0\0\0\0\0\0\0J\xff\xff\xff\x7f\x88Ne.")
    return seeds


PICKLE_WORDS = (b"\x80\x02", b"(", b")", b"t", b"tR", b"R", b"Q", b"}", b"]", b"s", b"u", b"a", b"e", b".", b"b",
                b"N", b"\x81", b"\x85", b"\x86", b"\x87", b"\x94", b"\x93", b"h\0", b"q\0", b"K\0", b"K\xff", b"2",
                b"0", b"1", b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch._utils\n_rebuild_parameter\n",
                b"ccollections\nOrderedDict\n", b"ctorch\nHalfStorage\n", b"ctorch\nLongStorage\n",
                b"ctorch\nBFloat16Storage\n", b"ctorch.storage\nUntypedStorage\n",
                b"ctorch._tensor\n_rebuild_from_type_v2\n", b"ctorch._utils\n_rebuild_tensor_v3\n",
                b"ctorch\nfloat32\n", b"ctorch\nSize\n", b"ctorch.nn.parameter\nParameter\n", b"cos\nsystem\n",
                b"PK\3\4", b"PK\1\2", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"\xff\xff\xff\xff", b"\1\0\x10\0")


def golden_models():
    for path in sorted((ORACLE / "models" / "data").glob("*.json")):
        yield path.stem, json.loads(path.read_text())


DULL = ("bos_token_id", "eos_token_id", "pad_token_id", "initializer_range", "use_cache", "pretraining_tp",
        "_name_or_path", "transformers_version", "architectures", "torch_dtype", "dtype", "id2label", "label2id",
        "cls_index", "decoder_start_token_id", "cls_token_id", "sep_token_id", "return_dict", "task_specific_params")


def config_of(model):
    return text_of({k: v for k, v in model["config"].items() if k not in DULL})


def config():
    seeds = {name: config_of(model) for name, model in golden_models()}
    llama = {"model_type": "llama", "vocab_size": 9, "hidden_size": 8, "intermediate_size": 4, "num_hidden_layers": 2,
             "num_attention_heads": 2, "max_position_embeddings": 64}
    for kind in ("default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"):
        rope = {"type": kind, "factor": 4.0, "original_max_position_embeddings": 16}
        if kind == "longrope":
            rope.update(short_factor=[1.0, 1.5], long_factor=[2.0, 3.0])
        seeds[f"old-{kind}"] = text_of({**llama, "rope_theta": 100.0, "rope_scaling": rope})
    native = {**llama, "model_type": "headscope", "stack": "encoder", "vocab_size": 0, "head": {"kind": "none"}}
    for kind, keys in {"emb": {"rows": 9}, "pool": {"bits": 11, "group_bits": 4}, "add": {"bits": 11}, "proj": {"bits": 11},
                       "linear": {"bits": 11}, "characters": {"hash_functions": 4, "buckets": 13}}.items():
        words = {} if kind == "characters" else {"hash": "lsh", "ngrams": 6}
        seeds[f"hashed-{kind}"] = text_of({**native, "embedding": {"kind": kind, **words, **keys}})
    seeds["unknown"] = text_of({**llama, "model_type": "who"})
    seeds["no-sizes"] = '{"model_type":"gpt2"}'
    return seeds


def checkpoint():
    """One of each family: the configuration, a NUL byte, and a line for each tensor."""
    seeds = {}
    families = set()
    for name, model in golden_models():
        family = model["config"]["model_type"]
        if family in families:
            continue
        families.add(family)
        lines = [f"{tensor} {model['file_type']} {','.join(map(str, shape))}"
                 for tensor, shape in sorted(model["tensors"].items())]
        seeds[name] = config_of(model) + "\0" + "\n".join(lines)
    seeds["no-model"] = '{"model_type":"other"}\0x F16 2\ny I64 \nz BOOL 0,3'
    return seeds


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


JSON_WORDS = ("{", "}", "[", "]", ",", ":", "null", "true", "false", "{}", "[]", '""', "-1", "0.5", "1e308", "1e999",
              "-0", "2147483648", "9223372036854775807", "18446744073709551615", "\\u0000", "\\ud800", '"a":')
PATTERN_WORDS = ("\\p{L}", "\\p{N}", "\\P{Lu}", "[^", "]", "(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>", ")",
                 "|", "*", "+", "?", "{1,3}", "{2}", "*?", "++", "\\s", "\\S", "\\w", "\\W", "\\d", "\\b", "^", "$",
                 "\\r\\n", "&&", "[[:alpha:]]", "\\K", "\\G", "\\X", "\\R", "\\1", "(?<n>", "\\k<n>", "\\g<n>", "(?~",
                 "\\x{10ffff}", "\\u00e9")
TEXT_WORDS = ("'s", "'LL", "'\u017f", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "123", "\u0663",
              "\u00bd", "\u0301", "\u0323", "\u1112\u1161\u11ab", "\uac01", "\u212b", "\ufb01", "\u4e2d",
              "\U0001f469\u200d\U0001f467", "\ufe0f", "\u0130", "\u03a3", "\u2581", "\u0120", "<s>", "</s>", "<mask>",
              "[MASK]", "<|end|>", "<0x41>", "Wonderland", "\ufffd", "\0", "\U0010ffff")


def edits(first):
    """Edits are choices, a byte each (targets/hdf5_edits.cpp): any bytes are edits."""
    rng = random.Random(first)
    seeds = {f"{i:02}": bytes([i % 5]) + rng.randbytes(7 + i % 13) for i in range(40)}
    seeds["none"] = b""
    return seeds


def lzw(text, most_bits=16):
    """What compress writes behind its three first bytes."""
    table = {bytes([i]): i for i in range(256)}
    bits, width, free, out, group = 0, 9, 257, bytearray(), 0
    waiting = count = 0

    def put(code):
        nonlocal waiting, count
        waiting |= code << count
        count += width
        while count >= 8:
            out.append(waiting & 255)
            waiting >>= 8
            count -= 8

    word = b""
    for c in text:
        longer = word + bytes([c])
        if longer in table:
            word = longer
            continue
        put(table[word])
        if free < 1 << most_bits:
            table[longer] = free
            free += 1
        if free > 1 << width and width < most_bits:
            # The decoder is one entry behind, and passes over the rest of eight codes.
            if count:
                out.append(waiting & 255)
                waiting = count = 0
            while (len(out) - group) % width:
                out.append(0)
            group = len(out)
            width += 1
        word = bytes([c])
    if word:
        put(table[word])
    if count:
        out.append(waiting & 255)
    return bytes(out)


def training_text():
    """The first line says what the rest is (targets/training_text.cpp)."""
    verses = "Title\n" + "".join(f"Ge{c}:{v} And it was so.\n" for c in range(1, 4) for v in range(1, 9)) + "1Sm1:1 x\n"

    def bible(text, windows=1, magic=b"\x1f\x9d\x90"):
        parts = [lzw(text.encode()[i::windows]) for i in range(windows)]
        first = 92 + 4 * (windows + 1) + 3
        places = [first + sum(map(len, parts[:i])) for i in range(windows + 1)]
        head = b"EC02Compressed Data File".ljust(84, b"\0") + struct.pack(">II", 65536, windows)
        return b"bible\n" + head + struct.pack(f">{windows + 1}I", *places) + magic + b"".join(parts)

    lines = ['{"text": "one"}', '{"id": 3, "text": "t\\u00e9\\n", "more": [1, {"text": 2}]}', "", '{"text":""}']
    return {
        "text": "text\nIn the beginning\n\u6771\u4eac \U0001f642", "mark": "text\n\ufeffmarked", "empty": "text\n",
        "broken": b"text\nabc\xff", "cut": "text\n\u6771".encode()[:-1],
        "lines": "lines\n" + "\n".join(lines), "windows": "lines\n" + "\r\n".join(lines) + "\r\n",
        "marked-lines": "lines\n\ufeff" + lines[0], "no-text": 'lines\n{"txt": "a"}', "twice": 'lines\n{"text":"a","text":"b"}',
        "array": "lines\n[1]", "null": 'lines\n{"text": null}', "half": 'lines\n{"text": "\\ud800"}',
        "translation": 'translation\n{"source": "a", "target": "b"}\n{"target": "", "source": "\u00e9", "id": [1]}\n',
        "classify": 'classify\n{"text": "a", "pair": "b", "label": 1}\n{"sentence1": "a", "sentence2": "b", "label": 0}\n',
        "labels": 'classify\n{"text": "a", "label": -1}\n', "label": 'classify\n{"sentence": "a", "label": "yes"}\n',
        "bible": bible(verses), "no-verse": bible("Title\nnothing\n"), "two-windows": bible(verses, 2),
        "other-packing": bible(verses, 1, b"\x1f\x8b\x90"),
        "lzw": b"1234567\n" + lzw(b"abababababab" * 90), "lzw-narrow": b"\n" + lzw(b"abcabcabc" * 200, 9),
        "lzw-clear": b"1234567\n" + lzw(b"abc") + b"\x00" * 12,
    }


def journal():
    def text(value):
        return struct.pack("<I", len(value)) + value

    def payload(*parts):
        return struct.pack("<d", 1.75e9) + b"".join(parts)

    def piece(kind, body):
        return struct.pack("<BH", kind, len(body)) + body

    site = struct.pack("<i", 0) + text(b"text") + text(b"self") + text(b"") + struct.pack("<iiii??", 2, 2, 8, 8, True, True)
    site += text(b"tokens") * 2
    started = payload(struct.pack("<q", 0), text(b"name = 1"), text(b"0.1.0"), text(b"headscope"), text(b"{}"),
                      struct.pack("<qI", 1000, 1), text(b"standard"), struct.pack("<I", 1), site,
                      struct.pack("<qq", 2, 1), text(b"cpu"), text(b"hash"), struct.pack("<q", 100))

    def step(n):
        return payload(struct.pack("<qqdddddd", n, 64 * n, 5.0 / n, 1e-3, 1.0, 1e4, 0.1 * n, 1e8))

    def probe(n):
        values = [struct.pack("<I", 3)]
        for name, count in ((b"entropy", 2), (b"head_diversity", 1), (b"local_focus", 8)):
            values += [text(name), struct.pack(f"<I{count}d", count, *[0.5 * n] * count)]
        return payload(struct.pack("<qd", n, 0.1), *values, struct.pack("<qI8e", 2, 8, *[0.25] * 8))

    kinds = {
        "started": piece(1, started), "step": piece(2, step(1)),
        "validation": piece(3, payload(struct.pack("<qdqd", 1, 5.0, 100, 0.1))),
        "snapshot": piece(5, payload(struct.pack("<q", 2), text(b"step-000002"), struct.pack("<Qd?", 9, 0.1, True))),
        "control": piece(6, payload(struct.pack("<q", 2), text(b"pause"), text(b""), text(b"paused"))),
        "sample": piece(7, payload(struct.pack("<q", 2), text(b"In"), text(b" the"))),
        "log": piece(8, payload(struct.pack("<Bq", 1, 2), text(b"a spike"))),
        "state": piece(9, payload(struct.pack("<Bq", 4, 2), text(b"bad"))),
        "rewound": piece(10, payload(struct.pack("<q", 1), text(b"resumed"))), "newer": piece(99, b"what is to come"),
        "torn": piece(2, step(3)[:20]),
    }
    learning = b"".join(piece(2, step(n)) for n in (1, 2, 3)) + piece(4, probe(2)) + piece(4, probe(3))
    seeds = {name: b"f" + kinds["started"] + one for name, one in kinds.items()}
    seeds["probe"] = b"f" + kinds["started"] + learning
    seeds["resumed"] = b"w" + kinds["started"] + learning + kinds["rewound"] + learning + kinds["started"]
    seeds["damaged"] = b"f" + piece(2, step(1)) + piece(240, bytes(40)) + piece(2, step(2)) + piece(241, b"HVN\xff" + bytes(9))
    seeds["all"] = b"w" + b"".join(kinds.values())
    seeds["header"] = b"jHSEVENTS\1\0\0\0\0\0\0\0"
    seeds["empty"] = b"j"
    seeds["other"] = b"jsome other file, longer than a header"
    return seeds


def main():
    configuration = spelled_in("model", r'"([a-z][a-z_0-9]{2,39})"')
    parts = spelled_in("tokenizer", r'"([A-Za-z][A-Za-z_]{1,29})"')
    words = {"json": JSON_WORDS, "safetensors": JSON_WORDS, "shard_index": JSON_WORDS, "pytorch": PICKLE_WORDS,
             "config": {*JSON_WORDS, *configuration}, "checkpoint": (*JSON_WORDS, "\0"),
             "tokenizer_json": {*JSON_WORDS, *PATTERN_WORDS, *parts}, "pattern": PATTERN_WORDS + TEXT_WORDS,
             "tokenizer_folder": {*JSON_WORDS, *parts, "\0", "#version: 0.2\n"}, "tokenizer_text": TEXT_WORDS,
             "chat_template": chat_words(),
             "training_text": {*JSON_WORDS, '"text":', "lines\n", "bible\n", "text\n", "translation\n", "classify\n",
                               '"source":', '"target":', '"pair":', '"label":', '"sentence1":', "EC02", "Ge1:1 "}}
    makers = {"text": text, "json": json_seeds, "safetensors": safetensors, "shard_index": shard_index,
              "pytorch": pytorch, "config": config, "checkpoint": checkpoint, "pattern": pattern,
              "tokenizer_json": tokenizer_json, "tokenizer_folder": tokenizer_folder, "sentencepiece": sentencepiece,
              "tokenizer_text": tokenizer_text,
              "chat_template": chat_template, "training_text": training_text, "journal": journal,
              "analysis": lambda: edits(1), "run_file": lambda: edits(2), "evaluation_file": lambda: edits(3)}
    for target, make in makers.items():
        seeds = make()
        write(target, seeds)
        if target in words:
            dictionary(target, seeds.values() if "{" in words[target] else (), words[target])
        size = sum(len(s if isinstance(s, bytes) else s.encode()) for s in seeds.values())
        print(f"{target}: {len(seeds)} seeds, {size} bytes")


if __name__ == "__main__":
    main()
