#!/usr/bin/env python3
"""dmxc: what it writes, phase by phase and as programs use it. Usage: dmxc_bundles_test.py BIN REPO [unittest arguments]"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

from dmxc_case import BIN, REPO, DIGITS, SMALL, SCALAR_AND_VECTOR, onnx_with_external_weights, onnx_with_sequences, sequence_of, Base, answers_of


class Pipeline(Base):
    PHASES = ["frontend", "partition", "memory", "schedule"]

    def test_emit_and_from_give_the_same_bundle(self):
        self.run_tool(DIGITS, "-o", "direct.bundle", "--dim", "batch=2")
        direct = self.entries(self.dir / "direct.bundle")
        for phase in self.PHASES:
            self.run_tool(DIGITS, "--emit", phase, "-o", f"{phase}.mlir", "--dim", "batch=2")
            self.run_tool(f"{phase}.mlir", "--from", phase, "-o", f"{phase}.bundle", "--allow-external-data", DIGITS.parent)
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

    def test_save_temps_of_devices(self):
        for target, wanted in (("corsair", {".mlir", ".dmxasm"}), ("cuda", {".mlir", ".ll", ".ptx"}), ("aie", {".mlir"})):
            if f"\n{target}" not in self.run_tool("--print-targets").stdout:
                continue
            with self.subTest(target):
                self.run_tool(self.small, "-o", "o", "-t", target, "--save-temps", f"temps-{target}")
                found = [path for path in (self.dir / f"temps-{target}").rglob("*") if path.is_file()]
                self.assertLessEqual(wanted, {path.suffix for path in found})
                self.assertTrue(all(path.stat().st_size for path in found))
                (self.dir / "file").write_text("")
                message = self.run_tool(self.small, "-o", "no", "-t", target, "--save-temps", "file/temps", code=3).stderr
                self.assertIn("file/temps", message)
                self.assertFalse((self.dir / "no").exists())

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
        steps = [line for line in lines if line.startswith("[") and not re.search(r"\(\d+ s\)$", line)]
        self.assertEqual([line.split()[0] for line in steps], [f"[{i}/7]" for i in range(1, 8)])

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


class Digits(Base):
    """What tools/demo shows, with its accuracy checked."""

    def test_accuracy(self):
        digits = REPO / "tools/digits"
        self.run_tool(DIGITS, "-o", "d.bundle", "--dim", "batch=360")
        self.run_tool("d.bundle", "--input", f"image={digits}/images.npy", "--output-dir", "answers", tool="dmx-run")
        shown = subprocess.run([digits / "show.py", digits / "images.npy", digits / "labels.npy", self.dir / "answers"], capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stdout + shown.stderr)
        self.assertIn("353 of 360 test images right: 98.06 %", shown.stdout)


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


class Consumers(Base):
    """Programs outside the project, against an installed tree."""

    def setUp(self):
        super().setUp()
        self.prefix = self.dir / "prefix"
        self.command("cmake", "--install", BIN.parent, "--prefix", self.prefix)
        self.examples = REPO / "tools/examples"
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

    def expect_answers(self, *command):
        """All images on stdin."""
        libraries = next(self.prefix.rglob("dmxrt.pc")).parent.parent
        result = subprocess.run([*map(str, command)], cwd=self.dir, input=self.images.read_bytes()[128:], capture_output=True, timeout=300,
                                env={**os.environ, "LD_LIBRARY_PATH": str(libraries)})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([int(line) for line in result.stdout.split()], self.expected)

    def test_c_and_cpp_with_pkg_config(self):
        """Shared and static."""
        self.run_tool(DIGITS, "-o", "digits.bundle")
        flags = "$(pkg-config --cflags --libs dmxrt)"
        self.command("sh", "-c", f"cc -std=c11 -Wall -Wextra -Werror {self.examples}/digits.c -o c {flags}")
        self.command("sh", "-c", f"c++ -std=c++20 -Wall -Wextra -Wpedantic -Werror {self.examples}/digits.cpp -o cpp {flags}")
        self.command("sh", "-c", f"cc {self.examples}/digits.c -o static $(pkg-config --static --cflags --libs dmxrt | sed 's/-ldmxrt/-l:libdmxrt.a/')")
        self.assertNotIn("libdmxrt", self.command("ldd", "static"))
        for program in ("c", "cpp", "static"):
            self.expect_answers(self.dir / program, "digits.bundle")
        for program in ("c", "cpp"):
            result = subprocess.run([self.dir / program, "absent.bundle"], cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    env={**os.environ, "LD_LIBRARY_PATH": str(next(self.prefix.rglob("dmxrt.pc")).parent.parent)})
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"^digits: .+: .*absent\.bundle")

    def test_python(self):
        """The script of the README."""
        script = re.search(r"```python\n(.*?)```", (REPO / "README.md").read_text(), re.S).group(1)
        if subprocess.run(["/usr/bin/python3", "-c", "import numpy"], capture_output=True).returncode:
            self.skipTest("numpy is not there")
        library = next(path for path in self.prefix.rglob("libdmxrt.so*"))
        self.assertLessEqual(len(script.splitlines()), 10)
        self.run_tool(DIGITS, "-o", "open.bundle")
        for arguments in ('"%s"', '"%s", load="copy"'):
            text = script.replace('"build/digits.bundle"', arguments % (self.dir / "open.bundle"))
            result = subprocess.run(["/usr/bin/python3", "-c", text], cwd=REPO, capture_output=True, text=True, timeout=300,
                                    env={**os.environ, "PYTHONPATH": str(REPO / "tools/python"), "PYTHONDONTWRITEBYTECODE": "1",
                                         "DMXRT_LIBRARY": str(library)})
            self.assertEqual(result.returncode, 0, result.stderr)
            said, answers = result.stdout.split("\n", 1)
            self.assertIn("(image: float32[batch, 1, 8, 8]) -> (probabilities: float32[batch, 10])>", said)
            self.assertEqual(list(map(int, re.findall(r"\d+", answers))), self.expected)

    def test_python_says_what_is_wrong(self):
        if subprocess.run(["/usr/bin/python3", "-c", "import numpy"], capture_output=True).returncode:
            self.skipTest("numpy is not there")
        library = next(path for path in self.prefix.rglob("libdmxrt.so*"))
        text = """import dmxrt, numpy, os, typing
def refused(call, *words):
    try:
        call()
    except dmxrt.Error as error:
        assert all(word in str(error) for word in words), error
    else:
        raise SystemExit("not refused")
os.environ["DMXRT_LIBRARY"] = "/absent/libdmxrt.so"
refused(lambda: dmxrt.Session("d.bundle"), "'/absent/libdmxrt.so'", "DMXRT_LIBRARY")
del os.environ["DMXRT_LIBRARY"]
os.environ.pop("LD_LIBRARY_PATH", None)
refused(lambda: dmxrt.Session("d.bundle"), "looked for", "'libdmxrt.so'", "set the environment variable DMXRT_LIBRARY")
refused(lambda: dmxrt.Session("d.bundle", library="/absent.so"), "'/absent.so'")
x = numpy.zeros((360, 1, 8, 8), "f4")
with dmxrt.Session("d.bundle", library=%r) as session:
    a, b = session(x), session(image=x)
    assert (a["probabilities"] == b["probabilities"]).all()
    refused(lambda: session(x, x), "2 arrays for 1 inputs")
    refused(lambda: session(x, image=x), "by position and by name")
    refused(lambda: session(picture=x), "not given: image", "not among them: picture", "image: float32[360, 1, 8, 8]")
for function in (dmxrt.Session.run, dmxrt.Session.__call__, dmxrt.Session.bind, dmxrt.load_library, dmxrt.read_public_key):
    assert "return" in function.__annotations__, function
""" % str(library)
        result = subprocess.run(["/usr/bin/python3", "-c", text], cwd=self.dir, capture_output=True, text=True, timeout=300,
                                env={**os.environ, "PYTHONPATH": str(REPO / "tools/python"), "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_cmake_in_a_project_of_c(self):
        """Shared and static, with a bundle that is compiled beside them."""
        (self.dir / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(app C)
find_package(DmxRuntime 0.1 REQUIRED)
dmxc_add_bundle(digits MODEL {DIGITS} TARGETS cpu:x86-64-v3 OPTIONS -q)
foreach(library dmxrt dmxrt_static)
  add_executable(with_${{library}} {self.examples}/digits.c)
  target_link_libraries(with_${{library}} PRIVATE DmxRuntime::${{library}})
endforeach()
""")
        self.command("cmake", "-S", ".", "-B", "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.command("cmake", "--build", "b")
        for library in ("dmxrt", "dmxrt_static"):
            self.expect_answers(self.dir / f"b/with_{library}", "b/digits.bundle")
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

    def test_open_dims_are_those_of_the_inputs(self):
        data = self.dir / "digits"
        data.mkdir()
        shutil.copy(REPO / "tools/digits/images.npy", data / "image.npy")
        out = self.run_tool(DIGITS, "--inputs", data, "--per-node", tool="dmx-compare").stdout
        self.assertIn("PASS output 'probabilities'", out)
        self.assertIn("no node differs among", out)

    def test_wrong_shapes(self):
        data = self.write_input()
        self.small.write_text(SMALL.replace("4x8xf32", '?x9xf32, #dmir.dims<"batch">'))
        err = self.run_tool(self.small, "--inputs", data, tool="dmx-compare", code=2).stderr
        self.assertIn("input 'x': the file has f32 4x8, the model wants f32 batchx9", err)

    def test_missing_inputs(self):
        self.run_tool(self.small, "--inputs", self.dir / "absent", tool="dmx-compare", code=3)

    def test_shorter_numbers_are_judged_as_a_whole(self):
        """Products of bf16 are some thousandths off: too much for each element, little for all; every node says how much."""
        ask = [DIGITS, "--random-inputs", "1"]
        outs = ["--", "--dim", "batch=3"]
        self.run_tool(*ask, "--", "--dim", "batch=3", "--numerics", "bf16", tool="dmx-compare", code=5)
        out = self.run_tool(*ask, "--numerics", "bf16", "--per-node", *outs, tool="dmx-compare").stdout
        self.assertRegex(out, r"PASS output 'probabilities': relative RMS error \d")
        errors = {name: float(rms) for rms, name in re.findall(r"^ *(\S+e\S+) +\S+e\S+  '(.*)'$", out, re.M)}
        products = [rms for name, rms in errors.items() if "matmul" in name]
        self.assertTrue(products and all(1e-5 < rms < 1.5e-2 for rms in products), out)
        self.assertIn("FAIL", self.run_tool(*ask, "--numerics", "bf16", "--max-rms", "1e-6", *outs, tool="dmx-compare", code=5).stdout)
        same = self.run_tool(*ask, "--numerics", "strict", *outs, tool="dmx-compare").stdout
        self.assertNotIn("RMS", same)
        self.run_tool(DIGITS, "-o", "b")
        self.assertIn("--max-rms", self.run_tool(DIGITS, "b", "--random-inputs", "1", "--numerics", "bf16", tool="dmx-compare", code=2).stderr)
        self.run_tool(*ask, "--numerics", "b16", tool="dmx-compare", code=2)

    def test_tasks_name_their_arithmetic(self):
        self.run_tool(DIGITS, "--numerics", "bf16", "-o", "b")
        self.run_tool(DIGITS, "-o", "s")
        tasks = lambda bundle: json.loads(self.run_tool(bundle, "--what", "tasks", "--json", tool="dmx-inspect").stdout)
        rows = next(rows for key, rows in tasks("b").items() if key.startswith("tasks"))
        products = [row for row in rows if row["arithmetic"]]
        self.assertTrue(products)
        for row in products:
            self.assertEqual(row["arithmetic"], ["matmul bf16 bf16 -> f32"])
        self.assertLess(len(products), len(rows))
        self.assertNotIn("arithmetic", json.dumps(tasks("s")))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
