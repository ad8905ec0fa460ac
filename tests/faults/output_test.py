#!/usr/bin/env python3
"""What programs print cannot be written; dmxc tune ends too early. Usage and skips as faults_test.py."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from faults_test import BIN, CORSAIR, LONG, Base, models, sample


class Stdout(Base):
    """All that prints to stdout says so where it cannot, and does not end with 0."""

    def test_a_full_device(self):
        model = self.save(models.lenet(), "lenet")
        self.assertEqual(self.tool("dmxc", model, "-o", "b").returncode, 0)
        commands = [["dmxc", *query] for query in (["--help"], ["--version"], ["--print-targets"], ["--print-ops"], ["--print-phases"],
                                                   ["--print-target-info", "cpu"], ["--print-ops", "--format", "json"],
                                                   ["--print-ops", "--input-format", "onnx"], ["tune", "--help"])]
        commands += [["dmxc", model, "-o", "o", *more] for more in (["--explain-decisions"], ["--placement-report", "-"], ["--sparsity-report", "-"])]
        commands += [["dmxc", model, "--emit", "frontend", "-o", "-"], ["dmxc", model, "-o", "-"], ["dmxc", "tune", model, "--list"]]
        commands += [[tool, *query] for tool in ("dmx-run", "dmx-inspect", "dmx-sign", "dmx-compare") if (BIN / tool).exists()
                     for query in (["--help"], ["--version"])]
        commands += [["dmx-run", "b", "--random-inputs", "1"], ["dmx-run", "b", "--benchmark", "--iters", "5"], ["dmx-inspect", "b"],
                     ["dmx-inspect", "b", "--json"], ["dmx-inspect", "b", "--check"], ["dmx-compare", model, "--random-inputs", "1"]]
        for command in commands:
            with self.subTest(command=" ".join(map(str, command))), open("/dev/full", "w") as full:
                good = self.tool(*command) if "-" not in command[-1:] else None  # the command itself is right
                if good:
                    self.assertEqual(good.returncode, 0, good.stderr)
                done = subprocess.run([BIN / command[0], *map(str, command[1:])], stdout=full, stderr=subprocess.PIPE, text=True, cwd=self.out,
                                      env=self.env, timeout=120)
                self.refused(done, 3, "No space left on device")
                self.assertNotIn("reproducer", done.stderr)

    def test_a_closed_pipe(self):
        """A reader that has read enough is no reason for a message."""
        for tool in ("dmxc", "dmx-run", "dmx-inspect"):
            read, write = os.pipe()
            os.close(read)
            done = subprocess.run([BIN / tool, "--help"], stdout=write, stderr=subprocess.PIPE, text=True, env=self.env)
            os.close(write)
            self.assertEqual((done.returncode, done.stderr), (3, ""), tool)


PRODUCT = """func.func @main(%a: tensor<96x128xf32> {dmir.name = "a"}, %b: tensor<128x64xf32> {dmir.name = "b"}) -> (tensor<96x64xf32> {dmir.name = "y"}) {
  %0 = dmir.matmul %a, %b : (tensor<96x128xf32>, tensor<128x64xf32>) -> tensor<96x64xf32> loc("product")
  return %0 : tensor<96x64xf32>
}
"""


@unittest.skipUnless(CORSAIR, "this build has no corsair target")
class Tune(Base):
    """What was measured is kept, whatever ends the measuring, and nothing else."""
    TRIALS = 20

    def setUp(self):
        super().setUp()
        (self.dir / "p.mlir").write_text(PRODUCT)
        done = self.tune("whole.jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.trials = self.measured(done.stdout)
        self.assertEqual(len(self.trials), self.TRIALS)
        self.whole = (self.out / "whole.jsonl").read_bytes()
        (self.out / "whole.jsonl").unlink()
        self.nothing_left()

    def command(self, database="k.jsonl"):
        return [str(BIN / "dmxc"), "tune", str(self.dir / "p.mlir"), "-t", "corsair", "--db", database, "--trials", str(self.TRIALS)]

    def tune(self, database="k.jsonl", **more):
        return self.tool(*self.command(database), **more)

    def measured(self, text):
        return re.findall(r"^  ('product' .*): (?:\d+ clocks|dropped)$", text, re.M)

    def kept(self):
        """The lines of the journal, each of them whole."""
        journal = self.out / "k.jsonl.trials"
        lines = journal.read_text().splitlines(keepends=True) if journal.exists() else []
        self.assertEqual(journal.exists(), bool(lines), "an empty journal")
        for line in lines:
            self.assertTrue(line.endswith("\n"))
            self.assertEqual([type(part) for part in json.loads(line)], [str, int])
        return len(lines)

    def goes_on(self, kept):
        """The same command measures what is left alone, and finds the same."""
        done = self.tune()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.measured(done.stdout)), self.TRIALS - kept)
        self.assertEqual((self.out / "k.jsonl").read_bytes(), self.whole)
        self.nothing_left("k.jsonl")
        (self.out / "k.jsonl").unlink()
        return self.measured(done.stdout)

    def test_signals(self):
        seeds, some = random.Random(5), 0
        for i in range(60 if LONG else 6):
            number = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[i % 3]
            with self.subTest(i=i, signal=number):
                process = subprocess.Popen(self.command(), cwd=self.out, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                seen = [process.stdout.readline() for _ in range(i % 7)]
                if i % 7 == 0:  # before the first trial
                    while not os.listdir(self.tmp):
                        time.sleep(0.001)
                time.sleep(seeds.random() * 0.03)
                process.send_signal(number)
                process.communicate(timeout=60)
                if process.returncode == 0:  # it was faster
                    self.nothing_left("k.jsonl")
                    (self.out / "k.jsonl").unlink()
                    continue
                self.assertEqual(process.returncode, -number)
                kept = self.kept()
                self.nothing_left(*["k.jsonl.trials"] * (kept > 0))
                some += kept > 0
                again = self.goes_on(kept)
                self.assertEqual(set(self.measured("".join(seen))) & set(again), set())
        self.assertGreater(some, 2)

    def test_writes_that_fail(self):
        """From some write on none succeeds."""
        calls = self.counts(*self.command())["write"]
        (self.out / "k.jsonl").unlink()
        for k in sample(calls, 10):
            with self.subTest(k=k):
                done = self.fault(f"write:{k}+:ENOSPC", *self.command())
                self.refused(done, 3, "No space left")
                self.assertNotIn("reproducer", done.stderr)
                if (self.out / "k.jsonl").exists():  # only the last words could not be printed
                    self.assertEqual((self.out / "k.jsonl").read_bytes(), self.whole)
                    (self.out / "k.jsonl").unlink()
                    self.nothing_left()
                    continue
                kept = self.kept()
                self.nothing_left(*["k.jsonl.trials"] * (kept > 0))
                self.goes_on(kept)

    def test_a_full_disk(self):
        """A file system of two pages: without a free one nothing is measured, with one the journal has room and the database none."""
        can = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(self.tmp)], capture_output=True, text=True)
        if can.returncode:
            self.skipTest("no file system can be made here: " + can.stderr.strip())
        (self.out / "disk").mkdir()
        command = " ".join(self.command("disk/k.jsonl"))
        script = f"""mount -t tmpfs -o size=8k none disk && head -c 8192 /dev/zero > disk/filler || exit 99
{command} > none.txt 2> none.err; echo $? >> codes; ls disk >> none.txt
head -c 4096 /dev/zero > disk/filler
{command} > full.txt 2> full.err; echo $? >> codes
cp disk/k.jsonl.trials kept; ls disk >> full.txt; rm disk/filler
{command} > again.txt 2> again.err; echo $? >> codes
cp disk/k.jsonl result; ls disk >> again.txt
"""
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], cwd=self.out, env=self.env, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = {path.name: path.read_text() for path in self.out.iterdir() if path.is_file()}
        self.assertEqual(text["codes"].split(), ["3", "3", "0"], text)
        self.assertEqual(self.measured(text["none.txt"]), [])
        self.assertRegex(text["none.err"], r"error: cannot write 'disk/k.jsonl.trials', which keeps what is measured: No space left on device; free some space")
        self.assertTrue(text["none.txt"].endswith("filler\n") and "trials" not in text["none.txt"])
        self.assertEqual(self.measured(text["full.txt"]), self.trials)
        self.assertRegex(text["full.err"], r"No space left.*; what was measured is in 'disk/k.jsonl.trials': the same command goes on from there")
        self.assertEqual(len(text["kept"].splitlines()), self.TRIALS)
        self.assertEqual(self.measured(text["again.txt"]), [])
        self.assertEqual(text["result"].encode(), self.whole)
        self.assertTrue(text["again.txt"].endswith("k.jsonl\n"))
        self.assertEqual(os.listdir(self.tmp), [])

    def test_a_folder_for_temporaries_that_is_full(self):
        """That a trial's bundle cannot be written is no fault of the candidate, and is not kept as one."""
        calls = self.counts(*self.command())["write"]
        (self.out / "k.jsonl").unlink()
        seen = 0
        for k in sample(calls, 8):
            done = self.fault(f"write:{k}:ENOSPC", *self.command())
            self.assertIn(done.returncode, (0, 3), done.stderr)
            self.assertNotIn("dropped", done.stderr)
            seen += "could not be measured" in done.stderr
            if done.returncode == 3 and not (self.out / "k.jsonl").exists():
                self.goes_on(self.kept())
            shutil.rmtree(self.out)
            self.out.mkdir()
        self.assertGreater(seen, 0)

    def test_two_at_once(self):
        process = subprocess.Popen(self.command(), cwd=self.out, env=self.env, stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        self.refused(self.tune(), 3, "another dmxc tunes with this database")
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual((self.out / "k.jsonl").read_bytes(), self.whole)
        self.nothing_left("k.jsonl")

    def test_a_line_that_was_cut(self):
        self.assertEqual(self.tune().returncode, 0)
        (self.out / "k.jsonl").unlink()
        (self.out / "k.jsonl.trials").write_text('["0123", 5]\n["45')
        self.goes_on(0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
