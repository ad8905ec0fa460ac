#!/usr/bin/env python3
"""The loops of a product are the program: texts of schedule.array whose loops are written in other ways that mean the same give the same bits,
or nearly so where sums are added in another order; what does not compute each tile once is refused by its op; numbers that are changed at random
are obeyed or refused. Usage: loops.py BIN [unittest arguments]; a plain run takes a part of them. Exit 77 where numpy is not installed."""
import collections
import pathlib
import random
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from corsair import nests
from corsair_rotations import Graph
from dynamic_shapes import BIN, BundleTest, np, onnx
from sampling import LONG, SEED, sample, sampled

STAGES = ("schedule.formats", "schedule.tiles", "schedule.buffers", "schedule.fused", "schedule.array", "schedule.spmd", "schedule.bands", "schedule")
CASES = {  # rows, depth, columns; how many matrices, or the weights of all rows
    "square": (512, 512, 512, "weights"), "ragged": (200, 1100, 330, "weights"), "one row": (1, 700, 900, "weights"),
    "values": (300, 700, 330, "values"), "batch": (130, 100, 200, 3)}
# Of numbers in text those outside of types, names, strings and locations.
TYPE = re.compile(r"(?:memref|tensor|vector)<|!\w[\w.]*<")
WORD = re.compile(r'"[^"]*"|loc\([^)]*\)+|#\w+|[%@]\w+(?:#\d+)?|\b[dif]\d+\b')
WHERE = re.compile(r"affine\.|lldmir\.(matmul|simd|reshape|gather|sum)|memref\.|affine_map|tensor\.|dmir\.matmul|dlir\.|corsair\.")
HEAD = re.compile(r"module attributes|func\.func|gpu\.func|dlir\.(buffer|program|dispatch |argument)")


def numbers_of(text):
    """Where the numbers of loops, maps, slots and orders stand: line, first and last column."""
    for at, line in enumerate(text.split("\n")):
        if not WHERE.search(line) or HEAD.search(line):
            continue
        hidden = list(line)
        for found in WORD.finditer(line):
            hidden[found.start():found.end()] = " " * len(found[0])
        for found in TYPE.finditer(line):
            depth, end = 1, found.end()
            while depth and end < len(line):
                depth += (line[end] == "<") - (line[end] == ">" and line[end - 1] != "-")
                end += 1
            hidden[found.start():end] = " " * (end - found.start())
        for found in re.finditer(r"(?<![\w.])\d+(?![\w.])", "".join(hidden)):
            yield at, *found.span()


def sqnr(exact, got):
    wrong = np.sum((exact - got.astype(np.float64)) ** 2)
    return 300.0 if wrong == 0 else 10 * np.log10(np.sum(exact**2) / wrong)


@sampled(2)
class Loops(BundleTest):
    def write(self, name):
        rows, depth, columns, kind = CASES[name]
        g, source = Graph(), np.random.default_rng(rows)
        lead = (kind,) if isinstance(kind, int) else ()
        shapes = {"x": lead + (rows, depth), "w": lead + (depth, columns)}
        self.all = {key: source.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}
        self.bias = source.standard_normal(columns).astype(np.float32) if kind == "weights" else np.zeros(columns, np.float32)
        inputs = [key for key in shapes if key == "x" or kind != "weights"]
        made = g.op("MatMul", "x", "w" if "w" in inputs else g.constant(self.all["w"]))
        g.nodes.append(onnx.node("Add", f"{made} {g.constant(self.bias)}", "y") if kind == "weights" else onnx.node("Identity", made, "y"))
        (self.dir / "m.onnx").write_bytes(onnx.model(g.nodes, [onnx.info(key, onnx.FLOAT, list(shapes[key])) for key in inputs],
                                                     [onnx.info("y", onnx.FLOAT, None)], weights=g.weights))
        self.values = {key: self.all[key] for key in inputs}
        self.exact = np.matmul(*(value.astype(np.float64) for value in self.all.values())) + self.bias

    def text(self, stage, quads):
        return subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-q", "-t", f"corsair:quads={quads}", "--emit", stage, "-o", "-"],
                              capture_output=True, text=True, check=True).stdout

    def compile(self, text, quads, stage="schedule.array"):
        (self.dir / "t.mlir").write_text(text)
        return subprocess.run([BIN / "dmxc", self.dir / "t.mlir", "--from", stage, "-q", "-t", f"corsair:quads={quads}", "-o", self.dir / "m.bundle"],
                              capture_output=True, text=True)

    def result(self, text, quads, stage="schedule.array"):
        done = self.compile(text, quads, stage)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.outcome()

    def outcome(self):
        done = self.run_bundle(self.values)
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(self.dir / "out/out_y.npy")

    def test_loops_that_mean_the_same(self):
        cases = [(name, quads, change) for name in CASES for quads in (1, 2, 8) for change in nests.KEEPING + nests.REORDERING]
        for name, quads, change in sample(cases, 15):
            with self.subTest(name=name, quads=quads, change=change.__name__):
                self.write(name)
                text = self.text("schedule.array", quads)
                first = self.result(text, quads)
                self.assertGreater(sqnr(self.exact, first), 35)
                y = self.result(change(nests.Nest(text)), quads)
                if change in nests.KEEPING:
                    self.assertEqual(first.tobytes(), y.tobytes())
                else:
                    self.assertGreater(sqnr(first.astype(np.float64), y), 50)

    def test_every_product_of_a_model(self):
        """All loops of one with weights, heads and what is computed between them are others: the same bits."""
        g, source = Graph(), np.random.default_rng(3)
        weights = lambda *shape: g.constant(source.standard_normal(shape).astype(np.float32) / np.sqrt(shape[0]))
        heads = lambda x: g.op("Transpose", g.op("Reshape", x, g.constant([150, 3, 40])), perm=[1, 0, 2])
        hidden = g.op("Relu", g.op("Add", g.op("MatMul", "x", weights(200, 300)), weights(300)))
        q, k, v = (heads(g.op("MatMul", hidden, weights(300, 120))) for _ in range(3))
        scores = g.op("Softmax", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1])), axis=-1)
        joined = g.op("Reshape", g.op("Transpose", g.op("MatMul", scores, v), perm=[1, 0, 2]), g.constant([150, 120]))
        g.nodes.append(onnx.node("MatMul", f"{joined} {weights(120, 100)}", "y"))
        (self.dir / "m.onnx").write_bytes(onnx.model(g.nodes, [onnx.info("x", onnx.FLOAT, [150, 200])], [onnx.info("y", onnx.FLOAT, None)], weights=g.weights))
        self.values = {"x": source.standard_normal((150, 200)).astype(np.float32)}
        for quads in (1, 2, 3):
            text = self.text("schedule.array", quads)
            wanted, chooses, done = self.result(text, quads), random.Random(SEED + quads), []
            rest, changed = text, []
            while True:
                try:
                    nest = nests.Nest(rest)
                except StopIteration:
                    break
                done.append(chooses.choice([each for each in nests.KEEPING if each != nests.quads_split]))
                before = len(nest.lines) - nest.end
                changed += done[-1](nest).split("\n")[:-before]
                rest = "\n".join(nest.lines[nest.end:])
            with self.subTest(quads=quads, changes=[each.__name__ for each in done]):
                self.assertGreaterEqual(len(done), 7)
                self.assertEqual(wanted.tobytes(), self.result("\n".join(changed) + "\n" + rest, quads).tobytes())

    def test_order_is_that_of_the_loops(self):
        """Other loops, another program: which operand stays, and how often the other is fetched."""
        self.write("square")
        nest = nests.Nest(self.text("schedule.array", 1))
        programs = set()
        for change in (nests.interchanged, nests.weights_hoisted, nests.tiled, nests.k_halved, nests.rows_backwards):
            (self.dir / "t.mlir").write_text(change(nest))
            programs.add(subprocess.run([BIN / "dmxc", self.dir / "t.mlir", "--from", "schedule.array", "--emit", "schedule", "-q", "-t", "corsair:quads=1", "-o", "-"],
                                        capture_output=True, text=True, check=True).stdout)
        self.assertEqual(len(programs), 5)

    def test_size_does_not_follow_trips(self):
        def lines(columns, change):
            CASES["wide"] = (512, 128, columns, "weights")
            self.write("wide")
            self.assertEqual(self.compile(change(nests.Nest(self.text("schedule.array", 1))), 1).returncode, 0)
            done = subprocess.run([BIN / "dmxc", self.dir / "t.mlir", "--from", "schedule.array", "--emit", "schedule", "-q", "-t", "corsair:quads=1", "-o", "-"],
                                  capture_output=True, text=True, check=True)
            return done.stdout.count("\n")
        for change in (nests.tiled, nests.rows_backwards, nests.even_columns_first, nests.columns_stripped, nests.columns_unrolled):
            with self.subTest(change=change.__name__):
                self.assertLess(lines(12288, change), lines(6144, change) + 8)

    def refuses(self, text, *says, quads=1):
        done = self.compile(text, quads)
        self.assertEqual(done.returncode, 1, done.stderr)
        for words in says:
            self.assertIn(words, done.stderr)

    def test_loops_that_are_wrong(self):
        self.write("ragged")
        n = nests.Nest(self.text("schedule.array", 1))
        plain = lambda rows, columns, body=None: nests.loop("%r", rows, nests.loop("%c", columns, body or n.body("%r", "%c")))
        self.refuses(n.text(plain(n.rows, n.columns - 1)), "'affine.store'", f"tile [0, {n.columns - 1}]", "no loop before stores")
        self.refuses(n.text(plain(n.rows, f"0 to {n.columns} step 2")), "needs tile [0, 1]")
        self.refuses(n.text(plain(n.rows, n.columns), plain(1, 1)), "'affine.store'", "stores tile [0, 0], which other loops store too")
        self.refuses(n.text(plain(n.rows, n.columns, n.body("%r", "%c * 0"))), "'affine.store'", "stores tile [0, 0] again")
        self.refuses(n.text(plain(n.rows + 1, n.columns)), "'affine.load'", f"is of tile {n.rows} along dim 0 of a grid that has {n.rows}")
        self.refuses(n.text(plain(n.rows, n.columns, n.body("%r", "%c", order=n.order[1:]))), "'affine.store'", "without tile 0 along K")
        self.refuses(n.text(plain(n.rows, n.columns, n.body("%r", "%c", order=n.order + n.order[:1]))), "'affine.store'", "with tile 0 along K of the weights twice")
        turned = [re.sub(r"x \[(%\w+), (%\w+)", r"x [\2, \1", line) for line in n.body("%r", "%c")]
        self.refuses(n.text(plain(n.rows, n.columns, turned)), "'lldmir.matmul'", "weights of neighbouring cores are neighbours")
        crossed = [re.sub(r"\[(.*?)\] x \[(.*?)\]", r"[\2] x [\1]", line) for line in n.body("%r", "%c")]
        self.refuses(n.text(plain(n.rows, n.columns, crossed)), "error: ")
        other = [line.replace("[%r + 0, 1]", f"[{n.rows - 1} - %r, 1]") for line in n.body("%r + 0", "%c")]
        self.refuses(n.text(plain(n.rows, n.columns, other)), "'lldmir.matmul'", "tiles of several rows or columns")
        self.refuses(n.text(plain(n.rows, n.columns, ["%z = memref.alloc() : memref<4xf16>", *n.body("%r", "%c")])), "'memref.alloc'", "is not known in the loops of a product")
        self.refuses(n.text(plain(n.rows, n.columns, nests.loop("%z", 10**12, n.lefts([], "%r") and n.body("%r", "%c")[:1]) + n.body("%r", "%c"))), "is reached too often")
        self.refuses(n.text(plain(n.rows, n.columns, n.body(f"{n.rows - 1} - %r", "%c")[:-1] + n.body("%r", "%c")[-1:])), "error: ")
        swapped = n.body("%r", "%c")
        swapped[-1] = swapped[-1].replace("[%r, %c]", f"[{n.rows - 1} - %r, %c]")
        self.refuses(n.text(plain(n.rows, n.columns, swapped)), "'affine.store'", "of operands that end in the middle of a tile")

    def test_how_tiles_are_spread(self):
        """The products of the loops say it themselves, obeyed when it is changed; the plan that the loops were made by is not there."""
        self.write("values")
        text, programs = self.text("schedule.array", 1), set()
        self.assertNotIn("lldmir.plan", text)
        first = self.result(text, 1)
        spread = lambda text, new, count=0: re.sub(r"spread <.*?>", f"spread <{new}>", text, count=count)
        for new in ("groups 1, slices 1, share columns, segment 8", "groups 2, slices 2, share columns, segment 8", "groups 2, slices 4, share columns, segment 4",
                    "groups 1, slices 3, share rows, segment 8", "groups 1, slices 3, share rows, segment 40"):
            with self.subTest(spread=new):
                self.assertEqual(first.tobytes(), self.result(spread(text, new), 1).tobytes())
                programs.add(subprocess.run([BIN / "dmxc", self.dir / "t.mlir", "--from", "schedule.array", "--emit", "schedule", "-q", "-t", "corsair:quads=1", "-o", "-"],
                                            capture_output=True, text=True, check=True).stdout)
        self.assertEqual(len(programs), 4)  # half of IB has room for no more than 8
        self.refuses(spread(text, "groups 1, slices 1, share columns, segment 8", 1), "'lldmir.matmul'", "is not spread as the others of its matrix")
        self.refuses(spread(text, "groups 1, slices 2, share batch, segment 8"), "'lldmir.matmul'", "it has no products that slices could share")
        self.refuses(spread(text, "groups 5, slices 1, share rows, segment 8"), "'lldmir.matmul'", "groups is 5: OB has room for four")
        self.refuses(spread(text, "groups 1, slices 1, share rows, segment 0"), "the numbers of a plan are positive")
        self.write("square")
        self.refuses(spread(self.text("schedule.array", 1), "groups 1, slices 3, share columns, segment 8"), "'lldmir.matmul'", "over 1 groups and 3 slices that share columns; its weights are packed for")

    def test_products_in_place(self):
        CASES["even"] = (128, 128, 128, "values")
        self.write("even")
        n = nests.Nest(self.text("schedule.array", 1))
        n.out, n.out_type = n.left
        self.refuses(n.text(nests.loop("%r", n.rows, nests.loop("%c", n.columns, n.body("%r", "%c")))), "'affine.store'", "fills the matrix that its product reads")

    def test_orders_without_end(self):
        """A product's program has a few instructions for each box of neighbouring tiles."""
        CASES["many"] = (24 * 64, 64, 24 * 64, "weights")
        self.write("many")
        n = nests.Nest(self.text("schedule.array", 1))
        places = [(row, column) for row in range(n.rows) for column in range(n.columns)]
        random.Random(1).shuffle(places)
        self.refuses(n.text(nests.loop("%i", 1, [line for row, column in places for line in n.body(str(row), str(column))])), "in an order that takes")

    def changed(self, text, source):
        """One number is another: its double, a small one, or its neighbour, which of what is counted in lines of 64 is a line away."""
        at, first, last = source.choice(list(numbers_of(text)))
        lines = text.split("\n")
        old = int(lines[at][first:last])
        line = 64 if old and old % 64 == 0 else 1
        new = source.choice([each for each in (old + line, old - line, 2 * old, 0, 1, source.randrange(20)) if each != old])
        lines[at] = f"{lines[at][:first]}{new}{lines[at][last:]}"
        return "\n".join(lines), f"{lines[at].strip()[:150]}: {old} was changed to {new}"

    def agrees(self, quads, stage):
        """The interpreter of stages gives the changed text the numbers of the program that became of it, at each stop on the way."""
        done = subprocess.run([BIN / "dmx-compare", self.dir / "t.mlir", "--random-inputs", "1", "--stages", "--", "--from", stage, "-t", f"corsair:quads={quads}"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"run +equal to the bit")

    def test_results_from_an_odd_byte(self):
        """Halves that begin in the middle of others are subnormal now and then; they leave the card as what they are."""
        self.write("square")
        changed, count = re.subn(r"(dlir.copy GM -> DDR %\w+\[%i \* \d+) \+ \d+\]", r"\1 + 1]", self.text("schedule", 1))
        self.assertEqual(count, 1)
        self.assertEqual(self.compile(changed, 1, "schedule").returncode, 0)
        self.agrees(1, "schedule")

    def test_numbers_that_are_changed(self):
        """Each is obeyed, which the interpreter of stages says, or refused by its op; no compiler fault, and no program that faults."""
        count, told, source = (500 if LONG else 40), collections.Counter(), random.Random(SEED)
        cases = [(name, quads, stage) for name, quads in (("ragged", 1), ("square", 1), ("ragged", 2)) for stage in STAGES]
        texts = {}
        for number in range(count):
            name, quads, stage = case = cases[number % len(cases)]
            self.write(name)
            text = texts[case] = texts.get(case) or self.text(stage, quads)
            if not any(True for _ in numbers_of(text)):
                continue
            changed, what = self.changed(text, source)
            with self.subTest(name=name, quads=quads, stage=stage, change=what):
                done = self.compile(changed, quads, stage)
                told[stage, done.returncode] += 1
                self.assertIn(done.returncode, (0, 1), done.stderr)
                if done.returncode:
                    self.assertRegex(done.stderr, r"error: .*'|node '\w+': error: |t\.mlir:\d+:\d+: error: ")
                    continue
                self.agrees(quads, stage)
        obeyed, refused = (sum(told[stage, code] for stage in STAGES) for code in (0, 1))
        print(f"changed numbers: {obeyed} obeyed, {refused} refused; obeyed of", ", ".join(f"{stage} {told[stage, 0]}" for stage in STAGES))
        if LONG:  # 17 to 21 of a hundred, by seed: most others are loops that leave tiles out, slices beyond their values, and spreads of one op alone
            self.assertGreaterEqual(obeyed, 0.15 * (obeyed + refused))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
