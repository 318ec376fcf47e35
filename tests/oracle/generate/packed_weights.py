#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantized checkpoints of every format that core/checkpoint/packed reads: packed/NAME/, packed/expected.json.

    python packed_weights.py                     writes the folders (numpy)
    python packed_weights.py --check-libraries   compares with the libraries that are installed, writes nothing

packed_formats.py computes the weights from the formulas of the specification; expected.json holds their SHA-256.

"""

import argparse
import hashlib
import json
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "accept"))
from packed_formats import (E2M1, F32, Random, Stored, awq, bnb4, e8m0, four_module, gptq_module, grid_module,
                            hqq_module, mlx_module, mxfp8_module, nibbles, packed_module, several, spread, stream)

HERE = pathlib.Path(__file__).resolve().parent / "data/packed"


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


# Formats: name -> function of Random that gives (config, tensors, expected format, weights, companion files).
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def gptq(random, bits, group, out=16, columns=96, **more):
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


@case
def awq_4(random):
    tensors, weights = awq(random, 24, 96, 32)
    config = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True,
              "modules_to_not_convert": ["lm_head"]}
    return {"quantization_config": config}, tensors, "AWQ 4 bits", weights


@case
def awq_companion(random):
    tensors, weights = awq(random, 24, 50, -1)
    settings = {"zero_point": True, "q_group_size": -1, "w_bit": 4, "version": "GEMM"}
    return {}, tensors, "AWQ 4 bits", weights, {"quant_config.json": settings}


def bnb4_config(kind, nested):
    return {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True, "_load_in_4bit": True,
                                    "load_in_8bit": False, "_load_in_8bit": False, "bnb_4bit_quant_type": kind,
                                    "bnb_4bit_use_double_quant": nested, "llm_int8_skip_modules": ["lm_head"]}}


@case
def bnb_nf4(random):
    tensors, weights = bnb4(random, "m.fc1.weight", "nf4", (13, 67))
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


def fp8(random, block, shapes, kind="F32"):
    tensors, weights = several(grid_module(random, "model.layers.%d.q_proj" % i, "F8_E4M3", *shape, *block, kind)
                               for i, shape in enumerate(shapes))
    for i in range(len(shapes)):
        name = "model.layers.%d.q_proj.weight_scale" % i
        tensors[name + "_inv"] = tensors.pop(name)
    settings = {"quant_method": "fp8", "weight_block_size": list(block), "activation_scheme": "dynamic"}
    return {"quantization_config": settings}, tensors, "fp8 block", weights


@case
def fp8_block(random):
    return fp8(random, (128, 128), [(10, 150)])


@case
def fp8_block_small(random):
    config, *rest = fp8(random, (16, 32), [(40, 70), (32, 64)], "BF16")
    return {"model_type": "x", "text_config": config}, *rest


@case
def fp8_block_exponents(random):
    q, scale = random.bytes(6, 140, kind="F8_E4M3"), random.exponents(1, 2, kind="F8_E8M0")
    settings = {"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}
    weight = q.values() * spread(scale.values(), (6, 140), 128, 128)
    return {"quantization_config": settings}, {"m.fc.weight": q, "m.fc.weight_scale_inv": scale}, "fp8 block", {"m.fc.weight": weight}


@case
def mxfp8(random):
    tensors, weights = several(mxfp8_module(random, "m.fc%d" % columns, 9, columns, name=".weight_scale_inv")
                               for columns in (70, 64))
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
    arguments.add_argument("--autoawq", type=pathlib.Path, help="source of AutoAWQ (it installs only with CUDA)")
    arguments.add_argument("--autogptq", type=pathlib.Path, help="source of AutoGPTQ (likewise)")
    options = arguments.parse_args()
    if options.check_libraries:
        import packed_weights_libraries
        return packed_weights_libraries.check({name: make(name) for name in CASES}, options.autoawq,
                                              options.autogptq)
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
