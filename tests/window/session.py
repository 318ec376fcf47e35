#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""session.py PROGRAM: what a window had open, and what was typed and noted in it, is there again after any end: closed,
killed, killed and not waited for, killed once more while it is brought back, with an offer that was never answered, on a
full disk, beside a disk that does not answer."""
import json
import os
import shutil
import sys
import time

from program import Failed, Program, Sent, exit_status
from stuck_disk import stuck_disk

started = []
TEXT = "A text that took an hour to write."


def begin(program, home, arguments=()):
    window = Program(program, home, {"QT_QPA_PLATFORM": "offscreen"}, arguments)
    started.append(window)
    window.until_visible("main_window")
    return window


def start(program, home, arguments=()):
    window = begin(program, home, arguments)
    # The file is there, and is this window's, when the one before was read.
    window.until("the session to be read", lambda: window.session().get("process") == window.process.pid)
    return window, Sent(window)


def folder_of(home):
    return os.path.join(home, "data", "headscope")


def expect(what, holds):
    if not holds:
        raise Failed(f"expected {what}")


def offered(window):
    return window.find("start_session")["visible"]


def until_saved(window, what, holds):
    window.until(what + " to be saved", lambda: holds(window.session()))


def texts(session):
    return [source["value"] for source in session.get("text", {}).get("sources", [])]


def marks(session):
    return [sets["marked"] for sets in session.get("head_sets", [])]


def lost_is_gone(window):
    window.until("the offer's file to go", lambda: not os.path.exists(
        os.path.join(folder_of(window.home), "session.lost.json")))


def until_back(window, models, studies):
    window.until_state(f"{models} models and {studies} analyses", lambda state: (
        state["models"] == models and len(state["studies"]) == studies))


def type_text(window, hands):
    hands.click("text_edit")
    hands.type(TEXT)
    until_saved(window, "the text", lambda session: TEXT in texts(session))


def tell_open_things(program, home):
    window, hands = start(program, home)
    expect("no offer at the first start", not offered(window))
    hands.click("start_sample", twice=True)  # is opened once
    window.until_state("a model", lambda state: state["models"] == 1)
    hands.click("text_run")
    window.until_state("a complete analysis", lambda state: (
        not state["running"] and state["studies"] and state["studies"][0]["complete"]))
    hands.act("view_overview")
    window.quiet()
    hands.click("table", (0.3, 0.3))
    hands.key("Space")
    until_saved(window, "the mark", lambda session: session["front"] == "overview" and marks(session) and
                len(session["analyses"]) == 1 and session["analyses"][0].endswith(".h5"))
    marked = marks(window.session())

    # Another window at the same time keeps no session and changes none.
    second = begin(program, home)
    time.sleep(2.5)
    expect("no offer beside a window that lives", not offered(second))
    expect("the session to stay that of the first window", window.session()["process"] == window.process.pid)
    second.kill()

    # Killed, and no process waits for it: its number still exists, the window does not.
    os.kill(window.process.pid, 9)
    corpse, (window, hands) = window, start(program, home)
    expect("an offer after a window was killed", offered(window))
    corpse.kill()
    expect("marks to be kept without an answer", marks(window.session()) == marked)
    expect("nothing to be open before the answer", window.state()["models"] == 0)

    # Killed while it is brought back, sooner and later.
    for seconds in (0, 0.1, 0.3, 0.8, 1.6):
        hands.click("start_session")
        time.sleep(seconds)
        window.kill()
        window, hands = start(program, home)
        expect(f"an offer after a kill {seconds} s into bringing back", offered(window))
    # Closed while it is brought back: it was answered.
    hands.click("start_session")
    window.ask({"action": "quit"})
    window.ended()
    window, hands = start(program, home)
    until_back(window, 1, 1)
    window.until_state("the view in front", lambda state: state["front"] == "overview")
    expect("no offer after the answer", not offered(window))

    # An offer that is not answered, and a poorer session that dies over it.
    until_saved(window, "the session", lambda session: session["models"] and session["analyses"])
    window.kill()
    window, hands = start(program, home)
    type_text(window, hands)
    window.kill()
    window, hands = start(program, home)
    expect("an offer of both sessions", offered(window))
    hands.click("start_session")
    until_back(window, 1, 1)
    until_saved(window, "both", lambda session: TEXT in texts(session) and len(session["models"]) == 1 and
                len(session["analyses"]) == 1)
    lost_is_gone(window)

    # Declining removes everything but the notes on heads.
    window.kill()
    window, hands = start(program, home)
    hands.click("start_no_session")
    lost_is_gone(window)
    expect("marks to be kept by a refusal", marks(window.session()) == marked)
    hands.act("quit")
    window.ended()
    window, hands = start(program, home)
    until_saved(window, "the marks, with nothing open,", lambda session: marks(session) == marked)
    expect("nothing to be brought back", window.state()["models"] == 0 and not offered(window))
    hands.act("quit")
    window.ended()


def tell_text(program, home):
    window, hands = start(program, home)
    type_text(window, hands)
    window.kill()
    window, hands = start(program, home)
    expect("an offer of a text alone", offered(window))
    hands.click("start_session")
    window.until("the text", lambda: window.find("text_edit")["text"] == TEXT)
    lost_is_gone(window)
    hands.act("panel_log")
    until_saved(window, "the text", lambda session: TEXT in texts(session))
    hands.act("quit")
    window.ended()
    window, hands = start(program, home)
    window.until("the text after an ordinary end", lambda: window.find("text_edit")["text"] == TEXT)
    expect("the log to be open as it was", window.find("dock_log")["visible"])
    expect("no offer after an ordinary end", not offered(window))
    # A file that this version cannot read is put aside, not written over.
    hands.act("quit")
    window.ended()
    path = os.path.join(folder_of(home), "session.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"version": 2, "what": "comes later"}, file)
    window, hands = start(program, home)
    with open(os.path.join(folder_of(home), "session.unread.json"), encoding="utf-8") as file:
        expect("the other version's file as it was", json.load(file)["what"] == "comes later")
    hands.act("quit")
    window.ended()


def tell_full_disk(program, home):
    """A folder has the name of the file: nothing can be written, as on a full disk."""
    window, hands = start(program, home)
    type_text(window, hands)
    died = window.process.pid
    window.kill()
    path, lost = (os.path.join(folder_of(home), name) for name in ("session.json", "session.lost.json"))
    os.mkdir(lost)
    window = begin(program, home)
    hands = Sent(window)
    window.until_visible("start_session")
    window.until_state("a word about the disk", lambda state: state["problems"] == 1)
    expect("the session that died to stay as it was", window.session()["process"] == died)
    os.rmdir(lost)
    until_saved(window, "the session", lambda session: session["process"] == window.process.pid)
    expect("the offer to be on the disk", os.path.isfile(lost))
    hands.click("start_session")
    window.until("the text", lambda: window.find("text_edit")["text"] == TEXT)
    lost_is_gone(window)
    # A later failure is reported once, too, and the session saved when it can be.
    os.remove(path)
    os.mkdir(path)
    hands.click("text_edit")
    hands.type(" And more.")
    window.until_state("a second word about the disk", lambda state: state["problems"] == 2)
    time.sleep(7)
    expect("no further word about it", window.state()["problems"] == 2)
    os.rmdir(path)
    until_saved(window, "the longer text", lambda session: any("And more." in text for text in texts(session)))
    hands.act("quit")
    window.ended()


def tell_stuck_disk(program, home):
    """What lies on a disk that does not answer holds up neither the rest, nor the session, nor the end."""
    window, hands = start(program, home)
    hands.click("start_sample")
    until_saved(window, "the model", lambda session: len(session["models"]) == 1)
    hands.act("quit")
    window.ended()
    path, recent = (os.path.join(folder_of(home), name) for name in ("session.json", "recent.json"))
    given = os.path.join(home, "given")
    with stuck_disk() as disk:
        if disk is None:
            print("a disk that does not answer cannot be had here: that is not tested")
            return
        with open(path, encoding="utf-8") as file:
            session = json.load(file)
        sample = session["models"][0]
        shutil.copytree(sample, given)
        wanted = [os.path.join(disk, "model"), sample]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**session, "models": wanted, "text": {}}, file)  # the sample has a text of its own
        with open(recent, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "items": [{"path": os.path.join(disk, "old"), "kind": "model", "name": "old"}]},
                      file)
        window, hands = start(program, home, [os.path.join(disk, "asked"), given])
        window.until("the recent items, and which of them is not known", lambda: (
            f"its disk does not answer: {os.path.join(disk, 'old')}" in window.find("start_recent")["text"]))
        window.until_state("the given checkpoint", lambda state: state["models"] == 1)
        type_text(window, hands)
        until_saved(window, "the given checkpoint as the chosen one, and what did not come", lambda session: (
            session["chosen_model"] == given and sorted(session["models"]) == sorted([given, *wanted])))
        hands.act("quit")
        expect("status 0 at the end", window.ended() == 0)
        expect("the session of a closed window", window.session()["closed"] and TEXT in texts(window.session()))
    window, hands = start(program, home)
    window.until_state("what is there", lambda state: state["models"] == 2 and state["problems"] == 1)
    hands.act("quit")
    window.ended()


def work(home):
    program = os.path.abspath(sys.argv[1])
    try:
        for tell in (tell_open_things, tell_text, tell_full_disk, tell_stuck_disk):
            place = os.path.join(home, tell.__name__)
            os.mkdir(place)
            tell(program, place)
    finally:
        for window in started:
            window.kill()
    print("sessions were kept")


if __name__ == "__main__":
    sys.exit(exit_status("session", work))
