# SPDX-License-Identifier: GPL-3.0-or-later
"""The window as a test sees it: a process of `headscope --drive`, which tells where things are and what is shown.

`Hands` works it with real events (xdotool on an X server of its own), `Sent` with events that the program sends itself,
for platforms without mouse and keyboard.
"""
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time


class Failed(Exception):
    """A step did not go as expected: one sentence."""


def exit_status(script, work):
    """0, or 1 with what `work` failed at, printed; it is given an empty folder. That is gone afterwards, and all windows."""
    with tempfile.TemporaryDirectory(prefix="headscope-" + script + "-") as folder:
        try:
            work(folder)
        except Failed as failure:
            print(f"{script}.py: {failure}")
            return 1
        finally:
            for window in Program.started:
                window.kill()
    return 0


def exit_status_of(script, story):
    """exit_status() of `story(program, home)`, with the program that the command line names."""
    return exit_status(script, lambda home: story(os.path.abspath(sys.argv[1]), home))


class Program:
    """One run of the program. `home` takes the place of the user's folders."""

    PATIENCE = 90.0  # seconds: for machines that do other things at the same time
    started = []

    def __init__(self, program, home, environment, arguments=()):
        self.home = home
        self.errors = open(os.path.join(home, "stderr.txt"), "ab")
        folders = {name: os.path.join(home, folder) for name, folder in (
            ("HOME", ""), ("XDG_DATA_HOME", "data"), ("XDG_CONFIG_HOME", "config"), ("XDG_CACHE_HOME", "cache"))}
        for folder in folders.values():
            os.makedirs(folder, exist_ok=True)
        words = dict(os.environ, **folders, **environment, LC_ALL="C.UTF-8", HEADSCOPE_VERBOSE="1")
        words.pop("WAYLAND_DISPLAY", None)
        self.began = time.monotonic()
        self.process = subprocess.Popen([program, "--drive", *arguments], env=words, cwd=home, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        self.rest = b""
        Program.started.append(self)

    def ask(self, request, seconds=PATIENCE):
        """One request, one answer (tests/rig/driver.h)."""
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Failed(f"the program ended before {request}: {self.last_words()}") from None
        end = time.monotonic() + seconds
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Failed(f"no answer to {request} within {seconds:.0f} s")
            block = os.read(self.process.stdout.fileno(), 65536)
            if not block:
                raise Failed(f"the program ended at {request}: {self.last_words()}")
            self.rest += block
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def state(self):
        return self.ask({"state": True})

    def find(self, name):
        return self.ask({"find": name})

    def views(self):
        """Names of all views, in the window's order."""
        actions = self.ask({"actions": True})["actions"]
        return [action["name"][len("view_"):] for action in actions if action["name"].startswith("view_")]

    def action(self, name):
        """What the menus have of that name: text, keys, whether it can be done now."""
        for known in self.ask({"actions": True})["actions"]:
            if known["name"] == name:
                return known
        raise Failed(f"expected an action {name}")

    def until(self, what, holds, seconds=PATIENCE):
        """Waits until `holds()` gives something true, and returns that."""
        end = time.monotonic() + seconds
        while True:
            value = holds()
            if value:
                return value
            if time.monotonic() > end:
                raise Failed(f"expected {what} within {seconds:.0f} s; the state is {self.state()}")
            time.sleep(0.05)

    def until_state(self, what, holds, seconds=PATIENCE):
        return self.until(what, lambda: (lambda state: state if holds(state) else None)(self.state()), seconds)

    def until_visible(self, name, seconds=PATIENCE):
        return self.until(f"{name} to be visible and enabled", lambda: (
            lambda found: found if found["found"] and found["visible"] and found["enabled"] else None)(
                self.find(name)), seconds)

    def until_popup(self, entry="", seconds=PATIENCE):
        """Until a menu or the list of a combo box is open, with the current entry that begins like this."""
        self.until_state(f"a menu at '{entry}'", lambda state: (
            state["popup"] is not None and state["popup"].startswith(entry)), seconds)

    def until_finished(self, runs):
        """Until `runs` runs have ended well. Every step and every new run restarts the patience; a problem in the log,
        or a run with another end, fails at once."""
        last, end = None, 0.0
        while True:
            state = self.state()
            ends = [run["status"] for run in state["runs"]]
            if ends == ["finished"] * runs:
                return state
            if state["problems"] or set(ends) & {"stopped", "failed"}:
                raise Failed(f"expected {runs} finished runs; the state is {state}")
            now = [[run["status"], run["step"]] for run in state["runs"]], state["starting"]
            if now != last:
                last, end = now, time.monotonic() + self.PATIENCE
            if time.monotonic() > end:
                raise Failed(f"expected a step or an end of a run within {self.PATIENCE:.0f} s; the state is {state}")
            time.sleep(0.1)

    def resize(self, width, height):
        """The size that the window then has."""
        return self.ask({"resize": [width, height]})["size"]

    def faults(self, most, of=""):
        """What of the window, or of a dialog, does not fit (tests/rig/layout_faults.h), a line each."""
        return self.ask({"faults": of, "most": list(most)})["faults"]

    def tabs(self):
        """Names of the views on tabs of the page in front, and which one or two are shown."""
        answer = self.ask({"tabs": True})
        return answer["tabs"], [name for name in answer.get("shown", []) if name]

    def session(self):
        """The session file, as it is now; empty: there is none yet."""
        try:
            with open(os.path.join(self.home, "data", "headscope", "session.json"), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return {}

    def view_state(self, view):
        return self.session().get("views", {}).get(view)

    def quiet(self, seconds=PATIENCE):
        """Waits until nothing is read or run."""
        return self.until_state("nothing to be read or run", lambda s: not s["busy"] and not s["running"], seconds)

    def shot(self, path):
        if not self.ask({"shot": path})["done"]:
            raise Failed(f"expected a picture at {path}")

    def ended(self, seconds=PATIENCE):
        """Waits for the end; the exit status."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"expected the program to end within {seconds:.0f} s") from None

    def stalls(self):
        """A line about the longest time in which the window did not answer; raises Failed when that was the window's
        doing: the time that its thread was ready, and other threads had the processors, is told and not judged."""
        state = self.state()
        own = state["longest_own_stall"]
        line = (f"stalls over 100 ms: {state['stalls']}, longest {state['longest_stall'] * 1000:.0f} ms; of the "
                f"window's own doing {own * 1000:.0f} ms")
        # Far above what the monkey allows: here a cold start counts, and so does a machine that is slow as a whole.
        if own > 1.5:
            raise Failed(f"expected no stall above 1.5 s; found: {line}")
        return line

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def last_words(self):
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        with open(self.errors.name, "rb") as file:
            text = file.read().decode(errors="replace")
        return f"status {self.process.returncode}; {text[-600:].strip() or 'nothing on stderr'}"


class Sent:
    """Works the program with events that it sends itself."""

    def __init__(self, program):
        self.program = program

    def click(self, name, at=None, twice=False):
        width, height = self.program.until_visible(name)["rect"][2:]
        across, down = at or (0.5, 0.5)
        place = [int(across * width), int(down * height)]
        if not self.program.ask({"click": name, "twice": twice, "at": place})["done"]:
            raise Failed(f"expected {name} to take a click")

    def key(self, keys):
        self.program.ask({"key": keys})

    def type(self, text):
        self.program.ask({"type": text})

    def drop(self, path, name):
        if not self.program.ask({"drop": path, "on": name})["done"]:
            raise Failed(f"expected {path} to be taken where it was dropped, on {name}")

    def act(self, name):
        if not self.program.ask({"action": name})["done"]:
            raise Failed(f"expected the action {name} to be there and enabled")


class Hands:
    """Works the program with a mouse and a keyboard."""

    def __init__(self, program, screen):
        self.program = program
        self.screen = screen
        self.environment = dict(os.environ, DISPLAY=screen.display)

    def xdotool(self, *words):
        run = subprocess.run(["xdotool", *map(str, words)], env=self.environment, capture_output=True, text=True,
                             timeout=60)
        if run.returncode:
            raise Failed(f"xdotool {' '.join(map(str, words))}: {run.stderr.strip()}")
        return run.stdout.strip()

    def place(self, name, at=None):
        """Where something is on the screen: its middle, or a share of its width and height."""
        x, y, width, height = self.program.until_visible(name)["rect"]
        across, down = at or (0.5, 0.5)
        return round(x + across * width), round(y + down * height)

    def point(self, name, at=None):
        self.xdotool("mousemove", *self.place(name, at), "sleep", 0.05)

    def click(self, name, at=None, twice=False):
        self.point(name, at)
        self.xdotool("click", *(["--repeat", 2, "--delay", 60] if twice else []), 1)

    def wheel(self, name, steps, at=None):
        """Steps away from oneself."""
        self.point(name, at)
        self.xdotool("click", "--repeat", abs(steps), "--delay", 30, 4 if steps > 0 else 5)

    def drag(self, name, start, end):
        self.point(name, start)
        self.xdotool("mousedown", 1)
        first, last = self.place(name, start), self.place(name, end)
        for step in (1, 2, 3, 4):
            self.xdotool("mousemove", *(round(a + (b - a) * step / 4) for a, b in zip(first, last)), "sleep", 0.05)
        self.xdotool("mouseup", 1)

    def key(self, keys):
        """Named as Qt does: Ctrl+Return."""
        names = {"Ctrl": "ctrl", "Alt": "alt", "Shift": "shift", "Esc": "Escape", "?": "question", ".": "period"}
        self.xdotool("key", "--clearmodifiers", "+".join(names.get(key, key if len(key) > 1 else key.lower())
                                                         for key in keys.split("+")))

    def type(self, text):
        self.xdotool("type", "--delay", 15, text)

    def choose(self, combo, entry):
        """An entry of a combo box, by its list and the keyboard."""
        for _ in range(3):
            if self.program.find(combo)["text"] == entry:
                return
            self.click(combo)
            time.sleep(0.4)
            self.type(entry)
            self.key("Return")
            time.sleep(0.4)
        raise Failed(f"expected an entry {entry} in {combo}; found {self.program.find(combo)['text']}")

    def act(self, name):
        """By its keys; an action without keys by the palette of commands."""
        action = self.program.action(name)
        if action["keys"]:
            self.key(action["keys"])
            return
        self.key(self.program.action("commands")["keys"])
        self.program.until_visible("palette_field")
        self.type(action["text"])
        self.key("Return")
        self.program.until("the palette to close", lambda: not self.program.find("palette_field")["found"])
        self.take_focus()

    def take_focus(self):
        """Where no window manager hands it out: by a click into nothing."""
        if not self.screen.manager:
            self.click("main_window", (0.5, 0.99))  # the status line


class Screen:
    """An X server with one screen, and a window manager where there is one and it is wanted."""

    def __init__(self, size="1280x800", managed=True):
        reading, writing = os.pipe()
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{size}x24", "-nolisten", "tcp", "-noreset"],
            pass_fds=[writing], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(writing)
        # To the end of the line: a server whose pipe is closed while it writes dies of that.
        name = b""
        while not name.endswith(b"\n"):
            block = os.read(reading, 32) if select.select([reading], [], [], 30)[0] else b""
            if not block:
                self.server.kill()
                raise Failed("expected Xvfb to start within 30 s")
            name += block
        os.close(reading)
        self.display = ":" + name.decode().strip()
        self.manager = None
        if managed and shutil.which("openbox"):
            self.manager = subprocess.Popen(["openbox"], env=dict(os.environ, DISPLAY=self.display),
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def picture(self, path):
        """The whole screen, with what a program's own picture of itself leaves out: menus, dialogs, the pointer."""
        if shutil.which("import"):
            subprocess.run(["import", "-window", "root", path], env=dict(os.environ, DISPLAY=self.display), check=False,
                           timeout=60)

    def close(self):
        for process in (getattr(self, "manager", None), self.server):
            if process:
                process.terminate()
                process.wait()
