# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden data of tests/core/model/test_adapter.cpp: tiny models with LoRA adapters (arXiv 2106.09685) in PEFT's format.

Nothing is merged here: beside every adapted module runs its adapter, as the paper has it, in float64. Weights of models
and adapters follow from their names in the files, as in models.py. A case is one of models.py with "adapter": its
configuration, and the names and shapes of its file's tensors.

    python tests/oracle/models/adapter_models.py                     writes tests/oracle/models/data/adapter-*.json
    python tests/oracle/models/adapter_models.py --checkpoints DIR   writes the cases as folders too, the adapter in DIR/NAME/adapter

Needs torch 2.14, transformers 5.23, safetensors.
"""

import math

import torch
import transformers as T

import models
from models import ids, llama, values


def settings(targets, **changes):
    return {"peft_type": "LORA", "base_model_name_or_path": "someone/tiny", "task_type": "CAUSAL_LM", "r": 4, "lora_alpha": 6,
            "lora_dropout": 0.05, "bias": "none", "fan_in_fan_out": False, "use_rslora": False, "use_dora": False,
            "inference_mode": True, "init_lora_weights": True, "target_modules": targets, "modules_to_save": None,
            "rank_pattern": {}, "alpha_pattern": {}, **changes}


def beside(shapes, name, module, rank, scale):
    """Names and shapes of the module's adapter, and the adapter itself, run beside the module."""
    stem = f"base_model.model.{name}"
    if isinstance(module, torch.nn.Embedding):
        shapes[f"{stem}.lora_embedding_A"] = [rank, module.num_embeddings]
        shapes[f"{stem}.lora_embedding_B"] = [module.embedding_dim, rank]
        a, b = (values(f"{stem}.lora_embedding_{part}", shapes[f"{stem}.lora_embedding_{part}"]) for part in "AB")
        module.register_forward_hook(lambda _, inputs, out: out + scale * torch.nn.functional.embedding(inputs[0], a.T) @ b.T)
        return
    turned = type(module).__name__ == "Conv1D"
    inputs, outputs = module.weight.shape if turned else reversed(module.weight.shape)
    shapes[f"{stem}.lora_A.weight"] = [rank, inputs]
    shapes[f"{stem}.lora_B.weight"] = [outputs, rank]
    a, b = (values(f"{stem}.lora_{part}.weight", shapes[f"{stem}.lora_{part}.weight"]) for part in "AB")
    module.register_forward_hook(lambda _, inputs, out: out + scale * (inputs[0] @ a.T) @ b.T)


def adapted(name, model_class, config, tokens, adapter, replaced=(), **options):
    """The case of models.py with an adapter around the model that it makes. `replaced`: name of a parameter -> its name in
    the adapter's file."""
    shapes = {}

    def prepare(model):
        for module_name, module in list(model.named_modules()):
            if not module_name.endswith(tuple("." + target for target in adapter["target_modules"])):
                continue

            def of(pattern, otherwise):
                return next((value for key, value in pattern.items() if module_name.endswith("." + key)), otherwise)

            rank, alpha = of(adapter["rank_pattern"], adapter["r"]), of(adapter["alpha_pattern"], adapter["lora_alpha"])
            beside(shapes, module_name, module, rank, alpha / (math.sqrt(rank) if adapter["use_rslora"] else rank))
        for own, written in dict(replaced).items():
            parameter = model.get_parameter(own)
            shapes[written] = list(parameter.shape)
            parameter.data = values(written, parameter.shape)

    made_name, made = models.case("adapter-" + name, model_class, config, tokens, prepare=prepare, **options)
    assert shapes, name
    made["adapter"] = {"config": adapter, "tensors": shapes}
    return made_name, made


def cases():
    stem = "base_model.model."
    yield adapted("llama", T.LlamaForCausalLM, llama(attention_bias=True), [ids(11, 37), ids(11, 37, 2)],
                  settings(["q_proj", "v_proj", "down_proj", "embed_tokens"], bias="all", modules_to_save=["lm_head"],
                           rank_pattern={"v_proj": 2, "layers.1.mlp.down_proj": 3}, alpha_pattern={"down_proj": 1.5}),
                  replaced={"model.layers.0.self_attn.q_proj.bias": stem + "model.layers.0.self_attn.q_proj.base_layer.bias",
                            "model.layers.1.self_attn.o_proj.bias": stem + "model.layers.1.self_attn.o_proj.bias",
                            "lm_head.weight": stem + "lm_head.weight"})
    yield adapted("gpt2", T.GPT2LMHeadModel,
                  T.GPT2Config(vocab_size=41, n_positions=32, n_embd=18, n_layer=2, n_head=3, bos_token_id=1, eos_token_id=2),
                  [ids(9, 41)], settings(["c_attn", "c_proj"], fan_in_fan_out=True, use_rslora=True), backbone_only=True)
    yield adapted("neox", T.GPTNeoXForCausalLM,
                  T.GPTNeoXConfig(vocab_size=39, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                                  intermediate_size=30, max_position_embeddings=32, tie_word_embeddings=False,
                                  bos_token_id=None, eos_token_id=None),
                  [ids(10, 39)], settings(["query_key_value", "dense"], r=3),
                  state_name=lambda name: name.replace("embed_out.", "lm_head."))


if __name__ == "__main__":
    models.main(cases)
