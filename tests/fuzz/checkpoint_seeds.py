# SPDX-License-Identifier: GPL-3.0-or-later
"""Seeds of make_seeds.py for the readers of checkpoints: safetensors, shard indices, PyTorch files, configurations."""
import json
import struct
import zipfile

from seed_sources import GOLDEN, ORACLE, text_of


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
