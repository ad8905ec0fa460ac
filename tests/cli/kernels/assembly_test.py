#!/usr/bin/env python3
"""Kernels that users wrote in the card's assembly: between products, on several queues, an argmax beside nodes of the host; what is found of
queues that do not wait and of places outside of buffers, by the author's line; what no kernel may be.
Usage: assembly_test.py BIN REPO [unittest arguments]. Exit 77 without numpy."""
import json
import pathlib
import re
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

EXAMPLE = REPO / "tools/examples/kernels"
ROWS, COLUMNS = 64, 128
STOPS = ("formats", "tiles", "buffers", "fused", "array", "spmd", "bands")

# y = x + x, a tile after the other: one queue brings them, another adds.
TILED = """; doubles
.stream load
  CONFIG_GM slot=0 kind=f16 unit=$tile
  LOOP n=$pairs
    WAIT id=0
    MOVE_GM2SIMD slot=0 saddr=$x+L0*$tile*4 daddr=0 slices=0x1
    SIGNAL id=2
    WAIT id=1
    MOVE_GM2SIMD slot=0 saddr=$x+$tile*2+L0*$tile*4 daddr=$tile*2 slices=0x1
    SIGNAL id=3
  ENDLOOP
  HALT
.stream add
  CONFIG_SIMD slot=0 n3=$tile am=SIMD a3=2 bm=SIMD b3=2 d3=2 split=0
  LOOP n=$pairs
    WAIT id=2
    EXEC_SIMD fn=add slot=0 slices=0x1 d=$y+L0*$tile*4 a=0 b=0
    SIGNAL id=0
    WAIT id=3
    EXEC_SIMD fn=add slot=0 slices=0x1 d=$y+$tile*2+L0*$tile*4 a=$tile*2 b=$tile*2
    SIGNAL id=1
  ENDLOOP
  HALT
.kernel double
  .argument x input form=f16 shape=[64,128]
  .argument y output form=f16
  .argument pairs scalar
  .argument tile scalar
  .token id=0 credits=1
  .token id=1 credits=1
  .launch q0=load q3=add
"""
# The same by one instruction.
PLAIN = """.stream add
  CONFIG_SIMD slot=3 n2=$b n3=$n a2=$n*2 a3=2 b2=$n*2 b3=2 d2=$n*2 d3=2 split=3
  EXEC_SIMD fn=add slot=3 d=$y a=$x b=$x
  HALT
.kernel double
  .main
  .argument x input form=f16
  .argument y output form=f16
  .argument b scalar
  .argument n scalar
  .launch q3=add
"""


def product_text(middle="dmir.neg"):
    """x[64, 128] times a permutation, an op in the place of which a kernel stands, times another."""
    generator = np.random.default_rng(3)
    first, second = np.eye(COLUMNS)[generator.permutation(COLUMNS)], np.eye(COLUMNS)[generator.permutation(COLUMNS)][:, :96]
    hexed = lambda w: '"0x' + w.astype(np.float32).tobytes().hex().upper() + '"'
    text = f"""func.func @main(%x: tensor<{ROWS}x{COLUMNS}xf32> {{dmir.name = "x"}}) -> (tensor<{ROWS}x96xf32> {{dmir.name = "z"}}) {{
  %a = dmir.constant dense<{hexed(first)}> : tensor<{COLUMNS}x{COLUMNS}xf32>
  %b = dmir.constant dense<{hexed(second)}> : tensor<{COLUMNS}x96xf32>
  %0 = dmir.matmul %x, %a : (tensor<{ROWS}x{COLUMNS}xf32>, tensor<{COLUMNS}x{COLUMNS}xf32>) -> tensor<{ROWS}x{COLUMNS}xf32> loc("first")
  %1 = {middle} %0 : (tensor<{ROWS}x{COLUMNS}xf32>) -> tensor<{ROWS}x{COLUMNS}xf32> loc("twice")
  %2 = dmir.matmul %1, %b : (tensor<{ROWS}x{COLUMNS}xf32>, tensor<{COLUMNS}x96xf32>) -> tensor<{ROWS}x96xf32> loc("second")
  return %2 : tensor<{ROWS}x96xf32>
}}
"""
    return text, first, second


# Where the largest of each row lies, modulo 1000, which the host computes.
ARGMAX = """func.func @main(%x: tensor<{b}x{n}xf16> {{dmir.name = "x"}}) -> (tensor<{b}xi64> {{dmir.name = "y"}}) {{
  %m = dmir.constant dense<1000> : tensor<{b}xi64>
  %0 = dmir.arg_reduce max %x {{axis = 1 : i64, keepDims = false}} : (tensor<{b}x{n}xf16>) -> tensor<{b}xi64> loc("best")
  %1 = dmir.mod %0, %m : (tensor<{b}xi64>, tensor<{b}xi64>) -> tensor<{b}xi64> loc("rest")
  %2 = dmir.div %1, %m : (tensor<{b}xi64>, tensor<{b}xi64>) -> tensor<{b}xi64> loc("none")
  %3 = dmir.add %1, %2 : (tensor<{b}xi64>, tensor<{b}xi64>) -> tensor<{b}xi64> loc("sum")
  return %3 : tensor<{b}xi64>
}}
"""


class Case(Base):
    def declare(self, assembly, scalars=(), file="k.json", body=(), **changes):
        (self.dir / "k.dmxasm").write_text(assembly)
        kernel = {"name": "acme.double", "match": {"dmir": {"op": "dmir.neg"}},
                  "operands": [{"name": "x", "dtype": "f32", "shape": ["b", "n"]}], "results": [{"name": "y", "dtype": "f32", "shape": ["b", "n"]}],
                  "scalars": [{"name": name, "value": value} for name, value in scalars],
                  "bodies": [{"target": "corsair", "object": "k.dmxasm", "symbol": "double", **dict(body)}]}
        kernel.update(changes)
        (self.dir / file).write_text(json.dumps({"kernels": [{key: value for key, value in kernel.items() if value is not None}]}))

    def double(self, plain=False):
        if plain:
            self.declare(PLAIN, (("b", "b"), ("n", "n")))
        else:
            self.declare(TILED, (("pairs", "floordiv(b*n, 4096)"), ("tile", "2048")))

    def compile(self, *options, text=None, code=0, target="corsair", out="m.bundle"):
        (self.dir / "m.mlir").write_text(text or product_text()[0])
        return self.run_tool("m.mlir", "--kernels", "k.json", "-t", target, "-o", out, *options, code=code)

    def run_bundle(self, x, *options, code=0, bundle="m.bundle"):
        np.save(self.dir / "x.npy", x)
        for old in self.dir.glob("out/*.npy"):
            old.unlink()
        done = self.run_tool(bundle, "--input", "x=x.npy", "--output-dir", "out", *options, tool="dmx-run", code=code)
        files = list((self.dir / "out").glob("*.npy")) if code == 0 else []
        return np.load(files[0]) if files else done.stderr


class Runs(Case):
    def test_between_products(self):
        """Exact: permutations of integers that blocks of 8 bits hold. All of it is one kernel of the card."""
        text, first, second = product_text()
        x = np.random.default_rng(5).integers(-31, 32, (ROWS, COLUMNS)).astype(np.float32)
        for plain, target in sample([(p, t) for p in (False, True) for t in ("corsair:quads=1", "corsair:quads=4", "corsair")], 4):
            with self.subTest(plain=plain, target=target):
                self.double(plain)
                report = self.compile("--placement-report", "-", text=text, target=target).stdout
                self.assertNotIn("cpu:", report)
                np.testing.assert_array_equal(self.run_bundle(x), (2 * (x @ first) @ second).astype(np.float32))
                schedule = self.run_tool("m.mlir", "--kernels", "k.json", "-t", target, "--emit", "schedule", "-o", "-").stdout
                self.assertEqual(schedule.count("dlir.device_program @"), 1)
                self.assertEqual(schedule.count("dlir.dispatch @"), 1)  # nothing leaves the device between

    def test_argmax(self):
        """8,192 columns, the first of equal ones, on the card, with nodes of the host behind it."""
        (self.dir / "argmax.dmxasm").write_text((EXAMPLE / "argmax.dmxasm").read_text())
        kernel = json.loads((EXAMPLE / "argmax_card.json").read_text())
        kernel["kernels"][0]["match"] = {"dmir": {"op": "dmir.arg_reduce", "attrs": {"kind": "max", "axis": -1, "keepDims": False}}}
        (self.dir / "k.json").write_text(json.dumps(kernel))
        generator = np.random.default_rng(11)
        for b, n, target in sample([(b, n, t) for b in (1, 6) for n in (8192, 77) for t in ("corsair", "corsair:quads=8")], 4):
            with self.subTest(b=b, n=n, target=target):
                report = self.compile("--placement-report", "-", text=ARGMAX.format(b=b, n=n), target=target).stdout
                self.assertRegex(report, r"(?m)^.*best.*corsair")
                self.assertRegex(report, r"(?m)^.*none.*cpu")
                x = generator.integers(-99, 99, (b, n)).astype(np.float16)
                x[0, n // 2:] = 99  # several are largest
                x[-1, -1] = 120
                np.testing.assert_array_equal(self.run_bundle(x), np.argmax(x, axis=1) % 1000)

    def test_page(self):
        """The text that the page shows is the example's."""
        blocks = re.findall(r"```\n(; .*?)```", (REPO / "src/Driver/KERNELS.md").read_text(), re.S)
        self.assertEqual(blocks, [(EXAMPLE / "argmax.dmxasm").read_text()])

    def test_its_own_file(self):
        """The declaration in front of the code; and the kernel alone as the model."""
        declared = {"name": "acme.double", "operands": [{"name": "x", "dtype": "f16", "shape": [64, 128]}],
                    "results": [{"name": "y", "dtype": "f16", "shape": [64, 128]}],
                    "scalars": [{"name": "pairs", "value": 2}, {"name": "tile", "value": 2048}], "bodies": [{"target": "corsair", "symbol": "double"}]}
        comment = "".join(f"; {line}\n" for line in json.dumps({"kernels": [declared]}).replace(", \"operands", ",\n\"operands").split("\n"))
        (self.dir / "double.dmxasm").write_text(comment + "\n" + TILED)
        self.run_tool("double.dmxasm", "-t", "corsair", "-o", "m.bundle")
        x = np.random.default_rng(1).integers(-999, 999, (ROWS, COLUMNS)).astype(np.float16)
        np.testing.assert_array_equal(self.run_bundle(x), x + x)

    def test_it_is_what_runs(self):
        """With another function the answer is another."""
        text, first, second = product_text()
        self.declare(PLAIN.replace("fn=add", "fn=mul"), (("b", "b"), ("n", "n")))
        self.compile(text=text)
        x = np.random.default_rng(5).integers(-9, 10, (ROWS, COLUMNS)).astype(np.float32)
        np.testing.assert_array_equal(self.run_bundle(x), ((x @ first) ** 2 @ second).astype(np.float32))

    def test_stops(self):
        """Each stop shows the kernel, and the same code comes from its text."""
        self.double()
        self.compile("--save-temps", "whole")
        whole = (self.dir / "whole/kernels.dmxasm").read_text()
        self.assertIn('"twice (k.dmxasm:6)"', whole)
        for stop in ["partition", *(f"schedule.{stop}" for stop in STOPS), "schedule"]:
            with self.subTest(stop=stop):
                self.run_tool("m.mlir", "--kernels", "k.json", "-t", "corsair", "--emit", stop, "-o", "stop.mlir")
                text = (self.dir / "stop.mlir").read_text()
                self.assertIn("acme.double", text)
                self.run_tool("stop.mlir", "--from", stop, "-t", "corsair", "-o", "t.bundle", "--save-temps", "again")
                self.assertEqual((self.dir / "again/kernels.dmxasm").read_text(), whole)
        (self.dir / "k.dmxasm").write_text(PLAIN)
        self.run_tool("m.mlir", "-t", "corsair", "-o", "t.bundle")
        self.run_tool("stop.mlir", "--from", "schedule", "-t", "corsair", "-o", "t.bundle")  # has the code itself

    def test_compared(self):
        """The interpreter runs the author's instructions in the program, to the simulator's bit, and says that it does so nowhere before."""
        self.declare(PLAIN.replace("fn=add slot=3 d=$y a=$x b=$x", "fn=neg slot=3 d=$y a=$x"), (("b", "b"), ("n", "n")))
        (self.dir / "m.mlir").write_text(product_text()[0])
        said = self.run_tool("m.mlir", "--random-inputs", "1", "--stages", "--", "-t", "corsair", "--kernels", "k.json", tool="dmx-compare").stdout
        self.assertRegex(said, r"(?m)^partition +not evaluated: node 'twice'.* a user wrote")
        self.assertRegex(said, r"(?m)^schedule +\d+\.\d dB")
        self.assertRegex(said, r"(?m)^run +equal to the bit")

    def test_other_texts(self):
        """Texts whose bodies are for another machine, or whose code is another, are refused by what is wrong."""
        self.double()
        self.compile()
        for stop in ("partition", "schedule.formats", "schedule.buffers"):
            self.run_tool("m.mlir", "--kernels", "k.json", "-t", "corsair", "--emit", stop, "-o", "stop.mlir")
            text = (self.dir / "stop.mlir").read_text()
            for old, new, clause in (("features = []", 'features = ["other"]', "runs on the machine"), ('symbol = "double"', 'symbol = "triple"', "no kernel 'triple'; it has double"),
                                     ('abi = "plain"', 'abi = "args"', "'abi'"), ("sha256 = \"", "sha256 = \"0", "is not the one that was declared")):
                if stop == "schedule.buffers" and clause == "runs on the machine":
                    continue  # the body was chosen before
                with self.subTest(stop=stop, clause=clause):
                    self.assertIn(old, text)
                    (self.dir / "other.mlir").write_text(text.replace(old, new))
                    self.assertIn(clause, self.run_tool("other.mlir", "--from", stop, "-t", "corsair", "-o", "t.bundle", code=4 if stop == "schedule.formats" and "machine" in clause else 1).stderr)

    def test_the_manifest(self):
        self.double()
        self.compile()
        said = self.run_tool("m.bundle", tool="dmx-inspect").stdout
        self.assertIn("k.dmxasm", said)
        self.run_bundle(np.zeros((ROWS, COLUMNS), np.float32), "--no-user-code", code=5)

    def test_clocks(self):
        """The estimate counts the kernel, as the simulator does: what it does a hundred times takes a hundred times as long."""
        estimated, measured = [], []
        for trips in (1, 100):
            loop = PLAIN.replace("  EXEC_SIMD", f"  LOOP n={trips}\n  EXEC_SIMD").replace("b=$x\n", "b=$x\n  ENDLOOP\n")
            self.declare(loop, (("b", "b"), ("n", "n")))
            said = self.compile("--explain-decisions", target="corsair:quads=1").stdout
            estimated.append(int(re.search(r"estimated at (\d+) clocks", said)[1]))
            self.run_bundle(np.zeros((ROWS, COLUMNS), np.float32), "--device-opt", "report=r.json")
            measured.append(json.loads((self.dir / "r.json").read_text())["last"][0]["main"]["clocks"])
        longer = measured[1] - measured[0]
        self.assertGreater(longer, 99 * ROWS * COLUMNS / 256)
        self.assertAlmostEqual((estimated[1] - estimated[0]) / longer, 1, delta=0.15)


class Faults(Case):
    """What an author does wrong, found when it is compiled, or by the simulator, by her line."""

    def refused(self, assembly, *parts, scalars=(("b", "b"), ("n", "n")), text=None, **changes):
        self.declare(assembly, scalars, **changes)
        said = self.compile(text=text, code=1).stderr
        for part in parts:
            self.assertIn(part, said)
        self.assertFalse((self.dir / "m.bundle").exists())

    def test_queues(self):
        """A token that is lost, one that nobody waits for, and a queue that does not wait."""
        scalars = (("pairs", "floordiv(b*n, 4096)"), ("tile", "2048"))
        for line, *parts in ((7, "line 16", "token 2 is waited for, and nothing signals it"), (16, "k.dmxasm:", "O"), (5, "k.dmxasm:", "O"),
                             (18, "k.dmxasm:", "O")):
            with self.subTest(line=line):
                words = TILED.split("\n")
                self.assertRegex(words.pop(line - 1), "SIGNAL|WAIT")
                words.insert(line - 1, "")
                self.refused("\n".join(words), *parts, scalars=scalars)
        self.refused(re.sub(r" *(SIGNAL|WAIT) id=[23]\n", "\n", TILED), "k.dmxasm:", scalars=scalars)

    def test_outside(self):
        """By one element: the sum reads behind its operand, or writes behind its result."""
        for old, new, what in (("d3=2 split", "d3=2 split", None), ("n2=$b", "n2=65", "reads"), ("d=$y", "d=$y+2", "writes"), ("a=$x", "a=$x+2", "reads")):
            with self.subTest(new=new):
                if what:
                    self.refused(PLAIN.replace(old, new), "k.dmxasm:3", what, "which has 16384")

    INDEXED = """.stream pick
  CONFIG_GM slot=0 kind=f16 unit=$n n0=$m t0=$n*2 s0=$n*2 ikind=i64 ipitch=8 irange=$RANGE
  EXTRACT rule=gather slot=0 src=GM dst=GM saddr=$x daddr=$y iaddr=$i
  HALT
.kernel double
  .argument x input form=f16
  .argument i input form=i64
  .argument y output form=f16
  .argument b scalar
  .argument m scalar
  .argument n scalar
  .launch q3=pick
"""
    GATHER = """func.func @main(%x: tensor<8x64xf16> {dmir.name = "x"}, %i: tensor<4xi64> {dmir.name = "i"}) -> (tensor<4x64xf16> {dmir.name = "y"}) {
  %0 = dmir.gather %x, %i {axis = 0 : i64} : (tensor<8x64xf16>, tensor<4xi64>) -> tensor<4x64xf16> loc("rows")
  return %0 : tensor<4x64xf16>
}
"""

    def test_indices(self):
        """Places that indices choose: beyond the operand by what the author says, or by an index of the run."""
        kernel = {"match": {"dmir": {"op": "dmir.gather"}},
                  "operands": [{"name": "x", "dtype": "f16", "shape": ["b", "n"]}, {"name": "i", "dtype": "i64", "shape": ["m"]}],
                  "results": [{"name": "y", "dtype": "f16", "shape": ["m", "n"]}]}
        scalars = (("b", "b"), ("m", "m"), ("n", "n"))
        self.refused(self.INDEXED.replace("$RANGE", "9"), "line 3", "irange", "'x', which has 1024", scalars=scalars, text=self.GATHER, **kernel)
        self.declare(self.INDEXED.replace("$RANGE", "$b"), scalars, **kernel)
        self.compile(text=self.GATHER)
        x = np.arange(512, dtype=np.float16).reshape(8, 64)
        for indices, code in (([7, 0, -1, 3], 0), ([7, 8, 0, 0], 1)):
            np.save(self.dir / "i.npy", np.array(indices, np.int64))
            got = self.run_bundle(x, "--input", "i=i.npy", code=code)
            if code == 0:
                np.testing.assert_array_equal(got, x[indices])
            else:
                self.assertIn("rows (k.dmxasm:3)", got)

    def test_what_no_text_is(self):
        """Words, operands, places and types, by the line."""
        line3 = "  EXEC_SIMD fn=add slot=3 d=$y a=$x b=$x\n"
        of = lambda new: PLAIN.replace(line3, new)
        cases = [(of("  EXEC_VECTOR fn=add\n"), "line 3", "unknown mnemonic 'EXEC_VECTOR'"),
                 (of(line3.replace("fn=add", "fn=plus")), "line 3", "field fn does not take 'plus'"),
                 (of(line3.replace("a=$x", "e=$x")), "line 3", "EXEC_SIMD has no field 'e'"),
                 (of(line3.replace("a=$x", "a=$q")), "line 3", "there is no 'q'"),
                 (of(line3.replace("a=$x", "a=64")), "line 3", "counts from a buffer"),
                 (of(line3.replace("a=$x", "a=$x+$x")), "line 3", "one buffer, once"),
                 (of(line3.replace("slot=3", "slot=4")), "line 3", "slot 4 is not set"),
                 (of(line3.replace("slot=3", "slot=16")), "line 3", "slot is 16, there are 16"),
                 (of(line3.replace("a=$x", "a=$x+L0*2")), "line 3", "names loop L0"),
                 (of(line3.replace("a=$x", "a=$x+R3")), "line 3", "registers"),
                 (of(line3.replace("d=$y", "d=$x")), "line 3", "which is an operand"),
                 (of(line3.replace("b=$x", "b=$n")), "line 3", "counts from a buffer"),
                 (of(line3 + "  EXEC_CPU fn=0\n"), "line 4", "EXEC_CPU"),
                 (of(line3 + "  SIGNALR quads=2\n"), "line 4", "a kernel of a user has no SIGNALR"),
                 (of("  ENDLOOP\n"), "line 3", "no LOOP is open"),
                 (of("  LOOP n=2\n" + line3), "line 1", "LOOP without ENDLOOP"),
                 (of("  CONFIG_GM slot=0 kind=f16\n  MOVE_GM2DDR slot=0 saddr=$x daddr=0\n"), "line 4", "which is the host's"),
                 (of("  CONFIG_GM slot=0 kind=f16\n  MOVE_WB2GM slot=0 saddr=0 daddr=$y\n"), "line 4", "illegal move"),
                 (PLAIN.replace("ak=f16", "").replace("split=3", "split=3 ak=f32"), "line 3", "a has elements of f32, and 'x' those of f16"),
                 (PLAIN.replace("x input form=f16", "x input form=i32").replace("split=3", "split=3 ak=i32 bk=i32"), "line 7", "form=i32", "is f16 on the device"),
                 (PLAIN.replace("x input form=f16", "x input form=f16 shape=[64,127]"), "line 7", "[64,127]", "[64,128]"),
                 (PLAIN.replace("x input form=f16", "x input"), "line 7", "no form"),
                 (PLAIN.replace("x input", "x inout"), "line 7", "input, output or scalar"),
                 (PLAIN.replace("  .argument n scalar\n", ""), "1 scalars, and its kernel file 2"),
                 (PLAIN.replace(".kernel double", ".kernel treble"), "no kernel 'double'; it has treble"),
                 (PLAIN.replace("q3=add", "q3=sub"), "line 11", "no stream 'sub'"),
                 (PLAIN.replace("q3=add", "q4=add"), "line 11", ".launch does not take 'q4=add'"),
                 (PLAIN.replace("  .launch q3=add\n", ""), "needs a .launch"),
                 (PLAIN.replace("  HALT\n", ""), "line 1", "does not end with HALT"),
                 (PLAIN.replace("  .main\n", "  .piece DDR\n"), "line 6", "unknown directive '.piece'"),
                 (PLAIN.replace("  .main\n", "  .buffer t GM 1000000000\n"), "line 6", "may have 1 to"),
                 (PLAIN.replace("  .main\n", "  .buffer t OB 64\n"), "line 6", "GM or ST"),
                 (PLAIN.replace("  .main\n", "  .argument y output form=f16\n"), "line 8", "there are two 'y'")]
        for assembly, *parts in sample(cases, 12):
            with self.subTest(parts=parts):
                self.refused(assembly, "acme.double", "k.dmxasm", "twice", *parts)

    def test_bodies(self):
        """Keys that say nothing of such a body; a machine that none is for; a node that has no such op."""
        scalars = (("b", "b"), ("n", "n"))
        self.refused(PLAIN, "'launch'", body={"launch": {"grid": 1}})
        self.refused(PLAIN, "abi", body={"abi": "args"})
        alone = {"name": "acme.double", "operands": [{"name": "x", "dtype": "f16", "shape": [64, 128]}], "results": [{"name": "y", "dtype": "f16", "shape": [64, 128]}],
                 "scalars": [{"value": 64}, {"value": 128}], "bodies": [{"target": "corsair", "symbol": "double", "features": ["other-card"]}]}
        (self.dir / "alone.dmxasm").write_text("; " + json.dumps({"kernels": [alone]}) + "\n" + PLAIN)
        said = self.run_tool("alone.dmxasm", "-t", "corsair", "-o", "m.bundle", code=4).stderr
        self.assertIn("no body of the kernel 'acme.double' runs on the machine 'corsair-like'", said)
        self.declare(PLAIN, scalars, match={"dmir": {"op": "dmir.abs"}})
        self.assertIn("kernel-idle", self.compile().stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
