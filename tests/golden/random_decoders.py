# SPDX-License-Identifier: GPL-3.0-or-later
"""Random checkpoints of the decoders after the first four families, for the acceptance test. See random_models.py."""

import random
from pathlib import Path

import safetensors.torch
import torch
import transformers as T

from random_models import ROPE_KINDS, Case, edit_config, old_generation, randomise, rename_tensors, with_options

LIKE_LLAMA = dict(
    vocab_size=103, hidden_size=48, intermediate_size=67, num_hidden_layers=3, num_attention_heads=6,
    num_key_value_heads=2, head_dim=10, max_position_embeddings=256, rms_norm_eps=1e-3, bos_token_id=0, eos_token_id=1,
)
BESIDE = dict(
    vocab_size=101, hidden_size=60, intermediate_size=83, num_hidden_layers=3, num_attention_heads=5,
    max_position_embeddings=256, layer_norm_eps=1e-4, bos_token_id=0, eos_token_id=1,
)
FAMILIES = {
    "neox": (T.GPTNeoXForCausalLM, T.GPTNeoXConfig, BESIDE),
    "mistral": (T.MistralForCausalLM, T.MistralConfig, LIKE_LLAMA),
    "qwen3": (T.Qwen3ForCausalLM, T.Qwen3Config, LIKE_LLAMA),
    "gemma2": (T.Gemma2ForCausalLM, T.Gemma2Config, LIKE_LLAMA | dict(sliding_window=31, query_pre_attn_scalar=7)),
    "phi": (T.PhiForCausalLM, T.PhiConfig, BESIDE | dict(partial_rotary_factor=0.5)),
    "gptj": (T.GPTJForCausalLM, T.GPTJConfig, dict(
        vocab_size=101, n_positions=256, n_embd=60, n_layer=3, n_head=5, rotary_dim=6, layer_norm_epsilon=1e-4,
        bos_token_id=0, eos_token_id=1)),
    "olmo2": (T.Olmo2ForCausalLM, T.Olmo2Config, {k: v for k, v in LIKE_LLAMA.items() if k != "head_dim"} | dict(
        hidden_size=60)),
    "gpt_oss": (T.GptOssForCausalLM, T.GptOssConfig, LIKE_LLAMA | dict(
        num_local_experts=5, num_experts_per_tok=2, sliding_window=16, intermediate_size=33)),
}


def settle(model, family, seed, gain):
    """What randomise leaves: one matrix of query, key and value, gains that are 1 + w, experts, sinks."""
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if family == "gemma2" and "norm" in name:
                parameter -= 1
            elif "query_key_value.weight" in name:
                heads = parameter.unflatten(0, (model.config.num_attention_heads, 3, -1))
                heads[:, :2] *= gain
            elif any(part in name for part in ("q_norm", "k_norm", "q_layernorm", "k_layernorm")) and "bias" not in name:
                parameter *= gain
            elif name.endswith("sinks"):
                parameter.copy_(2 * torch.randn(parameter.shape, generator=generator))
            elif "experts." in name and not name.endswith("bias"):
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / parameter.shape[1] ** 0.5)
    return model


def decoder(folder, seed, family, dtype=torch.float32, shard=None, gain=1.5, change=None, **options):
    model_class, config_class, sizes = FAMILIES[family]
    config = config_class(**(sizes | options))
    config._experts_implementation = "eager"
    model = settle(randomise(model_class(config), seed, gain), family, seed, gain)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard or "1GB")
    if change:
        change(folder)


def old_neox(folder):
    """As Pythia's files: rotary_emb_base and rotary_pct, the mask buffers among the tensors."""

    def change(config):
        rope = config.pop("rope_parameters")
        config |= {"rotary_emb_base": rope["rope_theta"], "rotary_pct": rope["partial_rotary_factor"]}
        config.pop("attention_bias")

    edit_config(folder, change)
    rename_tensors(folder, lambda name: name, {
        f"gpt_neox.layers.{layer}.attention.{what}": value.clone() for layer in range(3) for what, value in (
            ("bias", torch.tril(torch.ones(256, 256)).view(1, 1, 256, 256)), ("masked_bias", torch.tensor(-1e9)),
            ("rotary_emb.inv_freq", torch.ones(2)))})


def old_neox_names(folder):
    """The same of any rotary kind, and no buffers."""

    def change(config):
        rope = config.pop("rope_parameters")
        config |= {"rotary_emb_base": rope.pop("rope_theta"), "rotary_pct": rope.pop("partial_rotary_factor")}
        config["rope_scaling"] = {"type": rope.pop("rope_type"), **rope}

    edit_config(folder, change)


def new_head_name(folder):
    rename_tensors(folder, lambda name: name.replace("embed_out.", "lm_head."))


def bare(prefix):
    """Names without what stands before the backbone's."""
    return lambda folder: rename_tensors(folder, lambda name: name.removeprefix(prefix))


def old_without(*keys):
    def change(folder):
        old_generation(folder)
        edit_config(folder, lambda config: [config.pop(key) for key in keys])

    return change


def old_buffers_gptj(folder):
    rename_tensors(folder, lambda name: name, {
        f"transformer.h.{layer}.attn.{what}": value.clone() for layer in range(3) for what, value in (
            ("bias", torch.tril(torch.ones(256, 256)).view(1, 1, 256, 256)), ("masked_bias", torch.tensor(-1e9)))})


def old_partial(folder):
    """Phi's files from before: partial_rotary_factor beside rope_theta."""

    def change(config):
        rope = config.pop("rope_parameters")
        config |= {"rope_theta": rope["rope_theta"], "partial_rotary_factor": rope["partial_rotary_factor"]}
        config["rope_scaling"] = None

    edit_config(folder, change)


def old_partial_names(folder):
    """The same of any rotary kind."""

    def change(config):
        rope = config.pop("rope_parameters")
        config |= {key: rope.pop(key) for key in ("rope_theta", "partial_rotary_factor")}
        config["rope_scaling"] = {"type": rope.pop("rope_type"), **rope}

    edit_config(folder, change)


def published_gpt_oss(folder):
    """As on the hub: rope_scaling and rope_theta, num_experts beside num_local_experts."""

    def change(config):
        rope = config.pop("rope_parameters")
        config |= {"rope_theta": rope.pop("rope_theta"), "rope_scaling": rope, "experts_per_token": 2}
        config.pop("swiglu_alpha")

    edit_config(folder, change)


def pack_experts(folder):
    """Experts in MXFP4 as OpenAI published them."""
    path = Path(folder) / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    generator = torch.Generator().manual_seed(5)
    for name in [name for name in tensors if name.endswith(("experts.gate_up_proj", "experts.down_proj"))]:
        experts, inputs, outputs = tensors.pop(name).shape
        groups = inputs // 32
        tensors[name + "_blocks"] = torch.randint(
            0, 256, (experts, outputs, groups, 16), dtype=torch.uint8, generator=generator)
        tensors[name + "_scales"] = torch.randint(
            121, 125, (experts, outputs, groups), dtype=torch.uint8, generator=generator)
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
    edit_config(folder, lambda config: config.update(quantization_config={
        "quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                                            "model.embed_tokens", "lm_head"]}))


def drawn(folder, seed, family):
    """Sizes, switches, type and generation at random: another model with each --seed of acceptance.py."""
    draw = random.Random(f"{family} {seed}")
    heads, size = draw.choice((1, 2, 3, 5, 6)), draw.choice((4, 6, 10, 14))
    whole = family in ("neox", "phi", "gptj", "olmo2")  # heads that fill the hidden size
    rotated = draw.randrange(4, size + 1, 2)
    hidden = heads * size if whole or family == "gemma2" else draw.randint(5, 60)
    options = dict(
        vocab_size=draw.randint(40, 120), hidden_size=hidden, intermediate_size=draw.randint(7, 90),
        num_hidden_layers=draw.randint(1, 3), num_attention_heads=heads, tie_word_embeddings=draw.random() < 0.5,
        rope_parameters=dict(draw.choice([{"rope_type": "default"}, *(ROPE_KINDS[kind] for kind in (
            "linear", "dynamic", "yarn", "yarn-tuned", "llama3"))]), rope_theta=draw.choice((100.0, 5000.0))),
    )
    activation = draw.choice(("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "quick_gelu", "silu", "relu", "relu2"))
    options["hidden_activation" if family == "gemma2" else "hidden_act"] = activation
    if family not in ("neox", "gptj"):
        options["num_key_value_heads"] = draw.choice([n for n in range(1, heads + 1) if heads % n == 0])
    if not whole:
        options |= dict(head_dim=size, sliding_window=draw.choice((1, 2, 17, 64, 300)))
    if family in ("neox", "phi"):
        options["rope_parameters"]["partial_rotary_factor"] = min(1.0, (rotated + 0.01) / size)
    if family in ("qwen3", "gemma2", "olmo2", "gpt_oss", "neox"):
        options["attention_bias"] = draw.random() < 0.5
    if family == "qwen3":
        options |= dict(use_sliding_window=draw.random() < 0.7, max_window_layers=draw.randint(0, 3))
    if family == "gemma2":
        options |= dict(attn_logit_softcapping=draw.choice((None, 3.0, 50.0)), query_pre_attn_scalar=draw.randint(1, 40),
                        final_logit_softcapping=draw.choice((None, 2.0, 30.0)))
    if family == "gpt_oss":
        experts = draw.randint(1, 9)
        options |= dict(num_local_experts=experts, num_experts_per_tok=draw.randint(1, experts),
                        swiglu_limit=draw.choice((0.5, 7.0)))
        options.pop("hidden_act")
    if family == "neox":
        options["use_parallel_residual"] = draw.random() < 0.5
    if family == "phi":
        options["qk_layernorm"] = draw.random() < 0.5
    change = draw.choice((None, {"neox": old_neox_names, "phi": old_partial_names}.get(family, old_generation)))
    if family == "gptj":
        names = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
                 "intermediate_size": "n_inner", "hidden_act": "activation_function"}
        options = {names.get(key, key): value for key, value in options.items() if key != "rope_parameters"}
        options["rotary_dim"], change = rotated, None
    decoder(folder, seed, family, dtype=draw.choice((torch.float32, torch.bfloat16, torch.float16)),
            shard=draw.choice((None, "20KB")), gain=draw.choice((1.0, 1.5, 3.0)), change=change, **options)


def cases():
    def case(name, family, lengths=None, **options):
        more = {"lengths": lengths} if lengths else {}
        return Case(name, with_options(decoder, family=family, **options), **more)

    bf16, f16 = torch.bfloat16, torch.float16
    rope = {"rope_type": "default", "rope_theta": 1000.0}
    partial = rope | {"partial_rotary_factor": 0.5}
    yarn = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 64}
    return [
        case("neox", "neox", rope_parameters=partial),
        case("neox-serial-old", "neox", use_parallel_residual=False, change=old_neox, rope_parameters=partial),
        case("neox-new-head-name", "neox", change=new_head_name, num_attention_heads=3, rope_parameters=partial),
        case("neox-bf16-sharded-tied", "neox", dtype=bf16, shard="20KB", tie_word_embeddings=True, hidden_act="gelu_fast",
             rope_parameters=partial),
        case("neox-no-bias-linear", "neox", attention_bias=False, rope_parameters=partial | {
            "rope_type": "linear", "factor": 3.0}),
        case("mistral", "mistral", sliding_window=17),
        case("mistral-no-window-old", "mistral", sliding_window=None, rope_parameters=rope,
             change=old_without("head_dim"), head_dim=8),
        case("mistral-f16-sharded-one-key-head", "mistral", dtype=f16, shard="20KB", num_key_value_heads=1,
             sliding_window=64, rope_parameters=yarn),
        case("qwen3", "qwen3"),
        case("qwen3-bias-windows-old", "qwen3", attention_bias=True, use_sliding_window=True, sliding_window=9,
             max_window_layers=1, change=old_without("layer_types"), rope_parameters=rope),
        case("qwen3-bf16-tied-layer-types", "qwen3", dtype=bf16, tie_word_embeddings=True, use_sliding_window=True,
             sliding_window=33, layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
        case("gemma2", "gemma2"),
        case("gemma2-tight-caps", "gemma2", attn_logit_softcapping=2.0, final_logit_softcapping=1.5),
        case("gemma2-uncapped-old", "gemma2", attn_logit_softcapping=None, final_logit_softcapping=None,
             attention_bias=True, tie_word_embeddings=False, rope_parameters=rope, change=old_without("layer_types")),
        case("gemma2-bf16-sharded", "gemma2", dtype=bf16, shard="20KB", num_key_value_heads=3,
             layer_types=["full_attention", "sliding_attention", "sliding_attention"]),
        case("phi", "phi", rope_parameters=partial),
        case("phi-key-norm-groups-old", "phi", qk_layernorm=True, num_key_value_heads=1, change=old_partial,
             rope_parameters=rope | {"partial_rotary_factor": 0.34}),
        case("phi-bf16-sharded-tied", "phi", dtype=bf16, shard="20KB", tie_word_embeddings=True, hidden_act="relu2"),
        case("gptj", "gptj"),
        case("gptj-whole-heads-old", "gptj", rotary_dim=12, n_inner=77, change=old_buffers_gptj),
        case("gptj-f16-sharded-tied-bare", "gptj", dtype=f16, tie_word_embeddings=True, activation_function="quick_gelu",
             change=bare("transformer.")),
        case("olmo2", "olmo2"),
        case("olmo2-biases-old", "olmo2", attention_bias=True, rope_parameters=rope, change=old_generation),
        case("olmo2-bf16-sharded-tied", "olmo2", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=3),
        case("gpt-oss", "gpt_oss", rope_parameters=yarn),
        case("gpt-oss-published", "gpt_oss", rope_parameters=yarn | {"truncate": False}, change=published_gpt_oss),
        case("gpt-oss-tight-limit", "gpt_oss", swiglu_limit=0.3, swiglu_alpha=1.2, attention_bias=False,
             num_key_value_heads=6, num_experts_per_tok=5),
        case("gpt-oss-bf16-sharded-tied", "gpt_oss", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             layer_types=["full_attention", "sliding_attention", "sliding_attention"]),
        case("gpt-oss-packed", "gpt_oss", hidden_size=64, intermediate_size=32, change=pack_experts),
        *(Case(f"{family}-drawn", with_options(drawn, family=family), lengths=(65, 130, 1)) for family in FAMILIES),
    ]
