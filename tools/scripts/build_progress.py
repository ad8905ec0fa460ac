#!/usr/bin/python3
"""Builds as cmake --build does and says how far it is: "n of m, about t left".

  build_progress.py FOLDER [arguments of cmake --build]

On a terminal one line that stays, every second; in a pipe a line every five seconds. What a compiler has to say is printed in
full; the exit code is the build's. The time left is what the steps to come cost beside those that are done: what they took in an
earlier build of the folder (.ninja_log), or by the size and the folder of their source, since a source that includes the dialects
takes ten times as long as one of the runtime."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEP = re.compile(r"\[(\d+)/(\d+)\] (.*)")
OUTPUT = re.compile(r"(?:Building \S+ object|Linking \S+ (?:executable|static library|shared library|shared module)) (\S+)")
OBJECT = re.compile(r"(?:(.*)/)?CMakeFiles/[^/]*\.dir/(.*)\.o$")
# Seconds that headers cost a source of a folder, the longest that fits counts, and those of a kB of any source: the means of a build
# on two cores with an empty cache. Ratios alone matter, so that they need no care until a third of the time is wrong.
HEADERS = {"": 0.3, "tests": 1.3, "tools": 8, "runtime": 0.4, "schemas": 0.3, "src/Support": 0.4, "src/Bundle": 1.4, "src/Phases": 0.7,
           "src/Tools": 2, "src/Driver": 1.7, "src/Reference": 2, "src/Dialect": 2, "frontends/common": 0.4,
           "frontends/torch": 0.5, "frontends/onnx": 0.9, "targets/aie": 1.5, "targets/common": 0.4, "targets/cpu": 0.3,
           "targets/cuda": 1.6, "targets/corsair": 1.4}
A_KB, A_PCH, A_LINK, A_SCRIPT = 0.1, 13, 0.11, 0.02
# A compile that took less than this part of what sources of its folder take was read from ccache, which says nothing of the next.
CACHED = 0.2


def left(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(seconds, 1):.0f} s"


def cost_by_size(output):
    """Seconds of the step that writes `output`, from its kind, and of a compile from its source."""
    if output.endswith(".pch"):
        return A_PCH
    if not (compiled := OBJECT.match(output)):
        return A_LINK if re.search(r"(^|/)bin/|\.(so|a)\b", output) else A_SCRIPT
    source = f"{compiled[1]}/{compiled[2]}" if compiled[1] else compiled[2]
    folder = max((name for name in HEADERS if source.startswith(name)), key=len)
    try:
        return HEADERS[folder] + A_KB * (ROOT / source).stat().st_size / 1000
    except OSError:  # generated into the build folder
        return HEADERS[folder] + A_KB


def read_log(path):
    """Seconds that the steps of earlier builds took, by output."""
    costs = {}
    try:
        for line in path.read_text(errors="replace").splitlines():
            fields = line.split("\t")
            if len(fields) == 5:
                costs[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    except (OSError, ValueError):  # none, or of another ninja
        pass
    return costs


class Estimate:
    """What is left of a build whose steps are these, as ninja describes them."""

    def __init__(self, steps, log):
        self.log, self.pending, self.done = log, {}, 0.0
        for step in steps:
            self.pending[step] = self.cost(step)
        self.all = self.rest = sum(self.pending.values())

    def cost(self, step):
        if not (output := OUTPUT.match(step)):
            return A_SCRIPT
        usual = cost_by_size(output[1])
        took = self.log.get(output[1], 0)
        return took if took >= CACHED * usual else usual

    def finish(self, step):
        cost = self.pending.pop(step, None)
        if cost is None:  # of a list that was made before CMake ran again
            cost = self.cost(step)
        else:
            self.rest -= cost
        self.done += cost

    def left(self, elapsed, steps):
        """Seconds, where `steps` are to come; None while too little is done to say."""
        if self.done < 0.02 * self.all or not self.done:
            return None
        rest = self.rest * steps / len(self.pending) if self.pending else 0  # ninja leaves out what turns out to be fresh
        return elapsed * rest / self.done


def steps_to_come(arguments):
    """The descriptions of what the build will do. Ninja lists them of a copy of build.ninja: the file itself it would make anew first."""
    with tempfile.NamedTemporaryFile(suffix=".ninja") as copy:
        try:
            copy.write((pathlib.Path(arguments[0]) / "build.ninja").read_bytes())
        except OSError:
            return []
        copy.flush()
        dry = ["cmake", "--build", *arguments, *([] if "--" in arguments else ["--"]), "-n", "-f", copy.name]
        listed = subprocess.run(dry, capture_output=True, text=True, errors="replace", env={**os.environ, "NINJA_STATUS": "[%f/%t] "})
    return [step[3] for step in map(STEP.match, listed.stdout.splitlines()) if step]


class Progress:
    def __init__(self, stream, estimate):
        self.estimate = estimate
        self.stream, self.terminal = stream, stream.isatty()
        self.start, self.done, self.total, self.what = time.monotonic(), 0, 0, "reading what there is to do"
        self.lock = threading.Lock()

    def text(self):
        if not self.total:
            return self.what
        seconds = self.estimate.left(time.monotonic() - self.start, self.total - self.done)
        about = f", about {left(seconds)} left" if seconds is not None and self.done > 20 and self.done < self.total else ""
        return f"{self.done} of {self.total}{about}: {self.what}"

    def show(self):
        line = self.text()
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write("\r\033[K" + line[:width])
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def output(self, line):
        """A line of the build: a step, or what a step printed."""
        with self.lock:
            if step := STEP.match(line):
                self.done, self.total, self.what = int(step[1]), int(step[2]), step[3].removeprefix("Building ")
                self.estimate.finish(step[3])
            else:
                self.stream.write(("\r\033[K" if self.terminal else "") + line)
                self.stream.flush()

    def keep_showing(self, stop):
        while not stop.wait(1 if self.terminal else 5):
            with self.lock:
                self.show()


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: build_progress.py FOLDER [arguments of cmake --build]")
    estimate = Estimate(steps_to_come(sys.argv[1:]), read_log(pathlib.Path(sys.argv[1]) / ".ninja_log"))
    build = subprocess.Popen(["cmake", "--build", *sys.argv[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", env={**os.environ, "NINJA_STATUS": "[%f/%t] "})
    progress, stop = Progress(sys.stdout, estimate), threading.Event()
    shower = threading.Thread(target=progress.keep_showing, args=(stop,))
    shower.start()
    try:
        for line in build.stdout:
            progress.output(line)
        status = build.wait()
        if status == 0:
            progress.done, progress.what = progress.total, "built"
        return status
    finally:
        stop.set()
        shower.join()
        progress.show()
        if progress.terminal:
            print()


if __name__ == "__main__":
    sys.exit(main())
