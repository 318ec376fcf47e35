# SPDX-License-Identifier: GPL-3.0-or-later
"""Decoders of every family of decoder_families.py with sizes, switches, type and generation at random."""

import random

import torch

from decoder_families import GROWING, decoder
from decoder_files import old_images, old_mpt, old_neox_names, old_partial_names, old_two_ropes
from random_models import ROPE_KINDS, old_generation


def drawn(folder, seed, family):
    """Sizes, switches, type and generation at random: another model with each --seed of acceptance.py."""
    draw = random.Random(f"{family} {seed}")
    heads, size = draw.choice((1, 2, 3, 5, 6)), draw.choice((4, 6, 10, 14))
    # heads that fill the hidden size
    whole = family in ("neox", "phi", "gptj", "olmo2", "phi3", "smollm3", "olmo", "olmo3", "granite", "starcoder2",
                       "stablelm", "cohere", "cohere2", "falcon", "mpt", "qwen2_moe", "olmoe", "granitemoe",
                       "deepseek_v2", "deepseek_v3")
    rotated = draw.randrange(4, size + 1, 2)
    hidden = heads * size if whole or family.startswith("gemma") else draw.randint(5, 60)
    options = dict(
        vocab_size=draw.randint(40, 120), hidden_size=hidden, intermediate_size=draw.randint(7, 90),
        num_hidden_layers=draw.randint(1, 3), num_attention_heads=heads, tie_word_embeddings=draw.random() < 0.5,
        rope_parameters=dict(draw.choice([{"rope_type": "default"}, *(ROPE_KINDS[kind] for kind in (
            "linear", "dynamic", "yarn", "yarn-tuned", "llama3"))]), rope_theta=draw.choice((100.0, 5000.0))),
    )
    activation = draw.choice(("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "quick_gelu", "silu", "relu", "relu2"))
    options["hidden_activation" if family in ("gemma2", "gemma3", "gemma3_images") else "hidden_act"] = activation
    if family == "apertus" and draw.random() < 0.6:
        options["hidden_act"] = "xielu"
    if family not in ("neox", "gptj", "falcon", "mpt"):
        options["num_key_value_heads"] = draw.choice([n for n in range(1, heads + 1) if heads % n == 0])
    if not whole:
        options["head_dim"] = size
    without_windows = ("gemma", "glm", "glm4", "nemotron", "seed_oss", "apertus", "glm4_moe", "llama4", "llama4_images")
    if not whole and family not in without_windows or family in ("phi3", "smollm3", "olmo3", "starcoder2", "cohere2",
                                                                  "qwen2_moe"):
        options["sliding_window"] = draw.choice((1, 2, 17, 64, 300))
    if family == "phi3":
        factors = [[1 + draw.random() * n for n in range(rotated // 2)] for longest in (1, 4)]
        options["rope_parameters"] = {"rope_theta": 1000.0, "rope_type": "default"} if draw.random() < 0.5 else {
            "rope_theta": 1000.0, "rope_type": "longrope", "short_factor": factors[0], "long_factor": factors[1]}
        options["original_max_position_embeddings"] = draw.choice((64, 128, 300))
    if family in ("neox", "phi", "phi3", "stablelm", "glm", "glm4", "nemotron", "glm4_moe"):
        options["rope_parameters"]["partial_rotary_factor"] = min(1.0, (rotated + 0.01) / size)
    if family in ("gemma3", "gemma3_images", "olmo3"):
        options["rope_parameters"] = {"full_attention": options["rope_parameters"], "sliding_attention": {
            "rope_type": "default", "rope_theta": 500000.0}}
    if family in ("qwen3", "gemma2", "olmo2", "gpt_oss", "neox", "gemma", "gemma3", "gemma3_images", "smollm3", "olmo",
                  "olmo3", "granite"):
        options["attention_bias"] = draw.random() < 0.5
    if family in ("smollm3", "granite"):
        options["mlp_bias"] = draw.random() < 0.5
    if family in ("gemma3", "gemma3_images"):
        options |= dict(sliding_window_pattern=draw.randint(1, 3), query_pre_attn_scalar=draw.randint(1, 40),
                        final_logit_softcapping=draw.choice((None, 2.0, 30.0)))
    if family == "smollm3":
        options |= dict(no_rope_layer_interval=draw.randint(1, 4), use_sliding_window=draw.random() < 0.5)
    if family == "olmo":
        options["clip_qkv"] = draw.choice((None, 0.5, 2.0))
    if family == "granite":
        options |= {key: draw.choice((0.25, 0.7, 1.0, 2.5)) for key in (
            "embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling")}
    if family == "starcoder2":
        options["use_bias"] = draw.random() < 0.5
    if family == "stablelm":
        options |= {key: draw.random() < 0.5 for key in ("use_qkv_bias", "qk_layernorm", "use_parallel_residual")}
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
    options |= drawn_more(draw, family, options)
    change = draw.choice((None, {
        "neox": old_neox_names, "phi": old_partial_names, "phi3": old_partial_names, "stablelm": old_partial_names,
        "glm": old_partial_names, "glm4": old_partial_names, "nemotron": old_partial_names, "mpt": old_mpt,
        "mistral_images": old_images, "ministral3_images": old_images, "llama4_images": old_images,
        "glm4_moe": old_partial_names,
        "gemma3": old_two_ropes, "gemma3_images": old_two_ropes, "olmo3": old_two_ropes}.get(family, old_generation)))
    if family == "gptj":
        names = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
                 "intermediate_size": "n_inner", "hidden_act": "activation_function"}
        options = {names.get(key, key): value for key, value in options.items() if key != "rope_parameters"}
        options["rotary_dim"], change = rotated, None
    if family == "falcon":
        options["ffn_hidden_size"], options["activation"] = options.pop("intermediate_size"), options.pop("hidden_act")
    if family == "mpt":
        options = dict(vocab_size=options["vocab_size"], d_model=hidden, n_heads=heads, tie_word_embeddings=options[
            "tie_word_embeddings"], n_layers=options["num_hidden_layers"], attn_config=options["attn_config"])
    decoder(folder, seed, family, dtype=draw.choice((torch.float32, torch.bfloat16, torch.float16)),
            shard=draw.choice((None, "20KB")), gain=draw.choice((1.0, 1.5, 3.0)), change=change, **options)


def drawn_more(draw, family, drawn):
    """Switches of one family or of two."""
    layers, heads = drawn["num_hidden_layers"], drawn["num_attention_heads"]

    def flags(*keys):
        return {key: draw.random() < 0.5 for key in keys}

    def experts(key):
        count = draw.randint(1, 9)
        return {key: count, "num_experts_per_tok": draw.randint(1, count)}

    options = {}
    if family in ("glm", "glm4", "cohere", "cohere2", "nemotron", "seed_oss", "apertus", "qwen3_moe", "olmoe", "granitemoe"):
        options |= flags("attention_bias")
    if family in ("nemotron", "seed_oss"):
        options |= flags("mlp_bias")
    if family == "seed_oss":
        options |= flags("attention_out_bias")
    if family in ("cohere", "cohere2"):
        options |= dict(logit_scale=draw.choice((0.0625, 0.3, 1.0)))
    if family == "cohere":
        options |= flags("use_qk_norm")
    if family in ("cohere2", "exaone4", "ministral"):
        options["layer_types"] = [draw.choice(("sliding_attention", "full_attention")) for _ in range(layers)]
    if family == "falcon":
        options |= flags("bias") | draw.choice((
            dict(), dict(alibi=True, multi_query=False), dict(alibi=True, multi_query=False, parallel_attn=False),
            dict(multi_query=False),
            dict(new_decoder_architecture=True, num_ln_in_parallel_attn=draw.randint(1, 2),
                 num_kv_heads=draw.choice([n for n in range(1, heads + 1) if heads % n == 0]))))
    if family == "mpt":
        options["attn_config"] = dict(clip_qkv=draw.choice((None, 1.0)), softmax_scale=draw.choice((None, 0.4)))
    if family in ("ministral3", "ministral3_images"):
        options["rope_parameters"] = GROWING | {"original_max_position_embeddings": draw.choice((20, 64, 200))}
    if family in ("qwen2_moe", "qwen3_moe"):
        options |= experts("num_experts") | flags("norm_topk_prob", "use_sliding_window") | dict(
            moe_intermediate_size=draw.randint(5, 40), decoder_sparse_step=draw.randint(1, 2),
            mlp_only_layers=draw.choice(([], [0])))
    if family == "qwen2_moe":
        options |= dict(shared_expert_intermediate_size=draw.randint(5, 40), max_window_layers=draw.randint(0, 3)) | flags(
            "qkv_bias")
    if family == "olmoe":
        options |= experts("num_experts") | flags("norm_topk_prob") | dict(clip_qkv=draw.choice((None, 1.0)))
    if family in ("mixtral", "granitemoe"):
        options |= experts("num_local_experts")
    if family in ("deepseek_v2", "deepseek_v3", "glm4_moe"):
        groups, size = draw.randint(1, 4), draw.randint(2, 4)
        kept = draw.randint(1, groups)
        options |= dict(n_routed_experts=groups * size, n_group=groups, topk_group=kept,
                        num_experts_per_tok=draw.randint(1, kept * size), moe_intermediate_size=draw.randint(5, 40),
                        n_shared_experts=draw.randint(1, 3), first_k_dense_replace=draw.randint(0, 2),
                        routed_scaling_factor=draw.choice((0.5, 1.0, 2.5))) | flags("attention_bias")
    if family in ("deepseek_v3", "glm4_moe"):
        options |= flags("norm_topk_prob")
    if family == "glm4_moe":
        options |= flags("use_qk_norm")
    if family in ("deepseek_v2", "deepseek_v3"):
        options |= dict(num_key_value_heads=heads, q_lora_rank=draw.choice((None, 5, 17)), kv_lora_rank=draw.randint(3, 20),
                        qk_nope_head_dim=draw.randint(1, 12), qk_rope_head_dim=draw.choice((4, 6, 10)),
                        v_head_dim=draw.randint(1, 16))
    if family == "deepseek_v2":
        options |= flags("mlp_bias") | dict(topk_method=draw.choice(("greedy", "group_limited_greedy")),
                                            qk_nope_head_dim=2 * draw.randint(1, 6), kv_lora_rank=2 * draw.randint(2, 9))
    if family == "deepseek_v3":
        options |= flags("rope_interleave")
    if family in ("llama4", "llama4_images"):
        options |= experts("num_local_experts") | flags("use_qk_norm", "attn_temperature_tuning", "attention_bias") | dict(
            intermediate_size_mlp=draw.randint(5, 60), interleave_moe_layer_step=draw.randint(1, 2),
            attention_chunk_size=draw.choice((1, 7, 64, 300)), floor_scale=draw.choice((5, 40)),
            no_rope_layers=[draw.randint(0, 1) for _ in range(layers)])
        if draw.random() < 0.3:
            options["layer_types"] = [draw.choice(("chunked_attention", "full_attention")) for _ in range(layers)]
    return options
