# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules of quantized checkpoints with random codes and scales, and their weights: the formulas of the specification in
numpy's float32, one rounding for each product and sum. Used by packed_weights.py."""

import hashlib
import json

import numpy as np

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
        self.kind, self.array = kind, np.array(array, order="C")

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


def mxfp8_module(random, module, out, columns, kind="U8", name=".weight_scale"):
    q, scale = random.bytes(out, columns, kind="F8_E4M3"), random.exponents(out, ceil(columns, 32), kind=kind)
    weight = q.values() * spread(e8m0(scale.array), q.array.shape, 1, 32)
    return {module + ".weight": q, module + name: scale}, {module + ".weight": weight}


def mlx_module(random, module, bits, group, out, columns, kind="F16", lead=(), biases=".biases"):
    words = random.words(*lead, out, columns * bits // 32, kind="U32")
    scale, bias = random.scales(kind, *lead, out, columns // group), random.scales(kind, *lead, out, columns // group)
    q = stream(words.array, bits, columns, -1)
    weight = q.astype(F32) * np.repeat(scale.values(), group, -1) + np.repeat(bias.values(), group, -1)
    return ({module + ".weight": words, module + ".scales": scale, module + biases: bias}, {module + ".weight": weight})


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
