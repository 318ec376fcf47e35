# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of every view, light and dark, held against approved ones.

    pictures.py HEADSCOPE VIEW_SHOT SAMPLE [--approve] [--shots FOLDER]

The sample is analysed, each view drawn from that, and compared cell by cell with the picture in approved/ (view_shot
--compare says how). A picture that differs is left in the folder of shots beside the approved one's name. --approve
takes what is drawn now as approved: look at every one before you commit it.
"""
import argparse
import os
import subprocess
import sys
import tempfile

TEXT = "In the beginning the king came down from the mountain, and the people saw the king and were glad."
OTHER = "The people of the mountain saw the king in the beginning, and the king came down and was glad."
SIZE = "760x480"
# View, further arguments of view_shot. Sink and induction heads of the sample are where there is something to see.
VIEWS = [
    ("overview", []), ("all_heads", ["--filter", "sink > 0.3"]),
    ("map", ["--site", "1", "--head", "2", "--query", "12", "--key", "4"]),
    ("lines", ["--site", "1"]), ("on_text", ["--site", "1", "--query", "14"]), ("compare", []), ("loss", []),
    ("radar", []), ("logits", []), ("states", []),
    ("tensors", ["--state", '{"tensor": "model.layers.3.attn.q.weight", "filter": "layers.3"}']),
]
# Those of training, of recurrent layers, Lazy Attention and head embeddings, of typed words, of runs, results and models that never were.
RUN_VIEWS = [("train", ["made"]), ("layout", ["made"]), ("run", ["made", "made"]), ("timeline", ["made"]),
             ("cost", ["made"]), ("context_perplexity", ["evaluated"]), ("ablation", ["evaluated"]),
             ("scaling", ["evaluated"]), ("position_perplexity", ["long_texts"]), ("ruler", ["long_texts"]),
             ("latency", ["long_texts"]), ("token_types", ["recurrent"]), ("branch_weights", ["recurrent"]),
             ("mass", ["lazy"]), ("bias", ["lazy"]), ("offsets", ["lazy"]),
             ("head_embeddings", ["heads"]), ("hash", ["heads"]), ("lens", ["asked-lens"]),
             ("patch_layers", ["asked-patch"]), ("patch_heads", ["asked-patch"]),
             ("ablation_heads", ["asked-ablate"]), ("attribution", ["asked-attribution"]),
             ("sink_rate", ["asked-sinks"]), ("massive_activations", ["asked-sinks"]), ("value_norms", ["asked-sinks"]),
             ("corpus_scatter", ["asked-corpus"]), ("corpus_head", ["asked-corpus"]), ("series", ["asked-series"]),
             ("cache_error", ["asked-cache"]),
             ("knockout", ["asked-knockout"]), ("steering", ["asked-steer"]), ("head_kinds", ["asked-kinds"]),
             ("circuits", ["asked-circuits"]), ("generation", ["asked-generate"]),
             ("stepper", ["made"])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headscope")
    parser.add_argument("view_shot")
    parser.add_argument("sample")
    parser.add_argument("--approve", action="store_true")
    parser.add_argument("--shots", default="")
    asked = parser.parse_args()
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "approved")
    environment = dict(os.environ, QT_QPA_PLATFORM="offscreen", LC_ALL="C.UTF-8", TZ="UTC")
    with tempfile.TemporaryDirectory() as folder:
        shots = asked.shots or folder
        os.makedirs(shots, exist_ok=True)
        files = []
        for name, text in (("one", TEXT), ("other", OTHER)):
            files.append(os.path.join(folder, name + ".headscope.h5"))
            subprocess.run([asked.headscope, "analyze", asked.sample, "--text", text, "--record", "maps,states",
                            "-o", files[-1]], check=True, env=environment, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        faults = []
        pictured = [(view, files if view == "compare" else files[:1], arguments) for view, arguments in VIEWS]
        pictured += [(view, runs, []) for view, runs in RUN_VIEWS]
        for view, shown, arguments in pictured:
            for theme in ("light", "dark"):
                name = f"{view}-{theme}.png"
                approved, drawn = os.path.join(here, name), os.path.join(shots, name)
                command = [asked.view_shot, view, approved if asked.approve else drawn,
                           *shown, "--size", SIZE, *arguments]
                command += ["--dark"] if theme == "dark" else []
                command += [] if asked.approve else ["--compare", approved]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
                print(name, (done.stdout or done.stderr).strip())
                if done.returncode != 0:
                    faults.append(name)
        if not asked.approve:
            # The comparison itself: a light picture is not a dark one, a map no overview.
            for one, other in (("map-light.png", "map-dark.png"), ("map-light.png", "overview-light.png")):
                view = one.split("-")[0]
                done = subprocess.run([asked.view_shot, view, os.path.join(folder, "x.png"), files[0], "--size", SIZE,
                                       "--compare", os.path.join(here, other)], env=environment, timeout=120,
                                      capture_output=True)
                if done.returncode != 3:
                    faults.append(f"{one} passes for {other}")
        if faults:
            print("differ: " + ", ".join(faults) + (f"; see {shots}" if asked.shots else ""))
        return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
