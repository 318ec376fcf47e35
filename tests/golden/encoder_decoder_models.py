# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden data of tests/core/model/test_encoder_decoder.cpp: tiny T5 and BART models by transformers, eager, float64.

Weights are those of models.py: every element follows from its tensor's name. A case holds the configuration, the names
and shapes of the file's tensors, what encoder and decoder read (padded, with lengths), and what transformers made of
it: logits, hidden states of both towers, the weights of all three kinds of attention, and a greedy continuation.

    python tests/golden/encoder_decoder_models.py     writes tests/golden/models/{t5,bart}*.json

Needs torch 2.14, transformers 5.23, safetensors.
"""

import json
import pathlib
import tempfile

import torch
import transformers

from models import ids, rounded, values, write_checkpoint


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
        made = model.generate(torch.tensor(source[:1])[:, : (lengths or [None])[0]], max_new_tokens=generate,
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


def main():
    folder = pathlib.Path(__file__).parent / "models"
    for name, data in cases():
        (folder / f"{name}.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")
        print(name, len(data["tensors"]), "tensors", (folder / f"{name}.json").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
