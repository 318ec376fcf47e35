# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden data of tests/core/model/families/test_transformer_xl.cpp, in the form of models.py: tiny Transformer-XLs by
xl_oracle.py. Of cases with segments, "segments" says how the text was read.

    python tests/oracle/models/xl_models.py                     writes tests/oracle/models/data/xl-*.json
    python tests/oracle/models/xl_models.py --checkpoints DIR   writes the cases as checkpoint folders (safetensors) too
"""

import json
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "random"))
import xl_oracle
from models import ids, main, write_checkpoint
from native_models import everything, matrix


def case(name, tokens, segments=None, file_type="F32", **options):
    config = {"model_type": "transfo-xl", "vocab_size": 37, "cutoffs": [7, 15, 31], "d_model": 18, "d_embed": 16, "n_head": 3,
              "d_head": 5, "d_inner": 23, "div_val": 2, "n_layer": 2, "mem_len": 8, "clamp_len": -1, "same_length": False,
              "layer_norm_epsilon": 1e-3} | options
    # The numbers follow from names: what is tied is not in the file twice.
    full = xl_oracle.filled(config)
    names = dict(xl_oracle.shapes(config))
    for n in range(len(config["cutoffs"]) + 1):
        if full["tie_weight"]:
            names.pop(f"crit.out_layers.{n}.weight", None)
        if full["tie_projs"][n]:
            names.pop(f"crit.out_projs.{n}", None)
    data = {"config": config, "file_type": file_type, "shards": 1, "ids": tokens,
            "tensors": {key: list(shape) for key, shape in sorted(names.items())}}
    if segments:
        data["segments"] = segments
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(Path(folder), data)
        if segments:
            Path(folder, "segments.json").write_text(json.dumps(segments))
        traces = [xl_oracle.run(xl_oracle.load(folder, True), sequence, True) for sequence in tokens]
    data["logits"] = everything([trace.logits for trace in traces])
    data["attention"] = [everything([matrix(trace.sites[layer]) for trace in traces]) for layer in range(config["n_layer"])]
    return f"xl-{name}", data


def cases():
    two, one, long = [ids(9, 37), ids(9, 37, 1)], [ids(13, 37)], [ids(21, 37)]
    yield case("plain", two)
    yield case("clamped-pre-norm-old", one, clamp_len=4, pre_lnorm=True, tie_weight=True, tie_projs=[False, True, True, True],
               ext_len=0, tgt_len=6)
    yield case("same-length-shared-biases", one, same_length=True, mem_len=5, untie_r=False)
    yield case("one-table", one, div_val=1, cutoffs=[], d_embed=18)
    yield case("one-table-mapped-untied", two, div_val=1, cutoffs=[11, 20], tie_word_embeddings=False,
               proj_share_all_but_first=False)
    yield case("untied-maps", one, tie_projs=[True, False, True, False], tie_word_embeddings=False)
    # Three segments, the last of which is short.
    yield case("segments", long, {"tokens": 8, "memory": -1}, mem_len=5)
    yield case("segments-clamped", long, {"tokens": 8, "memory": 7}, clamp_len=6, pre_lnorm=True)
    yield case("segments-same-length", long, {"tokens": 8, "memory": -1}, same_length=True, mem_len=9)
    yield case("segments-without-memory", long, {"tokens": 8, "memory": 0})


if __name__ == "__main__":
    main(cases)
