# SPDX-License-Identifier: GPL-3.0-or-later
"""More golden data of tests/core/model, made as models.py makes it: the families of decoders after the first four.

    python tests/oracle/models/decoder_models.py                     writes tests/oracle/models/data/*.json
    python tests/oracle/models/decoder_models.py --checkpoints DIR   writes the cases as checkpoint folders (safetensors) too
"""

import transformers as T

from decoder_experts import expert_cases, glm4_moe_cases, latent_cases, llama4_cases
from decoder_settings import EVERYTHING, llama_sizes, old_partial, without
from models import case, ids, main, old_rope


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


def old_two_ropes(config):
    """As the files of Gemma 3 and OLMo 3 have it: rope_scaling is for the layers without a window."""
    full, windowed = (config["rope_parameters"].pop(kind) for kind in ("full_attention", "sliding_attention"))
    config.pop("rope_parameters")
    config["rope_theta"] = full.pop("rope_theta")
    config["rope_scaling"] = full if full["rope_type"] != "default" else None
    if config["model_type"] == "gemma3_text":
        config["rope_local_base_freq"] = windowed["rope_theta"]
    config.pop("layer_types")


def gemma3(**changes):
    sizes = llama_sizes(sliding_window=4, num_hidden_layers=3, sliding_window_pattern=2, query_pre_attn_scalar=9,
                        rope_parameters={
                            "full_attention": {"rope_type": "linear", "factor": 2.5, "rope_theta": 500.0},
                            "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}})
    return {**sizes, **changes}


def gemma3_cases():
    yield case("gemma3", T.Gemma3ForCausalLM, T.Gemma3TextConfig(**gemma3(final_logit_softcapping=30.0)),
               [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("gemma3-old", T.Gemma3ForCausalLM,
               T.Gemma3TextConfig(**gemma3(attention_bias=True, tie_word_embeddings=False)), [ids(8, 37)],
               change_config=old_two_ropes)
    # EmbeddingGemma's kind: half the window on either side.
    both = gemma3(use_bidirectional_attention=True, sliding_window=6)
    yield case("gemma3-both-ways", T.Gemma3ForCausalLM, T.Gemma3TextConfig(**both), [ids(9, 37), ids(9, 37, 1)],
               keep=EVERYTHING)
    yield case("gemma3-both-ways-lengths", T.Gemma3ForCausalLM, T.Gemma3TextConfig(**both),
               [ids(9, 37), ids(9, 37, 1)], lengths=[9, 6])
    # Keys that files with images leave out: eight heads, four of keys. A cap of the logits and a head in there are not theirs.
    text = gemma3(num_attention_heads=8, num_key_value_heads=4, hidden_size=24, final_logit_softcapping=3.0,
                  tie_word_embeddings=False)
    images = dict(vision_config=dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
                                     image_size=8, patch_size=4), mm_tokens_per_image=1, image_token_index=36)

    def old_images(config):
        old_two_ropes(config["text_config"])
        for key in ("num_attention_heads", "num_key_value_heads"):
            config["text_config"].pop(key)

    def new_name(name):
        return "model." + name.replace("language_model.model.", "language_model.")

    for name, rename, change in (("gemma3-images-old", None, old_images), ("gemma3-images", new_name, None)):
        yield case(name, T.Gemma3ForConditionalGeneration, T.Gemma3Config(text_config=dict(text), **images), [ids(9, 36)],
                   rename=rename, change_config=change, state_name=new_name)


def phi3_cases():
    phi3 = llama_sizes(hidden_size=24, pad_token_id=0)
    phi3.pop("head_dim")
    longrope = {"rope_type": "longrope", "rope_theta": 100.0, "short_factor": [1.0, 1.3], "long_factor": [1.0, 4.5],
                "partial_rotary_factor": 0.75}
    yield case("phi3", T.Phi3ForCausalLM, T.Phi3Config(**phi3, sliding_window=4, rope_parameters={
        "rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.75}), [ids(9, 37), ids(9, 37, 1)],
        keep=EVERYTHING)
    yield case("phi3-longrope-old", T.Phi3ForCausalLM,
               T.Phi3Config(**phi3, rope_parameters=dict(longrope), original_max_position_embeddings=8,
                            tie_word_embeddings=True),
               [ids(12, 37)], change_config=old_partial)
    # The length inside the object is not read: it is 4096 where the file has none beside.
    yield case("phi3-longrope-unsaid", T.Phi3ForCausalLM, T.Phi3Config(**phi3, rope_parameters=dict(longrope)),
               [ids(12, 37)], change_config=lambda config: [
                   config.pop("original_max_position_embeddings"),
                   config["rope_parameters"].update(original_max_position_embeddings=8)])


def like_llama_cases():
    sizes = llama_sizes(hidden_size=24, num_hidden_layers=3, pad_token_id=0)
    sizes.pop("head_dim")
    yield case("smollm3", T.SmolLM3ForCausalLM,
               T.SmolLM3Config(**sizes, no_rope_layers=[1, 0, 1], use_sliding_window=True, sliding_window=4),
               [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("smollm3-old", T.SmolLM3ForCausalLM,
               T.SmolLM3Config(**sizes, no_rope_layer_interval=2, attention_bias=True, mlp_bias=True,
                               tie_word_embeddings=False),
               [ids(8, 37)], change_config=without("no_rope_layers", "layer_types"))
    granite = dict(embedding_multiplier=3.0, attention_multiplier=0.6, residual_multiplier=0.4, logits_scaling=1.7)
    yield case("granite", T.GraniteForCausalLM, T.GraniteConfig(**sizes, **granite, attention_bias=True),
               [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("granite-old", T.GraniteForCausalLM,
               T.GraniteConfig(**sizes, mlp_bias=True, tie_word_embeddings=True), [ids(8, 37)], change_config=without(
                   "embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"))
    yield case("olmo3", T.Olmo3ForCausalLM,
               T.Olmo3Config(**sizes, head_dim=24, sliding_window=4, rope_parameters={
                   "full_attention": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1000.0, "beta_fast": 8,
                                      "beta_slow": 2, "original_max_position_embeddings": 64, "truncate": False},
                   "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}},
                             layer_types=["full_attention", "sliding_attention", "full_attention"]),
               [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("olmo3-old", T.Olmo3ForCausalLM,
               T.Olmo3Config(**{**sizes, "num_hidden_layers": 4}, sliding_window=3, attention_bias=True, rope_parameters={
                   "full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 700.0},
                   "sliding_attention": {"rope_type": "default", "rope_theta": 500000.0}}),
               [ids(8, 37)], change_config=old_two_ropes)
    sizes.pop("rms_norm_eps")
    yield case("olmo", T.OlmoForCausalLM, T.OlmoConfig(**sizes, clip_qkv=0.3), [ids(9, 37), ids(9, 37, 1)],
               keep=EVERYTHING)
    yield case("olmo-old", T.OlmoForCausalLM, T.OlmoConfig(**sizes, attention_bias=True, tie_word_embeddings=True),
               [ids(8, 37)], change_config=without("clip_qkv"))
    yield case("starcoder2", T.Starcoder2ForCausalLM, T.Starcoder2Config(**sizes, norm_epsilon=1e-3, sliding_window=4),
               [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("starcoder2-old", T.Starcoder2ForCausalLM,
               T.Starcoder2Config(**sizes, use_bias=False, tie_word_embeddings=False, hidden_act="gelu"), [ids(8, 37)],
               change_config=without(activation_function="gelu_new", layer_norm_epsilon=1.0))
    stablelm = {**sizes, "hidden_size": 32, "layer_norm_eps": 1e-3}
    yield case("stablelm", T.StableLmForCausalLM, T.StableLmConfig(**stablelm, use_qkv_bias=True, rope_parameters={
        "rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}), [ids(9, 37), ids(9, 37, 1)],
        keep=EVERYTHING)
    yield case("stablelm-key-norms-parallel-old", T.StableLmForCausalLM,
               T.StableLmConfig(**stablelm, qk_layernorm=True, use_parallel_residual=True, tie_word_embeddings=True),
               [ids(8, 37), ids(8, 37, 2)], keep=("logits", "attention"), change_config=without())


def glm_cases():
    partial = {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.75}
    glm = llama_sizes(head_dim=8, pad_token_id=0)
    yield case("glm", T.GlmForCausalLM, T.GlmConfig(**glm, rope_parameters=dict(partial)), [ids(9, 37), ids(9, 37, 1)],
               keep=EVERYTHING)
    yield case("glm-scaled-old", T.GlmForCausalLM,
               T.GlmConfig(**glm, attention_bias=False, tie_word_embeddings=True,
                           rope_parameters={**partial, "rope_type": "linear", "factor": 2.5}),
               [ids(8, 37)], change_config=old_partial)
    yield case("glm4", T.Glm4ForCausalLM, T.Glm4Config(**glm, rope_parameters=dict(partial)), [ids(9, 37), ids(9, 37, 1)],
               keep=EVERYTHING)
    yield case("glm4-unsaid-old", T.Glm4ForCausalLM, T.Glm4Config(**glm, hidden_act="gelu"), [ids(8, 37)],
               change_config=lambda config: [old_partial(config), config.pop("partial_rotary_factor"),
                                             config.pop("rope_theta")])


def cohere_cases():
    sizes = llama_sizes(hidden_size=24, num_hidden_layers=3, layer_norm_eps=1e-3, pad_token_id=0)
    for key in ("head_dim", "rms_norm_eps"):
        sizes.pop(key)
    yield case("cohere", T.CohereForCausalLM, T.CohereConfig(**sizes, logit_scale=0.3), [ids(9, 37), ids(9, 37, 1)],
               keep=EVERYTHING)
    yield case("cohere-key-norms-old", T.CohereForCausalLM,
               T.CohereConfig(**sizes, use_qk_norm=True, attention_bias=True, tie_word_embeddings=False),
               [ids(8, 37), ids(8, 37, 2)], keep=("logits", "attention"),
               change_config=lambda config: [old_rope(config), config.pop("rope_theta"), config.pop("logit_scale")])
    yield case("cohere2", T.Cohere2ForCausalLM,
               T.Cohere2Config(**sizes, logit_scale=0.3, sliding_window=4,
                               layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
               [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("cohere2-old", T.Cohere2ForCausalLM,
               T.Cohere2Config(**sizes, attention_bias=True, tie_word_embeddings=False, sliding_window=3,
                               sliding_window_pattern=2),
               [ids(8, 37)], change_config=without("layer_types", sliding_window_pattern=2, use_parallel_block=True))


def falcon(**changes):
    sizes = dict(vocab_size=37, hidden_size=36, num_hidden_layers=2, num_attention_heads=6, max_position_embeddings=48,
                 layer_norm_epsilon=1e-3, rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    return T.FalconConfig(**{**sizes, **changes})


def falcon_cases():
    yield case("falcon", T.FalconForCausalLM, falcon(), [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("falcon-groups", T.FalconForCausalLM,
               falcon(new_decoder_architecture=True, num_kv_heads=2, ffn_hidden_size=29, bias=True, activation="relu"),
               [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("falcon-one-norm-old", T.FalconForCausalLM,
               falcon(new_decoder_architecture=True, num_kv_heads=3, num_ln_in_parallel_attn=1, tie_word_embeddings=False),
               [ids(8, 37)], change_config=without("multi_query", n_embed=36, hidden_size=1))
    yield case("falcon-alibi", T.FalconForCausalLM,
               falcon(alibi=True, multi_query=False, parallel_attn=False, bias=True, num_attention_heads=3),
               [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING, lengths=[9, 6])
    yield case("falcon-alibi-beside-old", T.FalconForCausalLM, falcon(alibi=True, multi_query=False), [ids(12, 37)],
               backbone_only=True, change_config=without("num_kv_heads", "ffn_hidden_size", "num_ln_in_parallel_attn",
                                                         "max_position_embeddings"),
               extra={"h.0.self_attention.maybe_rotary.inv_freq": [3]})


def falcon_many_heads_cases():
    yield case("falcon-alibi-many-heads", T.FalconForCausalLM,
               falcon(alibi=True, multi_query=False, num_attention_heads=18, hidden_size=36), [ids(40, 37)],
               keep=("logits", "attention"))


def mpt(attention=None, **changes):
    sizes = dict(vocab_size=37, d_model=24, n_heads=3, n_layers=2, max_seq_len=48, layer_norm_epsilon=1e-3)
    return T.MptConfig(**{**sizes, **changes}, attn_config=attention)


def old_mpt(config):
    """As the files of MosaicML have it; of alibi_bias_max transformers makes nothing."""
    config["attn_config"] = {key: config["attn_config"][key] for key in (
        "alibi", "attn_impl", "attn_pdrop", "attn_type", "attn_uses_sequence_id", "clip_qkv", "prefix_lm", "qk_ln",
        "softmax_scale")} | {"alibi_bias_max": 16}
    config |= {"emb_init_std": None, "verbose": 0}


def mpt_cases():
    yield case("mpt", T.MptForCausalLM, mpt({"clip_qkv": 0.3}), [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING, lengths=[9, 6])
    yield case("mpt-old-file", T.MptForCausalLM, mpt({"softmax_scale": 0.7}, n_heads=4, tie_word_embeddings=False),
               [ids(20, 37)], change_config=old_mpt)


def after_parts_cases():
    """Families that are near Llama: their norms, activations, windows."""
    sizes = llama_sizes(hidden_size=24, num_hidden_layers=3, pad_token_id=0)
    whole = {key: value for key, value in sizes.items() if key != "head_dim"}
    mixed = ["sliding_attention", "full_attention", "sliding_attention"]
    nemotron = {key: value for key, value in sizes.items() if key != "rms_norm_eps"} | {"norm_eps": 1e-3, "head_dim": 8}
    yield case("nemotron", T.NemotronForCausalLM, T.NemotronConfig(**nemotron), [ids(9, 37), ids(9, 37, 1)],
               keep=EVERYTHING)
    yield case("nemotron-biases-old", T.NemotronForCausalLM,
               T.NemotronConfig(**nemotron, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, hidden_act="gelu",
                                rope_parameters={"rope_type": "default", "rope_theta": 500.0,
                                                 "partial_rotary_factor": 0.75}),
               [ids(8, 37)], change_config=old_partial)
    yield case("exaone4", T.Exaone4ForCausalLM, T.Exaone4Config(**sizes, sliding_window=4, layer_types=mixed),
               [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("exaone4-pattern-old", T.Exaone4ForCausalLM,
               T.Exaone4Config(**whole, sliding_window=3, sliding_window_pattern=2, tie_word_embeddings=True), [ids(8, 37)],
               change_config=without("layer_types"))
    yield case("exaone4-no-windows-old", T.Exaone4ForCausalLM,
               T.Exaone4Config(**sizes, sliding_window=None, layer_types=["full_attention"] * 3), [ids(8, 37)],
               change_config=without(sliding_window_pattern=None))
    yield case("ministral", T.MinistralForCausalLM, T.MinistralConfig(**sizes, sliding_window=4, layer_types=mixed),
               [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("ministral-old", T.MinistralForCausalLM,
               T.MinistralConfig(**sizes, sliding_window=3, tie_word_embeddings=True), [ids(8, 37)],
               change_config=without("layer_types"))
    yield case("seed-oss", T.SeedOssForCausalLM, T.SeedOssConfig(**sizes), [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("seed-oss-biases-old", T.SeedOssForCausalLM,
               T.SeedOssConfig(**sizes, attention_bias=False, attention_out_bias=True, mlp_bias=True,
                               tie_word_embeddings=True), [ids(8, 37)], change_config=old_rope)
    yield case("apertus", T.ApertusForCausalLM,
               T.ApertusConfig(**whole, rope_parameters={"rope_type": "default", "rope_theta": 500.0}),
               [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("apertus-old", T.ApertusForCausalLM,
               T.ApertusConfig(**sizes, attention_bias=True, tie_word_embeddings=True, hidden_act="gelu", rope_parameters={
                   "rope_type": "llama3", "factor": 8.0, "rope_theta": 50.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 32}), [ids(12, 37)], change_config=old_rope)
    yield case("apertus-unsaid-old", T.ApertusForCausalLM, T.ApertusConfig(**whole), [ids(12, 37)],
               change_config=lambda config: [config.pop("rope_parameters"), config.update(rope_theta=50.0)])


def ministral3_cases():
    yarn = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 5, "beta_fast": 8.0,
            "beta_slow": 2.0, "mscale": 1.0, "mscale_all_dim": 0.7, "llama_4_scaling_beta": 0.4}
    sizes = llama_sizes(hidden_size=24, num_hidden_layers=2, head_dim=12, pad_token_id=0)
    yield case("ministral3", T.Ministral3ForCausalLM, T.Ministral3Config(**sizes, rope_parameters=dict(yarn)),
               [ids(17, 37), ids(17, 37, 1)], keep=EVERYTHING)
    yield case("ministral3-window-old", T.Ministral3ForCausalLM,
               T.Ministral3Config(**sizes, rope_parameters=dict(yarn), sliding_window=7, tie_word_embeddings=True),
               [ids(12, 37)], change_config=old_rope)
    yield case("ministral3-unsaid-old", T.Ministral3ForCausalLM, T.Ministral3Config(**sizes), [ids(12, 37)],
               change_config=lambda config: [config.pop("rope_parameters"), config.update(rope_theta=50.0)])
    images = dict(vision_config=dict(model_type="pixtral", hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                                     num_attention_heads=2, head_dim=4, image_size=8, patch_size=4), image_token_index=36)
    texts = {"ministral3": dict(sizes, rope_parameters=dict(yarn)),
             "mistral": dict(sizes, sliding_window=4, rope_parameters={"rope_type": "default", "rope_theta": 500.0})}

    def new_name(name):
        return name if name.startswith("lm_head") else "model." + name.replace("language_model.model.", "language_model.")

    def old_name(name):
        return name.replace("lm_head", "language_model.lm_head").replace("model.language_model.", "language_model.model.")

    for name, kind, changes in (("ministral3-images", "ministral3", dict(tie_word_embeddings=False)),
                                ("ministral3-images-tied-old", "ministral3", dict(tie_word_embeddings=True)),
                                ("mistral-images-old", "mistral", dict(tie_word_embeddings=False))):
        old = name.endswith("old")
        yield case(name, T.Mistral3ForConditionalGeneration,
                   T.Mistral3Config(text_config=dict(texts[kind], model_type=kind), **images, **changes), [ids(17, 36)],
                   rename=old_name if old else None, as_computed=True, reloaded=True,
                   change_config=(lambda config: old_rope(config["text_config"])) if old else None)


def cases():
    yield from latent_cases()
    yield from glm4_moe_cases()
    yield from llama4_cases()
    yield from glm_cases()
    yield from cohere_cases()
    yield from falcon_cases()
    yield from falcon_many_heads_cases()
    yield from mpt_cases()
    yield from after_parts_cases()
    yield from ministral3_cases()
    yield from expert_cases()
    yield from gemma3_cases()
    yield from phi3_cases()
    yield from like_llama_cases()
    gemma = llama_sizes()
    yield case("gemma", T.GemmaForCausalLM, T.GemmaConfig(**gemma), [ids(9, 37), ids(9, 37, 1)], keep=EVERYTHING)
    yield case("gemma-old", T.GemmaForCausalLM,
               T.GemmaConfig(**gemma, attention_bias=True, tie_word_embeddings=False), [ids(8, 37)],
               change_config=without(hidden_act="gelu"))
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
    yield case("mistral-not-causal", T.MistralForCausalLM,
               T.MistralConfig(**llama_sizes(sliding_window=4), is_causal=False), [ids(11, 37)],
               keep=("logits", "attention"))
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
    yield case("gpt-oss-not-causal", T.GptOssForCausalLM, T.GptOssConfig(**gpt_oss, is_causal=None), [ids(8, 37)],
               keep=("logits", "attention"))
    yield case("gpt-oss-packed", T.GptOssForCausalLM,
               T.GptOssConfig(**{**gpt_oss, "hidden_size": 32, "intermediate_size": 32, "num_local_experts": 3}),
               [ids(7, 37)], file_type="BF16", shards=2, packed=("experts.gate_up_proj", "experts.down_proj"),
               change_config=lambda config: config.update(quantization_config={"quant_method": "mxfp4"}))


if __name__ == "__main__":
    main(cases)
