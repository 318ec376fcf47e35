#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random models in quantized files: the program computes what their dequantized weights give.

    quantized_models.py HEADSCOPE

GGUF files of gguf_files.py and a small Llama in each format of packed_formats.py. `analyze` in every residence must give
the same numbers, to the bit, as on a folder with the float32 weights that numpy and gguf 0.19 made of the stored ones;
logits lie within 1e-4 of transformers' on that folder. `convert` must write these weights. Prints one line a model;
exits with 1 when anything differed.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import load_file, save_file

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "generate"))
import gguf_files
from packed_formats import (F32, Random, Stored, awq, bnb4, four_module, gptq_module, grid_module, hqq_module, mlx_module,
                            mxfp8_module, packed_module)
from pytorch_checkpoints import compare, numbers, run

TOLERANCE = 1e-4  # of logits, relative to the largest; of the specification
TYPES = ("Q4_K", "Q6_K", "Q8_0", "F16", "BF16", "IQ4_XS", "MXFP4", "NVFP4", "Q5_0", "Q3_K")
HIDDEN, INNER, WORDS, LAYERS, HEADS, KEYS = 64, 128, 96, 2, 4, 2
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": HIDDEN, "intermediate_size": INNER,
         "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KEYS, "vocab_size": WORDS,
         "max_position_embeddings": 64, "tie_word_embeddings": False}
MODULES = {"self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (HIDDEN // 2, HIDDEN),
           "self_attn.v_proj": (HIDDEN // 2, HIDDEN), "self_attn.o_proj": (HIDDEN, HIDDEN), "mlp.gate_proj": (INNER, HIDDEN),
           "mlp.up_proj": (INNER, HIDDEN), "mlp.down_proj": (HIDDEN, INNER)}


def awq_module(random, module, out, columns):
    made = awq(random, out, columns, 32)
    return tuple({name.replace("model.layers.0.self_attn.q_proj", module): part for name, part in parts.items()} for parts in made)


def int8_module(random, module, out, columns):
    codes, scale = random.bytes(out, columns, kind="I8"), random.scales("F32", out, negative=False)
    weight = codes.array.astype(F32) * (scale.values() / F32(127))[:, None]
    return ({module + ".weight": codes, module + ".SCB": scale, module + ".weight_format": Stored("U8", np.array(0, np.uint8))},
            {module + ".weight": weight})


def grid(codes, rows=1, one=False):
    """A function that makes a module with a scale for a number of rows."""
    return lambda random, module, out, columns: grid_module(random, module, codes, out, columns, rows, columns, one=one)


def block_module(random, module, out, columns):
    tensors, weights = grid_module(random, module, "F8_E4M3", out, columns, 128, 128)
    tensors[module + ".weight_scale_inv"] = tensors.pop(module + ".weight_scale")
    return tensors, weights


def hqq(random, module, out, columns):
    tensors, weights = hqq_module(random, module, 4, 32, 1, (out, columns))
    return tensors, weights


def compressed(form, **weights):
    return {"quant_method": "compressed-tensors", "format": form,
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}, "ignore": ["lm_head"]}


FORMATS = {
    "GPTQ 4 bits": ({"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False},
                    lambda *at: gptq_module(*at, 4, 32)),
    "GPTQ 3 bits": ({"quant_method": "gptq", "bits": 3, "group_size": 32, "desc_act": True},
                    lambda *at: gptq_module(*at, 3, 32, order=True)),
    "GPTQ 2 bits": ({"quant_method": "gptq", "bits": 2, "group_size": 32, "desc_act": False},
                    lambda *at: gptq_module(*at, 2, 32)),
    "GPTQ 8 bits": ({"quant_method": "gptq", "bits": 8, "group_size": -1, "desc_act": False,
                     "checkpoint_format": "gptq_v2"},
                    lambda *at: gptq_module(*at, 8, -1, v2=True)),
    "AWQ 4 bits": ({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True}, awq_module),
    "bitsandbytes nf4": ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
                         lambda random, module, *shape: bnb4(random, module + ".weight", "nf4", shape)),
    "bitsandbytes fp4": ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "fp4",
                          "bnb_4bit_use_double_quant": True},
                         lambda random, module, *shape: bnb4(random, module + ".weight", "fp4", shape, nested=32)),
    "bitsandbytes int8": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, int8_module),
    "compressed-tensors pack-quantized": (
        compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=32, symmetric=True),
        lambda *at: packed_module(*at[:2], 4, *at[2:])),
    "compressed-tensors nvfp4-pack-quantized": (
        compressed("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16, symmetric=True),
        lambda *at: four_module(*at, True)),
    "compressed-tensors int-quantized": (
        compressed("int-quantized", num_bits=8, type="int", strategy="channel", symmetric=True), grid("I8")),
    "compressed-tensors float-quantized": (
        compressed("float-quantized", num_bits=8, type="float", strategy="channel", symmetric=True), grid("F8_E4M3")),
    "compressed-tensors mxfp4-pack-quantized": (
        compressed("mxfp4-pack-quantized", num_bits=4, type="float", strategy="group", group_size=32, symmetric=True),
        lambda *at: four_module(*at, False)),
    "compressed-tensors mxfp8-quantized": (
        compressed("mxfp8-quantized", num_bits=8, type="float", strategy="group", group_size=32, symmetric=True),
        mxfp8_module),
    "NVFP4": ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
              lambda *at: four_module(*at, True, modelopt=True)),
    "fp8 tensor": ({"quant_method": "fp8", "activation_scheme": "static"}, grid("F8_E4M3", one=True)),
    "fp8 channel": ({"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["lm_head"]}, grid("F8_E4M3")),
    "fp8 block": ({"quant_method": "fp8", "weight_block_size": [128, 128]}, block_module),
    "MXFP8": ({"quant_method": "fp8", "weight_block_size": [1, 32]},
              lambda *at: mxfp8_module(*at, name=".weight_scale_inv")),
    "MLX affine 4 bits": ({"group_size": 32, "bits": 4, "mode": "affine"}, lambda *at: mlx_module(*at[:2], 4, 32, *at[2:])),
    "HQQ 4 bits": ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 32, "axis": 1}},
                    "skip_modules": ["lm_head"]}, hqq),
}


def write_stored(path, tensors):
    """Raw elements under safetensors' own names of types, which numpy lacks."""
    header, data = {}, b""
    for name, stored in tensors.items():
        part = stored.array.tobytes()
        header[name] = {"dtype": stored.kind, "shape": list(stored.array.shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_packed(folder, form):
    settings, module = FORMATS[form]
    random = Random(form)
    tensors, weights = {}, {}
    for name, shape in (("model.embed_tokens.weight", (WORDS, HIDDEN)), ("lm_head.weight", (WORDS, HIDDEN))):
        weights[name] = random.bits.normal(0, 0.2, shape).astype(F32)
    for layer in range(LAYERS):
        stem = f"model.layers.{layer}."
        for name, (out, columns) in MODULES.items():
            stored, expected = module(random, stem + name, out, columns)
            tensors |= stored
            weights |= expected
        for name in ("input_layernorm", "post_attention_layernorm"):
            weights[stem + name + ".weight"] = random.bits.normal(1, 0.1, HIDDEN).astype(F32)
    weights["model.norm.weight"] = np.ones(HIDDEN, F32)
    tensors |= {name: Stored("F32", numbers) for name, numbers in weights.items()
                if name not in tensors and not any(name.endswith(module + ".weight") for module in MODULES)}
    packed, plain = folder / "packed", folder / "plain"
    packed.mkdir(parents=True)
    plain.mkdir()
    write_stored(packed / "model.safetensors", tensors)
    key = "quantization" if form.startswith("MLX") else "quantization_config"
    (packed / "config.json").write_text(json.dumps(LLAMA | {key: settings}))
    (plain / "config.json").write_text(json.dumps(LLAMA))
    save_file({name: np.ascontiguousarray(numbers) for name, numbers in weights.items()}, plain / "model.safetensors")
    return packed, plain, WORDS, False


def write_gguf(folder, name):
    case = gguf_files.write_pair(folder, name, [Type[one] for one in TYPES])
    plain = folder / "plain"
    plain.mkdir()
    for file in ("config.json", "model.safetensors"):
        (folder / file).rename(plain / file)
    return folder / "model.gguf", plain, case.config["vocab_size"], name == "gpt_oss"


def analysed(program, model, tokens, *options):
    output = tokens.parent / "analysis.headscope.h5"
    output.unlink(missing_ok=True)
    run(program, "analyze", model, "--tokens", tokens, "-o", output, "--record", "attention,states,logits", *options)
    found = numbers(output)
    return {name: value for name, value in found.items() if not name.startswith("model/")}


def logits_of(plain, tokens, dtype):
    """transformers' logits of each text."""
    model = transformers.AutoModelForCausalLM.from_pretrained(plain, dtype=dtype, attn_implementation="eager",
                                                              experts_implementation="eager", pad_token_id=None)
    with torch.no_grad():
        return [model(torch.tensor([ids])).logits[0].numpy() for ids in tokens]


def logits_apart(found, expected):
    """The largest difference of two lists of logits, relative to the largest of them."""
    return max(float(np.abs(one[: len(other)] - other).max() / np.abs(other).max())
               for one, other in zip(found, expected))


def check(program, packed, plain, words, turned, scratch):
    tokens = [[int(t) for t in np.random.default_rng(3).integers(0, words, count)] for count in (33, 7)]
    file = scratch / "tokens.json"
    file.write_text(json.dumps(tokens))
    expected = analysed(program, plain, file)
    faults = []
    for residence in ("float32", "file", "stream"):
        found = analysed(program, packed, file, "--weights", residence)
        if residence == "float32" and turned:
            expected = found  # products of matrices that lie the other way round are rounded otherwise
        faults += [f"{residence}: {fault}" for fault in compare(found, expected)]
    exact = logits_of(plain, tokens, torch.float64)
    apart = logits_apart(expected["output/logits"], exact)
    # Weights of large random scales make some models amplify the rounding of float32, transformers' too.
    if apart > TOLERANCE and not apart <= 2 * logits_apart(logits_of(plain, tokens, torch.float32), exact):
        faults.append(f"logits: {apart:.2g} from transformers")
    run(program, "convert", packed, scratch / "converted", "--dtype", "float32")
    found, theirs = load_file(scratch / "converted/model.safetensors"), load_file(plain / "model.safetensors")
    faults += [f"convert: {name}" for name in sorted(found.keys() | theirs.keys())
               if name not in found or name not in theirs or not np.array_equal(found[name], theirs[name])]
    return faults, apart


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope", type=pathlib.Path)
    parser.add_argument("--only", default="", help="models whose names begin so")
    choice = parser.parse_args()
    writers = {f"GGUF {name}": lambda folder, name=name: write_gguf(folder, name) for name in gguf_files.CASES}
    writers |= {form: lambda folder, form=form: write_packed(folder, form) for form in FORMATS}
    failures = 0
    for name, write in writers.items():
        if not name.startswith(choice.only):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            try:
                faults, apart = check(choice.headscope, *write(scratch / "model"), scratch)
            except RuntimeError as error:
                faults, apart = [str(error)], float("nan")
        print(f"{name:40} {'ok' if not faults else faults[0]} ({apart:.1e} from transformers)", *faults[1:3], sep="\n    ")
        failures += bool(faults)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
