#!/usr/bin/env python3
"""dmxc: messages, exit codes, questions, ends by signals. Usage: dmxc_messages_test.py BIN REPO [unittest arguments]"""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import unittest

from dmxc_case import BIN, REPO, DIGITS, DATA, SMALL, Base, onnx_with_listed_weights


class Messages(Base):
    def test_help_has_examples_first_and_groups(self):
        text = self.run_tool("--help").stdout
        self.assertLess(text.index("Examples:"), text.index("common:"))
        for word in ("input:", "placement:", "pipeline:", "diagnostics:", "build systems:", "query:", "-MD", "--emit"):
            self.assertIn(word, text)

    def test_every_flag_of_the_contract_is_in_the_help(self):
        text = self.run_tool("--help").stdout
        for flag in ("--output", "--target", "-O", "--jobs", "--input-format", "--shape", "--dim", "--entry", "--allow-external-data", "--place",
                     "--require-target", "--placement-report", "--emit", "--from", "--dump-phases", "--save-temps", "--schedule",
                     "--numerics", "--quiet", "--verbose", "--color", "--diagnostics", "-Werror", "--all-errors", "--progress", "--time-report",
                     "--reproducer", "-MD", "-MF", "-MT", "--version", "--print-targets", "--print-target-info", "--print-ops",
                     "--print-phases", "--format", "--bundle-format"):
            self.assertRegex(text, rf"(?<![\w-]){re.escape(flag)}\b")

    def test_help_has_the_words_of_each_target_built_in_and_of_no_other(self):
        text = " ".join((self.run_tool("--help", "targets").stdout + self.run_tool("--help", "numerics").stdout).split())
        built = [line.split()[0] for line in self.run_tool("--print-targets").stdout.splitlines() if line[:1].strip()]
        root = REPO / "targets"
        for path in root.glob("*/Help.cpp"):
            name = path.parent.name
            (self.assertIn if name in built else self.assertNotIn)(f"Levels of {name}:", text)
            (self.assertRegex if name in built else self.assertNotRegex)(text, rf"-t {name}:\w")
            if name not in built:
                self.assertNotRegex(text, rf"\b{name}\b")
        err = self.run_tool(self.small, "-o", "o", "-t", built[0] + ":+", code=2).stderr
        self.assertRegex(err, rf"a level is empty; expected for example {built[0]}:\w")

    def test_unknown_option_suggests(self):
        err = self.run_tool("m.onnx", "--emitt", "frontend", code=2).stderr
        self.assertIn("unknown option '--emitt'; did you mean '--emit'?", err)

    def test_unknown_values_suggest(self):
        self.assertIn("did you mean 'cpu'", self.run_tool("m.onnx", "-t", "cpo", code=2).stderr)
        self.assertIn("did you mean 'memory'", self.run_tool("m.onnx", "--emit", "memori", code=2).stderr)
        self.assertIn("x86-64-v3", self.run_tool(self.small, "-o", "o", "-t", "cpu:x86-64-v9", code=2).stderr)
        self.assertIn("it has strict, bf16, bf16-convs, bf16-weights, int8",
                      self.run_tool(self.small, "-o", "o", "--numerics", "sloppy", code=2).stderr)

    def test_wrong_texts_are_usage_errors(self):
        for arguments in (["--dim", "batch"], ["--dim", "n=5..2"], ["--dim", "n=x"], ["--shape", "x=1x-2"], ["-O9"], ["-j0"],
                          ["--place", "x"], ["--require-target", "cpu:200"], ["-q", "-v"], ["-MF", "f"], ["second.onnx"],
                          ["-o", "-", "--bundle-format", "dir"], ["--from", "memory", "--emit", "partition"]):
            err = self.run_tool(self.small, *arguments, code=2).stderr
            self.assertRegex(err, r"^dmxc: error: .+ \[usage\]")

    def test_no_model(self):
        self.assertIn("no model given", self.run_tool(code=2).stderr)

    def test_missing_and_unreadable_files(self):
        self.assertIn("absent.onnx", self.run_tool("absent.onnx", "-o", "o", code=3).stderr)
        self.run_tool(self.dir, "-o", "o", code=3)
        self.assertIn("[io]", self.run_tool(self.small, "-o", "no/such/folder/o.bundle", code=3).stderr)
        self.assertIn("response file", self.run_tool("@absent", code=3).stderr)

    def test_the_model_is_never_overwritten(self):
        (self.dir / "link").symlink_to(self.small)
        for output in (self.small, "link"):
            self.assertIn("is the model itself", self.run_tool(self.small, "-o", output, code=2).stderr)
        self.assertEqual(self.small.read_text(), SMALL)

    def test_unrecognised_file(self):
        (self.dir / "noise.bin").write_bytes(b"\xff\xfe garbage")
        err = self.run_tool("noise.bin", "-o", "o", code=1).stderr
        self.assertIn("[input-format]", err)
        self.assertIn("help:", err)

    def test_refusal_names_the_node(self):
        model = DATA / "test_bernoulli/model.onnx"
        err = self.run_tool(model, "-o", "o", code=1).stderr
        self.assertRegex(err, r"node '.+': error: Bernoulli .*\[[a-z0-9-]+\]")
        self.assertFalse((self.dir / "o").exists())

    def test_text_errors_have_positions(self):
        self.small.write_text(SMALL.replace("axis = 1", "axis = 7"))
        err = self.run_tool(self.small, "-o", "o", code=1).stderr
        self.assertRegex(err, r"small\.mlir: node 'body/softmax': error: axis 7")
        self.small.write_text(SMALL.replace("axis = 1", "axis = 7").replace(' loc("body/softmax")', ""))
        err = self.run_tool(self.small, "-o", "o", code=1).stderr
        self.assertRegex(err, r"small\.mlir:3:8: error: axis 7")

    def test_json_diagnostics(self):
        self.small.write_text(SMALL.replace("axis = 1", "axis = 7"))
        err = self.run_tool(self.small, "-o", "o", "--diagnostics", "json", code=1).stderr
        for line in err.splitlines():
            message = json.loads(line)
            self.assertEqual(message["severity"], "error")
            self.assertIn("axis 7", message["message"])

    def test_colour(self):
        self.assertIn("\x1b[", self.run_tool("absent.onnx", "--color", "always", code=3).stderr)
        self.assertNotIn("\x1b[", self.run_tool("absent.onnx", "--color", "auto", code=3).stderr)

    def test_warnings_become_errors(self):
        self.small.write_text(SMALL.replace("  return %1", '  %2 = dmir.reshape %1 : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("view")\n  return %1'))
        arguments = [self.small, "-o", "o", "--place", "view=cpu"]
        self.assertIn("warning: ", self.run_tool(*arguments).stderr)
        (self.dir / "o").unlink()
        self.assertIn("error: ", self.run_tool(*arguments, "-Werror", code=1).stderr)
        self.assertFalse((self.dir / "o").exists())

    def test_quiet_says_nothing(self):
        result = self.run_tool(self.small, "-o", "o", "-q")
        self.assertEqual(result.stdout + result.stderr, "")

    def test_quiet_prints_no_notes(self):
        (self.dir / "m.onnx").write_bytes(onnx_with_listed_weights())
        self.assertIn("note: inputs with a value in the file are constants: 'w'", self.run_tool("m.onnx", "-o", "m.bundle").stderr)
        self.assertEqual(self.run_tool("m.onnx", "-o", "m.bundle", "-q").stderr, "")
        self.assertEqual(self.run_tool("m.onnx", "-o", "m.bundle", "-q", "--diagnostics", "json").stderr, "")
        (self.dir / "m.onnx").write_bytes(onnx_with_listed_weights(("Reluu", "r")))
        said = self.run_tool("m.onnx", "-o", "m.bundle", code=1).stderr
        quiet = self.run_tool("m.onnx", "-o", "m.bundle", "-q", code=1).stderr
        self.assertIn("note: operands:", said)
        self.assertNotIn("note:", quiet)
        for part in ("node 'r': error:", "help: did you mean 'Relu'?"):
            self.assertIn(part, said)
            self.assertIn(part, quiet)

    def test_placement_summary_is_printed(self):
        self.assertRegex(self.run_tool(self.small, "-o", "o").stderr, r"placement: cpu 2 of 2 nodes in \d+ tasks?")


class Queries(Base):
    def test_version(self):
        self.assertRegex(self.run_tool("--version").stdout, r"^dmxc \d+\.\d+\.\d+ \(bundle format \d+\.\d+, MLIR 22")

    def test_targets_and_phases(self):
        self.assertRegex(self.run_tool("--print-targets").stdout, r"(?m)^cpu\b")
        self.assertIn("x86-64-v3", self.run_tool("--print-target-info", "cpu").stdout)
        self.assertIn("did you mean", self.run_tool("--print-target-info", "cpuu", code=2).stderr)
        names = [line.split()[0] for line in self.run_tool("--print-phases").stdout.splitlines()]
        self.assertEqual([name for name in names if "." not in name], ["frontend", "partition", "memory", "schedule", "codegen"])
        self.assertEqual({name.split(".")[0] for name in names if "." in name} - {"schedule"}, set())  # stages of targets
        self.assertNotIn("(target ", self.run_tool("--print-phases", "-t", "cpu").stdout)
        targets = self.run_tool("--print-targets").stdout
        for target in ("corsair", "aie"):
            if f"\n{target}" in targets:
                named = set(re.findall(r"\(target (\w+)\)", self.run_tool("--print-phases", "-t", target).stdout))
                self.assertLessEqual(named, {target})

    def test_stages_belong_to_targets(self):
        stages = [line.split()[0] for line in self.run_tool("--print-phases").stdout.splitlines() if "." in line.split()[0]]
        for stage in stages:
            self.assertRegex(self.run_tool(self.small, "-t", "cpu", "--emit", stage, code=2).stderr, rf"--emit {stage} is a stage of the target (\w+); give -t \1")
        self.assertIn("is not one of", self.run_tool(self.small, "--emit", "schedule.nonsense", code=2).stderr)

    def test_every_op_has_a_sample_and_a_row(self):
        rows = json.loads(self.run_tool("--print-ops", "--format", "json").stdout)
        self.assertGreater(len(rows), 60)
        for row in rows:
            self.assertTrue(row["verifier"], f"{row['op']}: no sample in OpSamples.mlir")
            # What a run decides has no value before it.
            if row["op"] != "dmir.define_dims":
                self.assertTrue(row["interpreter"], f"{row['op']}: unknown to the interpreter")

    def test_onnx_table(self):
        self.assertIn("Conv", self.run_tool("--print-ops", "--input-format", "onnx").stdout)

    def test_readme_is_fresh(self):
        result = subprocess.run([sys.executable, REPO / "tools/scripts/update_readme.py", "--check", BIN / "dmxc"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


class Ends(Base):
    def start_compile(self, *arguments):
        process = subprocess.Popen([str(BIN / "dmxc"), str(DIGITS), "-o", "o.bundle", "--dim", "batch=16", "--progress", "plain", *arguments], cwd=self.dir,
                                   stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(self.dir)})
        for line in process.stderr:
            if "codegen" in line:
                return process
        self.fail("the compile ended before codegen")

    def test_interrupt_leaves_nothing(self):
        before = sorted(os.listdir(self.dir))
        process = self.start_compile()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_crash_is_70_with_a_reproducer_that_works(self):
        process = self.start_compile("--reproducer", "repro")
        process.send_signal(signal.SIGSEGV)
        _, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 70)
        self.assertIn("internal error: segmentation fault in codegen", err)
        self.assertIn("dmxc --from schedule", err)
        self.assertIn("digits.onnx", (self.dir / "repro/command.txt").read_text())
        command = re.search(r"run: dmxc (--from .*)", err)[1]
        self.assertIn(f"--allow-external-data '{DIGITS.resolve().parent}'", command)
        self.run_tool(*shlex.split(command), "-o", "again.bundle")
        self.assertFalse((self.dir / "o.bundle").exists())

    def test_old_output_survives_a_failed_compile(self):
        out = self.dir / "o"
        self.run_tool(self.small, "-o", out)
        before = out.read_bytes()
        self.small.write_text(SMALL.replace("axis = 1", "axis = 7"))
        self.run_tool(self.small, "-o", out, code=1)
        self.assertEqual(out.read_bytes(), before)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
