#!/usr/bin/env python3
"""Kernels for GPUs that users wrote in MLIR: a product in nvgpu's ops and sums in three forms of function, as bundles of a kernel alone and as nodes of a
model; what upstream's passes make of them wrong is mended or refused, and what is wrong with a text said by its line.
Usage: text_test.py BIN REPO [unittest arguments]. Exit 77 without numpy."""
import json
import re
import subprocess
import sys
import unittest

from written import EXAMPLES, Case, find_ptxas, np, onnx

from sampling import sample, sampled

SAXPY, TILE = ((EXAMPLES / name).read_text() for name in ("saxpy.mlir", "tile.mlir"))
HEAD = ('// {"kernels": [{"name": "f", "operands": [{"name": "x", "dtype": "f32", "shape": [256]}], "results": [{"name": "y", "dtype": "f32", "shape": [256]}],\n'
        '//   "bodies": [{"target": "cuda", "symbol": "f", "launch": {"grid": 2, "block": 128}}]}]}\n\n')
BODY = """%b = gpu.block_id x
  %t = gpu.thread_id x
  %c = arith.constant 128 : index
  %m = arith.muli %b, %c : index
  %i = arith.addi %m, %t : index
  %v = memref.load %x[%i] : memref<256xf32>
  %r = math.sqrt %v : f32
  memref.store %r, %y[%i] : memref<256xf32>
"""
FUNCTION = f"func.func @f(%x: memref<256xf32>, %y: memref<256xf32>) {{\n  {BODY}  return\n}}\n"


@sampled(3)
class Alone(Case):
    def alone(self, text, *options, code=0, name="k.mlir"):
        (self.dir / name).write_text(text)
        return self.compile(*options, model=name, kernels=None, code=code)

    def ptx(self):
        return self.entries(self.dir / "m.bundle")["code/cuda/sm_90a/kernels.ptx"].decode()

    def test_a_product(self):
        """By upstream's own passes, mended: equal to numpy's for any order of turns."""
        self.alone(TILE)
        random = np.random.default_rng(3)
        a, b = (random.integers(-8, 9, shape) / 8 for shape in ((128, 64), (64, 128)))
        for seed in range(3):
            got = self.run_bundle({"a": a.astype(np.float16), "b": b.astype(np.float16)}, "--device-opt", f"cuda.sim_seed={seed}")["d"]
            np.testing.assert_array_equal(got, (a @ b).astype(np.float32))
        text = self.ptx()
        self.assertIn(".extern .shared .align 1024", text)  # the traps of cuda-hopper.md: the memory's linkage, maps by value
        self.assertEqual(len(re.findall(r"\.param \.align 64 \.b8 \w+\[128\]", text)), 2)
        ptxas = find_ptxas()
        if ptxas:
            (self.dir / "k.ptx").write_text(text)
            done = subprocess.run([ptxas, "-arch=sm_90a", "-v", self.dir / "k.ptx", "-o", self.dir / "k.cubin"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotRegex(done.stderr, "C75|[1-9][0-9]* bytes spill")

    def test_registers_move(self):
        """A cap of registers at the entry, without which the assembler ignores who takes and gives."""
        self.alone(HEAD + FUNCTION.replace("  return", "  nvvm.setmaxregister decrease 24\n  return"))
        self.assertIn(".minnctapersm 1", self.ptx())

    def test_open_sizes(self):
        self.alone(SAXPY)
        for n in (1, 1000):
            x, y = np.random.default_rng(n).standard_normal((2, n)).astype(np.float32)
            got = self.run_bundle({"x": x, "y": y})["z"]
            np.testing.assert_array_equal(got, (2 * x.astype(np.float64) + y).astype(np.float32))

    def test_forms_of_functions(self):
        x = np.random.default_rng(1).random(256).astype(np.float32)
        inside = FUNCTION.replace("func.func", "gpu.func").replace(") {", ") kernel {").replace("  return", "  gpu.return")
        pointers = ("llvm.func @f(%x: !llvm.ptr, %y: !llvm.ptr) {\n  %b = nvvm.read.ptx.sreg.ctaid.x : i32\n  %t = nvvm.read.ptx.sreg.tid.x : i32\n"
                    "  %c = arith.constant 128 : i32\n  %m = arith.muli %b, %c : i32\n  %i = arith.addi %m, %t : i32\n"
                    "  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32\n  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32\n"
                    "  %v = llvm.load %p : !llvm.ptr -> f32\n  %r = math.sqrt %v : f32\n  llvm.store %r, %q : f32, !llvm.ptr\n  llvm.return\n}\n")
        for text in (FUNCTION, f"gpu.module @m {{\n{inside}}}\n", pointers):
            self.alone(HEAD + text)
            np.testing.assert_array_equal(self.run_bundle({"x": x})["y"], np.sqrt(x))

    def test_as_a_node(self):
        """A node of the domain dmx.kernels is the kernel of its name; and it is the same bits alone."""
        (self.dir / "k.mlir").write_text(TILE)
        nodes = [onnx.node("acme.tile", "a b", "d", "dmx.kernels"), onnx.node("Neg", "d", "y")]
        imports = onnx.field(8, onnx.message((1, "dmx.kernels"), (2, 1)))
        infos = [onnx.info("a", onnx.FLOAT16, [128, 64]), onnx.info("b", onnx.FLOAT16, [64, 128])]
        (self.dir / "m.onnx").write_bytes(onnx.model(nodes, infos, [onnx.info("y", onnx.FLOAT, [128, 128])], extra=imports))
        self.compile(kernels="k.mlir")
        random = np.random.default_rng(4)
        a, b = (random.integers(-8, 9, shape).astype(np.float16) / 8 for shape in ((128, 64), (64, 128)))
        np.testing.assert_array_equal(self.run_bundle({"a": a, "b": b})["y"], -(a.astype(np.float32) @ b.astype(np.float32)))
        self.assertNotIn("kernel-idle", self.compile(kernels="k.mlir").stderr)
        (self.dir / "other.onnx").write_bytes(onnx.unary("Neg", [4]))
        self.assertIn("no node of this model is computed by the kernel 'acme.tile'", self.compile(model="other.onnx", kernels="k.mlir").stderr)

    def test_places(self):
        """A fault has the line of the text, or what the text says that it was made from."""
        for place, words in (("", "(k.mlir:10)"), (' loc("author.py":7:1)', "(author.py:7)")):
            self.alone(HEAD + FUNCTION.replace("arith.muli %b, %c : index", "arith.muli %b, %t : index").replace(
                "memref.load %x[%i] : memref<256xf32>", "memref.load %x[%i] : memref<256xf32>" + place).replace("%c = arith.constant 128", "%c = arith.constant 1280").replace(
                "arith.muli %b, %t", "arith.muli %b, %c"))
            said = self.run_bundle({"x": np.ones(256, np.float32)}, code=1)
            self.assertIn("bounds", said)
            self.assertIn(words, said)

    def test_bad_texts(self):
        load = "memref.load %x[%i] : memref<256xf32>"
        wider = HEAD.replace('"name": "x", "dtype": "f32"', '"name": "x", "dtype": "f16"')
        for clause, text in sample((("k.mlir:5: custom op 'gpu.blok_id' is unknown", HEAD + FUNCTION.replace("gpu.block_id", "gpu.blok_id")),
                             ("k.mlir:10: use of undeclared SSA value name", HEAD + FUNCTION.replace(load, load.replace("%i", "%j"))),
                             ("argument 0 of 'f' is memref<256xf32> for operand 0, and that has elements of f16", wider + FUNCTION),
                             ("argument 0 of 'f' is memref<256xf32> for operand 0, and that has [128]", HEAD.replace("[256]", "[128]", 1) + FUNCTION),
                             ("argument 0 of 'f' is memref<256xf32> for operand 0, and that has rank 2", HEAD.replace("[256]", "[16, 16]", 1) + FUNCTION),
                             ("'f' has 2 arguments and 0 results; a kernel has none of these, and here 2 arguments for operands and results, 1 for scalars",
                              HEAD.replace('"bodies"', '"scalars": [{"value": 3}], "bodies"') + FUNCTION),
                             ("it has no function 'f'; it has g", HEAD + FUNCTION.replace("@f(", "@g(")),
                             ("it has the function 'g' beside 'f', and no functions are called here", HEAD + FUNCTION + FUNCTION.replace("@f(", "@g(")),
                             ("it calls the function '__nv_expf'", HEAD + FUNCTION.replace("math.sqrt", "math.exp")),
                             ("k.mlir:7: ", HEAD + FUNCTION.replace("arith.constant 128 : index", "arith.constant true : index")),
                             ("nvgpu.warpgroup.mma goes along B as if its columns were neighbours", TILE.replace("{transposeB, waitGroup", "{waitGroup")),
                             ("nvgpu.warpgroup.mma.store counts the warps of a block", TILE.replace('"block": 128', '"block": 256')),
                             ("the threads of its blocks are 2048", HEAD.replace('"block": 128', '"block": 2048') + FUNCTION),
                             ("no key 'block_size'", HEAD.replace('"block"', '"block_size"') + FUNCTION),
                             ("this is no JSON", HEAD.rstrip("\n").rstrip("}") + "\n\n" + FUNCTION)), 3):
            with self.subTest(clause=clause):
                said = self.alone(text, code=1).stderr
                self.assertIn(clause, said)
                self.assertFalse((self.dir / "m.bundle").exists())

    def test_which_kernel(self):
        first = json.loads(HEAD.replace("//", ""))["kernels"][0]
        both = json.dumps({"kernels": [first, {**first, "name": "g", "bodies": [{**first["bodies"][0], "symbol": "g"}]}]})
        text = f"// {both}\n\ngpu.module @m {{\n" + FUNCTION.replace("func.func", "gpu.func").replace(") {", ") kernel {").replace("  return", "  gpu.return") + "}\n"
        self.assertIn("the file declares f, g; name one with --entry", self.alone(text, code=2).stderr)
        self.assertIn("the file declares no kernel 'h'", self.alone(text, "--entry", "h", code=2).stderr)
        self.assertIn("a kernel alone has the shapes that it declares", self.alone(HEAD + FUNCTION, "--dim", "n=3", code=2).stderr)
        self.alone(text, "--entry", "f")
        open_ = HEAD.replace('"shape": [256]', '"shape": ["2 * n"]', 1)
        self.assertIn("the operand 'x' of the kernel 'f' has the axis 2*n", self.alone(open_.replace('"bodies"', '"attributes": [{"name": "n", "default": 1}], "bodies"') + FUNCTION, code=1).stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
