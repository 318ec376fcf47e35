# SPDX-License-Identifier: GPL-3.0-or-later
"""Native stacks that transformers knows, as Headscope writes them: its names and configuration, the native one inside.

    python tests/oracle/models/native_layouts.py                     writes tests/oracle/models/data/native-layout-*.json
    python tests/oracle/models/native_layouts.py --checkpoints DIR   writes the cases as checkpoint folders (safetensors) too

Each is loaded by transformers without a tensor missing or left over, and computed there, in float64. The same numbers under
the native names must be the same to native_oracle.py; so must an FNet, whose class has one map more (here the identity).
"""

import json
import sys
import tempfile
from pathlib import Path

import safetensors.torch
import torch
import transformers as T

sys.path.append(str(Path(__file__).resolve().parents[1] / "random"))
import native_oracle
import native_shapes
import random_native
from models import ids, logits_of, main, rounded, values, write_checkpoint

SIZES = dict(vocab_size=37, hidden_size=24, intermediate_size=27, num_attention_heads=4, num_key_value_heads=4, head_dim=6,
             max_position_embeddings=24, rms_norm_eps=1e-6, qk_norm=False, mixers={}, initializer_range=0.02)
BERT_LAYER = {
    "attention.self.query": "self_attn.q_proj", "attention.self.key": "self_attn.k_proj",
    "attention.self.value": "self_attn.v_proj", "attention.output.dense": "self_attn.o_proj",
    "attention.output.LayerNorm": "input_layernorm", "intermediate.dense": "mlp.up_proj", "output.dense": "mlp.down_proj",
    "output.LayerNorm": "post_attention_layernorm",
}
BERT = {
    "bert.embeddings.word_embeddings": "model.embed_tokens", "bert.embeddings.position_embeddings": "model.embed_positions",
    "bert.embeddings.token_type_embeddings": "model.embed_types", "bert.embeddings.LayerNorm": "model.embed_norm",
    "cls.predictions.transform.dense": "head.dense", "cls.predictions.transform.LayerNorm": "head.norm",
    "cls.predictions.decoder": "lm_head", "cls.predictions": "lm_head", "bert.pooler.dense": "head.dense",
    "classifier": "classifier", "qa_outputs": "qa_outputs",
}
BART_LAYER = {
    "self_attn.out_proj": "self_attn.o_proj", "self_attn_layer_norm": "input_layernorm", "fc1": "mlp.up_proj",
    "fc2": "mlp.down_proj", "final_layer_norm": "post_attention_layernorm",
    "encoder_attn_layer_norm": "cross_attention_layernorm", "encoder_attn.out_proj": "cross_attn.o_proj",
    **{f"{theirs}.{part}_proj": f"{ours}.{part}_proj" for part in "qkv"
       for theirs, ours in (("self_attn", "self_attn"), ("encoder_attn", "cross_attn"))},
}
GPT2_LAYER = {"ln_1": "input_layernorm", "attn.c_proj": "self_attn.o_proj", "ln_2": "post_attention_layernorm",
              "mlp.c_fc": "mlp.up_proj", "mlp.c_proj": "mlp.down_proj"}


def split(name, begin):
    """The layer's number and what follows it."""
    number, rest = name.removeprefix(begin).split(".", 1)
    return number, rest


def from_bert(name, tensor):
    stem, end = name.rsplit(".", 1)
    if name.startswith("bert.encoder.layer."):
        number, stem = split(stem, "bert.encoder.layer.")
        return {f"model.layers.{number}.{BERT_LAYER[stem]}.{end}": tensor}
    return {f"{BERT[stem]}.{end}": tensor}


def from_gpt2(name, tensor):
    stem, end = name.rsplit(".", 1)
    whole = {"transformer.wte": "model.embed_tokens", "transformer.wpe": "model.embed_positions",
             "transformer.ln_f": "model.norm", "lm_head": "lm_head", "classifier": "classifier",
             "score": "score"}
    if stem in whole:
        return {f"{whole[stem]}.{end}": tensor}
    number, stem = split(stem, "transformer.h.")
    begin, tensor = f"model.layers.{number}.", tensor.T if tensor.dim() == 2 else tensor
    if stem == "attn.c_attn":
        return {f"{begin}self_attn.{part}_proj.{end}": rows for part, rows in zip("qkv", tensor.chunk(3))}
    return {f"{begin}{GPT2_LAYER[stem]}.{end}": tensor}


def from_bart(name, tensor):
    stem, end = name.rsplit(".", 1)
    if stem == "model.shared":
        return {"model.embed_tokens.weight": tensor}
    tower = "model.encoder." if "encoder." in name.removeprefix("model.decoder.") else "model.decoder."
    stem = stem.removeprefix(tower)
    if stem == "embed_positions":
        return {f"{tower}embed_positions.{end}": tensor[2:]}
    if stem == "layernorm_embedding":
        return {f"{tower}embed_norm.{end}": tensor}
    number, stem = split(stem, "layers.")
    return {f"{tower}layers.{number}.{BART_LAYER[stem]}.{end}": tensor}


# Headscope's configuration of a stack under transformers' names (core/model/load/native_config.cpp).
def said_of(kind, config, classes):
    common = dict(model_type=kind, vocab_size=config["vocab_size"], tie_word_embeddings=config["tie_word_embeddings"],
                  initializer_range=config["initializer_range"], dtype="float32", architectures=[classes])
    head = config.get("head", {})
    if "classes" in head or head.get("kind") == "spans":
        common["num_labels"] = head.get("classes", 2)
    if kind == "bert":
        same = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act",
                "max_position_embeddings", "type_vocab_size", "layer_norm_eps")
        return common | {key: config[key] for key in same}
    if kind == "gpt2":
        return common | dict(n_embd=config["hidden_size"], n_layer=config["num_hidden_layers"],
                             n_head=config["num_attention_heads"], n_inner=config["intermediate_size"],
                             n_positions=config["max_position_embeddings"], activation_function=config["hidden_act"],
                             layer_norm_epsilon=config["layer_norm_eps"])
    first = config["num_encoder_layers"]
    sides = dict(encoder=first, decoder=config["num_hidden_layers"] - first)
    return common | dict(
        d_model=config["hidden_size"], max_position_embeddings=config["max_position_embeddings"],
        activation_function=config["hidden_act"], scale_embedding=config["embedding_scale"] != 1,
        init_std=config["initializer_range"], forced_eos_token_id=None, is_encoder_decoder=True,
        **{f"{side}_layers": count for side, count in sides.items()},
        **{f"{side}_attention_heads": config["num_attention_heads"] for side in sides},
        **{f"{side}_ffn_dim": config["intermediate_size"] for side in sides})


def written(config):
    """A native configuration with every key that Headscope writes."""
    usual = dict(embedding_scale=1.0, type_vocab_size=0, embedding_norm=False, head={"kind": "language"},
                 embedding={"kind": "table"}, rotary=False, model_type="headscope")
    made = usual | config
    made["mixers"] = {}
    if made["head"]["kind"] == "language":
        made["head_bias"] = False
    if made["head"]["kind"] not in ("language", "masked_language"):
        made["tie_word_embeddings"] = False
    return made


def by_the_book(folder, config, tensors, rename, tokens, target):
    """native_oracle.py on the numbers of a file of transformers under the native names."""
    named = {}
    for name, tensor in tensors.items():
        named |= rename(name, tensor)
    expected = {name: tuple(shape) for name, shape in native_shapes.shapes(config).items()}
    assert {name: tuple(tensor.shape) for name, tensor in named.items()} == expected, expected.keys() ^ named.keys()
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in named.items()}, folder / "model.safetensors")
    with torch.no_grad():
        model = native_oracle.load(folder, True)
        logits, hidden, _ = model.run(tokens, target)
        if logits is None:
            return model.norm("model.norm.weight", hidden[-1]) if model.pre_norm else hidden[-1]
    if config["head"]["kind"] != "sequence_classes":
        return logits
    return logits[-1:] if config["stack"] == "decoder" else logits[:1]


def load(folder, model_class):
    model, report = model_class.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager",
                                                output_loading_info=True)
    assert not any(report.values()), report
    return model.eval()


def case(name, kind, model_class, rename, *, target=None, layers=2, **options):
    config = written(SIZES | random_native.MANNERS[kind] | options | {"num_hidden_layers": layers,
                                                                      "layers": ["standard"] * layers})
    said = said_of(kind, config, model_class.__name__) | {"headscope": config}
    fresh = model_class(model_class.config_class(**{key: value for key, value in said.items() if key != "headscope"}))
    with tempfile.TemporaryDirectory() as temporary:
        fresh.save_pretrained(temporary)
        saved = safetensors.torch.load_file(Path(temporary) / "model.safetensors")
    shapes = {name: list(tensor.shape) for name, tensor in sorted(saved.items()) if name != "final_logits_bias"}
    if kind == "bert" and "cls.predictions.bias" in shapes:  # of the two names the first that Headscope asks for
        shapes["cls.predictions.decoder.bias"] = shapes.pop("cls.predictions.bias")
    begin = {"BertModel": "bert.", "GPT2Model": "transformer.", "BartModel": "model."}.get(model_class.__name__, "")
    shapes = {begin + name: shape for name, shape in sorted(shapes.items()) if not (begin == "bert." and "pooler" in name)}
    tokens = ids(9, 37)
    data = {"config": said, "tensors": shapes, "file_type": "F32", "shards": 1, "ids": [tokens]}
    if target:
        data["target"] = [target]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "transformers"
        write_checkpoint(folder, data)
        model = load(folder, model_class) if model_class is not T.BertModel else T.BertModel.from_pretrained(
            folder, dtype=torch.float64, attn_implementation="eager", add_pooling_layer=False).eval()
        with torch.no_grad():
            arguments = {"input_ids": torch.tensor([tokens])} | ({"decoder_input_ids": torch.tensor([target])} if target else {})
            result = model(**arguments)
        says = result.last_hidden_state if "last_hidden_state" in result else logits_of(result)
        says = says[0] if says.dim() == 3 else says
        numbers = {name: values(name, shape) for name, shape in shapes.items()}
        ours = by_the_book(Path(temporary) / "native", config, numbers, rename, tokens, target)
    assert (says - ours).abs().max() < 1e-9, (name, (says - ours).abs().max())
    data["logits"] = rounded(says)
    return f"native-layout-{name}", data


def same_as_fnet():
    """An FNet of transformers, its projection of the embeddings set to the identity."""
    options = dict(hidden_act="gelu_new", layer_norm_eps=1e-12, type_vocab_size=2)
    theirs = T.FNetConfig(vocab_size=37, hidden_size=24, num_hidden_layers=2, intermediate_size=27,
                          max_position_embeddings=24, use_tpu_fourier_optimizations=False, **options)
    model = T.FNetForMaskedLM(theirs).double().eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        model.fnet.embeddings.projection.weight.copy_(torch.eye(24))
        model.fnet.embeddings.projection.bias.zero_()
        tokens = ids(9, 37)
        says = model(torch.tensor([tokens])).logits[0]
    names = {"fourier.output.LayerNorm": "attention.output.LayerNorm"}

    def rename(name, tensor):
        if name.startswith("fnet.pooler"):
            return {}
        name = name.replace("fnet.", "bert.", 1)
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        return from_bert(name, tensor)

    kept = {name: tensor for name, tensor in model.state_dict().items()
            if "projection" not in name and not name.endswith(("_ids", "cls.predictions.decoder.weight", "decoder.bias"))}
    config = written(SIZES | random_native.MANNERS["bert"] | options | {
        "num_hidden_layers": 2, "layers": ["fnet"] * 2, "hidden_act": "gelu_pytorch_tanh"})
    with tempfile.TemporaryDirectory() as temporary:
        ours = by_the_book(Path(temporary) / "native", config, kept, rename, tokens, None)
    assert (says - ours).abs().max() < 1e-9 * says.abs().max(), (says - ours).abs().max()


def cases():
    same_as_fnet()
    token_classes = {"head": {"kind": "token_classes", "classes": 3}}
    yield case("bert", "bert", T.BertForMaskedLM, from_bert)
    yield case("bert-one-type", "bert", T.BertForMaskedLM, from_bert, hidden_act="relu", type_vocab_size=1)
    yield case("bert-spans", "bert", T.BertForQuestionAnswering, from_bert, head={"kind": "spans"})
    yield case("bert-token-classes", "bert", T.BertForTokenClassification, from_bert, **token_classes)
    yield case("bert-text-classes", "bert", T.BertForSequenceClassification, from_bert,
               head={"kind": "sequence_classes", "classes": 2})
    yield case("bert-none", "bert", T.BertModel, from_bert, head={"kind": "none"})
    yield case("gpt2", "gpt2", T.GPT2LMHeadModel, from_gpt2)
    yield case("gpt2-untied", "gpt2", T.GPT2LMHeadModel, from_gpt2, tie_word_embeddings=False, hidden_act="silu")
    yield case("gpt2-token-classes", "gpt2", T.GPT2ForTokenClassification, from_gpt2, **token_classes)
    yield case("gpt2-text-classes", "gpt2", T.GPT2ForSequenceClassification, from_gpt2,
               head={"kind": "sequence_classes", "classes": 3})
    yield case("gpt2-none", "gpt2", T.GPT2Model, from_gpt2, head={"kind": "none"})
    bart = dict(target=ids(7, 37, 3), layers=3, num_encoder_layers=2)
    yield case("bart", "bart", T.BartForConditionalGeneration, from_bart, **bart)
    yield case("bart-scaled", "bart", T.BartForConditionalGeneration, from_bart, embedding_scale=24**0.5, hidden_act="relu",
               **bart)


if __name__ == "__main__":
    T.logging.set_verbosity_error()
    sys.exit(main(cases))
