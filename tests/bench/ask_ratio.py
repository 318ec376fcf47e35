# SPDX-License-Identifier: GPL-3.0-or-later
"""`headscope ask` beside TransformerLens and an eager script, in one run, on a random GPT-2 of 12 x 12 heads, 768 wide.

    python ask_ratio.py HEADSCOPE patch [--packages FOLDER] [--length 64] [--pairs 1] [--threads N] [--check]
    python ask_ratio.py HEADSCOPE corpus [--texts 40] [--length 512] [--threads N] [--check]

patch: every head's output replaced at all positions, by us (the whole process, loading included) and by
TransformerLens's get_act_patch_attn_head_out_all_pos (loading excluded), wall time; the median of neighbors' ratios.
Prints the largest difference of both tables, too. Wants transformer_lens (tests/oracle/make_venv.sh --lens).
corpus: processor time of `ask corpus` (the whole process, all of its indicators) and of a script that computes the
measures of HeadVis in float32 from transformers' eager attention (loading excluded). --check makes exit status 1 of a
ratio above a third.

Wants: torch, transformers, h5py (tests/oracle/requirements.txt), an idle machine.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import torch
import transformers
from model_ratio import seconds_of

sys.path.append(str(Path(__file__).resolve().parent.parent / "oracle" / "random"))
import ask_lens_acceptance  # noqa: E402
import foreign_packages  # noqa: E402

TARGET = 1 / 3
VOCABULARY, ANSWER, AGAINST = 8192, ask_lens_acceptance.ANSWER, ask_lens_acceptance.AGAINST


def make_model(folder, layers, heads, width):
    torch.manual_seed(1)
    config = transformers.GPT2Config(vocab_size=VOCABULARY, n_embd=width, n_layer=layers, n_head=heads,
                                     n_positions=1024, bos_token_id=1, eos_token_id=2)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)


def draw(texts, length):
    return torch.randint(3, VOCABULARY, (texts, length), generator=torch.Generator().manual_seed(2)).tolist()


def ask(given, tool, folder, *options):
    """The ask file of a process."""
    output = folder / f"{tool}.ask.h5"
    command = [given.headscope, "ask", tool, str(folder / "model"), "-o", str(output), "--threads", str(given.threads),
               *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.strip()}")
    return output


def patch_ratio(given, folder):
    foreign_packages.load("transformer_lens", given.packages)
    from transformer_lens import patching
    clean, corrupted = draw(2, given.length)
    for name, ids in (("clean", clean), ("corrupted", corrupted)):
        (folder / f"{name}.json").write_text(json.dumps([ids]))
    bridge = ask_lens_acceptance.bridge_of(folder / "model")
    found = {}

    def theirs():
        with torch.inference_mode():
            _, cache = bridge.run_with_cache(torch.tensor([clean]))
            found["theirs"] = patching.get_act_patch_attn_head_out_all_pos(
                bridge, torch.tensor([corrupted]), cache, ask_lens_acceptance.logit_difference)

    def ours():
        found["ours"] = ask(given, "patch", folder, "--clean-tokens", folder / "clean.json",
                            "--corrupted-tokens", folder / "corrupted.json", "--sites", "head_output",
                            "--answer", ANSWER, "--against", AGAINST)

    seconds = [(seconds_of(ours), seconds_of(theirs)) for _ in range(given.pairs)]
    with h5py.File(found["ours"]) as file:
        apart = (torch.from_numpy(file["patch/value/head_output"][0]) - found["theirs"].double()).abs().max().item()
    ratio = statistics.median(one / other for one, other in seconds)
    print(f"patch, {given.length} tokens: ask {seconds[0][0]:.2f} s, "
          f"TransformerLens {seconds[0][1]:.2f} s (first pair), ratio {ratio:.3f}; largest difference {apart:.1e}")
    return ratio


def eager_measures(model, texts):
    """What expected_corpus() of ask_corpus_acceptance.py computes, in float32, as one writes it first."""
    sums, maxima, repeats = {}, [], 0

    def add(name, value):
        sums[name] = sums.get(name, 0) + value.double()

    with torch.inference_mode():
        for ids in texts:
            tokens = torch.tensor(ids)
            maps = torch.stack(model(tokens[None], output_attentions=True, use_cache=False).attentions)[:, 0]
            places = torch.arange(len(ids))
            apart = (places[:, None] - places[None]).abs().float()
            copies = (tokens[:, None] == tokens[None]).float().tril(-1)
            follows = torch.zeros_like(copies)
            follows[:, 1:] = copies[:, :-1]
            add("self", maps.diagonal(dim1=-2, dim2=-1).sum(-1))
            add("previous", maps.diagonal(-1, -2, -1).sum(-1))
            add("entropy", -(maps * maps.clamp_min(2.0**-126).log()).sum((-2, -1)))
            add("distance", (maps * apart).sum((-2, -1)))
            add("square", (maps * apart**2).sum((-2, -1)))
            add("induction", (maps * follows).sum((-2, -1)))
            repeats += int(copies.any(-1).sum())
            maxima.append(maps[..., 1:, 1:].amax((-2, -1)))
    count = sum(map(len, texts))
    mean = sums["distance"] / count
    return {"self_attention_score": sums["self"] / count, "prev_token_score": sums["previous"] / (count - len(texts)),
            "pattern_entropy": sums["entropy"] / count, "qk_distance": mean,
            "qk_distance_variance": sums["square"] / count - mean**2, "induction_score": sums["induction"] / repeats,
            "maximum_mean": torch.stack(maxima).double().mean(0)}


def processor_seconds(of):
    used = resource.getrusage(of)
    return used.ru_utime + used.ru_stime


def corpus_ratio(given, folder):
    texts = draw(given.texts, given.length)
    (folder / "texts.json").write_text(json.dumps(texts))
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "model", attn_implementation="eager",
                                                             dtype=torch.float32).eval()
    eager_measures(model, texts[:1])
    began = processor_seconds(resource.RUSAGE_CHILDREN)
    output = ask(given, "corpus", folder, "--tokens", folder / "texts.json")
    ours = processor_seconds(resource.RUSAGE_CHILDREN) - began
    began = time.process_time()
    expected = eager_measures(model, texts)
    theirs = time.process_time() - began
    with h5py.File(output) as file:
        apart = max(((torch.from_numpy(file[f"corpus/{name}"][()]) - value).abs()
                     / value.abs().clamp_min(1)).max().item() for name, value in expected.items())
    print(f"corpus, {given.texts} texts of {given.length} tokens: ask {ours:.1f} s of processor time, eager script "
          f"{theirs:.1f} s, ratio {ours / theirs:.3f}; largest difference {apart:.1e}")
    return ours / theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope")
    parser.add_argument("what", choices=("patch", "corpus"))
    parser.add_argument("--packages", help="folder that tests/oracle/make_venv.sh --lens made")
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--length", type=int)
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--shape", type=int, nargs=3, default=(12, 12, 768), metavar=("LAYERS", "HEADS", "WIDTH"))
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    given.length = given.length or {"patch": 64, "corpus": 512}[given.what]
    torch.set_num_threads(given.threads)
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_model(folder / "model", *given.shape)
        ratio = (patch_ratio if given.what == "patch" else corpus_ratio)(given, folder)
    return 1 if given.check and ratio > TARGET else 0


if __name__ == "__main__":
    sys.exit(main())
