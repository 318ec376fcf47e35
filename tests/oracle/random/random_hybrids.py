# SPDX-License-Identifier: GPL-3.0-or-later
"""Random checkpoints of models with a state in some layers, and of Differential Transformer, for the acceptance test. See
random_models.py."""

import copy
import random

import torch
import transformers as T

from random_models import Case, edit_config, randomise, rename_tensors, with_options

SIZES = dict(
    vocab_size=103, hidden_size=48, intermediate_size=67, num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2,
    head_dim=12, max_position_embeddings=256, rms_norm_eps=1e-3, bos_token_id=0, eos_token_id=1, pad_token_id=None)
WHOLE = {key: value for key, value in SIZES.items() if key != "head_dim"} | dict(hidden_size=60)
STATE = dict(linear_num_key_heads=3, linear_num_value_heads=6, linear_key_head_dim=7, linear_value_head_dim=10,
             linear_conv_kernel_dim=3)
EXPERTS = dict(num_experts=7, num_experts_per_tok=3, moe_intermediate_size=23, shared_expert_intermediate_size=31)
PARTIAL = {"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.5}
STATE_SPACE = dict(mamba_n_heads=12, mamba_d_head=10, mamba_d_state=11, mamba_n_groups=3, mamba_d_conv=3, mamba_chunk_size=32)
FAMILIES = {
    "qwen3_next": (T.Qwen3NextForCausalLM, T.Qwen3NextConfig, SIZES | STATE | EXPERTS),
    "qwen3_5": (T.Qwen3_5ForCausalLM, T.Qwen3_5TextConfig, SIZES | STATE),
    "qwen3_5_moe": (T.Qwen3_5MoeForCausalLM, T.Qwen3_5MoeTextConfig, SIZES | STATE | EXPERTS),
    "olmo_hybrid": (T.OlmoHybridForCausalLM, T.OlmoHybridConfig, WHOLE | STATE),
    "minimax": (T.MiniMaxForCausalLM, T.MiniMaxConfig, SIZES | dict(
        num_local_experts=5, num_experts_per_tok=2, block_size=16, num_hidden_layers=3)),
    "diffllama": (T.DiffLlamaForCausalLM, T.DiffLlamaConfig, SIZES | dict(num_hidden_layers=3)),
    "kimi_linear": (T.KimiLinearForCausalLM, T.KimiLinearConfig, {
        key: value for key, value in SIZES.items() if key != "head_dim"} | dict(
        num_key_value_heads=6, linear_num_heads=3, linear_head_dim=8, linear_conv_kernel_dim=3, kv_lora_rank=13,
        qk_nope_head_dim=7, qk_rope_head_dim=6, v_head_dim=11, num_local_experts=12, num_experts_per_tok=3,
        n_group=4, topk_group=2, moe_intermediate_size=23, n_shared_experts=2, num_hidden_layers=6)),
    "lfm2": (T.Lfm2ForCausalLM, T.Lfm2Config, {key: value for key, value in SIZES.items() if key != "rms_norm_eps"} | dict(
        norm_eps=1e-3, conv_L_cache=3, block_multiple_of=16, rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
        layer_types=["conv", "full_attention", "conv", "full_attention"])),
    "falcon_h1": (T.FalconH1ForCausalLM, T.FalconH1Config, SIZES | dict(
        num_hidden_layers=3, mamba_d_ssm=60, mamba_n_heads=6, mamba_d_head=10, mamba_n_groups=2, mamba_d_state=9,
        mamba_d_conv=3, mamba_chunk_size=16, rope_parameters={"rope_type": "default", "rope_theta": 1000.0})),
    "nemotron_h": (T.NemotronHForCausalLM, T.NemotronHConfig, {
        key: value for key, value in SIZES.items() if key not in ("num_hidden_layers", "rms_norm_eps")} | dict(
        layers_block_type=["linear_attention", "mlp", "full_attention", "moe", "linear_attention"], layer_norm_epsilon=1e-3,
        mamba_num_heads=6, mamba_head_dim=10, n_groups=3, ssm_state_size=9, conv_kernel=3, chunk_size=16,
        n_routed_experts=6, num_experts_per_tok=2, n_group=3, topk_group=2, moe_intermediate_size=23,
        moe_shared_expert_intermediate_size=31, routed_scaling_factor=1.5)),
    "bamba": (T.BambaForCausalLM, T.BambaConfig, WHOLE | STATE_SPACE | dict(
        hidden_size=48, mamba_d_head=8, attn_layer_indices=[1, 2])),
    "granitemoehybrid": (T.GraniteMoeHybridForCausalLM, T.GraniteMoeHybridConfig, WHOLE | STATE_SPACE | dict(
        num_local_experts=5, num_experts_per_tok=2, shared_intermediate_size=31, embedding_multiplier=3.0,
        attention_multiplier=0.3, residual_multiplier=0.6, logits_scaling=2.0,
        layer_types=["linear_attention", "full_attention"] * 2)),
    "mamba2": (T.Mamba2ForCausalLM, T.Mamba2Config, {
        key: SIZES[key] for key in ("vocab_size", "hidden_size", "bos_token_id", "eos_token_id", "pad_token_id")} | dict(
        num_hidden_layers=3, num_heads=12, head_dim=8, state_size=11, n_groups=2, layer_norm_epsilon=1e-3, chunk_size=32)),
    "jamba": (T.JambaForCausalLM, T.JambaConfig, SIZES | dict(
        num_hidden_layers=4, attn_layer_period=3, attn_layer_offset=1, num_experts=5, mamba_d_state=6, mamba_d_conv=3,
        mamba_dt_rank=5)),
}
FACTORS = dict(embedding_multiplier=1.5, lm_head_multiplier=0.75, key_multiplier=0.625, attention_in_multiplier=1.25,
               attention_out_multiplier=0.875, ssm_in_multiplier=1.125, ssm_out_multiplier=0.5, mlp_multipliers=[0.75, 1.25],
               ssm_multipliers=[0.5, 1.25, 0.75, 1.5, 0.625])
VISION = dict(hidden_size=8, intermediate_size=8, depth=1, num_heads=2, patch_size=4, out_hidden_size=48,
              num_position_embeddings=16)


def with_images(kind):
    """The same text tower in a configuration with images."""
    model, config = {"qwen3_5": (T.Qwen3_5ForConditionalGeneration, T.Qwen3_5Config),
                     "qwen3_5_moe": (T.Qwen3_5MoeForConditionalGeneration, T.Qwen3_5MoeConfig)}[kind]
    tokens = dict(image_token_id=100, video_token_id=101, vision_start_token_id=98, vision_end_token_id=99)

    def made(**options):
        return config(text_config=options, vision_config=dict(VISION), **tokens,
                      tie_word_embeddings=options.get("tie_word_embeddings", False))

    return model, made, FAMILIES[kind][2]


for kind in ("qwen3_5", "qwen3_5_moe"):
    FAMILIES[kind + "_images"] = with_images(kind)
FROM_ZERO = ("input_layernorm", "post_attention_layernorm", "q_norm", "k_norm", "model.norm")


def settle(model, family, seed, gain):
    """What randomise leaves: rates and steps such that states last for a few tokens and for many, taps, gains that are
    1 + w, experts, scores of differential and latent attention."""
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "visual" in name:
                continue
            if name.endswith("A_log"):
                parameter.copy_(noise)
            elif name.endswith(("dt_bias", "dt_proj.bias")):
                parameter.copy_(2 * noise - 1)
            elif "conv1d" in name or name.endswith("conv.conv.weight"):
                parameter.copy_(noise / parameter.shape[-1] ** 0.5)
            elif ".lambda_" in name:
                parameter.copy_(0.3 * noise)
            elif name.endswith(".D"):
                parameter.copy_(noise)
            elif "experts." in name and parameter.dim() == 3:
                parameter.copy_(noise / parameter.shape[2] ** 0.5)
            elif any(part in name for part in ("q_norm", "k_norm", "q_layernorm", "k_layernorm")):
                parameter *= gain
            if family.startswith("qwen3") and name.replace("language_model.", "").endswith(".weight") and any(
                    part in name for part in FROM_ZERO + ("language_model.norm",)):
                parameter -= 1
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(0.2 * torch.randn(buffer.shape, generator=generator))
    return model


def hybrid(folder, seed, family, dtype=torch.float32, shard=None, gain=1.5, change=None, as_computed=False, **options):
    model_class, config_class, sizes = FAMILIES[family]
    config = config_class(**copy.deepcopy(sizes | options))
    config._experts_implementation = "eager"
    torch.manual_seed(seed)
    model = settle(randomise(model_class(config), seed, gain), family, seed, gain)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard or "1GB", save_original_format=not as_computed)
    if change:
        change(folder)


def old_partial(folder):
    """rope_theta and partial_rotary_factor beside, full_attention_interval in the place of layer_types."""

    def change(config):
        rope = config.pop("rope_parameters")
        config |= {key: rope[key] for key in ("rope_theta", "partial_rotary_factor")} | {"rope_scaling": None}
        config.pop("layer_types")
        config["full_attention_interval"] = 4

    edit_config(folder, change)


def no_positions(folder):
    """As OLMo Hybrid is published."""
    edit_config(folder, lambda config: config.update(rope_parameters={"rope_theta": None, "rope_type": "default"}))


def further_tokens(folder):
    """With layers that predict further tokens, as Qwen publishes them."""
    rename_tensors(folder, lambda name: name, {"mtp.fc.weight": torch.ones(4, 8), "mtp.norm.weight": torch.ones(4)})


def published_kimi(config):
    """As Moonshot has it: what layers have a state stands in an object of its own, counted from 1."""
    types = config.pop("layer_types")
    config["linear_attn_config"] = {
        "full_attn_layers": [i + 1 for i, kind in enumerate(types) if kind == "full_attention"],
        "kda_layers": [i + 1 for i, kind in enumerate(types) if kind == "linear_attention"],
        "head_dim": config.pop("linear_head_dim"), "num_heads": config.pop("linear_num_heads"),
        "short_conv_kernel_size": config.pop("linear_conv_kernel_dim")}
    config["first_k_dense_replace"] = config.pop("mlp_layer_types").count("dense")
    config |= {"rope_theta": 10000.0, "mla_use_nope": True, "moe_layer_freq": 1, "moe_router_activation_func": "sigmoid"}


def old_kimi(folder):
    edit_config(folder, published_kimi)


def published_lfm2(config):
    """As Liquid AI has it: layers with attention in a list, and other names of two keys."""
    types = config.pop("layer_types")
    config["full_attn_idxs"] = [layer for layer, kind in enumerate(types) if kind == "full_attention"]
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    config["tie_embedding"] = config.pop("tie_word_embeddings")
    config["block_ff_dim"] = config.pop("intermediate_size")


def old_lfm2(folder):
    edit_config(folder, published_lfm2)


def published_nemotron(config):
    """As NVIDIA has it: a letter for each layer."""
    letters = {"linear_attention": "M", "full_attention": "*", "mlp": "-", "moe": "E"}
    config["hybrid_override_pattern"] = "".join(letters[kind] for kind in config.pop("layers_block_type"))
    config["num_hidden_layers"] = len(config["hybrid_override_pattern"])


def old_nemotron(folder):
    edit_config(folder, published_nemotron)


def published_bamba(config):
    """Positions the older way, with an unused share of the head beside them."""
    config |= {"rope_theta": config.pop("rope_parameters")["rope_theta"], "rope_scaling": None, "partial_rotary_factor": 1.0}


def published_granite(config):
    """Older words for the kinds of layers, under another name; positions the older way."""
    words = {"linear_attention": "mamba", "full_attention": "attention"}
    config["layers_block_type"] = [words[kind] for kind in config.pop("layer_types")]
    config |= {"rope_theta": config.pop("rope_parameters")["rope_theta"], "rope_scaling": None}


def old_bamba(folder):
    edit_config(folder, published_bamba)


def old_granite(folder):
    edit_config(folder, published_granite)


def drawn(folder, seed, family):
    """Sizes and switches at random: another model with each --seed of acceptance.py."""
    draw = random.Random(f"{family} {seed}")
    layers, heads = draw.randint(2, 5), draw.choice((2, 4, 6))
    flag = lambda: draw.random() < 0.5
    if family == "mamba2":
        wide = heads * draw.choice((2, 4, 6))
        hybrid(folder, seed, family, dtype=draw.choice((torch.float32, torch.bfloat16)), shard=draw.choice((None, "20KB")),
               num_hidden_layers=layers, hidden_size=wide, expand=2, num_heads=heads, head_dim=2 * wide // heads,
               n_groups=draw.choice([n for n in range(1, heads + 1) if heads % n == 0]), state_size=draw.randint(1, 20),
               conv_kernel=draw.randint(1, 5), use_bias=flag(), use_conv_bias=flag(), tie_word_embeddings=flag(),
               time_step_limit=draw.choice(((0.0, float("inf")), (0.1, 1.0))))
        return
    both = ("conv" if family == "lfm2" else "linear_attention", "full_attention")
    kinds = list(both) + [draw.choice(both) for _ in range(layers - 2)]
    draw.shuffle(kinds)
    size = draw.choice((4, 8, 12))
    options = dict(vocab_size=draw.randint(104, 140), num_hidden_layers=layers, num_attention_heads=heads, hidden_size=heads * size,
                   tie_word_embeddings=flag())
    if family != "kimi_linear":
        options |= dict(num_key_value_heads=draw.choice((heads, 2)), rope_parameters={
            "rope_type": "default", "rope_theta": draw.choice((100.0, 5000.0))})
    if family not in ("olmo_hybrid", "kimi_linear"):
        options["head_dim"] = size
    if family.startswith("qwen3"):
        options["rope_parameters"]["partial_rotary_factor"] = draw.choice((0.5, 1.0))
    if family not in ("diffllama", "falcon_h1", "jamba"):
        options["layer_types"] = kinds
    if family.startswith("qwen3") or family == "olmo_hybrid":
        few = draw.choice((1, 2, 3))
        options |= dict(linear_num_key_heads=few, linear_num_value_heads=few * draw.choice((1, 2)),
                        linear_key_head_dim=draw.randint(3, 9), linear_value_head_dim=draw.randint(3, 9),
                        linear_conv_kernel_dim=draw.randint(1, 5), attention_bias=flag())
    if family == "olmo_hybrid":
        options["linear_allow_neg_eigval"] = flag()
    if family == "minimax":
        options |= {f"{part}_{which}_factor": draw.choice((0.5, 1.0, 2.5)) for part in ("full_attn", "linear_attn", "mlp")
                    for which in ("alpha", "beta")} | dict(sliding_window=draw.choice((None, 9)))
    if family == "jamba":
        period = draw.randint(2, 3)
        options |= dict(attn_layer_period=period, attn_layer_offset=draw.randrange(period), num_experts=draw.choice((1, 3)),
                        expert_layer_period=1 + draw.randrange(2), expert_layer_offset=0, mamba_d_state=draw.randint(1, 9),
                        mamba_d_conv=draw.randint(2, 5), mamba_dt_rank=draw.choice(("auto", 3)), mamba_conv_bias=flag(),
                        mamba_proj_bias=flag())
        options.pop("rope_parameters")
    if family == "falcon_h1":
        options |= draw_falcon(draw)
    if family == "nemotron_h":
        options |= draw_nemotron(draw, options.pop("num_hidden_layers"))
        options.pop("rope_parameters")
        options.pop("layer_types")
    if family == "lfm2":
        options |= dict(conv_L_cache=draw.randint(1, 5), conv_bias=flag(), block_auto_adjust_ff_dim=flag(),
                        block_ffn_dim_multiplier=draw.choice((1.0, 0.7, 1.3)))
    if family in ("bamba", "granitemoehybrid"):
        options |= dict(mamba_n_heads=heads, mamba_d_head=2 * size, mamba_n_groups=draw.choice((1, heads)),
                        mamba_d_state=draw.randint(1, 20), mamba_d_conv=draw.randint(1, 5), mamba_proj_bias=flag(),
                        mamba_conv_bias=flag(), attention_bias=flag())
        options.pop("head_dim")
    if family == "bamba":
        options["attn_layer_indices"] = [i for i, kind in enumerate(options.pop("layer_types")) if kind == "full_attention"]
    if family == "granitemoehybrid":
        options |= dict(position_embedding_type=draw.choice((None, "rope")), residual_multiplier=draw.choice((0.5, 1.0)),
                        num_local_experts=draw.choice((0, 3, 5)))
    if family == "kimi_linear":
        options |= dict(num_key_value_heads=heads, linear_num_heads=draw.randint(1, 4), linear_head_dim=draw.randint(3, 8),
                        q_lora_rank=draw.choice((None, 9)), tie_word_embeddings=False)
    hybrid(folder, seed, family, dtype=draw.choice((torch.float32, torch.bfloat16)) if family != "minimax" else torch.float32,
           shard=draw.choice((None, "20KB")), gain=draw.choice((1.0, 1.5)), as_computed=flag(),
           **options)


def draw_state_space(draw):
    groups, size = draw.randint(1, 3), draw.randint(3, 9)
    return groups * draw.randint(1, 3), size, groups, draw.randint(2, 11)


def draw_falcon(draw):
    flag = lambda: draw.random() < 0.5
    heads, size, groups, state = draw_state_space(draw)
    return dict(mamba_n_heads=heads, mamba_d_ssm=heads * size, mamba_d_head=size, mamba_n_groups=groups, mamba_d_state=state,
                mamba_d_conv=draw.randint(2, 5), mamba_rms_norm=flag(), mamba_norm_before_gate=flag(), mamba_conv_bias=flag(),
                mamba_proj_bias=flag(), projectors_bias=flag(), attention_bias=flag(), mlp_bias=flag()) | (
        FACTORS if flag() else {})


def draw_nemotron(draw, layers):
    heads, size, groups, state = draw_state_space(draw)
    kinds = ["linear_attention", "full_attention"] + [
        draw.choice(("linear_attention", "full_attention", "mlp", "moe")) for _ in range(layers)]
    draw.shuffle(kinds)
    return dict(layers_block_type=kinds, mamba_num_heads=heads, mamba_head_dim=size, n_groups=groups, ssm_state_size=state,
                conv_kernel=draw.randint(2, 5), use_bias=draw.random() < 0.5, mlp_bias=draw.random() < 0.5,
                time_step_min=draw.choice((0.001, 0.4)), tie_word_embeddings=False)


def cases():
    def case(name, family, lengths=None, **options):
        more = {"lengths": lengths} if lengths else {}
        return Case(f"hybrid-{name}", with_options(hybrid, family=family, **options), **more)

    bf16, few = torch.bfloat16, (1, 65, 130)
    listed = [
        case("qwen3-next", "qwen3_next", rope_parameters=dict(PARTIAL)),
        case("qwen3-next-bf16-biases-old", "qwen3_next", few, dtype=bf16, shard="40KB", attention_bias=True,
             tie_word_embeddings=True, mlp_only_layers=[1], norm_topk_prob=False, rope_parameters=dict(PARTIAL),
             change=old_partial),
        case("qwen3-next-stacked-one-key-head", "qwen3_next", few, as_computed=True, linear_num_key_heads=1,
             linear_num_value_heads=5, num_key_value_heads=1, rope_parameters=dict(PARTIAL), change=further_tokens),
        case("qwen3-5", "qwen3_5", rope_parameters=dict(PARTIAL)),
        case("qwen3-5-old", "qwen3_5", few, change=old_partial, rope_parameters=dict(PARTIAL)),
        case("qwen3-5-moe", "qwen3_5_moe", few, rope_parameters=dict(PARTIAL)),
        case("qwen3-5-moe-stacked-bf16", "qwen3_5_moe", few, as_computed=True, dtype=bf16, rope_parameters=dict(PARTIAL)),
        case("qwen3-5-images", "qwen3_5_images", few, rope_parameters=dict(PARTIAL)),
        case("qwen3-5-images-tied", "qwen3_5_images", few, tie_word_embeddings=True, rope_parameters=dict(PARTIAL)),
        case("qwen3-5-moe-images", "qwen3_5_moe_images", few, rope_parameters=dict(PARTIAL)),
        case("olmo-hybrid", "olmo_hybrid", rope_parameters={"rope_type": "default", "rope_theta": 1000.0}),
        case("olmo-hybrid-no-positions", "olmo_hybrid", few, change=no_positions, attention_bias=True),
        case("olmo-hybrid-stacked-plain-steps", "olmo_hybrid", few, as_computed=True, linear_allow_neg_eigval=False,
             dtype=bf16),
        case("minimax", "minimax"),
        case("minimax-factors-window-stacked", "minimax", few, as_computed=True, sliding_window=17,
             full_attn_alpha_factor=0.7, full_attn_beta_factor=1.3, linear_attn_alpha_factor=2.0,
             linear_attn_beta_factor=0.4, mlp_alpha_factor=3.0, mlp_beta_factor=0.6),
        case("diffllama", "diffllama"),
        case("diffllama-bf16-tied-biases", "diffllama", few, dtype=bf16, tie_word_embeddings=True, attention_bias=True,
             num_key_value_heads=6),
        case("kimi-linear", "kimi_linear"),
        case("kimi-linear-stacked-bf16", "kimi_linear", few, as_computed=True, dtype=bf16, linear_num_heads=1),
        case("kimi-linear-ranked-old", "kimi_linear", few, q_lora_rank=17, change=old_kimi),
        case("falcon-h1", "falcon_h1"),
        case("falcon-h1-factors-norms-biases-bf16", "falcon_h1", few, dtype=bf16, shard="40KB", **FACTORS, mamba_rms_norm=True,
             mamba_proj_bias=True, projectors_bias=True, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
        case("falcon-h1-norm-last-limited", "falcon_h1", few, mamba_rms_norm=True, mamba_norm_before_gate=False,
             mamba_conv_bias=False, time_step_limit=(0.3, 1.1)),
        case("jamba", "jamba"),
        case("jamba-biases-stacked-bf16", "jamba", few, as_computed=True, dtype=bf16, mamba_proj_bias=True, mamba_dt_rank="auto",
             mamba_conv_bias=False, tie_word_embeddings=True, expert_layer_period=3),
        case("jamba-no-experts", "jamba", few, num_experts=1, mamba_expand=1),
        case("nemotron-h", "nemotron_h"),
        case("nemotron-h-biases-stacked-bf16-old", "nemotron_h", few, as_computed=True, dtype=bf16, use_bias=True,
             mlp_bias=True, use_conv_bias=False, time_step_min=0.4, change=old_nemotron),
        case("mamba2", "mamba2"),
        case("bamba", "bamba"),
        case("bamba-bf16-biases", "bamba", few, dtype=bf16, mamba_proj_bias=True, mamba_conv_bias=False, tie_word_embeddings=True),
        case("bamba-biases-limits-old", "bamba", few, attention_bias=True, mlp_bias=True, time_step_limit=(0.1, 1.0),
             rope_parameters={"rope_type": "default", "rope_theta": 1000.0}, change=old_bamba),
        case("granitemoehybrid", "granitemoehybrid"),
        case("granitemoehybrid-rotary-biases", "granitemoehybrid", few, position_embedding_type="rope", attention_bias=True,
             time_step_limit=(0.1, 1.0)),
        case("granitemoehybrid-stacked-old", "granitemoehybrid", few, as_computed=True, mamba_proj_bias=True, change=old_granite),
        case("granitemoehybrid-dense-bf16", "granitemoehybrid", few, dtype=bf16, num_local_experts=0, num_experts_per_tok=0),
        case("mamba2-bf16-biases-limits", "mamba2", few, dtype=bf16, use_bias=True, use_conv_bias=False, n_groups=1,
             conv_kernel=2, tie_word_embeddings=True, time_step_limit=(0.2, 2.0)),
        case("lfm2", "lfm2"),
        case("lfm2-bf16-biases-old", "lfm2", few, dtype=bf16, shard="40KB", conv_bias=True, tie_word_embeddings=False,
             conv_L_cache=4, block_auto_adjust_ff_dim=False, change=old_lfm2),
    ]
    return listed + [Case(f"hybrid-{kind}-drawn", with_options(drawn, family=kind), lengths=(65, 130, 1)) for kind in FAMILIES
                     if not kind.endswith("images")]
