#!/usr/bin/env python3
"""Micro-kernels that users wrote: full tiles of products, in C as an object and as bitcode; when they are called, what texts say of them, and
what is refused. Usage: micro_test.py BIN REPO [unittest arguments]. Exit 77 without numpy or a C compiler."""
import hashlib
import json
import re
import shutil
import sys
import unittest

from kernels_test import BIN, CLANG, EXAMPLE, LONG, Case, np, sample
from dmxc_case import field
from sampling import sampled

ZOO = BIN.parent / "zoo/bert_mini"
SIGNATURE = "void sgemm(const float *a, const float *b, float *c, int64_t k, int64_t ldb, int64_t panel, int64_t ldc, int32_t adds)"
LOOPS = """#include <stdint.h>
%s {
  for (int64_t r = 0; r < ROWS; ++r)
    for (int64_t j = 0; j < COLUMNS; ++j) {
      float sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum += a[i * ROWS + r] * b[i * ldb + j / 16 * panel + j %% 16];
      c[r * ldc + j] = FACTOR * sum + (adds ? c[r * ldc + j] : 0);
    }
}
""" % SIGNATURE


def model(m, k, n, weights=None):
    """y = relu(x w + b), x: f32[m, k]; w is a constant, or comes with a run. Sizes may be names."""
    info = lambda name, dims: field(1, name) + field(2, field(1, field(1, 1) + field(2, b"".join(field(1, field(1 if isinstance(d, int) else 2, d)) for d in dims))))
    constant = lambda name, array: b"".join(field(1, d) for d in array.shape) + field(2, 1) + field(8, name) + field(9, array.astype(np.float32).tobytes())
    node = lambda op, inputs, output: field(1, b"".join(field(1, name) for name in inputs) + field(2, output) + field(3, output) + field(4, op))
    graph = node("MatMul", ["x", "w"], "p") + node("Add", ["p", "b"], "q") + node("Relu", ["q"], "y") + field(2, "g")
    graph += field(5, constant("b", np.linspace(-1, 1, n))) + (b"" if weights is None else field(5, constant("w", weights)))
    graph += field(11, info("x", [m, k])) + (field(11, info("w", [k, n])) if weights is None else b"") + field(12, info("y", [m, n]))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


def strategy_of(text):
    """The strategy of a text's one product."""
    begin = text.index('{algorithm = "matmul')
    depth = 0
    for end in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if not depth:
            return text[begin:end + 1]


class MicroCase(Case):
    def declare(self, file="k.json", **changes):
        kernel = {**json.loads((EXAMPLE / "sgemm.json").read_text())["kernels"][0], **changes}
        (self.dir / file).write_text(json.dumps({"kernels": [{key: value for key, value in kernel.items() if value is not None}]}))
        return kernel

    def loops(self, rows, columns, factor=1, name="sgemm.o"):
        return self.build(LOOPS, name, f"-DROWS={rows}", f"-DCOLUMNS={columns}", f"-DFACTOR={factor}")

    def example(self, name="sgemm.o"):
        return self.build((EXAMPLE / "sgemm.c").read_text(), name)

    def make(self, *options, code=0, levels="cpu:x86-64-v3", out="m.bundle"):
        return self.run_tool("m.onnx", "-t", levels, "-o", out, *options, code=code)

    def values(self, **inputs):
        given = []
        for name, array in inputs.items():
            np.save(self.dir / f"{name}.npy", array)
            given += ["--input", f"{name}={name}.npy"]
        shutil.rmtree(self.dir / "out", ignore_errors=True)
        self.run_tool("m.bundle", *given, "--output-dir", "out", tool="dmx-run")
        return np.load(next((self.dir / "out").glob("*.npy")))

    def text(self, phase="partition", *options):
        return self.run_tool("m.onnx", "-t", "cpu:x86-64-v3", "--emit", phase, "-o", "-", *options).stdout


class Products(MicroCase):
    def test_equal_to_generated_code(self):
        """Sizes with every kind of edge, several passes over k, a number of rows that a run brings; operands of the run and weights."""
        chance = np.random.default_rng(3)
        sizes = [(512, 512, 512), (20, 70, 41), (13, 2100, 48), (6, 16, 16), (64, 33, 96), ("m", 40, 130), (128, 256, 1024)]
        forms = ["sgemm.o", "sgemm.bc"] if CLANG else ["sgemm.o"]
        for (m, k, n), name, packed in sample([(s, f, p) for s in sizes for f in forms for p in (False, True)], 28):
            with self.subTest(m=m, k=k, n=n, name=name, packed=packed):
                x, w = (chance.standard_normal(shape).astype(np.float32) for shape in ((37 if m == "m" else m, k), (k, n)))
                self.example(name)
                self.declare(bodies=[{"target": "cpu", "object": name, "symbol": "sgemm"}])
                (self.dir / "m.onnx").write_bytes(model(m, k, n, w if packed else None))
                given = {"x": x} if packed else {"x": x, "w": w}
                self.make("--kernels", "k.json", levels="cpu")
                self.assertIn("acme.sgemm", self.run_tool("m.bundle", tool="dmx-inspect").stdout)
                called = self.values(**given)
                self.make(levels="cpu")
                generated = self.values(**given)
                largest = np.abs(generated).max()
                self.assertLessEqual(np.abs(called - generated).max(), 1e-6 * largest)
                exact = np.maximum(x.astype(np.float64) @ w + np.linspace(-1, 1, n), 0)
                self.assertLessEqual(np.abs(called - exact).max(), 2e-6 * largest)

    def test_full_tiles_alone_are_its(self):
        """A kernel that doubles shows which results it computed, with tiles of other sizes too; other levels have their own body, or none."""
        ones = lambda *shape: np.ones(shape, np.float32)
        tiles = [(6, 16), (1, 16), (8, 32), (3, 64), (17, 16)]
        for (rows, columns), packed in sample([(t, p) for t in tiles for p in (False, True)], 10):
            with self.subTest(rows=rows, columns=columns):
                m, k, n = 4 * rows + (rows > 1) + 4, 300, 2 * columns + 5
                self.loops(rows, columns, factor=2)
                self.declare(tile=[rows, columns])
                (self.dir / "m.onnx").write_bytes(model(m, k, n, ones(k, n) if packed else None))
                self.make("--kernels", "k.json")
                got = self.values(x=ones(m, k), **({} if packed else {"w": ones(k, n)})) - np.linspace(-1, 1, n)
                expected = np.full((m, n), float(k))
                expected[:m // rows * rows, :n // columns * columns] *= 2
                np.testing.assert_allclose(got, expected, rtol=1e-6)

    def test_of_levels(self):
        self.example()
        self.declare()
        (self.dir / "m.onnx").write_bytes(model(24, 32, 64))
        self.make("--kernels", "k.json", levels="cpu:x86-64-v2+x86-64-v3")
        self.assertEqual(re.findall(r"(x86-64-v\d).*acme\.sgemm|acme\.sgemm.*(x86-64-v\d)", self.run_tool("m.bundle", tool="dmx-inspect").stdout), [("", "x86-64-v3")])
        said = self.make("--kernels", "k.json", "--ukernels", "acme.sgemm=on", levels="cpu:x86-64-v2", code=4).stderr
        self.assertIn("no body of it runs at x86-64-v2", said)
        self.make("--kernels", "k.json", levels="cpu:x86-64-v2")  # auto: where it can be called
        if CLANG:
            self.build((EXAMPLE / "sgemm.c").read_text(), "sgemm.bc", "-mavx512f")
            self.declare(bodies=[{"target": "cpu", "object": "sgemm.bc", "symbol": "sgemm"}])
            self.assertIn("which x86-64-v3 lacks", self.make("--kernels", "k.json", code=1).stderr)

    def test_of_targets(self):
        """One that no target of the compile has a body of: an error where it shall be called, a warning where its file prefers it, else nothing."""
        self.example()
        (self.dir / "m.onnx").write_bytes(model(24, 32, 64))
        self.make(out="without.bundle")
        reason = "the micro-kernel 'acme.sgemm': it has no body for cpu; it has some for aie, cuda"
        bodies = [{"target": target, "object": "sgemm.o", "symbol": "sgemm"} for target in ("cuda", "aie")]
        self.declare(bodies=bodies)
        said = self.make("--kernels", "k.json", "--ukernels", "acme.sgemm=on", code=4).stderr
        self.assertIn("k.json: " + reason, said)
        self.assertFalse((self.dir / "m.bundle").exists())
        for prefer, options, warned in ((True, [], True), (False, [], False), (True, ["--ukernels", "acme.sgemm=off"], False)):
            self.declare(bodies=bodies, prefer=prefer)
            said = self.make("--kernels", "k.json", *options).stderr
            self.assertEqual("warning: " + reason in said, warned, said)
            self.assertEqual((self.dir / "m.bundle").read_bytes(), (self.dir / "without.bundle").read_bytes())

    def test_bert(self):
        if not LONG or not (ZOO / "model.onnx").exists():
            self.skipTest("not the long run, or the build has no zoo (bench/make_zoo.py)")
        self.example()
        self.declare()
        outputs = []
        for options in (["--kernels", "k.json"], []):
            self.run_tool(ZOO / "model.onnx", "-o", "m.bundle", "-t", "cpu:x86-64-v3", *options)
            self.run_tool("m.bundle", "--random-inputs", "1", "--output-dir", "out", tool="dmx-run")
            outputs.append({path.name: np.load(path) for path in (self.dir / "out").glob("*.npy")})
            if options:
                table = self.run_tool("m.bundle", "--random-inputs", "1", "--benchmark", "--per-task", tool="dmx-run").stdout
                print("share of tasks that call it:", sum(float(line.split()[0]) for line in table.splitlines() if "acme_sgemm" in line), "%")
                self.assertEqual(sum("acme_sgemm" in line for line in table.splitlines()), 24)
        self.assertTrue(outputs[0])
        for name, generated in outputs[1].items():
            self.assertLessEqual(np.abs(outputs[0][name] - generated).max(), 1e-6 * np.abs(generated).max(), name)


@sampled(2)
class Choices(MicroCase):
    def setUp(self):
        super().setUp()
        self.example()
        self.declare()
        (self.dir / "m.onnx").write_bytes(model(24, 40, 64))

    def test_on_off_and_auto(self):
        """Off, and auto where the file does not prefer it, give the bytes that no kernel file gives."""
        self.make(out="plain.bundle")
        plain = (self.dir / "plain.bundle").read_bytes()
        for prefer, use, called in ((True, None, True), (True, "auto", True), (True, "off", False), (False, None, False), (None, "on", True)):
            self.declare(prefer=prefer)
            self.make("--kernels", "k.json", *(["--ukernels", f"acme.sgemm={use}"] if use else []))
            self.assertEqual((self.dir / "m.bundle").read_bytes() != plain, called, (prefer, use))

    def test_texts_carry_it(self):
        """From the text of each phase the same bundle comes, without the kernel file; and a text may leave it away."""
        self.make("--kernels", "k.json", "--dump-phases", "p")
        whole, plain = (self.dir / "m.bundle").read_bytes(), self.text()
        for phase, file in sample([("partition", "2-partition.mlir"), ("schedule", "4-schedule.mlir")], 2):
            text = (self.dir / "p" / file).read_text()
            self.assertIn('algorithm = "matmul+acme.sgemm"', text)
            self.assertIn(hashlib.sha256((self.dir / "sgemm.o").read_bytes()).hexdigest(), text)
            shutil.copy(self.dir / "p" / file, self.dir / "t.mlir")
            self.run_tool("t.mlir", "--from", phase, "-o", "t.bundle", "-t", "cpu:x86-64-v3")
            code = lambda name: {key: data for key, data in self.entries(self.dir / name).items() if key.startswith("code/")}
            self.assertEqual(code("t.bundle"), code("m.bundle"))
        text = (self.dir / "p/2-partition.mlir").read_text()
        (self.dir / "t.mlir").write_text(text.replace(strategy_of(text), '{algorithm = "matmul"}'))
        again = self.run_tool("t.mlir", "--from", "partition", "--emit", "memory", "-o", "-", "-t", "cpu:x86-64-v3").stdout
        self.assertEqual(strategy_of(again), strategy_of(plain))
        self.assertNotIn("acme", again)
        for wrong, clause in (("tile = [6, 16]", "tile = [6, 24]"), ("tile = [6, 16]", "tile = [600, 16]"), ('abi = "micro"', 'abi = "plain"')):
            (self.dir / "t.mlir").write_text(text.replace(wrong, clause))
            self.assertIn("ukernel", self.run_tool("t.mlir", "--from", "partition", "-o", "t.bundle", "-t", "cpu:x86-64-v3", code=1).stderr)

    def test_it_is_a_decision(self):
        """A file that does not prefer it leaves it to schedules and tuning."""
        self.declare(prefer=False)
        self.assertIn("matmul+acme.sgemm", self.make("--kernels", "k.json", "--explain-decisions").stdout)
        (self.dir / "s.mlir").write_text("""module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %r = transform.dmx.match {node = "p"} in %m : !transform.any_op -> !transform.any_op
    transform.dmx.decide %r {algorithm = "matmul+acme.sgemm"} : !transform.any_op
    transform.yield
  }
}
""")
        self.make("--kernels", "k.json", "--schedule", "s.mlir")
        self.assertIn("acme.sgemm", self.run_tool("m.bundle", tool="dmx-inspect").stdout)

    def test_per_task(self):
        self.make("--kernels", "k.json")
        self.assertRegex(self.run_tool("m.bundle", "--random-inputs", "1", "--benchmark", "--per-task", tool="dmx-run").stdout, r"%.*\[k\d+_matmul_acme_sgemm\]")


@sampled(2)
class Refusals(MicroCase):
    def refused(self, clause, *options, code=1, size=(24, 40, 64), **changes):
        self.declare(**changes)
        (self.dir / "m.onnx").write_bytes(model(*size))
        self.assertIn(clause, self.make("--kernels", "k.json", *options, code=code).stderr)

    def test_declarations(self):
        self.example()
        for clause, changes in (("panels of 16 columns", {"tile": [6, 24]}), ("up to 512 numbers", {"tile": [40, 16]}), ("panels of 16", {"tile": [0, 16]}),
                                ("[rows, columns]", {"tile": [6]}), ("an integer of 64 bits", {"tile": [6, "16"]}), ('["f32", "f32", "f32"]', {"types": ["f16", "f16", "f32"]}),
                                ('is "matmul"', {"op": "conv"}), ("no key 'tiles'; did you mean 'tile'?", {"tiles": []}), ('"operator" or "micro"', {"kind": "mini"}),
                                ("something in it", {"bodies": []}), ("true or false", {"prefer": 1}), ("'name' is missing", {"name": None}),
                                ("no key 'abi'", {"bodies": [{"target": "cpu", "object": "sgemm.o", "symbol": "sgemm", "abi": "plain"}]}),
                                ("target aie call no micro-kernels", {"bodies": [{"target": "aie", "object": "sgemm.o", "symbol": "sgemm"}]})):
            with self.subTest(clause=clause):
                self.refused(clause, *(["-t", "aie"] if "aie" in clause else []), **changes)

    def test_options(self):
        self.example()
        self.refused("have no micro-kernel 'acme.sgem'; they have acme.sgemm; did you mean", "--ukernels", "acme.sgem=on", code=2)
        self.refused("expected NAME=on, NAME=off or NAME=auto", "--ukernels", "acme.sgemm=yes", code=2)
        self.refused("given twice", "--ukernels", "acme.sgemm=on", "--ukernels", "acme.sgemm=off", code=2)
        self.assertIn("give --kernels FILE", self.make("--ukernels", "acme.sgemm=on", code=2).stderr)
        self.refused("changes nothing", "--ukernels", "acme.sgemm=on", code=0, size=(5, 40, 64))
        shutil.copy(self.dir / "k.json", self.dir / "other.json")
        self.refused("has two kernels", "--kernels", "other.json")

    def test_code(self):
        code = lambda body, before="": f"#include <stdint.h>\n{before}\n{SIGNATURE} {{ {body} }}"
        self.build(code("helper(c);", "void helper(float *);"))
        shutil.move(self.dir / "argmax.o", self.dir / "sgemm.o")
        self.refused("it needs helper")
        self.build(code("*c = n;", "__thread float n;"), "sgemm.o")
        self.refused("thread-local")
        self.build(code("").replace("sgemm", "dgemm"), "sgemm.o")
        self.refused("defines no global function 'sgemm'")
        if CLANG:
            self.build("int sgemm(int a) { return a; }", "sgemm.bc")
            self.refused("its function 'sgemm' is i32 (i32), and the interface \"micro\" is void", bodies=[{"target": "cpu", "object": "sgemm.bc", "symbol": "sgemm"}])

    def test_the_manifest_says_it(self):
        self.example()
        self.declare()
        (self.dir / "m.onnx").write_bytes(model(24, 40, 64))
        self.make("--kernels", "k.json")
        shown = self.run_tool("m.bundle", tool="dmx-inspect").stdout
        self.assertIn(hashlib.sha256((self.dir / "sgemm.o").read_bytes()).hexdigest(), shown)
        self.assertIn("'acme.sgemm'", self.run_tool("m.bundle", "--random-inputs", "1", "--no-user-code", tool="dmx-run", code=5).stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
