#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""`headscope ask` on random T5 and BART checkpoints against transformers with hooks, in float64: the lens and terms of the
decoder, activation patching of blocks, attentions and heads of encoder, decoder and cross-attention, ablated losses, steering, and
cross-attention without some keys.

    ask_encoder_decoder_acceptance.py HEADSCOPE
    ask_encoder_decoder_acceptance.py --self-check        no program: a patch of everything is the clean run
"""

import json
import pathlib
import sys
import tempfile

import torch
import transformers

from ask_acceptance import AGAINST, ANSWER, Hooked, ask, compare, loss, make, metric, of_head, of_position, read, zero

SOURCE, TARGET = 9, 5  # tokens; the start token comes ahead of the target
FACTORS = (-1.0, 2.0)
KEYS = (1, 2)
NAN = float("nan")
T5_NAMES = {"query": "q", "key": "k", "value": "v", "output": "o"}
BART_NAMES = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


class HookedPair(Hooked):
    """A text is a pair: what the encoder reads, and what the decoder does."""

    def __init__(self, model, encoder, decoder, names):
        """`encoder`, `decoder`: of each layer the names of its block, attentions and feed-forward."""
        self.model, self.heads = model.double(), model.config.num_attention_heads
        layers = encoder + decoder
        self.blocks = [block for block, _, _ in layers]
        self.feeds = [feed for _, _, feed in layers]
        sites = [site for _, attentions, _ in layers for site in attentions]
        self.parts = {part: [f"{site}.{name}" for site in sites] for part, name in names.items()}
        self.projections = self.parts["output"]
        # Which side of a pair rows count: 0 the source, 1 the target.
        self.block_sides = [0] * len(encoder) + [1] * len(decoder)
        self.site_sides = [side for side, (_, attentions, _) in zip(self.block_sides, layers) for _ in attentions]

    def logits(self, text):
        source, target = text
        return self.model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]),
                          use_cache=False).logits[0]

    def without_keys(self, text, keys):
        """Logits where cross-attention does not see these source tokens; the encoder does."""
        source, target = text
        mask = torch.ones(1, len(source), dtype=torch.long)
        mask[:, list(keys)] = 0
        with torch.no_grad():
            memory = self.model.get_encoder()(input_ids=torch.tensor([source])).last_hidden_state
            memory = transformers.modeling_outputs.BaseModelOutput(last_hidden_state=memory)
            return self.model(encoder_outputs=memory, attention_mask=mask, decoder_input_ids=torch.tensor([target]),
                              use_cache=False).logits[0]

    def record(self, text):
        seen = {}
        keep = lambda key: lambda value: seen.setdefault(key, value.clone())
        outputs = self.blocks + self.feeds + [name for part in self.parts.values() for name in part]
        self.run(text, {name: keep(("in", name)) for name in self.blocks + self.projections},
                 {name: keep(("out", name)) for name in outputs})
        return seen


def t5(**options):
    settings = dict(vocab_size=61, d_model=24, d_kv=6, d_ff=40, num_layers=2, num_decoder_layers=2, num_heads=4,
                    relative_attention_num_buckets=8, relative_attention_max_distance=16, decoder_start_token_id=0)
    model = make(transformers.T5ForConditionalGeneration, transformers.T5Config(**(settings | options)))
    stack = lambda name, count, attentions: [
        (f"{name}.block.{n}", [f"{name}.block.{n}.layer.{i}.{kind}" for i, kind in enumerate(attentions)],
         f"{name}.block.{n}.layer.{len(attentions)}.DenseReluDense") for n in range(count)]
    return model, (stack("encoder", model.config.num_layers, ["SelfAttention"]),
                   stack("decoder", model.config.num_decoder_layers, ["SelfAttention", "EncDecAttention"]), T5_NAMES)


def bart():
    config = transformers.BartConfig(
        vocab_size=61, d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=40, decoder_ffn_dim=40, max_position_embeddings=32, init_std=0.3, pad_token_id=1,
        decoder_start_token_id=2)
    model = make(transformers.BartForConditionalGeneration, config)
    stack = lambda name, attentions: [
        (f"model.{name}.layers.{n}", [f"model.{name}.layers.{n}.{kind}" for kind in attentions],
         f"model.{name}.layers.{n}.fc2") for n in range(2)]
    return model, (stack("encoder", ["self_attn"]), stack("decoder", ["self_attn", "encoder_attn"]), BART_NAMES)


CASES = {"t5": t5, "gated t5": lambda: t5(feed_forward_proj="gated-gelu", num_decoder_layers=3), "bart": bart}


def expected_lens(hooked, text):
    """Of the decoder's boundaries, by the model's own norm, scale and head."""
    model, seen = hooked.model, hooked.record(text)
    blocks = [name for name, side in zip(hooked.blocks, hooked.block_sides) if side == 1]
    streams = [seen["in", name][0] for name in blocks] + [seen["out", blocks[-1]][0]]

    def head(stream):
        if hasattr(model, "final_logits_bias"):
            return model.lm_head(stream) + model.final_logits_bias[0]
        scale = model.model_dim ** -0.5 if model.config.scale_decoder_outputs else 1
        return model.lm_head(model.decoder.final_layer_norm(stream) * scale)

    with torch.no_grad():
        logs = torch.stack([head(stream).log_softmax(-1) for stream in streams])
    assert torch.allclose(logs[-1], hooked.run(text).log_softmax(-1))
    padding = [NAN] * (max(map(len, text)) - len(text[1]))
    own = [[logs[b, p, token].item() for p, token in enumerate(text[1][1:])] + [NAN] + padding for b in range(len(streams))]
    kl = (logs[-1].exp() * (logs[-1] - logs)).sum(-1)
    return {"log_probability": [own], "kl": [[row + padding for row in kl.tolist()]]}


def expected_attribution(hooked, text):
    """Of T5, whose norms are ahead of attention and feed-forward: terms of the decoder alone."""
    model, seen = hooked.model, hooked.record(text)
    with torch.no_grad():
        unembedding = model.lm_head.weight * (model.model_dim ** -0.5 if model.config.scale_decoder_outputs else 1)
        weight = unembedding[ANSWER].mean(0) - unembedding[AGAINST].mean(0)
        norm, stream = model.decoder.final_layer_norm, seen["out", hooked.blocks[-1]][0, -1]
        form = weight * norm.weight / (stream.square().mean() + norm.variance_epsilon).sqrt()
        heads = [(seen["in", name][0, -1] * (form @ model.get_submodule(name).weight)).unflatten(0, (hooked.heads, -1))
                 .sum(-1).tolist() if side == 1 else [NAN] * hooked.heads
                 for name, side in zip(hooked.projections, hooked.site_sides)]
        feeds = [(form @ seen["out", name][0, -1]).item() if side == 1 else NAN
                 for name, side in zip(hooked.feeds, hooked.block_sides)]
        first = hooked.blocks[hooked.block_sides.index(1)]
        embedding = (form @ seen["in", first][0, -1]).item()
    logit = metric(hooked.run(text))
    return {"head": [heads], "feed_forward": [feeds], "embedding": [embedding], "logit": [logit], "total": [logit]}


def expected_patch(hooked, clean, corrupted):
    seen = hooked.record(clean)
    run = lambda before=None, after=None: metric(hooked.run(corrupted, before, after))
    longest = max(map(len, clean))

    def by_position(name, side):
        length = len(clean[side])
        return [run(after={name: of_position(p, seen["out", name])}) for p in range(length)] + [NAN] * (longest - length)

    def by_head(part):
        return [[[run(after={name: of_head(h, hooked.heads, seen["out", name])}) for h in range(hooked.heads)]
                 for name in hooked.parts[part]]]

    return {
        "clean": [metric(hooked.run(clean))],
        "corrupted": [run()],
        "value/hidden": [[by_position(*one) for one in zip(hooked.blocks, hooked.block_sides)]],
        "value/attention_output": [[by_position(*one) for one in zip(hooked.projections, hooked.site_sides)]],
        "value/head_output": [[[run(before={name: of_head(h, hooked.heads, seen["in", name])})
                                for h in range(hooked.heads)] for name in hooked.projections]],
        "value/query": by_head("query"), "value/key": by_head("key"), "value/value": by_head("value"),
    }


def expected_ablate(hooked, text):
    run = lambda before=None, after=None: loss(hooked.run(text, before, after), text[1])
    return {
        "baseline": [run()],
        "head": [[[run(before={name: of_head(h, hooked.heads, None)}) for h in range(hooked.heads)]
                  for name in hooked.projections]],
        "attention": [[run(after={name: zero}) for name in hooked.projections]],
        "feed_forward": [[run(after={name: zero}) for name in hooked.feeds]],
    }


def expected_steer(hooked, positive, negative):
    """Of the negative text, steered."""
    ahead, behind = hooked.record(positive), hooked.record(negative)
    vectors = [ahead["out", name][0, -1] - behind["out", name][0, -1] for name in hooked.blocks]
    run = lambda after=None: loss(hooked.run(negative, after=after), negative[1])
    return {
        "baseline": [run()],
        "vector": [vector.tolist() for vector in vectors],
        "value": [[[run({name: lambda now, vector=vector, factor=factor: now + factor * vector}) for factor in FACTORS]
                   for name, vector in zip(hooked.blocks, vectors)]],
    }


def check(program, name, hooked, clean, corrupted, folder):
    """Both texts are pairs whose targets have the start token first, of which the files have none."""
    files = {}
    for key, ids in (("clean", clean[0]), ("corrupted", corrupted[0]), ("target", clean[1][1:]),
                     ("other", corrupted[1][1:])):
        files[key] = folder / f"{key}.json"
        files[key].write_text(json.dumps([ids]))
    output, model = folder / "out.ask.h5", folder / "model"
    ask(program, "lens", model, output, "--tokens", files["clean"], "--target-tokens", files["target"])
    compare(f"{name}, lens", expected_lens(hooked, clean), read(output, "lens"))
    ask(program, "patch", model, output, "--clean-tokens", files["clean"], "--corrupted-tokens", files["corrupted"],
        "--target-tokens", files["target"], "--corrupted-target-tokens", files["other"],
        "--sites", "hidden,attention_output,head_output,query,key,value",
        "--answer", ",".join(map(str, ANSWER)), "--against", ",".join(map(str, AGAINST)))
    compare(f"{name}, patch", expected_patch(hooked, clean, corrupted), read(output, "patch"))
    ask(program, "ablate", model, output, "--tokens", files["clean"], "--target-tokens", files["target"])
    compare(f"{name}, ablate", expected_ablate(hooked, clean), read(output, "ablate"))
    if name != "bart":
        ask(program, "attribution", model, output, "--tokens", files["clean"], "--target-tokens", files["target"],
            "--answer", ",".join(map(str, ANSWER)), "--against", ",".join(map(str, AGAINST)))
        compare(f"{name}, attribution", expected_attribution(hooked, clean), read(output, "attribution"))
    steered = (corrupted[0], clean[1])
    ask(program, "steer", model, output, "--tokens", files["corrupted"], "--target-tokens", files["target"],
        "--positive-tokens", files["clean"], "--negative-tokens", files["corrupted"],
        "--factors=" + ",".join(map(str, FACTORS)))
    compare(f"{name}, steer", expected_steer(hooked, clean, steered), read(output, "steer"))
    ask(program, "knockout", model, output, "--tokens", files["clean"], "--target-tokens", files["target"],
        "--attention", "cross", "--queries", f"0-{len(clean[1]) - 1}", "--keys", f"{KEYS[0]}-{KEYS[-1]}")
    compare(f"{name}, knockout", {"baseline": [loss(hooked.run(clean), clean[1])],
                                  "value": [loss(hooked.without_keys(clean, KEYS), clean[1])]}, read(output, "knockout"))


def self_check(name, hooked, clean, corrupted):
    seen = hooked.record(clean)
    target = metric(hooked.run(clean))
    last = hooked.blocks[-1]
    assert abs(metric(hooked.run(corrupted, after={last: lambda _: seen["out", last]})) - target) < 1e-9
    encoder = hooked.blocks[hooked.block_sides.index(1) - 1]
    mixed = (corrupted[0], clean[1])
    assert abs(metric(hooked.run(mixed, after={encoder: lambda _: seen["out", encoder]})) - target) < 1e-9
    expected_lens(hooked, clean)
    if name != "bart":
        terms = {key: torch.tensor(values).nansum().item() for key, values in expected_attribution(hooked, clean).items()}
        total = terms["head"] + terms["feed_forward"] + terms["embedding"]
        assert abs(total - terms["logit"]) < 1e-4  # norms are computed in float32
    assert (hooked.without_keys(clean, ()) - hooked.run(clean)).abs().max() < 1e-9
    patch = expected_patch(hooked, clean, corrupted)
    assert abs(patch["value/hidden"][0][-1][TARGET] - target) < 1e-9, "the last position decides"
    assert len(expected_ablate(hooked, clean)["head"][0]) == len(hooked.projections)
    print(f"{name}: patches agree with themselves")


def main():
    generator = torch.Generator().manual_seed(5)
    drawn = lambda length: torch.randint(3, 61, (length,), generator=generator).tolist()
    for name, build in CASES.items():
        model, names = build()
        start = model.config.decoder_start_token_id
        clean, corrupted = [(drawn(SOURCE), [start] + drawn(TARGET)) for _ in range(2)]
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            model.save_pretrained(folder / "model")
            hooked = HookedPair(model, *names)
            if sys.argv[1] == "--self-check":
                self_check(name, hooked, clean, corrupted)
            else:
                check(sys.argv[1], name, hooked, clean, corrupted, folder)


if __name__ == "__main__":
    main()
