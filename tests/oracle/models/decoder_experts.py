# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of decoder_models.py: mixtures of experts, with latent attention and without."""

import transformers as T

from decoder_settings import EVERYTHING, llama_sizes, old_partial, without
from models import case, ids, old_rope


def expert_cases():
    sizes = llama_sizes(hidden_size=24, num_hidden_layers=3, intermediate_size=11, pad_token_id=0)
    whole = {key: value for key, value in sizes.items() if key != "head_dim"}
    texts = [ids(9, 37), ids(9, 37, 1)]
    yield case("mixtral", T.MixtralForCausalLM, T.MixtralConfig(**sizes, num_local_experts=5), texts, keep=EVERYTHING,
               reloaded=True)
    yield case("mixtral-stacked-old", T.MixtralForCausalLM,
               T.MixtralConfig(**whole, num_local_experts=4, num_experts_per_tok=3, sliding_window=4, hidden_act="gelu",
                               tie_word_embeddings=True), [ids(8, 37)], change_config=without("head_dim"), as_computed=True,
               reloaded=True)
    qwen = dict(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=7)
    yield case("qwen2-moe", T.Qwen2MoeForCausalLM,
               T.Qwen2MoeConfig(**whole, **qwen, shared_expert_intermediate_size=9, mlp_only_layers=[1]), texts,
               keep=EVERYTHING, reloaded=True)
    yield case("qwen2-moe-stacked-windows-old", T.Qwen2MoeForCausalLM,
               T.Qwen2MoeConfig(**{**whole, "num_hidden_layers": 4}, **qwen, shared_expert_intermediate_size=9,
                                decoder_sparse_step=2, norm_topk_prob=True, qkv_bias=False, use_sliding_window=True,
                                sliding_window=3, max_window_layers=2, tie_word_embeddings=True),
               [ids(8, 37)], keep=("logits", "attention"), as_computed=True, reloaded=True,
               change_config=without("layer_types"))
    yield case("qwen3-moe", T.Qwen3MoeForCausalLM, T.Qwen3MoeConfig(**sizes, **qwen, mlp_only_layers=[0]), texts,
               keep=EVERYTHING, reloaded=True)
    yield case("qwen3-moe-stacked-old", T.Qwen3MoeForCausalLM,
               T.Qwen3MoeConfig(**sizes, **qwen, norm_topk_prob=True, attention_bias=True, use_sliding_window=True,
                                sliding_window=4, tie_word_embeddings=True),
               [ids(8, 37)], as_computed=True, reloaded=True,
               change_config=without("num_local_experts", num_experts=5))
    olmoe = dict(num_experts=5, num_experts_per_tok=2)
    yield case("olmoe", T.OlmoeForCausalLM, T.OlmoeConfig(**whole, **olmoe, clip_qkv=0.5), texts, keep=EVERYTHING,
               reloaded=True)
    yield case("olmoe-stacked-old", T.OlmoeForCausalLM,
               T.OlmoeConfig(**whole, **olmoe, norm_topk_prob=True, attention_bias=True, tie_word_embeddings=True),
               [ids(8, 37)], change_config=without("clip_qkv"), as_computed=True, reloaded=True)
    granite = dict(embedding_multiplier=3.0, attention_multiplier=0.6, residual_multiplier=0.4, logits_scaling=1.7)
    yield case("granitemoe", T.GraniteMoeForCausalLM, T.GraniteMoeConfig(**sizes, **granite, num_local_experts=5), texts,
               keep=EVERYTHING, reloaded=True)
    yield case("granitemoe-renamed-old", T.GraniteMoeForCausalLM,
               T.GraniteMoeConfig(**whole, num_local_experts=4, num_experts_per_tok=3, attention_bias=True,
                                  tie_word_embeddings=True), [ids(8, 37)], change_config=old_rope, as_computed=True,
               reloaded=True)


DEEPSEEK = llama_sizes(hidden_size=24, num_hidden_layers=3, num_key_value_heads=4, kv_lora_rank=9, qk_nope_head_dim=6,
                       qk_rope_head_dim=8, v_head_dim=5, n_routed_experts=8, num_experts_per_tok=3,
                       moe_intermediate_size=7, first_k_dense_replace=1, pad_token_id=0)
DEEPSEEK.pop("head_dim")
DEEPSEEK_YARN = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 16,
                 "beta_fast": 8.0, "beta_slow": 1.0, "mscale": 1.1, "mscale_all_dim": 0.7}


def old_deepseek(config):
    """As on the hub: what transformers derives from other sizes is not in there."""
    old_rope(config)
    for key in ("head_dim", "qk_head_dim"):
        config.pop(key, None)


def latent_cases():
    texts = [ids(9, 37), ids(9, 37, 1)]
    yield case("deepseek-v2", T.DeepseekV2ForCausalLM,
               T.DeepseekV2Config(**DEEPSEEK, q_lora_rank=11, topk_method="group_limited_greedy", n_group=4, topk_group=2,
                                  routed_scaling_factor=1.7, rope_parameters=dict(DEEPSEEK_YARN)),
               texts, keep=EVERYTHING, reloaded=True)
    # transformers scales the scores of other kinds than YaRN, too; norm_topk_prob does nothing.
    yield case("deepseek-v2-stacked-old", T.DeepseekV2ForCausalLM,
               T.DeepseekV2Config(**DEEPSEEK, q_lora_rank=None, n_shared_experts=1, attention_bias=True, mlp_bias=True,
                                  norm_topk_prob=True, tie_word_embeddings=True, rope_parameters={
                                      "rope_type": "linear", "rope_theta": 500.0, "factor": 3.0, "mscale_all_dim": 0.6}),
               [ids(8, 37)], change_config=old_deepseek, as_computed=True, reloaded=True)
    yield case("deepseek-v3", T.DeepseekV3ForCausalLM,
               T.DeepseekV3Config(**DEEPSEEK, q_lora_rank=11, n_group=4, topk_group=2, rope_parameters=dict(DEEPSEEK_YARN)),
               texts, keep=EVERYTHING, reloaded=True,
               extra={"model.layers.3.eh_proj.weight": [24, 48], "model.layers.3.enorm.weight": [24]})
    yield case("deepseek-v3-stacked-halves-old", T.DeepseekV3ForCausalLM,
               T.DeepseekV3Config(**DEEPSEEK, q_lora_rank=None, n_group=1, topk_group=1, rope_interleave=False,
                                  norm_topk_prob=False, attention_bias=True, tie_word_embeddings=True, hidden_act="gelu",
                                  routed_scaling_factor=0.7, rope_parameters={
                                      "rope_type": "dynamic", "rope_theta": 500.0, "factor": 3.0}, num_mtp_layers=0),
               [ids(80, 37)], change_config=old_deepseek, as_computed=True, reloaded=True)
    yield case("kimi-k2-old", T.DeepseekV3ForCausalLM,
               T.DeepseekV3Config(**DEEPSEEK, q_lora_rank=11, n_group=1, topk_group=1, num_mtp_layers=0, rope_parameters={
                   **DEEPSEEK_YARN, "beta_fast": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}),
               [ids(9, 37)], reloaded=True,
               change_config=lambda config: [old_deepseek(config), config.update(model_type="kimi_k2")])


def glm4_moe_cases():
    sizes = llama_sizes(hidden_size=24, num_hidden_layers=3, head_dim=8, n_routed_experts=6, num_experts_per_tok=2,
                        moe_intermediate_size=7, first_k_dense_replace=1, pad_token_id=0)
    yield case("glm4-moe", T.Glm4MoeForCausalLM,
               T.Glm4MoeConfig(**sizes, n_group=3, topk_group=2, use_qk_norm=True, attention_bias=True,
                               routed_scaling_factor=1.7),
               [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING, reloaded=True,
               extra={"model.layers.3.eh_proj.weight": [24, 48]})
    yield case("glm4-moe-stacked-old", T.Glm4MoeForCausalLM,
               T.Glm4MoeConfig(**sizes, n_shared_experts=2, norm_topk_prob=False, tie_word_embeddings=True,
                               rope_parameters={"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.75}),
               [ids(8, 37)], change_config=old_partial, as_computed=True, reloaded=True)


def llama4_cases():
    sizes = llama_sizes(hidden_size=24, num_hidden_layers=4, intermediate_size=11, intermediate_size_mlp=17,
                        num_local_experts=5, no_rope_layer_interval=2, interleave_moe_layer_step=2, attention_chunk_size=4,
                        floor_scale=3, attn_scale=0.4, pad_token_id=0)
    yield case("llama4", T.Llama4ForCausalLM, T.Llama4TextConfig(**sizes, num_experts_per_tok=2), [ids(11, 37), ids(11, 37, 1)],
               keep=EVERYTHING)
    yield case("llama4-plain-old", T.Llama4ForCausalLM,
               T.Llama4TextConfig(**{**sizes, "num_hidden_layers": 2}, use_qk_norm=False, attn_temperature_tuning=False,
                                  moe_layers=[0], no_rope_layers=[1, 0], attention_bias=True, tie_word_embeddings=True,
                                  layer_types=["full_attention", "chunked_attention"], rope_parameters={
                                      "rope_type": "llama3", "factor": 8.0, "rope_theta": 50.0, "low_freq_factor": 1.0,
                                      "high_freq_factor": 4.0, "original_max_position_embeddings": 32}),
               [ids(12, 37)], keep=("logits", "attention"), change_config=old_rope)
    images = dict(vision_config=dict(hidden_size=8, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
                                     image_size=8, patch_size=4, vision_output_dim=8, projector_input_dim=8,
                                     projector_output_dim=8), image_token_index=36)

    def old_images(config):
        old_rope(config["text_config"])
        for key in ("layer_types", "moe_layers"):
            config["text_config"].pop(key)
        config["text_config"]["no_rope_layers"] = []

    yield case("llama4-images-old", T.Llama4ForConditionalGeneration,
               T.Llama4Config(text_config=dict(sizes, rope_parameters={"rope_type": "yarn", "factor": 4.0, "rope_theta": 100.0,
                                                                       "original_max_position_embeddings": 16}), **images),
               [ids(11, 36)], change_config=old_images)
