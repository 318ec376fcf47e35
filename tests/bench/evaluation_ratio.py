# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast requests are scored: `headscope evaluate` beside lm-evaluation-harness's `hf` model.

    python evaluation_ratio.py HEADSCOPE [--items 50] [--pairs 3] [--threads 2] [--batches 1,4,16,64] [--check]

A random Llama of laptop size in float32 with a tokenizer trained on its own made-up words, and items shaped like those of
hellaswag (a context, four endings) and boolq (a long passage, two one-word answers). In turns, on the same threads:

    harness     HFLM.loglikelihood of the task's requests at each batch size, tokenizing included; the model is loaded
    headscope   the process `evaluate --task ... --json` less the same process with --limit 1: what both take to start,
                to read the weights and to write rows falls out

The ratio is that of medians, the harness at its best batch size; above 1 headscope is faster. Log-likelihoods of the
first items are compared, so that both have done the same. Without HEADSCOPE ("-") the harness is timed alone.

Wants: lm_eval 0.4.13, torch, transformers (tests/oracle/requirements.txt), an idle machine. --check makes exit status 1
of a ratio below 2.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

BOUND = 2
TASKS = ("hellaswag", "boolq")


class Words:
    """Sentences of made-up words, frequent ones short, as in a language."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        syllables = [c + v for c in "bcdfghklmnprstvwz" for v in ("a", "e", "i", "o", "u", "ai", "en", "or")]
        self.words = ["".join(self.random.choice(syllables) for _ in range(1 + i // 3000)) for i in range(9000)]
        self.weights = [1 / (i + 3) for i in range(len(self.words))]

    def sentence(self, words):
        chosen = self.random.choices(self.words, self.weights, k=max(1, words))
        return " ".join(chosen).capitalize()

    def about(self, mean, spread):
        return max(2, round(self.random.gauss(mean, spread)))


def write_lines(path, items):
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(item) + "\n" for item in items))


def make_items(folder, words, count):
    """Lengths in words are about those of the tasks."""
    hellaswag = [{"activity_label": "Doing", "ctx_a": words.sentence(words.about(35, 15)) + ".",
                  "ctx_b": words.sentence(words.about(4, 2)), "label": str(i % 4),
                  "endings": [words.sentence(words.about(18, 6)) + "." for _ in range(4)]} for i in range(count)]
    boolq = [{"passage": ". ".join(words.sentence(words.about(18, 5)) for _ in range(words.about(6, 2))) + ".",
              "question": words.sentence(8).lower(), "label": i % 2} for i in range(count)]
    write_lines(folder / "hellaswag" / "validation.jsonl", hellaswag)
    write_lines(folder / "boolq" / "validation.jsonl", boolq)
    return hellaswag, boolq


def requests_of(hellaswag, boolq):
    pairs = []
    for item in hellaswag:
        context = f"{item['activity_label']}: {item['ctx_a']} {item['ctx_b'].capitalize()}"
        pairs += [(context, " " + ending) for ending in item["endings"]]
    for item in boolq:
        context = f"{item['passage']}\nQuestion: {item['question']}?\nAnswer:"
        pairs += [(context, " no"), (context, " yes")]
    return [Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=i) for i, pair in enumerate(pairs)]


def make_model(folder, words, arguments):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        (words.sentence(200) for _ in range(1000)),
        trainers.BpeTrainer(vocab_size=arguments.vocabulary, special_tokens=["<s>", "</s>"], show_progress=False,
                            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>").save_pretrained(folder)
    torch.manual_seed(1)
    LlamaForCausalLM(LlamaConfig(
        vocab_size=arguments.vocabulary, hidden_size=arguments.hidden, intermediate_size=arguments.hidden * 11 // 4,
        num_hidden_layers=arguments.layers, num_attention_heads=max(1, arguments.hidden // 64),
        max_position_embeddings=2048, bos_token_id=0, eos_token_id=1)).save_pretrained(folder)


def seconds_of(work):
    began = time.perf_counter()
    value = work()
    return time.perf_counter() - began, value


class Program:
    def __init__(self, program, model, data, threads, scratch):
        self.items = scratch / "items.jsonl"
        self.command = [program, "evaluate", str(model), "--task", ",".join(TASKS), "--data", str(data), "--json"]
        self.threads = threads

    def run(self, *more):
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
        done = subprocess.run([*self.command, *more], capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(self.command)}\n{done.stderr.strip()}")

    def seconds(self):
        """Of all items but one."""
        return seconds_of(self.run)[0] - seconds_of(lambda: self.run("--limit", "1"))[0]

    def loglikelihoods(self):
        self.items.unlink(missing_ok=True)
        self.run("--items", str(self.items))
        return [value for line in self.items.read_text().splitlines() for value in json.loads(line)["loglikelihood"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope")
    parser.add_argument("--items", type=int, default=50, help="of each task")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", default="1,4,16,64")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        words = Words(3)
        make_model(scratch / "model", words, arguments)
        requests = requests_of(*make_items(scratch / "data", words, arguments.items))
        batches = [int(part) for part in arguments.batches.split(",")]
        harness = HFLM(pretrained=str(scratch / "model"), dtype="float32", device="cpu", batch_size=1)
        program = None
        if arguments.headscope != "-":
            program = Program(arguments.headscope, scratch / "model", scratch / "data", arguments.threads, scratch)
        times, ours = {batch: [] for batch in batches}, []
        for _ in range(arguments.pairs):
            for batch in batches:
                harness.batch_size_per_gpu = batch
                seconds, answers = seconds_of(lambda: harness.loglikelihood(requests, disable_tqdm=True))
                times[batch].append(seconds)
            if program:
                ours.append(program.seconds())
        tokens = sum(len(harness.tok_encode("".join(request.args))) for request in requests)
        print(f"{len(requests)} requests, {tokens} tokens, {arguments.threads} threads")
        for batch in batches:
            print(f"    harness, batches of {batch:<3} {statistics.median(times[batch]):8.2f} s")
        if not program:
            return 0
        best = min(statistics.median(one) for one in times.values())
        ratio = best / statistics.median(ours)
        apart = max(abs(mine - theirs[0]) for mine, theirs in zip(program.loglikelihoods(), answers, strict=True))
        print(f"    headscope               {statistics.median(ours):8.2f} s")
        print(f"    harness / headscope     {ratio:8.2f}   log-likelihoods apart by {apart:.1e}")
        return 1 if arguments.check and (ratio < BOUND or apart > 1e-2) else 0


if __name__ == "__main__":
    sys.exit(main())
