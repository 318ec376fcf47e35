# SPDX-License-Identifier: GPL-3.0-or-later
"""`headscope ask` beside TransformerLens and an eager script, in one run, on a random GPT-2 of 12 x 12 heads, 768 wide.

    python ask_ratio.py HEADSCOPE patch [--packages FOLDER] [--length 64] [--pairs 1] [--threads N] [--check]
    python ask_ratio.py HEADSCOPE corpus [--texts 64] [--length 512] [--headvis] [--threads N] [--check]

patch: every head's output replaced at all positions, by us (the whole process, loading included) and by
TransformerLens's get_act_patch_attn_head_out_all_pos (loading excluded), wall time; the median of neighbors' ratios.
Prints the largest difference of both tables, too. Wants transformer_lens (tests/oracle/make_venv.sh --lens).
corpus: processor time of `ask corpus` (the whole process) and of a script that computes the same tables in float32 from
transformers' eager attention (loading excluded, eager_corpus.py). The first 50 texts set the intervals; heads keep some
of the others. --headvis adds the ratio to a script that computes the seven measures of HeadVis alone, which is far less
work. Prints the largest differences, too. --check makes exit status 1 of a ratio above a third.

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
from eager_corpus import eager_corpus, headvis_measures
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


def processor_seconds(of):
    used = resource.getrusage(of)
    return used.ru_utime + used.ru_stime


def apart(file, expected):
    """The largest difference of tables of /corpus, relative to numbers above 1."""
    return max(((torch.from_numpy(file[f"corpus/{name}"][()]).double().reshape(value.shape) - value).abs()
                / value.abs().clamp_min(1)).max().item() for name, value in expected.items())


def kept_apart(file, expected):
    """Heads that keep other texts, and the largest difference of tables of the others."""
    found = {name: torch.from_numpy(file[f"corpus/{name}"][()]).double().reshape(value.shape).nan_to_num(-1)
             for name, value in expected.items()}
    same = (found["kept"] == expected["kept"]).all(-1)
    largest = max(((found[name] - value)[same].abs() / value[same].abs().clamp_min(1)).max().item()
                  for name, value in expected.items() if not name.endswith("token")) if same.any() else float("nan")
    return int((~same).sum()), largest


def corpus_ratio(given, folder):
    texts = draw(given.texts, given.length)
    (folder / "texts.json").write_text(json.dumps(texts))
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "model", attn_implementation="eager",
                                                             dtype=torch.float32).eval()
    headvis_measures(model, texts[:1])
    began = processor_seconds(resource.RUSAGE_CHILDREN)
    output = ask(given, "corpus", folder, "--tokens", folder / "texts.json")
    ours = processor_seconds(resource.RUSAGE_CHILDREN) - began
    print(f"corpus, {given.texts} texts of {given.length} tokens: ask {ours:.1f} s of processor time")

    def timed(script):
        began = time.process_time()
        found = script(model, texts)
        return time.process_time() - began, found

    theirs, (measures, kept) = timed(eager_corpus)
    with h5py.File(output) as file:
        others, largest = kept_apart(file, kept)
        print(f"eager script with the same tables {theirs:.1f} s, ratio {ours / theirs:.3f}; largest difference "
              f"{apart(file, measures):.1e}, of kept texts {largest:.1e}; {others} of {len(kept['kept'])} heads keep "
              "others")
        if given.headvis:
            few, expected = timed(headvis_measures)
            expected = {name: value.flatten() for name, value in expected.items()}
            print(f"eager script with the measures of HeadVis alone {few:.1f} s, ratio {ours / few:.3f}; "
                  f"largest difference {apart(file, expected):.1e}")
    return ours / theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope")
    parser.add_argument("what", choices=("patch", "corpus"))
    parser.add_argument("--packages", help="folder that tests/oracle/make_venv.sh --lens made")
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--length", type=int)
    parser.add_argument("--headvis", action="store_true", help="corpus: also the ratio to HeadVis's measures alone")
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
