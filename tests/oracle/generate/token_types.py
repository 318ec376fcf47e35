#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/oracle/generate/data/tokenizer/token_types.json: which tokenizers of transformers give token types to a model.

`classes`: every tokenizer class that AutoTokenizer finds by name, and whether token_type_ids is among its
model_input_names. `model_types`: the class that each model type is registered with, and `overruled`: the types whose
class goes before the one that a file names. `folders`: tiny folders as AutoTokenizer loads them, with the types that a
pair of texts gets there, or null where it gets none. tests/core/tokenizer/test_token_types.cpp reads the file.

    python tests/oracle/generate/token_types.py
"""

import itertools
import json
import tempfile
import warnings
from pathlib import Path

import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers.models.auto import tokenization_auto as auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

FOLDER = Path(__file__).resolve().parent / "data/tokenizer"
TYPES = "token_type_ids"


def classes():
    names = {name for name in auto.TOKENIZER_MAPPING_NAMES.values() if name}
    names |= {name for name in dir(transformers) if name.endswith(("Tokenizer", "TokenizerFast"))}
    names |= {name.removesuffix("Config") + "Tokenizer" for name in CONFIG_MAPPING_NAMES.values()}
    names |= {"PreTrainedTokenizer", "PreTrainedTokenizerFast", "PythonBackend"}
    found = {}
    for name in sorted(names):
        try:
            inputs = getattr(auto.tokenizer_class_from_name(name), "model_input_names", None)
        except ImportError:  # of a package that is not here
            continue
        if isinstance(inputs, (list, tuple)):
            found[name.removesuffix("Fast")] = TYPES in inputs
    return found


def write_tokenizer(folder):
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5, "b": 6, "c": 7}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.save(str(folder / "tokenizer.json"))


def loaded(config, settings):
    """The types of a pair, None where there are none, False where transformers does not load the file as it is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tokenizer(folder)
        if config is not None:
            (folder / "config.json").write_text(json.dumps(config))
        if settings is not None:
            (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        file = Tokenizer.from_file(str(folder / "tokenizer.json")).encode("a b", "c")
        try:
            given = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)("a b", "c")
        except Exception:  # whatever a class that does not fit the file raises
            return False
    # Some classes (RobertaTokenizer) join pairs by a post-processor of their own.
    return given.get(TYPES) if given["input_ids"] == file.ids else False


def folders():
    model_types = [None, "bert", "roberta", "distilbert", "electra", "mpnet", "modernbert", "nomic_bert", "qwen2",
                   "headscope"]
    named = [None, "BertTokenizer", "BertTokenizerFast", "ElectraTokenizerFast", "DistilBertTokenizer",
             "PreTrainedTokenizerFast", "TokenizersBackend", "RobertaTokenizer", "OwnTokenizer"]
    extras = [{}, {"model_input_names": ["input_ids", "attention_mask"]},
              {"model_input_names": ["input_ids", TYPES, "attention_mask"]},
              {"auto_map": {"AutoTokenizer": ["own.OwnTokenizer", None]}}]
    for model_type, name, extra in itertools.product(model_types, named, extras):
        if "model_input_names" in extra and model_type not in ("bert", "roberta", None):
            continue
        config = None if model_type is None else {"model_type": model_type}
        yield config, {**extra, **({"tokenizer_class": name} if name else {})}
    yield {"model_type": "bert"}, None
    yield {"model_type": "roberta"}, None
    yield {"model_type": "bert", "tokenizer_class": "PreTrainedTokenizerFast"}, {}
    yield {"model_type": "gpt2", "tokenizer_class": "BertTokenizer"}, {}
    yield {"model_type": "bert", "tokenizer_class": "RobertaTokenizer"}, {"tokenizer_class": "BertTokenizer"}


def main():
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    cases = []
    for config, settings in folders():
        types = loaded(config, settings)
        if types is not False:
            cases.append({"config": config, "tokenizer_config": settings, "types": types})
    data = {"classes": classes(),
            "model_types": {name: kind.removesuffix("Fast") for name, kind in
                            sorted(auto.TOKENIZER_MAPPING_NAMES.items()) if kind},
            "overruled": sorted(auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS), "folders": cases}
    (FOLDER / "token_types.json").write_text(json.dumps(data, indent=None, separators=(",", ":"))
                                             .replace('{"config"', '\n{"config"').replace('"model_types"', '\n"model_types"') + "\n")
    print(len(data["classes"]), "classes,", len(cases), "folders")


if __name__ == "__main__":
    main()
