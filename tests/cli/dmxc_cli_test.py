#!/usr/bin/env python3
"""The command line contract of dmxc: exit codes, messages, files. Usage: dmxc_cli_test.py BIN REPO [unittest arguments]"""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

BIN = pathlib.Path(sys.argv[1]).resolve()
REPO = pathlib.Path(sys.argv[2]).resolve()
DIGITS = REPO / "tools/digits/digits.onnx"
DATA = pathlib.Path("/usr/share/libonnx-testdata/data/node")

SMALL = """func.func @main(%x: tensor<4x8xf32> {dmir.name = "x"}) -> (tensor<4x8xf32> {dmir.name = "y"}) {
  %0 = dmir.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("body/exp")
  %1 = dmir.softmax %0 {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("body/softmax")
  return %1 : tensor<4x8xf32>
}
"""

# A sum of one number needs no vectors, the exponentials do.
SCALAR_AND_VECTOR = """func.func @main(%x: tensor<4x8xf32> {dmir.name = "x"}, %n: tensor<1xi64> {dmir.name = "n"}) -> (tensor<4x8xf32> {dmir.name = "y"}, tensor<1xi64> {dmir.name = "m"}) {
  %0 = dmir.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("exp")
  %1 = dmir.add %n, %n : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64> loc("twice")
  return %0, %1 : tensor<4x8xf32>, tensor<1xi64>
}
"""


def field(number, value):
    """One protobuf field; ints as varints, everything else as bytes."""
    def varint(n):
        out = b""
        while True:
            out += bytes([n & 0x7F | (0x80 if n > 0x7F else 0)])
            n >>= 7
            if not n:
                return out
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def onnx_with_external_weights():
    """y = x + w, w (4 floats) in weights.bin."""
    def tensor_info(name):
        shape = field(1, field(1, 4))
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))
    location = field(13, field(1, "location") + field(2, "weights.bin"))
    weights = field(1, 4) + field(2, 1) + field(8, "w") + location + field(14, 1)
    node = field(1, "x") + field(1, "w") + field(2, "y") + field(3, "sum") + field(4, "Add")
    graph = field(1, node) + field(2, "g") + field(5, weights) + field(11, tensor_info("x")) + field(12, tensor_info("y"))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def onnx_with_sequences():
    """y = x, a sequence, with twice its first tensor at the end."""
    sequence = field(4, field(1, field(1, field(1, 1))))
    node = lambda op, inputs, output: field(1, b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, op))
    nodes = node("SequenceAt", ["x", "zero"], "a") + node("Add", ["a", "a"], "b") + node("SequenceInsert", ["x", "b"], "y")
    zero = field(2, 7) + field(8, "zero") + field(9, bytes(8))
    graph = nodes + field(2, "g") + field(5, zero) + field(11, field(1, "x") + field(2, sequence)) + field(12, field(1, "y") + field(2, sequence))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def sequence_of(name, *tensors):
    """A SequenceProto of vectors of f32."""
    data = [field(1, len(values)) + field(2, 1) + field(9, struct.pack(f"<{len(values)}f", *values)) for values in tensors]
    return field(1, name) + field(2, 1) + b"".join(field(3, tensor) for tensor in data)


class Base(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-cli-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.small = self.dir / "small.mlir"
        self.small.write_text(SMALL)

    def run_tool(self, *arguments, tool="dmxc", code=0, cwd=None, env=None):
        result = subprocess.run([str(BIN / tool), *map(str, arguments)], cwd=cwd or self.dir, capture_output=True, text=True, timeout=300,
                                env={**os.environ, "TMPDIR": str(self.dir), **(env or {})})
        self.assertEqual(result.returncode, code, f"{tool} {arguments}\n{result.stdout}\n{result.stderr}")
        return result

    def entries(self, bundle):
        with zipfile.ZipFile(bundle) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


class Messages(Base):
    def test_help_has_examples_first_and_groups(self):
        text = self.run_tool("--help").stdout
        self.assertLess(text.index("examples:"), text.index("common"))
        for word in ("input:", "placement:", "pipeline:", "diagnostics:", "build systems:", "query:", "-MD", "--emit"):
            self.assertIn(word, text)

    def test_every_flag_of_the_contract_is_in_the_help(self):
        text = self.run_tool("--help").stdout
        for flag in ("--output", "--target", "-O", "--jobs", "--input-format", "--shape", "--dim", "--entry", "--allow-external-data", "--place",
                     "--require-target", "--placement-report", "--emit", "--from", "--dump-phases", "--save-temps", "--schedule",
                     "--numerics", "--quiet", "--verbose", "--color", "--diagnostics", "-Werror", "--progress", "--time-report",
                     "--reproducer", "-MD", "-MF", "-MT", "--version", "--print-targets", "--print-target-info", "--print-ops",
                     "--print-phases", "--format", "--bundle-format"):
            self.assertRegex(text, rf"(?<![\w-]){re.escape(flag)}\b")

    def test_help_has_the_words_of_each_target_built_in_and_of_no_other(self):
        text = " ".join(self.run_tool("--help").stdout.split())
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
        self.assertIn("it has strict, bf16, int8-weights",
                      self.run_tool(self.small, "-o", "o", "--numerics", "sloppy", code=2).stderr)

    def test_wrong_texts_are_usage_errors(self):
        for arguments in (["--dim", "batch"], ["--dim", "n=5..2"], ["--dim", "n=x"], ["--shape", "x=1x-2"], ["-O9"], ["-j0"],
                          ["--place", "x"], ["--require-target", "cpu:200"], ["-q", "-v"], ["-MF", "f"], ["second.onnx"],
                          ["-o", "-"], ["--from", "memory", "--emit", "partition"]):
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
        self.assertRegex(err, r"small\.mlir: node 'body/softmax': error: C1: axis 7")
        self.small.write_text(SMALL.replace("axis = 1", "axis = 7").replace(' loc("body/softmax")', ""))
        err = self.run_tool(self.small, "-o", "o", code=1).stderr
        self.assertRegex(err, r"small\.mlir:3:8: error: C1: axis 7")

    def test_json_diagnostics(self):
        self.small.write_text(SMALL.replace("axis = 1", "axis = 7"))
        err = self.run_tool(self.small, "-o", "o", "--diagnostics", "json", code=1).stderr
        for line in err.splitlines():
            message = json.loads(line)
            self.assertEqual(message["severity"], "error")
            self.assertIn("C1", message["message"])

    def test_colour(self):
        self.assertIn("\x1b[", self.run_tool("absent.onnx", "--color", "always", code=3).stderr)
        self.assertNotIn("\x1b[", self.run_tool("absent.onnx", "--color", "auto", code=3).stderr)

    def test_warnings_become_errors(self):
        arguments = [self.small, "-o", "o", "--place", "nothing/*=cpu"]
        self.assertIn("warning: ", self.run_tool(*arguments).stderr)
        (self.dir / "o").unlink()
        self.assertIn("error: ", self.run_tool(*arguments, "-Werror", code=1).stderr)
        self.assertFalse((self.dir / "o").exists())

    def test_quiet_says_nothing(self):
        result = self.run_tool(self.small, "-o", "o", "-q")
        self.assertEqual(result.stdout + result.stderr, "")

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
        self.assertEqual(names, ["frontend", "partition", "memory", "schedule", "codegen"])

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


class Sequences(Base):
    def test_their_tensors_are_inputs_and_outputs(self):
        model = self.dir / "m.onnx"
        model.write_bytes(onnx_with_sequences())
        refused = self.run_tool(model, code=1).stderr
        self.assertIn("the input 'x' is a sequence", refused)
        self.assertIn("--shape x.0=DIMS", refused)
        self.run_tool(model, "--shape", "x.0=3", "--shape", "x.1=2", "-o", "m.bundle")
        (self.dir / "set").mkdir()
        (self.dir / "set/input_0.pb").write_bytes(sequence_of("x", [1, 2, 3], [4, 5]))
        (self.dir / "set/output_0.pb").write_bytes(sequence_of("y", [1, 2, 3], [4, 5], [2, 4, 6]))
        self.run_tool("m.bundle", "--inputs", "set", "--expect", "set", tool="dmx-run")
        (self.dir / "set/output_0.pb").write_bytes(sequence_of("y", [1, 2, 3], [4, 5], [2, 4, 7]))
        self.assertIn("y.2", self.run_tool("m.bundle", "--inputs", "set", "--expect", "set", tool="dmx-run", code=5).stdout)

    def test_none_is_for_what_may_be_empty(self):
        (self.dir / "m.onnx").write_bytes(onnx_with_external_weights())
        (self.dir / "weights.bin").write_bytes(bytes(16))
        self.assertIn("--shape x=none", self.run_tool("m.onnx", "--shape", "x=none", code=2).stderr)


class Pipeline(Base):
    PHASES = ["frontend", "partition", "memory", "schedule"]

    def test_emit_and_from_give_the_same_bundle(self):
        self.run_tool(DIGITS, "-o", "direct.bundle", "--dim", "batch=2")
        direct = self.entries(self.dir / "direct.bundle")
        for phase in self.PHASES:
            self.run_tool(DIGITS, "--emit", phase, "-o", f"{phase}.mlir", "--dim", "batch=2")
            self.run_tool(f"{phase}.mlir", "--from", phase, "-o", f"{phase}.bundle")
            resumed = self.entries(self.dir / f"{phase}.bundle")
            self.assertEqual(direct.keys(), resumed.keys())
            for name in direct:
                if name != "manifest.json":
                    self.assertEqual(direct[name], resumed[name], f"{phase}: {name}")

    def test_emit_goes_to_stdout_without_o(self):
        self.assertIn("dmir.region", self.run_tool(self.small, "--emit", "partition").stdout)
        self.assertIn("dlir.program", self.run_tool(self.small, "--emit", "schedule", "-o", "-").stdout)
        json.loads(self.run_tool(self.small, "--emit", "codegen").stdout)

    def test_nodes_survive_to_the_task_graph(self):
        graph = json.loads(self.run_tool(self.small, "--emit", "codegen").stdout)
        nodes = [node for task in graph["graphs"][0]["tasks"] for node in task["nodes"]]
        self.assertEqual(sorted(nodes), ["body/exp", "body/softmax"])

    def test_dump_phases_parse_again(self):
        self.run_tool(self.small, "-o", "o", "--dump-phases", "phases")
        files = sorted(path.name for path in (self.dir / "phases").iterdir())
        self.assertEqual(files, ["1-frontend.mlir", "2-partition.mlir", "3-memory.mlir", "4-schedule.mlir", "5-codegen.json"])
        for name in files[:-1]:
            self.run_tool(self.dir / "phases" / name, tool="dmx-opt")
        json.loads((self.dir / "phases" / files[-1]).read_text())

    def test_from_wants_that_phase(self):
        err = self.run_tool(self.small, "--from", "schedule", "-o", "o", code=1).stderr
        self.assertIn("[phase-text]", err)

    def test_schedule_script_sets_a_strategy(self):
        (self.dir / "script.mlir").write_text("""module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %regions = transform.collect_matching @region in %root : (!transform.any_op) -> !transform.any_op
    transform.annotate %regions "chosen_by_script" : !transform.any_op
    transform.yield
  }
  transform.named_sequence @region(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
    transform.match.operation_name %op ["dmir.region"] : !transform.any_op
    transform.yield %op : !transform.any_op
  }
}
""")
        text = self.run_tool(self.small, "--emit", "partition", "--schedule", "script.mlir").stdout
        self.assertIn("chosen_by_script", text)
        (self.dir / "empty.mlir").write_text("module {}\n")
        self.assertIn("__transform_main", self.run_tool(self.small, "--schedule", "empty.mlir", "-o", "o", code=1).stderr)

    def test_save_temps(self):
        self.run_tool(self.small, "-o", "o", "--save-temps", "temps")
        suffixes = {path.suffix for path in (self.dir / "temps").rglob("*") if path.is_file()}
        self.assertLessEqual({".mlir", ".ll", ".s"}, suffixes)

    def test_placement(self):
        self.run_tool(self.small, "-o", "o", "--place", "body/*=cpu", "--require-target", "cpu:100", "--placement-report", "p.txt")
        report = (self.dir / "p.txt").read_text()
        self.assertRegex(report, r"(?m)^body/exp\tdmir.exp\tcpu\t")

    def test_time_report(self):
        report = self.run_tool(self.small, "-o", "o", "-q", "--time-report=json").stderr
        phases = [row["phase"] for row in json.loads(report)["phases"]]
        self.assertEqual(phases, ["import", "frontend", "partition", "memory", "schedule", "codegen", "write"])
        self.assertIn("total", self.run_tool("--time-report", self.small, "-o", "o").stderr)

    def test_progress(self):
        lines = self.run_tool(self.small, "-o", "o", "--progress", "plain").stderr.splitlines()
        self.assertEqual(sum(line.startswith("[") for line in lines), 7)

    def test_response_file(self):
        (self.dir / "args").write_text(f"# a comment\n'{self.small}' -o \"out file.bundle\"\n-q @more\n")
        (self.dir / "more").write_text("-O1\n")
        self.run_tool("@args")
        self.assertTrue((self.dir / "out file.bundle").exists())
        (self.dir / "more").write_text("@args")
        self.assertIn("includes itself", self.run_tool("@args", code=2).stderr)

    def test_directory_bundle(self):
        self.run_tool(self.small, "-o", "tree", "--bundle-format", "dir")
        self.assertTrue((self.dir / "tree/manifest.json").exists())

    def test_two_levels_share_a_bundle(self):
        self.run_tool(self.small, "-o", "o", "-t", "cpu:x86-64-v2+x86-64-v3")
        names = self.entries(self.dir / "o")
        self.assertIn("code/cpu/x86-64-v2/kernels.so", names)
        self.assertIn("code/cpu/x86-64-v3/kernels.so", names)

    def test_default_holds_two_levels_and_equal_kernels_once(self):
        self.small.write_text(SCALAR_AND_VECTOR)
        self.run_tool(self.small, "-o", "o", "-j1")
        self.run_tool(self.small, "-o", "p", "-j7")
        files = self.entries(self.dir / "o")
        self.assertEqual(files, self.entries(self.dir / "p"), "results do not depend on the threads")
        manifest = json.loads(files["manifest.json"])
        self.assertEqual([(t["arch"], t["entry"]) for t in manifest["targets"]],
                         [(f"x86-64-{v}", f"code/cpu/x86-64-{v}/kernels.so") for v in ("v3", "v4")])
        kernels = {name: set(re.findall(rb"k\d+_\w+", data)) for name, data in files.items() if name.startswith("code/")}
        self.assertEqual(kernels, {"code/cpu/common/kernels.so": {b"k1_elementwise"}, "code/cpu/x86-64-v3/kernels.so": {b"k0_elementwise"},
                                   "code/cpu/x86-64-v4/kernels.so": {b"k0_elementwise"}})
        self.assertEqual(manifest["format"]["minor"], 2)
        self.assertIn("common-code", manifest["required"])
        self.run_tool("o", "--check", tool="dmx-inspect")
        flags = pathlib.Path("/proc/cpuinfo").read_text().split()
        for level, has in (("x86-64-v3", "avx2" in flags), ("x86-64-v4", "avx512vl" in flags)):
            if has:
                out = self.run_tool("o", "--random-inputs", "1", "--isa", level, tool="dmx-run").stdout
                self.assertIn(f"ran on cpu {level}\n", out)
        self.assertIn("x86-64-v3 and x86-64-v4", self.run_tool("--print-target-info", "cpu").stdout)

    def test_kernels_need_no_symbols(self):
        self.run_tool(DIGITS, "-o", "o", "--dim", "batch=1")
        for name, data in self.entries(self.dir / "o").items():
            if name.startswith("code/"):
                (self.dir / "k.so").write_bytes(data)
                listing = subprocess.run(["nm", "-D", "--undefined-only", self.dir / "k.so"], capture_output=True, text=True, check=True)
                self.assertEqual(listing.stdout, "")


class Determinism(Base):
    def test_same_bytes_from_other_folders_and_jobs(self):
        (self.dir / "a").mkdir()
        (self.dir / "b").mkdir()
        shutil.copy(DIGITS, self.dir / "b/digits.onnx")
        self.run_tool(DIGITS, "-o", "1.bundle", "-j1", "--dim", "batch=4", cwd=self.dir / "a")
        self.run_tool("digits.onnx", "-o", "2.bundle", "-j2", "--dim", "batch=4", cwd=self.dir / "b")
        self.assertEqual((self.dir / "a/1.bundle").read_bytes(), (self.dir / "b/2.bundle").read_bytes())

    def test_options_do_change_the_bundle(self):
        self.run_tool(DIGITS, "-o", "1.bundle", "--dim", "batch=4")
        self.run_tool(DIGITS, "-o", "2.bundle", "--dim", "batch=4", "-O0")
        self.assertNotEqual((self.dir / "1.bundle").read_bytes(), (self.dir / "2.bundle").read_bytes())


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
        self.run_tool("--from", "schedule", "repro/last-good.mlir", "-o", "again.bundle")
        self.assertFalse((self.dir / "o.bundle").exists())

    def test_old_output_survives_a_failed_compile(self):
        out = self.dir / "o"
        self.run_tool(self.small, "-o", out)
        before = out.read_bytes()
        self.small.write_text(SMALL.replace("axis = 1", "axis = 7"))
        self.run_tool(self.small, "-o", out, code=1)
        self.assertEqual(out.read_bytes(), before)


class Digits(Base):
    """What tools/demo shows, with its accuracy checked."""

    def test_accuracy(self):
        digits = REPO / "tools/digits"
        self.run_tool(DIGITS, "-o", "d.bundle", "--dim", "batch=360")
        self.run_tool("d.bundle", "--input", f"image={digits}/images.npy", "--output-dir", "answers", tool="dmx-run")
        shown = subprocess.run([digits / "show.py", digits / "images.npy", digits / "labels.npy", self.dir / "answers"], capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stdout + shown.stderr)
        self.assertIn("353 of 360 test images right: 98.06 %", shown.stdout)


def answers_of(folder):
    """The classes that an output [n, 10] of floats in a folder of .npy files names."""
    raw = next(folder.glob("*.npy")).read_bytes()
    raw = raw[10 + int.from_bytes(raw[8:10], "little"):]
    rows = [struct.unpack_from("<10f", raw, at) for at in range(0, len(raw), 40)]
    return [row.index(max(row)) for row in rows]


class Corsair(Base):
    """The accelerator with block floating point: what a user sees of it."""

    def setUp(self):
        super().setUp()
        if "corsair" not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build has no target corsair")

    def compile(self, *arguments, output="d.bundle", model=DIGITS):
        return self.run_tool(model, "-t", "corsair", "-o", output, *arguments)

    def test_digits_are_recognised_alike(self):
        images = REPO / "tools/digits/images.npy"
        self.run_tool(DIGITS, "-o", "c.bundle", "--dim", "batch=360")
        self.compile("--dim", "batch=360", "--require-target", "corsair:95")
        for bundle, folder in (("c.bundle", "cpu"), ("d.bundle", "device")):
            self.run_tool(bundle, "--input", f"image={images}", "--output-dir", folder, tool="dmx-run")
        cpu, device = answers_of(self.dir / "cpu"), answers_of(self.dir / "device")
        equal = sum(a == b for a, b in zip(cpu, device))
        print(f"{equal} of {len(cpu)} answers are the same")
        self.assertGreaterEqual(equal, 0.99 * len(cpu))

    def test_same_bytes(self):
        self.compile("--dim", "batch=4", "-j1", output="1.bundle")
        self.compile("--dim", "batch=4", "-j2", output="2.bundle")
        self.assertEqual((self.dir / "1.bundle").read_bytes(), (self.dir / "2.bundle").read_bytes())
        self.run_tool("1.bundle", "--diff", "2.bundle", tool="dmx-inspect")

    def test_formats_are_printed(self):
        result = self.compile("--dim", "batch=4", "--numerics", "basic")
        rows = {tuple(line.split()) for line in result.stderr.split("formats:\n")[1].splitlines()}
        self.assertIn(("/hidden/Gemm", "matmul", "BFP16_64R", "BFP16_64C", "BFP32_1"), rows)
        self.assertIn(("/hidden/Gemm", "add", "BFP32_1", "BFP32_1", "f16"), rows)
        self.assertIn(("/Softmax", "softmax", "f16", "f16"), rows)
        refused = self.run_tool(DIGITS, "-t", "corsair", "-o", "x.bundle", "--numerics", "strict", code=2)
        self.assertIn("it has basic", refused.stderr)

    def test_phases_are_entered_again(self):
        """Each phase's text gives the same program; the last has the device's queues."""
        self.compile("--dim", "batch=4", "--dump-phases", "phases")
        for phase in sorted((self.dir / "phases").glob("*.mlir")):
            self.run_tool(phase, "--from", phase.stem.split("-")[-1], "-t", "corsair", "-o", "again.bundle")
            differ = self.run_tool("d.bundle", "--diff", "again.bundle", tool="dmx-inspect", code=5)
            self.assertEqual(set(re.findall(r"^\S+ \S+", differ.stdout, re.M)), {"manifest model.sha256", "manifest model.source"})
        self.assertIn("corsair.matmul", phase.read_text())

    def test_dispatches_bring_what_programs_take(self):
        self.compile("--dim", "batch=4", "--emit", "schedule", output="s.mlir")
        text = (self.dir / "s.mlir").read_text()
        for changed, message in ((text.replace("dlir.dispatch @k0", "dlir.dispatch @x0"), "'x0_dmx_isa', which is not in the text"),
                                 (re.sub(r"(dlir.dispatch @\w+)\([^)]*\)", r"\1(%0)", text), "which takes 10 buffers, not 2")):
            self.assertNotEqual(changed, text)
            (self.dir / "c.mlir").write_text(changed)
            self.assertIn(message, self.run_tool("c.mlir", "--from", "schedule", "-t", "corsair", "-o", "c.bundle", code=1).stderr)

    def test_a_missing_token_is_a_race(self):
        self.compile("--dim", "batch=4", "--emit", "schedule", output="s.mlir")
        text = (self.dir / "s.mlir").read_text()
        group = re.search(r' wait\(%\d+\)(?= .*\{\n.*corsair\.simd)', text)
        (self.dir / "s.mlir").write_text(text[:group.start()] + text[group.end():])
        self.run_tool("s.mlir", "--from", "schedule", "-t", "corsair", "-o", "race.bundle")
        result = self.run_tool("race.bundle", "--random-inputs", "1", tool="dmx-run", code=1)
        self.assertRegex(result.stderr, "race|poison")

    def test_a_program_without_an_encoding(self):
        """The message has the encoder's reason."""
        self.compile("--dim", "batch=4", "--emit", "schedule", output="s.mlir")
        text = (self.dir / "s.mlir").read_text()
        (self.dir / "s.mlir").write_text(re.sub(r'(dlir\.memory "GM" .*) at \d+', r"\1 at 99999936", text, count=1))
        result = self.run_tool("s.mlir", "--from", "schedule", "-t", "corsair", "-o", "x.bundle", code=1)
        self.assertRegex(result.stderr, "over capacity: '.*' is \\d+ bytes at 99999936, GM holds 16777216")

    def test_the_host_computes_what_the_device_refuses(self):
        """exp and softmax on the device, atan and acos between and after them on the host."""
        row = "tensor<4x8xf32>"
        ops = [("exp", ""), ("atan", ""), ("softmax", " {axis = 1 : i64}"), ("acos", "")]
        text = "".join(f'  %{i + 1} = dmir.{op} %{i}{attributes} : ({row}) -> {row} loc("body/{op}")\n'
                       for i, (op, attributes) in enumerate(ops))
        (self.dir / "mixed.mlir").write_text(
            f'func.func @main(%0: {row} {{dmir.name = "x"}}) -> ({row} {{dmir.name = "y"}}) {{\n{text}  return %4 : {row}\n}}\n')
        result = self.run_tool("mixed.mlir", "-t", "corsair", "-o", "mixed.bundle", "--placement-report", "-")
        self.assertIn("body/atan\tdmir.atan\tcpu\t1\telementwise\tcorsair: 'dmir.atan' is not lowered to the device",
                      result.stdout)
        self.assertIn("corsair 2 of 4 nodes in 2 tasks; cpu 2 of 4 nodes in 2 tasks", result.stderr)
        self.run_tool("mixed.mlir", "-o", "host.bundle")
        for bundle in ("mixed.bundle", "host.bundle"):
            self.run_tool(bundle, "--random-inputs", "3", "--output-dir", bundle + ".out", tool="dmx-run")
        self.run_tool("mixed.bundle", "--random-inputs", "3", "--expect", "host.bundle.out", "--min-sqnr", "50", tool="dmx-run")
        self.run_tool("mixed.mlir", "-t", "corsair", "-o", "x.bundle", "--require-target", "corsair:95", code=4)

    def test_teams_and_machines(self):
        answers = set()
        for quads in (1, 2, 8, 32):
            self.run_tool(DIGITS, "-t", f"corsair:quads={quads}", "-o", "q.bundle", "--dim", "batch=32")
            self.run_tool("q.bundle", "--random-inputs", "1", "--output-dir", f"q{quads}", "--device-opt", f"skew_seed={quads + 1}",
                          "--device-opt", "report=r.json", tool="dmx-run")
            answers.add(next((self.dir / f"q{quads}").glob("*.npy")).read_bytes())
            self.assertEqual(json.loads((self.dir / "r.json").read_text())["last"][0]["main"]["quads"], quads)
        self.assertEqual(len(answers), 1)
        machine = json.loads(self.run_tool("--print-target-info", "corsair").stdout)
        machine["name"] = "slow-card"
        machine["dma"]["setup_clocks"]["value"] = 500
        (self.dir / "slow.json").write_text(json.dumps(machine))
        self.run_tool(DIGITS, "-t", "corsair:slow.json", "-o", "s.bundle", "--dim", "batch=32")
        self.assertIn("code/corsair/slow-card/kernels.dmxisa", self.entries(self.dir / "s.bundle"))
        machine["clock_hz"]["value"] *= 2
        (self.dir / "wrong.json").write_text(json.dumps(machine))
        result = self.run_tool(DIGITS, "-t", "corsair:wrong.json", "-o", "w.bundle", "--dim", "batch=32", code=1)
        self.assertIn("int8_ops_per_second", result.stderr)
        for level, code in (("quads=0", 2), ("quads=33", 2), ("quads=x", 2), ("nothere.json", 3), ("fast", 2)):
            self.run_tool(DIGITS, "-t", f"corsair:{level}", "-o", "w.bundle", code=code)

    def test_weights_beyond_the_fast_memory(self):
        """4 x 16 MiB of weights where a quad holds 48 MiB: kept from the first run on, or fetched in every run."""
        row, weights = "tensor<1x4096xf32>", "tensor<4096x4096xf32>"
        text = "".join(f"  %c{i} = dmir.constant dense<{0.0001 * (i + 1)}> : {weights}\n"
                       f"  %{i + 1} = dmir.matmul %{i}, %c{i} : ({row}, {weights}) -> {row}\n" for i in range(4))
        (self.dir / "l.mlir").write_text(f'func.func @main(%0: {row} {{dmir.name = "x"}}) -> ({row} {{dmir.name = "y"}}) {{\n{text}  return %4 : {row}\n}}\n')
        result = self.run_tool("l.mlir", "-t", "corsair:quads=1+performance", "-o", "p.bundle", code=4)
        self.assertIn("ST holds 12582912 bytes, the model needs 17039360", result.stderr)
        self.run_tool("l.mlir", "-o", "host.bundle")
        self.run_tool("host.bundle", "--random-inputs", "3", "--output-dir", "host", tool="dmx-run")
        for level, fetched in (("quads=1", True), ("quads=8+performance", False), ("quads=4+capacity", True)):
            self.run_tool("l.mlir", "-t", "corsair:" + level, "-o", "d.bundle")
            self.run_tool("d.bundle", "--random-inputs", "3", "--expect", "host", "--min-sqnr", "30", "--device-opt", "report=r.json",
                          tool="dmx-run")
            read = json.loads((self.dir / "r.json").read_text())["last"][0]["main"]["read_bytes"]["DDR"]
            self.assertEqual(read > 4 * 4096 * 4096, fetched, level)

    def test_products_along_k(self):
        """Only where a quad would have neither columns nor rows of its own; sums are then added over quads."""
        for rows, depth, columns, level, along in ((1, 16384, 128, "quads=4", True), (1, 16384, 128, "quads=1", False),
                                                   (512, 512, 512, "quads=8", False), (1, 4096, 4096, "quads=4", False)):
            x, w, y = f"tensor<{rows}x{depth}xf32>", f"tensor<{depth}x{columns}xf32>", f"tensor<{rows}x{columns}xf32>"
            (self.dir / "k.mlir").write_text(
                f'func.func @main(%x: {x} {{dmir.name = "x"}}) -> ({y} {{dmir.name = "y"}}) {{\n  %w = dmir.constant dense<0.01> : {w}\n'
                f"  %y = dmir.matmul %x, %w : ({x}, {w}) -> {y}\n  return %y : {y}\n}}\n")
            text = self.run_tool("k.mlir", "-t", "corsair:" + level, "--emit", "partition", "-o", "-").stdout
            self.assertEqual("along_k = 1" in text, along, f"{rows}x{depth}x{columns} {level}")
            self.run_tool("k.mlir", "-t", "corsair:" + level, "-o", "k.bundle")
            self.run_tool("k.mlir", "-o", "host.bundle")
            self.run_tool("host.bundle", "--random-inputs", "3", "--output-dir", "host", tool="dmx-run")
            self.run_tool("k.bundle", "--random-inputs", "3", "--expect", "host", "--min-sqnr", "30", tool="dmx-run")

    def test_a_model_too_large_for_the_device(self):
        """A value that GM cannot hold is the host's; values that it cannot hold at once are an error."""
        (self.dir / "large.mlir").write_text(SMALL.replace("4x8", "8192x8192"))
        result = self.run_tool("large.mlir", "-t", "corsair", "-o", "l.bundle", "--placement-report", "-")
        self.assertIn("corsair: GM holds 16777216 bytes, and a value takes 134217728", result.stdout)
        (self.dir / "large.mlir").write_text(SMALL.replace("4x8", "4096x2048"))
        result = self.run_tool("large.mlir", "-t", "corsair", "-o", "x.bundle", code=4)
        self.assertIn("GM holds 16777216 bytes, the model needs 33554432; a smaller batch", result.stderr)
        self.assertFalse((self.dir / "x.bundle").exists())


class Consumers(Base):
    """Programs outside the project, against an installed tree."""

    def setUp(self):
        super().setUp()
        self.prefix = self.dir / "prefix"
        self.command("cmake", "--install", BIN.parent, "--prefix", self.prefix)
        self.program = REPO / "tools/digits/answer.c"
        self.images = REPO / "tools/digits/images.npy"
        self.run_tool(DIGITS, "-o", "d.bundle", "--dim", "batch=360")
        self.run_tool("d.bundle", "--input", f"image={self.images}", "--output-dir", "answers", tool="dmx-run")
        self.expected = answers_of(self.dir / "answers")

    def command(self, *arguments):
        pc = next(self.prefix.rglob("dmxrt.pc"), None)
        env = {**os.environ, **({"PKG_CONFIG_PATH": str(pc.parent), "LD_LIBRARY_PATH": str(pc.parent.parent)} if pc else {})}
        result = subprocess.run([*map(str, arguments)], cwd=self.dir, capture_output=True, text=True, timeout=300, env=env)
        self.assertEqual(result.returncode, 0, f"{arguments}\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def expect_answers(self, program, bundle):
        self.assertEqual([int(line) for line in self.command(program, bundle, self.images).split()], self.expected)

    def test_c11_with_pkg_config(self):
        self.command("sh", "-c", f"gcc -std=c11 -Wall -Wextra -Werror {self.program} -o answer $(pkg-config --cflags --libs dmxrt)")
        self.expect_answers("./answer", "d.bundle")

    def test_python(self):
        """The script of the README."""
        script = re.search(r"```python\n(.*?)```", (REPO / "README.md").read_text(), re.S).group(1)
        if subprocess.run(["/usr/bin/python3", "-c", "import numpy"], capture_output=True).returncode:
            self.skipTest("numpy is not there")
        library = next(path for path in self.prefix.rglob("libdmxrt.so*"))
        self.assertLessEqual(len(script.splitlines()), 10)
        for arguments in ('"%s"', '"%s", load="copy"'):
            text = script.replace('"digits.bundle"', arguments % (self.dir / "d.bundle"))
            result = subprocess.run(["/usr/bin/python3", "-c", text], cwd=REPO, capture_output=True, text=True, timeout=300,
                                    env={**os.environ, "PYTHONPATH": str(REPO / "tools/python"), "PYTHONDONTWRITEBYTECODE": "1",
                                         "DMXRT_LIBRARY": str(library)})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(list(map(int, re.findall(r"\d+", result.stdout))), self.expected)

    def test_cmake(self):
        (self.dir / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(DmxRuntime 0.1 REQUIRED)
dmxc_add_bundle(digits MODEL {DIGITS} TARGETS cpu:x86-64-v3 OPTIONS --dim batch=360 -q)
add_executable(answer {self.program})
target_link_libraries(answer PRIVATE DmxRuntime::dmxrt)
""")
        self.command("cmake", "-S", ".", "-B", "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.command("cmake", "--build", "b")
        self.expect_answers("b/answer", "b/digits.bundle")
        self.assertIn("no work to do", self.command("cmake", "--build", "b"))


class Make(Base):
    def make(self):
        result = subprocess.run(["make", "-s"], cwd=self.dir, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout.count("compiling")

    def test_rebuilds_when_and_only_when_an_input_changes(self):
        (self.dir / "model.onnx").write_bytes(onnx_with_external_weights())
        (self.dir / "weights.bin").write_bytes(struct.pack("<4f", 1, 2, 3, 4))
        (self.dir / "Makefile").write_text(
            f"m.bundle: model.onnx\n\t@echo compiling\n\t{BIN}/dmxc -q model.onnx -o m.bundle -MD -MF m.d\n-include m.d\n")
        self.assertEqual(self.make(), 1)
        self.assertEqual(self.make(), 0)
        rule = (self.dir / "m.d").read_text()
        self.assertTrue(rule.startswith("m.bundle:"))
        self.assertIn("weights.bin", rule)
        first = (self.dir / "m.bundle").read_bytes()
        later = (self.dir / "m.bundle").stat().st_mtime + 5
        (self.dir / "weights.bin").write_bytes(struct.pack("<4f", 5, 6, 7, 8))
        os.utime(self.dir / "weights.bin", (later, later))
        self.assertEqual(self.make(), 1)
        self.assertNotEqual((self.dir / "m.bundle").read_bytes(), first)
        for name in ("m.bundle", "model.onnx"):
            later += 5
            os.utime(self.dir / name, (later, later))
        self.assertEqual(self.make(), 1)

    def test_mt_names_the_target(self):
        self.run_tool(self.small, "-o", "o", "-MD", "-MF", "d", "-MT", "some target")
        self.assertTrue((self.dir / "d").read_text().startswith("some\\ target:"))


class Compare(Base):
    def write_input(self):
        data = self.dir / "data"
        data.mkdir()
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 8), }"
        header += " " * (63 - (10 + len(header)) % 64) + "\n"
        (data / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                                     struct.pack("<32f", *[i / 16 - 1 for i in range(32)]))
        return data

    def test_equal(self):
        out = self.run_tool(self.small, "--inputs", self.write_input(), "--per-node", tool="dmx-compare").stdout
        self.assertIn("PASS output 'y'", out)
        self.assertIn("no node differs among 2 values", out)

    def test_a_different_bundle_is_found(self):
        self.run_tool(self.small, "-o", "good.bundle")
        self.small.write_text(SMALL.replace("dmir.exp", "dmir.neg"))
        out = self.run_tool(self.small, "good.bundle", "--inputs", self.write_input(), tool="dmx-compare", code=5).stdout
        self.assertIn("FAIL output 'y'", out)

    def test_missing_inputs(self):
        self.run_tool(self.small, "--inputs", self.dir / "absent", tool="dmx-compare", code=3)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
