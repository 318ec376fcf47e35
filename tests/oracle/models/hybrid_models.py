# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden data of tests/core/model/families/test_hybrids.cpp, in the form of models.py: tiny models with a state in some
layers, and of Differential Transformer. Logits, weights and implicit matrices are oracle.py's: transformers in float64
throughout.

    python tests/oracle/models/hybrid_models.py                     writes tests/oracle/models/data/hybrid-*.json
    python tests/oracle/models/hybrid_models.py --checkpoints DIR   writes the cases as checkpoint folders (safetensors) too
"""

import functools
import sys
from pathlib import Path

import transformers as T

sys.path.append(str(Path(__file__).resolve().parents[1] / "random"))
import models
import oracle
import random_hybrids
from models import ids, main
from native_models import everything, matrix


def case(name, model_class, config, tokens, **options):
    held = []
    name, data = models.case(f"hybrid-{name}", model_class, config, tokens, prepare=held.append, **options)
    traces = [oracle.run(held[0], sequence, True) for sequence in tokens]
    data["logits"] = everything([trace.logits for trace in traces])
    # A convolution has none.
    data["attention"] = [everything([matrix(trace.sites[site]) for trace in traces])
                         for site, first in enumerate(traces[0].sites) if matrix(first) is not None]
    return name, data


SIZES = dict(vocab_size=37, hidden_size=20, intermediate_size=27, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=6, max_position_embeddings=64, rms_norm_eps=1e-3, pad_token_id=None,
             bos_token_id=None, eos_token_id=None)
WHOLE = {key: value for key, value in SIZES.items() if key != "head_dim"}
STATE = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=3, linear_value_head_dim=5,
             linear_conv_kernel_dim=3)
EXPERTS = dict(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=7, shared_expert_intermediate_size=9)
PARTIAL = {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.67}
BOTH = ["linear_attention", "full_attention"]


def old_partial(config):
    rope = config.pop("rope_parameters")
    config |= {"rope_theta": rope["rope_theta"], "partial_rotary_factor": rope["partial_rotary_factor"], "rope_scaling": None,
               "full_attention_interval": 2}
    config.pop("layer_types")


def qwen_cases(two, one):
    next_case = functools.partial(case, model_class=T.Qwen3NextForCausalLM)
    sizes = SIZES | STATE | dict(layer_types=BOTH, rope_parameters=dict(PARTIAL))
    yield next_case("qwen3-next", config=T.Qwen3NextConfig(**sizes, **EXPERTS), tokens=two, reloaded=True)
    yield next_case("qwen3-next-stacked-biases-old", tokens=one, as_computed=True, change_config=old_partial,
                    config=T.Qwen3NextConfig(**sizes, **EXPERTS, attention_bias=True, norm_topk_prob=False,
                                             mlp_only_layers=[1], tie_word_embeddings=True))
    yield case("qwen3-5", T.Qwen3_5ForCausalLM, T.Qwen3_5TextConfig(**sizes), two)
    dense = T.Qwen3_5TextConfig(**sizes | dict(linear_num_value_heads=2), attention_bias=True, tie_word_embeddings=True)
    yield case("qwen3-5-biases-old", T.Qwen3_5ForCausalLM, dense, one, change_config=old_partial)
    yield case("qwen3-5-moe", T.Qwen3_5MoeForCausalLM, T.Qwen3_5MoeTextConfig(**sizes, **EXPERTS), one, reloaded=True)
    vision = dict(random_hybrids.VISION, out_hidden_size=20)
    tokens = dict(image_token_id=33, video_token_id=34, vision_start_token_id=35, vision_end_token_id=36)
    text = [ids(9, 33)]
    yield case("qwen3-5-images", T.Qwen3_5ForConditionalGeneration,
               T.Qwen3_5Config(text_config=dict(sizes), vision_config=vision, **tokens), text, reloaded=True)
    yield case("qwen3-5-moe-images-tied", T.Qwen3_5MoeForConditionalGeneration,
               T.Qwen3_5MoeConfig(text_config=sizes | EXPERTS, vision_config=vision, **tokens, tie_word_embeddings=True), text,
               as_computed=True)


def published_norms(name):
    """transformers gives a norm of softmax layers the name of another one's, and reads both."""
    return name.replace("layers.1.feedforward_layer_norm.", "layers.1.post_attention_layernorm.")


def olmo_cases(two, one):
    rope = {"rope_type": "default", "rope_theta": 500.0}
    sizes = WHOLE | dict(hidden_size=24, layer_types=BOTH)
    yield case("olmo-hybrid", T.OlmoHybridForCausalLM, T.OlmoHybridConfig(**sizes, **STATE, rope_parameters=rope), two,
               reloaded=True)
    unsaid = ("layer_types", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
              "linear_conv_kernel_dim", "num_key_value_heads")
    yield case("olmo-hybrid-no-positions-unsaid", T.OlmoHybridForCausalLM,
               T.OlmoHybridConfig(**sizes | dict(layer_types=None, num_key_value_heads=None, tie_word_embeddings=True),
                                  attention_bias=True, rope_parameters={"rope_type": "default", "rope_theta": None}),
               one, as_computed=True, change_config=lambda config: [config.pop(key) for key in unsaid])
    yield case("olmo-hybrid-plain-steps", T.OlmoHybridForCausalLM,
               T.OlmoHybridConfig(**sizes, **STATE, linear_allow_neg_eigval=False), one, reloaded=True,
               rename=published_norms)


def minimax_cases(two, one):
    sizes = SIZES | dict(num_hidden_layers=3, num_local_experts=5, num_experts_per_tok=2, block_size=4)
    buffers = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")
    factors = {f"{part}_{which}_factor": 0.4 + 0.3 * n for n, (part, which) in enumerate(
        (part, which) for part in ("full_attn", "linear_attn", "mlp") for which in ("alpha", "beta"))}
    yield case("minimax", T.MiniMaxForCausalLM, T.MiniMaxConfig(**sizes, **factors), two, as_computed=True, dropped=buffers)
    unsaid = ("layer_types", "rope_parameters", "head_dim", "block_size", *factors)
    yield case("minimax-window-unsaid", T.MiniMaxForCausalLM,
               T.MiniMaxConfig(**sizes | dict(head_dim=None, hidden_size=24), sliding_window=4, tie_word_embeddings=True), one,
               as_computed=True, dropped=buffers, change_config=lambda config: [config.pop(key) for key in unsaid],
               extra={"model.layers.1.self_attn.slope_rate": [4, 1, 1]})


def published_plain_layer(name):
    """transformers gives what has no experts the others' name, and reads both."""
    return name.replace("layers.0.block_sparse_moe.", "layers.0.mlp.")


def kimi_cases(two, one):
    sizes = WHOLE | dict(
        num_key_value_heads=4, num_hidden_layers=3, kv_lora_rank=7, qk_nope_head_dim=3, qk_rope_head_dim=4, v_head_dim=5,
        num_local_experts=6, num_experts_per_tok=2, moe_intermediate_size=7, linear_num_heads=3, linear_head_dim=5, linear_conv_kernel_dim=3,
        layer_types=["linear_attention", "full_attention", "linear_attention"])
    yield case("kimi-linear", T.KimiLinearForCausalLM, T.KimiLinearConfig(**sizes, q_lora_rank=6, n_group=3, topk_group=2, n_shared_experts=2), two,
               reloaded=True)
    yield case("kimi-linear-old", T.KimiLinearForCausalLM,
               T.KimiLinearConfig(**sizes, moe_renormalize=False, routed_scaling_factor=0.7), one, reloaded=True,
               change_config=random_hybrids.published_kimi, rename=published_plain_layer)
    yield case("kimi-linear-stacked", T.KimiLinearForCausalLM, T.KimiLinearConfig(**sizes, n_shared_experts=1), one,
               as_computed=True)


def lfm2_cases(two, one):
    sizes = {key: value for key, value in SIZES.items() if key != "rms_norm_eps"} | dict(
        num_hidden_layers=3, norm_eps=1e-3, block_multiple_of=4, rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        layer_types=["conv", "full_attention", "conv"])
    yield case("lfm2", T.Lfm2ForCausalLM, T.Lfm2Config(**sizes), two)
    yield case("lfm2-biases-old", T.Lfm2ForCausalLM,
               T.Lfm2Config(**sizes | dict(conv_L_cache=4, block_auto_adjust_ff_dim=False), conv_bias=True,
                            tie_word_embeddings=False), one, change_config=random_hybrids.published_lfm2)
    yield case("lfm2-scaled-unsaid", T.Lfm2ForCausalLM,
               T.Lfm2Config(**sizes | dict(block_ffn_dim_multiplier=1.7, layer_types=["full_attention"] * 3, head_dim=4)),
               one, change_config=lambda config: [config.pop(key) for key in (
                   "layer_types", "rope_parameters", "conv_L_cache", "conv_bias")] and config.update(rope_theta=500.0))


def differential_cases(two, one):
    sizes = SIZES | dict(rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    yield case("diffllama", T.DiffLlamaForCausalLM, T.DiffLlamaConfig(**sizes), two)
    yield case("diffllama-biases-old", T.DiffLlamaForCausalLM,
               T.DiffLlamaConfig(**sizes | dict(num_key_value_heads=4, tie_word_embeddings=True), attention_bias=True), one,
               change_config=models.old_rope)


def falcon_cases(two, one):
    sizes = SIZES | dict(mamba_d_ssm=20, mamba_n_heads=4, mamba_d_head=5, mamba_n_groups=2, mamba_d_state=3, mamba_d_conv=3,
                         mamba_chunk_size=4, rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    falcon = functools.partial(case, model_class=T.FalconH1ForCausalLM)
    yield falcon("falcon-h1", config=T.FalconH1Config(**sizes, **random_hybrids.FACTORS), tokens=two)
    yield falcon("falcon-h1-norms-biases-old", tokens=one, change_config=models.old_rope,
                 config=T.FalconH1Config(**sizes, mamba_rms_norm=True, mamba_proj_bias=True, projectors_bias=True,
                                         attention_bias=True, mlp_bias=True, tie_word_embeddings=True))
    yield falcon("falcon-h1-norm-last-limited", tokens=one,
                 config=T.FalconH1Config(**sizes | dict(mamba_d_ssm=None, mamba_expand=1, time_step_limit=(0.5, 0.75)),
                                         mamba_rms_norm=True, mamba_norm_before_gate=False, mamba_conv_bias=False))


def nemotron_cases(two, one):
    sizes = {key: value for key, value in SIZES.items() if key not in ("num_hidden_layers", "rms_norm_eps")} | dict(
        layers_block_type=["linear_attention", "mlp", "full_attention", "moe"], layer_norm_epsilon=1e-3, mamba_num_heads=4,
        mamba_head_dim=5, n_groups=2, ssm_state_size=3, conv_kernel=3, chunk_size=4, n_routed_experts=6, num_experts_per_tok=2,
        n_group=3, topk_group=2, moe_intermediate_size=7, moe_shared_expert_intermediate_size=9, routed_scaling_factor=1.5)
    nemotron = functools.partial(case, model_class=T.NemotronHForCausalLM)
    yield nemotron("nemotron-h", config=T.NemotronHConfig(**sizes), tokens=two, reloaded=True,
                   extra={"mtp.layers.0.norm.weight": [20]})
    yield nemotron("nemotron-h-stacked-biases", config=T.NemotronHConfig(**sizes, use_bias=True, mlp_bias=True, norm_topk_prob=False),
                   tokens=one, as_computed=True)
    dense = dict(layers_block_type=["mlp", "linear_attention", "linear_attention", "full_attention"], time_step_min=0.6)
    yield nemotron("nemotron-h-dense-old", config=T.NemotronHConfig(**sizes | dense, use_conv_bias=False, mlp_hidden_act="silu"),
                   tokens=one, reloaded=True, change_config=random_hybrids.published_nemotron)


def jamba_cases(two, one):
    sizes = SIZES | dict(num_hidden_layers=3, attn_layer_period=3, attn_layer_offset=1, num_experts=3, mamba_d_state=3,
                         mamba_d_conv=3, mamba_dt_rank=4)
    yield case("jamba", T.JambaForCausalLM, T.JambaConfig(**sizes), two, reloaded=True)
    yield case("jamba-stacked-biases", T.JambaForCausalLM,
               T.JambaConfig(**sizes | dict(mamba_expand=1, expert_layer_offset=0), mamba_proj_bias=True, mamba_conv_bias=False,
                             tie_word_embeddings=True), one, as_computed=True)
    yield case("jamba-no-experts-auto", T.JambaForCausalLM, T.JambaConfig(**sizes | dict(num_experts=1, mamba_dt_rank="auto")),
               one, change_config=lambda config: config.update(mamba_dt_rank="auto"))


def mamba_cases(two, one):
    sizes = dict(vocab_size=37, hidden_size=20, num_hidden_layers=2, num_heads=8, head_dim=5, state_size=6, n_groups=2,
                 conv_kernel=3, layer_norm_epsilon=1e-3, pad_token_id=None, bos_token_id=None, eos_token_id=None)
    yield case("mamba2", T.Mamba2ForCausalLM, T.Mamba2Config(**sizes), two)
    yield case("mamba2-limits-biases", T.Mamba2ForCausalLM,
               T.Mamba2Config(**sizes | dict(num_heads=6, expand=1, hidden_size=18, head_dim=3, n_groups=3), use_bias=True,
                              use_conv_bias=False, tie_word_embeddings=True, time_step_limit=(0.3, 0.9)), one)
    unsaid = ("layer_norm_epsilon", "expand", "conv_kernel", "use_bias", "use_conv_bias")
    yield case("mamba2-unsaid", T.Mamba2ForCausalLM,
               T.Mamba2Config(**sizes | dict(layer_norm_epsilon=1e-5, conv_kernel=4)), one,
               change_config=lambda config: [config.pop(key) for key in unsaid])


def plain_lists(config):
    """Names of layers as Granite 4 is published."""
    config["layer_types"] = [{"linear_attention": "mamba", "full_attention": "attention"}[kind]
                             for kind in config["layer_types"]]
    config["position_embedding_type"] = "nope"
    config["mamba_d_head"] = "auto"
    config.pop("time_step_limit")


def mamba_hybrid_cases(two, one):
    state = dict(mamba_n_heads=8, mamba_d_head=6, mamba_d_state=5, mamba_n_groups=2, mamba_d_conv=3)
    sizes = WHOLE | dict(num_hidden_layers=3, hidden_size=24) | state
    rope = {"rope_type": "default", "rope_theta": 50.0}
    wide = sizes | dict(hidden_size=32, mamba_d_head=8)  # heads of 8, half of which turns
    yield case("bamba", T.BambaForCausalLM, T.BambaConfig(**wide, attn_layer_indices=[1], rope_parameters=dict(rope)), two)
    unsaid = ("rope_parameters", "mamba_n_groups", "mamba_d_conv", "mamba_expand", "num_key_value_heads", "time_step_limit")
    yield case("bamba-biases-unsaid", T.BambaForCausalLM,
               T.BambaConfig(**wide | dict(mamba_n_groups=1, mamba_d_conv=4, num_attention_heads=8, num_key_value_heads=8),
                             attn_layer_indices=[0, 2], mamba_proj_bias=True, mamba_conv_bias=False, mlp_bias=True,
                             tie_word_embeddings=True), one,
               change_config=lambda config: [config.pop(key) for key in unsaid])
    yield case("bamba-attention-biases-old", T.BambaForCausalLM,
               T.BambaConfig(**wide, attn_layer_indices=[1], attention_bias=True, rope_parameters=dict(rope)), one,
               change_config=random_hybrids.published_bamba)
    fifths = sizes | dict(hidden_size=20, mamba_expand=1, mamba_n_heads=4, mamba_d_head=5)  # heads of 5, of which 4 turn
    yield case("bamba-partial-limits", T.BambaForCausalLM,
               T.BambaConfig(**fifths, attn_layer_indices=[0, 7], rope_parameters=rope | {"partial_rotary_factor": 0.8},
                             mamba_proj_bias=True, mamba_conv_bias=False, time_step_limit=(0.5, 0.75)), one)
    kinds = ["linear_attention", "full_attention", "linear_attention"]
    scales = dict(embedding_multiplier=3.0, attention_multiplier=0.4, residual_multiplier=0.7, logits_scaling=1.5)
    experts = dict(num_local_experts=5, num_experts_per_tok=2, shared_intermediate_size=9)
    yield case("granitemoehybrid", T.GraniteMoeHybridForCausalLM,
               T.GraniteMoeHybridConfig(**sizes, **scales, **experts, layer_types=kinds, position_embedding_type="rope",
                                        rope_parameters=dict(rope)), two, as_computed=True)
    yield case("granitemoehybrid-dense-old", T.GraniteMoeHybridForCausalLM,
               T.GraniteMoeHybridConfig(**sizes, **scales, layer_types=kinds, num_local_experts=0, num_experts_per_tok=0,
                                        shared_intermediate_size=11, attention_bias=True, tie_word_embeddings=True), one,
               change_config=plain_lists)
    yield case("granitemoehybrid-limits", T.GraniteMoeHybridForCausalLM,
               T.GraniteMoeHybridConfig(**sizes, **experts, layer_types=kinds, mamba_proj_bias=True,
                                        time_step_limit=(0.3, 0.9)), one, reloaded=True)
    yield case("granitemoehybrid-dense-rotary-old", T.GraniteMoeHybridForCausalLM,
               T.GraniteMoeHybridConfig(**sizes, **scales, layer_types=kinds, num_local_experts=0, num_experts_per_tok=0,
                                        shared_intermediate_size=11, position_embedding_type="rope", mamba_conv_bias=False,
                                        rope_parameters=dict(rope)), one, change_config=random_hybrids.published_granite)


def cases():
    two, one = [ids(9, 37), ids(9, 37, 1)], [ids(13, 37)]
    yield from qwen_cases(two, one)
    yield from olmo_cases(two, one)
    yield from minimax_cases(two, one)
    yield from kimi_cases(two, one)
    yield from lfm2_cases(two, one)
    yield from falcon_cases(two, one)
    yield from nemotron_cases(two, one)
    yield from jamba_cases(two, one)
    yield from mamba_cases(two, one)
    yield from mamba_hybrid_cases(two, one)
    yield from differential_cases(two, one)


if __name__ == "__main__":
    main(cases)
