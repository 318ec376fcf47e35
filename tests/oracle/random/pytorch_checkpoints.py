#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random checkpoints as PyTorch files and as safetensors: the program must see one and the same model.

    pytorch_checkpoints.py HEADSCOPE [--keep FOLDER]

For each family: model.safetensors; pytorch_model.bin; shards with an index; a training checkpoint with the weights under
"model", behind "module.", beside an optimizer; old-style views (transposed, shared). `analyze` must give the same
numbers to the bit, `info` the same tensors, `convert` of each the same files. Prints one line a form; exits with 1 when
anything differed.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy
import torch
import transformers
from safetensors import safe_open

SIZES = {"vocab_size": 131, "max_position_embeddings": 64}
MODELS = {
    "gpt2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=131, n_positions=64, n_embd=48, n_layer=3, n_head=4)),
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **SIZES, hidden_size=40, intermediate_size=72, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=1)),
    "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig(
        **SIZES, hidden_size=36, intermediate_size=50, num_hidden_layers=2, num_attention_heads=3)),
}


def sharded(folder, state, count):
    """What save_pretrained wrote before safetensors."""
    names = list(state)
    index = {"metadata": {"total_size": sum(t.nbytes for t in state.values())}, "weight_map": {}}
    for number in range(count):
        file = f"pytorch_model-{number + 1:05d}-of-{count:05d}.bin"
        part = {name: state[name] for name in names[number::count]}
        torch.save(part, folder / file)
        index["weight_map"].update(dict.fromkeys(part, file))
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))


def trained(model, state):
    optimizer = torch.optim.AdamW(model.parameters())
    sum(parameter.sum() for parameter in model.parameters()).backward()
    optimizer.step()
    return {"model": {"module." + name: tensor for name, tensor in state.items()}, "optimizer": optimizer.state_dict(),
            "epoch": 2, "args": argparse.Namespace(rate=numpy.float64(0.1)), "random": torch.get_rng_state()}


def views(state):
    """Every matrix transposed in its storage, or a part of a larger one."""
    result = {}
    for number, (name, tensor) in enumerate(state.items()):
        if tensor.dim() == 2 and number % 2 == 0:
            tensor = tensor.t().contiguous().t()
        elif tensor.dim() >= 1:
            tensor = torch.cat([tensor, torch.ones_like(tensor[:1]), tensor])[: tensor.shape[0]]
        result[name] = tensor
    return result


FORMS = {
    "pytorch_model.bin": lambda folder, model, state: torch.save(state, folder / "pytorch_model.bin"),
    "sharded": lambda folder, model, state: sharded(folder, state, 3),
    "protocol 5": lambda folder, model, state: torch.save(state, folder / "weights.pth", pickle_protocol=5),
    "views": lambda folder, model, state: torch.save(views(state), folder / "pytorch_model.bin"),
    "training": lambda folder, model, state: torch.save(trained(model, state), folder / "checkpoint.pt"),
}


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def numbers(path):
    """All datasets of an analysis."""
    found = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: found.__setitem__(name, item[()]) if isinstance(item, h5py.Dataset) else None)
    return found


def tensors(folder):
    with safe_open(folder / "model.safetensors", "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def analyse(program, folder, tokens):
    output = folder.with_suffix(".headscope.h5")
    run(program, "analyze", folder, "--tokens", tokens, "-o", output, "--record", "attention,states,logits")
    found = numbers(output)
    config = json.loads(found.pop("model/config"))
    config.pop("name")   # the folder's
    found["model/config"] = numpy.array(json.dumps(config, sort_keys=True))
    return found


def compare(found, expected):
    if found.keys() != expected.keys():
        return [f"names differ: {sorted(found.keys() ^ expected.keys())[:5]}"]
    same = lambda a, b: torch.equal(a, b) if torch.is_tensor(a) else numpy.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return [f"{name} differs" for name in expected if not same(found[name], expected[name])]


def check(program, folder, family):
    torch.manual_seed(5)
    model = MODELS[family]()
    original = folder / family
    model.save_pretrained(original)
    tokens = folder / "tokens.json"
    tokens.write_text(json.dumps([[int(t) for t in torch.randint(2, 131, (n,))] for n in (33, 7)]))
    # The numbers as safetensors has them; tied weights share their storage, as torch.save leaves them.
    state = model.state_dict()
    expected = analyse(program, original, tokens)
    failed = 0
    for form, write in FORMS.items():
        copy = folder / f"{family}-{form.replace(' ', '-')}"
        copy.mkdir()
        shutil.copy(original / "config.json", copy)
        with torch.no_grad():
            kept = {name: tensor.detach().clone() for name, tensor in state.items()}
        write(copy, model, state if form == "pytorch_model.bin" else kept)
        faults = compare(analyse(program, copy, tokens), expected)
        listed = {t["name"]: (t["type"], t["shape"]) for t in json.loads(run(program, "info", copy, "--json", "--tensors"))["tensors"]}
        wanted = {name: ("F32", list(tensor.shape)) for name, tensor in kept.items()}
        faults += [] if listed == wanted else ["info lists other tensors"]
        run(program, "convert", copy, copy / "converted", "--dtype", "float32")
        faults += [f"converted: {fault}" for fault in compare(tensors(copy / "converted"), kept)]
        print(f"{family:6} {form:18} {'FAILED: ' + '; '.join(faults[:5]) if faults else 'ok'}")
        failed += bool(faults)
        model.load_state_dict(kept)   # training moved them
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        failed = sum(check(arguments.headscope.resolve(), folder, family) for family in MODELS)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
