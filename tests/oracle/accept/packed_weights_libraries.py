#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the weights that packed_weights.py expects with those of the published libraries, on a CPU.

Called by packed_weights.py --check-libraries. Scales are given to the libraries in float32, so that they compute in
float32. Packages that are not installed are named and left out. Seen, with torch 2.14 on x86-64:

    bitsandbytes 0.50.2              nf4, fp4, double: equal; int8: 1.5e-7 apart (it multiplies by 1/127)
    compressed-tensors 0.20.1        all formats: equal (whole groups only: cut for it)
    compressed-tensors 0.9.4         ct_pack_old and g_idx: equal (by hand: unpack_from_int32, dequantize)
    hqq 0.2.8                        equal
    mlx 0.32.4 (mlx-cpu)             affine 2, 3, 4, 5, 6, 8 bits and mxfp4: equal
    transformers 5.23                fp8 (whole blocks only), MXFP8, MXFP4 experts: equal
    autoawq 0.2.9                    equal
    AutoGPTQ (its last source)       2, 3, 4, 8 bits, act-order: equal, but for zero points that wrap in qlinear_cuda
Not compared: GPTQ v2 (read in GPTQModel's dequantize_weight), modelopt.
"""

import importlib.util
import json

import numpy as np
import torch

TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F8_E4M3": torch.float8_e4m3fn,
         "F8_E8M0": torch.float8_e8m0fnu}


def tensor(stored, as_float=False):
    made = torch.from_numpy(stored.array.copy())
    if stored.kind in TYPES:
        made = made.view(TYPES[stored.kind])
        if as_float:
            made = made.to(torch.float32)
    return made


def bitsandbytes(config, tensors, weights):
    from bitsandbytes import functional
    for name, expected in weights.items():
        if "SCB" in " ".join(tensors):
            made = functional.int8_vectorwise_dequant(tensor(tensors[name]), tensor(tensors[name.replace("weight", "SCB")]))
        else:
            parts = {key: tensor(value) for key, value in tensors.items() if key.startswith(name + ".")}
            state = functional.QuantState.from_dict(parts, device=torch.device("cpu"))
            state.dtype = torch.float32
            made = functional.dequantize_4bit(tensor(tensors[name]).view(torch.uint8), state)
        yield name, made.numpy(), expected


def compressed_tensors(config, tensors, weights):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
    from compressed_tensors.quantization import QuantizationConfig
    from compressed_tensors.utils.match import match_name
    from compressed_tensors.quantization.lifecycle.forward import dequantize
    settings = json.loads(json.dumps(config["quantization_config"]))
    for group in settings["config_groups"].values():
        group["weights"]["actorder"] = None  # the library does not know "group" any longer
    settings = QuantizationConfig.model_validate(settings)
    for name, expected in weights.items():
        module = name[:-len(".weight")]
        schemes = sorted(settings.config_groups.values(), key=lambda scheme: "Linear" in scheme.targets)
        scheme = next(s for s in schemes if any(t == "Linear" or match_name(module, t) for t in s.targets))
        parts = {key[len(module) + 1:]: value for key, value in tensors.items() if key.startswith(module + ".")}
        state = {key: tensor(value, key.endswith("scale") and value.kind in ("F16", "BF16")) for key, value in parts.items()}
        form = scheme.format or settings.format
        form = getattr(form, "value", form)
        if scheme.weights.symmetric:
            state.pop("weight_zero_point", None)
        group = state.pop("weight_g_idx", None)
        if group is not None and -1 not in group:
            print("%s: the library has no act-order any longer" % name)
            continue
        scale, zero, columns = state["weight_scale"], state.get("weight_zero_point"), expected.shape[1]
        size = scheme.weights.group_size
        if form.startswith(("pack", "nvfp4")):
            if form == "nvfp4-pack-quantized":
                codes = unpack_fp4_from_uint8(state["weight_packed"], *expected.shape, dtype=torch.float32)
                scale = scale.to(torch.float32)
            else:
                bits = scheme.weights.num_bits
                if state["weight_packed"].shape[1] != -(-columns * bits // 32):
                    print("%s: packed as older releases did" % name)
                    continue
                codes = unpack_from_int32(state["weight_packed"], bits, expected.shape)
                if zero is not None:
                    zero = unpack_from_int32(zero.T.clone(memory_format=torch.contiguous_format), bits, (scale.shape[-1], len(expected))).T
        elif form.startswith("mx"):
            yield name, BaseCompressor.get_value_from_registry(form).decompress(state, scheme)["weight"].to(torch.float32).numpy(), expected
            continue
        else:
            codes = state["weight"]
        if size and size > 0 and columns % size:  # dequantize() takes whole groups only
            columns -= columns % size
            codes, scale, zero = codes[:, :columns], scale[:, :columns // size], None if zero is None else zero[:, :columns // size]
        made = dequantize(codes, scale, zero, scheme.weights, torch.float32, state.get("weight_global_scale"))
        yield name, made.numpy(), expected[:, :columns]


def hqq(config, tensors, weights):
    from hqq.core.quantize import Quantizer
    for name, expected in weights.items():
        module = name[:-len("weight")]
        part = {key[len(module):]: value for key, value in tensors.items() if key.startswith(module)}
        meta = {key: int(part[key].array) for key in ("nbits", "group_size", "axis", "view_as_float")}
        meta.update(packing=part["packing"].array.tobytes().decode(), shape=tuple(part["shape"].array.tolist()),
                    scale=tensor(part["scale"], True), zero=tensor(part["zero"], True), compute_dtype=torch.float32)
        yield name, Quantizer.dequantize(tensor(part["W_q"]), meta).numpy(), expected


def mlx(config, tensors, weights):
    import mlx.core as mx
    settings = config.get("quantization") or config["quantization_config"]
    for name, expected in weights.items():
        module = name[:-len(".weight")]
        own = settings.get(module, settings)
        mode = settings.get("mode", "affine")
        scales = tensors[module + ".scales"]
        biases = tensors.get(module + ".biases") or tensors.get(module + ".qbiases")
        made = mx.dequantize(mx.array(tensors[name].array.view(np.uint32)), mx.array(scales.array if mode == "mxfp4" else scales.values()),
                             None if biases is None else mx.array(biases.values()), group_size=own["group_size"], bits=own["bits"],
                             mode=mode, **({"dtype": mx.float32} if mode == "mxfp4" else {}))
        yield name, np.array(made.astype(mx.float32)), expected


def fp8(config, tensors, weights):
    from transformers.integrations.finegrained_fp8 import Fp8Dequantize
    for name, expected in weights.items():
        scale = next(tensors[name + end] for end in ("_scale_inv", "_scale") if name + end in tensors)
        grid = tensor(scale, scale.kind != "U8")
        if scale.array.ndim < 2:
            grid = grid.reshape(1, 1)
        if any(size % blocks for size, blocks in zip(expected.shape, grid.shape)):
            print("%s: the library takes whole blocks only" % name)
            continue
        block = config.get("quantization_config", config.get("text_config", {}).get("quantization_config")).get("weight_block_size")
        if block and any(blocks > 1 and size % side for size, blocks, side in zip(expected.shape, grid.shape, block)):
            print("%s: the library takes whole blocks only" % name)
            continue
        yield name, Fp8Dequantize(None)._dequantize_one(tensor(tensors[name]), grid, torch.float32).numpy(), expected


def mxfp4(config, tensors, weights):
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    for name, expected in weights.items():
        made = convert_moe_packed_tensors(tensor(tensors[name + "_blocks"]), tensor(tensors[name + "_scales"]), dtype=torch.float32)
        yield name, made.transpose(1, 2).contiguous().numpy(), expected


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def awq_from(source):
    def awq(config, tensors, weights):
        packing = load(source / "awq/utils/packing_utils.py", "packing_utils")
        for name, expected in weights.items():
            part = {end: tensors[name.replace("weight", end)] for end in ("qweight", "qzeros", "scales")}
            group = expected.shape[1] // part["scales"].array.shape[0]
            made = packing.dequantize_gemm(tensor(part["qweight"]), tensor(part["qzeros"]), tensor(part["scales"], True), 4, group)
            yield name, made.T.contiguous().numpy(), expected
    return awq


def gptq_from(source):
    """Of its layers, qlinear_cuda_old masks zero points as the specification has it, and qlinear_cuda does not, but knows
    act-order and groups that are not whole: there, zero points that wrap may differ by 2^bits."""
    def gptq(config, tensors, weights):
        settings = config["quantization_config"]
        if settings.get("checkpoint_format") == "gptq_v2":
            return  # AutoGPTQ has no such format
        for name, expected in weights.items():
            part = {end: tensors[name.replace("weight", end)] for end in ("qweight", "qzeros", "scales", "g_idx")
                    if name.replace("weight", end) in tensors}
            out, columns = expected.shape
            size = settings["group_size"] if settings["group_size"] > 0 else columns
            old = "g_idx" not in part and columns % size == 0
            layer = load(source / ("auto_gptq/nn_modules/qlinear/qlinear_cuda%s.py" % ("_old" if old else "")), "qlinear")
            made = layer.QuantLinear(settings["bits"], settings["group_size"], 32, 32, False, weight_dtype=torch.float32)
            made.infeatures, made.outfeatures, made.group_size = columns, out, size
            made.g_idx = torch.arange(columns, dtype=torch.int32) // size
            for end, stored in part.items():
                setattr(made, end, tensor(stored, True))
            result = made(torch.eye(columns)).T.contiguous().detach().numpy()
            if not old and settings["bits"] != 3:
                wrapped = np.abs(part["scales"].values()[made.g_idx.numpy()].T) * (1 << settings["bits"])
                result = np.where(np.isclose(np.abs(result - expected), wrapped, 1e-5, 0), expected, result)
            yield name, result, expected
    return gptq


def check(cases, autoawq=None, autogptq=None):
    readers = {"bnb": bitsandbytes, "ct": compressed_tensors, "hqq": hqq, "mlx": mlx, "metal": mlx, "fp8": fp8, "mxfp8": fp8,
               "fbgemm": fp8, "mxfp4": mxfp4}
    if autoawq:
        readers["awq"] = awq_from(autoawq)
    if autogptq:
        readers["gptq"] = readers["auto"] = gptq_from(autogptq)
    for name, (config, tensors, form, weights, companion) in cases.items():
        reader = readers.get(name.split("_")[0])
        if reader is None:
            print("%-20s no library" % name)
            continue
        if companion:
            config = {"quantization_config": next(iter(companion.values()))}
        try:
            for module, made, expected in reader(config, tensors, weights):
                equal = made.shape == expected.shape and np.array_equal(made, expected)
                worst = np.max(np.abs(made.astype(np.float64) - expected) / np.maximum(np.abs(expected.astype(np.float64)), 1e-30)) if not equal else 0
                print("%-20s %-40s %s" % (name, module, "equal" if equal else "relative difference %.3g" % worst))
        except ValueError as error:
            print("%-20s refused by the library: %s" % (name, error))
        except ImportError as error:
            print("%-20s not installed: %s" % (name, error))
