#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""`headscope ask` knockout, steer, kinds and circuits on random checkpoints against transformers with hooks and plain
products of the weights, in float64; control vectors against the package gguf.

    ask_heads_acceptance.py HEADSCOPE
    ask_heads_acceptance.py --self-check        no program: the expectations agree with themselves
"""

import json

import torch

from ask_acceptance import AGAINST, ANSWER, ask, compare, loss, metric, read, run_cases

TOKENS = 12
QUERIES, KEYS = (8, 11), (2, 4)
FACTORS = [-1.5, 2.0]
KINDS = ["previous", "duplicate", "induction", "self"]
NEEDLE, STEPS = (2, 9), 5


def attention_names(hooked):
    return [name.rsplit(".", 1)[0] for name in hooked.projections]


def forbidden_run(hooked, ids, layers):
    """Logits with the mask of these layers closed from QUERIES to KEYS."""
    handles = []
    def close(_, args, kwargs):
        mask = kwargs["attention_mask"]
        if mask is None:
            mask = torch.full((1, 1, len(ids), len(ids)), float("-inf")).triu(1)
        mask = mask.to(torch.float64).clone()
        mask[..., QUERIES[0]:QUERIES[1] + 1, KEYS[0]:KEYS[1] + 1] = float("-inf")
        return args, {**kwargs, "attention_mask": mask}
    for layer in layers:
        module = hooked.model.get_submodule(attention_names(hooked)[layer])
        handles.append(module.register_forward_pre_hook(close, with_kwargs=True))
    logits = hooked.run(ids)
    for handle in handles:
        handle.remove()
    return logits


def expected_knockout(hooked, ids, window):
    last = hooked.layers - 1
    layers = lambda l: [k for k in range(l - window // 2, l - window // 2 + window) if 0 <= k <= last]
    return {
        "baseline": [loss(hooked.run(ids), ids)],
        "value": [loss(forbidden_run(hooked, ids, range(hooked.layers)), ids)],
        "by_layer": [[loss(forbidden_run(hooked, ids, layers(l)), ids) for l in range(hooked.layers)]],
    }


def expected_steer(hooked, ids, positive, negative, at):
    def rows(texts):
        found = []
        for text in texts:
            _, seen = hooked.record(text)
            outs = torch.stack([seen["out", name][0] for name in hooked.blocks])
            found.append(outs[:, -1] if at == "last" else outs.mean(1))
        return torch.stack(found).mean(0)
    vectors = rows(positive) - rows(negative)
    add = lambda layer, factor: {hooked.blocks[layer]: lambda now: now + factor * vectors[layer]}
    return {
        "factor": FACTORS,
        "vector": vectors.tolist(),
        "baseline": [metric(hooked.run(ids))],
        "value": [[[metric(hooked.run(ids, after=add(l, f))) for f in FACTORS] for l in range(hooked.layers)]],
    }


def attentions(hooked, ids):
    with torch.no_grad():
        out = hooked.model(torch.tensor([ids]), output_attentions=True, use_cache=False)
    return torch.stack([layer[0] for layer in out.attentions]), out.logits[0]


def detection(ids):
    t, n = torch.tensor(ids), len(ids)
    same = (t[:, None] == t[None]).double().tril(-1)
    induction = torch.zeros(n, n, dtype=torch.float64)
    induction[:, 1:] = same[:, :-1]
    return {"previous": torch.eye(n, dtype=torch.float64).roll(1, 0).tril(-1), "duplicate": same,
            "induction": induction.tril(), "self": torch.eye(n, dtype=torch.float64)}


def expected_kinds(hooked, ids, exclude):
    maps, _ = attentions(hooked, ids)
    places, found = detection(ids), {}
    def without(matrix):
        matrix = matrix.clone()
        if exclude:
            matrix[..., :, 0] = 0
            matrix.diagonal(dim1=-2, dim2=-1).zero_()
        return matrix
    for kind in KINDS:
        kept = without(maps)
        found[kind] = [((kept * places[kind]).sum((-2, -1)) / kept.sum((-2, -1))).tolist()]
        found[kind + "_absolute"] = [(1 - without((maps - places[kind]).abs()).sum((-2, -1)) / len(ids)).tolist()]
    return found


def expected_retrieval(hooked, ids):
    text, answer = list(ids), []
    score = torch.zeros(hooked.layers, hooked.heads, dtype=torch.float64)
    for _ in range(STEPS):
        maps, logits = attentions(hooked, text)
        token = logits[-1].argmax().item()
        looked = maps[:, :, -1].argmax(-1)
        for layer in range(hooked.layers):
            for head in range(hooked.heads):
                key = looked[layer, head].item()
                if NEEDLE[0] <= key <= NEEDLE[1] and ids[key] == token:
                    score[layer, head] += 1 / (NEEDLE[1] - NEEDLE[0] + 1)
        answer.append(token)
        text.append(token)
    return {"retrieval": score.tolist(), "answer": answer}


def head_weights(hooked):
    """W_Q, W_K, W_V [layers, heads, d, size] and W_O [layers, heads, size, d]."""
    config, all_parts = hooked.model.config, []
    for name, projection in zip(attention_names(hooked), hooked.projections):
        module, output = hooked.model.get_submodule(name), hooked.model.get_submodule(projection)
        if hasattr(module, "c_attn"):
            maps = module.c_attn.weight.chunk(3, 1)  # [d, heads * size]
            out = output.weight
        else:
            maps = [module.q_proj.weight.T, module.k_proj.weight.T, module.v_proj.weight.T]
            out = output.weight.T
        size = out.shape[0] // hooked.heads
        parts = [m.unflatten(1, (-1, size)).transpose(0, 1) for m in maps]
        parts = [p.repeat_interleave(hooked.heads // p.shape[0], 0) for p in parts]
        all_parts.append(parts + [out.unflatten(0, (hooked.heads, size))])
    return [torch.stack([parts[k] for parts in all_parts]).detach() for k in range(4)]


def score(matrices):
    values = torch.linalg.eigvals(matrices)
    return values.real.sum(-1) / values.abs().sum(-1)


def expected_circuits(hooked):
    query, key, value, output = head_weights(hooked)
    qk, ov = query @ key.transpose(-1, -2), value @ output
    embedding = hooked.model.get_input_embeddings().weight.detach()
    unembedding = hooked.model.lm_head.weight.detach()
    size = query.shape[-1]
    def composition(later):
        scores = torch.zeros(hooked.layers, hooked.heads, hooked.layers, hooked.heads, dtype=torch.float64)
        for a in range(hooked.layers):
            for b in range(a + 1, hooked.layers):
                products = torch.linalg.matrix_norm(ov[a][:, None] @ later[b][None])
                norms = torch.linalg.matrix_norm(ov[a])[:, None] * torch.linalg.matrix_norm(later[b])[None]
                scores[a, :, b] = products / norms
        return scores.tolist()
    # Nonzero eigenvalues of a product of two factors are those of the product the other way round.
    return {
        "qk_singular_values": torch.linalg.svdvals(qk)[..., :size].tolist(),
        "ov_singular_values": torch.linalg.svdvals(ov)[..., :size].tolist(),
        "qk_eigenvalue_score": score(key.transpose(-1, -2) @ query).tolist(),
        "ov_eigenvalue_score": score(output @ value).tolist(),
        "copying_score": score(output @ (unembedding.T @ embedding) @ value).tolist(),
        "composition_q": composition(qk), "composition_k": composition(qk.transpose(-1, -2)),
        "composition_v": composition(ov),
    }


def check_vector(path, expected, hint, folder):
    """The stored control vector is the file that gguf writes of the same directions."""
    import gguf
    reader = gguf.GGUFReader(path)
    directions = {tensor.name: tensor.data.copy() for tensor in reader.tensors}
    assert list(directions) == [f"direction.{layer}" for layer in range(1, len(expected))], list(directions)
    for layer in range(1, len(expected)):
        found = torch.tensor(directions[f"direction.{layer}"], dtype=torch.float64)
        assert torch.allclose(found, torch.tensor(expected[layer], dtype=torch.float64), atol=1e-4), layer
    again = folder / "again.gguf"
    writer = gguf.GGUFWriter(again, "controlvector")
    writer.add_string("controlvector.model_hint", hint)
    writer.add_int32("controlvector.layer_count", len(directions))
    for name, data in directions.items():
        writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert again.read_bytes() == path.read_bytes(), "not the bytes that gguf writes"


def check(program, name, hooked, texts, folder):
    output, model, vector = folder / "out.ask.h5", folder / "model", folder / "vector.gguf"
    def stored(key, lists):
        (folder / f"{key}.json").write_text(json.dumps(lists))
        return folder / f"{key}.json"
    ids = stored("ids", [texts[0]])
    ask(program, "knockout", model, output, "--tokens", ids, "--queries", "8-11", "--keys", "2-4", "--window", "2")
    compare(f"{name}, knockout", expected_knockout(hooked, texts[0], 2), read(output, "knockout"))
    choice = ["--metric", "logit_difference", "--answer", ",".join(map(str, ANSWER)), "--against",
              ",".join(map(str, AGAINST))]
    for at in ("last", "mean"):
        ask(program, "steer", model, output, "--tokens", ids, "--positive-tokens", stored("positive", texts[1:3]),
            "--negative-tokens", stored("negative", texts[3:]), "--at", at, "--factors=-1.5,2", "--save-vector", vector,
            *choice)
        expected = expected_steer(hooked, texts[0], texts[1:3], texts[3:], at)
        compare(f"{name}, steer at {at}", expected, read(output, "steer"))
        check_vector(vector, expected["vector"], hooked.model.config.model_type, folder)
    for exclude in (False, True):
        ask(program, "kinds", model, output, "--tokens", ids, "--needle", f"{NEEDLE[0]}-{NEEDLE[1]}",
            "--generate", str(STEPS), *(["--exclude-first", "--exclude-current"] if exclude else []))
        expected = {**expected_kinds(hooked, texts[0], exclude), **expected_retrieval(hooked, texts[0])}
        compare(f"{name}, kinds", expected, read(output, "kinds"))
    ask(program, "circuits", model, output)
    compare(f"{name}, circuits", expected_circuits(hooked), read(output, "circuits"))


def self_check(name, hooked, texts):
    ids = texts[0]
    knockout = expected_knockout(hooked, ids, 2)
    assert abs(knockout["value"][0] - knockout["baseline"][0]) > 1e-4
    assert abs(loss(forbidden_run(hooked, ids, []), ids) - knockout["baseline"][0]) < 1e-12
    maps, logits = attentions(hooked, ids)
    assert torch.allclose(logits, hooked.run(ids)) and maps.shape[1] == hooked.heads
    assert torch.allclose(maps.sum(-1), torch.ones_like(maps[..., 0]))
    steer = expected_steer(hooked, ids, texts[1:3], texts[3:], "mean")
    assert abs(steer["value"][0][0][0] - steer["baseline"][0]) > 1e-6
    expected_kinds(hooked, ids, True)
    expected_retrieval(hooked, ids)
    circuits = expected_circuits(hooked)
    query, key, value, output = head_weights(hooked)
    with torch.no_grad():
        _, seen = hooked.record(ids)
        mixed = seen["in", hooked.projections[0]][0].unflatten(-1, (hooked.heads, -1)).transpose(0, 1)
        summed = (mixed @ output[0]).sum(0)
        bias = hooked.model.get_submodule(hooked.projections[0]).bias
        whole = seen["out", hooked.projections[0]][0] - (0 if bias is None else bias)
    assert torch.allclose(summed, whole), "heads add up to the projection"
    for key in ("composition_q", "composition_k", "composition_v"):
        scores = torch.tensor(circuits[key])
        assert 0 < scores.max() <= 1 and scores[1, 0, 0, 0] == 0
    print(f"{name}: expectations agree with themselves")


def main():
    generator = torch.Generator().manual_seed(8)
    half = torch.randint(3, 61, (TOKENS // 2,), generator=generator).tolist()
    texts = [half * 2] + [torch.randint(3, 61, (n,), generator=generator).tolist() for n in (5, 9, 7, 4)]
    run_cases(check, self_check, texts)


if __name__ == "__main__":
    main()
