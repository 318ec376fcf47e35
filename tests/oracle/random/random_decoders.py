# SPDX-License-Identifier: GPL-3.0-or-later
"""Random checkpoints of the decoders after the first four families, for the acceptance test. See random_models.py."""

import copy
import functools
import random
from pathlib import Path

import safetensors.torch
import torch
import transformers as T

from random_models import ROPE_KINDS, Case, edit_config, old_generation, randomise, rename_tensors, with_options

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


def further_layer(folder):
    """As DeepSeek's files: a layer that predicts one more token."""
    old_generation(folder)
    rename_tensors(folder, lambda name: name, {"model.layers.3.enorm.weight": torch.ones(48)})


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


def old_two_ropes(folder):
    """As the files of Gemma 3 and OLMo 3 were: rope_scaling is for the layers without a window."""

    def change(config):
        config = config.get("text_config", config)
        ropes = config.pop("rope_parameters")
        full = ropes["full_attention"]
        config["rope_theta"] = full.pop("rope_theta")
        config["rope_scaling"] = full if full["rope_type"] != "default" else None
        if config["model_type"] != "olmo3":  # whose other layers have 500 000
            config["rope_local_base_freq"] = ropes["sliding_attention"]["rope_theta"]
        config.pop("layer_types")

    edit_config(folder, change)


def old_legacy_gelu(folder):
    """Gemma's first files say gelu for its approximation."""
    old_generation(folder)
    edit_config(folder, lambda config: config.update(hidden_act="gelu"))


def new_image_names(folder):
    """As transformers 5 has them inside, and some files."""
    rename_tensors(folder, lambda name: name if name.startswith("lm_head") else "model." + name.replace(
        "language_model.model.", "language_model."))


def old_falcon(folder):
    """As the files of Falcon 7B: no sizes that follow from others, and a buffer."""
    old_generation(folder)
    edit_config(folder, lambda config: [config.pop(key) for key in ("num_kv_heads", "ffn_hidden_size", "activation",
                                                                    "num_ln_in_parallel_attn")])
    rename_tensors(folder, lambda name: name, {
        f"transformer.h.{layer}.self_attention.maybe_rotary.inv_freq": torch.ones(5) for layer in range(3)})


def old_mpt(folder):
    """Keys that transformers makes nothing of, as in MosaicML's files."""
    edit_config(folder, lambda config: [config.update(verbose=0, emb_init_std=None),
                                        config["attn_config"].update(alibi_bias_max=16, attn_impl="triton")])


def old_images(folder):
    """The configuration of Mistral Small 3.1, whose names for tensors transformers writes as they were."""

    def change(config):
        rope = config["text_config"].pop("rope_parameters")
        config["text_config"] |= {"rope_theta": rope.pop("rope_theta"), "rope_scaling": rope}

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
        case("mistral-not-causal", "mistral", sliding_window=17, is_causal=False),
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
        case("gemma", "gemma"),
        case("gemma-untied-bias-old", "gemma", attention_bias=True, tie_word_embeddings=False, rope_parameters=rope,
             change=old_legacy_gelu),
        case("gemma-bf16-sharded-one-key-head", "gemma", dtype=bf16, shard="20KB", num_key_value_heads=1),
        case("gemma3", "gemma3"),
        case("gemma3-capped-scaled-old", "gemma3", final_logit_softcapping=1.5, attention_bias=True,
             tie_word_embeddings=False, change=old_two_ropes, rope_parameters=TWO_ROPES | {
                 "full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 3000.0}}),
        case("gemma3-bf16-sharded", "gemma3", dtype=bf16, shard="20KB", num_key_value_heads=3,
             layer_types=["full_attention", "sliding_attention", "sliding_attention"]),
        case("gemma3-images", "gemma3_images", final_logit_softcapping=1.5, change=new_image_names),
        case("gemma3-images-old", "gemma3_images", change=old_two_ropes, num_attention_heads=8, num_key_value_heads=4,
             dtype=bf16, shard="20KB"),
        case("phi3", "phi3", rope_parameters=rope | {"partial_rotary_factor": 0.6}),
        case("phi3-window-longrope-old", "phi3", sliding_window=17, original_max_position_embeddings=64,
             change=old_partial_names, rope_parameters=partial | {
                 "rope_type": "longrope", "short_factor": [1.0, 1.4], "long_factor": [1.0, 4.0],
                 "partial_rotary_factor": 0.4}),
        case("phi3-bf16-sharded-tied-grouped", "phi3", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=3),
        case("smollm3", "smollm3"),
        case("smollm3-windows-biases-old", "smollm3", use_sliding_window=True, sliding_window=9, attention_bias=True,
             mlp_bias=True, change=old_without("layer_types", "no_rope_layers"), rope_parameters=rope),
        case("smollm3-bf16-sharded-untied", "smollm3", dtype=bf16, shard="20KB", tie_word_embeddings=False,
             no_rope_layers=[0, 1, 0], rope_parameters=yarn),
        case("olmo", "olmo"),
        case("olmo-clipped-biases-old", "olmo", clip_qkv=1.5, attention_bias=True, rope_parameters=rope,
             change=old_generation),
        case("olmo-bf16-sharded-tied", "olmo", dtype=bf16, shard="20KB", tie_word_embeddings=True, clip_qkv=2.0,
             num_key_value_heads=1),
        case("olmo3", "olmo3"),
        case("olmo3-yarn", "olmo3", rope_parameters=TWO_ROPES | {"full_attention": yarn | {"truncate": False}}),
        case("olmo3-biases-old", "olmo3", attention_bias=True, change=old_two_ropes, rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 3000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 500000.0}}),
        case("olmo3-bf16-sharded-tied", "olmo3", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=3, layer_types=["full_attention", "sliding_attention"] * 2),
        case("granite", "granite"),
        case("granite-biases-old", "granite", attention_bias=True, mlp_bias=True, rope_parameters=rope,
             change=old_generation),
        case("granite-bf16-sharded-tied", "granite", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=1),
        case("starcoder2", "starcoder2", sliding_window=17),
        case("starcoder2-no-bias-untied-old", "starcoder2", use_bias=False, tie_word_embeddings=False,
             rope_parameters=rope, change=old_generation),
        case("starcoder2-f16-sharded", "starcoder2", dtype=f16, shard="20KB", num_key_value_heads=3),
        case("stablelm", "stablelm", use_qkv_bias=True),
        case("stablelm-key-norms-parallel-old", "stablelm", qk_layernorm=True, use_parallel_residual=True,
             rope_parameters=partial | {"partial_rotary_factor": 0.4}, change=old_partial),
        case("stablelm-bf16-sharded-tied-key-norms", "stablelm", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             qk_layernorm=True, rope_parameters=partial | {"partial_rotary_factor": 1.0}),
        case("glm", "glm", rope_parameters=partial),
        case("glm-scaled-tied-old", "glm", tie_word_embeddings=True, attention_bias=False, change=old_partial_names,
             rope_parameters=yarn | {"partial_rotary_factor": 0.67}),
        case("glm-bf16-sharded-one-key-head", "glm", dtype=bf16, shard="20KB", num_key_value_heads=1),
        case("glm4", "glm4", rope_parameters=partial),
        case("glm4-bf16-sharded-tied-old", "glm4", dtype=bf16, shard="20KB", tie_word_embeddings=True, change=old_partial),
        case("cohere", "cohere"),
        case("cohere-key-norms-biases-old", "cohere", use_qk_norm=True, attention_bias=True, tie_word_embeddings=False,
             rope_parameters=rope, change=old_generation),
        case("cohere-bf16-sharded-key-norms", "cohere", dtype=bf16, shard="20KB", use_qk_norm=True, num_key_value_heads=1),
        case("cohere2", "cohere2"),
        case("cohere2-untied-old", "cohere2", tie_word_embeddings=False, attention_bias=True, rope_parameters=rope,
             change=old_without("layer_types")),
        case("cohere2-f16-sharded-layer-types", "cohere2", dtype=f16, shard="20KB", num_key_value_heads=3,
             layer_types=["full_attention", "sliding_attention", "full_attention"]),
        case("falcon", "falcon"),
        case("falcon-old", "falcon", bias=True, rope_parameters=rope, change=old_falcon),
        case("falcon-groups", "falcon", new_decoder_architecture=True, num_kv_heads=2, bias=True),
        case("falcon-groups-one-norm-bf16-sharded-untied", "falcon", dtype=bf16, shard="20KB", tie_word_embeddings=False,
             new_decoder_architecture=True, num_kv_heads=3, num_ln_in_parallel_attn=1, ffn_hidden_size=77,
             rope_parameters=yarn),
        case("falcon-alibi", "falcon", alibi=True, multi_query=False, parallel_attn=False, bias=True),
        case("falcon-alibi-parallel-f16-bare", "falcon", dtype=f16, alibi=True, multi_query=False,
             change=bare("transformer.")),
        case("mpt", "mpt"),
        case("mpt-cut-old", "mpt", n_heads=6, attn_config=dict(clip_qkv=1.5), change=old_mpt),
        case("mpt-bf16-sharded-untied-scaled", "mpt", dtype=bf16, shard="20KB", tie_word_embeddings=False, n_heads=4,
             attn_config=dict(softmax_scale=0.5)),
        case("nemotron", "nemotron", rope_parameters=partial),
        case("nemotron-biases-old", "nemotron", attention_bias=True, mlp_bias=True, hidden_act="silu", change=old_partial,
             rope_parameters=rope | {"partial_rotary_factor": 0.67}),
        case("nemotron-bf16-sharded-tied", "nemotron", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=1),
        case("exaone4", "exaone4"),
        case("exaone4-no-windows-old", "exaone4", sliding_window=None, layer_types=["full_attention"] * 3,
             rope_parameters=rope, change=old_generation),
        case("exaone4-bf16-sharded-tied", "exaone4", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=3, layer_types=["full_attention", "sliding_attention", "sliding_attention"],
             rope_parameters=yarn),
        case("ministral", "ministral", layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
        case("ministral-bf16-sharded-tied-old", "ministral", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=1, rope_parameters=rope, change=old_without("layer_types")),
        case("ministral3", "ministral3"),
        case("ministral3-window-old", "ministral3", sliding_window=17, change=old_generation),
        case("ministral3-bf16-sharded-tied", "ministral3", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=3),
        case("ministral3-images", "ministral3_images", tie_word_embeddings=False, as_computed=True),
        case("ministral3-images-old", "ministral3_images", change=old_images, dtype=bf16),
        case("mistral-images-sharded", "mistral_images", shard="20KB", sliding_window=17, rope_parameters=rope),
        case("seed-oss", "seed_oss"),
        case("seed-oss-biases-old", "seed_oss", attention_bias=False, attention_out_bias=True, mlp_bias=True,
             rope_parameters=rope, change=old_generation),
        case("seed-oss-bf16-sharded-tied", "seed_oss", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=1),
        case("apertus", "apertus"),
        case("apertus-biases-old", "apertus", attention_bias=True, head_dim=14, change=old_generation, rope_parameters={
            **ROPE_KINDS["llama3"], "rope_theta": 500.0}),
        case("apertus-bf16-sharded-tied-gelu", "apertus", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=1, hidden_act="gelu", rope_parameters=rope),
        case("mixtral", "mixtral"),
        case("mixtral-stacked-window-old", "mixtral", as_computed=True, sliding_window=17, num_experts_per_tok=4,
             rope_parameters=rope, change=old_generation),
        case("mixtral-bf16-sharded-tied", "mixtral", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=1),
        case("qwen2-moe", "qwen2_moe"),
        case("qwen2-moe-windows-stacked-old", "qwen2_moe", as_computed=True, use_sliding_window=True, sliding_window=17,
             max_window_layers=2, norm_topk_prob=True, mlp_only_layers=[1], qkv_bias=False, rope_parameters=rope,
             change=old_without("layer_types")),
        case("qwen2-moe-bf16-sharded-tied", "qwen2_moe", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             decoder_sparse_step=2, num_key_value_heads=3),
        case("qwen3-moe", "qwen3_moe", norm_topk_prob=True),
        case("qwen3-moe-stacked-window-old", "qwen3_moe", as_computed=True, attention_bias=True, use_sliding_window=True,
             sliding_window=17, mlp_only_layers=[0], rope_parameters=rope, change=old_generation),
        case("qwen3-moe-bf16-sharded-tied", "qwen3_moe", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=1),
        case("olmoe", "olmoe"),
        case("olmoe-cut-stacked-old", "olmoe", as_computed=True, clip_qkv=1.5, norm_topk_prob=True, attention_bias=True,
             rope_parameters=rope, change=old_generation),
        case("olmoe-bf16-sharded-tied", "olmoe", dtype=bf16, shard="20KB", tie_word_embeddings=True, num_key_value_heads=3),
        case("granitemoe", "granitemoe"),
        case("granitemoe-renamed-old", "granitemoe", as_computed=True, attention_bias=True, num_experts_per_tok=4,
             rope_parameters=rope, change=old_generation),
        case("granitemoe-bf16-sharded-tied", "granitemoe", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=1),
        case("deepseek-v2", "deepseek_v2"),
        case("deepseek-v2-groups-stacked-old", "deepseek_v2", as_computed=True, topk_method="group_limited_greedy",
             q_lora_rank=None, attention_bias=True, mlp_bias=True, change=old_generation, routed_scaling_factor=1.7, **GROUPS,
             rope_parameters=ROPE_KINDS["yarn-tuned"] | {"rope_theta": 1000.0}),
        case("deepseek-v2-bf16-sharded-tied", "deepseek_v2", dtype=bf16, shard="20KB", tie_word_embeddings=True),
        case("deepseek-v3", "deepseek_v3", rope_parameters=ROPE_KINDS["yarn-tuned"] | {"rope_theta": 1000.0}),
        case("deepseek-v3-one-group-halves-stacked-old", "deepseek_v3", as_computed=True, n_group=1, topk_group=1,
             rope_interleave=False, q_lora_rank=None, attention_bias=True, norm_topk_prob=False, rope_parameters=rope,
             change=further_layer),
        case("deepseek-v3-bf16-sharded-tied", "deepseek_v3", dtype=bf16, shard="20KB", tie_word_embeddings=True),
        case("glm4-moe", "glm4_moe", use_qk_norm=True),
        case("glm4-moe-biases-stacked-old", "glm4_moe", as_computed=True, attention_bias=True, n_shared_experts=2,
             rope_parameters=rope | {"partial_rotary_factor": 0.67}, change=old_partial),
        case("glm4-moe-bf16-sharded-tied", "glm4_moe", dtype=bf16, shard="20KB", tie_word_embeddings=True, use_qk_norm=True,
             num_key_value_heads=1),
        case("llama4", "llama4"),
        case("llama4-plain-old", "llama4", use_qk_norm=False, attn_temperature_tuning=False, attention_bias=True,
             moe_layers=[0, 3], rope_parameters=ROPE_KINDS["llama3"] | {"rope_theta": 500.0}, change=old_generation),
        case("llama4-bf16-sharded-tied-layer-types", "llama4", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             num_key_value_heads=1, layer_types=["full_attention", "chunked_attention"] * 2),
        case("llama4-images", "llama4_images"),
        *(Case(f"{family}-drawn", with_options(drawn, family=family), lengths=(65, 130, 1)) for family in FAMILIES),
    ]
