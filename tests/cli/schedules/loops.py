#!/usr/bin/env python3
"""Scripts that change the loops of products on Corsair: one that exchanges two loops gives what the edited text gives; the others give the
bits of the default, at every stop by the interpreter and in the run. Usage: loops.py BIN [unittest arguments]; a plain run takes a part of
the cases. Exit 77 where numpy is not installed."""
import json
import pathlib
import re
import subprocess
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from corsair_rotations import Graph
from dynamic_shapes import BIN, BundleTest, np, onnx
from sampling import sample
from schedules.scripts import ANY, fuse, interchange, loop, match, script, tile, unroll

PRODUCTS = {  # shapes of both operands; whether the second are weights, with a bias
    "square": ((512, 512), (512, 512), True), "ragged": ((200, 700), (700, 330), True), "batch": ((3, 300, 100), (3, 100, 200), False)}
PAD = f"%q = transform.dmx.pad %n to_multiple_of 3 : {ANY} -> {ANY}"
CHANGES = {
    "interchange": [interchange([1, 0])],
    "tile": [tile([2, 3])],
    "tile the inner": [tile([0, 2])],
    "strip-mine": [tile([2])],
    "tile twice": [tile([4, 4], handle="a"), tile([2, 2], nest="ap", handle="b")],
    "tile and interchange": [tile([3, 2]), interchange([1, 0], nest="t")],
    "unroll the inner": [loop(1), unroll("by 2")],
    "unroll the outer": [loop(0), unroll("by 2")],
    "unroll whole": [loop(1), unroll("full")],
    "interchange and unroll": [interchange([1, 0]), loop(1, nest="o"), unroll("by 3")],
}
AT_ARRAY = {"pad": [PAD], "pad and unroll": [PAD, loop(0, nest="q"), unroll("by 3")], "pad and tile": [PAD, tile([3, 2], nest="q")]}
STOPS = ("schedule.tiles", "schedule.array")


def entries(bundle):
    """What is in a bundle, but the manifest, which has the model's hash."""
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != "manifest.json"}


class Loops(BundleTest):
    def write(self, *products):
        """A model of these, which share their first operand."""
        g, source, infos, outputs, self.values, self.exact = Graph(), np.random.default_rng(7), [], [], {}, []
        shapes = PRODUCTS[products[0]][0]
        self.values["x"] = source.standard_normal(shapes).astype(np.float32)
        for i, name in enumerate(products):
            _, second, packed = PRODUCTS[name]
            w = source.standard_normal(second).astype(np.float32)
            wanted = self.values["x"].astype(np.float64) @ w
            if packed:
                bias = source.standard_normal(second[-1]).astype(np.float32)
                made = g.op("MatMul", "x", g.constant(w))
                g.nodes.append(onnx.node("Add", f"{made} {g.constant(bias)}", f"y{i}"))
                wanted = wanted + bias
            else:
                self.values[f"w{i}"] = w
                g.nodes.append(onnx.node("MatMul", f"x w{i}", f"y{i}"))
            self.exact.append(wanted)
            outputs.append(onnx.info(f"y{i}", onnx.FLOAT, None))
        infos = [onnx.info(key, onnx.FLOAT, list(value.shape)) for key, value in self.values.items()]
        (self.dir / "m.onnx").write_bytes(onnx.model(g.nodes, infos, outputs, weights=g.weights))

    def dmxc(self, *arguments, code=0):
        done = subprocess.run([BIN / "dmxc", "-q", *map(str, arguments)], capture_output=True, text=True, cwd=self.dir)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def run_it(self):
        """Outputs, and clocks."""
        done = self.run_bundle(self.values, "--device-opt", f"report={self.dir / 'r.json'}")
        self.assertEqual(done.returncode, 0, done.stderr)
        clocks = json.loads((self.dir / "r.json").read_text())["last"][0]["main"]["clocks"]
        return [np.load(self.dir / f"out/out_y{i}.npy") for i in range(len(self.exact))], clocks

    def check(self, name, quads, at, lines, before):
        """The script's bundle gives the default's bits, and so does each stop's text."""
        (self.dir / "s.mlir").write_text(script(at, *lines))
        flags = ("-t", f"corsair:quads={quads}", "--schedule", "s.mlir")
        self.dmxc("m.onnx", "-o", "m.bundle", *flags)
        outputs, clocks = self.run_it()
        for first, second in zip(before[0], outputs):
            self.assertEqual(first.tobytes(), second.tobytes())
        stages = subprocess.run([BIN / "dmx-compare", "m.onnx", "--random-inputs", "1", "--stages", "--", *flags], capture_output=True, text=True, cwd=self.dir)
        self.assertEqual(stages.returncode, 0, stages.stdout + stages.stderr)
        self.assertNotIn("WRONG", stages.stdout)
        self.assertNotIn("not evaluated", stages.stdout)
        print(f"{name}, {quads} quads, {at}: {clocks} clocks, {before[1]} without", flush=True)
        return clocks

    def default(self, quads):
        self.dmxc("m.onnx", "-t", f"corsair:quads={quads}", "-o", "m.bundle")
        outputs, clocks = self.run_it()
        for wanted, got in zip(self.exact, outputs):
            noise = np.sum((wanted - got.astype(np.float64)) ** 2)
            self.assertGreater(10 * np.log10(np.sum(wanted**2) / noise), 35)
        return outputs, clocks

    def test_interchange_is_the_hand_edit(self):
        """Of the text of schedule.tiles, whose two loops are exchanged by exchanging what their counters count."""
        self.write("square")
        self.dmxc("m.onnx", "-t", "corsair:quads=1", "--emit", "schedule.tiles", "-o", "t.mlir")
        text = (self.dir / "t.mlir").read_text()
        outer, inner = re.findall(r"affine\.for (%\w+) ", text)
        exchanged = re.sub(r"(affine\.apply #map\()(%\w+)", lambda found: found[1] + {outer: inner, inner: outer}[found[2]], text)
        self.assertNotEqual(text, exchanged)
        (self.dir / "edited.mlir").write_text(exchanged)
        self.dmxc("edited.mlir", "--from", "schedule.tiles", "-t", "corsair:quads=1", "-o", "edited.bundle")
        (self.dir / "s.mlir").write_text(script("schedule.tiles", match(), interchange([1, 0])))
        self.dmxc("m.onnx", "-t", "corsair:quads=1", "--schedule", "s.mlir", "-o", "script.bundle")
        self.dmxc("t.mlir", "--from", "schedule.tiles", "-t", "corsair:quads=1", "--schedule", "s.mlir", "-o", "resumed.bundle")
        self.dmxc("m.onnx", "-t", "corsair:quads=1", "-o", "plain.bundle")
        plain, edited, by_script, resumed = (entries(self.dir / f"{name}.bundle") for name in ("plain", "edited", "script", "resumed"))
        self.assertEqual(edited, by_script)
        self.assertEqual(edited, resumed)
        self.assertNotEqual(edited, plain)

    def test_changes_keep_the_bits(self):
        cases = [(product, quads, at, change) for product in PRODUCTS for quads in (1, 4) for at in STOPS for change in (CHANGES if at != "schedule.array" else {**CHANGES, **AT_ARRAY})]
        for product, quads, at, change in sample(cases, 12):
            with self.subTest(product=product, quads=quads, at=at, change=change):
                self.write(product)
                self.check(f"{product}, {change}", quads, at, [match()] + (CHANGES | AT_ARRAY)[change], self.default(quads))

    def test_fusion_over_quads(self):
        """Products that are dealt alike, in one loop over the quads."""
        for product, count in sample([("square", 2), ("ragged", 2), ("square", 3)], 3):
            with self.subTest(product=product, count=count):
                self.write(*[product] * count)
                before = self.default(4)
                dealt = [match(f'kind = "loop", where = {{lldmir.quads}}, nth = {i}', f"q{i}", f" expect {count}") for i in range(count)]
                fused = [fuse("q0", "q1")] + [fuse("f", f"q{i}").replace("%f =", f"%f{i} =") for i in range(2, count)]
                self.check(f"{count} times {product}, fused", 4, "schedule.array", dealt + fused, before)

    def test_what_the_rest_of_the_compile_refuses(self):
        """It is said by node, and which ops of the script changed what was refused."""
        self.write("square")
        (self.dir / "s.mlir").write_text(script("schedule.tiles", match(), "%p = transform.dmx.pad %n to_multiple_of 3 : !transform.any_op -> !transform.any_op"))
        done = subprocess.run([BIN / "dmxc", "m.onnx", "-t", "corsair:quads=1", "-o", "m.bundle", "--schedule", "s.mlir"], capture_output=True, text=True, cwd=self.dir)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("'affine.if'", done.stderr)
        self.assertIn("scripts changed what schedule.buffers was given: behind schedule.tiles 'transform.dmx.pad' at s.mlir:4:10", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
