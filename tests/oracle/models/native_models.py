# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden data of tests/core/model, in the form of models.py: native models of every mixer, by native_oracle.py.

    python tests/oracle/models/native_models.py                     writes tests/oracle/models/data/native-*.json
    python tests/oracle/models/native_models.py --checkpoints DIR   writes the cases as checkpoint folders (safetensors) too
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "random"))
import native_options
import native_oracle
import native_shapes
import random_native
from models import ids, main, rounded, write_checkpoint


def case(name, layers, tokens, *, targets=None, keep=("logits",), **options):
    config = dict(vocab_size=37, hidden_size=20, intermediate_size=27, num_hidden_layers=len(layers), num_attention_heads=4,
                  num_key_value_heads=2, head_dim=6, max_position_embeddings=24, rms_norm_eps=1e-4, rope_theta=100.0,
                  attention_bias=True, qk_norm=False, rotary=True, tie_word_embeddings=False, mixers={}) | options
    if config.get("positions", "rotary") != "rotary":
        del config["rotary"]
    config |= {"model_type": "headscope", "layers": list(layers)}
    shapes = {key: list(shape) for key, shape in native_shapes.shapes(config).items()}
    if "fixed_seq_qk" in layers:
        shapes["model.guide_ids"] = [config["max_position_embeddings"]]
    data = {"config": config, "tensors": dict(sorted(shapes.items())), "file_type": "F32", "shards": 1, "ids": tokens}
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(Path(folder), data)
        traces = [native_oracle.run(native_oracle.load(folder, True), sequence, True, target)
                  for sequence, target in zip(tokens, targets or [None] * len(tokens))]
    if targets:
        data["target"] = targets
    data["logits"] = everything([trace.logits for trace in traces])
    if "attention" in keep:  # of layers without a matrix: none, or the implicit one of their state
        data["attention"] = [everything([matrix(trace.sites[n]) for trace in traces])
                             for n, site in enumerate(traces[0].sites) if matrix(site) is not None]
    return f"native-{name}", data


def matrix(site):
    return site.weights if site.implicit is None else site.implicit


def everything(arrays):
    import torch

    return rounded(torch.from_numpy(np.stack(arrays)))


# Values of a recurrent mixer's options other than their defaults.
OTHERWISE = {
    "gated_deltanet": dict(num_heads=2, num_value_heads=6, head_dim=5, expand_v=0.6, conv_size=3, use_gate=False,
                           allow_neg_eigval=True),
    "deltanet": dict(num_heads=3, num_value_heads=3, head_dim=4, expand_v=1.25, conv_size=2, use_gate=True,
                     allow_neg_eigval=True, use_beta=True, qk_activation="elu", qk_norm="sum"),
    "retnet": dict(num_heads=6, num_key_value_heads=2, head_dim=4, expand_v=1.5, use_gate=False, rope_theta=50.0),
    "gla": dict(num_heads=4, num_key_value_heads=2, head_dim=3, expand_v=1.0, conv_size=4, use_gate=False,
                clamp_min=-0.04),
    "lightning": dict(num_heads=2, head_dim=5, expand_v=0.6),
    "kda": dict(num_heads=2, head_dim=3, expand_v=2.0, conv_size=2, allow_neg_eigval=True),
    "mamba2": dict(num_heads=6, head_dim=3, state_size=5, num_groups=2, conv_size=3),
    "ttt_linear": dict(num_heads=2, head_dim=5, conv_size=0, use_gate=False, mini_batch_size=4, base_lr=0.5),
    "titans": dict(num_heads=3, head_dim=5, conv_size=2, use_gate=False, mini_batch_size=4, base_lr=0.5),
    "natsl": dict(num_heads=2, head_dim=8, expand_v=1.5, num_softmax_heads=4, chunk_size=4, conv_size=3, rope_theta=50.0,
                  allow_neg_eigval=True),
}
# Table 4's ablations of NAtS-L, and what is left.
ABLATIONS = {
    "softmax-inside": dict(inside_chunk="softmax", conv_size=0),
    "linear-inside": dict(inside_chunk="linear", rotary=False),
    "kept-whole": dict(decay_in_softmax_chunks=False, softmax_reads_conv=False),
    "one-norm": dict(norm="sum", weights="input"),
    "no-weights": dict(weights="none", num_softmax_heads=2),
}


# Lazy Attention's ablations, and the rows of its Table 2.
LAZY = {
    "small-window": dict(window=3),
    "no-bias": dict(distance_bias=False),
    "constant": dict(offset="constant", window=24),
    "fixed": dict(offset="fixed", window=24),
    "softmax": dict(normaliser="softmax", window=24),
    "sparsemax": dict(normaliser="sparsemax", distance_bias=False),
    "entmax": dict(normaliser="entmax", window=24),
}


# Layers of an encoder, and of a decoder that reads one.
ENCODER_MIXERS = ("standard", *native_options.HEAD_VARIANTS, "mlp", "sigmoid", "sink_logits", "fnet", "linear")
CROSS_MIXERS = ("standard", *native_options.HEAD_VARIANTS)


def stack_cases():
    """Stacks other than Qwen2's decoder: every manner, mixer and head, and choices that no manner has together."""
    manners, kept = random_native.MANNERS, ("logits", "attention")
    one, other, text = [ids(9, 37)], [ids(7, 37, 3)], [ids(11, 37, 5)]
    small = dict(hidden_size=24, num_key_value_heads=4)  # four heads of six numbers
    for mixer in ENCODER_MIXERS:
        yield case(f"encoder-{mixer}", [mixer, "standard", mixer], one, keep=kept, **manners["bert"] | small)
    for mixer in CROSS_MIXERS:
        yield case(f"both-{mixer}", [mixer, "standard", mixer], one, targets=other, num_encoder_layers=1, keep=kept,
                   **manners["vaswani"] | small)
    for mixer in ("standard", "mhe_mul", "gated_deltanet"):
        yield case(f"classic-decoder-{mixer}", [mixer, mixer], one, keep=kept, **manners["gpt2"] | small)
    yield case("bart", ["standard"] * 3, one, targets=other, num_encoder_layers=2, **manners["bart"] | small)
    yield case("encoder-other-choices", ["skv", "standard"], text, stack="encoder", positions="sinusoidal",
               embedding_scale=2.5, embedding_norm=True, output_bias=True, qk_norm=True, hidden_act="relu",
               head={"kind": "masked_language"}, keep=kept)
    yield case("encoder-token-classes", ["mqa", "sigmoid"], text, stack="encoder", norm="layer", attention_bias=False,
               mlp_bias=True, hidden_act="gelu", head={"kind": "token_classes", "classes": 3})
    yield case("encoder-text-classes", ["linear", "fnet"], text, stack="encoder", norm="layer", norm_place="post",
               positions="none", head={"kind": "sequence_classes", "classes": 5})
    yield case("decoder-guides-post", ["rnd_emb_qk", "fixed_seq_qk", "static_emb_qk"], text, norm="layer",
               layer_norm_eps=1e-5, norm_place="post", positions="learned", feed_forward="plain", type_vocab_size=3,
               embedding_norm=True, head_bias=True, keep=kept)
    yield case("decoder-classes", ["mhe_add", "lazy"], text, norm="layer", positions="sinusoidal", embedding_scale=0.5,
               hidden_act="gelu_pytorch_tanh", head={"kind": "token_classes", "classes": 2})
    yield case("both-other-choices", ["mlp", "skv", "mhe_add", "standard"], one, targets=other, num_encoder_layers=2,
               stack="encoder_decoder", norm="layer", type_vocab_size=1, qk_norm=True, embedding_norm=True, mlp_bias=True,
               output_bias=True, mixers={"standard": {"normaliser": "sparsemax"}}, keep=kept)


def cases():
    yield from stack_cases()
    for mixer in (*random_native.MIXERS, *native_options.RECURRENT, "lazy", *native_options.BASELINES):
        yield case(mixer, [mixer, mixer], [ids(9, 37), ids(9, 37, 1)], keep=("logits", "attention"))
        yield case(f"{mixer}-norms", [mixer, "standard", mixer], [ids(9, 37)], qk_norm=True, attention_bias=False,
                   num_key_value_heads=4, tie_word_embeddings=True, rotary=mixer != "static_emb_qk")
    for mixer, options in OTHERWISE.items():
        yield case(f"{mixer}-options", [mixer, "standard"], [ids(21, 37)], mixers={mixer: options},
                   keep=("logits", "attention"))
    for name, options in ABLATIONS.items():
        yield case(f"natsl-{name}", ["natsl"], [ids(21, 37)], mixers={"natsl": OTHERWISE["natsl"] | options},
                   keep=("logits", "attention"))
    for name, options in LAZY.items():
        yield case(f"lazy-{name}", ["lazy", "standard"], [ids(21, 37)], mixers={"lazy": options}, qk_norm=True,
                   attention_bias=False, keep=("logits", "attention"))
    # Neither convolution nor writes of their own; and heads that are there once.
    yield case("deltanet-plain", ["deltanet"], [ids(9, 37)], keep=("logits", "attention"),
               mixers={"deltanet": dict(conv_size=0, use_beta=False, qk_activation="relu")})
    yield case("mamba2-alone", ["mamba2", "mamba2"], [ids(9, 37)], intermediate_size=0, keep=("logits", "attention"),
               mixers={"mamba2": dict(num_heads=2, state_size=4, conv_size=0)})
    for options in random_native.APPROXIMATE[1:]:
        yield case(f"approximate-{'-'.join(options.values()).replace('_', '-')}", ["approximate"], [ids(9, 37)],
                   mixers={"approximate": options}, keep=("logits", "attention"))
    for mixer in native_options.HEAD_VARIANTS:
        yield case(mixer, [mixer, mixer], [ids(9, 37), ids(9, 37, 1)], hidden_size=24, keep=("logits", "attention"))
        yield case(f"{mixer}-norms", [mixer, "standard", mixer], [ids(9, 37)], hidden_size=24, qk_norm=True,
                   attention_bias=False, tie_word_embeddings=True)
    yield case("sigmoid-bias", ["sigmoid"], [ids(9, 37)], mixers={"sigmoid": {"bias": 0.75}}, keep=("logits", "attention"))
    yield case("alibi-six-heads", ["alibi", "alibi"], [ids(9, 37)], num_attention_heads=6, keep=("logits", "attention"))
    for positions in ("text", "cache"):
        yield case(f"streaming-llm-{positions}", ["streaming_llm", "standard", "streaming_llm"],
                   [ids(21, 37), ids(21, 37, 1)], mixers={"streaming_llm": dict(first=2, window=5, positions=positions)}, keep=("logits", "attention"))
    yield case("standard-sparsemax", ["standard", "standard"], [ids(9, 37), ids(9, 37, 1)],
               mixers={"standard": {"normaliser": "sparsemax"}}, keep=("logits", "attention"))
    yield case("all-mixers", random_native.MIXERS, [ids(9, 37), ids(9, 37, 1)], keep=("logits", "attention"))


if __name__ == "__main__":
    main(cases)
