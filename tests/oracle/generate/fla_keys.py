# SPDX-License-Identifier: GPL-3.0-or-later
"""Every key of flash-linear-attention's configurations that the program opens, with what a missing one means: read from
the library's source, which is not run. For tests/core/model/configs/test_config_keys.cpp.

    python tests/oracle/generate/fla_keys.py LIBRARY     writes tests/oracle/generate/data/fla_keys.json

LIBRARY is the folder that holds fla/, of version 0.6.0. JSON has no infinity: as transformers writes it.
"""

import ast
import json
import sys
from pathlib import Path

KINDS = ("delta_net", "gated_deltanet", "gla", "mamba2", "retnet", "transformer")


def value(node):
    if isinstance(node, ast.Call):  # float("inf")
        return {"__float__": "Infinity"}
    if isinstance(node, ast.Tuple):
        return [value(part) for part in node.elts]
    return ast.literal_eval(node)


def keys(path):
    """Parameters of the class's __init__."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            names = [argument.arg for argument in node.args.args][1:]
            return {name: value(default) for name, default in zip(names, node.args.defaults, strict=True)}
    raise SystemExit(f"{path}: no __init__")


def attention_keys(path):
    """Members of the type of an entry of `attn`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and node.name == "AttentionSpec":
            return {part.target.id: None for part in node.body if isinstance(part, ast.AnnAssign)}
    raise SystemExit(f"{path}: no AttentionSpec")


if __name__ == "__main__":
    models = Path(sys.argv[1]) / "fla/models"
    found = {kind: keys(models / kind / f"configuration_{kind}.py") for kind in KINDS}
    found["attn"] = attention_keys(models / "configuration_utils.py")
    text = json.dumps(found, indent=1, sort_keys=True)
    (Path(__file__).parent / "data/fla_keys.json").write_text(text + "\n")
