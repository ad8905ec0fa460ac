"""Checks one after the other, each in a folder of its own, and told as they end."""

import pathlib
import tempfile


class Attempts:
    def __init__(self):
        self.bad = 0

    def run(self, label, check, *arguments):
        """check(FOLDER, *arguments) raises RuntimeError where something is wrong."""
        with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as place:
            try:
                check(pathlib.Path(place), *arguments)
                print(f"ok   {label}", flush=True)
            except RuntimeError as error:
                self.bad += 1
                print(f"FAIL {label}: {error}", flush=True)

    def status(self):
        return 1 if self.bad else 0
