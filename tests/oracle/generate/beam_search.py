#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the golden encoder-decoders of models/ say by beam search, by transformers in float64: beam_search.json.

    python tests/oracle/generate/beam_search.py

`plain` cases are generate(num_beams=W, length_penalty=alpha, early_stopping="never"). transformers has no penalty of
Wu et al.: those cases are of a search written here from its definition, without caches, which must give what generate()
gives with the plain penalty. Cases whose result float32 changes are left out.

Needs torch 2.14, transformers 5.23, safetensors.
"""

import json
import pathlib
import sys
import tempfile

import torch
import transformers

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "models"))
from models import read_golden, write_checkpoint

MODELS = ("bart", "t5", "umt5", "marian")
SEARCHES = ((1, 0.6), (2, 1.0), (4, 0.0), (4, 0.6), (3, -1.0), (6, 2.0))


def generated(model, source, width, alpha, tokens, ends):
    ids = torch.tensor([source])
    out = model.generate(ids, attention_mask=torch.ones_like(ids), num_beams=width, length_penalty=alpha,
                         early_stopping="never", max_new_tokens=tokens, do_sample=False, eos_token_id=ends,
                         forced_bos_token_id=None, forced_eos_token_id=None, pad_token_id=model.config.pad_token_id,
                         bad_words_ids=None, return_dict_in_generate=True, output_scores=True)
    made = out.sequences[0].tolist()[1:]
    for place, token in enumerate(made):  # padding behind the end
        if token in ends:
            made = made[:place + 1]
            break
    return made, float(out.sequences_scores[0]) if width > 1 else None


def searched(model, source, width, penalty, tokens, ends):
    """The best of all hypotheses that beams of this width ever make."""
    start, best, beams = model.config.decoder_start_token_id, (-float("inf"), []), [(0.0, [])]
    for length in range(1, tokens + 1):
        found = []
        for total, said in beams:
            out = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[start, *said]]))
            row = out.logits[0, -1].log_softmax(-1)
            found += [(total + float(value), [*said, token]) for token, value in enumerate(row)]
        found.sort(key=lambda one: -one[0])
        ended = [one for one in found[:width] if one[1][-1] in ends or length == tokens]
        best = max([best, *((total / penalty(length), said) for total, said in ended)], key=lambda one: one[0])
        if width == 1 and ended:
            break
        beams = [one for one in found if one[1][-1] not in ends][:width]
    return best[1], best[0]


def wu(alpha):
    return lambda length: ((5 + length) / 6) ** alpha


def main():
    cases = []
    for name in MODELS:
        data = read_golden(name)
        with tempfile.TemporaryDirectory() as checkpoint, torch.no_grad():
            write_checkpoint(pathlib.Path(checkpoint), data)
            double, single = (transformers.AutoModelForSeq2SeqLM.from_pretrained(
                checkpoint, dtype=kind, attn_implementation="eager").eval() for kind in (torch.float64, torch.float32))
            for number, source in enumerate(data["ids"]):
                for ends in ([data["config"]["eos_token_id"]], [5, 8, 25], []):
                    for width, alpha in SEARCHES:
                        tokens = 5 + (number + width) % 7
                        case = {"model": name, "source": source, "width": width, "alpha": alpha, "tokens": tokens,
                                "ends": ends}
                        plain = generated(double, source, width, alpha, tokens, ends or [-1])
                        mine = searched(double, source, width, lambda length: length**alpha, tokens, ends)
                        assert mine[0] == plain[0], (case, mine, plain)
                        assert width == 1 or abs(mine[1] - plain[1]) < 1e-6 * abs(mine[1]), (case, mine, plain)
                        for kind, penalty in (True, lambda length: length**alpha), (False, wu(alpha)):
                            said, score = searched(double, source, width, penalty, tokens, ends)
                            if searched(single, source, width, penalty, tokens, ends)[0] == said:
                                cases.append(case | {"plain": kind, "said": said, "score": round(score, 7)})
    text = json.dumps(cases, separators=(",", ":")).replace("},{", "},\n{")
    (pathlib.Path(__file__).parent / "data/beam_search.json").write_text(text + "\n")
    print(len(cases), "cases,", sum(case["said"][-1] in case["ends"] for case in cases), "ended")


if __name__ == "__main__":
    main()
