# SPDX-License-Identifier: GPL-3.0-or-later
"""More golden data of tests/core/model, made as models.py makes it: the families of decoders after the first four.

    python tests/golden/decoder_models.py                     writes tests/golden/models/*.json
    python tests/golden/decoder_models.py --checkpoints DIR   writes the cases as checkpoint folders (safetensors) too
"""

import transformers as T

from models import case, ids, main, old_rope

EVERYTHING = ("logits", "hidden", "attention")


def neox(**changes):
    sizes = dict(vocab_size=37, hidden_size=36, intermediate_size=29, num_hidden_layers=2, num_attention_heads=3,
                 max_position_embeddings=48, layer_norm_eps=1e-4,
                 rope_parameters={"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5})
    return T.GPTNeoXConfig(**{**sizes, **changes})


def old_neox(config):
    """As the files of Pythia have it."""
    rope = config.pop("rope_parameters")
    config |= {"rotary_emb_base": rope["rope_theta"], "rotary_pct": rope["partial_rotary_factor"]}
    config.pop("attention_bias")


def old_phi(config):
    """As the files of Phi-1 and Phi-2 have it."""
    rope = config.pop("rope_parameters")
    config |= {"rope_theta": rope["rope_theta"], "partial_rotary_factor": rope["partial_rotary_factor"]}
    config["rope_scaling"] = None


def neox_state(name):
    return name.replace("embed_out.", "lm_head.")


def llama_sizes(**changes):
    sizes = dict(vocab_size=37, hidden_size=20, intermediate_size=27, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, head_dim=6, max_position_embeddings=64, rms_norm_eps=1e-3)
    return {**sizes, **changes}


def without(*keys, **more):
    """A configuration of an older generation: rope_theta beside, and these keys absent."""
    def change(config):
        old_rope(config)
        for key in keys:
            config.pop(key)
        config |= more
    return change


def cases():
    yield case("neox", T.GPTNeoXForCausalLM, neox(), [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING, state_name=neox_state)
    yield case("neox-serial-old", T.GPTNeoXForCausalLM,
               neox(use_parallel_residual=False, hidden_act="gelu_fast", rope_parameters={
                   "rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.34}),
               [ids(8, 37)], change_config=old_neox, state_name=neox_state,
               extra={"gpt_neox.layers.0.attention.bias": [1, 1, 48, 48],
                      "gpt_neox.layers.0.attention.masked_bias": [],
                      "gpt_neox.layers.1.attention.rotary_emb.inv_freq": [2]})
    yield case("neox-plain-tied", T.GPTNeoXForCausalLM,
               neox(attention_bias=False, tie_word_embeddings=True, rope_parameters={
                   "rope_type": "linear", "factor": 2.0, "rope_theta": 500.0, "partial_rotary_factor": 1.0}),
               [ids(7, 37)], backbone_only=True)
    yield case("mistral", T.MistralForCausalLM, T.MistralConfig(**llama_sizes(sliding_window=4)), [ids(11, 37)],
               keep=("logits", "attention"))
    yield case("mistral-no-window-old", T.MistralForCausalLM,
               T.MistralConfig(**llama_sizes(sliding_window=None, hidden_size=24, head_dim=None, num_key_value_heads=1)),
               [ids(7, 37)], change_config=without("head_dim"))
    yield case("qwen3", T.Qwen3ForCausalLM, T.Qwen3Config(**llama_sizes()), [ids(9, 37), ids(9, 37, 4)],
               keep=EVERYTHING)
    yield case("qwen3-windows-biases", T.Qwen3ForCausalLM,
               T.Qwen3Config(**llama_sizes(attention_bias=True, use_sliding_window=True, sliding_window=3,
                                           max_window_layers=1, tie_word_embeddings=True)),
               [ids(8, 37)], change_config=without("layer_types"))
    gemma2 = llama_sizes(sliding_window=4, query_pre_attn_scalar=9, attn_logit_softcapping=2.0,
                         final_logit_softcapping=3.0)
    yield case("gemma2", T.Gemma2ForCausalLM, T.Gemma2Config(**gemma2), [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("gemma2-uncapped-old", T.Gemma2ForCausalLM,
               T.Gemma2Config(**{**gemma2, "attn_logit_softcapping": None, "final_logit_softcapping": None,
                                 "sliding_window": 3, "attention_bias": True, "tie_word_embeddings": False}),
               [ids(8, 37)], change_config=without("layer_types", hidden_act="gelu"))
    phi = dict(vocab_size=37, hidden_size=36, intermediate_size=29, num_hidden_layers=2, num_attention_heads=3,
               max_position_embeddings=48, layer_norm_eps=1e-4)
    yield case("phi", T.PhiForCausalLM, T.PhiConfig(**phi), [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("phi-key-norm-old", T.PhiForCausalLM,
               T.PhiConfig(**phi, num_key_value_heads=1, qk_layernorm=True, partial_rotary_factor=0.34),
               [ids(8, 37)], change_config=old_phi)
    gptj = dict(vocab_size=37, n_positions=32, n_embd=36, n_layer=2, n_head=3, rotary_dim=6, layer_norm_epsilon=1e-4)
    yield case("gptj", T.GPTJForCausalLM, T.GPTJConfig(**gptj), [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("gptj-tied-old", T.GPTJForCausalLM,
               T.GPTJConfig(**{**gptj, "rotary_dim": 12, "n_inner": 29, "activation_function": "quick_gelu",
                               "tie_word_embeddings": True}),
               [ids(8, 37)], extra={"transformer.h.0.attn.bias": [1, 1, 32, 32],
                                    "transformer.h.0.attn.masked_bias": []})
    olmo2 = llama_sizes(hidden_size=24)
    olmo2.pop("head_dim")
    yield case("olmo2", T.Olmo2ForCausalLM, T.Olmo2Config(**olmo2), [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("olmo2-biases-old", T.Olmo2ForCausalLM, T.Olmo2Config(**olmo2, attention_bias=True), [ids(8, 37)],
               change_config=old_rope)
    gpt_oss = llama_sizes(num_local_experts=5, num_experts_per_tok=2, sliding_window=4, intermediate_size=11,
                          rope_parameters={"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0,
                                           "truncate": False, "original_max_position_embeddings": 8,
                                           "rope_theta": 150000.0})
    yield case("gpt-oss", T.GptOssForCausalLM, T.GptOssConfig(**gpt_oss), [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    gpt_oss.pop("rope_parameters")
    yield case("gpt-oss-limit-old", T.GptOssForCausalLM,
               T.GptOssConfig(**{**gpt_oss, "swiglu_limit": 0.1, "swiglu_alpha": 1.5, "attention_bias": False,
                                 "tie_word_embeddings": True}),
               [ids(8, 37)], change_config=lambda config: [config.pop("layer_types"), config.pop("rope_parameters")])
    yield case("gpt-oss-packed", T.GptOssForCausalLM,
               T.GptOssConfig(**{**gpt_oss, "hidden_size": 32, "intermediate_size": 32, "num_local_experts": 3}),
               [ids(7, 37)], file_type="BF16", shards=2, packed=("experts.gate_up_proj", "experts.down_proj"),
               change_config=lambda config: config.update(quantization_config={"quant_method": "mxfp4"}))


if __name__ == "__main__":
    main(cases)
