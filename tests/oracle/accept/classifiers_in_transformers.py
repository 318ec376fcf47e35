# SPDX-License-Identifier: GPL-3.0-or-later
"""Decoders tuned to classes of texts and pairs, opened in transformers.

    python classifiers_in_transformers.py HEADSCOPE

Random Llama and GPT-2 checkpoints and fresh stacks of presets are trained for three steps of objective "classify". Each snapshot
must load as transformers' class of its family without a tensor missing or left over, and the
log-probabilities that `evaluate --task classify` writes must be those of transformers in float64, item by item, in large
batches and in single texts.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers

sys.path.append(str(Path(__file__).resolve().parent))
from harness_acceptance import Check, gpt2, llama

CLOSE = 2e-4
WORDS = "the cat sat on a mat and dog runs far near river town".split()
MODELS = {"llama": "LlamaForSequenceClassification", "gpt2": "GPT2ForSequenceClassification",
          "nano-transformer": "LlamaForSequenceClassification", "nano-100k": "Qwen2ForSequenceClassification",
          "nano-mhe-decoder": "GPT2ForSequenceClassification"}


def lines(draw, count, classes, pairs):
    made = []
    for number in range(count):
        one = {"text": " ".join(draw.choices(WORDS, k=draw.choice([1, 2, 7, 15])))}
        if pairs:
            one["pair"] = " ".join(draw.choices(WORDS, k=draw.choice([1, 3, 6])))
        made.append(one | {"label": number % classes if classes > 1 else draw.random()})
    return made


def run(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{words}: {done.stderr.strip()[-600:]}")


def train(program, folder, model, file, classes, options=""):
    job = folder / "job.toml"
    job.write_text(f"""[model]
{model}
{options}
[data]
text = ["{file}"]
sequence_length = 160
validation = 0.2
[objective]
kind = "classify"
classes = {classes}
[training]
steps = 3
batch = 4
threads = 1
[optimizer]
learning_rate = 1e-2
[probe]
every = 0
[snapshots]
every = 3
""")
    run([program, "train", job, "-o", folder / "run"])
    return folder / "run/snapshots/last"


def compare(program, check, snapshot, wanted, file, items, classes, what):
    model, report = transformers.AutoModelForSequenceClassification.from_pretrained(snapshot, dtype=torch.float64,
                                                                                    output_loading_info=True)
    model.eval()
    check.that(type(model).__name__ == wanted, f"{what}: {type(model).__name__}")
    check.that(not any(report.values()), f"{what}: {report}")
    tokenizer = transformers.AutoTokenizer.from_pretrained(snapshot)
    expected = []
    for one in items:
        ids = tokenizer(one["text"], one.get("pair")).input_ids
        expected.append(model(torch.tensor([ids])).logits[0])
    for tokens in (16384, 1):
        written = snapshot.parent / f"items-{tokens}.jsonl"
        run([program, "evaluate", snapshot, "--task", "classify", "--data", file, "--items", written, "--batch-tokens", tokens])
        found = [json.loads(line) for line in written.read_text().split("\n") if line]
        check.that(len(found) == len(items), f"{what}: {len(found)} items")
        for number, (line, logits) in enumerate(zip(found, expected)):
            for value, exact in zip(line["loglikelihood"], logits.log_softmax(-1).tolist(), strict=True):
                check.near(value, exact, f"{what}, batches of {tokens}, item {number}", CLOSE, 0)


def main(program):
    transformers.utils.logging.set_verbosity_error()
    check, draw = Check(), random.Random(1)
    with tempfile.TemporaryDirectory() as temporary, torch.inference_mode():
        for name, wanted in MODELS.items():
            for pairs in (False, True):
                folder = Path(temporary) / f"{name}-{pairs}"
                folder.mkdir()
                items = lines(draw, 40, 3, pairs)
                file = folder / "texts.jsonl"
                file.write_text("".join(json.dumps(one) + "\n" for one in items))
                model = f'preset = "{name}"'
                if make := {"llama": llama, "gpt2": gpt2}.get(name):
                    torch.manual_seed(1)
                    with torch.inference_mode(False):
                        make(folder / "source")
                    model = f'from = "{folder / "source"}"'
                snapshot = train(program, folder, model, file, 3)
                what = f"{name}, {'pairs' if pairs else 'texts'}"
                compare(program, check, snapshot, wanted, file, items, 3, what)
                print(f"{'ok ' if not check.problems else '   '}{what}", flush=True)
    print(f"{check.compared} comparisons, {check.problems} problems")
    sys.exit(1 if check.problems or check.compared < 1000 else 0)


if __name__ == "__main__":
    main(sys.argv[1])
