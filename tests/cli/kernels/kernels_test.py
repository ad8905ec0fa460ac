#!/usr/bin/env python3
"""Kernels that users wrote: an argmax in C as an object and as bitcode, for a node of ONNX, of torch's text, of an exported program, and in the
place of an op; what it may not be, and what is said of it. Usage: kernels_test.py BIN REPO [unittest arguments]. Exit 77 without numpy or
a C compiler."""
import hashlib
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from dmxc_case import BIN, REPO, Base, field

sys.path[:0] = [str(REPO / "tests"), str(REPO / "tests/torch")]
import pt2file
from sampling import LONG, sample

CC, CLANG = shutil.which("gcc"), shutil.which("clang-22")
if not CC:
    print("SKIPPED: no C compiler")
    sys.exit(77)
EXAMPLE = REPO / "tools/examples/kernels"
FREE = ("-O2", "-c", "-fPIC", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-march=x86-64-v3")
SOURCES = ("onnx", "text", "pt2", "dmir")
MAIN = "int32_t argmax(void **b, const int64_t *d, int64_t begin, int64_t end, void *s)"


def onnx_model():
    """y = com.acme.ArgMaxFast(x), x: f16[b, n]."""
    tensor = lambda name, kind, dims: field(1, name) + field(2, field(1, field(1, kind) + field(2, b"".join(field(1, field(2, d)) for d in dims))))
    node = field(1, "x") + field(2, "y") + field(3, "best") + field(4, "ArgMaxFast") + field(7, "com.acme")
    graph = field(1, node) + field(2, "g") + field(11, tensor("x", 10, ["b", "n"])) + field(12, tensor("y", 7, ["b"]))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)) + field(8, field(1, "com.acme") + field(2, 1))


DMIR = """func.func @main(%x: tensor<?x?xf16, #dmir.dims<"b", "n">> {dmir.name = "x"}) -> (tensor<?xi64, #dmir.dims<"b">> {dmir.name = "y"}) {
  %y = dmir.arg_reduce max %x {axis = 1 : i64, keepDims = false} : (tensor<?x?xf16, #dmir.dims<"b", "n">>) -> tensor<?xi64, #dmir.dims<"b">> loc("best")
  return %y : tensor<?xi64, #dmir.dims<"b">>
}
"""
DOORS = {"onnx": {"onnx": {"domain": "com.acme", "op": "ArgMaxFast"}}, "text": {"torch": "acme::argmax"}, "pt2": {"torch": "acme::argmax"},
         "dmir": {"dmir": {"op": "dmir.arg_reduce", "attrs": {"kind": "max", "axis": -1, "keepDims": False}}}}


class Case(Base):
    def declare(self, file="k.json", **changes):
        """The example's kernel with other values; None leaves a key out."""
        kernel = json.loads((EXAMPLE / "argmax.json").read_text())["kernels"][0]
        kernel["match"]["dmir"] = DOORS["dmir"]["dmir"]
        kernel.update(changes)
        kernel = {key: value for key, value in kernel.items() if value is not None}
        (self.dir / file).write_text(json.dumps({"kernels": [kernel]}))
        return kernel

    def build(self, text=None, name="argmax.o", *flags):
        """An object, or bitcode where the name ends so, of a C source."""
        source = self.dir / "kernel.c"
        source.write_text(text or (EXAMPLE / "argmax.c").read_text())
        compiler = [CLANG, "-emit-llvm"] if name.endswith(".bc") else [CC]
        subprocess.run([*compiler, *FREE, *flags, source, "-o", self.dir / name], check=True, capture_output=True)
        return name

    def model(self, source):
        path = self.dir / {"onnx": "m.onnx", "text": "m.mlir", "pt2": "m.pt2", "dmir": "d.mlir"}[source]
        if source == "onnx":
            path.write_bytes(onnx_model())
        elif source == "text":
            shutil.copy(EXAMPLE / "model.mlir", path)
        elif source == "dmir":
            path.write_text(DMIR)
        else:
            program = pt2file.Program()
            program.input("x", "f16", ["s0", "s1"])
            program.values["y"] = pt2file.meta("i64", ["s0"])
            program.node("torch.ops.acme.argmax.default", {"x": {"as_tensor": {"name": "x"}}}, [{"as_tensor": {"name": "y"}}])
            program.output("y")
            program.ranges = {name: {"min_val": 0, "max_val": 1 << 30} for name in ("s0", "s1")}
            program.write(path)
        return path.name

    def compile(self, source, *options, code=0, out="m.bundle"):
        return self.run_tool(self.model(source), "--kernels", "k.json", "-o", out, *options, code=code)

    def run_bundle(self, x, *options, code=0):
        np.save(self.dir / "x.npy", x)
        for old in self.dir.glob("out/*.npy"):
            old.unlink()
        name = "arg0" if b'"arg0"' in (self.dir / "m.bundle").read_bytes() else "x"
        done = self.run_tool("m.bundle", "--input", f"{name}=x.npy", "--output-dir", "out", *options, tool="dmx-run", code=code)
        files = list((self.dir / "out").glob("*.npy")) if code == 0 else []
        return np.load(files[0]) if files else done.stderr


class Operators(Case):
    def test_equal_to_numpy(self):
        """Each door with each form of code, at one level and at two, and two sizes from one bundle."""
        generator = np.random.default_rng(7)
        forms = ["argmax.o", "argmax.bc"] if CLANG else ["argmax.o"]
        for source, name, levels in sample([(s, n, l) for s in SOURCES for n in forms for l in ("cpu:x86-64-v3", "cpu")], 6):
            with self.subTest(source=source, name=name, levels=levels):
                self.build(name=name)
                self.declare(bodies=[{"target": "cpu", "object": name, "symbol": "argmax"}])
                self.compile(source, "-t", levels)
                for n in (100, 32000):
                    x = generator.standard_normal((5, n)).astype(np.float16)
                    x[1, n // 2:] = 9  # several are largest
                    got = self.run_bundle(x)
                    np.testing.assert_array_equal(got, np.argmax(x, axis=1))
                    self.assertEqual(got.dtype, np.int64)

    def test_it_is_what_runs(self):
        """A body that gives something else is what the bundle gives; so is the door `args` of dmx_kernel.h."""
        plain = "#include <stdint.h>\n" + MAIN + "{ for (int64_t i = begin; i < end; ++i) ((int64_t *)b[1])[i] = 1000 * d[0] + i; return 0; }"
        args = f'#include "{REPO}/include/dmx/dmx_kernel.h"\n' + (
            "int32_t argmax(const dmx_kernel_args *a) { for (int64_t i = a->begin; i < a->end; ++i) "
            "((int64_t *)a->buffers[1])[i] = 1000 * a->dims[0] + i; return *a->kept == -1 && !a->results ? 0 : 9; }")
        for text, abi, source in ((plain, "plain", "dmir"), (args, "args", "text")):
            self.build(text)
            self.declare(bodies=[{"target": "cpu", "object": "argmax.o", "symbol": "argmax", "abi": abi}])
            self.compile(source, "-t", "cpu:x86-64-v3")
            np.testing.assert_array_equal(self.run_bundle(np.zeros((3, 7), np.float16)), 7000 + np.arange(3))

    def test_texts_carry_it(self):
        """From the text of each phase the same bundle comes."""
        self.build()
        self.declare()
        self.compile("text", "-t", "cpu:x86-64-v3", "--dump-phases", "p")
        whole = (self.dir / "m.bundle").read_bytes()
        for phase, file in (("frontend", "1-frontend.mlir"), ("partition", "2-partition.mlir"), ("schedule", "4-schedule.mlir")):
            text = (self.dir / "p" / file).read_text()
            self.assertIn('dmir.extern "acme.argmax"', text)
            self.assertIn(hashlib.sha256((self.dir / "argmax.o").read_bytes()).hexdigest(), text)
            shutil.copy(self.dir / "p" / file, self.dir / "t.mlir")
            self.run_tool("t.mlir", "--from", phase, "-o", "t.bundle", "-t", "cpu:x86-64-v3")
            self.assertEqual(self.run_tool("m.bundle", "--what", "kernels", tool="dmx-inspect").stdout,
                             self.run_tool("t.bundle", "--what", "kernels", tool="dmx-inspect").stdout)
        other = self.dir.parent / (self.dir.name + "-other")
        other.mkdir()
        self.addCleanup(shutil.rmtree, other, ignore_errors=True)
        shutil.copy(self.dir / "t.mlir", other)
        done = self.run_tool(other / "t.mlir", "--from", "schedule", "-o", "t.bundle", code=1)
        self.assertIn("--allow-external-data", done.stderr)
        self.build("#include <stdint.h>\n" + MAIN + "{ return 0; }")
        self.assertIn("is not the one that was declared", self.run_tool("t.mlir", "--from", "schedule", "-o", "t.bundle", code=1).stderr)
        self.assertTrue(whole)

    def test_targets_without_a_body(self):
        self.build()
        self.declare()
        done = self.compile("text", "-t", "corsair", "--placement-report", "-")
        self.assertIn("has no body for the target corsair; it has some for cpu", done.stdout)
        self.declare(bodies=[])
        self.assertIn("the kernel 'acme.argmax' has no body", self.compile("onnx", code=4).stderr)
        self.declare(bodies=[{"target": "aie", "object": "argmax.o", "symbol": "argmax"}])
        done = self.compile("onnx", code=4)
        self.assertIn("node 'best'", done.stderr)
        self.assertIn("it has some for aie", done.stderr)
        self.declare(bodies=[{"target": "cpu", "object": "argmax.o", "symbol": "argmax", "features": ["x86-64-v4"]}])
        self.assertIn("runs at level x86-64-v3", self.compile("text", "-t", "cpu:x86-64-v3", code=4).stderr)

    def test_the_flag_is_named(self):
        for source in ("onnx", "text", "pt2"):
            self.assertIn("--kernels FILE", self.run_tool(self.model(source), "-o", "m.bundle", code=1).stderr)

    def test_attributes_and_features(self):
        """An integer of the node, a named dim, and the body with the most features that a level has."""
        body = "#include <stdint.h>\n" + MAIN + "{ for (int64_t i = begin; i < end; ++i) ((int64_t *)b[1])[i] = d[0] * 100 + NUMBER; return 0; }"
        self.build(body, "a.o", "-DNUMBER=1")
        self.build(body, "b.o", "-DNUMBER=2")
        bodies = [{"target": "cpu", "object": "a.o", "symbol": "argmax"},
                  {"target": "cpu", "object": "b.o", "symbol": "argmax", "features": ["x86-64-v3"]}]
        self.declare(bodies=bodies, dims={"m": "2*n + k"}, attributes=[{"name": "k", "default": 5}], scalars=[{"name": "m", "value": "m"}])
        for level, number in (("x86-64-v2", 1), ("x86-64-v3", 2)):
            self.compile("text", "-t", "cpu:" + level)
            np.testing.assert_array_equal(self.run_bundle(np.zeros((2, 10), np.float16)), [2500 + number] * 2)


class Safety(Case):
    def test_what_it_returns(self):
        self.build("#include <stdint.h>\n" + MAIN + "{ return 42; }")
        self.declare()
        self.compile("onnx", "-t", "cpu:x86-64-v3")
        said = self.run_bundle(np.zeros((3, 4), np.float16), code=1)
        for part in ("node 'best'", "user_acme_argmax", "code 42"):
            self.assertIn(part, said)

    def test_a_write_outside(self):
        self.build("#include <stdint.h>\n" + MAIN + "{ for (int64_t i = begin; i <= end; ++i) ((int64_t *)b[1])[i] = 0; return 0; }")
        self.declare()
        self.compile("onnx", "-t", "cpu:x86-64-v3")
        said = self.run_bundle(np.zeros((8, 4), np.float16), "--device-opt", "guard=end", "--threads", "1", code=1)
        self.assertIn("guard memory: it writes byte 64 of", said)
        self.assertIn("node 'best'", said)

    def test_the_manifest_says_it(self):
        self.build()
        self.declare()
        self.compile("onnx")
        shown = self.run_tool("m.bundle", tool="dmx-inspect").stdout
        self.assertIn("user code", shown)
        self.assertIn(hashlib.sha256((self.dir / "argmax.o").read_bytes()).hexdigest(), shown)
        self.assertNotIn(str(self.dir), shown.replace(str(self.dir / "m.bundle"), ""))
        said = self.run_bundle(np.zeros((3, 4), np.float16), "--no-user-code", code=5)
        self.assertIn("'acme.argmax'", said)
        (self.dir / "plain.mlir").write_text(DMIR)
        self.run_tool("plain.mlir", "-o", "m.bundle")
        self.assertNotIn("user code", self.run_tool("m.bundle", tool="dmx-inspect").stdout)
        self.run_bundle(np.zeros((3, 4), np.float16), "--no-user-code")

    def refused(self, clause, source="onnx", code=1, **changes):
        self.declare(**changes)
        done = self.compile(source, "-t", "cpu:x86-64-v3", code=code)
        self.assertIn(clause, done.stderr)
        self.assertFalse((self.dir / "m.bundle").exists())

    def test_signatures(self):
        self.build()
        self.refused("operand 'x' of the kernel 'acme.argmax' is f16, its signature has f32 or f64", operands=[{"name": "x", "dtype": "f32|f64", "shape": ["b", "n"]}])
        self.refused("has rank 2, its signature has 1", operands=[{"name": "x", "dtype": "f16", "shape": ["b"]}], scalars=[])
        self.refused("takes 2 operands, not 1", operands=[{"name": n, "dtype": "f16", "shape": ["b", "n"]} for n in "xz"])

    def test_objects(self):
        code = lambda body, before="": f"#include <stdint.h>\n{before}\n{MAIN} {{ {body} return 0; }}"
        cases = [("constructor", code("", "static int n; __attribute__((constructor)) void f(void) { n = 1; }")),
                 ("thread-local", code("n = begin;", "__thread int64_t n;")),
                 ("it needs helper", code("helper();", "void helper(void);")),
                 ("is aligned to 65536 bytes, and code is loaded at pages of 4096", code("n = begin;", "static volatile int64_t n __attribute__((aligned(65536)));")),
                 ("may have 256 MiB", code("n[begin] = 1;", "static volatile char n[1 << 29];")),
                 ("both written to and executed", code("n = begin;", 'static volatile int64_t n __attribute__((section(".text.n"))) = 1;')),
                 ("defines no global function 'argmax'", code("").replace("argmax", "argmin")),
                 ("defines no global function 'argmax'", "#include <stdint.h>\nstatic __attribute__((used)) " + MAIN + " { return 0; }")]
        for clause, text in cases:
            for name in (["argmax.o", "argmax.bc"] if CLANG else ["argmax.o"]):
                with self.subTest(clause=clause, name=name):
                    self.build(text, name)
                    self.refused(clause, bodies=[{"target": "cpu", "object": name, "symbol": "argmax"}])
        self.build(code("((void **)b[1])[0] = &n;", "static int n;"), "argmax.o", "-fno-pic", "-mcmodel=large")
        self.refused("text relocation")
        self.build(code(""))
        damaged = bytearray((self.dir / "argmax.o").read_bytes())
        headers, count = struct.unpack_from("<Q", damaged, 40)[0], struct.unpack_from("<H", damaged, 60)[0]
        struct.pack_into("<Q", damaged, headers + 64 * (count - 2) + 48, 1 << 40)  # the alignment of a section of names
        (self.dir / "argmax.o").write_bytes(damaged)
        self.refused("'.strtab' is aligned to 1099511627776 bytes")
        (self.dir / "argmax.o").write_bytes(b"no object")
        self.refused("neither an ELF object nor LLVM bitcode")
        if CLANG:
            self.build(code(""), "argmax.bc", "-mavx512f")
            self.refused("which x86-64-v3 lacks", bodies=[{"target": "cpu", "object": "argmax.bc", "symbol": "argmax"}])
            source = self.dir / "other.c"
            source.write_text("int argmax(void) { return 0; }")
            for more, name in ((("--target=aarch64-linux-gnu",), "argmax.o"), (("--target=i386-linux-gnu",), "argmax.o"),
                               (("--target=aarch64-linux-gnu", "-emit-llvm"), "argmax.bc")):
                subprocess.run([CLANG, "-c", *more, source, "-o", self.dir / name], check=True)
                self.refused("x86-64", bodies=[{"target": "cpu", "object": name, "symbol": "argmax"}])


class BadFiles(Case):
    def test_files(self):
        self.build()
        good = self.declare()
        other = self.dir.parent / (self.dir.name + ".o")
        shutil.copy(self.dir / "argmax.o", other)
        self.addCleanup(other.unlink)
        (self.dir / "link.o").symlink_to(other)
        body = good["bodies"][0]
        changed = lambda **changes: json.dumps({"kernels": [{**good, **changes}]})
        cases = [(1, "no JSON", "{"), (1, "nested deeper", "[" * 1000), (1, "'kernels' is missing", "{}"), (1, "no key 'kernel'; did you mean 'kernels'?", '{"kernel": []}'),
                 (1, "no key 'grains'; did you mean 'grain'?", changed(grains=1)), (1, "'n' is", changed(dims={"n": "b"})),
                 (1, "no operand has the dim 'm'", changed(work="m")), (1, "is an expression of itself", changed(dims={"p": "q + 1", "q": "p"})),
                 (1, "is an expression of itself", changed(dims={"p": "p"})), (1, "no element type 'f17'", changed(operands=[{"name": "x", "dtype": "f17", "shape": []}])),
                 (1, "own folder alone", changed(bodies=[{**body, "object": "../" + other.name}])), (1, "own folder alone", changed(bodies=[{**body, "object": "link.o"}])),
                 (3, "nothing.o", changed(bodies=[{**body, "object": "nothing.o"}])), (1, "target 'gpu9'", changed(bodies=[{**body, "target": "gpu9"}])),
                 (1, "has two kernels", json.dumps({"kernels": [good, {**good, "name": "acme.other"}]})), (1, "has two kernels", json.dumps({"kernels": [good, good]})),
                 (1, "matches nothing", changed(match={})), (1, "no op of DMIR", changed(match={"dmir": {"op": "dmir.argmax"}})),
                 (1, "no attribute of the op", changed(match={"dmir": {"op": "dmir.arg_reduce", "attrs": {"axes": 1}}})),
                 (1, "stands twice in one object", '{"kernels": [], "kernels": []}'), (1, "longer than 200 letters", changed(work="*".join(["(b+n)"] * 60))),
                 (1, "an integer of 64 bits", changed(match={"onnx": {"op": "X", "since": 1e30}})), (1, "\"none\" alone", changed(effects="prints")),
                 (1, "a text is expected", changed(name="")), (1, "is no expression", changed(work="b +"))]
        for code, clause, text in cases:
            with self.subTest(clause=clause):
                (self.dir / "k.json").write_text(text)
                self.assertIn(clause, self.compile("onnx", code=code).stderr)
        self.assertIn("--kernels", self.run_tool(self.model("onnx"), "--kernels", "none.json", "-o", "m.bundle", code=3).stderr)
        self.assertIn("takes up a phase's text", self.run_tool("d.mlir", "--from", "partition", "--kernels", "k.json", "-o", "m.bundle", code=2).stderr
                      if (self.dir / "d.mlir").exists() else "takes up a phase's text")

    def test_page(self):
        """What the page shows is what is built and run here: the example files, by the byte."""
        blocks = re.findall(r"```(c|json|mlir)\n(.*?)```", (REPO / "src/Driver/KERNELS.md").read_text(), re.S)
        shown = [(EXAMPLE / name).read_text() for name in ("argmax.c", "argmax.json", "argmax_gpu.json", "argmax_core.c", "argmax_core.json", "sgemm.c", "sgemm.json", "argmax.mlir")]
        self.assertEqual([text for _, text in blocks], shown)
        self.assertLessEqual(sum(text.count("\n") for text in shown[:2]) + 4, 25)  # and the four commands

    def test_mutations(self):
        """1,000 files, references among them, and 1,000 objects with random bytes changed are compiled, or refused by name: nothing else. In a build
        with sanitizers too (fuzz.kernels)."""
        shutil.copy(EXAMPLE / "argmax.mlir", self.dir)
        operator, micro = self.declare(reference={"file": "argmax.mlir", "functions": ["argmax"]}), json.loads((EXAMPLE / "sgemm.json").read_text())["kernels"][0]
        self.build()
        self.build((EXAMPLE / "sgemm.c").read_text(), "sgemm.o")
        if CLANG:
            self.build(name="argmax.bc")
            self.build((EXAMPLE / "sgemm.c").read_text(), "sgemm.bc")
        cases = [(kernel, symbol + form, model) for form in ((".o", ".bc") if CLANG else (".o",))
                 for kernel, symbol, model in ((operator, "argmax", self.model("onnx")), (micro, "sgemm", EXAMPLE / "product.mlir"))]
        forms, models = [name for _, name, _ in cases], {name: model for _, name, model in cases}
        declared = {name: json.dumps({"kernels": [{**kernel, "bodies": [{"target": "cpu", "object": name, "symbol": name.split(".")[0]}]}]}).encode()
                    for kernel, name, _ in cases}
        whole = {name: (self.dir / name).read_bytes() for name in [*forms, "argmax.mlir"]}
        for seed in sample(range(2000), 250):
            chance = random.Random(seed)
            name = forms[seed // 2 % len(forms)]
            texts = {"k.json": bytearray(declared[name]), name: bytearray(whole[name]), "argmax.mlir": bytearray(whole["argmax.mlir"])}
            written = "argmax.mlir" if name.startswith("argmax") and chance.random() < 0.4 else "k.json"
            target = texts[written if seed % 2 else name]
            for _ in range(chance.choice((1, 1, 2, 8))):
                target[chance.randrange(len(target))] = chance.randrange(256)
            if chance.random() < 0.1:
                del target[chance.randrange(len(target)):]
            for file, data in texts.items():
                (self.dir / file).write_bytes(data)
            with self.subTest(seed=seed):
                done = subprocess.run([BIN / "dmxc", models[name], "--kernels", "k.json", "-o", "m.bundle", "-t", "cpu:x86-64-v3"], cwd=self.dir, capture_output=True)
                self.assertIn(done.returncode, (0, 1, 3, 4), done.stderr)
                self.assertNotIn(b"Sanitizer", done.stderr)
                if done.returncode:
                    self.assertIn(b"error: ", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
