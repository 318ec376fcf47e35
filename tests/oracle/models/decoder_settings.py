# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes of tiny decoders like Llama, and configurations of older generations, for decoder_models.py."""

from models import old_rope

EVERYTHING = ("logits", "hidden", "attention")


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


def old_partial(config):
    """rope_theta and partial_rotary_factor beside rope_scaling."""
    rope = config["rope_parameters"]
    partial = rope.pop("partial_rotary_factor")
    old_rope(config)
    config["partial_rotary_factor"] = partial
