#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""story.py PROGRAM [--shots FOLDER]: a day with the window, by mouse and keyboard on an X server of its own.

Open the sample, run it, find a head, look at its map, zoom, choose a cell, see it on the text, run another text, look
at every view, export, quit; the session comes back; kill -9, and it comes back again. 77: there is no Xvfb or xdotool.
"""
import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from program import Failed, Hands, Program, Screen

TEXT = "And God said, Let there be light: and there was light."


class Story:
    def __init__(self, program, screen, home, shots):
        self.executable, self.screen, self.home, self.shots = program, screen, home, shots
        self.count = 0
        self.window = self.hands = None

    def start(self):
        self.window = Program(self.executable, self.home, {"DISPLAY": self.screen.display, "QT_QPA_PLATFORM": "xcb"})
        self.hands = Hands(self.window, self.screen)
        self.window.until_visible("main_window")
        self.hands.take_focus()

    def step(self, title, deed):
        began = time.monotonic()
        try:
            deed()
        except Failed as failure:
            self.picture("failed")
            raise Failed(f"{title}: {failure}") from None
        self.picture(title)
        print(f"{time.monotonic() - began:6.1f} s  {title}", flush=True)

    def picture(self, title):
        self.count += 1
        if self.shots:
            words = "".join(letter if letter.isalnum() else "-" for letter in title.lower())
            self.screen.picture(os.path.join(self.shots, f"{self.count:02d}-{words[:40]}.png"))

    def show(self, view):
        self.hands.act("view_" + view)
        self.window.until_state(f"the view {view} in front", lambda state: state["front"] == view)
        self.window.quiet()

    def changed_view(self, view, deed, what):
        """Does something after which the view's own state is another one."""
        before = self.window.view_state(view)
        deed()
        self.window.until(what, lambda: self.window.view_state(view) not in (before, None))

    def choose_next(self, combo, steps=1):
        """Another entry of a combo box, by its list and the keyboard."""
        before = self.window.find(combo)["text"]
        self.hands.click(combo)
        time.sleep(0.4)
        for _ in range(steps):
            self.hands.key("Down")
        self.hands.key("Return")
        self.window.until(f"another entry in {combo}", lambda: self.window.find(combo)["text"] != before)

    # The steps.

    def open_sample(self):
        self.window.until_visible("start_page")
        self.hands.click("start_sample")
        self.window.until_state("a model", lambda state: state["models"] == 1)

    def run(self, studies):
        self.window.until_visible("text_run")
        self.hands.click("text_run")
        self.window.until_state(f"{studies} complete analyses", lambda state: (
            not state["running"] and len(state["studies"]) == studies and
            all(study["complete"] for study in state["studies"])), 180)
        self.window.quiet()

    def choose_head(self):
        self.hands.click("heat_map", (0.62, 0.55))
        self.window.until_state("another layer and head", lambda state: state["site"] > 0 and state["head"] > 0)

    def change_indicator(self):
        self.changed_view("overview", lambda: self.choose_next("measure", 2), "the indicator in the session")

    def filter_heads(self):
        before = self.window.find("count")["text"]
        self.hands.click("filter")
        self.hands.type("entropy > 2600 and layer > 0")
        self.window.until("fewer heads in the table", lambda: self.window.find("count")["text"] != before)

    def open_map(self):
        self.hands.click("open_map")
        self.window.until_state("the map in front", lambda state: state["front"] == "map")
        self.window.quiet()

    def zoom(self):
        self.changed_view("map", lambda: self.hands.wheel("map_plot", 4, (0.3, 0.6)), "the zoom in the session")

    def pan(self):
        self.changed_view("map", lambda: self.hands.drag("map_plot", (0.3, 0.6), (0.36, 0.5)), "the place in the session")

    def choose_cell(self):
        self.hands.click("map_plot", (0.3, 0.65))
        self.window.until_state("a query and a key", lambda s: s["query"] is not None and s["key"] is not None)

    def arrows(self):
        before = self.window.state()
        self.hands.key("Alt+Up" if before["site"] > 0 else "Alt+Down")
        self.window.until_state("another layer", lambda state: state["site"] != before["site"])
        self.hands.key("Down")
        self.window.until_state("the arrow to move something", lambda state: any(
            state[name] != before[name] for name in ("head", "query", "key")) or state["site"] == before["site"])

    def on_text(self):
        self.show("on_text")
        before = self.window.state()["query"]
        for down in (0.1, 0.16, 0.22, 0.3, 0.4, 0.5):
            for across in (0.06, 0.12):
                self.hands.click("text", (across, down))
                time.sleep(0.3)
                if self.window.state()["query"] != before:
                    return
        raise Failed("expected a click on the text to choose another token")

    def second_text(self):
        self.hands.click("text_remove")
        self.hands.click("text_edit")
        self.hands.type(TEXT)
        self.window.until("the typed text", lambda: self.window.find("text_edit")["text"] == TEXT)
        self.window.until("its tokens", lambda: "1" in self.window.find("text_sequence")["text"])
        self.run(2)

    def every_view(self):
        for view in self.window.views():
            self.show(view)
            self.picture("view " + view)

    def compare(self):
        if "compare" not in self.window.views():
            raise Failed("expected a view to compare with")
        self.show("compare")
        self.window.until("the other analysis on the right",
                          lambda: self.window.find("compare_study")["text"] not in ("", "The same analysis"))
        self.window.quiet()
        self.picture("compare maps")
        for page in ("compare_heads", "compare_text", "compare_maps"):
            self.hands.click(page)
            time.sleep(0.5)
            self.window.quiet()
            self.picture(page)

    def export(self):
        self.show("overview")
        self.hands.act("export")
        self.window.until_visible("export_dialog")
        self.window.until_visible("export_save")
        paths = {}
        for ending in ("pdf", "svg", "csv"):
            paths[ending] = os.path.join(self.home, f"figure.{ending}")
            self.hands.click("export_save")
            self.window.until_visible("export_file")
            self.window.until("the name of the file to have the focus",
                              lambda: self.window.find("fileNameEdit")["focus"])
            self.hands.key("Ctrl+a")
            self.hands.type(paths[ending])
            self.hands.key("Return")
            self.window.until(f"{paths[ending]} to be written", lambda: "Written" in self.window.find("export_problem")["text"]
                              and os.path.exists(paths[ending]))
        if shutil.which("pdftotext"):
            text = subprocess.run(["pdftotext", paths["pdf"], "-"], capture_output=True, text=True, check=True).stdout
            if "layer" not in text.lower() or "head" not in text.lower():
                raise Failed(f"expected the words layer and head in the PDF's text; found {text[:200]!r}")
        # The command that is shown makes the same files.
        words = shlex.split(self.window.find("export_command")["text"])
        for ending in ("svg", "csv"):
            made = os.path.join(self.home, f"command.{ending}")
            command = [self.executable, *words[1:]]
            command[command.index("-o") + 1] = made
            run = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if run.returncode:
                raise Failed(f"expected {shlex.join(command)} to pass; found {run.stderr.strip()}")
            with open(made, "rb") as ours, open(paths[ending], "rb") as theirs:
                if ours.read() != theirs.read():
                    raise Failed(f"expected the same bytes from the window and from {shlex.join(command)}")

    def close_export(self):
        self.hands.key("Escape")
        self.window.until("the export page to close", lambda: not self.window.find("export_dialog")["visible"])

    def dark(self):
        self.hands.act("theme_dark")
        self.window.until_state("dark colours", lambda state: state["dark"])
        self.window.quiet()

    def remember(self):
        """What has to come back."""
        state = self.window.state()
        return {name: state[name] for name in ("sequence", "site", "head", "query", "key", "front", "dark", "models")} | {
            "studies": sorted(study["path"] for study in state["studies"]), "shown": self.shown_path()}

    def shown_path(self):
        state = self.window.state()
        return next(study["path"] for study in state["studies"] if study["id"] == state["study"])

    def quit(self):
        self.hands.act("quit")
        status = self.window.ended()
        if status != 0:
            raise Failed(f"expected status 0 at the end; found {status}")
        if not self.window.session().get("closed"):
            raise Failed("expected a session that says that the window was closed")

    def expect_back(self, wanted):
        self.window.until_state("the analyses of the session", lambda s: len(s["studies"]) == len(wanted["studies"]))
        self.window.quiet()
        self.window.until(f"{wanted} to come back; found {self.remember()}", lambda: self.remember() == wanted, 20)

    def killed(self):
        time.sleep(2.5)  # the session is saved a moment after a change
        self.window.kill()
        self.start()
        self.window.until_visible("start_session")

    def whole(self):
        self.start()
        self.step("start page", lambda: self.window.until_visible("start_page"))
        self.step("open the sample", self.open_sample)
        self.step("run", lambda: self.run(1))
        self.step("choose a head", self.choose_head)
        self.step("change the indicator", self.change_indicator)
        self.step("filter heads", self.filter_heads)
        self.step("open the map", self.open_map)
        self.step("zoom with the wheel", self.zoom)
        self.step("pan", self.pan)
        self.step("choose a cell", self.choose_cell)
        self.step("arrows", self.arrows)
        self.step("on text", self.on_text)
        self.step("another text", self.second_text)
        self.step("compare", self.compare)
        self.step("every view", self.every_view)
        self.step("export", self.export)
        self.step("close the export page", self.close_export)
        self.step("dark", self.dark)
        if problems := self.window.state()["problems"]:
            raise Failed(f"expected no problem in the log; found {problems}")
        print("         " + self.window.stalls())
        wanted = self.remember()
        self.step("quit", self.quit)
        self.start()
        self.step("the session is back", lambda: self.expect_back(wanted))
        self.step("killed, and offered back", self.killed)
        self.step("brought back", lambda: (self.hands.click("start_session"), self.expect_back(wanted)))
        print("         " + self.window.stalls())
        self.step("quit again", self.quit)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--shots", help="folder for a picture of each step")
    options = parser.parse_args()
    for tool in ("Xvfb", "xdotool"):
        if not shutil.which(tool):
            print(f"story.py: [{tool}] expected the packages of installer/packages.txt; found none")
            return 77
    if options.shots:
        os.makedirs(options.shots, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="headscope-story-") as home:
        screen = Screen()
        story = Story(os.path.abspath(options.program), screen, home, options.shots)
        try:
            story.whole()
        except Failed as failure:
            print(f"story.py: {failure}")
            return 1
        finally:
            if story.window and story.window.process.poll() is None:
                story.window.kill()
            screen.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
