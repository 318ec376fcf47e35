# SPDX-License-Identifier: GPL-3.0-or-later
"""What mixers cost that the first paper has no row of, counted step by step: writes mixer_cost.json.

No formula: parameters are the shapes of native_shapes.py, operations are added up token by token as the
definitions of native_oracle.py do them (a multiply-add is two, matrix products only, the output projection left out),
cache bytes are the numbers that have to be kept. NAtS-L's softmax heads see as many keys as the papers count (causal or
not) in chunks that are softmax by their share, and otherwise their own chunk. Softmax attention sees all pairs, as the
papers count. TTT-Linear and Titans read whole mini-batches, and decode a token of one that has begun.

    python mixer_cost.py [OUT.json]
"""

import json
import math
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "random"))
from native_options import BASELINES, HEAD_VARIANTS, LEARNERS, RECURRENT, recurrent_sizes
from native_shapes import mixer_shapes, recurrent_shapes

OUT = Path(__file__).resolve().parent / "data/mixer_cost.json"
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
    ("ttt_linear", dict(mini_batch_size=20)),
    ("ttt_linear", dict(num_heads=3, head_dim=5, conv_size=0, use_gate=False, mini_batch_size=1)),
    ("titans", dict(mini_batch_size=20)),
    ("titans", dict(num_heads=3, head_dim=5, conv_size=2, use_gate=False, mini_batch_size=4)),
    ("lazy", {}),
    ("lazy", dict(window=9, offset="fixed")),
    ("lazy", dict(distance_bias=False, offset="constant")),
    ("lazy", dict(normaliser="entmax")),
    ("streaming_llm", {}),
    ("streaming_llm", dict(first=3, window=20)),
    ("streaming_llm", dict(first=0, window=7, positions="cache")),
    *((mixer, {}) for mixer in HEAD_VARIANTS),
    ("fnet", {}),
    ("linear", {}),
]
CONFIG = dict(hidden_size=42, num_attention_heads=7, num_key_value_heads=7, head_dim=6, attention_bias=False, qk_norm=False)
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


def product(rows, inner, columns):
    return 2 * rows * inner * columns


def learned_operations(mixer, options, tokens, first):
    """The next tokens of one mini-batch of one sequence: every product of native_recurrences' definitions, head by head.
    `first`: nothing was learned before."""
    size, count = options["head_dim"], 0
    for _ in range(options["num_heads"]):
        if mixer == "ttt_linear":  # keys and queries have a one behind them
            count += 2 * product(tokens, size + 1, size)  # what W reads of keys and of queries
            count += product(size + 1, tokens, size)  # what they change
            if not first:
                count += product(tokens, size + 1, size)  # what the mini-batch's tokens before changed
            count += product(tokens, size + 1, tokens)  # pairs
        else:
            count += 2 * product(tokens, size, size)
            count += 2 * product(size, tokens, size)  # the momentum's and W's
            if not first:
                count += product(tokens, size, size) + product(tokens, tokens, 1)  # what momentum was left
            count += product(tokens, size, tokens) + product(tokens, tokens, tokens)  # pairs, and what is left of each
        count += product(tokens, tokens, size)
    return count


def count_learner(mixer, options):
    config = CONFIG | {"mixers": {mixer: options}}
    said, shapes = recurrent_sizes(config, mixer), recurrent_shapes(config, mixer)[0]
    # Maps of tokens; "memory_norm" has two dimensions and is none.
    maps = map_operations({name: shape for name, shape in shapes.items() if "memory" not in name})
    size, batch = said["head_dim"], said["mini_batch_size"]
    prefill = LENGTH * maps + sum(learned_operations(mixer, said, batch, mixer == "ttt_linear" or start == 0)
                                  for start in range(0, LENGTH, batch))
    numbers = said["num_heads"] * size * (size + 1 if mixer == "ttt_linear" else size)
    held = numbers * (2 if mixer == "ttt_linear" else 3)
    held += sum(shape[0] * (shape[2] - 1) for name, shape in shapes.items() if "conv1d.weight" in name)
    return shapes, prefill, maps + learned_operations(mixer, said, 1, False), held


def keys_read(mixer, options):
    """By a query of softmax attention."""
    if mixer != "streaming_llm":
        return LENGTH
    said = BASELINES[mixer] | options
    return min(LENGTH, said["first"] + said["window"] - 1)


def count_attention(mixer, options):
    shapes = mixer_shapes(CONFIG | {"mixers": {mixer: options}, "max_position_embeddings": LENGTH}, "", mixer)
    shapes.pop("o_proj.weight", None)
    if mixer == "fnet":
        return shapes, 0, None, None
    if mixer == "linear":
        return shapes, product(LENGTH, LENGTH, CONFIG["hidden_size"]) + LENGTH * product(
            1, *shapes["hidden_proj.weight"]), None, None
    maps = sum(product(1, *shape) for name, shape in shapes.items() if name.endswith("_proj.weight"))
    keys, size, one = keys_read(mixer, options), CONFIG["head_dim"], maps
    for _ in range(1 if mixer == "sha" else CONFIG["num_attention_heads"]):
        one += product(1, size * (2 if options.get("positions") == "cache" else 1), keys) + product(1, keys, size)
    # Keys and values as the maps give them; EL-attention's are its input, once.
    narrow = sum(shapes.get(f"{part}_proj.weight", (0,))[0] for part in "kv")
    return shapes, LENGTH * one, one, keys * (CONFIG["hidden_size"] if mixer == "el_att" else narrow)


def count(mixer, options):
    if mixer in LEARNERS or mixer not in RECURRENT:
        shapes, prefill, decode, held = (count_learner if mixer in LEARNERS else count_attention)(mixer, options)
        return dict(mixer=mixer, options=options, parameters=sum(math.prod(shape) for shape in shapes.values()),
                    prefill=BATCH * prefill, decode=decode if decode is None else BATCH * decode,
                    cache=held if held is None else BATCH * BYTES * held)
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
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
