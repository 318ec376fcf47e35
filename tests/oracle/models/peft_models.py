# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden data of tests/core/model/test_adapter.cpp: what PEFT makes of adapters that change the table of tokens or the
head of a model that ties them, or resize its vocabulary.

PEFT itself writes each adapter and reads it again; the numbers in between follow from the names in its file, as in
models.py, but for those that PEFT copied: "numbers_of" has the tensor whose numbers they are. A case is one of
adapter_models.py. The weights of a case are float64 throughout.

    python tests/oracle/models/peft_models.py     writes tests/oracle/models/data/peft-*.json, and peft_keys.json

Needs torch 2.14, transformers 5.23, safetensors, peft 0.21 (with accelerate).
"""

import copy
import dataclasses
import json
import pathlib
import tempfile

import peft
import safetensors.torch
import torch
import transformers as T

import models
from models import ids, llama, values

TABLE, HEAD = "embed_tokens", "lm_head"


def saved(model, settings, resized):
    """The file that PEFT writes of a fresh adapter: its tensors and its configuration."""
    with tempfile.TemporaryDirectory() as folder:
        adapted = peft.get_peft_model(copy.deepcopy(model), settings)
        torch.manual_seed(2)
        for name, parameter in adapted.named_parameters():
            if "lora_" in name or "modules_to_save" in name:
                parameter.data = torch.randn_like(parameter)
        # PEFT finds a resized vocabulary by the published base, of which there is none here.
        adapted.save_pretrained(folder, save_embedding_layers=True if resized else "auto")
        tensors = safetensors.torch.load_file(folder + "/adapter_model.safetensors")
        return tensors, json.loads(pathlib.Path(folder, "adapter_config.json").read_text())


def originals(tensors, base):
    """name -> the tensor whose numbers it has: of the base, or of another one in the file."""
    found = {}
    for name, tensor in sorted(tensors.items()):
        for other, known in list(base.items()) + [(n, t) for n, t in sorted(tensors.items()) if n < name and n not in found]:
            if known.shape == tensor.shape and torch.equal(known.double(), tensor.double()):
                found[name] = other
                break
    return found


def adapted(name, model_class, config, resize=0, **settings):
    settings = peft.LoraConfig(r=2, lora_alpha=3, task_type="CAUSAL_LM", base_model_name_or_path="someone/tiny", **settings)
    made, entries = {}, min(config.vocab_size, resize or config.vocab_size)

    def prepare(model):
        if resize:
            torch.manual_seed(1)
            model.resize_token_embeddings(resize, mean_resizing=False)
        base = {key: tensor.detach() for key, tensor in model.state_dict().items()}
        tensors, written = saved(model, settings, resize > 0)
        written.pop("peft_version", None)
        made["numbers_of"] = originals(tensors, {} if resize else base)
        made["config"], made["tensors"] = written, {key: list(tensor.shape) for key, tensor in sorted(tensors.items())}
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "adapter_config.json").write_text(json.dumps(written))
            filled = {key: values(made["numbers_of"].get(key, key), tensor.shape) for key, tensor in tensors.items()}
            safetensors.torch.save_file(filled, folder + "/adapter_model.safetensors", metadata={"format": "pt"})
            peft.PeftModel.from_pretrained(model, folder, autocast_adapter_dtype=False)
        model.double().eval()

    made_name, data = models.case("peft-" + name, model_class, config, [ids(11, entries), ids(11, entries, 2)], prepare=prepare)
    data["adapter"] = made
    return made_name, data


def cases():
    def tied(name, *, tie=True, **settings):
        return adapted(name, T.LlamaForCausalLM, llama(tie_word_embeddings=tie), **settings)

    only = ["q_proj"]
    yield tied("head", target_modules=only, modules_to_save=[HEAD])
    yield tied("table", target_modules=only, modules_to_save=[TABLE])
    yield tied("table-head", target_modules=only, modules_to_save=[TABLE, HEAD])
    yield tied("lora-head", target_modules=only + [HEAD])
    yield tied("lora-table", target_modules=only + [TABLE])
    yield tied("lora-table-head", target_modules=only + [TABLE, HEAD])
    yield tied("resized", resize=41, target_modules=only)
    yield tied("resized-table-head", resize=41, target_modules=only, modules_to_save=[TABLE, HEAD])
    yield tied("resized-lora-table", resize=41, target_modules=only + [TABLE])
    yield tied("resized-lora-head", resize=41, target_modules=only + [HEAD])
    yield tied("resized-untied", tie=False, resize=41, target_modules=only)
    yield tied("smaller-untied-lora", tie=False, resize=35, target_modules=only + [TABLE, HEAD])
    yield adapted("gpt2-lora-head", T.GPT2LMHeadModel,
                  T.GPT2Config(vocab_size=37, n_positions=32, n_embd=18, n_layer=2, n_head=3, bos_token_id=1, eos_token_id=2),
                  target_modules=["c_attn", HEAD], fan_in_fan_out=True)


def write_keys():
    """Every key that PEFT writes into adapter_config.json for LoRA, and what it is if nothing is asked for."""
    plain = peft.LoraConfig().to_dict()
    keys = {field.name: plain.get(field.name) for field in dataclasses.fields(peft.LoraConfig)}
    keys.pop("runtime_config", None)  # never written
    keys["peft_type"] = "LORA"
    keys["peft_version"] = "0.21.2"
    path = pathlib.Path(__file__).parents[1] / "generate/data/peft_keys.json"
    path.write_text(json.dumps(dict(sorted(keys.items())), indent=1) + "\n")


if __name__ == "__main__":
    write_keys()
    models.main(cases)
