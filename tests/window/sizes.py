#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""sizes.py PROGRAM [--shots FOLDER] [--themes light,dark] [--sizes 900x600,...]: every view, page, panel and dialog of the
window at 900 x 600, 1280 x 750 and 1600 x 1000, light and dark, without a screen. Nothing is elided, cut off or in need of a
horizontal scroll bar, the window never grows by itself, and the wheel changes no control. With --shots a picture of each:
look at them."""
import argparse
import os
import sys

from evaluations import trained
from program import Failed, Program, Sent, exit_status

SIZES = ("900x600", "1280x750", "1600x1000")
DIALOGS = (("export", "export_dialog"), ("evaluate_models", "evaluate_dialog"), ("convert", "convert_dialog"),
           ("swap_mixers", "swap_dialog"), ("reproduce", "reproduce_dialog"), ("guide", "guide_window"),
           ("keys", "shortcuts"), ("commands", "palette_field"), ("rename_analysis", "rename_dialog"))


class Look:
    def __init__(self, program, home, shots):
        self.window = Program(program, home, {"QT_QPA_PLATFORM": "offscreen"}, ["--threads", "2"])
        self.hands = Sent(self.window)
        self.shots = shots
        self.size, self.theme = None, "light"
        self.faults, self.count = [], 0

    def look(self, name):
        """At the window as it is now."""
        self.window.quiet()
        self.count += 1
        size = self.window.ask({"find": "main_window"})["rect"][2:]
        if size != self.size:
            self.faults.append(f"{name}: the window has {size} in place of {self.size}")
        for fault in self.window.faults(self.size):
            self.faults.append(f"{name}, {self.size[0]} x {self.size[1]}: {fault}")
        self.keep(name)

    def keep(self, name):
        if self.shots:
            folder = os.path.join(self.shots, f"{self.size[0]}x{self.size[1]}-{self.theme}")
            os.makedirs(folder, exist_ok=True)
            self.window.shot(os.path.join(folder, f"{name}.png"))

    def show(self, view):
        self.hands.act("view_" + view)
        self.window.until_state(f"the view {view} in front", lambda state: state["front"] == view)

    def set(self, size, theme):
        self.theme = theme
        self.hands.act("theme_" + theme)
        width, height = map(int, size.split("x"))
        found = self.window.resize(width, height)
        self.size = [width, height]
        if found != self.size:
            self.faults.append(f"the window cannot be {size}: it is {found}")

    def every_view(self):
        views = self.window.views()
        for view in views:
            self.show(view)
            self.look(view)
        # Back to a page with fewer needs: it must be able to shrink again.
        self.show("overview")

    def side_by_side(self):
        self.show("map")
        self.hands.act("side_by_side")
        if self.window.tabs()[1] != ["map", "on_text"]:
            raise Failed(f"expected the map and the text; found {self.window.tabs()}")
        self.look("side_by_side")
        self.hands.act("side_by_side")

    def start_page(self):
        self.hands.act("start_page")
        self.window.until_visible("start_page")
        self.look("start_page")

    def dialogs(self):
        self.show("overview")
        for action, dialog in DIALOGS:
            self.hands.act(action)
            self.window.until_visible(dialog)
            self.window.quiet()
            for fault in self.window.faults(self.size, dialog):
                self.faults.append(f"{dialog}: {fault}")
            self.count += 1
            self.hands.key("Escape")
            self.window.until(f"{dialog} to close", lambda: not self.window.find(dialog)["visible"])

    def with_log(self):
        """An error opens the log: it stays in the window."""
        self.show("train")
        self.hands.drop(os.path.join(self.window.home, "no-such-file.headscope.h5"), "main_window")
        self.window.until_visible("dock_log")
        self.look("train_with_log")
        bottom = sum(self.window.find("dock_log")["rect"][1::2])
        window = self.window.find("main_window")["rect"]
        if bottom > window[1] + window[3]:
            self.faults.append(f"the log ends at {bottom}, below the window's edge")
        self.hands.act("panel_log")

    def wheel(self):
        found = self.window.ask({"wheel": True})
        self.faults += found["faults"]
        if found["walked"] < 120:
            self.faults.append(f"expected at least 120 controls to turn the wheel over; found {found['walked']}")
        return found["walked"]


def tell(program, home, shots, themes, sizes):
    run = trained(program, home)
    look = Look(program, home, shots)
    window, hands = look.window, look.hands
    window.until_visible("main_window")
    look.set(sizes[0], themes[0])
    look.look("start_page_first")
    hands.click("start_sample")
    window.until_state("a model", lambda state: state["models"] == 1)
    hands.click("text_run")
    window.until_state("a complete analysis", lambda state: (
        not state["running"] and state["studies"] and state["studies"][0]["complete"]), 180)
    hands.drop(run, "main_window")
    window.until_state("a run", lambda state: len(state["runs"]) == 1 and state["runs"][0]["snapshots"] > 0)
    hands.act("evaluate_runs")
    window.until_state("its evaluation", lambda state: len(state["evaluations"]) == 1)
    for theme in themes:
        for size in sizes:
            look.set(size, theme)
            look.every_view()
            look.side_by_side()
            look.start_page()
    look.set(sizes[0], themes[0])
    look.dialogs()
    look.with_log()
    walked = look.wheel()
    for fault in look.faults:
        print(fault)
    if look.faults:
        raise Failed(f"expected everything to fit; found {len(look.faults)} faults")
    hands.act("quit")
    window.ended()
    print(f"{look.count} looks, {walked} controls")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--shots", help="folder for the pictures")
    parser.add_argument("--themes", default="light,dark")
    parser.add_argument("--sizes", default=",".join(SIZES))
    asked = parser.parse_args()
    return exit_status("sizes", lambda home: tell(os.path.abspath(asked.program), home, asked.shots,
                                                  asked.themes.split(","), asked.sizes.split(",")))


if __name__ == "__main__":
    sys.exit(main())
