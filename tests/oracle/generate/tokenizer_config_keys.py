#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/oracle/generate/data/tokenizer/config_keys.json: the keys of tokenizer_config.json that transformers' tokenizers read.

They are found in the sources of the classes that AutoTokenizer chooses for the model types below, of their bases, and of
AutoTokenizer itself: parameters of __init__, and strings that are looked up in kwargs and its relatives. Each key comes
with the classes that read it. tests/core/tokenizer/test_settings_keys.cpp compares them with our list.

    python tests/oracle/generate/tokenizer_config_keys.py
"""

import ast
import inspect
import json
import textwrap
from pathlib import Path

import transformers
from transformers.models.auto import tokenization_auto as auto

OUTPUT = Path(__file__).resolve().parent / "data/tokenizer" / "config_keys.json"
# From `headscope list families`, those that have a class of their own, and kinds of files that are read without one.
MODEL_TYPES = """albert bart bert blenderbot blenderbot-small bloom camembert clip cohere cohere2 data2vec-text distilbert
electra esm fnet gemma gemma2 gemma3 gpt2 gpt_neox gptj llama m2m_100 marian mbart mbart50 mistral modernbert mpnet mpt
nllb nomic_bert olmo opt pegasus phi qwen2 qwen3 qwen3_5 roberta starcoder2 t5 umt5 xlm-roberta""".split()
# Classes that files of theirs name.
OTHER_CLASSES = ["LlamaTokenizer", "CodeLlamaTokenizer", "DistilBertTokenizer", "PreTrainedTokenizerFast"]
LOOKED_UP_IN = {"kwargs", "init_kwargs", "local_kwargs", "tokenizer_config", "model_specific_tokens"}
METHODS = {"pop", "get", "setdefault"}
# Arguments that callers give and files do not: of from_pretrained, and those it hands to __init__ itself.
NOT_OF_FILES = {
    "_commit_hash", "_from_auto", "_is_local", "cache_dir", "code_revision", "config", "force_download", "from_pipeline",
    "gguf_file", "is_local", "local_files_only", "mistral_format", "name_or_path", "proxies", "revision", "subfolder",
    "token", "tokenizer_object", "tokenizer_padding", "tokenizer_truncation", "tokenizer_type", "trust_remote_code", "use_fast",
    "user_agent", "_json_padding", "_json_truncation", "_spm_precompiled_charsmap", "post_processor", "vocab", "merges",
    "tokenizer_file", "vocab_file", "merges_file", "fast_tokenizer_files", "repo_type", "tokenizer"}


def is_lookup(node):
    return isinstance(node, ast.Name) and node.id in LOOKED_UP_IN


def strings(function):
    """Keys that a function looks up."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        keys = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            keys = node.args[:1] if is_lookup(node.func.value) else []
        elif isinstance(node, ast.Subscript) and is_lookup(node.value):
            keys = [node.slice]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            keys = [node.left] if is_lookup(node.comparators[0]) else []
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "key":
            keys = node.comparators
        for key in keys:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value


def keys_of(kind):
    """Keys of one class, without its bases."""
    own = vars(kind)
    for name in ("__init__", "from_pretrained", "_from_pretrained", "convert_to_native_format", "_convert_from_sentencepiece",
                 "_convert_from_tiktoken", "convert_from_spm_model"):
        if name not in own:
            continue
        function = inspect.unwrap(getattr(own[name], "__func__", own[name]))
        yield from strings(function)
        if name == "__init__":
            kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
            yield from (p.name for p in inspect.signature(function).parameters.values() if p.kind in kinds)
    yield from own.get("SPECIAL_TOKENS_ATTRIBUTES", [])


def main():
    names = [auto.TOKENIZER_MAPPING_NAMES.get(kind) or "PreTrainedTokenizerFast" for kind in MODEL_TYPES] + OTHER_CLASSES
    classes = {auto.tokenizer_class_from_name(name) for name in names} | {transformers.PreTrainedTokenizer}
    bases = {base for kind in classes if kind for base in kind.__mro__ if base.__module__.startswith("transformers.")}
    found = {}
    for kind in sorted(bases | {auto.AutoTokenizer}, key=lambda kind: kind.__name__):
        for key in keys_of(kind):
            if key not in NOT_OF_FILES | {"self", "key"}:
                found.setdefault(key, set()).add(kind.__name__)
    found["chat_template"].add("PreTrainedTokenizerBase")
    OUTPUT.write_text("{\n" + ",\n".join(f"{json.dumps(key)}:{json.dumps(sorted(found[key]))}"
                                         for key in sorted(found)) + "\n}\n")
    print(len(found), "keys of", len(bases), "classes")


if __name__ == "__main__":
    main()
