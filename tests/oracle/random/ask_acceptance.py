#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""`headscope ask` on random checkpoints against transformers with hooks, in float64: the logit lens, activation patching of
blocks and heads, ablated losses, and terms of a logit difference.

    ask_acceptance.py HEADSCOPE
    ask_acceptance.py --self-check        no program: a patch of everything is the clean run, and terms sum to the logit
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers

TOKENS = 11
ANSWER, AGAINST = [3, 9], [5]
TOLERANCE = 1e-4  # float32 through three layers against float64, relative to 1 or the value


def cases():
    common = {"vocab_size": 61, "initializer_range": 0.3, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    gpt2 = transformers.GPT2Config(n_embd=24, n_layer=3, n_head=4, n_positions=32, **common)
    llama = transformers.LlamaConfig(hidden_size=24, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
                                     intermediate_size=40, max_position_embeddings=32, **common)
    return {
        "gpt2": (transformers.GPT2LMHeadModel, gpt2, "transformer.h.{}", "attn.c_proj", "mlp", "transformer.ln_f"),
        "llama": (transformers.LlamaForCausalLM, llama, "model.layers.{}", "self_attn.o_proj", "mlp", "model.norm"),
    }


def make(kind, config):
    torch.manual_seed(11)
    config._attn_implementation = "eager"
    model = kind(config).float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.3)
    return model


class Hooked:
    """A model with hooks: `before` and `after` map a module's name to a function of its input or output. `attention`:
    the module whose output is added to the stream, where that is a norm behind the projection."""

    def __init__(self, model, block, projection, feed, norm, attention=None):
        self.model, self.layers = model.double(), model.config.num_hidden_layers
        self.blocks = [block.format(layer) for layer in range(self.layers)]
        self.projections = [f"{name}.{projection}" for name in self.blocks]
        self.attentions = [f"{name}.{attention or projection}" for name in self.blocks]
        self.feeds = [f"{name}.{feed}" for name in self.blocks]
        self.norm, self.heads = model.get_submodule(norm), model.config.num_attention_heads

    def run(self, ids, before=None, after=None):
        handles = []
        first = lambda value: value[0] if isinstance(value, tuple) else value
        for name, change in (before or {}).items():
            handles.append(self.model.get_submodule(name).register_forward_pre_hook(
                lambda _, into, change=change: (change(into[0]),) + tuple(into[1:])))
        for name, change in (after or {}).items():
            def hook(_, __, out, change=change):
                changed = change(first(out))
                return (changed,) + tuple(out[1:]) if isinstance(out, tuple) else changed
            handles.append(self.model.get_submodule(name).register_forward_hook(hook))
        with torch.no_grad():
            logits = self.logits(ids)
        for handle in handles:
            handle.remove()
        return logits

    def logits(self, ids):
        return self.model(torch.tensor([ids]), use_cache=False).logits[0]

    def record(self, ids):
        """Blocks' inputs and outputs, inputs and outputs of projections, outputs of attentions and feed-forwards."""
        seen = {}
        keep = lambda key: lambda value: seen.setdefault(key, value.clone())
        logits = self.run(ids, {**{n: keep(("in", n)) for n in self.blocks},
                                **{n: keep(("in", n)) for n in self.projections}},
                          {n: keep(("out", n)) for n in self.blocks + self.projections + self.attentions + self.feeds})
        return logits, seen


def metric(logits):
    return (logits[-1, ANSWER].mean() - logits[-1, AGAINST].mean()).item()


def loss(logits, ids):
    logs = logits.log_softmax(-1)
    return -torch.stack([logs[i, ids[i + 1]] for i in range(len(ids) - 1)]).mean().item()


def of_position(position, value):
    def change(now):
        now = now.clone()
        now[:, position] = value[:, position]
        return now
    return change


def of_head(head, heads, value):
    """`value` None: zeros."""
    def change(now):
        now = now.clone()
        columns = now.unflatten(-1, (heads, -1))
        columns[:, :, head] = 0 if value is None else value.unflatten(-1, (heads, -1))[:, :, head]
        return now
    return change


def zero(now):
    return torch.zeros_like(now)


def expected_patch(hooked, clean, corrupted):
    _, seen = hooked.record(clean)
    layers, heads = range(hooked.layers), range(hooked.heads)
    run = lambda before=None, after=None: metric(hooked.run(corrupted, before, after))
    return {
        "clean": [metric(hooked.run(clean))],
        "corrupted": [metric(hooked.run(corrupted))],
        "value/hidden": [[[run(after={hooked.blocks[n]: of_position(p, seen["out", hooked.blocks[n]])})
                           for p in range(len(clean))] for n in layers]],
        "value/attention_output": [[[run(after={hooked.attentions[n]: of_position(p, seen["out", hooked.attentions[n]])})
                                     for p in range(len(clean))] for n in layers]],
        "value/head_output": [[[run(before={hooked.projections[n]: of_head(h, hooked.heads, seen["in", hooked.projections[n]])})
                                for h in heads] for n in layers]],
    }


def expected_ablate(hooked, ids):
    run = lambda before=None, after=None: loss(hooked.run(ids, before, after), ids)
    layers, heads = range(hooked.layers), range(hooked.heads)
    return {
        "baseline": [run()],
        "head": [[[run(before={hooked.projections[n]: of_head(h, hooked.heads, None)}) for h in heads] for n in layers]],
        "attention": [[run(after={hooked.attentions[n]: zero}) for n in layers]],
        "feed_forward": [[run(after={hooked.feeds[n]: zero}) for n in layers]],
    }


def expected_lens(hooked, ids, maps=None):
    """`maps`: by boundary, of rows of the stream; a boundary without one has no numbers."""
    logits, seen = hooked.record(ids)
    streams = [seen["in", name][0] for name in hooked.blocks] + [seen["out", hooked.blocks[-1]][0]]
    if maps is not None:
        nothing = torch.full_like(streams[0], float("nan"))
        streams[:-1] = [maps[b](stream) if b in maps else nothing for b, stream in enumerate(streams[:-1])]
    with torch.no_grad():
        logs = torch.stack([hooked.model.lm_head(hooked.norm(stream)).log_softmax(-1) for stream in streams])
    assert torch.allclose(logs[-1], logits.log_softmax(-1))
    targets = ids[1:]
    nan = float("nan")
    own = [[logs[b, p, t].item() for p, t in enumerate(targets)] + [nan] for b in range(len(streams))]
    rank = [[-1 if logs[b, p, t].isnan() else (logs[b, p] > logs[b, p, t]).sum().item() for p, t in enumerate(targets)] + [-1]
            for b in range(len(streams))]
    kl = (logs[-1].exp() * (logs[-1] - logs)).sum(-1)
    return {"log_probability": [own], "rank": [rank], "kl": [kl.tolist()],
            "entropy": [(-(logs.exp() * logs).sum(-1)).tolist()]}


def frozen(norm, weight, stream):
    """The linear form of `norm`'s input that `weight` is of its output, and the constant, frozen at `stream`."""
    from_zero = any(family in type(norm).__name__ for family in ("Gemma", "Qwen3_5"))
    gained = weight * (1 + norm.weight if from_zero else norm.weight)
    if isinstance(norm, torch.nn.LayerNorm):
        deviation = (stream.var(unbiased=False) + norm.eps).sqrt()
        return (gained - gained.mean()) / deviation, (weight @ norm.bias).item()
    epsilon = norm.variance_epsilon if hasattr(norm, "variance_epsilon") else norm.eps
    return gained / (stream.square().mean() + epsilon).sqrt(), 0.0


def form_of_projection(hooked, layer, form, seen):
    """The linear form of the projection's output that `form` is of what is added to the stream."""
    attention, projection = hooked.attentions[layer], hooked.projections[layer]
    if attention == projection:
        return form
    return frozen(hooked.model.get_submodule(attention), form, seen["out", projection][0, -1])[0]


def expected_attribution(hooked, ids):
    logits, seen = hooked.record(ids)
    with torch.no_grad():
        unembedding = hooked.model.lm_head.weight
        weight = unembedding[ANSWER].mean(0) - unembedding[AGAINST].mean(0)
        stream = seen["out", hooked.blocks[-1]][0, -1]
        form, bias = frozen(hooked.norm, weight, stream)
        heads, feeds = [], []
        for layer, (projection, feed) in enumerate(zip(hooked.projections, hooked.feeds)):
            module = hooked.model.get_submodule(projection)
            own = form_of_projection(hooked, layer, form, seen)
            matrix = module.weight if isinstance(module, transformers.pytorch_utils.Conv1D) else module.weight.T
            read = seen["in", projection][0, -1]
            heads.append((read * (matrix @ own)).unflatten(0, (hooked.heads, -1)).sum(-1).tolist())
            feeds.append((form @ seen["out", feed][0, -1]).item())
    return {"head": [heads], "feed_forward": [feeds], "final_norm_bias": [bias], "logit": [metric(logits)],
            "total": [metric(logits)]}


def compare(name, expected, stored, tolerance=TOLERANCE):
    worst = 0
    for key, values in expected.items():
        wanted, found = torch.tensor(values, dtype=torch.float64), torch.tensor(stored[key], dtype=torch.float64)
        found = found.view(wanted.shape)
        assert torch.equal(wanted.isnan(), found.isnan()), (name, key)
        apart = ((wanted - found).abs() / wanted.abs().clamp_min(1)).nan_to_num(0)
        worst = max(worst, apart.max().item())
        assert apart.max() < tolerance, (name, key, apart.max().item())
    print(f"{name}: {len(expected)} tables, largest difference {worst:.1e}")


def read(path, group):
    import h5py
    with h5py.File(path) as file:
        assert file.attrs["format"] == "headscope-ask" and file.attrs["complete"] == 1
        found = {}
        file[group].visititems(lambda name, one: found.__setitem__(name, one[()].tolist())
                               if isinstance(one, h5py.Dataset) else None)
        return found


def ask(program, tool, folder, output, *options):
    subprocess.run([program, "ask", tool, folder, "-o", output, "--threads", "2", *options], check=True,
                   stdout=subprocess.DEVNULL)


def check_fitted_lenses(program, name, hooked, ids, tokens, folder):
    """A tuned lens as tuned-lens 0.2 saves it, and a Jacobian lens as jlens saves it, with random maps."""
    generator, size = torch.Generator().manual_seed(7), hooked.model.config.hidden_size
    output, model = folder / "out.ask.h5", folder / "model"
    maps = torch.nn.ModuleList(torch.nn.Linear(size, size) for _ in hooked.blocks)
    for parameter in maps.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float32) / size
    (folder / "tuned").mkdir()
    torch.save(maps.state_dict(), folder / "tuned" / "params.pt")
    maps = maps.double()
    with torch.no_grad():
        wanted = expected_lens(hooked, ids, {b: lambda h, b=b: h + maps[b](h) for b in range(len(maps))})
    ask(program, "lens", model, output, "--tokens", tokens, "--kind", "tuned", "--lens-file", folder / "tuned")
    compare(f"{name}, tuned lens", wanted, read(output, "lens"))
    # The last layer has no matrix, and the first boundary is no layer's output.
    layers = range(len(hooked.blocks) - 1)
    matrices = {n: torch.randn(size, size, generator=generator, dtype=torch.float32) / size ** 0.5 for n in layers}
    torch.save({"J": matrices, "n_prompts": 3, "source_layers": list(layers), "d_model": size}, folder / "lens.pt")
    wanted = expected_lens(hooked, ids, {n + 1: lambda h, n=n: h @ matrices[n].double().T for n in layers})
    ask(program, "lens", model, output, "--tokens", tokens, "--kind", "jacobian", "--lens-file", folder / "lens.pt")
    compare(f"{name}, Jacobian lens", wanted, read(output, "lens"))


def check(program, name, hooked, texts, folder):
    clean, corrupted = texts
    files = {}
    for key, ids in (("clean", clean), ("corrupted", corrupted)):
        files[key] = folder / f"{key}.json"
        files[key].write_text(json.dumps([ids]))
    output, model = folder / "out.ask.h5", folder / "model"
    choice = ["--answer", ",".join(map(str, ANSWER)), "--against", ",".join(map(str, AGAINST))]
    ask(program, "lens", model, output, "--tokens", files["clean"])
    compare(f"{name}, lens", expected_lens(hooked, clean), read(output, "lens"))
    check_fitted_lenses(program, name, hooked, clean, files["clean"], folder)
    ask(program, "patch", model, output, "--clean-tokens", files["clean"], "--corrupted-tokens", files["corrupted"],
        "--sites", "hidden,attention_output,head_output", *choice)
    compare(f"{name}, patch", expected_patch(hooked, clean, corrupted), read(output, "patch"))
    ask(program, "ablate", model, output, "--tokens", files["clean"])
    compare(f"{name}, ablate", expected_ablate(hooked, clean), read(output, "ablate"))
    ask(program, "attribution", model, output, "--tokens", files["clean"], *choice)
    compare(f"{name}, attribution", expected_attribution(hooked, clean), read(output, "attribution"))


def self_check(name, hooked, texts):
    clean, corrupted = texts
    patch = expected_patch(hooked, clean, corrupted)
    _, seen = hooked.record(clean)
    whole = {hooked.blocks[-1]: lambda _: seen["out", hooked.blocks[-1]]}
    assert abs(metric(hooked.run(corrupted, after=whole)) - patch["clean"][0]) < 1e-9
    assert abs(patch["value/hidden"][0][-1][-1] - patch["clean"][0]) < 1e-9, "the last position decides"
    terms = expected_attribution(hooked, clean)
    with torch.no_grad():
        unembedding = hooked.model.lm_head.weight
        weight = unembedding[ANSWER].mean(0) - unembedding[AGAINST].mean(0)
        form, _ = frozen(hooked.norm, weight, seen["out", hooked.blocks[-1]][0, -1])
        biases = sum((form_of_projection(hooked, layer, form, seen) @ bias).item()
                     for layer, projection in enumerate(hooked.projections)
                     if (bias := hooked.model.get_submodule(projection).bias) is not None)
        embedding = (form @ seen["in", hooked.blocks[0]][0, -1]).item()
    total = sum(map(sum, terms["head"][0])) + sum(terms["feed_forward"][0]) + biases + embedding + terms["final_norm_bias"][0]
    assert abs(total - terms["logit"][0]) < 1e-5  # RMS norms are computed in float32
    expected_lens(hooked, clean)
    assert len(expected_ablate(hooked, clean)["head"][0]) == hooked.layers
    print(f"{name}: patches and terms agree with themselves")


def run_cases(check, self_check, *texts, of=cases):
    """Every case with `texts`: self_check without a program, else check, whose folder has the case's model."""
    for name, (kind, config, *names) in of().items():
        model = make(kind, config)
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            model.save_pretrained(folder / "model")
            hooked = Hooked(model, *names)
            if sys.argv[1] == "--self-check":
                self_check(name, hooked, *texts)
            else:
                check(sys.argv[1], name, hooked, *texts, folder)


def main():
    generator = torch.Generator().manual_seed(5)
    texts = [torch.randint(3, 61, (TOKENS,), generator=generator).tolist() for _ in range(2)]
    run_cases(check, self_check, texts)


if __name__ == "__main__":
    main()
