#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""many.py PROGRAM: a hundred analyses at once, a bad file among them; none is listed twice, and the next window has them
all again. How long the window stood is told, not judged: that is the monkey's."""
import os
import shutil
import subprocess
import sys

from program import Failed, Program, Sent, exit_status_of

FILES = 100

def start(program, home, paths=()):
    window = Program(program, home, {"QT_QPA_PLATFORM": "offscreen"}, paths)
    window.until_visible("main_window")
    return window, Sent(window)


def make_files(program, home):
    sample = os.path.join(os.path.dirname(__file__), "..", "..", "resources", "samples", "llama-kjv-shakespeare")
    paths = [os.path.join(home, f"{number:03}.headscope.h5") for number in range(FILES)]
    subprocess.run([program, "analyze", sample, "--text", "In the beginning God created the heaven and the earth.",
                    "-o", paths[0]], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for path in paths[1:]:
        shutil.copyfile(paths[0], path)
    return paths


def names(state):
    return [study["path"] for study in state["studies"]]


def shown(state):
    return next(study["path"] for study in state["studies"] if study["id"] == state["study"])


def tell(program, home):
    paths = make_files(program, home)
    bad, link = os.path.join(home, "bad.headscope.h5"), os.path.join(home, "link.headscope.h5")
    with open(bad, "w", encoding="utf-8") as file:
        file.write("no analysis")
    os.symlink(paths[3], link)
    window, hands = start(program, home, [*paths[:50], bad, link, *paths[50:], paths[0]])
    state = window.until_state(f"{FILES} analyses", lambda state: len(state["studies"]) == FILES)
    window.until("the bad file in the log", lambda: bad in window.find("log")["text"])
    window.quiet()
    # Asked for again, it comes to the front.
    for path, same in ((link, paths[3]), (paths[7], paths[7]), (paths[3], paths[3])):
        hands.drop(path, "project_tree")
        window.until_state(f"{path} to be selected", lambda now: shown(now) == same)
    state = window.state()
    # In the order given, but for files at which a busy machine had to look longer.
    if sorted(names(state)) != sorted(paths):
        raise Failed(f"expected {FILES} analyses, none twice; found {names(state)}")
    window.until("all of them in the session", lambda: len(window.session().get("analyses", [])) == FILES)
    hands.act("quit")
    window.ended()
    window, hands = start(program, home)
    window.until_state("all of them to be back", lambda again: sorted(names(again)) == sorted(paths))
    hands.act("quit")
    window.ended()
    print(f"{FILES} analyses; the window stood for {1000 * state['longest_own_stall']:.0f} ms at most")


if __name__ == "__main__":
    sys.exit(exit_status_of("many", tell))
