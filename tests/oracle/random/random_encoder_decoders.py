# SPDX-License-Identifier: GPL-3.0-or-later
"""Random checkpoints with two towers, of transformers and native ones, for encoder_decoder_acceptance.py."""

from dataclasses import dataclass, field
from pathlib import Path

import torch
import transformers

import native_options
import random_native
from random_models import edit_config, with_options

SOURCES = (1, 2, 63, 64, 65, 200, 64, 63)
TARGETS = (64, 1, 65, 63, 2, 64, 199, 65)   # and the start token before each: the second pair is 64 by 64


@dataclass
class Case:
    name: str
    make: callable
    sources: tuple = SOURCES
    targets: tuple = TARGETS   # empty: the start token alone
    arguments: list = field(default_factory=list)
    layers: tuple = ()
    skip: tuple = ()


def randomise(model, seed, gain):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:   # sinusoids
                continue
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name:
                value = 1.0 + 0.2 * noise if name.endswith("weight") else 0.2 * noise
            elif parameter.dim() == 1:
                value = 0.2 * noise
            elif any(part in name for part in ("shared", "embed_tokens", "embed_positions", "lm_head")):
                value = 0.5 * noise
            elif "relative_attention_bias" in name:
                value = noise
            else:
                value = noise / parameter.shape[1] ** 0.5
                if name.endswith((".q.weight", ".k.weight")):      # T5's scores have no scale
                    value *= gain / model.config.d_kv**0.25
                elif name.endswith(("q_proj.weight", "k_proj.weight")):
                    value *= gain
            parameter.copy_(value)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape, generator=generator))
    return model.eval()


def save(model, folder, dtype, shard, form):
    model.to(dtype).save_pretrained(folder, max_shard_size=shard or "1GB")
    if form == "bin":
        (Path(folder) / "model.safetensors").unlink()
        torch.save(model.state_dict(), Path(folder) / "pytorch_model.bin")


def t5(folder, seed, dtype=torch.float32, shard=None, gain=1.5, form="safetensors", own_head=False, old=False,
       kind="T5", **options):
    settings = dict(vocab_size=101, d_model=39, d_kv=10, d_ff=53, num_layers=2, num_decoder_layers=2, num_heads=3,
                    relative_attention_num_buckets=32, relative_attention_max_distance=128, decoder_start_token_id=0)
    config = getattr(transformers, kind + "Config")(**(settings | options))
    model = getattr(transformers, kind + "ForConditionalGeneration")(config)
    if own_head:
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.shared.weight))
    save(randomise(model, seed, gain), folder, dtype, shard, form)

    def change(config):
        if own_head:
            config.pop("scale_decoder_outputs", None)
            config["tie_word_embeddings"] = False
        if old:
            config |= {"torch_dtype": config.pop("dtype", None), "n_positions": 512}
    edit_config(folder, change)


def bart(folder, seed, dtype=torch.float32, shard=None, gain=1.4, form="safetensors", kind="Bart", old=False,
         **options):
    settings = dict(vocab_size=101, d_model=36, max_position_embeddings=256, encoder_layers=2,
                    encoder_attention_heads=3, encoder_ffn_dim=53, decoder_layers=2, decoder_attention_heads=4,
                    decoder_ffn_dim=47, decoder_start_token_id=2, pad_token_id=1)
    config = getattr(transformers, kind + "Config")(**(settings | options))
    head = "MTModel" if kind == "Marian" else "ForConditionalGeneration"
    save(randomise(getattr(transformers, kind + head)(config), seed, gain), folder, dtype, shard, form)
    if old:
        edit_config(folder, older)


def older(config):
    config |= {"torch_dtype": config.pop("dtype", None), "num_hidden_layers": config["encoder_layers"],
               "static_position_embeddings": True, "normalize_before": True, "classif_dropout": 0.0}
    for key in ("tie_word_embeddings", "is_decoder"):
        config.pop(key, None)


def natives():
    """Every mixer that has a cross-attention, in Vaswani's manner and in another, and BART's."""
    vaswani, bart_like = (random_native.MANNERS[name] for name in ("vaswani", "bart"))

    def native(name, layers, encoder, **options):
        make = with_options(random_native.native, layers=layers, num_encoder_layers=encoder, decoder_start_token_id=2,
                            **options)
        return Case(f"native-{name}", make)

    listed = []
    for mixer in ("standard", *native_options.HEAD_VARIANTS):
        listed += [
            native(mixer, [mixer] * 4, 2, **vaswani),
            native(f"{mixer}-pre-norm-bf16", ["standard", mixer, "standard"], 1, stack="encoder_decoder", norm="layer",
                   type_vocab_size=1, qk_norm=True, embedding_norm=True, output_bias=True, num_key_value_heads=2,
                   dtype=torch.bfloat16, shards=2),
        ]
    return listed + [native("bart", ["standard"] * 3, 1, **bart_like)]


def relatives():
    bf16 = torch.bfloat16
    two = dict(kind="Marian", share_encoder_decoder_embeddings=False, decoder_vocab_size=83)
    return [
        Case("marian", with_options(bart, kind="Marian", scale_embedding=True)),
        Case("marian-odd-bf16-sharded", with_options(bart, kind="Marian", d_model=39, encoder_attention_heads=3,
                                                     decoder_attention_heads=1, dtype=bf16, shard="30KB", old=True)),
        Case("marian-two-vocabularies", with_options(bart, **two)),
        Case("marian-two-untied-bin", with_options(bart, **two, tie_word_embeddings=False, form="bin")),
        Case("mbart", with_options(bart, kind="MBart", scale_embedding=True)),
        Case("mbart-untied-f16-old", with_options(bart, kind="MBart", dtype=torch.float16, encoder_layers=3,
                                                  decoder_layers=1, activation_function="relu", old=True)),
        # The padding's id is a token like any other here, whose positions are left out.
        Case("m2m-100", with_options(bart, kind="M2M100", pad_token_id=7)),
        Case("m2m-100-beyond-positions", with_options(bart, kind="M2M100", pad_token_id=7, max_position_embeddings=70,
                                                      d_model=39, encoder_attention_heads=3,
                                                      decoder_attention_heads=1, scale_embedding=False, old=True),
             arguments=["--beyond-positions"]),
        Case("m2m-100-bf16-bin", with_options(bart, kind="M2M100", dtype=bf16, form="bin"), skip=(1, 2)),
        Case("pegasus", with_options(bart, kind="Pegasus", scale_embedding=True)),
        Case("pegasus-f16-old", with_options(bart, kind="Pegasus", dtype=torch.float16, decoder_layers=3,
                                             activation_function="relu", old=True)),
        Case("blenderbot", with_options(bart, kind="Blenderbot", scale_embedding=True)),
        Case("blenderbot-untied-bf16", with_options(bart, kind="Blenderbot", dtype=bf16, tie_word_embeddings=False,
                                                    decoder_layers=3, encoder_layers=1, shard="40KB")),
        Case("blenderbot-small", with_options(bart, kind="BlenderbotSmall", scale_embedding=True)),
        Case("umt5", with_options(t5, kind="UMT5")),
        Case("umt5-own-head-bf16-sharded", with_options(t5, kind="UMT5", own_head=True, dtype=bf16, shard="20KB",
                                                        num_layers=3, num_decoder_layers=1), layers=(1, 3)),
        Case("umt5-few-buckets-old-config", with_options(t5, kind="UMT5", relative_attention_num_buckets=7,
                                                         relative_attention_max_distance=20, old=True,
                                                         feed_forward_proj="relu"), skip=(0, 3)),
    ]


def cases():
    bf16 = torch.bfloat16
    return [
        Case("t5", t5),
        Case("t5-unequal-layers", with_options(t5, num_layers=1, num_decoder_layers=3)),
        Case("t5-1.1-bf16-sharded", with_options(t5, feed_forward_proj="gated-gelu", own_head=True, dtype=bf16,
                                                 shard="20KB", num_layers=3, num_decoder_layers=1)),
        Case("t5-few-buckets-old-config", with_options(t5, relative_attention_num_buckets=7,
                                                       relative_attention_max_distance=20, old=True)),
        Case("t5-pytorch-bin", with_options(t5, form="bin")),
        Case("t5-one-head", with_options(t5, num_heads=1, d_kv=13, feed_forward_proj="gated-silu")),
        Case("t5-sharp", with_options(t5, gain=6.0, num_layers=1, num_decoder_layers=1)),
        Case("t5-start-token-alone", t5, targets=()),
        Case("t5-layers", t5, layers=(1, 2)),
        Case("t5-skip", t5, skip=(0, 3)),
        Case("t5-reference-kernel", t5, sources=(65, 64), targets=(2, 63), arguments=["--kernels", "reference"]),
        Case("bart", bart),
        Case("bart-scaled-untied", with_options(bart, scale_embedding=True, tie_word_embeddings=False)),
        Case("bart-unequal-bf16-sharded", with_options(bart, encoder_layers=3, decoder_layers=1, dtype=bf16,
                                                       shard="30KB", activation_function="relu")),
        Case("bart-pytorch-bin", with_options(bart, form="bin")),
        Case("bart-f16", with_options(bart, dtype=torch.float16, encoder_layers=1, decoder_layers=2)),
        Case("bart-one-thread", bart, sources=(65, 64, 64), targets=(3, 63, 63), arguments=["--threads", "1"]),
    ] + relatives() + natives()
