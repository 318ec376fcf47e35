# SPDX-License-Identifier: GPL-3.0-or-later
"""`headscope evaluate` against a computation of its own with transformers in float64.

    python evaluation_acceptance.py HEADSCOPE SAMPLE

The rolling log-likelihood is written down again from lm-eval-harness's definition (utils.get_rolling_token_windows,
make_disjoint_window and HFLM.loglikelihood_rolling), with the sample checkpoint and its tokenizer: token, word and byte
perplexity, bits per byte, next-token accuracy, at several lengths, disjoint and sliding, with and without a prefix, and
with a block left out. Also read back: the HDF5 file with h5py, and the CSV.
"""

import argparse
import csv
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import torch
import transformers
import xarray

TEXTS = ["In the beginning God created the heaven and the earth.\n\nAnd the earth was without form, and void; and "
         "darkness was upon the face of the deep. " * 3,
         "To be, or not to be: that is the question:\nWhether 'tis nobler in the mind to suffer\n"]
# float32 losses of a few thousand tokens, each good to about 1e-6 of a nat or so.
TOLERANCE = 2e-5


def rolling_windows(tokens, prefix, length, context):
    """lm-eval-harness: pairs (context, continuation)."""
    if not tokens:
        return
    step = length - context + 1
    done = min(length, len(tokens))
    yield [prefix], tokens[:done]
    while done < len(tokens):
        count = min(len(tokens) - done, step)
        end = done + count
        yield ([prefix] + tokens)[end - length : end - count + 1], tokens[end - count : end]
        done = end


def expected(model, tokenizer, texts, length, stride, prefix, without=()):
    layers = model.model.layers
    model.model.layers = torch.nn.ModuleList(layer for i, layer in enumerate(layers) if i not in without)
    loss = correct = five = count = words = size = 0
    for text in texts:
        tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
        if prefix is None:
            first, tokens = tokens[0], tokens[1:]
        else:
            first = prefix
        for context, continuation in rolling_windows(tokens, first, length, length - stride + 1):
            ids = torch.tensor([context + continuation[:-1]])
            assert ids.shape[1] <= length
            logits = model(ids).logits[0, -len(continuation):].double()
            targets = torch.tensor(continuation)
            loss -= logits.log_softmax(-1).gather(1, targets[:, None]).sum().item()
            top = logits.topk(5).indices
            correct += (top[:, 0] == targets).sum().item()
            five += (top == targets[:, None]).any(1).sum().item()
            count += len(continuation)
        words += len(re.split(r"\s+", text))
        size += len(text.encode())
    model.model.layers = layers
    return {("perplexity", "token_perplexity"): math.exp(loss / count),
            ("perplexity", "loss"): loss / count,
            ("perplexity", "word_perplexity"): math.exp(loss / words),
            ("perplexity", "byte_perplexity"): math.exp(loss / size),
            ("perplexity", "bits_per_byte"): loss / size / math.log(2),
            ("next_token_accuracy", "accuracy"): correct / count,
            ("next_token_accuracy", "accuracy_of_five"): five / count}, count


def run(program, *arguments):
    done = subprocess.run([program, "evaluate", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"evaluate failed: {done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("sample")
    arguments = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.sample)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        arguments.sample, dtype=torch.float64, attn_implementation="eager").eval()
    problems = 0
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        folder = Path(folder)
        texts = folder / "texts"  # one text of several documents
        texts.mkdir()
        for i, text in enumerate(TEXTS):
            (texts / f"{i}.txt").write_bytes(text.encode())
        common = [arguments.sample, "--task", "perplexity,next_token_accuracy", "--data", texts]
        for length, stride, prefix, without in ((16, 16, None, ()), (64, 64, 1, ()), (64, 16, None, ()), (17, 5, 0, ()),
                                                (1000, 1000, None, ()), (32, 32, None, (1,))):
            wanted, count = expected(model, tokenizer, TEXTS, length, stride, prefix, without)
            options = ["--length", length, "--stride", 0 if stride == length else stride,
                       "--prefix", "none" if prefix is None else prefix, "--skip", ",".join(map(str, without))]
            document = json.loads(run(arguments.program, *common, *options, "--json"))
            found = {(row["task"], row["metric"]): row for row in document["results"]}
            for key, value in wanted.items():
                row = found.get(key)
                difference = math.inf if row is None else abs(row["value"] - value) / abs(value)
                good = difference < TOLERANCE and row["count"] == count and row["length"] == length
                problems += not good
                print(f"{'ok ' if good else 'BAD'} length {length} stride {stride} prefix {prefix} without {without} "
                      f"{key[0]} {key[1]}: {value:.7g}, off by {difference:.1e}")
        run(arguments.program, *common, "--length", "16,64", "-o", folder / "a.evaluation.h5")
        run(arguments.program, *common, "--length", "16,64", "-o", folder / "a.csv")
        with h5py.File(folder / "a.evaluation.h5") as file, open(folder / "a.csv") as table:
            assert file.attrs["format"] == "headscope-evaluation"
            rows = list(csv.DictReader(table))
            results = file["results"]
            assert len(rows) == len(results["value"]) == 14
            for i, row in enumerate(rows):
                assert results["task"].asstr()[i] == row["task"] and results["metric"].asstr()[i] == row["metric"]
                assert results["length"][i] == int(row["length"]) and results["value"][i] == float(row["value"])
            assert file["models/mixer"].asstr()[0] == "standard" and file["models/layout"].asstr()[0] == "uniform"
            assert results["value"].dims[0].label == "result"
        for engine in ("h5netcdf", "netcdf4"):
            for group in ("models", "results"):
                with xarray.open_dataset(folder / "a.evaluation.h5", group=group, engine=engine) as table:
                    table.load()
                    assert group == "results" or isinstance(table["mixer"].values[0], str), (engine, group)
        print("ok  HDF5 and CSV")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
