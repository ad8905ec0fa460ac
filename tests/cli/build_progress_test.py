#!/usr/bin/python3
"""tools/scripts/build_progress.py: counts, what steps print, exit codes, the time left; in a pipe and on a terminal."""
import io
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/scripts/build_progress.py"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPT.parent))
import build_progress

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(steps LANGUAGES NONE)
file(GLOB texts CONFIGURE_DEPENDS *.txt)
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

    def test_it_knows_the_steps_to_come(self):
        """Of a project with globs, too, whose build.ninja is never fresh."""
        self.assertEqual(build_progress.steps_to_come([self.build, "-j", "2", "--target", "good"]), ["the only step"])
        self.assertEqual(build_progress.steps_to_come([self.build, "--target", "good", "--", "-k", "0"]), ["the only step"])
        self.assertEqual(build_progress.steps_to_come(["/absent"]), [])

    def test_it_says_how_it_is_used(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn("usage: build_progress.py FOLDER", done.stderr)


def described(output):
    """A step as ninja prints it."""
    return f"Building CXX object {output}" if output.endswith((".o", ".pch")) else f"Linking CXX executable {output}"


class TimeLeft(unittest.TestCase):
    """A recorded build, replayed: from a third of the way on the time left is known within 30 %, until 20 s are left, when one core waits for the other."""

    def setUp(self):
        lines = (HERE / "recorded_build.txt").read_text().splitlines()[1:]
        self.steps = sorted(((int(end) / 10, int(start) / 10, output) for start, end, output in map(str.split, lines)))
        self.total = self.steps[-1][0]

    def worst(self, log, slower=1):
        estimate = build_progress.Estimate([described(output) for _, _, output in self.steps], log)
        worst = 0
        for i, (end, _, output) in enumerate(self.steps):
            estimate.finish(described(output))
            left = self.total - end
            if end >= self.total / 3 and left >= 20:
                worst = max(worst, abs(estimate.left(end * slower, len(self.steps) - 1 - i) / slower / left - 1))
        return worst

    def test_by_sizes_of_sources(self):
        self.assertLess(self.worst({}), 0.3)
        self.assertAlmostEqual(self.worst({}, slower=3), self.worst({}), msg="a slow machine makes no difference")

    def test_by_an_earlier_build(self):
        self.assertLess(self.worst({output: end - start for end, start, output in self.steps}), 0.25)

    def test_what_came_from_ccache_says_nothing(self):
        cached = {output: 0.1 for _, _, output in self.steps if output.endswith(".o")}
        self.assertAlmostEqual(self.worst(cached), self.worst({}), delta=0.01)

    def test_an_average_would_be_wrong(self):
        """So that the tests above can fail."""
        even = build_progress.cost_by_size
        build_progress.cost_by_size = lambda output: 1
        self.addCleanup(setattr, build_progress, "cost_by_size", even)
        self.assertGreater(self.worst({}), 0.3)

    def test_steps_that_turn_out_fresh_cost_nothing(self):
        estimate = build_progress.Estimate([f"Building CXX object src/Driver/CMakeFiles/d.dir/{i}.cpp.o" for i in range(100)], {})
        for i in range(40):
            estimate.finish(f"Building CXX object src/Driver/CMakeFiles/d.dir/{i}.cpp.o")
        self.assertAlmostEqual(estimate.left(80, 60), 120)
        self.assertAlmostEqual(estimate.left(80, 6), 12)

    def test_nothing_is_said_at_the_start(self):
        estimate = build_progress.Estimate([f"Building CXX object src/Driver/CMakeFiles/d.dir/{i}.cpp.o" for i in range(4)] + [f"Generating {i}" for i in range(28)], {})
        for _ in range(3):
            estimate.finish(f"Generating {_}")
        self.assertIsNone(estimate.left(1, 29))

    def test_a_log_is_read_whatever_is_in_it(self):
        with tempfile.TemporaryDirectory(prefix="dmxc-progress-") as folder:
            log = pathlib.Path(folder) / ".ninja_log"
            self.assertEqual(build_progress.read_log(log), {})
            log.write_text("# ninja log v5\n0\t1500\t9\ta.o\tf00\nhalf a li")
            self.assertEqual(build_progress.read_log(log), {"a.o": 1.5})
            log.write_text("a\tb\tc\td\te\n")
            self.assertEqual(build_progress.read_log(log), {})

    def test_it_is_shown(self):
        steps = [described(output) for _, _, output in self.steps]
        shown = build_progress.Progress(io.StringIO(), build_progress.Estimate(steps, {}))
        for i, step in enumerate(steps[:300]):
            shown.output(f"[{i + 1}/{len(steps)}] {step}\n")
        shown.start -= 600
        self.assertRegex(shown.text(), rf"^300 of {len(steps)}, about \d+ min left: ")


if __name__ == "__main__":
    unittest.main()
