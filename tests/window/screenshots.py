#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""screenshots.py PROGRAM [FOLDER] [--training]: the pictures of README.md and docs/user-guide.md, taken from the
running program: the tour of the user guide, by mouse and keyboard under Xvfb, at 1280 x 800. FOLDER: docs/images;
--training: only the start page and those of training. Wants ImageMagick's `convert` for a palette of 200 colors, which
keeps files small."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

from program import Failed, Hands, Program, Screen

SIZE = (1280, 800)


class Tour:
    def __init__(self, program, screen, home, folder):
        self.window = Program(program, home, {"DISPLAY": screen.display, "QT_QPA_PLATFORM": "xcb"})
        self.hands = Hands(self.window, screen)
        self.screen, self.folder = screen, folder

    def keep(self, name, settle=1.0, of="main_window"):
        """A picture of the window `of`: without a window manager, windows over each other have no frames."""
        self.window.quiet()
        time.sleep(settle)
        path = os.path.join(self.folder, f"window-{name}.png")
        raw = path + ".raw.png"
        self.screen.picture(raw)
        left, top, width, height = self.window.find(of)["rect"]
        subprocess.run(["convert", raw, "-crop", f"{width}x{height}+{left}+{top}", "+repage", "-strip", "+dither", "-colors", "200", "-define", "png:compression-level=9",
                        "PNG8:" + path], check=True)
        os.remove(raw)
        print(f"{os.path.getsize(path) / 1000:6.0f} kB  {path}", flush=True)

    def show(self, view):
        self.hands.act("view_" + view)
        self.window.until_state(f"the view {view} in front", lambda state: state["front"] == view)
        self.window.quiet()

    def run(self, count):
        self.hands.click("text_run")
        self.window.until_state(f"{count} complete analyses", lambda state: (
            not state["running"] and len(state["studies"]) == count and
            all(study["complete"] for study in state["studies"])), 180)
        self.window.quiet()

    def begin(self):
        window, hands = self.window, self.hands
        window.until_visible("start_page")
        number = hands.xdotool("search", "--sync", "--onlyvisible", "--name", "Headscope").split()[0]
        hands.xdotool("windowmove", number, 0, 0, "windowsize", number, *SIZE)
        window.until("a window of 1280 x 800", lambda: window.find("main_window")["rect"][2:] == list(SIZE))
        hands.xdotool("windowfocus", number)
        hands.take_focus()
        self.keep("start")

    def whole(self):
        window, hands = self.window, self.hands
        hands.click("start_sample")
        window.until_state("a model", lambda state: state["models"] == 1)
        self.run(1)
        # Which heads are sinks?
        hands.choose("measure", "Sink")
        hands.click("filter")
        hands.type("sink > 0.03")
        hands.key("Return")
        for _ in range(3):
            hands.act("next_layer")
        for _ in range(4):
            hands.act("next_head")
        window.until_state("layer 3, head 4", lambda state: (state["site"], state["head"]) == (3, 4))
        self.keep("overview")
        # What does the strongest one look at?
        self.show("map")
        hands.click("map_plot", (0.18, 0.75))
        window.until_state("a cell", lambda state: state["query"] is not None)
        self.keep("map")
        self.show("logits")
        hands.choose("by", "Heads of the layer")
        self.keep("logits", 2.0)
        # Is it the token or the place?
        hands.choose("text_first", "no")
        window.until("a preview without the token", lambda: "808" in window.find("text_sequence")["text"])
        self.run(2)
        self.show("compare")
        hands.click("compare_study")
        hands.key("Down")
        hands.key("Return")
        self.keep("compare", 2.0)
        self.show("on_text")
        hands.choose("colouring", "Attention received")
        self.keep("text")
        self.show("overview")  # every head as it is, on the picture of all
        hands.click("filter")
        hands.key("Ctrl+A")
        hands.key("Delete")
        hands.act("theme_dark")
        window.until_state("dark colors", lambda state: state["dark"])
        self.show("all_heads")
        self.keep("dark", 2.0)
        hands.act("theme_light")
        self.show("overview")
        hands.act("export")
        window.until_visible("export_save")
        hands.click("export_preset")  # which is "as below" again as soon as it has set width and height
        hands.type("One")
        hands.key("Return")
        window.until("the preview", lambda: "Drawing" not in window.find("export_preview")["text"])
        self.keep("export", 3.0, "export_dialog")
        hands.key("Escape")
        self.window.until("the export page to close", lambda: (
            not self.window.find("export_save").get("visible", False)))
        hands.take_focus()

    # The job of the tour: a hybrid that learns for 300 steps.
    JOB = """name = "hybrid, even layers standard"

[model]
preset = "tiny-1m"
mixer = "approximate"
layout = "even"

[data]
corpus = "kjv"
tokenizer = "bytes"
sequence_length = 128

[training]
steps = 300
batch = 8

[optimizer]
learning_rate = 1e-3     # small models take more

[schedule]
warmup_steps = 20

[evaluation]
every = 25
batches = 4

[snapshots]
every = 50

[probe]
every = 5

[sample]
every = 50
prompt = "And God said"
"""

    def type_job(self):
        self.hands.act("train_new")
        self.window.until_visible("job_text")
        self.hands.click("job_text")
        self.hands.key("Ctrl+A")
        for line in self.JOB.splitlines():
            if line:
                self.hands.type(line)
            self.hands.key("Return")
        self.window.until("the form to follow", lambda: (
            self.window.find("job_training_steps")["text"] == "300"))
        self.hands.click("job_find")

    def training(self):
        """Train and watch: the job, its layers, the run while it goes on, its timeline, costs. Patient: the machine may
        do other things at the same time."""
        window, hands = self.window, self.hands
        self.type_job()
        hands.click("job_measure")
        window.until("the job's speed", lambda: window.find("fact_speed_value")["text"] not in ("", "–"), 200)
        self.keep("train")
        self.show("layout")
        self.keep("layers")
        self.show("train")
        hands.click("job_start")
        window.until_state("a run", lambda state: state["runs"] and state["runs"][0]["status"] == "running")
        window.until_state("two thirds of it", lambda state: state["runs"][0]["step"] >= 200, 900)
        self.show("run")
        self.keep("run")
        window.until_state("its end", lambda state: state["runs"][0]["status"] == "finished", 900)
        self.show("timeline")
        self.keep("timeline", 2.0)
        self.show("cost")
        hands.click("cost_measure")
        window.until("costs that were measured", lambda: "Measured here" in window.find("cost_words")["text"], 400)
        self.keep("cost")


def main():
    plain = [word for word in sys.argv[1:] if word != "--training"]
    folder = os.path.abspath(plain[1]) if len(plain) > 1 else os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "../../docs/images")
    for tool in ("Xvfb", "xdotool", "import", "convert"):
        if not shutil.which(tool):
            print(f"screenshots.py: expected {tool} (packages xvfb, xdotool, imagemagick); found none")
            return 77
    with tempfile.TemporaryDirectory(prefix="headscope-tour-") as home:
        screen = Screen("1280x800", managed=False)
        tour = None
        try:
            tour = Tour(os.path.abspath(plain[0]), screen, home, folder)
            tour.begin()
            if "--training" not in sys.argv:
                tour.whole()
            tour.training()
        except Failed as failure:
            screen.picture(os.path.join(tempfile.gettempdir(), "screenshots-failed.png"))
            print(f"screenshots.py: {failure}")
            return 1
        finally:
            if tour:
                tour.window.kill()
            screen.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
