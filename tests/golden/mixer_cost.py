# SPDX-License-Identifier: GPL-3.0-or-later
"""What layers with a state cost, counted step by step: writes mixer_cost.json.

No formula: parameters are the shapes of random_native.py's checkpoints, operations are added up token by token as the
definitions of native_oracle.py do them (a multiply-add is two, matrix products only, the output projection left out),
cache bytes are the numbers that have to be kept. NAtS-L's softmax heads see as many keys as the papers count (causal or
not) in chunks that are softmax by their share, and otherwise their own chunk.

    python mixer_cost.py [OUT.json]
"""

import json
import math
import sys
from pathlib import Path

from native_oracle import recurrent_sizes
from random_native import recurrent_shapes

HERE = Path(__file__).resolve().parent
CASES = [
    ("gated_deltanet", {}),
    ("gated_deltanet", dict(num_heads=3, num_value_heads=6, head_dim=5, expand_v=1.6, conv_size=3, use_gate=False)),
    ("deltanet", {}),
    ("deltanet", dict(num_heads=2, head_dim=11, conv_size=0, use_gate=True, use_beta=False)),
    ("mamba2", {}),
    ("mamba2", dict(num_heads=6, head_dim=5, state_size=7, num_groups=3, conv_size=0)),
    ("natsl", dict(head_dim=6)),
    ("natsl", dict(num_heads=3, head_dim=8, num_softmax_heads=6, chunk_size=10, conv_size=2, weights="input")),
    ("natsl", dict(num_heads=2, head_dim=4, chunk_size=5, weights="none", norm="sum")),
    ("retnet", {}),
    ("retnet", dict(num_heads=6, num_key_value_heads=2, head_dim=5, expand_v=3.0, use_gate=False)),
    ("gla", {}),
    ("gla", dict(num_heads=4, num_key_value_heads=2, head_dim=3, conv_size=4)),
    ("lightning", {}),
    ("lightning", dict(num_heads=3, head_dim=4, expand_v=1.5)),
    ("kda", {}),
    ("kda", dict(num_heads=3, head_dim=4, expand_v=1.5, conv_size=2)),
]
CONFIG = dict(hidden_size=42, num_attention_heads=7, head_dim=6)
BATCH, LENGTH, SHARE, BYTES = 3, 100, 0.4, 2


def map_operations(shapes):
    """One token through every map."""
    return sum(2 * math.prod(shape) for name, shape in shapes.items()
               if len(shape) == 2 and not name.startswith("score_proj"))


def state_operations(mixer, options):
    """One token of one sequence: each head's state is read for the delta rule, written, and read by the query."""
    keys, values = (options["state_size"], options["head_dim"]) if mixer == "mamba2" else (options["head_dim"], options["value_dim"])
    corrects = mixer in ("gated_deltanet", "deltanet", "natsl", "kda")
    count = 0
    for _ in range(options["num_value_heads"]):
        count += 2 * keys * values * (3 if corrects else 2)
    return count, options["num_value_heads"] * keys * values


def softmax_operations(options, length):
    """One query of NAtS-L's softmax heads: scores and the sum of values."""
    group = options["num_softmax_heads"] // options["num_heads"]
    chunks = length / options["chunk_size"]
    keys = SHARE * chunks * options["chunk_size"] + (1 - SHARE) * options["chunk_size"]
    return sum(2 * keys * (options["head_dim"] // group + options["value_dim"] // group)
               for _ in range(options["num_softmax_heads"]))


def count(mixer, options):
    said = recurrent_sizes(CONFIG | {"mixers": {mixer: options}}, mixer)
    shapes, _ = recurrent_shapes(CONFIG | {"mixers": {mixer: options}}, mixer)
    one, numbers = state_operations(mixer, said)
    one += map_operations(shapes)
    prefill, decode, held = LENGTH * one, one, numbers
    held += sum(shape[0] * (shape[2] - 1) for name, shape in shapes.items() if "conv1d.weight" in name)
    if mixer == "natsl":
        scores = 2 * math.prod(shapes["score_proj.weight"])
        prefill += scores * LENGTH / said["chunk_size"] + LENGTH * softmax_operations(said, LENGTH)
        decode += scores + softmax_operations(said, LENGTH)
        # The state where the open chunk began and what has decayed since; keys and values of softmax chunks.
        held += numbers + said["num_heads"] + SHARE * LENGTH * said["num_heads"] * (said["head_dim"] + said["value_dim"])
    return dict(mixer=mixer, options=options, parameters=sum(math.prod(shape) for shape in shapes.values()),
                prefill=BATCH * prefill, decode=BATCH * decode, cache=BATCH * BYTES * held)


def main():
    document = dict(hidden=CONFIG["hidden_size"], heads=CONFIG["num_attention_heads"], batch=BATCH, length=LENGTH,
                    softmax_share=SHARE, bytes=BYTES, cases=[count(*case) for case in CASES])
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "mixer_cost.json"
    out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
