# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden data of tests/core/model: tiny models computed by transformers, eager attention, float64.

Weights are not stored: every element follows from its tensor's name and its index by the formula of `element`, which
tests/core/model/tiny_checkpoint.cpp shares. Its values have at most eight significant bits, so they are the same in
bfloat16, float16, float32 and float64. A case holds the configuration as transformers saves it (or as older files on
the hub have it), the names and shapes of the file's tensors, ids, and what transformers made of them.

    python tests/oracle/models/models.py                     writes tests/oracle/models/data/*.json
    python tests/oracle/models/models.py --checkpoints DIR   writes the cases as checkpoint folders (safetensors) too

Needs torch 2.14, transformers 5.23, safetensors.
"""

import argparse
import json
import pathlib
import tempfile

import safetensors.torch
import torch
import transformers
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

MASK = (1 << 64) - 1
DATA = pathlib.Path(__file__).resolve().parent / "data"


def element(seed: int, index: int) -> int:
    """-128 .. 127, splitmix64 of FNV-1a(name) + index."""
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return ((z ^ (z >> 31)) >> 56) - 128


def fnv(name: str) -> int:
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def is_norm(name: str) -> bool:
    return any(part in name for part in ("norm", "LayerNorm", "ln_")) and name.endswith((".weight", ".gamma"))


def values(name: str, shape) -> torch.Tensor:
    count = 1
    for size in shape:
        count *= size
    seed = fnv(name)
    raw = torch.tensor([element(seed, i) for i in range(count)], dtype=torch.float64)
    if name.endswith(("_blocks", "_scales")):  # packed weights: any bytes, with small powers of two
        return (raw + 128 if name.endswith("_blocks") else 121 + (raw + 128) % 4).to(torch.uint8).reshape(shape)
    if name.endswith("guide_ids"):
        return ((raw + 128) % 29).to(torch.int64).reshape(shape)
    # Gains in 0.5 .. 1.5; embeddings within 1; offsets of Lazy Attention in -2 .. 0; matrices and biases within a quarter.
    if is_norm(name):
        raw = 1 + torch.floor(raw / 2) / 128
    elif "emb" in name or "guide" in name or "wte" in name or "wpe" in name:
        raw = raw / 128
    elif name.endswith(".offset"):
        raw = raw / 128 - 1
    else:
        raw = raw / 512
    return raw.reshape(shape)


def ids(count: int, vocabulary: int, salt: int = 0):
    return [(element(salt + 7, i) + 128) * (i + 3) % vocabulary for i in range(count)]


def rounded(tensor: torch.Tensor):
    return [float(f"{x:.7g}") for x in tensor.double().flatten().tolist()]


def read_back(model_class, config, tensors):
    """The model of a file with these tensors."""
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        safetensors.torch.save_file(tensors, folder + "/model.safetensors", metadata={"format": "pt"})
        model, report = model_class.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager",
                                                    output_loading_info=True)
    assert not any(report.values()), report
    model.config._experts_implementation = "eager"
    return model.eval()


def case(name, model_class, config, tokens, *, rename=None, change_config=None, extra=None, keep=("logits",),
         file_type="F32", shards=1, backbone_only=False, token_types=None, lengths=None, state_name=None,
         packed=(), reloaded=False, as_computed=False, dropped=None, prepare=None, of_texts=False):
    """of_texts: the head says one row of each text. prepare(model): what is done to the model with its weights before it runs.
    reloaded: transformers reads the file itself, whose tensors are not the model's; as_computed: the file has the model's
    own, which are not what is published; dropped: those whose names end so are the model's own, and not in the file."""
    config._attn_implementation = config._experts_implementation = "eager"
    torch.manual_seed(0)
    model = model_class(config).double().eval()
    with tempfile.TemporaryDirectory() as folder:
        (model.base_model if backbone_only else model).save_pretrained(folder, save_original_format=not as_computed)
        stored = safetensors.torch.load_file(folder + "/model.safetensors")
        saved_config = json.loads(pathlib.Path(folder, "config.json").read_text())
    stored = {key: tensor for key, tensor in stored.items() if not (dropped and key.endswith(dropped))}
    prefix = model.base_model_prefix + "." if backbone_only else ""
    rename = rename or (lambda key: key)
    shapes = {rename(key): list(tensor.shape) for key, tensor in sorted(stored.items())}
    state_name = state_name or (lambda key: key)
    filled = {prefix + state_name(key): values(rename(key), tensor.shape) for key, tensor in stored.items()}
    for key in [key for key in stored if key.endswith(tuple(packed))]:
        experts, inputs, outputs = shapes.pop(key)
        parts = {key + "_blocks": [experts, outputs, inputs // 32, 16], key + "_scales": [experts, outputs, inputs // 32]}
        shapes |= parts
        filled[key] = convert_moe_packed_tensors(*(values(*part) for part in parts.items()), dtype=torch.float64)
    if reloaded:
        model = read_back(model_class, config, {key: values(key, shape) for key, shape in shapes.items()})
    else:
        missing = model.load_state_dict(filled, strict=False)
        assert not missing.unexpected_keys, missing.unexpected_keys
        model.tie_weights()
    for key, shape in (extra or {}).items():
        shapes[key] = shape
    saved_config.pop("transformers_version", None)
    if change_config:
        change_config(saved_config)

    if prepare:
        prepare(model)
    batch = torch.tensor(tokens)
    arguments = {}
    if token_types is not None:
        arguments["token_type_ids"] = torch.tensor(token_types)
    if lengths is not None:
        arguments["attention_mask"] = torch.tensor([[int(i < n) for i in range(batch.shape[1])] for n in lengths])
    with torch.no_grad():
        out = model(batch, output_hidden_states=True, output_attentions=True, **arguments)
    result = {
        "config": saved_config,
        "tensors": shapes,
        "file_type": file_type,
        "shards": shards,
        "ids": tokens,
        "text_logits" if of_texts else "logits": rounded(out.logits if "logits" in out else out.prediction_logits),
    }
    if token_types is not None:
        result["token_types"] = token_types
    if lengths is not None:
        result["lengths"] = lengths
    if "hidden" in keep:  # the last of transformers' list is after the final norm
        result["hidden"] = [rounded(h) for h in out.hidden_states]
    if "attention" in keep:
        result["attention"] = [rounded(a) for a in out.attentions]
    return name, result


def llama(**changes):
    sizes = dict(vocab_size=37, hidden_size=20, intermediate_size=27, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, head_dim=6, max_position_embeddings=64, rms_norm_eps=1e-5,
                 tie_word_embeddings=False, bos_token_id=None, eos_token_id=5, pad_token_id=None)
    return transformers.LlamaConfig(**{**sizes, **changes})


def llama_rope(name, length, rope, **changes):
    config = llama(rope_parameters=rope, num_hidden_layers=1, **{"head_dim": 8, **changes})
    return case("llama-" + name, transformers.LlamaForCausalLM, config, [ids(length, 37)])


def old_rope(config):
    """What files on the hub look like: rope_theta and rope_scaling beside each other, "type" for "rope_type"."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    rope["type"] = rope.pop("rope_type")
    config["rope_scaling"] = rope if rope["type"] != "default" else None


def cases():
    T = transformers
    everything = ("logits", "hidden", "attention")
    gpt2 = dict(vocab_size=41, n_positions=32, n_embd=18, n_layer=2, n_head=3, bos_token_id=1, eos_token_id=2)
    yield case("gpt2", T.GPT2LMHeadModel, T.GPT2Config(**gpt2), [ids(9, 41), ids(9, 41, 1)], keep=everything)
    yield case("gpt2-old-file", T.GPT2LMHeadModel,
               T.GPT2Config(**{**gpt2, "n_inner": 29, "activation_function": "gelu"},
                            scale_attn_by_inverse_layer_idx=True),
               [ids(7, 41)], backbone_only=True,
               extra={"h.0.attn.bias": [1, 1, 32, 32], "h.1.attn.bias": [1, 1, 32, 32], "h.1.attn.masked_bias": []})
    yield case("llama", T.LlamaForCausalLM, llama(attention_bias=True, mlp_bias=True), [ids(11, 37), ids(11, 37, 2)],
               keep=everything, change_config=old_rope)
    yield case("llama-tied-bf16-sharded", T.LlamaForCausalLM,
               llama(num_key_value_heads=1, tie_word_embeddings=True, hidden_act="gelu_pytorch_tanh"), [ids(13, 37)],
               file_type="BF16", shards=3)
    yield case("llama-backbone-f16", T.LlamaForCausalLM, llama(num_key_value_heads=4, tie_word_embeddings=True),
               [ids(5, 37)], backbone_only=True, file_type="F16")
    yield llama_rope("rope-linear", 12, {"rope_type": "linear", "factor": 2.5, "rope_theta": 5000.0})
    yield llama_rope("rope-dynamic", 30, {"rope_type": "dynamic", "factor": 3.0, "rope_theta": 100.0},
                     max_position_embeddings=16)
    yield llama_rope("rope-dynamic-short", 10, {"rope_type": "dynamic", "factor": 3.0, "rope_theta": 100.0},
                     max_position_embeddings=16)
    yield llama_rope("rope-yarn", 24, {"rope_type": "yarn", "factor": 4.0, "rope_theta": 100.0,
                                       "original_max_position_embeddings": 16})
    # Large enough a head for the ramp between beta_fast and beta_slow to have steps.
    yield llama_rope("rope-yarn-mscale", 24, {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1000.0, "mscale": 1.1,
                                              "mscale_all_dim": 0.7, "beta_fast": 8, "beta_slow": 2, "truncate": False,
                                              "original_max_position_embeddings": 64},
                     head_dim=24, max_position_embeddings=256)
    longrope = {"rope_type": "longrope", "rope_theta": 100.0, "short_factor": [1.0, 1.1, 1.3, 1.6],
                "long_factor": [1.0, 2.0, 3.0, 4.5], "original_max_position_embeddings": 16}
    yield llama_rope("rope-longrope-long", 24, dict(longrope))
    yield llama_rope("rope-longrope-short", 12, {**longrope, "factor": 6.0})
    yield llama_rope("rope-llama3", 40, {"rope_type": "llama3", "factor": 8.0, "rope_theta": 50.0,
                                         "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                         "original_max_position_embeddings": 32})
    yield llama_rope("rope-proportional", 12, {"rope_type": "proportional", "rope_theta": 100.0, "factor": 1.5,
                                               "partial_rotary_factor": 0.5})
    qwen2 = dict(vocab_size=43, hidden_size=24, intermediate_size=31, num_hidden_layers=3, num_attention_heads=4,
                 num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=True, bos_token_id=None,
                 eos_token_id=[3, 4])
    yield case("qwen2", T.Qwen2ForCausalLM, T.Qwen2Config(**qwen2), [ids(10, 43)])
    yield case("qwen2-windows", T.Qwen2ForCausalLM,
               T.Qwen2Config(**qwen2, use_sliding_window=True, sliding_window=4, max_window_layers=1), [ids(15, 43)],
               keep=("logits", "attention"))
    bert = dict(vocab_size=47, hidden_size=20, num_hidden_layers=2, num_attention_heads=5, intermediate_size=33,
                max_position_embeddings=24, type_vocab_size=3, pad_token_id=0)
    yield case("bert", T.BertForMaskedLM, T.BertConfig(**bert), [ids(12, 47), ids(12, 47, 3)], keep=everything,
               token_types=[[0] * 4 + [1] * 5 + [2] * 3, [1] * 12], lengths=[12, 7])
    yield case("bert-old-names", T.BertForMaskedLM, T.BertConfig(**{**bert, "hidden_act": "relu"}), [ids(9, 47)],
               rename=lambda key: key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias",
                                                                                            "LayerNorm.beta"),
               extra={"bert.embeddings.position_ids": [1, 24], "bert.pooler.dense.weight": [20, 20]})


def read_golden(name: str):
    """A case as main() wrote it."""
    return json.loads((DATA / f"{name}.json").read_text())


def write_checkpoint(folder: pathlib.Path, data) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kind = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}[data["file_type"]]
    tensors = {name: values(name, shape).contiguous() for name, shape in data["tensors"].items()}
    tensors = {name: tensor.to(kind) if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(data["config"], indent=1))


def main(cases=cases) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoints", type=pathlib.Path)
    options = parser.parse_args()
    DATA.mkdir(exist_ok=True)
    for name, data in cases():
        (DATA / f"{name}.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")
        if options.checkpoints:
            write_checkpoint(options.checkpoints / name, data)
        print(name, len(data["tensors"]), "tensors")


if __name__ == "__main__":
    main()
