#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantized checkpoints of every format that core/checkpoint/packed reads: packed/NAME/, packed/expected.json.

    python packed_weights.py                     writes the folders (numpy)
    python packed_weights.py --check-libraries   compares with the libraries that are installed, writes nothing

Codes and scales are random. The expected weights come from the formulas of the specification, in numpy's float32, element
by element: one rounding for each product and sum. expected.json holds their SHA-256.

"""

import argparse
import hashlib
import importlib.util
import json
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent / "packed"
F32 = np.float32
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], F32)
E2M1 = np.concatenate([E2M1, -E2M1])
NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                0.7229568362236023, 1.0], F32)
FP4 = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3], F32) / F32(12)
FP4 = np.concatenate([FP4, -FP4])


class Stored:
    """A tensor of a file: numpy's array of the raw elements, and safetensors' name of the type."""

    def __init__(self, kind, array):
        self.kind, self.array = kind, np.ascontiguousarray(array)

    def values(self):
        """Its numbers as float32, exactly."""
        raw = self.array
        if self.kind == "BF16":
            return (raw.astype(np.uint32) << 16).view(F32)
        if self.kind == "F8_E4M3":
            return e4m3(raw)
        if self.kind == "F8_E8M0":
            return e8m0(raw)
        return raw.astype(F32)


def e4m3(raw):
    raw = raw.astype(np.int64)
    exponent, mantissa = raw >> 3 & 15, raw & 7
    size = np.where(exponent == 0, np.ldexp(mantissa / 8.0, -6), np.ldexp(1 + mantissa / 8.0, exponent - 7))
    return np.where(raw >> 7 == 1, -size, size).astype(F32)


def e8m0(raw):
    return np.ldexp(1.0, raw.astype(np.int64) - 127).astype(F32)


def write(folder, config, tensors, companion=None):
    path = HERE / folder
    path.mkdir(parents=True, exist_ok=True)
    header, data = {}, b""
    for name in sorted(tensors, key=lambda name: (-tensors[name].array.itemsize, name)):
        part = tensors[name].array.tobytes()
        header[name] = {"dtype": tensors[name].kind, "shape": list(tensors[name].array.shape),
                        "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    (path / "config.json").write_text(json.dumps(config) + "\n")
    for name, document in (companion or {}).items():
        (path / name).write_text(json.dumps(document) + "\n")


class Random:
    def __init__(self, name):
        self.bits = np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")))

    def words(self, *shape, kind="I32"):
        return Stored(kind, self.bits.integers(0, 1 << 32, shape, np.uint32).view(np.int32 if kind == "I32" else np.uint32))

    def bytes(self, *shape, kind="U8"):
        raw = self.bits.integers(0, 256, shape, np.uint8)
        if kind == "F8_E4M3":
            raw = np.where(raw & 127 == 127, raw - 1, raw).astype(np.uint8)
        return Stored(kind, raw.view(np.int8) if kind == "I8" else raw)

    def exponents(self, *shape, kind="U8"):
        return Stored(kind, self.bits.integers(117, 134, shape, np.uint8))

    def scales(self, kind, *shape, negative=True):
        numbers = self.bits.lognormal(-4, 1.5, shape).astype(F32)
        if negative:
            numbers *= self.bits.choice(np.array([-1, 1, 1, 1], F32), shape)
        flat = numbers.reshape(-1)
        if flat.size > 4:
            flat[3] = 0  # legal: the weights of its group are 0
            flat[4] = 3e-7  # below float16's normal numbers
        if kind == "F16":
            return Stored(kind, numbers.astype(np.float16))
        if kind == "BF16":
            return Stored(kind, (numbers.view(np.uint32) >> 16).astype(np.uint16))
        if kind == "F8_E4M3":
            return Stored(kind, (self.bits.integers(0, 127, shape)).astype(np.uint8))
        return Stored(kind, numbers)


def stream(words, bits, count, axis):
    """`count` codes along an axis of 32-bit words: value i at bits i b ... of one little-endian stream of bits."""
    words = np.moveaxis(words, axis, -1).astype(np.int64) & 0xFFFFFFFF
    every_bit = (words[..., None] >> np.arange(32) & 1).reshape(*words.shape[:-1], -1)[..., :count * bits]
    codes = (every_bit.reshape(*words.shape[:-1], count, bits) << np.arange(bits)).sum(-1)
    return np.moveaxis(codes, -1, axis)


def whole_words(words, bits, count, axis):
    """The same with 32 / b codes in a word."""
    words = np.moveaxis(words, axis, -1).astype(np.int64) & 0xFFFFFFFF
    codes = words[..., None] >> np.arange(32 // bits) * bits & (1 << bits) - 1
    return np.moveaxis(codes.reshape(*words.shape[:-1], -1)[..., :count], -1, axis)


def nibbles(raw):
    """Low nibble first, along the last axis."""
    return np.stack([raw & 15, raw >> 4], -1).reshape(*raw.shape[:-1], -1)


def spread(scales, shape, rows, columns):
    """A scale per block of rows x columns, for each element."""
    return np.repeat(np.repeat(scales, rows, 0), columns, 1)[:shape[0], :shape[1]]


def ceil(a, b):
    return -(-a // b)


# Formats: name -> function of Random that gives (config, tensors, expected format, weights, companion files).
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def gptq_module(random, module, out, columns, bits, group, scales="F16", v2=False, order=None):
    size = columns if group < 0 else group
    groups = ceil(columns, size)
    tensors = {module + ".qweight": random.words(columns * bits // 32, out),
               module + ".qzeros": random.words(groups, out * bits // 32),
               module + ".scales": random.scales(scales, groups, out)}
    index = np.arange(columns) // size
    if order is not None:
        index = random.bits.permutation(index)
        tensors[module + ".g_idx"] = Stored("I32", index.astype(np.int32))
    q = stream(tensors[module + ".qweight"].array, bits, columns, 0)
    z = stream(tensors[module + ".qzeros"].array, bits, out, 1)
    if not v2:
        z = z + 1
        if bits != 3:
            z &= (1 << bits) - 1
    weight = tensors[module + ".scales"].values()[index] * (q - z[index]).astype(F32)
    return tensors, {module + ".weight": weight.T}


def gptq(random, bits, group, out=24, columns=96, **more):
    tensors, weights = gptq_module(random, "model.layers.0.mlp.down_proj", out, columns, bits, group, **more)
    tensors["model.norm.weight"] = Stored("F32", np.ones(3, F32))
    tensors["model.layers.0.mlp.down_proj.bias"] = Stored("F16", np.ones(out, np.float16))
    config = {"bits": bits, "group_size": group, "desc_act": more.get("order") is not None, "sym": False,
              "quant_method": "gptq"}
    if more.get("v2"):
        config["checkpoint_format"] = "gptq_v2"
    return {"model_type": "llama", "quantization_config": config}, tensors, "GPTQ %d bits" % bits, weights


@case
def gptq_2(random):
    return gptq(random, 2, 32, out=32, columns=112)


@case
def gptq_3(random):
    return gptq(random, 3, 64, out=32)


@case
def gptq_4(random):
    return gptq(random, 4, 64)


@case
def gptq_8(random):
    return gptq(random, 8, -1, out=20, columns=68, scales="BF16")


@case
def gptq_act_order(random):
    return gptq(random, 4, 32, order=True)


@case
def gptq_v2(random):
    return gptq(random, 4, 32, v2=True, scales="F32")


@case
def gptq_3_v2(random):
    return gptq(random, 3, 32, out=32, columns=64, v2=True)


@case
def gptq_companion(random):
    config, tensors, form, weights = gptq(random, 4, 32, out=16, columns=64)
    settings = config.pop("quantization_config")
    del settings["quant_method"]
    return config, tensors, form, weights, {"quantize_config.json": settings}


@case
def auto_round(random):
    config, tensors, form, weights = gptq(random, 4, 32, out=16, columns=64)
    config["quantization_config"].update(quant_method="auto-round", packing_format="auto_round:auto_gptq",
                                         extra_config={"lm_head": {"bits": 16}})
    return config, tensors, form, weights


def awq(random, out, columns, group):
    size = columns if group < 0 else group
    module = "model.layers.0.self_attn.q_proj"
    tensors = {module + ".qweight": random.words(columns, out // 8), module + ".qzeros": random.words(columns // size, out // 8),
               module + ".scales": random.scales("F16", columns // size, out)}

    def codes(words):
        made = np.zeros((words.shape[0], words.shape[1] * 8), np.int64)
        for k, column in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
            made[:, column::8] = words.astype(np.int64) >> 4 * k & 15
        return made

    index = np.arange(columns) // size
    q, z = codes(tensors[module + ".qweight"].array), codes(tensors[module + ".qzeros"].array)
    weight = tensors[module + ".scales"].values()[index] * (q - z[index]).astype(F32)
    return tensors, {module + ".weight": weight.T}


@case
def awq_4(random):
    tensors, weights = awq(random, 40, 96, 32)
    config = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True,
              "modules_to_not_convert": ["lm_head"]}
    return {"quantization_config": config}, tensors, "AWQ 4 bits", weights


@case
def awq_companion(random):
    tensors, weights = awq(random, 24, 50, -1)
    settings = {"zero_point": True, "q_group_size": -1, "w_bit": 4, "version": "GEMM"}
    return {}, tensors, "AWQ 4 bits", weights, {"quant_config.json": settings}


def bnb4(random, name, kind, shape, block=64, nested=0, storage="U8"):
    count = int(np.prod(shape))
    blocks = ceil(count, block)
    table = NF4 if kind == "nf4" else FP4
    codes = random.bytes(ceil(count, 2), 1)
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": list(shape)}
    tensors = {name + ".quant_map": Stored("F32", table)}
    if nested:
        a = random.bytes(blocks)
        absmax, table2 = random.scales("F32", ceil(blocks, nested), negative=False), random.scales("F32", 256)
        offset = float(F32(0.0321))
        state.update(nested_blocksize=nested, nested_dtype="float32", nested_offset=offset)
        tensors.update({name + ".absmax": a, name + ".nested_absmax": absmax, name + ".nested_quant_map": table2})
        scale = table2.values()[a.array] * absmax.values()[np.arange(blocks) // nested] + F32(offset)
    else:
        tensors[name + ".absmax"] = random.scales("F32", blocks, negative=False)
        scale = tensors[name + ".absmax"].values()
    text = json.dumps(state).encode()
    tensors[name + ".quant_state.bitsandbytes__" + kind] = Stored("U8", np.frombuffer(text, np.uint8))
    q = np.stack([codes.array >> 4, codes.array & 15], -1).reshape(-1)[:count]
    weight = (table[q] * scale[np.arange(count) // block]).reshape(shape)
    if storage == "BF16":
        codes = Stored("BF16", codes.array.reshape(-1).view(np.uint16).reshape(-1, 1))
    tensors[name] = codes
    return tensors, {name: weight}


def bnb4_config(kind, nested):
    return {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True, "_load_in_4bit": True,
                                    "load_in_8bit": False, "_load_in_8bit": False, "bnb_4bit_quant_type": kind,
                                    "bnb_4bit_use_double_quant": nested, "llm_int8_skip_modules": ["lm_head"]}}


@case
def bnb_nf4(random):
    tensors, weights = bnb4(random, "m.fc1.weight", "nf4", (25, 67))
    return bnb4_config("nf4", False), tensors, "bitsandbytes nf4", weights


@case
def bnb_nf4_double(random):
    tensors, weights = bnb4(random, "m.fc1.weight", "nf4", (41, 63), nested=32)
    return bnb4_config("nf4", True), tensors, "bitsandbytes nf4", weights


@case
def bnb_fp4(random):
    tensors, weights = bnb4(random, "m.fc1.weight", "fp4", (24, 66), block=128, storage="BF16")
    return bnb4_config("fp4", False), tensors, "bitsandbytes fp4", weights


@case
def bnb_int8(random):
    q, scale = random.bytes(20, 33, kind="I8"), random.scales("F32", 20, negative=False)
    tensors = {"m.fc1.weight": q, "m.fc1.SCB": scale, "m.fc1.weight_format": Stored("U8", np.array(0, np.uint8))}
    weight = q.array.astype(F32) * (scale.values() / F32(127))[:, None]
    return ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}, tensors, "bitsandbytes int8",
            {"m.fc1.weight": weight})


def scheme(bits, kind="int", strategy="group", group=None, symmetric=True, targets=("Linear",), **more):
    return {"targets": list(targets), "input_activations": None, "output_activations": None,
            "weights": dict({"num_bits": bits, "type": kind, "strategy": strategy, "group_size": group, "symmetric": symmetric,
                             "dynamic": False, "actorder": None, "block_structure": None}, **more)}


def compressed(form, groups, **more):
    return {"quantization_config": dict({"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head", "re:.*router.*"],
                                         "quantization_status": "compressed", "kv_cache_scheme": None,
                                         "config_groups": {"group_%d" % i: group for i, group in enumerate(groups)}}, **more)}


def packed_module(random, module, bits, out, columns, strategy="group", group=32, symmetric=True, kind="F16", order=False,
                  old=False):
    size = group if strategy == "group" else columns
    groups = ceil(columns, size)
    unpack = whole_words if old else stream
    width = ceil(columns, 32 // bits) if old else ceil(columns * bits, 32)
    one = strategy == "tensor"
    tensors = {module + ".weight_packed": random.words(out, width),
               module + ".weight_shape": Stored("I64", np.array([out, columns], np.int64)),
               module + ".weight_scale": random.scales(kind, 1) if one else random.scales(kind, out, groups)}
    index = np.arange(columns) // size
    if order:
        index = random.bits.permutation(index)
        tensors[module + ".weight_g_idx"] = Stored("I32", index.astype(np.int32))
    u = unpack(tensors[module + ".weight_packed"].array, bits, columns, 1)
    z = np.full((out, groups), 1 << bits - 1)
    if not symmetric:
        height = ceil(out, 32 // bits) if old else ceil(out * bits, 32)
        tensors[module + ".weight_zero_point"] = random.words(height, groups)
        z = unpack(tensors[module + ".weight_zero_point"].array, bits, out, 0)
    scale = np.broadcast_to(tensors[module + ".weight_scale"].values(), (out, groups))
    return tensors, {module + ".weight": scale[:, index] * (u - z[:, index]).astype(F32)}


def several(modules):
    tensors, weights = {}, {}
    for part, expected in modules:
        tensors.update(part)
        weights.update(expected)
    return tensors, weights


@case
def ct_pack(random):
    tensors, weights = packed_module(random, "m.q_proj", 4, 24, 72)
    tensors["m.q_proj.input_scale"] = Stored("F32", np.ones(1, F32))
    return compressed("pack-quantized", [scheme(4, group=32)]), tensors, "compressed-tensors pack-quantized", weights


@case
def ct_pack_bits(random):
    groups = [scheme(b, group=32, symmetric=b % 2 == 0, targets=["re:m\\.b%d$" % b]) for b in range(1, 9)]
    tensors, weights = several(packed_module(random, "m.b%d" % b, b, 5, 101, symmetric=b % 2 == 0, kind="BF16") for b in range(1, 9))
    return compressed("pack-quantized", groups), tensors, "compressed-tensors pack-quantized", weights


@case
def ct_pack_strategies(random):
    groups = [scheme(4, strategy="channel", symmetric=False, targets=["m.channel"]), scheme(4, strategy="tensor", targets=["m.tensor"]),
              scheme(4, strategy="channel", targets=["Linear"])]
    tensors, weights = several([packed_module(random, "m.channel", 4, 13, 41, "channel", symmetric=False),
                                packed_module(random, "m.tensor", 4, 7, 40, "tensor", kind="F32"),
                                packed_module(random, "m.other", 4, 5, 40, "channel")])
    return compressed("pack-quantized", groups), tensors, "compressed-tensors pack-quantized", weights


@case
def ct_pack_order(random):
    tensors, weights = packed_module(random, "m.q", 4, 12, 96, order=True, symmetric=False)
    unset, others = packed_module(random, "m.k", 4, 6, 64, symmetric=False)
    unset["m.k.weight_g_idx"] = Stored("I32", np.full(64, -1, np.int32))
    tensors.update(unset)
    weights.update(others)
    return (compressed("pack-quantized", [scheme(4, group=32, symmetric=False, actorder="group")]), tensors,
            "compressed-tensors pack-quantized", weights)


@case
def ct_pack_old(random):
    groups = [scheme(b, group=64, symmetric=b % 2 == 0, targets=["m.b%d" % b]) for b in (3, 5, 6, 7)]
    tensors, weights = several(packed_module(random, "m.b%d" % b, b, 5, 128, group=64, symmetric=b % 2 == 0, old=True)
                               for b in (3, 5, 6, 7))
    return compressed("pack-quantized", groups), tensors, "compressed-tensors pack-quantized", weights


def grid_module(random, module, codes, out, columns, rows, width, kind="F32", one=False, zero=False):
    q = random.bytes(out, columns, kind=codes)
    shape = (1,) if one else (ceil(out, rows), ceil(columns, width))
    scale = random.scales(kind, *shape)
    tensors = {module + ".weight": q, module + ".weight_scale": scale}
    numbers = q.array.astype(np.int64) if codes == "I8" else q.values()
    if zero:
        z = random.bytes(*shape, kind="I8")
        tensors[module + ".weight_zero_point"] = z
        numbers = numbers - spread(z.array.astype(np.int64), q.array.shape, rows, width)
    factor = scale.values()[0] if one else spread(scale.values(), q.array.shape, rows, width)
    return tensors, {module + ".weight": numbers.astype(F32) * factor}


@case
def ct_int(random):
    tensors, weights = several([grid_module(random, "m.channel", "I8", 10, 40, 1, 40, "BF16"),
                                grid_module(random, "m.group", "I8", 9, 50, 1, 16, zero=True)])
    tensors["m.channel.weight_zero_point"] = Stored("I8", np.zeros((10, 1), np.int8))  # older releases
    groups = [scheme(8, strategy="channel", targets=["m.channel"]), scheme(8, group=16, symmetric=False, targets=["re:.*group"])]
    return compressed("int-quantized", groups), tensors, "compressed-tensors int-quantized", weights


@case
def ct_float(random):
    tensors, weights = several([grid_module(random, "m.channel", "F8_E4M3", 10, 40, 1, 40, "BF16"),
                                grid_module(random, "m.block", "F8_E4M3", 9, 50, 8, 32, "F32")])
    groups = [scheme(8, "float", "channel"), scheme(8, "float", "block", targets=["m.block"], block_structure=[8, 32])]
    return compressed("float-quantized", groups), tensors, "compressed-tensors float-quantized", weights


@case
def ct_naive(random):
    tensors, weights = grid_module(random, "m.fc", "F8_E4M3", 10, 24, 10, 24, one=True)
    return compressed("naive-quantized", [scheme(8, "float", "tensor")]), tensors, "compressed-tensors naive-quantized", weights


def four_module(random, module, out, columns, nvfp4, modelopt=False):
    group = 16 if nvfp4 else 32
    packed = random.bytes(out, columns // 2)
    scale = random.scales("F8_E4M3", out, columns // group) if nvfp4 else random.exponents(out, columns // group)
    names = (".weight", ".weight_scale_2") if modelopt else (".weight_packed", ".weight_global_scale")
    tensors = {module + names[0]: packed, module + ".weight_scale": scale}
    factor = scale.values() if nvfp4 else e8m0(scale.array)
    if nvfp4:
        number = F32(0.0037) if modelopt else F32(1234.5)
        tensors[module + names[1]] = Stored("F32", np.array(number, F32) if modelopt else np.array([number], F32))
        factor = factor * number if modelopt else factor / number
    return tensors, {module + ".weight": E2M1[nibbles(packed.array)] * np.repeat(factor, group, 1)}


@case
def ct_nvfp4(random):
    tensors, weights = four_module(random, "m.fc", 12, 80, True)
    tensors["m.fc.input_global_scale"] = Stored("F32", np.ones(1, F32))
    return (compressed("nvfp4-pack-quantized", [scheme(4, "float", "tensor_group", 16)]), tensors,
            "compressed-tensors nvfp4-pack-quantized", weights)


@case
def ct_mxfp4(random):
    tensors, weights = four_module(random, "m.fc", 12, 96, False)
    return (compressed("mxfp4-pack-quantized", [scheme(4, "float", "group", 32)]), tensors,
            "compressed-tensors mxfp4-pack-quantized", weights)


def mxfp8_module(random, module, out, columns, kind="U8", name=".weight_scale"):
    q, scale = random.bytes(out, columns, kind="F8_E4M3"), random.exponents(out, ceil(columns, 32), kind=kind)
    weight = q.values() * spread(e8m0(scale.array), q.array.shape, 1, 32)
    return {module + ".weight": q, module + name: scale}, {module + ".weight": weight}


@case
def ct_mxfp8(random):
    tensors, weights = mxfp8_module(random, "m.fc", 9, 64)
    return (compressed("mxfp8-quantized", [scheme(8, "float", "group", 32)]), tensors, "compressed-tensors mxfp8-quantized",
            weights)


@case
def ct_mixed(random):
    tensors, weights = several([packed_module(random, "m.layers.0.mlp.up", 4, 8, 64),
                                grid_module(random, "m.layers.0.attn.q", "F8_E4M3", 6, 40, 1, 40)])
    groups = [dict(scheme(4, group=32, targets=["re:.*mlp.*"]), format="pack-quantized"),
              dict(scheme(8, "float", "channel", targets=["re:.*attn.*"]), format="float-quantized")]
    return compressed("mixed-precision", groups), tensors, "compressed-tensors mixed-precision", weights


@case
def modelopt_nvfp4(random):
    tensors, weights = four_module(random, "m.fc", 12, 80, True, modelopt=True)
    tensors["m.fc.input_scale"] = Stored("F32", np.array(1, F32))
    return ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", "m.*.router*"]}},
            tensors, "NVFP4", weights)


def fp8(random, block, more=None, out=10, columns=150, kind="F32", name=".weight_scale_inv", form="fp8 block"):
    tensors, weights = grid_module(random, "model.layers.0.q_proj", "F8_E4M3", out, columns, *block, kind)
    tensors["model.layers.0.q_proj" + name] = tensors.pop("model.layers.0.q_proj.weight_scale")
    settings = dict({"quant_method": "fp8", "weight_block_size": list(block), "activation_scheme": "dynamic"}, **(more or {}))
    return {"quantization_config": settings}, tensors, form, weights


@case
def fp8_block(random):
    return fp8(random, (128, 128))


@case
def fp8_block_small(random):
    config, *rest = fp8(random, (16, 32), out=40, columns=70, kind="BF16")
    return {"model_type": "x", "text_config": config}, *rest


@case
def fp8_block_exponents(random):
    q, scale = random.bytes(6, 140, kind="F8_E4M3"), random.exponents(1, 2, kind="F8_E8M0")
    settings = {"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}
    weight = q.values() * spread(scale.values(), (6, 140), 128, 128)
    return {"quantization_config": settings}, {"m.fc.weight": q, "m.fc.weight_scale_inv": scale}, "fp8 block", {"m.fc.weight": weight}


@case
def mxfp8(random):
    tensors, weights = mxfp8_module(random, "m.fc", 9, 70, name=".weight_scale_inv")
    return {"quantization_config": {"quant_method": "fp8", "weight_block_size": [1, 32]}}, tensors, "MXFP8", weights


@case
def fp8_tensor(random):
    tensors, weights = grid_module(random, "m.fc", "F8_E4M3", 12, 30, 12, 30, "BF16", one=True)
    scalar = Stored("BF16", tensors["m.fc.weight_scale"].array.reshape(()))
    tensors.update({"m.fc.weight_scale": scalar, "m.fc.input_scale": Stored("F32", np.array(1, F32))})
    return {"quantization_config": {"quant_method": "fp8", "activation_scheme": "static"}}, tensors, "fp8 tensor", weights


@case
def fp8_channel(random):
    tensors, weights = grid_module(random, "m.fc", "F8_E4M3", 12, 30, 1, 30)
    return {"quantization_config": {"quant_method": "fp8", "weight_block_size": None}}, tensors, "fp8 channel", weights


@case
def fbgemm(random):
    tensors, weights = grid_module(random, "m.fc", "F8_E4M3", 12, 30, 1, 30)
    tensors["m.fc.input_scale_ub"] = Stored("F32", np.array([1200], F32))
    return {"quantization_config": {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}}, tensors, "fp8 channel", weights


@case
def mxfp4_experts(random):
    weights, tensors = {}, {}
    for name, out, groups in (("gate_up_proj", 6, 2), ("down_proj", 5, 3)):
        name = "model.layers.0.mlp.experts." + name
        blocks, scales = random.bytes(2, out, groups, 16), random.exponents(2, out, groups)
        scales.array[0, 0, 0], scales.array[1, 0, 0] = 0, 3  # numbers below the normal ones
        tensors.update({name + "_blocks": blocks, name + "_scales": scales})
        weights[name] = (E2M1[nibbles(blocks.array)] * e8m0(scales.array)[..., None]).reshape(2, out, groups * 32)
    settings = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]}
    return {"model_type": "gpt_oss", "quantization_config": settings}, tensors, "MXFP4", weights


def mlx_module(random, module, bits, group, out, columns, kind="F16", lead=(), biases=".biases"):
    words = random.words(*lead, out, columns * bits // 32, kind="U32")
    scale, bias = random.scales(kind, *lead, out, columns // group), random.scales(kind, *lead, out, columns // group)
    q = stream(words.array, bits, columns, -1)
    weight = q.astype(F32) * np.repeat(scale.values(), group, -1) + np.repeat(bias.values(), group, -1)
    return ({module + ".weight": words, module + ".scales": scale, module + biases: bias}, {module + ".weight": weight})


@case
def mlx_affine(random):
    tensors, weights = several([mlx_module(random, "m.embed_tokens", 4, 32, 9, 96, "BF16")] +
                               [mlx_module(random, "m.b%d" % b, b, 64 if b == 6 else 32, 5, 64) for b in (2, 3, 5, 6, 8)] +
                               [mlx_module(random, "m.switch", 4, 32, 3, 32, "F32", lead=(2,))])
    settings = {"group_size": 32, "bits": 4, "mode": "affine", "m.router": False}
    settings.update({"m.b%d" % b: {"group_size": 64 if b == 6 else 32, "bits": b} for b in (2, 3, 5, 6, 8)})
    return {"quantization": settings, "quantization_config": settings}, tensors, "MLX affine 4 bits", weights


@case
def mlx_mxfp4(random):
    words, scales = random.words(7, 12, kind="U32"), random.exponents(7, 3)
    weight = E2M1[stream(words.array, 4, 96, 1)] * np.repeat(e8m0(scales.array), 32, 1)
    return ({"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}, {"m.fc.weight": words, "m.fc.scales": scales},
            "MXFP4", {"m.fc.weight": weight})


@case
def metal(random):
    tensors, weights = mlx_module(random, "m.fc", 4, 64, 8, 128, "F32", biases=".qbiases")
    settings = {"quant_method": "metal", "bits": 4, "group_size": 64, "modules_to_not_convert": ["lm_head"]}
    return {"quantization_config": settings}, tensors, "MLX affine 4 bits", weights


HQQ = {8: ("8bit_u8", 8, 1), 4: ("4bit_u8", 4, 2), 3: ("3bit_32", 3, 10), 2: ("2bit_u8", 2, 4), 1: ("1bit_u8", 1, 8)}


def hqq_module(random, module, bits, group, axis, shape, kind="F16"):
    packing, field, fields = HQQ[bits]
    count = shape[0] * shape[1]
    rows = count // group if axis == 1 else group
    columns = count // rows
    slab = ceil(rows, fields)
    codes = random.words(slab, columns) if bits == 3 else random.bytes(slab, columns)
    grouped = np.concatenate([codes.array.astype(np.int64) >> (fields - 1 - k) * field & (1 << field) - 1 for k in range(fields)])[:rows]
    shape_of = (rows, 1) if axis == 1 else (1, columns)
    scale, zero = random.scales(kind, *shape_of), random.scales("F32" if bits == 2 else kind, *shape_of)
    weight = ((grouped.astype(F32) - zero.values()) * scale.values()).reshape(shape)

    def number(value):
        return Stored("I32", np.array(value, np.int32))

    def flag(value):
        return Stored("U8", np.array(value, np.uint8))

    text = Stored("U8", np.frombuffer(packing.encode(), np.uint8))
    tensors = {"W_q": codes, "scale": scale, "zero": zero, "nbits": number(bits), "group_size": number(group), "axis": number(axis),
               "shape": Stored("I64", np.array(shape, np.int64)), "packing": text, "view_as_float": flag(0), "quant_scale": flag(0),
               "quant_zero": flag(0), "channel_wise": flag(1), "optimize": flag(1), "round_zero": flag(1), "offload_meta": flag(0),
               "encoded_state_dict": flag(1), "stores_quant_config": flag(1)}
    return {module + "." + key: value for key, value in tensors.items()}, {module + ".weight": weight}


@case
def hqq_4(random):
    tensors, weights = hqq_module(random, "m.q_proj", 4, 32, 1, (20, 48))
    params = {"nbits": 4, "group_size": 32, "axis": 1, "channel_wise": True, "optimize": True, "view_as_float": False}
    settings = {"quant_method": "hqq", "skip_modules": ["lm_head"],
                "quant_config": {"weight_quant_params": params, "scale_quant_params": None, "zero_quant_params": None}}
    return {"quantization_config": settings}, tensors, "HQQ 4 bits", weights


@case
def hqq_bits(random):
    made = [hqq_module(random, "m.b8", 8, 32, 1, (6, 32)), hqq_module(random, "m.b3", 3, 16, 1, (7, 48)),
            hqq_module(random, "m.b3_axis0", 3, 16, 0, (7, 48)), hqq_module(random, "m.b2", 2, 32, 0, (8, 40), "BF16"),
            hqq_module(random, "m.b1", 1, 16, 1, (8, 32)), hqq_module(random, "m.b4", 4, 24, 0, (9, 40))]
    tensors, weights = several(made)
    sizes = {"b8": (8, 32, 1), "b3": (3, 16, 1), "b3_axis0": (3, 16, 0), "b2": (2, 32, 0), "b1": (1, 16, 1), "b4": (4, 24, 0)}
    layers = {key: {"weight_quant_params": {"nbits": b, "group_size": g, "axis": a}} for key, (b, g, a) in sizes.items()}
    return {"quantization_config": {"quant_method": "hqq", "quant_config": layers}}, tensors, "HQQ 3 bits", weights


def make(name):
    config, tensors, form, weights, *companion = CASES[name](Random(name))
    return config, tensors, form, weights, companion[0] if companion else {}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check-libraries", action="store_true", help="compare instead of writing")
    arguments.add_argument("--autoawq", type=pathlib.Path, help="unpacked source of autoawq (it does not install without CUDA)")
    options = arguments.parse_args()
    if options.check_libraries:
        import packed_weights_libraries
        return packed_weights_libraries.check({name: make(name) for name in CASES}, options.autoawq)
    expected = {}
    for name in CASES:
        config, tensors, form, weights, companion = make(name)
        write(name, config, tensors, companion)
        expected[name] = {"format": form, "companion": next(iter(companion), ""), "tensors": {}}
        for tensor, weight in weights.items():
            assert weight.dtype == F32, (name, tensor)
            data = np.ascontiguousarray(weight)
            expected[name]["tensors"][tensor] = {"shape": list(weight.shape), "sha256": hashlib.sha256(data.tobytes()).hexdigest()}
    lines = ",\n".join(json.dumps(name) + ": " + json.dumps(entry) for name, entry in expected.items())
    (HERE / "expected.json").write_text("{\n" + lines + "\n}\n")
    print(len(expected), "folders,", sum(path.stat().st_size for path in HERE.rglob("*") if path.is_file()), "bytes")


if __name__ == "__main__":
    main()
