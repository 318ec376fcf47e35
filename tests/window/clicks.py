#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""clicks.py PROGRAM [--shots FOLDER]: what a new user does, by mouse and keyboard on an X server of its own, with its clicks
counted. Four tasks: from the start page to the map of the strongest sink (5 clicks); zoom and export (4); a second model,
compared and exported (6); train, fork and timeline (7). A task that takes more fails. 77: there is no Xvfb or xdotool."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

from program import Failed, Hands, Program, Screen

MOST = {"find the strongest sink": 5, "zoom and export": 4, "a second model, compared": 6, "train, fork, timeline": 7}
STEPS = 60
JOB = """name = "short"
[model]
preset = "nano-100k"
[data]
text = ["{path}"]
sequence_length = 64
[training]
steps = {steps}
batch = 2
threads = 1
[evaluation]
every = 20
batches = 1
[snapshots]
every = 20
[probe]
every = 20
sequences = 1
length = 32
"""


class Counted(Hands):
    """Hands that count their clicks; the wheel, keys and drags are free."""

    def __init__(self, program, screen):
        super().__init__(program, screen)
        self.clicks = 0

    def click(self, name, at=None, twice=False):
        super().click(name, at, twice)
        self.clicks += 2 if twice else 1
        print(f"         click {self.clicks}: {name}", flush=True)


class Clicks:
    def __init__(self, program, screen, home, shots):
        self.executable, self.screen, self.home, self.shots = program, screen, home, shots
        self.window = Program(program, home, {"DISPLAY": screen.display, "QT_QPA_PLATFORM": "xcb"}, ["--threads", "2"])
        self.hands = Counted(self.window, screen)
        self.window.until_visible("main_window")
        Hands.take_focus(self.hands)
        self.hands.clicks = 0

    def picture(self, title):
        if self.shots:
            self.window.quiet()
            time.sleep(0.5)
            self.screen.picture(os.path.join(self.shots, title.replace(" ", "-").replace(",", "") + ".png"))

    def task(self, title, deed):
        self.hands.clicks = 0
        deed()
        self.picture(title)
        print(f"{self.hands.clicks} clicks of {MOST[title]} at most: {title}", flush=True)
        if self.hands.clicks > MOST[title]:
            raise Failed(f"expected at most {MOST[title]} clicks for: {title}; found {self.hands.clicks}")

    def until_analysed(self, studies):
        self.window.until_state(f"{studies} complete analyses", lambda state: (
            not state["running"] and len(state["studies"]) == studies and
            all(study["complete"] for study in state["studies"])), 180)
        self.window.quiet()

    def front(self, view):
        self.window.until_state(f"the view {view} in front", lambda state: state["front"] == view)
        self.window.quiet()

    def type_entry(self, entry):
        """In an open list. A list that receives the letters too slowly takes each as a new search: then again."""
        for _ in range(5):
            self.hands.type(entry)
            try:
                self.window.until_popup(entry, 2)
                return
            except Failed:
                pass
        raise Failed(f"expected {entry} in the list; found {self.window.state()['popup']}")

    def save(self, name):
        """From the export page on: its button, a name, Return."""
        path = os.path.join(self.home, name)
        self.window.until_visible("export_save")
        self.hands.click("export_save")
        self.window.until_visible("export_file")
        self.window.until("the name of the file to have the focus", lambda: self.window.find("fileNameEdit")["focus"])
        self.hands.key("Ctrl+a")
        self.hands.type(path)
        self.hands.key("Return")
        self.window.until(f"{path} to be written", lambda: os.path.exists(path) and
                          "Written" in self.window.find("export_problem")["text"])
        self.hands.key("Escape")
        self.window.until("the export page to close", lambda: not self.window.find("export_dialog")["visible"])

    def find_sink(self):
        self.window.until_visible("start_sample")
        self.hands.click("start_sample")
        self.window.until_state("a model", lambda state: state["models"] == 1)
        self.window.until_visible("text_run")
        self.hands.click("text_run")
        self.until_analysed(1)
        self.front("overview")
        self.hands.click("measure")
        self.window.until_popup()
        self.type_entry("Sink")
        self.hands.key("Return")
        self.window.until("the measure", lambda: self.window.find("measure")["text"] == "Sink")
        self.window.quiet()
        self.picture("the overview of sinks")
        # Layer 3, head 4 is the darkest cell of four layers and eight heads.
        x, y, width, height = self.window.ask({"cell": [3, 4]})["rect"]
        whole = self.window.find("heat_map")["rect"]
        self.hands.click("heat_map", ((x + width / 2) / whole[2], (y + height / 2) / whole[3]))
        self.window.until_state("the strongest sink", lambda state: (state["site"], state["head"]) == (3, 4))
        self.hands.click("group_map")
        self.front("map")

    def zoom_and_export(self):
        self.hands.wheel("map_plot", 4, (0.3, 0.6))
        self.window.quiet()
        self.hands.key("Ctrl+e")
        self.save("map.pdf")

    def second_model(self):
        other = os.path.join(self.home, "other")
        sample = self.window.session()["models"][0]
        subprocess.run([self.executable, "convert", sample, other, "--swap", "0=mlp"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.hands.key("Ctrl+o")
        self.window.until("the name of the folder to have the focus", lambda: self.window.find("fileNameEdit")["focus"])
        self.hands.type(other)
        self.hands.key("Return")
        self.window.until_state("two models", lambda state: state["models"] == 2)
        self.window.until("Run to have the focus", lambda: self.window.find("text_run")["focus"])
        self.hands.click("text_run")
        self.until_analysed(2)
        self.hands.click("group_compare")
        self.front("compare")
        self.window.until("the other analysis", lambda: self.window.find("compare_study")["text"] not in (
            "", "The same analysis"))
        self.window.quiet()
        self.hands.key("Ctrl+e")
        self.save("compare.pdf")

    def train_fork_timeline(self):
        corpus = os.path.join(self.home, "corpus.txt")
        with open(corpus, "w", encoding="ascii") as file:
            file.write("in the beginning god created the heaven and the earth " * 3000)
        job = os.path.join(self.home, "short.toml")
        with open(job, "w", encoding="utf-8") as file:
            file.write(JOB.format(path=corpus, steps=STEPS))
        self.hands.act("train_read_job")
        self.window.until("the name of the file to have the focus", lambda: self.window.find("fileNameEdit")["focus"])
        self.hands.type(job)
        self.hands.key("Return")
        self.front("train")
        self.window.until("the job", lambda: self.window.find("job_training_steps")["text"] == str(STEPS))
        self.hands.click("job_start")
        run = self.window.until_finished(1)["runs"][0]
        self.front("run")
        self.hands.click("run_fork")
        self.window.until_popup()
        self.hands.key("Down")
        self.window.until_popup(f"step {STEPS}")
        self.hands.key("Return")
        self.front("train")
        self.hands.click("job_start")
        fork = self.window.until_finished(2)["runs"][1]
        self.front("run")
        if (run["step"], fork["step"]) != (STEPS, 2 * STEPS):
            raise Failed(f"expected a fork from the end of its run to train as long again; found {run} and {fork}")
        self.hands.click("tab_timeline")
        self.front("timeline")
        if run["probes"] < 2:
            raise Failed(f"expected probes for the timeline; found {run}")

    def whole(self):
        self.task("find the strongest sink", self.find_sink)
        self.task("zoom and export", self.zoom_and_export)
        self.task("a second model, compared", self.second_model)
        self.task("train, fork, timeline", self.train_fork_timeline)
        if problems := self.window.state()["problems"]:
            raise Failed(f"expected no problem in the log; found {problems}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--shots", help="folder for a picture of each task's end")
    options = parser.parse_args()
    for tool in ("Xvfb", "xdotool"):
        if not shutil.which(tool):
            print(f"clicks.py: [{tool}] expected the packages of installer/packages.txt; found none")
            return 77
    if options.shots:
        os.makedirs(options.shots, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="headscope-clicks-") as home:
        screen = Screen("1280x800")
        clicks = None
        try:
            clicks = Clicks(os.path.abspath(options.program), screen, home, options.shots)
            clicks.whole()
        except Failed as failure:
            print(f"clicks.py: {failure}")
            if clicks and clicks.shots:
                screen.picture(os.path.join(clicks.shots, "failed.png"))
            return 1
        finally:
            for window in Program.started:
                if window.process.poll() is None:
                    window.kill()
            screen.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
