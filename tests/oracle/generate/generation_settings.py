#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of tiny golden models whose files hold generation settings, by transformers in float64: generation_settings.json.

    python tests/oracle/generate/generation_settings.py

`keys`: every key of GenerationConfig, with the value that generate() gives it where no file does. `answers`: the new
tokens of generate(max_new_tokens=N) for a folder with generation_config.json, or with the keys in config.json alone;
each differs from the answer without the keys that the case is about (`differs` false: transformers gives the same).
`starts`: the decoder's first token of folders, and null where transformers refuses to generate. `sampling`: the
tokens that sampling may draw, by transformers' warpers. Cases whose result float32 changes are left out.

Needs torch 2.14, transformers 5.23, safetensors.
"""

import json
import multiprocessing
import pathlib
import sys
import tempfile

import torch
import transformers
from transformers import GenerationConfig
from transformers.generation import logits_process

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "models"))
from models import ids, read_golden, write_checkpoint

TOKENS = 9

# name of the case: settings, in the file beside eos_token_id
EACH_KEY = {
    "forced_bos_token_id": {"forced_bos_token_id": 7},
    "forced_eos_token_id": {"forced_eos_token_id": 5},
    "forced_eos_token_id, two": {"forced_eos_token_id": [11, 5]},
    "bad_words_ids": {"bad_words_ids": [[31], [13, 36], [2], [5, 6, 7]]},
    "sequence_bias": {"sequence_bias": [[[3], 2.5], [[9], -1.5], [[3, 3], -9.0]]},
    "suppress_tokens": {"suppress_tokens": [3, 12, 13, 26, 31, 900]},
    "begin_suppress_tokens": {"begin_suppress_tokens": list(range(20, 41))},
    "begin_suppress_tokens, forced_bos_token_id": {"forced_bos_token_id": 7,
                                                   "begin_suppress_tokens": list(range(20, 41))},
    "repetition_penalty": {"repetition_penalty": 1.7},
    "encoder_repetition_penalty": {"encoder_repetition_penalty": 2.5},
    "no_repeat_ngram_size 1": {"no_repeat_ngram_size": 1},
    "no_repeat_ngram_size 2": {"no_repeat_ngram_size": 2},
    "encoder_no_repeat_ngram_size 1": {"encoder_no_repeat_ngram_size": 1},
    "encoder_no_repeat_ngram_size 2": {"encoder_no_repeat_ngram_size": 2},
    "min_length": {"min_length": 6},
    "min_new_tokens": {"min_new_tokens": 7},
    "exponential_decay_length_penalty": {"exponential_decay_length_penalty": [2, 2.5]},
    "renormalize_logits": {"renormalize_logits": True, "repetition_penalty": 3.0},
    "remove_invalid_values": {"remove_invalid_values": True, "suppress_tokens": [31]},
    "several": {"forced_bos_token_id": 4, "forced_eos_token_id": 2, "no_repeat_ngram_size": 2, "min_length": 4,
                "repetition_penalty": 1.2, "bad_words_ids": [[1]], "suppress_tokens": [8, 9]},
    "do_sample": {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "top_k": 5},
}
# The answer without the keys that are compared with: ends early, so that lengths matter.
PROBED = {"min_length": "ends", "min_new_tokens": "ends"}
ALL_SAME = ("do_sample", "renormalize_logits", "remove_invalid_values")  # no greedy answer follows from these

BEAMS = {
    "num_beams": {"num_beams": 3},
    "length_penalty": {"num_beams": 3, "length_penalty": 3.0},
    "length_penalty below 0": {"num_beams": 3, "length_penalty": -2.0},
    "early_stopping": {"num_beams": 3, "early_stopping": True},
    "early_stopping never": {"num_beams": 3, "early_stopping": "never", "length_penalty": 1.5},
}

MODELS = {"bart": "Seq2SeqLM", "mbart": "Seq2SeqLM", "marian": "Seq2SeqLM", "m2m-100": "Seq2SeqLM", "t5": "Seq2SeqLM",
          "gpt2": "CausalLM", "llama": "CausalLM"}


LOADED = {}


def model_of(name, files, kind=torch.float64):
    """The golden model whose folder has these files; a value of config.json is merged into its own."""
    alone = "config.json" not in files
    if alone and (name, kind) in LOADED:
        model = LOADED[name, kind]
        with tempfile.TemporaryDirectory() as folder:  # as from_pretrained() does at its end
            pathlib.Path(folder, "generation_config.json").write_text(json.dumps(files["generation_config.json"]))
            model.generation_config = GenerationConfig.from_pretrained(folder)
        return model
    data = read_golden(name)
    with tempfile.TemporaryDirectory() as checkpoint:
        place = pathlib.Path(checkpoint)
        write_checkpoint(place, data)
        config = json.loads((place / "config.json").read_text())
        config.update(files.get("config.json", {}))
        (place / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v != "absent"}))
        if "generation_config.json" in files:
            (place / "generation_config.json").write_text(json.dumps(files["generation_config.json"]))
        model = getattr(transformers, f"AutoModelFor{MODELS[name]}").from_pretrained(
            checkpoint, dtype=kind, attn_implementation="eager").eval()
    if alone:
        LOADED[name, kind] = model
    return model


def answer(model, source, tokens):
    prompt = torch.tensor([source])
    with torch.no_grad():
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                             **({"max_new_tokens": tokens} if tokens else {}))
    made = out[0].tolist()[1 if model.config.is_encoder_decoder else len(source):]
    ends = model.generation_config.eos_token_id
    for place, token in enumerate(made):  # padding behind the end
        if token in (ends if isinstance(ends, list) else [ends]):
            return made[:place + 1]
    return made


def sources(name):
    data = read_golden(name)
    vocabulary = data["config"]["vocab_size"]
    return [data["ids"][0][:7], ids(6, vocabulary, 3), [4]]


def early_ends(name, source):
    """An end token that a free answer reaches."""
    return answer(model_of(name, {"generation_config.json": start_of(name)}), source, 3)[2]


def start_of(name):
    return {"decoder_start_token_id": 2 if name != "t5" else 0} if MODELS[name] == "Seq2SeqLM" else {}


def make_case(cases, title, name, source, settings, ends, tokens=TOKENS, where="generation_config.json", without=None):
    base = {**start_of(name), "eos_token_id": ends}
    # Keys of config.json decide alone: what the golden file has beside them goes.
    clear = {key: "absent" for key in ("forced_eos_token_id", "bos_token_id", "num_beams", "max_length")}
    files = {where: {**(clear if where == "config.json" else {}), **base, **settings}}
    if sum(case["differs"] for case in cases if (case["case"], case["model"]) == (title, name)) == 2:
        return
    said = answer(model_of(name, files), source, tokens)
    if answer(model_of(name, files, torch.float32), source, tokens) != said:
        return
    plain = answer(model_of(name, {where: {**files[where], **{key: "absent" for key in settings}} if where == "config.json"
                                   else {**base, **(without or {})}}), source, tokens or TOKENS)
    case = {"case": title, "model": name, "files": files, "source": source, "tokens": tokens, "said": said,
            "differs": said != plain}
    cases.append(case)


FEW = ("forced_bos_token_id", "forced_eos_token_id", "bad_words_ids", "several")


def answers_of(name):
    torch.set_num_threads(1)
    cases = []
    for title, settings in EACH_KEY.items():
        if name in ("mbart", "m2m-100") and title not in FEW:
            continue
        for number, source in enumerate(sources(name)):
            ends = early_ends(name, source) if title in PROBED else 12 if title.startswith("exp") else 5
            make_case(cases, title, name, source, settings, ends)
            # Two forced tokens have equal scores, of which torch.topk takes either.
            if number == 0 and "two" not in title:
                make_case(cases, title + ", beams", name, source, {**settings, "num_beams": 3}, ends,
                          without={"num_beams": 3})
    for title, settings in BEAMS.items():
        for source in sources(name)[:2]:
            make_case(cases, title, name, source, settings, [5, 12, 31])
    source = sources(name)[0]
    for title in FEW + ("repetition_penalty", "min_length"):
        make_case(cases, title + " of config.json", name, source, EACH_KEY[title], 5, where="config.json")
    make_case(cases, "num_beams of config.json", name, source, {"num_beams": 3}, 5, where="config.json")
    begun = 1 if MODELS[name] == "Seq2SeqLM" else len(source)
    make_case(cases, "max_length", name, source, {"max_length": begun + 4, "forced_eos_token_id": 6}, 5, tokens=0)
    make_case(cases, "max_new_tokens", name, source, {"max_new_tokens": 6, "max_length": begun + 3}, 5, tokens=0)
    make_case(cases, "_from_model_config", name, [4],
              {"_from_model_config": True, "force_bos_token_to_be_generated": True, "bos_token_id": 9}, 5)
    # The oldest files of BART: the first token is forced by a flag.
    make_case(cases, "force_bos_token_to_be_generated", name, [4],
              {"force_bos_token_to_be_generated": True, "bos_token_id": 9}, 5, where="config.json")
    return cases


def answers():
    with multiprocessing.Pool(4) as pool:
        return chosen([case for cases in pool.map(answers_of, MODELS, chunksize=1) for case in cases])


def chosen(cases):
    """Of each case and model up to two, those that differ before others; each key must show in some answer."""
    kept, count = [], {}
    for case in sorted(cases, key=lambda one: not one["differs"]):
        key = case["case"], case["model"]
        count[key] = count.get(key, 0) + 1
        if count[key] <= (2 if case["differs"] else 1):
            kept.append(case)
    for title in {case["case"] for case in kept}:
        differs = any(case["differs"] for case in kept if case["case"] == title)
        if not differs and title.split(",")[0] not in ALL_SAME:
            print("no answer shows", title, file=sys.stderr)
    return kept


def starts():
    """What a decoder begins with: generation_config.json, config.json, neither."""
    cases = []
    absent = {key: "absent" for key in ("decoder_start_token_id", "bos_token_id")}
    for own in ({}, {"decoder_start_token_id": 9}, {"bos_token_id": 8}, {"decoder_start_token_id": 9, "bos_token_id": 8}):
        for config in (absent, {**absent, "decoder_start_token_id": 7}, {**absent, "bos_token_id": 6},
                       {"decoder_start_token_id": 7, "bos_token_id": 6}):
            for has_file in (True, False):
                if own and not has_file:
                    continue
                files = {"config.json": config} | ({"generation_config.json": own} if has_file else {})
                prompt = torch.tensor([[5, 6, 7]])
                try:
                    out = model_of("bart", files).generate(prompt, attention_mask=torch.ones_like(prompt),
                                                           max_new_tokens=1)
                    start = out[0, 0].item()
                except ValueError as error:
                    assert "decoder_start_token_id" in str(error)
                    start = None
                cases.append({"files": files, "start": start})
    return cases


def sampling():
    """Tokens that are left of 12 by top_k, top_p and min_p behind a temperature."""
    cases = []
    for number in range(6):
        row = [((ids(12, 97, number)[i] - 40) / 16) for i in range(12)]
        for temperature, top_k, top_p, min_p in ((1.0, 0, 1.0, 0.2), (0.5, 0, 1.0, 0.1), (2.0, 6, 1.0, 0.5),
                                                 (1.5, 0, 0.8, 0.3), (1.0, 5, 0.9, 0.05), (0.7, 0, 1.0, 1.0)):
            scores = torch.tensor([row], dtype=torch.float64) / temperature
            if top_k:
                scores = logits_process.TopKLogitsWarper(top_k)(None, scores)
            if top_p < 1:
                scores = logits_process.TopPLogitsWarper(top_p)(None, scores)
            scores = logits_process.MinPLogitsWarper(min_p)(None, scores)
            cases.append({"logits": row, "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
                          "kept": scores[0].isfinite().nonzero().flatten().tolist()})
    return cases


def keys():
    defaults = GenerationConfig._get_default_generation_params()
    return {name: defaults.get(name) for name in sorted(vars(GenerationConfig())) if name != "_original_object_hash"}


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    made = {"keys": keys(), "starts": starts(), "sampling": sampling(), "answers": answers()}
    lines = [f'"keys":{json.dumps(made["keys"], separators=(",", ":"))}']
    for part in ("starts", "sampling", "answers"):
        lines.append(f'"{part}":[\n' + ",\n".join(json.dumps(one, separators=(",", ":")) for one in made[part]) + "]")
    (pathlib.Path(__file__).parent / "data/generation_settings.json").write_text("{" + ",\n".join(lines) + "}\n")
    print({part: len(cases) for part, cases in made.items()}, file=sys.stderr)


if __name__ == "__main__":
    main()
