# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden data of tests/core/model/families/test_encoder_decoder.cpp: tiny encoder-decoders by transformers, eager,
float64.

Weights are those of models.py: every element follows from its tensor's name. A case holds the configuration, the names
and shapes of the file's tensors, what encoder and decoder read (padded, with lengths), and what transformers made of
it: logits, hidden states of both towers, the weights of all three kinds of attention, and a greedy continuation.

    python tests/oracle/models/encoder_decoder_models.py [CASE...]     writes tests/oracle/models/data/CASE.json, else all of them

Needs torch 2.14, transformers 5.23, safetensors.
"""

import json
import pathlib
import sys
import tempfile

import torch
import transformers

from models import DATA, ids, rounded, values, write_checkpoint


def tensor_shapes(model_class, config):
    """Names and shapes as transformers saves them, and the configuration that it writes."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        model_class(config).save_pretrained(folder)
        from safetensors.torch import load_file
        stored = load_file(folder + "/model.safetensors")
        saved = json.loads(pathlib.Path(folder, "config.json").read_text())
    return {name: list(tensor.shape) for name, tensor in sorted(stored.items())}, saved


def mask(lengths, longest):
    return torch.tensor([[int(i < n) for i in range(longest)] for n in lengths])


def case(name, model_class, config, source, target, *, lengths=None, target_lengths=None, extra=None, without=(),
         change_config=None, file_type="F32", shards=1, generate=0, keep=("logits", "hidden", "attention")):
    if sys.argv[1:] and name not in sys.argv[1:]:
        return name, None
    shapes, saved = tensor_shapes(model_class, config)
    shapes |= extra or {}
    for tensor in without:
        del shapes[tensor]
    saved.pop("transformers_version", None)
    if change_config:
        change_config(saved)
    result = {"config": saved, "tensors": shapes, "file_type": file_type, "shards": shards, "ids": source}
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(pathlib.Path(folder), result)
        model = model_class.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
    kind = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}[file_type]
    for key, tensor in model.state_dict().items():   # from_pretrained took every tensor of the file as it is
        if key in shapes:
            assert torch.equal(tensor, values(key, shapes[key]).to(kind).double()), key
    arguments = {"input_ids": torch.tensor(source)}
    if lengths:
        arguments["attention_mask"] = mask(lengths, len(source[0]))
        result["lengths"] = lengths
    if target:
        arguments["decoder_input_ids"] = torch.tensor(target)
        result["target"] = target
    if target_lengths:
        arguments["decoder_attention_mask"] = mask(target_lengths, len(target[0]))
        result["target_lengths"] = target_lengths
    with torch.no_grad():
        out = model(**arguments, output_hidden_states=True, output_attentions=True)
    if target:
        result["logits"] = rounded(out.logits)
    if "hidden" in keep:
        hidden = out.encoder_hidden_states if target else out.hidden_states
        result["encoder_hidden"] = [rounded(h) for h in hidden]
        if target:
            result["hidden"] = [rounded(h) for h in out.decoder_hidden_states]
    if "attention" in keep:
        result["encoder_attention"] = [rounded(a) for a in (out.encoder_attentions if target else out.attentions)]
        if target:
            result["attention"] = [rounded(a) for a in out.decoder_attentions]
            result["cross_attention"] = [rounded(a) for a in out.cross_attentions]
    if generate:
        prompt = torch.tensor(source[:1])[:, : (lengths or [None])[0]]
        made = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=generate,
                              do_sample=False, num_beams=1, forced_bos_token_id=None, forced_eos_token_id=None)
        result["generated"] = made[0].tolist()
    return name, result


def cases():
    T = transformers
    t5 = dict(vocab_size=41, d_model=20, d_kv=6, d_ff=27, num_layers=2, num_decoder_layers=1, num_heads=3,
              relative_attention_num_buckets=8, relative_attention_max_distance=12, layer_norm_epsilon=1e-5,
              decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)
    source, target = [ids(17, 41), ids(17, 41, 1)], [[0] + ids(8, 41, 2), [0] + ids(8, 41, 3)]
    yield case("t5", T.T5ForConditionalGeneration, T.T5Config(**t5), source, target, lengths=[17, 11],
               target_lengths=[6, 9], generate=7)

    def untied(config):
        config.pop("scale_decoder_outputs", None)
        config["tie_word_embeddings"] = False

    # T5 1.1: gated, a head of its own, no scale; as old files have it, also with the embedding three times.
    yield case("t5-v1.1-bf16-sharded", T.T5ForConditionalGeneration,
               T.T5Config(**{**t5, "num_layers": 1, "num_decoder_layers": 2, "feed_forward_proj": "gated-gelu"}),
               source[:1], target[:1], extra={"lm_head.weight": [41, 20]}, change_config=untied, file_type="BF16",
               shards=3, keep=("logits",))
    yield case("t5-saved-untied", T.T5ForConditionalGeneration,
               T.T5Config(**{**t5, "num_layers": 1, "tie_word_embeddings": False, "feed_forward_proj": "gated-silu"}),
               source[:1], target[:1], keep=("logits",))
    yield case("t5-three-embeddings", T.T5ForConditionalGeneration, T.T5Config(**{**t5, "num_layers": 1}), source[:1],
               target[:1], extra={"encoder.embed_tokens.weight": [41, 20], "decoder.embed_tokens.weight": [41, 20]},
               keep=("logits",))
    yield case("mt5", T.MT5ForConditionalGeneration,
               T.MT5Config(**{**t5, "num_layers": 1, "feed_forward_proj": "gated-gelu"}), source[:1], target[:1],
               keep=("logits",))
    encoder = {key: value for key, value in t5.items() if key != "num_decoder_layers"}
    yield case("t5-encoder", T.T5EncoderModel, T.T5Config(**encoder), source, None, lengths=[17, 11])

    bart = dict(vocab_size=43, d_model=24, max_position_embeddings=20, encoder_layers=1, encoder_attention_heads=4,
                encoder_ffn_dim=29, decoder_layers=2, decoder_attention_heads=3, decoder_ffn_dim=33,
                scale_embedding=True, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
    source, target = [ids(13, 43), ids(13, 43, 1)], [[2] + ids(9, 43, 2), [2] + ids(9, 43, 3)]
    yield case("bart", T.BartForConditionalGeneration, T.BartConfig(**bart), source, target, lengths=[13, 8],
               target_lengths=[10, 4], extra={"final_logits_bias": [1, 43]}, generate=7)
    yield case("bart-untied-f16", T.BartForConditionalGeneration,
               T.BartConfig(**{**bart, "tie_word_embeddings": False, "scale_embedding": False,
                               "activation_function": "relu"}),
               source[:1], target[:1], file_type="F16", keep=("logits",))
    yield from relatives_of_bart(bart, source, target)
    umt5 = t5 | dict(vocab_size=43, num_decoder_layers=2)
    yield case("umt5", T.UMT5ForConditionalGeneration, T.UMT5Config(**umt5), source, target, lengths=[13, 8],
               target_lengths=[10, 4], generate=7)
    # As it is published: a head of its own, and ungated for once.
    yield case("umt5-own-head", T.UMT5ForConditionalGeneration,
               T.UMT5Config(**umt5 | {"num_decoder_layers": 1, "feed_forward_proj": "relu"}), source[:1], target[:1],
               extra={"lm_head.weight": [43, 20]}, keep=("logits",),
               change_config=lambda config: config.update(tie_word_embeddings=False))


def old(**keys):
    """Files of before transformers 5: other names, aliases, unused keys of fairseq, no new ones."""
    def change(config):
        config |= {"torch_dtype": config.pop("dtype"), "num_hidden_layers": config["encoder_layers"], "num_beams": 4,
                   "classif_dropout": 0.0, "gradient_checkpointing": False, **keys}
        for key in ("tie_word_embeddings", "is_decoder"):
            config.pop(key, None)
    return change


def relatives_of_bart(bart, source, target):
    T = transformers
    pair = dict(lengths=[13, 8], target_lengths=[10, 4])
    fairseq = dict(normalize_before=True, add_final_layer_norm=True, normalize_embedding=False)
    tables = {f"model.{tower}.embed_positions.weight": [20, 21] for tower in ("encoder", "decoder")}
    odd = {**bart, "d_model": 21, "encoder_attention_heads": 3}
    two = {**odd, "decoder_vocab_size": 37}
    below = [[token % 37 for token in row] for row in target]
    padded = [[token if i % 5 else 1 for i, token in enumerate(row, 2)] for row in source]
    whole = [[max(token, 2) for token in row] for row in target]   # no padding: that counts otherwise in pieces

    yield case("marian", T.MarianMTModel, T.MarianConfig(**bart), source, target, **pair, generate=7)
    yield case("marian-two-vocabularies", T.MarianMTModel,
               T.MarianConfig(**two, share_encoder_decoder_embeddings=False), source, below, **pair, generate=7,
               keep=("logits",))
    yield case("marian-two-untied", T.MarianMTModel,
               T.MarianConfig(**two, share_encoder_decoder_embeddings=False, tie_word_embeddings=False), source[:1],
               below[:1], keep=("logits",))
    # Files may hold the sinusoids.
    yield case("marian-old-tables", T.MarianMTModel, T.MarianConfig(**odd), source[:1], target[:1], extra=tables,
               keep=("logits",), change_config=old(static_position_embeddings=True, normalize_before=False))
    yield case("mbart", T.MBartForConditionalGeneration, T.MBartConfig(**bart), source, target, **pair, generate=7,
               keep=("logits",))
    yield case("mbart-old", T.MBartForConditionalGeneration, T.MBartConfig(**bart), source[:1], target[:1],
               keep=("logits",),
               change_config=old(**fairseq, static_position_embeddings=False, decoder_start_token_id=None))
    yield case("m2m-100", T.M2M100ForConditionalGeneration, T.M2M100Config(**bart), padded, whole, **pair, generate=7)
    # An odd size, unused tables, padding in the decoder's input, more tokens than positions.
    yield case("m2m-100-old-beyond", T.M2M100ForConditionalGeneration,
               T.M2M100Config(**odd | dict(max_position_embeddings=9, scale_embedding=False, pad_token_id=3)),
               source[:1], [[2, 3, 7, 3] + target[0][1:]], keep=("logits",),
               extra={f"model.{tower}.embed_positions.weights": [11, 21] for tower in ("encoder", "decoder")},
               change_config=old(static_position_embeddings=True))
    yield case("pegasus", T.PegasusForConditionalGeneration, T.PegasusConfig(**bart), source, target, **pair,
               generate=7, keep=("logits",))
    yield case("pegasus-old", T.PegasusForConditionalGeneration,
               T.PegasusConfig(**odd | {"activation_function": "relu"}), source[:1], target[:1], without=tuple(tables),
               keep=("logits",), change_config=old(**fairseq, extra_pos_embeddings=1))
    yield case("blenderbot", T.BlenderbotForConditionalGeneration, T.BlenderbotConfig(**bart), source, target, **pair,
               generate=7, keep=("logits",))
    yield case("blenderbot-old", T.BlenderbotForConditionalGeneration,
               T.BlenderbotConfig(**{**bart, "scale_embedding": False}), source[:1], target[:1], keep=("logits",),
               change_config=old(**fairseq, layernorm_variant="prelayernorm"))
    yield case("blenderbot-small", T.BlenderbotSmallForConditionalGeneration, T.BlenderbotSmallConfig(**bart), source,
               target, **pair, generate=7, keep=("logits",))


def main():
    for name, data in cases():
        if data is None:
            continue
        (DATA / f"{name}.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")
        print(name, len(data["tensors"]), "tensors", (DATA / f"{name}.json").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
