#!/usr/bin/env python3
"""Kernels that users wrote for cores of the AI Engine array: beside ours in one bundle, an argmax by steps and by rows, what writes outside of its
operands, and what is refused. Usage: cores_test.py BIN REPO [unittest arguments]. Exit 77 without numpy or a C compiler."""
import json
import pathlib
import random
import shutil
import subprocess
import sys
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from dmxc_case import BIN, REPO, Base

sys.path.insert(0, str(REPO / "tests"))
from sampling import sample

CC = shutil.which("gcc")
if not CC:
    print("SKIPPED: no C compiler")
    sys.exit(77)
EXAMPLE = REPO / "tools/examples/kernels"
FREE = ("-O2", "-c", "-fPIC", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-march=x86-64-v3")
HEAD = "#include <stdint.h>\n"
MAIN = "int32_t %s(void **b, const int64_t *d, int64_t begin, int64_t end, void *s)"
TWICE = HEAD + MAIN % "twice" + "{ for (int64_t i = begin; i < end; ++i) ((float *)b[1])[i] = ((float *)b[0])[i] + ((float *)b[0])[i]; return 0; }"


def declaration(name, operands, results, body, **more):
    tensor = lambda t: {"name": t[0], "dtype": t[1], "shape": t[2]}
    bodies = [{"target": "aie", "object": f"{name}.o", "symbol": name, "cycles": 100, **body}] if body is not None else []
    return {"name": f"acme.{name}", "match": {"torch": f"acme::{name}"}, "operands": [tensor(t) for t in operands],
            "results": [tensor(t) for t in results], "bodies": bodies, **more}


def torch_type(dtype, shape):
    return f"!torch.vtensor<[{','.join(map(str, shape))}],{dtype}>"


class Case(Base):
    def build(self, name, text):
        (self.dir / f"{name}.c").write_text(text)
        subprocess.run([CC, *FREE, self.dir / f"{name}.c", "-o", self.dir / f"{name}.o"], check=True, capture_output=True)

    def declare(self, *kernels):
        (self.dir / "k.json").write_text(json.dumps({"kernels": list(kernels)}))

    def call(self, name, operands, results):
        """A model that is one call of a kernel; types as torch writes them."""
        types = [torch_type(*t) for t in operands]
        gives = [torch_type(*t) for t in results]
        values = ", ".join(f"%r#{i}" if len(gives) > 1 else "%r" for i in range(len(gives)))
        arguments = ", ".join(f"%x{i}: {t}" for i, t in enumerate(types))
        result = gives[0] if len(gives) == 1 else f"({', '.join(gives)})"
        (self.dir / "m.mlir").write_text(
            f"func.func @main({arguments}) -> {result} {{\n"
            f"  %r{':' + str(len(gives)) if len(gives) > 1 else ''} = torch.operator \"torch.acme.{name}\"({', '.join(f'%x{i}' for i in range(len(types)))}) : "
            f"({', '.join(types)}) -> {result}\n  return {values} : {', '.join(gives)}\n}}\n")

    def compile(self, *options, code=0, model="m.mlir", targets="aie"):
        return self.run_tool(model, "-t", targets, "--kernels", "k.json", "-o", "m.bundle", *options, code=code)

    def run_bundle(self, *inputs, options=(), code=0):
        arguments = []
        for i, value in enumerate(inputs):
            np.save(self.dir / f"x{i}.npy", value)
            arguments += ["--input", f"arg{i}=x{i}.npy"]
        shutil.rmtree(self.dir / "out", ignore_errors=True)
        done = self.run_tool("m.bundle", *arguments, "--output-dir", "out", *options, tool="dmx-run", code=code)
        return [np.load(file) for file in sorted((self.dir / "out").glob("*.npy"))] if code == 0 else done.stderr

    def placed(self):
        """Devices of the tasks, in order."""
        graph = json.loads(self.entries(self.dir / "m.bundle")["graph.json"])["graphs"][0]
        return [graph["queues"][task["queue"]]["target"] for task in graph["tasks"] if task["kind"] == "dispatch"]


class Together(Case):
    def test_between_products(self):
        """A user's kernel between two products of ours: all three are the array's, and nothing is the host's."""
        self.build("twice", TWICE)
        self.declare(declaration("twice", [("x", "f32", ["m", "n"])], [("y", "f32", ["m", "n"])], {"l1": {"x": [4, "n"]}}, work="m*n"))
        (self.dir / "m.mlir").write_text("""func.func @main(%x: !torch.vtensor<[40,64],f32>, %a: !torch.vtensor<[64,48],f32>, %b: !torch.vtensor<[48,32],f32>) -> !torch.vtensor<[40,32],f32> {
  %0 = torch.aten.mm %x, %a : !torch.vtensor<[40,64],f32>, !torch.vtensor<[64,48],f32> -> !torch.vtensor<[40,48],f32>
  %1 = torch.operator "torch.acme.twice"(%0) : (!torch.vtensor<[40,48],f32>) -> !torch.vtensor<[40,48],f32>
  %2 = torch.aten.mm %1, %b : !torch.vtensor<[40,48],f32>, !torch.vtensor<[48,32],f32> -> !torch.vtensor<[40,32],f32>
  return %2 : !torch.vtensor<[40,32],f32>
}
""")
        self.compile("--placement-report", "p.json")
        self.assertEqual(set(self.placed()), {"aie"})
        generator = np.random.default_rng(1)
        # Whole numbers that bf16 holds, so that every sum is exact.
        x, a, b = (generator.integers(-2, 3, shape).astype(np.float32) for shape in ((40, 64), (64, 48), (48, 32)))
        (y,) = self.run_bundle(x, a, b)
        first = x @ a
        self.assertLessEqual(abs(2 * first).max(), 256)
        np.testing.assert_array_equal(y, (2 * first) @ b)



    def test_beside_the_hosts(self):
        """In one bundle with nodes of cpu, which have bodies of their own; each runs where it has one."""
        self.build("twice", TWICE)
        self.build("other", TWICE.replace("twice", "other").replace("+ ((float", "* ((float"))
        operands, results = [("x", "f32", ["m", "n"])], [("y", "f32", ["m", "n"])]
        other = declaration("other", operands, results, None, work="m*n")
        other["bodies"] = [{"target": "cpu", "object": "other.o", "symbol": "other"}]
        self.declare(declaration("twice", operands, results, {"l1": {"x": [1, "n"]}}, work="m*n"), other)
        kind = "!torch.vtensor<[9,20],f32>"
        (self.dir / "m.mlir").write_text(f"""func.func @main(%x: {kind}) -> {kind} {{
  %0 = torch.operator "torch.acme.twice"(%x) : ({kind}) -> {kind}
  %1 = torch.operator "torch.acme.other"(%0) : ({kind}) -> {kind}
  return %1 : {kind}
}}
""")
        self.compile()
        self.assertEqual(self.placed(), ["aie", "cpu"])
        x = np.random.default_rng(2).standard_normal((9, 20)).astype(np.float32)
        np.testing.assert_array_equal(self.run_bundle(x)[0], (x + x) * (x + x))
        shown = self.run_tool("m.bundle", tool="dmx-inspect").stdout
        self.assertIn("twice.o", shown)
        self.assertIn("other.o", shown)
        self.assertIn("'acme.", self.run_bundle(x, options=("--no-user-code",), code=5))


def ties(shape, dtype, seed):
    """Numbers of which several are the largest of a row, with infinities, or all are equal."""
    x = np.random.default_rng(seed).integers(-50, 50, shape).astype(dtype)
    x[1] = -3
    x[2, -1] = np.inf
    x[3] = -np.inf
    return x


class Argmax(Case):
    def steps(self, step, b=5, n=8192, **options):
        kernel = json.loads((EXAMPLE / "argmax_core.json").read_text())["kernels"][0]
        kernel["bodies"][0].update({"l1": {"x": [1, step]}, **options})
        self.build("argmax_core", (EXAMPLE / "argmax_core.c").read_text())
        self.declare(kernel)
        self.call("argmax", [("f32", [b, n])], [("si64", [b]), ("f32", [b])])

    def test_by_steps(self):
        """8,192 in stretches, whose last may be shorter: where the first of the largest is, and what it is."""
        for step, n in ((512, 8192), (2048, 8192), (1000, 8192), (512, 5000)):
            with self.subTest(step=step, n=n):
                self.steps(step, n=n)
                self.compile()
                self.assertEqual(self.placed(), ["aie"])
                x = ties((5, n), np.float32, step)
                y, most = self.run_bundle(x)
                np.testing.assert_array_equal(y, np.argmax(x, axis=1))
                np.testing.assert_array_equal(most, x.max(axis=1))

    def test_by_rows(self):
        """The page's function for cpu as it is, of rows of f16 that fit: one C function for both targets."""
        self.build("argmax", (EXAMPLE / "argmax.c").read_text())
        for rows, b in ((1, 33), (1, 5)):
            with self.subTest(rows=rows, b=b):
                self.declare(declaration("argmax", [("x", "f16", ["b", "n"])], [("y", "i64", ["b"])], {"l1": {"x": [rows, "n"]}},
                                         scalars=[{"name": "n", "value": "n"}], work="b"))
                self.call("argmax", [("f16", [b, 8192])], [("si64", [b])])
                self.compile()
                self.assertEqual(self.placed(), ["aie"])
                x = ties((b, 8192), np.float16, b)
                np.testing.assert_array_equal(self.run_bundle(x)[0], np.argmax(x, axis=1))

    def test_orders_do_not_matter(self):
        self.steps(512)
        self.compile()
        x = ties((5, 8192), np.float32, 4)
        for seed in range(1, 4):
            np.testing.assert_array_equal(self.run_bundle(x, options=("--device-opt", f"skew_seed={seed}"))[0], np.argmax(x, axis=1))

    def test_texts_carry_it(self):
        """From the text of each phase the same words come; texts name function, part and library."""
        self.steps(512)
        self.compile("--dump-phases", "p", "--save-temps", "temps")
        whole = self.entries(self.dir / "m.bundle")
        code = "code/aie/npu1/kernels.aiebin"
        texts = {phase: self.dir / "p" / file for phase, file in
                 (("frontend", "1-frontend.mlir"), ("partition", "2-partition.mlir"), ("schedule", "4-schedule.mlir"))}
        for phase, file in texts.items():
            shutil.copy(file, self.dir / "t.mlir")
            self.run_tool("t.mlir", "--from", phase, "-t", "aie", "-o", "t.bundle")
            self.assertEqual(self.entries(self.dir / "t.bundle")[code], whole[code], phase)
        grid = next((self.dir / "temps").glob("*.dlir.mlir")).read_text()
        self.assertIn('aie.call "argmax_core"', grid)
        self.assertIn("part [512, 1024]", grid)
        device = next((self.dir / "temps").glob("*.aie.mlir")).read_text()
        self.assertIn('link_with = "argmax.o"', device)
        self.assertIn("call @argmax_core(", device)
        text = texts["schedule"].read_text()
        for old, new, said in (("cycles = 72 : i64", 'cycles = "many"', "that says of no function"), ('abi = "plain"', "abi = 7", "as 'aie.function'")):
            self.assertIn(old, text)
            (self.dir / "t.mlir").write_text(text.replace(old, new))
            self.assertIn(said, self.run_tool("t.mlir", "--from", "schedule", "-t", "aie", "-o", "t.bundle", code=1).stderr)

    def test_clocks_are_the_files(self):
        """What the file says that a call takes is what cores are busy with, with 40 clocks a call."""
        for cycles in (100, 1100):
            self.steps(512, cycles=cycles)
            self.compile()
            self.run_bundle(ties((5, 8192), np.float32, 1), options=("--device-opt", "report=r.json"))
            main = json.loads((self.dir / "r.json").read_text())["last"][0]["main"]
            shares = [share for name, share in main["utilisation"].items() if name.startswith("core")]
            self.assertEqual(len(shares), 8)  # for five rows: four columns of two
            for share in shares:
                self.assertAlmostEqual(share * main["clocks"], 16 * (cycles + 40), delta=1)


class Tensors(Case):
    def test_shared_and_two_results(self):
        """An operand that all rows share, whole or in steps beside rows in steps; two results of other types."""
        text = HEAD + MAIN % "mixed" + """ {
  const int8_t *x = b[0]; const float *scale = b[1]; int32_t *sum = b[2]; float *scaled = b[3];
  for (int64_t r = 0; r < d[0]; ++r) {
    sum[r] = 0;
    for (int64_t i = 0; i < d[1]; ++i) { sum[r] += x[r * d[1] + i]; scaled[r * d[1] + i] = scale[i] * x[r * d[1] + i]; }
  }
  return 0; }"""
        self.build("mixed", text)
        self.declare(declaration("mixed", [("x", "i8", ["b", "n"]), ("scale", "f32", ["n"])], [("sum", "i32", ["b"]), ("scaled", "f32", ["b", "n"])],
                                 {"l1": {"x": [2, "n"]}}, scalars=[{"value": "b"}, {"value": "n"}]))
        self.call("mixed", [("si8", [37, 24]), ("f32", [24])], [("si32", [37]), ("f32", [37, 24])])
        self.compile()
        self.assertEqual(self.placed(), ["aie"])
        generator = np.random.default_rng(5)
        x, scale = generator.integers(-100, 100, (37, 24)).astype(np.int8), generator.standard_normal(24).astype(np.float32)
        got = {value.dtype.name: value for value in self.run_bundle(x, scale)}
        np.testing.assert_array_equal(got["int32"], x.astype(np.int32).sum(axis=1))
        np.testing.assert_array_equal(got["float32"], scale * x)

    def test_products_in_steps(self):
        """A dot product with a vector that all rows share, both in steps along n."""
        text = HEAD + MAIN % "dot" + """ {
  const float *x = b[0], *v = b[1]; float *y = b[2];
  float sum = begin ? y[0] : 0;
  for (int64_t i = 0; i < end - begin; ++i) sum += x[i] * v[i];
  y[0] = sum; return 0; }"""
        self.build("dot", text)
        self.declare(declaration("dot", [("x", "f32", ["b", "n"]), ("v", "f32", ["n"])], [("y", "f32", ["b"])], {"l1": {"x": [1, 96]}}))
        self.call("dot", [("f32", [19, 1000]), ("f32", [1000])], [("f32", [19])])
        self.compile()
        generator = np.random.default_rng(6)
        x, v = (generator.integers(-9, 10, shape).astype(np.float32) for shape in ((19, 1000), 1000))
        np.testing.assert_array_equal(self.run_bundle(x, v)[0], x @ v)

    def test_one_tensor_twice(self):
        """Of any herd; a constant beside what a run brings, and what another op gives twice."""
        self.build("both", HEAD + MAIN % "both" + "{ for (int64_t i = begin; i < end; ++i) ((float *)b[2])[i] = ((float *)b[0])[i] * ((float *)b[1])[i % d[0]]; return 0; }")
        kind, x = "!torch.vtensor<[50,33],f32>", np.random.default_rng(0).standard_normal((50, 33)).astype(np.float32)
        whole, row = ("z", "f32", ["m", "n"]), ("z", "f32", ["n"])
        calls = [(whole, 99, f'%0 = torch.operator "torch.acme.both"(%x, %x) : ({kind}, {kind}) -> {kind}', x * x),
                 (row, 33, "%c = torch.vtensor.literal(dense<3.0> : tensor<33xf32>) : !torch.vtensor<[33],f32>\n"
                  f'  %0 = torch.operator "torch.acme.both"(%x, %c) : ({kind}, !torch.vtensor<[33],f32>) -> {kind}', x * 3),
                 (whole, 99, f'%1 = torch.operator "torch.acme.both"(%x, %x) : ({kind}, {kind}) -> {kind}\n'
                  f'  %0 = torch.operator "torch.acme.both"(%1, %1) : ({kind}, {kind}) -> {kind}', (x * x) * (x * x))]
        for (other, count, text, wanted), target in zip(calls, ("aie", "aie:cols=1+rows=1", "aie:cols=2+rows=3")):
            with self.subTest(target=target):
                self.declare(declaration("both", [("x", "f32", ["m", "n"]), other], [("y", "f32", ["m", "n"])], {"l1": {"x": [3, "n"]}}, work="m*n",
                                         scalars=[{"value": count}]))
                (self.dir / "m.mlir").write_text(f"func.func @main(%x: {kind}) -> {kind} {{\n  {text}\n  return %0 : {kind}\n}}\n")
                self.compile(targets=target)
                self.assertEqual(set(self.placed()), {"aie"})
                np.testing.assert_array_equal(self.run_bundle(x)[0], wanted)

    def test_steps_of_rows(self):
        """Some rows a core, in steps, the last of which is shorter; and stretches that are longer than a BD's dim."""
        for rows, step, shape in ((2, 40, (75, 1010)), (1, 1500, (20, 6000))):
            text = HEAD + MAIN % "sums" + f"""{{
  for (int r = 0; r < {rows}; ++r) {{
    float sum = begin ? ((float *)b[1])[r] : 0;
    for (int64_t i = 0; i < end - begin; ++i) sum += ((float *)b[0])[r * {step} + i];
    ((float *)b[1])[r] = sum;
  }}
  return 0; }}"""
            with self.subTest(rows=rows):
                self.build("sums", text)
                self.declare(declaration("sums", [("x", "f32", ["b", "n"])], [("y", "f32", ["b"])], {"l1": {"x": [rows, step]}}))
                self.call("sums", [("f32", shape)], [("f32", shape[:1])])
                self.compile()
                self.assertEqual(self.placed(), ["aie"])
                x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
                np.testing.assert_array_equal(self.run_bundle(x)[0], x.sum(axis=1))

    def test_whole(self):
        """Without l1 one core has all of it."""
        self.build("twice", TWICE)
        self.declare(declaration("twice", [("x", "f32", ["m", "n"])], [("y", "f32", ["m", "n"])], {}, work="m*n"))
        self.call("twice", [("f32", [7, 9])], [("f32", [7, 9])])
        self.compile()
        x = np.random.default_rng(3).standard_normal((7, 9)).astype(np.float32)
        np.testing.assert_array_equal(self.run_bundle(x)[0], x + x)


class Faults(Case):
    def found(self, body, *words, rows=1):
        self.build("bad", HEAD + MAIN % "bad" + f"{{ float *x = b[0], *y = b[1]; for (int64_t i = begin; i < end; ++i) y[i] = x[i]; {body} return 0; }}")
        self.declare(declaration("bad", [("x", "f32", ["b", "n"])], [("y", "f32", ["b", "n"])], {"l1": {"x": [rows, "n"]}}, work="b*n"))
        self.call("bad", [("f32", [4, 24])], [("f32", [4, 24])])
        self.compile()
        said = self.run_bundle(np.ones((4, 24), np.float32), code=1)
        for word in ("core (", *words):
            self.assertIn(word, said)

    def test_outside(self):
        """The byte, the operand and the kernel."""
        self.found("y[24] = 1;", "the kernel 'acme.bad' writes byte 96 of 'y', a result of 96 bytes")
        self.found("y[23 + 2000] = 1;", "writes byte 8092 of 'y'")
        self.found("y[-1] = 1;", "the kernel 'acme.bad' wrote byte -1 of 'y', a result of 96 bytes")
        self.found("y[-5000] = 1;", "writes byte -20000 of 'y'")
        self.found("x[3] = 1;", "writes byte 12 of 'x', which it may only read, of 96 bytes")
        self.found("y[0] = x[24];", "reads byte 96 of 'x', which it may only read, of 96 bytes")
        self.found("*(volatile float *)8 = 1;", "writes what is none of its operands and results")

    def test_what_it_returns(self):
        self.found("return 42;", "kernel-failed", "the kernel 'acme.bad' returned 42")


class Refused(Case):
    def refused(self, clause, *, code=4, shape=(4, 24), kind="f32", body=None, operands=None, results=None, **more):
        operands = operands or [("x", kind, ["b", "n"])]
        results = results or [("y", kind, ["b", "n"])]
        with self.subTest(clause=clause):
            self.build("twice", TWICE)
            self.declare(declaration("twice", operands, results, {"l1": {"x": [1, "n"]}} if body is None else body, **more))
            names = {"f32": "f32", "i64": "si64", "i8": "si8", "f64": "f64"}
            typed = lambda tensors: [(names[t[1]], list(shape)[-len(t[2]):] if t[2] else []) for t in tensors]
            self.call("twice", typed(operands), typed(results))
            (self.dir / "m.bundle").unlink(missing_ok=True)
            done = self.compile(code=code)
            self.assertIn(clause, done.stderr)
            self.assertFalse((self.dir / "m.bundle").exists())

    def test_what_the_array_does_not_hold(self):
        self.refused("its operands and results take 131104 bytes of a core's memory (2 x 32768 of 'x', 2 x 32768 of 'y'), which has 65536", shape=(4, 8192))
        self.refused("has elements that the array's border does not move", kind="f64")
        self.refused("'x' has parts of 3 bytes", kind="i8", shape=(4, 3))
        self.refused("it wants scratch", scratch=64)
        self.refused("functions of the interface", body={"abi": "args", "l1": {"x": [1, "n"]}})
        self.refused("it would take 1000 steps", shape=(1, 1000), body={"l1": {"x": [1, 1]}}, results=[("y", "f32", ["b"])])
        self.refused("come by one DMA channel", body={"l1": {"x": [1, 8]}}, operands=[("x", "f32", ["b", "n"]), ("z", "f32", ["b", "n"])],
                     results=[("y", "f32", ["b"])])
        self.refused("what is cut are the first axes", shape=(2, 4, 24), operands=[("x", "f32", ["a", "b", "n"])], results=[("y", "f32", ["a", "b", "n"])],
                     body={"l1": {"x": ["a", 1, "n"]}})

    def test_files(self):
        self.refused("'launch' says nothing of a body for aie", code=1, body={"launch": {"block": 32}})
        self.refused("no key 'l2'", code=1, body={"l2": {}})
        self.refused("'z' is neither an operand nor a result", code=1, body={"l1": {"z": [1]}})
        self.refused("'x' has 2 axes, its part 1", code=1, body={"l1": {"x": [1]}})
        self.refused("a part of 0 along axis 0", code=1, body={"l1": {"x": [0, "n"]}})
        self.refused("a core would have", code=1, body={"l1": {"x": [1, "n"], "y": [2, "n"]}})
        self.refused("it cuts one dim that all results have", code=1, body={"l1": {"x": [1, 8]}})
        self.refused("some results have and others have not", code=1, body={"l1": {"x": [1, "n"]}}, results=[("y", "f32", ["b", "n"]), ("z", "f32", ["n"])])
        self.refused("'cycles' are -1", code=1, body={"cycles": -1})
        self.refused("operand 'x' of the kernel 'acme.twice' has 24 along axis 1", code=1, operands=[("x", "f32", ["b", 25])], results=[("y", "f32", ["b", 25])], body={})

    def test_bodies_of_cpu(self):
        """What says how a machine runs a body is none of cpu's: it is refused, not ignored."""
        self.build("twice", TWICE)
        for key, value in (("launch", {"block": 32}), ("cycles", 7)):
            kernel = declaration("twice", [("x", "f32", ["b", "n"])], [("y", "f32", ["b", "n"])], None, work="b*n")
            kernel["bodies"] = [{"target": "cpu", "object": "twice.o", "symbol": "twice", key: value}]
            self.declare(kernel)
            self.call("twice", [("f32", [4, 24])], [("f32", [4, 24])])
            self.assertIn(f"'{key}' says nothing of a body for cpu", self.compile(targets="cpu", code=1).stderr)

    def test_objects(self):
        self.refused("defines no global function 'once'; it has 'twice'", code=1, body={"symbol": "once"})
        self.build("helped", HEAD + "void helper(void);" + MAIN % "twice" + "{ helper(); return 0; }")
        self.refused("it needs helper, which it does not define", code=1, body={"object": "helped.o"})
        (self.dir / "text.o").write_text("no object")
        self.refused("it is no relocatable object of x86-64; compile it with -c", code=1, body={"object": "text.o"})
        self.refused("nothing.o", code=3, body={"object": "nothing.o"})

    def test_mutations(self):
        """Objects and kernel files with random bytes changed are compiled, or refused by name: nothing else."""
        self.build("twice", TWICE)
        self.declare(declaration("twice", [("x", "f32", ["b", "n"])], [("y", "f32", ["b", "n"])], {"l1": {"x": [1, "n"]}}, work="b*n"))
        self.call("twice", [("f32", [4, 24])], [("f32", [4, 24])])
        whole = {name: (self.dir / name).read_bytes() for name in ("twice.o", "k.json")}
        refused = 0
        for seed in sample(range(400), 16):
            chance = random.Random(seed)
            name = ("twice.o", "k.json")[seed % 4 == 0]
            data = bytearray(whole[name])
            for _ in range(chance.choice((1, 2, 8))):
                data[chance.randrange(len(data))] = chance.randrange(256)
            if chance.random() < 0.1:
                del data[chance.randrange(len(data)):]
            for file, bytes_ in {**whole, name: data}.items():
                (self.dir / file).write_bytes(bytes_)
            with self.subTest(seed=seed):
                done = subprocess.run([BIN / "dmxc", "m.mlir", "-t", "aie", "--kernels", "k.json", "-o", "m.bundle"], cwd=self.dir, capture_output=True)
                self.assertIn(done.returncode, (0, 1, 3, 4), done.stderr)
                self.assertNotIn(b"Sanitizer", done.stderr)
                if done.returncode:
                    self.assertIn(b"error: ", done.stderr)
                    refused += 1
        self.assertGreater(refused, 0)

    def test_open_sizes_are_the_hosts(self):
        """The report says why; with a body for cpu the node is that."""
        self.build("twice", TWICE)
        kernel = declaration("twice", [("x", "f32", ["b", "n"])], [("y", "f32", ["b", "n"])], {"l1": {"x": [1, "n"]}}, work="b*n")
        kernel["bodies"].append({"target": "cpu", "object": "twice.o", "symbol": "twice"})
        self.declare(kernel)
        self.call("twice", [("f32", ["?", 24])], [("f32", ["?", 24])])
        done = self.compile("--placement-report", "-")
        self.assertIn("has kernels of users of fixed sizes", done.stdout)
        self.assertEqual(self.placed(), ["cpu"])

    def test_no_node(self):
        self.build("twice", TWICE)
        self.declare(declaration("twice", [("x", "f32", ["b", "n"])], [("y", "f32", ["b", "n"])], {"l1": {"x": [1, "n"]}}, work="b*n"))
        (self.dir / "plain.mlir").write_text("""func.func @main(%x: !torch.vtensor<[8,16],f32>, %a: !torch.vtensor<[16,8],f32>) -> !torch.vtensor<[8,8],f32> {
  %0 = torch.aten.mm %x, %a : !torch.vtensor<[8,16],f32>, !torch.vtensor<[16,8],f32> -> !torch.vtensor<[8,8],f32>
  return %0 : !torch.vtensor<[8,8],f32>
}
""")
        self.assertIn("kernel-idle", self.compile(model="plain.mlir").stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
