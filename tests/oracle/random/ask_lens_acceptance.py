#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""`headscope ask` on random GPT-2, Pythia and Llama checkpoints against TransformerLens itself, in float32: all
activation patches, logit lens, logit attribution, composition scores and head detection.

    ask_lens_acceptance.py HEADSCOPE [--packages FOLDER] [--only CASE]

Skipped (77) without the package transformer_lens.
"""

import json
import pathlib
import sys
import tempfile
import traceback

import tokenizers
import torch
import transformers

import foreign_packages
from ask_acceptance import ask, compare, make, read

ANSWER, AGAINST = 3, 5
TOKENS, VOCABULARY = 8, 61
DETECTION_TOLERANCE = 5e-4 + 2e-6  # TransformerLens rounds `abs` to 3 decimals; float32
# TransformerLens's patches write into the tensor, which at resid_mid is the skip connection's, too: residual_middle.
# Function of TransformerLens (get_act_patch_...), our point, our --by.
PATCHES = [("resid_pre", "residual_before", "head"), ("resid_mid", "residual_middle", "head"),
           ("attn_out", "attention_output", "head"), ("mlp_out", "feed_forward_output", "head")]
HEAD_POINTS = [("out", "head_output"), ("q", "query"), ("k", "key"), ("v", "value"), ("pattern", "pattern")]
PATCHES += [(f"attn_head_{theirs}_all_pos", ours, "head") for theirs, ours in HEAD_POINTS]
PATCHES += [(f"attn_head_{theirs}_by_pos", ours, "both") for theirs, ours in HEAD_POINTS]
PATCHES += [("attn_head_pattern_dest_src_pos", "pattern", "cell")]
KINDS = {"previous": "previous_token_head", "duplicate": "duplicate_token_head", "induction": "induction_head"}


def cases():
    common = {"vocab_size": VOCABULARY, "initializer_range": 0.3, "bos_token_id": 1, "eos_token_id": 2}
    sizes = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 48,
             "max_position_embeddings": 32, **common}
    neox = transformers.GPTNeoXConfig
    return {
        "gpt2": (transformers.GPT2LMHeadModel,
                 transformers.GPT2Config(n_embd=32, n_layer=4, n_head=4, n_positions=32, **common)),
        "pythia": (transformers.GPTNeoXForCausalLM, neox(use_parallel_residual=True, **sizes)),
        "pythia-serial": (transformers.GPTNeoXForCausalLM, neox(use_parallel_residual=False, **sizes)),
        "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig(num_key_value_heads=2, **sizes)),
    }


def word_tokenizer(folder):
    """A tokenizer read from `folder`: TransformerLens reads it again from there."""
    words = {f"w{token}": token for token in range(VOCABULARY)}
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(tokenizer_object=plain, bos_token="w1", eos_token="w2", pad_token="w0",
                                         unk_token="w0").save_pretrained(folder)
    return transformers.AutoTokenizer.from_pretrained(folder)


def bridge_of(folder):
    """TransformerLens's bridge of a model of its own: folding changes the weights in place."""
    from transformer_lens.model_bridge import TransformerBridge
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    return TransformerBridge.boot_transformers(str(folder), hf_model=model.eval(), device="cpu",
                                               tokenizer=word_tokenizer(folder.parent / "tokenizer"))


def logit_difference(logits):
    return logits[0, -1, ANSWER] - logits[0, -1, AGAINST]


def expected_patches(bridge, clean, corrupted, parallel):
    """By our --by, then by our point."""
    from transformer_lens import patching
    _, cache = bridge.run_with_cache(torch.tensor([clean]))
    found = {}
    for theirs, ours, by in PATCHES:
        if parallel and theirs == "resid_mid":
            continue
        sweep = getattr(patching, f"get_act_patch_{theirs}")
        values = sweep(bridge, torch.tensor([corrupted]), cache, logit_difference)
        if by == "both" and ours != "pattern":
            values = values.transpose(1, 2)  # [layers, positions, heads] of theirs
        found.setdefault(by, {})[f"value/{ours}"] = values.detach()[None].tolist()
    return found


def expected_lens(bridge, ids):
    _, cache = bridge.run_with_cache(torch.tensor([ids]))
    logits = cache.logit_lens(positions=None).readout.values
    logs = logits.detach().double().reshape(-1, len(ids), VOCABULARY).log_softmax(-1)
    target = torch.tensor(ids[1:])
    own = logs[:, :-1].gather(-1, target.expand(len(logs), -1)[..., None])[..., 0]
    rest = torch.full((len(logs), 1), float("nan"), dtype=torch.float64)
    return {"log_probability": torch.cat([own, rest], 1)[None].tolist(),
            "kl": (logs[-1].exp() * (logs[-1] - logs)).sum(-1)[None].tolist(),
            "entropy": (-(logs.exp() * logs).sum(-1))[None].tolist(),
            "top_probability": logs.exp().topk(5).values[None].tolist()}


def expected_attribution(folder, ids):
    """Terms of the folded model: heads without the value bias, feed-forward, embeddings."""
    from transformer_lens.tools.analysis.direct_logit_attribution import direct_logit_attribution
    bridge = bridge_of(folder)
    bridge.enable_compatibility_mode(disable_warnings=True)
    terms = lambda unit: direct_logit_attribution(bridge, torch.tensor([ids]), ANSWER, AGAINST, unit=unit)
    heads, parts = terms("head"), terms("component")
    values = lambda found: {label: value.item() for label, value in zip(found.labels, found.attribution.reshape(-1))}
    heads, parts = values(heads), values(parts)
    config = bridge.cfg
    return {
        "bare_head": [[[heads[f"L{n}H{h}"] for h in range(config.n_heads)] for n in range(config.n_layers)]],
        "feed_forward": [[parts[f"{n}_mlp_out"] for n in range(config.n_layers)]],
        "attention": [[parts[f"{n}_attn_out"] for n in range(config.n_layers)]],
        "embeddings": [parts["embed"] + parts.get("pos_embed", 0)],
    }


def stored_attribution(path):
    found = read(path, "attribution")
    tensor = lambda key: torch.tensor(found[key], dtype=torch.float64)
    found["bare_head"] = (tensor("head") - tensor("head_value_bias")).tolist()
    found["embeddings"] = (tensor("embedding") + tensor("position_embedding")).tolist()
    return found


def expected_composition(bridge):
    scores = {mode: bridge.all_composition_scores(mode).scores for mode in "QKV"}
    return {f"composition_{mode.lower()}": found.detach().tolist() for mode, found in scores.items()}


def expected_kinds(bridge, ids, exclude):
    from transformer_lens.head_detector import detect_head
    bridge.to_tokens = lambda tokens: tokens
    found = {}
    for ours, theirs in KINDS.items():
        for measure, name in (("mul", ours), ("abs", f"{ours}_absolute")):
            found[name] = detect_head(bridge, torch.tensor([ids]), theirs, error_measure=measure, exclude_bos=exclude,
                                      exclude_current_token=exclude)[None].tolist()
    return found


def comparisons(program, name, kind, config, place):
    """Functions that compare one tool each, or raise."""
    folder, output = place / "model", place / "out.ask.h5"
    make(kind, config).save_pretrained(folder)
    generator = torch.Generator().manual_seed(5)
    clean, corrupted = (torch.randint(3, VOCABULARY, (TOKENS,), generator=generator).tolist() for _ in range(2))
    repeated = clean * 2
    files = {}
    for key, ids in (("clean", clean), ("corrupted", corrupted), ("repeated", repeated)):
        files[key] = place / f"{key}.json"
        files[key].write_text(json.dumps([ids]))
    choice = ["--answer", str(ANSWER), "--against", str(AGAINST)]
    bridge = bridge_of(folder)

    def patch():
        parallel = getattr(config, "use_parallel_residual", False)
        for by, expected in expected_patches(bridge, clean, corrupted, parallel).items():
            ask(program, "patch", folder, output, "--clean-tokens", files["clean"], "--corrupted-tokens",
                files["corrupted"], "--by", by, "--sites", ",".join(key.split("/")[1] for key in expected), *choice)
            compare(f"{name}, patch by {by}", expected, read(output, "patch"))

    def lens():
        ask(program, "lens", folder, output, "--tokens", files["clean"])
        compare(f"{name}, lens", expected_lens(bridge, clean), read(output, "lens"))

    def attribution():
        ask(program, "attribution", folder, output, "--tokens", files["clean"], *choice)
        compare(f"{name}, attribution", expected_attribution(folder, clean), stored_attribution(output))

    def composition():
        ask(program, "circuits", folder, output)
        compare(f"{name}, composition", expected_composition(bridge), read(output, "circuits"))

    def kinds():
        for exclude in (False, True):
            ask(program, "kinds", folder, output, "--tokens", files["repeated"],
                *(["--exclude-first", "--exclude-current"] if exclude else []))
            compare(f"{name}, kinds{', the first and current token excluded' * exclude}",
                    expected_kinds(bridge, repeated, exclude), read(output, "kinds"), DETECTION_TOLERANCE)

    return [patch, lens, attribution, composition, kinds]


def main():
    given = foreign_packages.arguments(__doc__, ("--only", {"choices": list(cases())}))
    foreign_packages.load("transformer_lens", given.packages)
    failed = 0
    for name, (kind, config) in cases().items():
        if given.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as place, torch.no_grad():
            for comparison in comparisons(given.headscope, name, kind, config, pathlib.Path(place)):
                try:
                    comparison()
                except Exception:  # comparisons are independent; the exit status reports the failure
                    traceback.print_exc()
                    failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
