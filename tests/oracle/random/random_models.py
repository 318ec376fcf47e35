# SPDX-License-Identifier: GPL-3.0-or-later
"""Tiny random checkpoints of the first four families, made with transformers, for the acceptance test.

Sizes are odd on purpose, scores are spread (queries and keys get a gain), norms and biases are not trivial: a wrong
epsilon, transposition, rotation or group shows. Each case is a function of (folder, seed) that leaves a checkpoint.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import safetensors.torch
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

LENGTHS = (1, 2, 63, 64, 65, 200, 64)


@dataclass
class Case:
    """A checkpoint and how it is analysed. `arguments` are added to `headscope analyze`."""

    name: str
    make: callable
    lengths: tuple = LENGTHS
    arguments: list = field(default_factory=list)
    windows: int = 0        # --length N --windows
    layers: tuple = ()      # --layers: the others are NaN
    skip: tuple = ()        # --skip: whole blocks left out
    row_step: int = 0       # 0: by length
    repeat_token: bool = False


def randomise(model, seed, gain):
    """Draws every parameter again. Scores before the softmax get a standard deviation of about gain squared."""
    generator = torch.Generator().manual_seed(seed)
    projections = ("q_proj.weight", "k_proj.weight", "self.query.weight", "self.key.weight")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name.lower() or ".ln_" in name:
                value = 1.0 + 0.2 * noise if name.endswith("weight") else 0.2 * noise
            elif parameter.dim() == 1:
                value = 0.2 * noise
            elif any(part in name for part in ("embed", "wte", "wpe")):
                value = 0.5 * noise
            elif "c_attn" in name:
                value = noise / parameter.shape[0] ** 0.5
                value[:, : 2 * parameter.shape[1] // 3] *= gain
            elif "c_proj" in name or "c_fc" in name:
                value = noise / parameter.shape[0] ** 0.5
            else:
                value = noise / parameter.shape[1] ** 0.5
                if name.endswith(projections):
                    value *= gain
            parameter.copy_(value)
    return model.eval()


def edit_config(folder, change):
    path = Path(folder) / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config, indent=2))


def old_generation(folder, scaling_key="type"):
    """Rewrites rope_parameters as files from before transformers 5 have it: rope_theta and rope_scaling."""

    def change(config):
        rope = config.pop("rope_parameters")
        config["rope_theta"] = rope.pop("rope_theta")
        kind = rope.pop("rope_type")
        config["rope_scaling"] = None if kind == "default" else {scaling_key: kind, **rope}
        config["torch_dtype"] = config.pop("dtype", None)

    edit_config(folder, change)


def rename_tensors(folder, rename, extra=None):
    path = Path(folder) / "model.safetensors"
    tensors = {rename(name): tensor for name, tensor in safetensors.torch.load_file(path).items()}
    tensors.update(extra or {})
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


def gpt2(folder, seed, dtype=torch.float32, shard=None, gain=1.7, **options):
    settings = dict(vocab_size=101, n_positions=256, n_embd=39, n_layer=3, n_head=3, bos_token_id=0, eos_token_id=0)
    model = randomise(GPT2LMHeadModel(GPT2Config(**(settings | options))), seed, gain)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard or "1GB")


def gpt2_old(folder, seed):
    """As the first files of the hub: no prefix, and mask buffers among the tensors."""
    gpt2(folder, seed)
    ones = torch.tril(torch.ones(256, 256)).view(1, 1, 256, 256)
    buffers = {f"h.{layer}.attn.bias": ones.clone() for layer in range(3)}
    buffers |= {f"h.{layer}.attn.masked_bias": torch.tensor(-1e4) for layer in range(3)}
    rename_tensors(folder, lambda name: name.removeprefix("transformer."), buffers)


def llama(folder, seed, dtype=torch.float32, shard=None, gain=1.7, rope=None, old=None, **options):
    settings = dict(
        vocab_size=103, hidden_size=48, intermediate_size=67, num_hidden_layers=3, num_attention_heads=6,
        num_key_value_heads=2, head_dim=10, max_position_embeddings=256, rms_norm_eps=1e-3, bos_token_id=0, eos_token_id=1,
    )
    rope = {"rope_type": "default", "rope_theta": 1000.0} | (rope or {})
    model = randomise(LlamaForCausalLM(LlamaConfig(**(settings | options), rope_parameters=rope)), seed, gain)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard or "1GB")
    if old:
        old_generation(folder, old)


def qwen2(folder, seed, dtype=torch.float32, shard=None, gain=1.7, old=None, **options):
    settings = dict(
        vocab_size=107, hidden_size=56, intermediate_size=71, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, rms_norm_eps=1e-4,
        rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
    )
    model = randomise(Qwen2ForCausalLM(Qwen2Config(**(settings | options))), seed, gain)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard or "1GB")
    if old:
        old_generation(folder, old)


def bert(folder, seed, head=True, dtype=torch.float32, shard=None, gain=1.7, **options):
    settings = dict(
        vocab_size=109, hidden_size=45, num_hidden_layers=3, num_attention_heads=5, intermediate_size=77,
        max_position_embeddings=256, type_vocab_size=2, layer_norm_eps=1e-5, pad_token_id=0,
    )
    config = BertConfig(**(settings | options))
    model = randomise(BertForMaskedLM(config) if head else BertModel(config), seed, gain)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard or "1GB")


def bert_old(folder, seed):
    """As the first files of the hub: gamma and beta, and the pooler left over."""
    bert(folder, seed)
    extra = {
        "bert.pooler.dense.weight": torch.randn(45, 45, generator=torch.Generator().manual_seed(seed)),
        "bert.pooler.dense.bias": torch.zeros(45),
        "bert.embeddings.position_ids": torch.arange(256)[None],
    }

    def rename(name):
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")

    rename_tensors(folder, rename, extra)


def with_options(function, **options):
    return lambda folder, seed: function(folder, seed, **options)


ROPE_KINDS = {
    "linear": {"rope_type": "linear", "factor": 3.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.5},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    "yarn-tuned": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 8.0, "beta_slow": 2.0,
        "mscale": 1.2, "mscale_all_dim": 0.7, "truncate": False,
    },
    "yarn-attention-factor": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "attention_factor": 1.3,
    },
    "longrope": {
        "rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 64,
        "short_factor": [1.0, 1.1, 1.3, 1.6, 2.0], "long_factor": [1.0, 2.0, 4.0, 5.0, 7.0],
    },
    "llama3": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
    "proportional": {"rope_type": "proportional", "factor": 1.5, "partial_rotary_factor": 0.6},
}


def cases():
    import random_decoders  # which imports this module
    import random_encoders
    import random_fla
    import random_hybrids
    import random_native
    import random_xl

    listed = [
        Case("gpt2", gpt2),
        Case("gpt2-float16-sharded-untied", with_options(
            gpt2, dtype=torch.float16, shard="30KB", n_inner=50, activation_function="gelu", layer_norm_epsilon=1e-3,
            scale_attn_by_inverse_layer_idx=True, tie_word_embeddings=False)),
        Case("gpt2-unscaled-relu", with_options(gpt2, scale_attn_weights=False, activation_function="relu")),
        Case("gpt2-old-names", gpt2_old),
        Case("llama", llama),
        Case("llama-old-config", with_options(llama, old="type")),
        Case("llama-bf16-sharded-tied", with_options(
            llama, dtype=torch.bfloat16, shard="20KB", tie_word_embeddings=True, num_key_value_heads=3)),
        Case("llama-biases-one-key-head", with_options(
            llama, attention_bias=True, mlp_bias=True, num_key_value_heads=1, hidden_act="gelu")),
        Case("llama-one-head", with_options(
            llama, num_attention_heads=1, num_key_value_heads=1, hidden_size=34, head_dim=34, num_hidden_layers=2)),
        Case("llama-outliers", with_options(llama, gain=14.0, num_hidden_layers=1)),
        Case("llama-sharp", with_options(llama, gain=4.0, num_hidden_layers=2)),
        Case("llama-beyond-positions", with_options(llama, max_position_embeddings=100),
             arguments=["--beyond-positions"]),
        Case("llama-dynamic-beyond", with_options(llama, max_position_embeddings=64, rope=ROPE_KINDS["dynamic"]),
             arguments=["--beyond-positions"]),
        Case("llama-windows", llama, lengths=(200, 65, 1), windows=64),
        Case("llama-layers", llama, lengths=(65, 2), layers=(0, 2)),
        Case("llama-skip", llama, lengths=(65, 2), skip=(1,)),
        Case("llama-repeat-token", llama, lengths=(65, 2), repeat_token=True),
        Case("llama-long", with_options(
            llama, num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=2048), lengths=(1100, 200)),
        Case("llama-long-all-rows", with_options(
            llama, num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=2048), lengths=(1100,),
            arguments=["--all-rows"], row_step=1),
        Case("llama-reference-kernel", llama, lengths=(1, 65, 130), arguments=["--kernels", "reference"]),
        Case("llama-one-thread", llama, lengths=(65, 64, 64), arguments=["--threads", "1"]),
        Case("qwen2", with_options(qwen2, sliding_window=16)),
        Case("qwen2-window", with_options(qwen2, use_sliding_window=True, sliding_window=16, max_window_layers=1)),
        Case("qwen2-layer-types-bf16-tied", with_options(
            qwen2, use_sliding_window=True, sliding_window=7, dtype=torch.bfloat16, tie_word_embeddings=True,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
        Case("qwen2-old-config", with_options(qwen2, old="rope_type", use_sliding_window=False, sliding_window=9)),
        Case("bert-no-head", with_options(bert, head=False)),
        Case("bert-masked-lm", bert),
        Case("bert-old-names", bert_old),
        Case("bert-bf16-sharded-gelu-new", with_options(
            bert, dtype=torch.bfloat16, shard="20KB", hidden_act="gelu_new")),
    ]
    for kind, rope in ROPE_KINDS.items():
        listed.append(Case(f"llama-{kind}", with_options(llama, rope=rope)))
        listed.append(Case(f"llama-{kind}-old-config", with_options(llama, rope=rope, old="type"), lengths=(65, 200)))
    further = (random_decoders, random_encoders, random_native, random_fla, random_hybrids, random_xl)
    return listed + [case for module in further for case in module.cases()]
