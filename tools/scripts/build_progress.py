#!/usr/bin/python3
"""Builds as cmake --build does and says how far it is: "n of m, about t left".

  build_progress.py FOLDER [arguments of cmake --build]

On a terminal one line that stays, every second; in a pipe a line every five seconds. What a compiler has to say is printed in
full; the exit code is the build's. The time left supposes that the steps to come take what those before took on the average."""
import os
import re
import shutil
import subprocess
import sys
import threading
import time

STEP = re.compile(r"\[(\d+)/(\d+)\] (.*)")


def left(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(seconds, 1):.0f} s"


class Progress:
    def __init__(self, stream):
        self.stream, self.terminal = stream, stream.isatty()
        self.start, self.done, self.total, self.what = time.monotonic(), 0, 0, "reading what there is to do"
        self.lock = threading.Lock()

    def text(self):
        if not self.total:
            return self.what
        elapsed = time.monotonic() - self.start
        # The first steps are many and short: an estimate from them would be wrong by much.
        about = f", about {left(elapsed * (self.total - self.done) / self.done)} left" if self.done > 20 and self.done < self.total else ""
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
    build = subprocess.Popen(["cmake", "--build", *sys.argv[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", env={**os.environ, "NINJA_STATUS": "[%f/%t] "})
    progress, stop = Progress(sys.stdout), threading.Event()
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
