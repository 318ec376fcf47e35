# SPDX-License-Identifier: GPL-3.0-or-later
"""Decoders after the first four families: classes, configurations and sizes, and a random checkpoint of one."""

import copy
import functools

import torch
import transformers as T

from random_models import randomise

SPECIAL = dict(bos_token_id=0, eos_token_id=1, pad_token_id=None)

LIKE_LLAMA = dict(
    vocab_size=103, hidden_size=48, intermediate_size=67, num_hidden_layers=3, num_attention_heads=6,
    num_key_value_heads=2, head_dim=10, max_position_embeddings=256, rms_norm_eps=1e-3, bos_token_id=0, eos_token_id=1,
)
BESIDE = dict(
    vocab_size=101, hidden_size=60, intermediate_size=83, num_hidden_layers=3, num_attention_heads=5,
    max_position_embeddings=256, layer_norm_eps=1e-4, bos_token_id=0, eos_token_id=1,
)
WHOLE = {key: value for key, value in LIKE_LLAMA.items() if key != "head_dim"} | dict(hidden_size=60) | SPECIAL
TWO_ROPES = {"full_attention": {"rope_type": "default", "rope_theta": 3000.0},
             "sliding_attention": {"rope_type": "default", "rope_theta": 200.0}}
IMAGES = dict(vision_config=dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
                                 image_size=8, patch_size=4), mm_tokens_per_image=1, image_token_index=102)
LAYER_NORMS = {key: value for key, value in WHOLE.items() if key != "rms_norm_eps"} | dict(layer_norm_eps=1e-4)
FALCON = dict(vocab_size=101, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, max_position_embeddings=256,
              layer_norm_epsilon=1e-4, bos_token_id=0, eos_token_id=1)
GROWING = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 40,
           "llama_4_scaling_beta": 0.3, "mscale": 1.0, "mscale_all_dim": 1.0}
EXPERTS = dict(n_routed_experts=12, num_experts_per_tok=3, moe_intermediate_size=23, first_k_dense_replace=1)
DEEPSEEK = {key: value for key, value in LIKE_LLAMA.items() if key != "head_dim"} | EXPERTS | SPECIAL | dict(
    num_key_value_heads=6, q_lora_rank=17, kv_lora_rank=13, qk_nope_head_dim=7, qk_rope_head_dim=6, v_head_dim=11)
GROUPS = dict(n_group=4, topk_group=2)
LLAMA4 = LIKE_LLAMA | SPECIAL | dict(
    num_hidden_layers=4, num_local_experts=5, num_experts_per_tok=2, intermediate_size=23, intermediate_size_mlp=67,
    no_rope_layer_interval=2, interleave_moe_layer_step=2, attention_chunk_size=31, floor_scale=20, attn_scale=0.4)
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
    "gemma": (T.GemmaForCausalLM, T.GemmaConfig, LIKE_LLAMA),
    "gemma3": (T.Gemma3ForCausalLM, T.Gemma3TextConfig, LIKE_LLAMA | dict(
        sliding_window=31, query_pre_attn_scalar=7, sliding_window_pattern=2, rope_parameters=TWO_ROPES)),
    "phi3": (T.Phi3ForCausalLM, T.Phi3Config, WHOLE),
    "smollm3": (T.SmolLM3ForCausalLM, T.SmolLM3Config, WHOLE | dict(no_rope_layer_interval=2)),
    "olmo": (T.OlmoForCausalLM, T.OlmoConfig, {k: v for k, v in WHOLE.items() if k != "rms_norm_eps"}),
    "olmo3": (T.Olmo3ForCausalLM, T.Olmo3Config, WHOLE | dict(
        sliding_window=31, num_hidden_layers=4, rope_parameters=TWO_ROPES)),
    "granite": (T.GraniteForCausalLM, T.GraniteConfig, WHOLE | dict(
        embedding_multiplier=3.5, attention_multiplier=0.2, residual_multiplier=0.4, logits_scaling=1.7)),
    "starcoder2": (T.Starcoder2ForCausalLM, T.Starcoder2Config, {
        k: v for k, v in WHOLE.items() if k != "rms_norm_eps"} | dict(norm_epsilon=1e-4)),
    "stablelm": (T.StableLmForCausalLM, T.StableLmConfig, {
        k: v for k, v in WHOLE.items() if k != "rms_norm_eps"} | dict(layer_norm_eps=1e-4)),
    "glm": (T.GlmForCausalLM, T.GlmConfig, LIKE_LLAMA | SPECIAL | dict(head_dim=12)),
    "glm4": (T.Glm4ForCausalLM, T.Glm4Config, LIKE_LLAMA | SPECIAL | dict(head_dim=12)),
    "cohere": (T.CohereForCausalLM, T.CohereConfig, LAYER_NORMS | dict(logit_scale=0.2)),
    "cohere2": (T.Cohere2ForCausalLM, T.Cohere2Config, LAYER_NORMS | dict(logit_scale=0.2, sliding_window=31)),
    "falcon": (T.FalconForCausalLM, T.FalconConfig, FALCON),
    "mpt": (T.MptForCausalLM, T.MptConfig, dict(
        vocab_size=101, d_model=60, n_heads=5, n_layers=3, max_seq_len=256, layer_norm_epsilon=1e-4, bos_token_id=0,
        eos_token_id=1)),
    "nemotron": (T.NemotronForCausalLM, T.NemotronConfig, {
        k: v for k, v in LIKE_LLAMA.items() if k != "rms_norm_eps"} | dict(norm_eps=1e-4, head_dim=12)),
    "exaone4": (T.Exaone4ForCausalLM, T.Exaone4Config, LIKE_LLAMA | dict(sliding_window=31)),
    "ministral": (T.MinistralForCausalLM, T.MinistralConfig, LIKE_LLAMA | dict(sliding_window=31)),
    "ministral3": (T.Ministral3ForCausalLM, T.Ministral3Config, LIKE_LLAMA | SPECIAL | dict(rope_parameters=GROWING)),
    "seed_oss": (T.SeedOssForCausalLM, T.SeedOssConfig, LIKE_LLAMA | SPECIAL),
    "apertus": (T.ApertusForCausalLM, T.ApertusConfig, WHOLE),
    "mixtral": (T.MixtralForCausalLM, T.MixtralConfig, LIKE_LLAMA | dict(num_local_experts=5, intermediate_size=33)),
    "qwen2_moe": (T.Qwen2MoeForCausalLM, T.Qwen2MoeConfig, WHOLE | dict(
        num_experts=7, num_experts_per_tok=3, moe_intermediate_size=23, shared_expert_intermediate_size=31)),
    "qwen3_moe": (T.Qwen3MoeForCausalLM, T.Qwen3MoeConfig, LIKE_LLAMA | dict(
        num_experts=7, num_experts_per_tok=3, moe_intermediate_size=23)),
    "olmoe": (T.OlmoeForCausalLM, T.OlmoeConfig, WHOLE | dict(num_experts=7, num_experts_per_tok=3, intermediate_size=33)),
    "granitemoe": (T.GraniteMoeForCausalLM, T.GraniteMoeConfig, WHOLE | dict(
        num_local_experts=5, intermediate_size=33, embedding_multiplier=3.5, attention_multiplier=0.2,
        residual_multiplier=0.4, logits_scaling=1.7)),
    "deepseek_v2": (T.DeepseekV2ForCausalLM, T.DeepseekV2Config, DEEPSEEK | dict(
        qk_nope_head_dim=8, kv_lora_rank=14)),  # of odd ones transformers makes no complex numbers
    "deepseek_v3": (T.DeepseekV3ForCausalLM, T.DeepseekV3Config, DEEPSEEK | GROUPS),
    "glm4_moe": (T.Glm4MoeForCausalLM, T.Glm4MoeConfig, LIKE_LLAMA | SPECIAL | EXPERTS | GROUPS | dict(head_dim=12)),
    "llama4": (T.Llama4ForCausalLM, T.Llama4TextConfig, LLAMA4),
}


def gemma3_images(**options):
    """The same text tower in a configuration with images."""
    tie = options.get("tie_word_embeddings", True)
    return T.Gemma3Config(text_config=options, **IMAGES, tie_word_embeddings=tie)


def mistral_images(kind, **options):
    """A Mistral or Ministral 3 in a configuration with images."""
    tie = options.get("tie_word_embeddings", True)
    return T.Mistral3Config(text_config=dict(options, model_type=kind), tie_word_embeddings=tie, image_token_index=102,
                            vision_config=IMAGES["vision_config"] | dict(model_type="pixtral", head_dim=4))


def llama4_images(**options):
    """A Llama 4 in a configuration with images."""
    vision = IMAGES["vision_config"] | dict(intermediate_size=32, vision_output_dim=8, projector_input_dim=8,
                                            projector_output_dim=8)
    return T.Llama4Config(text_config=options, image_token_index=102, vision_config=vision)


for kind in ("mistral", "ministral3"):
    FAMILIES[kind + "_images"] = (T.Mistral3ForConditionalGeneration, functools.partial(mistral_images, kind),
                                  FAMILIES[kind][2])
FAMILIES["llama4_images"] = (T.Llama4ForConditionalGeneration, llama4_images, FAMILIES["llama4"][2])
FAMILIES["gemma3_images"] = (T.Gemma3ForConditionalGeneration, gemma3_images, FAMILIES["gemma3"][2])


def settle(model, family, seed, gain):
    """What randomise leaves: one matrix of query, key and value, gains that are 1 + w, experts, sinks."""
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("qkv_proj.weight"):
                queries, groups = model.config.num_attention_heads, model.config.num_key_value_heads
                parameter.unflatten(0, (queries + 2 * groups, -1))[:queries + groups] *= gain
            elif "query_key_value.weight" in name and family == "falcon":
                groups = parameter.unflatten(0, (falcon_groups(model.config), -1, model.config.head_dim))
                groups[:, :-1] *= gain
            elif name.endswith("Wqkv.weight"):
                parameter[:2 * model.config.d_model] *= gain
            elif "query_key_value.weight" in name:
                heads = parameter.unflatten(0, (model.config.num_attention_heads, 3, -1))
                heads[:, :2] *= gain
            elif any(part in name for part in ("q_norm", "k_norm", "q_layernorm", "k_layernorm")) and "bias" not in name:
                parameter *= gain
            if family.startswith(("gemma", "nemotron")) and "norm" in name and name.endswith("weight"):
                parameter -= 1
            elif name.endswith("sinks"):
                parameter.copy_(2 * torch.randn(parameter.shape, generator=generator))
            elif "experts." in name and parameter.dim() == 3:
                inputs = parameter.shape[1 if family.startswith(("gpt_oss", "llama4")) else 2]
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / inputs ** 0.5)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(0.2 * torch.randn(buffer.shape, generator=generator))
    return model


def falcon_groups(config):
    """How often a key and a value come in Falcon's one matrix, after the queries that they are for."""
    if config.new_decoder_architecture:
        return config.num_kv_heads
    return 1 if config.multi_query else config.num_attention_heads


def decoder(folder, seed, family, dtype=torch.float32, shard=None, gain=1.5, change=None, as_computed=False, **options):
    """as_computed: the tensors are transformers' own, of all experts in one, not those of published files."""
    model_class, config_class, sizes = FAMILIES[family]
    config = config_class(**copy.deepcopy(sizes | options))
    config._experts_implementation = "eager"
    model = settle(randomise(model_class(config), seed, gain), family, seed, gain)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard or "1GB", save_original_format=not as_computed)
    if change:
        change(folder)
