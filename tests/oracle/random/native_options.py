# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of native mixers (docs/file-formats.md, "Native checkpoints") and their defaults, for native_oracle.py, the
checkpoints of random_native.py and the golden models of native_models.py."""

# Mixers with a state, and what their options are where a configuration leaves them out.
RECURRENT = {
    "gated_deltanet": dict(num_heads=0, num_value_heads=0, head_dim=0, expand_v=2.0, conv_size=4, use_gate=True,
                           allow_neg_eigval=False),
    "deltanet": dict(num_heads=0, num_value_heads=0, head_dim=0, expand_v=1.0, conv_size=4, use_gate=False,
                     allow_neg_eigval=False, use_beta=True, qk_activation="silu", qk_norm="l2"),
    "retnet": dict(num_heads=0, num_key_value_heads=0, head_dim=0, expand_v=2.0, use_gate=True, rope_theta=0.0),
    "gla": dict(num_heads=0, num_key_value_heads=0, head_dim=0, expand_v=2.0, conv_size=0, use_gate=True, clamp_min=0.0),
    "natsl": dict(num_heads=0, head_dim=0, expand_v=2.0, num_softmax_heads=0, chunk_size=64, conv_size=4,
                  softmax_reads_conv=True, rotary=True, rope_theta=10000.0, decay_in_softmax_chunks=True,
                  inside_chunk="both", norm="each", weights="query", choice="argmax", allow_neg_eigval=False,
                  score_gradient_all=False),
    "lightning": dict(num_heads=0, head_dim=0, expand_v=1.0),
    "kda": dict(num_heads=0, head_dim=0, expand_v=1.0, conv_size=4, allow_neg_eigval=False),
    "mamba2": dict(num_heads=0, head_dim=0, state_size=128, num_groups=1, conv_size=4),
    "ttt_linear": dict(num_heads=0, head_dim=0, conv_size=4, use_gate=True, mini_batch_size=16, base_lr=1.0),
    "titans": dict(num_heads=0, head_dim=0, conv_size=4, use_gate=True, mini_batch_size=16, base_lr=1.0),
}
LEARNERS = ("ttt_linear", "titans")  # whose state learns; they have no implicit matrix
GLA_RANK = 16
# The same of Lazy Attention, which has no state.
LAZY = dict(window=512, distance_bias=True, normaliser="elastic", offset="per_length", offset_init=-1.0)
# Baselines of the third paper: softmax attention with one change, and options as above.
BASELINES = {
    "sigmoid": {}, "alibi": {}, "sink_logits": {},
    "streaming_llm": dict(first=4, window=1020, positions="text"),
}
# Softmax attention whose heads share their maps.
HEAD_VARIANTS = ("sha", "mqa", "skv", "el_att", "mhe_add", "mhe_mul")


def recurrent_sizes(config, mixer):
    """A recurrent mixer's options, every one filled in."""
    options = RECURRENT[mixer] | config.get("mixers", {}).get(mixer, {})
    usual_heads = config["num_attention_heads"] * (2 if mixer == "mamba2" else 1)
    options["num_heads"] = options["num_heads"] or usual_heads
    options["head_dim"] = options["head_dim"] or config["head_dim"]
    queries = options["num_heads"]
    options["num_value_heads"] = options.get("num_value_heads") or queries
    options["sharing"] = queries // (options.get("num_key_value_heads") or queries)
    options["value_dim"] = round(options["head_dim"] * options.get("expand_v", 1))
    options["conv_size"] = options.get("conv_size", 0)
    if mixer == "natsl":
        options["num_softmax_heads"] = options["num_softmax_heads"] or queries
    return options
