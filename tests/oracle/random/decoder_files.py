# SPDX-License-Identifier: GPL-3.0-or-later
"""Rewrites saved decoders to what published files hold: older keys, names and buffers, packed experts."""

from pathlib import Path

import safetensors.torch
import torch

from random_models import edit_config, old_generation, rename_tensors


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
