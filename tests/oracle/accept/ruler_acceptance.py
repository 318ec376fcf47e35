# SPDX-License-Identifier: GPL-3.0-or-later
"""RULER's tasks, perplexity by position and latency of `headscope` against computations of their own.

    python ruler_acceptance.py HEADSCOPE SAMPLE

Items are dumped and looked at with transformers' tokenizer: as long as they say and as full as whole units of hay allow,
needles where and as often as they should be, words as frequent as the task has it, what is asked answered by the text.
Each is then answered by transformers' greedy decoding in float32 and scored by RULER's rule; the scores' means and
errors are the program's. Perplexity by position is written down again from its definition, in float64.
"""

import argparse
import collections
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers

LENGTHS = (640, 1000)
ITEMS = 2
ANSWER = {"ruler_vt": 30, "ruler_cwe": 120, "ruler_fwe": 50}
LINE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
NIAH = ("niah_single_1", "niah_single_2", "niah_single_3", "niah_multikey_1", "niah_multikey_2", "niah_multikey_3",
        "niah_multivalue", "niah_multiquery")
# ruler_cwe needs more than this model's positions hold.
TASKS = (*NIAH, "ruler_vt", "ruler_fwe")
ESSAY = " ".join(f"Chapter {i} has what the {i + 1}th day brought to the people of the city." for i in range(200))
# float32 losses of some hundred tokens, each good to about 1e-6 of a nat or so.
TOLERANCE = 2e-5


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{arguments[0]} failed: {done.stderr}")
    return done.stdout


def prompt_of(item):
    return item["input"] + " " + item["gen_prefix"]


def score(answer, outputs):
    """lm-eval's process_results: string_match_all of the answer without what does not print."""
    answer = re.sub(r"[\x00-\x1f]", "\n", answer.strip()).strip().lower()
    return sum(output.lower() in answer for output in outputs) / len(outputs)


def check_niah(task, item, complain):
    text, outputs = item["input"], item["outputs"]
    one = len(outputs) == 1
    kind = "uuid" if task in ("niah_single_3", "niah_multikey_3") else "number"
    begin = f"A special magic {kind} is" if one else f"Some special magic {kind}s are"
    complain(text.startswith(begin + " hidden within the following text."), "its begin")
    needles = re.findall(rf"One of the special magic {kind}s for (\S+) is: (\S+)\.", text)
    keys = [key for key, _ in needles]
    asked = re.match(rf"The special magic {kind}s? for (.*) mentioned in the provided text (is|are)$", item["gen_prefix"])
    complain(asked is not None and (asked[2] == "is") == one, "its prefix")
    asked = re.split(r", and |, ", asked[1])
    complain(sorted(value for k, value in needles if k in asked) == sorted(outputs), "its answers")
    form = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}" if kind == "uuid" else r"[1-9]\d{6}"
    for value in outputs:
        complain(re.fullmatch(form, value) is not None and text.count(value) == 1, f"the value {value}")
    context = text.split("\n", 1)[1].rsplit("\n", 1)[0]
    if task == "niah_single_1":
        lines = context.split("\n")
        complain(sorted(set(lines)) == sorted({LINE, *(line for line in lines if line.startswith("One of"))}), "its hay")
        return
    if task in ("niah_multikey_2", "niah_multikey_3"):
        complain(context.count("\n") + 1 == len(needles) and len(set(keys)) == len(keys), "its hay of needles")
        return
    wanted = {"niah_multikey_1": 4, "niah_multivalue": 4, "niah_multiquery": 4}.get(task, 1)
    complain(len(needles) == wanted, "the number of needles")
    sentences = re.split(r"(?<=\.) ", context)
    hay = [sentence for sentence in sentences if not sentence.startswith("One of the special")]
    complain(" ".join(hay) == " ".join(re.split(r"(?<=\.) ", ESSAY)[:len(hay)]), "its essay")
    depths, before = [], 0
    for sentence in sentences:
        if sentence.startswith("One of the special"):
            depths.append(before)
        else:
            before += 1
    allowed = [len(hay) * depth // 39 for depth in range(40)]
    complain(all(depth in allowed for depth in depths), f"depths {depths} of {len(hay)}")


def check_tracing(item, complain):
    text, names = item["input"], item["outputs"]
    value = re.search(r"the value (\d{5}), they are:$", item["gen_prefix"])[1]
    main = text[text.rindex("Memorize and track"):]
    at = -1
    for i, name in enumerate(names):
        statement = f"VAR {name} = " + (value if i == 0 else f"VAR {names[i - 1]} ")
        complain(re.fullmatch("[A-Z]{5}", name) is not None and main.count(statement) == 1, f"the statement of {name}")
        complain(main.find(statement) > at, "the order of the chain")
        at = main.find(statement)
    complain(text.count("they are:") == 1, "its example")


def check_frequent(item, complain):
    words = re.search(r"coded words\. (.*)\nQuestion", item["input"], re.S)[1].split()
    counts = collections.Counter(words)
    dots = counts.pop("...")
    ranked = counts.most_common()
    complain({word for word, _ in ranked[:3]} == set(item["outputs"]), "the three most frequent")
    complain(ranked[2][1] > ranked[3][1], "what is asked apart from the rest")
    for rank, (_, count) in enumerate(ranked, 2):
        complain(abs(count - dots / rank**2) < 1.01 + 1 / rank**2, f"the frequency of rank {rank}")


def check_item(task, item, tokenizer, complain):
    answer = ANSWER.get(task, 128)
    tokens = len(tokenizer(prompt_of(item))["input_ids"])
    complain(item["length"] == tokens + answer, f"a length of {item['length']} for {tokens} tokens and {answer}")
    complain(item["length"] <= item["max_length"], "more tokens than the length")
    complain(item["length"] > item["max_length"] - 140, "less hay than there is room for")
    if task in NIAH:
        check_niah(task, item, complain)
    elif task == "ruler_vt":
        check_tracing(item, complain)
    else:
        check_frequent(item, complain)


def answer_of(model, tokenizer, item, most):
    ids = tokenizer(prompt_of(item), return_tensors="pt")["input_ids"]
    said = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=most, do_sample=False,
                          pad_token_id=tokenizer.eos_token_id)[0, ids.shape[1]:]
    return tokenizer.decode(said, skip_special_tokens=True)


def check_ruler(arguments, tokenizer, folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        arguments.sample, dtype=torch.float32, attn_implementation="eager").eval()
    problems = 0
    (folder / "essay.txt").write_text(ESSAY)
    common = [arguments.sample, "--task", ",".join(TASKS) + ",ruler_retrieval", "--json"]
    document = json.loads(run(arguments.program, "evaluate", *common, "--sequences", ITEMS, "--length",
                              ",".join(map(str, LENGTHS)), "--haystack", folder / "essay.txt", "--dump", folder / "items"))
    again = json.loads(run(arguments.program, "evaluate", *common, "--data", folder / "items"))
    # Items that are read do not say which text hides their needles.
    same = [row | {"text": ""} for row in document["results"]] == again["results"]
    problems += not same
    print("ok  read back" if same else "BAD read back")
    found = {(row["task"], row["length"]): row for row in document["results"]}
    means = collections.defaultdict(list)
    for task in TASKS:
        items = [json.loads(line) for line in (folder / "items" / task / "test.jsonl").read_text().splitlines()]
        bad = []
        for item in items:
            check_item(task, item, tokenizer, lambda good, what: good or bad.append((item["index"], what)))
        for length in LENGTHS:
            here = [item for item in items if item["max_length"] == length]
            scores = torch.tensor([score(answer_of(model, tokenizer, item, ANSWER.get(task, 128)), item["outputs"])
                                   for item in here], dtype=torch.float64)
            row = found[task, length]
            error = (scores.std() / math.sqrt(len(here))).item()
            if len(here) != ITEMS or row["count"] != ITEMS:
                bad.append((length, f"{len(here)} items"))
            if abs(row["value"] - scores.mean().item()) > 1e-12 or abs(row["error"] - error) > 1e-12:
                bad.append((length, f"score {row['value']} against {scores.mean().item()}"))
            if task in NIAH:
                means[length].append(row["value"])
        problems += len(bad)
        print(f"{'BAD' if bad else 'ok '} {task} {bad}")
    for length, values in means.items():
        good = len(values) == 8 and abs(found["ruler_retrieval", length]["value"] - sum(values) / 8) < 1e-12
        problems += not good
        print(f"{'ok ' if good else 'BAD'} ruler_retrieval at {length}")
    return problems


def check_positions(arguments, tokenizer, folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        arguments.sample, dtype=torch.float64, attn_implementation="eager").eval()
    texts = [ESSAY[:3001], ESSAY[3001:7000]]
    (folder / "texts").mkdir()  # one text of two documents
    for i, text in enumerate(texts):
        (folder / "texts" / f"{i}.txt").write_text(text)
    ids = [token for text in texts for token in tokenizer(text, add_special_tokens=False)["input_ids"]]
    problems = 0
    for length, bucket in ((128, 16), (65, 64), (100, 33)):
        blocks = torch.tensor([ids[i:i + length] for i in range(0, len(ids) - length + 1, length)])
        losses = -model(blocks[:, :-1]).logits.log_softmax(-1).gather(2, blocks[:, 1:, None])[..., 0]
        rows = json.loads(run(arguments.program, "evaluate", arguments.sample, "--task", "position_perplexity", "--length",
                              length, "--task-option", f"position_perplexity.bucket={bucket}", "--json",
                              "--data", folder / "texts"))["results"]
        lasts = sorted({min(end, length) for end in range(bucket, length + bucket, bucket)})
        bad = [row["length"] for row in rows] != lasts
        for row, last in zip(rows, lasts):
            first = (last - 1) // bucket * bucket
            part = losses[:, max(0, first - 1):last - 1]  # position p is predicted at place p - 2
            means = part.mean(1)
            value = math.exp(part.mean().item())
            error = value * (means.std() / math.sqrt(len(means))).item()
            bad |= abs(row["value"] - value) > TOLERANCE * value or abs(row["error"] - error) > 1e-3 * error
            bad |= row["count"] != part.numel()
        problems += bad
        print(f"{'BAD' if bad else 'ok '} position_perplexity at {length}, buckets of {bucket}")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("sample")
    arguments = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.sample)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        problems = check_ruler(arguments, tokenizer, Path(folder)) + check_positions(arguments, tokenizer, Path(folder))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
