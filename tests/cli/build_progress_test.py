#!/usr/bin/python3
"""tools/scripts/build_progress.py: counts, what steps print, exit codes; in a pipe and on a terminal."""
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/scripts/build_progress.py"
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(steps LANGUAGES NONE)
add_custom_target(good COMMAND sleep 1 COMMAND echo a-step-says COMMENT "the only step" VERBATIM)
add_custom_target(bad COMMAND echo what-is-wrong COMMAND false VERBATIM)
"""


class BuildProgress(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="dmxc-progress-")
        source = pathlib.Path(cls.folder.name)
        (source / "CMakeLists.txt").write_text(PROJECT)
        cls.build = source / "build"
        subprocess.run(["cmake", "-S", source, "-B", cls.build, "-G", "Ninja"], check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_script(self, *arguments):
        return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True)

    def test_a_pipe_has_lines(self):
        done = self.run_script(self.build, "--target", "good")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^a-step-says$")
        self.assertRegex(done.stdout.splitlines()[-1], r"^1 of 1: ")
        self.assertNotIn("\r", done.stdout)

    def test_a_failure_is_the_build_s(self):
        done = self.run_script(self.build, "--target", "bad")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"(?m)^what-is-wrong$")
        self.assertIn("FAILED", done.stdout)

    def test_a_terminal_has_one_line_that_fits(self):
        parent, child = pty.openpty()
        import fcntl, struct, termios
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
        running = subprocess.Popen([SCRIPT, self.build, "--target", "good"], stdin=child, stdout=child, stderr=child)
        os.close(child)
        text = b""
        while True:
            try:
                part = os.read(parent, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            text += part
        os.close(parent)
        self.assertEqual(running.wait(), 0)
        shown = text.decode().replace("\r\n", "\n")
        self.assertIn("\r\033[K", shown)
        for line in shown.replace("\n", "\r\033[K").split("\r\033[K"):
            self.assertLessEqual(len(line), 29, line)
        self.assertIn("a-step-says\n", shown)

    def test_it_says_how_it_is_used(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn("usage: build_progress.py FOLDER", done.stderr)


if __name__ == "__main__":
    unittest.main()
