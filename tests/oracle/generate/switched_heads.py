# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden data of tests/core/model/edits/test_switched_off.cpp: the tiny models of models/ with heads switched off.

Each output projection of the attention gets a hook that replaces what it reads: a head's columns become zero, or their
mean over the sequence's own queries. Projections are called in the order of Headscope's sites, so the n-th call is
site n. Kept are the logits at the first and the last real token of each sequence.

    python tests/oracle/generate/switched_heads.py             writes tests/oracle/generate/data/switched_heads.json

Needs torch 2.14, transformers 5.23, safetensors.
"""

import json
import pathlib
import sys
import tempfile

import torch
import transformers

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "models"))
from models import read_golden, rounded, write_checkpoint

# Names of the projection behind a family's attention, at the end of a module's name.
PROJECTIONS = ("attn.c_proj", "self_attn.o_proj", "self_attn.out_proj", "attn.out_proj", "encoder_attn.out_proj",
               "attention.dense", "self_attention.dense", "self_attn.dense", "attention.output.dense",
               "attention.out_lin", "attn.Wo", "SelfAttention.o", "EncDecAttention.o")
DECODERS = ("gpt2", "llama", "qwen2-windows", "opt", "bloom", "neox", "mistral", "qwen3", "gemma2", "phi", "gptj",
            "olmo2", "gpt-oss")
ENCODERS = ("bert", "roberta", "distilbert", "albert", "modernbert")
PAIRS = ("t5", "bart")


def load(name, data):
    """The checkpoint as transformers opens it, in float64."""
    kind = {**dict.fromkeys(ENCODERS, transformers.AutoModelForMaskedLM),
            **dict.fromkeys(PAIRS, transformers.AutoModelForSeq2SeqLM)}.get(name, transformers.AutoModelForCausalLM)
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(pathlib.Path(folder), data)
        model = kind.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager")
    model.config._experts_implementation = "eager"
    return model.eval()


def switch(value, head, heads, how, lengths):
    """`value` [B, L, heads * size] with one head replaced; lengths [B] of the real queries."""
    value = value.clone()
    columns = value.unflatten(-1, (heads, -1))[:, :, head]
    for row, real in enumerate(lengths):
        columns[row] = 0 if how == "zero" else columns[row, :real].mean(0)
    return value


def run(model, data, switched):
    calls, handles = [], []

    def hook(name, module):
        decoder = name.startswith(("decoder.", "model.decoder."))
        config = model.config
        heads = config.num_attention_heads
        if model.config.model_type == "bart":
            heads = config.decoder_attention_heads if decoder else config.encoder_attention_heads
        ids = data["target"] if decoder and "target" in data else data["ids"]
        lengths = data.get("target_lengths" if ids is not data["ids"] else "lengths") or [len(row) for row in ids]

        def before(module, inputs):
            site = len(calls)
            calls.append(heads)
            value = inputs[0]
            for other, head, how in switched:
                if other == site:
                    value = switch(value, head, heads, how, lengths)
            return (value,)

        handles.append(module.register_forward_pre_hook(before))

    for name, module in model.named_modules():
        if name.endswith(PROJECTIONS):
            hook(name, module)
    arguments = {"input_ids": torch.tensor(data["ids"])}
    mask = lambda lengths, ids: torch.tensor([[int(i < n) for i in range(len(ids[0]))] for n in lengths])
    if "token_types" in data:
        arguments["token_type_ids"] = torch.tensor(data["token_types"])
    if "lengths" in data:
        arguments["attention_mask"] = mask(data["lengths"], data["ids"])
    if "target" in data:
        arguments["decoder_input_ids"] = torch.tensor(data["target"])
    if "target_lengths" in data:
        arguments["decoder_attention_mask"] = mask(data["target_lengths"], data["target"])
    with torch.no_grad():
        logits = model(**arguments, use_cache=False).logits if not data["config"]["model_type"] in ENCODERS \
            else model(**arguments).logits
    for handle in handles:
        handle.remove()
    return logits, calls


def ends(logits, data):
    ids = data.get("target", data["ids"])
    lengths = data.get("target_lengths" if "target" in data else "lengths") or [len(row) for row in ids]
    return [[rounded(row[0]), rounded(row[real - 1])] for row, real in zip(logits, lengths)]


def main():
    golden = {}
    for name in (*DECODERS, *ENCODERS, *PAIRS):
        data = read_golden(name)
        model = load(name, data)
        plain, calls = run(model, data, [])
        expected = torch.tensor(data["logits"], dtype=torch.float64).reshape(plain.shape)
        for row, real in enumerate((data.get("target_lengths") if "target" in data else data.get("lengths"))
                                   or [plain.shape[1]] * len(plain)):
            # To float32: RMS norms and rotary tables are computed in it.
            assert torch.allclose(plain[row, :real], expected[row, :real], atol=1e-4), name
        sites = len(calls)
        cases = [[[site, calls[site] - 1, "mean" if (site + turn) % 2 else "zero"] for site in range(sites)]
                 for turn in (0, 1)]
        cases.append([[sites - 1, head, "zero"] for head in range(calls[-1])])
        golden[name] = []
        for switched in cases:
            logits, _ = run(model, data, switched)
            assert not torch.allclose(logits, plain, atol=1e-3), name
            golden[name].append({"switched": switched, "logits": ends(logits, data)})
        print(name, sites, "sites")
    path = pathlib.Path(__file__).parent / "data/switched_heads.json"
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
