# SPDX-License-Identifier: GPL-3.0-or-later
"""What lm-evaluation-harness 0.4.13 reads and scores for a context and a continuation: its own functions, with a model
that writes down what it is given.

    python harness_requests.py       # writes harness_requests.json; wants lm_eval 0.4.13, transformers

Tokenizers are those of tests/oracle/generate/data/tokenizer, with what `tokenizers` here adds to their documents. An entry without
ids is one that lm-eval stops at.
"""

import copy
import json
import tempfile
from pathlib import Path

import torch
from lm_eval.api.instance import Instance
from lm_eval.api.model import CacheHook
from lm_eval.models.huggingface import HFLM
from transformers import PreTrainedTokenizerFast

DATA = Path(__file__).parent / "data"
END = "<|endoftext|>"
CUT = {"truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
       "padding": {"strategy": {"Fixed": 12}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 1,
                   "pad_type_id": 0, "pad_token": "x"}}
TOKENIZERS = {
    # file, tokens added behind the vocabulary, changes of the document, names, backend
    "llama": ("llama2", [], {}, {"bos_token": "<s>", "eos_token": "</s>"}, "causal"),
    "gpt2": ("gpt2", [END], CUT, {"bos_token": END, "eos_token": END}, "causal"),
    "end_only": ("gpt2", [END], {}, {"eos_token": END}, "causal"),
    "t5": ("t5", [], {}, {"eos_token": "</s>", "pad_token": "<pad>"}, "seq2seq"),
}
PAIRS = [
    ("Question: What is the answer?\nAnswer:", " no"), ("Question: What is the answer?\nAnswer:", " yes"),
    ("the", "re is"), ("the re", "st of the words"), ("un", "der"), ("the ", "answer"), ("the", " answer"),
    ("the  ", " answer"), ("the \n\t ", "answer"), ("a\u00a0\u2003", "b"), ("a\u3000", "\u3000b"), ("a\x1f\x1c", "b"),
    ("a\u200b", "b"), ("a\u0085 \u2028", "b"), ("the", "\n"), ("the", " "), ("the ", ""), ("the answer", ""),
    ("  ", "answer"), (" \n", " "), ("", " answer"), ("", "answer"), ("", ""), ("", " "),
    ("<s>the", " answer"), ("<s>", "the answer"), ("", "<s>"), ("", "<s> the"), ("", "<s><s>"), ("<s", ">the"),
    ("the", " <s>"), ("<s> ", "the"), ("</s>the", " end"), ("", "</s> the"), ("</s", "> the"), (" <s>", " the"),
    (END + "the", " answer"), (END, "the answer"), ("", END), ("", END + " the"), ("<|endof", "text|> the"),
    ("Caf\u00e9 na\u00efve \u2014", " \u00fcber \U0001f600"), ("e", "\u0301t\u00e9"), ("\U0001f468\u200d", "\U0001f469"),
    ("one two three four five six seven eight nine ten", " eleven twelve thirteen"),
]
LENGTHS = (2048, 9, 4, 1)
PAGES = ["", " ", "the", "<s>", "<s> the answer", "</s>", END + " the", "the answer is here",
         "one two three four five six seven eight nine ten eleven twelve\n = Title = \nthirteen"]
PAGE_LENGTHS = (2048, 7, 4, 1)


def document(file, added, changes):
    made = json.loads((DATA / "tokenizer" / f"{file}.json").read_text())
    first = 1 + max([len(made["model"]["vocab"]) - 1, *(token["id"] for token in made["added_tokens"])])
    made["added_tokens"] += [
        {"id": first + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True} for i, text in enumerate(added)]
    made.update(copy.deepcopy(changes))
    return made


class Recorder(HFLM):
    """lm-eval's model around a tokenizer: all its own, but for the pass."""

    def __init__(self, tokenizer, backend):
        self.tokenizer, self.backend = tokenizer, backend
        self.batch_size_per_gpu = 1
        self.add_bos_token = self.custom_prefix_token_id = self.softmax_dtype = None
        self.enable_thinking = self.logits_cache = False
        self._rank, self._world_size, self._device = 0, 1, torch.device("cpu")
        self.cache_hook = CacheHook(None)
        self.asked = []

    def ask(self, length, act):
        self._max_length, self.asked = length, []
        try:
            act()
        except (AssertionError, IndexError, RuntimeError):
            return None
        return self.asked

    def _loglikelihood_tokens(self, requests, disable_tqdm=False, override_bs=None):
        self.scored = [list(request[2]) for request in requests]
        return super()._loglikelihood_tokens(requests, disable_tqdm=True, override_bs=override_bs)

    def _model_call(self, inps, attn_mask=None, labels=None):
        (read,) = inps.tolist()
        (scored,) = self.scored
        if labels is None:
            self.asked.append({"ids": read + scored[-1:], "scored": len(scored)})
        else:
            self.asked.append({"source": read, "ids": labels[0].tolist(), "scored": len(scored)})
        return torch.zeros(1, (inps if labels is None else labels).shape[1], len(self.tokenizer))


def cases(lm):
    pairs = []
    for length in LENGTHS:
        for context, continuation in PAIRS:
            request = Instance(request_type="loglikelihood", doc={}, arguments=(context, continuation), idx=0)
            asked = lm.ask(length, lambda: lm.loglikelihood([request], disable_tqdm=True))
            pairs.append({"context": context, "continuation": continuation, "length": length,
                          **(asked[0] if asked else {})})
    pages = []
    for length in PAGE_LENGTHS:
        for page in PAGES:
            request = Instance(request_type="loglikelihood_rolling", doc={}, arguments=(page,), idx=0)
            asked = lm.ask(length, lambda: lm.loglikelihood_rolling([request], disable_tqdm=True))
            assert asked is not None
            pages.append({"page": page, "length": length, "windows": asked})
    return {"pairs": pairs, "pages": pages}


def main():
    made = {}
    for name, (file, added, changes, names, backend) in TOKENIZERS.items():
        whole = document(file, added, changes)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tokenizer.json"
            path.write_text(json.dumps(whole))
            tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path), **names)
        lm = Recorder(tokenizer, backend)
        made[name] = {"file": file, "added_tokens": whole["added_tokens"], "changes": changes, "names": names,
                      "encoder_decoder": backend == "seq2seq", "prefix": lm.prefix_token_id,
                      "prefix_text": tokenizer.decode(lm.prefix_token_id), **cases(lm)}
    lines = json.dumps(made, ensure_ascii=True, separators=(",", ":")).replace('{"context"', '\n{"context"')
    (DATA / "harness_requests.json").write_text(lines.replace('{"page"', '\n{"page"') + "\n")


if __name__ == "__main__":
    main()
