# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden data of tests/core/model/families/test_fla.cpp, in the form of models.py: tiny folders of
flash-linear-attention, by fla_oracle.py.

    python tests/oracle/models/fla_models.py                     writes tests/oracle/models/data/fla-*.json
    python tests/oracle/models/fla_models.py --checkpoints DIR   writes the cases as checkpoint folders (safetensors) too
"""

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "random"))
import fla_oracle
import random_fla
from models import ids, main, write_checkpoint
from native_models import everything, matrix


def case(name, kind, tokens, file_type="F32", **options):
    config = {"model_type": kind, "vocab_size": 37, "hidden_size": 24, "num_hidden_layers": 2, "norm_eps": 1e-3,
              "intermediate_size": 27} | options
    if kind == "mamba2":  # which has no feed-forward
        config.pop("intermediate_size")
    data = {"config": config, "file_type": file_type, "shards": 1, "ids": tokens,
            "tensors": {key: list(shape) for key, shape in sorted(random_fla.shapes(config).items())}}
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(Path(folder), data)
        traces = [fla_oracle.run(fla_oracle.load(folder, True), sequence, True) for sequence in tokens]
    data["logits"] = everything([trace.logits for trace in traces])
    data["attention"] = [everything([matrix(trace.sites[layer]) for trace in traces])
                         for layer in range(config["num_hidden_layers"]) if matrix(traces[0].sites[layer]) is not None]
    return f"fla-{name}", data


def cases():
    two, one = [ids(9, 37), ids(9, 37, 1)], [ids(13, 37)]
    softmax = dict(layers=[1], num_heads=4, num_kv_heads=2, qkv_bias=True, window_size=4, rope_theta=100.0)
    yield case("gated-deltanet", "gated_deltanet", two, num_heads=2, head_dim=5, expand_v=1.2)
    yield case("gated-deltanet-hybrid", "gated_deltanet", one, num_heads=2, num_v_heads=6, head_dim=4, expand_v=0.5,
               use_gate=False, use_short_conv=False, allow_neg_eigval=True, tie_word_embeddings=True, attn=softmax)
    yield case("gated-deltanet-windows", "gated_deltanet", one, num_hidden_layers=3, num_heads=3, head_dim=4, conv_size=2,
               file_type="BF16", fuse_norm=False,
               attn=[dict(layers=[0], num_heads=4, window_size=3, rope_theta=50.0), dict(layers=[2], num_heads=4)])
    yield case("gated-deltanet-sigmoid", "gated_deltanet", one, num_heads=2, head_dim=6, expand_v=1.0,
               output_gate_activation="sigmoid")
    yield case("gated-deltanet-other-heads", "gated_deltanet", one, num_hidden_layers=4, num_heads=3, head_dim=4,
               attn=[dict(layers=[0], num_heads=4, num_kv_heads=2, window_size=3, rope_theta=50.0),
                     dict(layers=[1], num_heads=2, qkv_bias=True), dict(layers=[3], num_heads=6, num_kv_heads=3,
                                                                       window_size=5, rope_theta=80.0)])
    yield case("delta-net", "delta_net", two, num_heads=3)
    yield case("delta-net-gate-sums", "delta_net", one, num_heads=2, expand_k=0.5, expand_v=1.5, use_gate=True,
               allow_neg_eigval=True, qk_activation="elu", qk_norm="sum", attn=softmax)
    yield case("delta-net-plain", "delta_net", one, num_heads=3, use_short_conv=False, use_beta=False, qk_activation="relu")
    yield case("retnet", "retnet", two, num_heads=3)
    yield case("retnet-groups-open", "retnet", one, num_heads=4, num_kv_heads=2, expand_k=1.0, expand_v=0.5,
               use_output_gate=False, use_short_conv=True, attn=softmax)
    yield case("retnet-two-parts", "retnet", one, num_heads=2, fuse_norm=False, hidden_ratio=None, intermediate_size=None,
               num_hidden_layers=1)
    yield case("retnet-relu", "retnet", one, num_heads=3, feature_map="relu")
    yield case("gla", "gla", two, num_heads=3)
    yield case("gla-sqrelu", "gla", one, num_heads=3, use_short_conv=True, feature_map="sqrelu")
    yield case("gla-groups-convolved", "gla", one, num_heads=4, num_kv_heads=2, expand_k=1.0, use_short_conv=True,
               conv_size=3, use_output_gate=False, clamp_min=-0.042, attn=softmax)
    yield case("mamba2", "mamba2", two, head_dim=6, state_size=5)
    yield case("mamba2-groups-biases", "mamba2", one, head_dim=4, state_size=3, expand=1, n_groups=3, conv_kernel=2,
               use_bias=True, tie_word_embeddings=True)
    yield case("mamba2-no-matrix", "mamba2", one, head_dim=6, state_size=4, n_groups=2, D_has_hdim=True, use_conv_bias=False,
               norm_before_gate=True, dt_limit=[0.02, 0.7])
    yield case("transformer", "transformer", two, num_heads=4)
    yield case("transformer-norms-window", "transformer", one, num_heads=4, num_kv_heads=2, qkv_bias=True, qk_norm=True,
               window_size=3, rope_theta=100.0, tie_word_embeddings=True)


if __name__ == "__main__":
    main(cases)
