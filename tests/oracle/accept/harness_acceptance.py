# SPDX-License-Identifier: GPL-3.0-or-later
"""`headscope evaluate` on lm-eval's tasks against transformers in float32, one request at a time.

    python harness_acceptance.py HEADSCOPE

Random checkpoints (a Llama whose tokenizer adds a beginning, GPT-2 whose tokenizer.json brings a truncation, T5, a native
stack with a recurrent layer) are asked the small data sets of harness/data, with 0, 1 and 5 examples, at the model's length and
at a short one that cuts. What was asked (--prompts) is scored again by lm-eval's rules, which are written down here a
second time: log-likelihoods, greedy flags, numbers of tokens, answers that are said; values and errors follow from the
items. Examples are drawn again with Python's random. Where lm_eval can be imported its own model scores the same texts.
"""

import argparse
import itertools
import json
import math
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors

sys.path += [str(Path(__file__).resolve().parents[1] / folder) for folder in ("generate", "random")]
import native_oracle
import random_native
import tokenizer_files

try:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM
except ImportError:
    HFLM = None

DATA = Path(__file__).resolve().parents[1] / "generate/data/harness/data"
# float32 log-softmax of some hundred logits, each good to about 1e-6 of a nat or so, and as many of them as are summed.
# Both sides compute in float32: each is good to half of this.
ABSOLUTE, RELATIVE = 2e-4, 2e-5
RESAMPLES = 2000
CHOICES = ("arc_easy", "arc_challenge", "boolq", "copa", "piqa", "sciq", "rte", "sglue_rte", "hellaswag", "winogrande",
           "openbookqa", "social_iqa")
WORDS = ("lambada_openai", "lambada_standard")
# Answers: the limit of tokens, and the text that ends them.
SAID = {"fda": (48, "\n"), "based_nq": (48, "\n"), "squad_completion": (256, "\n\n")}
NATIVE = ("arc_easy", "winogrande", "lambada_openai")


def save(folder, tokenizer, model, **tokens):
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **tokens)
    folder.mkdir(exist_ok=True)
    wrapped.save_pretrained(folder)
    if model is not None:
        model.eval().save_pretrained(folder)


def llama(folder):
    # Words apart: a piece of white space behind a word would leave nothing to score of one that is white space.
    data = tokenizer_files.sentences(pre=pre_tokenizers.Metaspace(prepend_scheme="first"))
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    config = transformers.LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=48, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=1024, initializer_range=0.2, bos_token_id=1,
        eos_token_id=2)
    save(folder, tokenizer, transformers.LlamaForCausalLM(config), bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def gpt2(folder):
    tokenizer = tokenizer_files.gpt2()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    end = tokenizer.token_to_id("<|endoftext|>")
    config = transformers.GPT2Config(
        vocab_size=tokenizer.get_vocab_size(), n_embd=48, n_layer=2, n_head=4, n_positions=512, initializer_range=0.2,
        bos_token_id=end, eos_token_id=end)
    save(folder, tokenizer, transformers.GPT2LMHeadModel(config), bos_token="<|endoftext|>", eos_token="<|endoftext|>")
    written = json.loads((folder / "tokenizer.json").read_text())
    written["truncation"] = {"direction": "Right", "max_length": 16, "strategy": "LongestFirst", "stride": 0}
    (folder / "tokenizer.json").write_text(json.dumps(written))


def t5(folder):
    """Bytes, so that no text is without tokens."""
    tokenizer = tokenizer_files.byte_level(add_prefix_space=False)
    tokenizer.add_special_tokens(["<pad>", "</s>"])
    end = tokenizer.token_to_id("</s>")
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", end)])
    start = tokenizer.token_to_id("<pad>")
    config = transformers.T5Config(
        vocab_size=tokenizer.get_vocab_size(), d_model=48, d_kv=12, d_ff=64, num_layers=2, num_decoder_layers=2, num_heads=4,
        initializer_factor=2.0, decoder_start_token_id=start, pad_token_id=start, eos_token_id=end)
    save(folder, tokenizer, transformers.T5ForConditionalGeneration(config), eos_token="</s>", pad_token="<pad>")


def native(folder):
    tokenizer = tokenizer_files.gpt2()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    random_native.native(folder, 5, ["gated_deltanet", "standard"], vocab_size=tokenizer.get_vocab_size(),
                         max_position_embeddings=1024)
    save(folder, tokenizer, None, eos_token="<|endoftext|>")


class Mirror:
    """lm-eval's model, by its rules."""

    def __init__(self, folder):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.config = json.loads((folder / "config.json").read_text())
        self.pairs = self.config["model_type"] == "t5"
        self.native = self.config["model_type"] == "headscope"
        if self.native:
            self.model = native_oracle.load(folder, False)
        else:
            kind = transformers.AutoModelForSeq2SeqLM if self.pairs else transformers.AutoModelForCausalLM
            self.model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        first = self.tokenizer.bos_token_id
        self.prefix = self.tokenizer.eos_token_id if first is None else first
        self.length = self.config.get("n_positions") or self.config.get("max_position_embeddings") or 2048
        self.known = {}

    def encode(self, text, special=True):
        special = special and not text.startswith(self.tokenizer.decode(self.prefix))
        return self.tokenizer.encode(text, add_special_tokens=special)

    def pair(self, context, continuation):
        if context == "":
            after = self.encode(continuation, False)
            return ([self.prefix], after) if after[0] != self.prefix else (after[:1], after[1:])
        bare = context.rstrip()
        continuation, context = context[len(bare):] + continuation, bare
        before = self.encode(context)
        return before, self.encode(continuation, False) if self.pairs else self.encode(context + continuation)[len(before):]

    def logarithms(self, source, target):
        """Of a decoder: behind each token of `source`; of an encoder-decoder: for each of `target`."""
        key = (tuple(source), tuple(target) if self.pairs else None)
        if key not in self.known:
            if self.native:
                logits = self.model.run(source)[0]
            elif self.pairs:
                logits = self.model(input_ids=torch.tensor([source]), labels=torch.tensor([target])).logits[0]
            else:
                logits = self.model(torch.tensor([source])).logits[0]
            self.known[key] = logits.float().log_softmax(-1)
        return self.known[key]

    def score(self, before, after, length):
        if self.pairs:
            rows = self.logarithms(before[-length:], after[-length:])
        else:
            rows = self.logarithms((before + after)[-(length + 1):][:-1], None)
        rows, targets = rows[-len(after):], torch.tensor(after)
        return rows.gather(1, targets[:, None]).sum().item(), bool((rows.argmax(-1) == targets).all()), len(after)

    def page(self, text, length):
        tokens = self.encode(text)
        total, greedy, count = 0.0, True, 0
        for begin in range(0, len(tokens), length):
            end = min(begin + length, len(tokens))
            start = max(0, end - length)  # the last window reaches back
            before = ([self.prefix] + tokens)[start : begin + 1]
            value, every, number = self.score(before, tokens[begin:end], length)
            total, greedy, count = total + value, greedy and every, count + number
        return total, greedy, count

    def answer(self, prompt, most, stop, length):
        ids = self.encode(prompt)[-(length - most):]
        made = self.model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                                   do_sample=False, max_new_tokens=most)[0, len(ids):]
        return self.tokenizer.decode(made, skip_special_tokens=True).split(stop)[0]


class Check:
    def __init__(self):
        self.problems = self.compared = 0

    def that(self, good, what):
        self.compared += 1
        if not good:
            self.problems += 1
            print("BAD", what, flush=True)

    def near(self, value, wanted, what, absolute=ABSOLUTE, relative=RELATIVE):
        self.that(value is not None and abs(value - wanted) <= absolute + relative * abs(wanted), f"{what}: {value}, not {wanted}")


def evaluate(program, model, tasks, shots, length, folder, extra=()):
    """The document, and for each task its items with what was asked."""
    items, prompts = folder / "items.jsonl", folder / "prompts.jsonl"
    words = [program, "evaluate", model, "--task", ",".join(tasks), "--data", DATA, "--json", "--items", items, "--prompts",
             prompts, "--bootstrap", RESAMPLES, "--shots", shots, *(("--length", length) if length else ()), *extra]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"evaluate failed: {done.stderr}")
    read = [[json.loads(line) for line in path.read_text().split("\n") if line] for path in (items, prompts)]
    assert len(read[0]) == len(read[1])
    for item, prompt in zip(*read):
        assert item.items() <= prompt.items(), (item, prompt)
    by_task = {task: list(lines) for task, lines in itertools.groupby(read[1], lambda line: line["task"])}
    assert list(by_task) == list(tasks)
    return json.loads(done.stdout), by_task


def mean_of(values):
    return statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def bootstrap(values):
    """lm-eval's, with fewer resamples: chunks of 1000, each with a generator of its own."""
    found = []
    for chunk in range(RESAMPLES // 1000):
        rnd = random.Random(chunk)
        found += [math.exp(-statistics.fmean(rnd.choices(values, k=len(values)))) for _ in range(1000)]
    return statistics.stdev(found)


def wanted_values(task, lines):
    """Metric -> (value, error) of the items as they were scored; an error of nan is not compared."""
    if task in SAID:
        return {"contains": mean_of([line["contains"] for line in lines])}
    sums = [line["loglikelihood"] for line in lines]
    if task in WORDS:
        single = [one[0] for one in sums]
        return {"perplexity": (math.exp(-statistics.fmean(single)), bootstrap(single)),
                "acc": mean_of([int(line["greedy"][0]) for line in lines])}
    if task == "wikitext":
        pages = [json.loads(line)["page"] for line in
                 (DATA / "wikitext_document_level/wikitext-2-raw-v1/test.jsonl").read_text().split("\n") if line.strip()]
        words = sum(len(re.split(r"\s+", page)) for page in pages)
        size = sum(len(page.encode()) for page in pages)
        total = sum(one[0] for one in sums)
        return {"word_perplexity": (math.exp(-total / words), math.nan), "byte_perplexity": (math.exp(-total / size), math.nan),
                "bits_per_byte": (-total / size / math.log(2), math.nan)}
    right, normed = [], []
    for line, values in zip(lines, sums):
        right.append(int(values.index(max(values)) == line["gold"]))
        lengths = [len(text) - 1 for text in line["continuation"]]
        scaled = [value / n if n else -math.inf for value, n in zip(values, lengths)]
        normed.append(int(scaled.index(max(scaled)) == line["gold"]))
    values = {"acc": mean_of(right)}
    if task in ("arc_easy", "arc_challenge", "piqa", "sciq", "hellaswag", "openbookqa"):
        values["acc_norm"] = mean_of(normed)
    return values


def check_rows(check, document, by_task, length, shots, what):
    rows = {(row["task"], row["metric"]): row for row in document["results"]}
    wanted = {(task, metric): pair for task, lines in by_task.items() for metric, pair in wanted_values(task, lines).items()}
    check.that(set(rows) == set(wanted), f"{what}: rows {sorted(set(rows) ^ set(wanted))}")
    for key in set(rows) & set(wanted):
        row, (value, error) = rows[key], wanted[key]
        check.near(row["value"], value, f"{what} {key}", 1e-12, 1e-9)
        if error is None or not math.isnan(error):
            check.that((row["error"] is None) == (error is None), f"{what} {key}: error {row['error']}, not {error}")
            if error is not None:
                check.near(row["error"], error, f"{what} {key}, error", 1e-12, 1e-9)
        check.that(row["shots"] == shots and row["length"] == length and row["count"] == len(by_task[key[0]]),
                   f"{what} {key}: {row}")


def check_scores(check, mirror, by_task, length, what):
    for task, lines in by_task.items():
        for line in lines:
            where = f"{what} {task} {line['item']}"
            if task in SAID:
                wanted = mirror.answer(line["prompt"], *SAID[task], length)
                check.that(line["generated"] == wanted, f"{where}: {line['generated']!r}, not {wanted!r}")
                continue
            texts = zip(line["context"], line["continuation"])
            scores = [mirror.page(text, length) if task == "wikitext" else mirror.score(*mirror.pair(context, text), length)
                      for context, text in texts]
            for i, (total, greedy, count) in enumerate(scores):
                check.near(line["loglikelihood"][i], total, f"{where} request {i}")
                check.that(line["greedy"][i] == greedy and line["tokens"][i] == count,
                           f"{where} request {i}: {line['greedy'][i], line['tokens'][i]}, not {greedy, count}")


def check_lm_eval(check, mirror, by_task, length, what):
    """The same texts to lm-eval's own model."""
    if HFLM is None or mirror.native:
        return
    model = HFLM(pretrained=mirror.model, tokenizer=mirror.tokenizer, max_length=length, batch_size=1,
                 backend="seq2seq" if mirror.pairs else "causal")
    asked, found = [], []
    for task, lines in by_task.items():
        for line in lines if task not in SAID else ():
            found += zip(line["loglikelihood"], line["greedy"])
            asked += [(task, *texts) for texts in zip(line["context"], line["continuation"])]
    instance = lambda kind, texts: Instance(request_type=kind, doc={}, arguments=texts, idx=0)
    single = [one for one in asked if one[0] != "wikitext"]
    values = iter(model.loglikelihood([instance("loglikelihood", one[1:]) for one in single], disable_tqdm=True))
    pages = [one for one in asked if one[0] == "wikitext"]
    rolled = iter(model.loglikelihood_rolling([instance("loglikelihood_rolling", one[2:]) for one in pages], disable_tqdm=True))
    for one, (total, greedy) in zip(asked, found):
        value, every = (next(rolled), greedy) if one[0] == "wikitext" else next(values)
        check.near(total, value, f"{what}, lm-eval: {one}")
        check.that(every == greedy, f"{what}, lm-eval: {one}: greedy {greedy}")


def records(task, configuration, split):
    text = (DATA / task / configuration / f"{split}.jsonl").read_text()
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def check_examples(check, by_task, shots):
    """Examples drawn again, as lm-eval draws them."""
    arc = lambda doc: f"Question: {doc['question']}\nAnswer:"
    boolq = lambda doc: f"{doc['passage']}\nQuestion: {doc['question']}?\nAnswer:"
    gold = lambda doc: doc["choices"]["text"][doc["choices"]["label"].index(doc["answerKey"])]
    for task, place, split, context, answer in (
            ("arc_easy", ("ai2_arc", "ARC-Easy"), "test", arc, gold),
            ("boolq", ("super_glue", "boolq"), "validation", boolq, lambda doc: ("no", "yes")[doc["label"]])):
        pool, rnd = records(*place, "train"), random.Random(1234)
        for line, doc in zip(by_task[task], records(*place, split)):
            if split == "test":
                drawn = rnd.sample(pool, shots)
            else:
                drawn = [one for one in rnd.sample(pool, shots + 1) if one != doc][:shots]
                if len(drawn) < shots:
                    drawn = rnd.sample([one for one in pool if one != doc], shots)
            wanted = "".join(f"{context(one)} {answer(one)}\n\n" for one in drawn) + context(doc)
            check.that(line["context"][0] == wanted, f"{task} {line['item']}, {shots} examples: {line['context'][0]!r}")


def check_refusal(check, program, folder, temporary):
    """Examples that are too few: one line, and no file."""
    items = temporary / "none.jsonl"
    done = subprocess.run([program, "evaluate", str(folder), "--task", "rte", "--shots", "5", "--data", str(DATA), "--items",
                           str(items)], capture_output=True, text=True)
    said = [line for line in done.stderr.split("\n") if line and "%" not in line]
    check.that(done.returncode == 1 and len(said) == 1 and "examples" in said[0] and not done.stdout and not items.exists(),
               f"rte with 5 examples: {done}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    arguments = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    check = Check()
    with tempfile.TemporaryDirectory() as temporary, torch.inference_mode():
        temporary = Path(temporary)
        for number, make in enumerate((llama, gpt2, t5, native)):
            torch.manual_seed(number)
            folder = temporary / make.__name__
            with torch.inference_mode(False):
                make(folder)
            mirror = Mirror(folder)
            choices = NATIVE if mirror.native else CHOICES
            others = () if mirror.native else WORDS if mirror.pairs else (*WORDS, "wikitext")
            # One of the prompts of the others is empty: of a tokenizer that adds a beginning it is that alone.
            said = SAID if make is llama else ("based_nq",) if make is gpt2 else ()
            short = None
            for shots in (0, 1) if mirror.native else (0, 1, 5) if make is llama else (0, 5):
                # rte's small train has too few beside copies of an item.
                tasks = [*choices, *others] if shots == 0 else [
                    task for task in choices if task not in WORDS and (task, shots) != ("rte", 5)]
                # Long prompts behind a short length are cut to the same few tokens: once is enough.
                for length in (None, "short") if shots < 5 else (None,):
                    if length == "short":
                        # The longest of what is scored still fits.
                        short = short or 3 + max(n for task, lines in by_task.items() if task not in (*SAID, "wikitext")
                                                 for line in lines for n in line["tokens"])
                        length = short
                    asked = [*tasks, *said] if shots == 0 and length is None else tasks
                    what = f"{make.__name__}, {shots} shots, length {length}:"
                    document, by_task = evaluate(arguments.program, folder, asked, shots, length, temporary)
                    check_scores(check, mirror, by_task, length or mirror.length, what)
                    check_rows(check, document, by_task, length or mirror.length, shots, what)
                    if length is None and shots and make is llama:
                        check_examples(check, by_task, shots)
                    if shots in (1, 5):
                        check_lm_eval(check, mirror, by_task, length or mirror.length, what)
                    if shots == 0 and length is not None:
                        check_lm_eval(check, mirror, by_task, length, what)
                    print(f"{'ok ' if not check.problems else '   '}{what} {len(asked)} tasks", flush=True)
            if make is llama:
                check_refusal(check, arguments.program, folder, temporary)
    print(f"{check.compared} comparisons, {check.problems} problems")
    sys.exit(1 if check.problems or check.compared < 1000 else 0)


if __name__ == "__main__":
    main()
