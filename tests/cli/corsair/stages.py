#!/usr/bin/env python3
"""dmx-compare --stages: every stop of a compile for the simulated card is evaluated from its text and gives the bits of the run; a stage that
computes something else is named. Usage: stages.py BIN REPO [unittest arguments]"""
import pathlib
import random
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from dmxc_case import Base

STOPS = ("partition", "memory", "schedule.formats", "schedule.tiles", "schedule.buffers", "schedule.fused", "schedule.array", "schedule.spmd", "schedule.bands", "schedule",
         "run")


def matrix(rows, columns, seed):
    """Each 64 rows are smaller than those before, so that the order of sums shows."""
    numbers = random.Random(seed)
    return "[" + ", ".join("[" + ", ".join(f"{numbers.gauss(0, 0.1) * 2.0 ** (-4 * (row // 64)):.9f}" for _ in range(columns)) + "]" for row in range(rows)) + "]"


class Stages(Base):
    def setUp(self):
        super().setUp()
        if "corsair" not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build has no target corsair")
        x, w, y = "tensor<128x200xf32>", "tensor<200x130xf32>", "tensor<128x130xf32>"
        (self.dir / "m.mlir").write_text(
            f'func.func @main(%x: {x} {{dmir.name = "x"}}) -> ({y} {{dmir.name = "y"}}, {y} {{dmir.name = "z"}}) {{\n  %w = dmir.constant dense<{matrix(200, 130, 1)}> : {w}\n'
            f'  %b = dmir.constant dense<{matrix(1, 130, 2)[1:-1]}> : tensor<130xf32>\n  %p = dmir.matmul %x, %w : ({x}, {w}) -> {y} loc("p")\n'
            f'  %s = dmir.add %p, %b : ({y}, tensor<130xf32>) -> {y} loc("s")\n  %t = dmir.tanh %s : ({y}) -> {y} loc("t")\n'
            f'  %m = dmir.softmax %t {{axis = 1 : i64}} : ({y}) -> {y} loc("m")\n  return %m, %s : {y}, {y}\n}}\n')

    def compare(self, *arguments, quads=4, model="m.mlir", code=0, options=()):
        return self.run_tool(model, "--random-inputs", "7", "--stages", *arguments, "--", "-q", "-t", f"corsair:quads={quads}", *options,
                             tool="dmx-compare", code=code)

    def rows(self, result):
        return dict(re.findall(r"^(\S+) {2,}(.*)$", result.stdout, re.M))

    def texts(self, name, old, new):
        """texts/: the stops of a compile, of which one has other words."""
        self.run_tool("m.mlir", "-q", "-t", "corsair:quads=4", "--dump-phases", "texts", "-o", "t.bundle")
        path = self.dir / "texts" / name
        text = path.read_text()
        changed = re.sub(old, new, text, count=1)
        self.assertTrue(changed != text, f"{name} has no {old}")
        path.write_text(changed)
        return "--stage-texts", self.dir / "texts"

    def test_all_stops_give_the_bits_of_the_run(self):
        for quads in (1, 3, 8, 32):
            rows = self.rows(self.compare(quads=quads))
            self.assertRegex(rows["partition"], r"^\d+\.\d dB, the numbers of the target$")
            for stop in STOPS[1:]:
                self.assertEqual(rows[stop], "equal to the bit", f"{stop} on {quads} quads")

    def test_a_wrong_stage_is_named(self):
        """Planted in the text that a stage would have left: a tile of weights twice, another function, a bias that is not added."""
        for name, old, new, stop in (("4e-array.mlir", r"affine.load %arg1\[1, ", "affine.load %arg1[0, ", "schedule.array"),
                                     ("4f-spmd.mlir", r'simd "tanh"', 'simd "sigmoid"', "schedule.spmd"),
                                     ("4b-tiles.mlir", r"dmir.tanh", "dmir.erf", "schedule.tiles"),
                                     ("4-schedule.mlir", r'simd "tanh"', 'simd "sigmoid"', "schedule"),
                                     ("4-schedule.mlir", r"(GM -> OB (?s:.)*?)(corsair.matmul .*accumulate)\[1\]", r"\1\2[0]", "schedule")):
            result = self.compare(*self.texts(name, old, new), code=5)
            self.assertIn(f"first stage that is wrong: {stop}, beside schedule.", result.stderr, name)
            self.assertIn(", WRONG", self.rows(result)[stop])

    def test_another_order_of_sums_is_seen(self):
        """It is no wrong stage: within what the numbers of the target bring."""
        rows = self.rows(self.compare(*self.texts("4b-tiles.mlir", "num_imc 4, ppr_mode 2", "num_imc 1, ppr_mode 0")))
        self.assertRegex(rows["schedule.tiles"], r"^\d+\.\d dB$")
        self.assertEqual(rows["schedule.formats"], "equal to the bit")

    def test_text_without_a_meaning(self):
        for name, old, new, message in (
                ("4e-array.mlir", r"affine.load %arg1\[1, ", "affine.load %arg1[7, ", "has tile 7 along dim 0 of a grid of 4"),
                ("4b-tiles.mlir", r"\(d0 \* 64\)", "(d0 * 90)", "reaches beyond a tensor, along dim 1"),
                ("4f-spmd.mlir", r'simd "tanh"', 'simd "tan"', "names the function 'tan', which the vector device does not have"),
                ("4c-buffers.mlir", r"(affine.for [^=]*) = 0 to 4", r"\1 = 0 to 3", "runs over other quads than the 4 of its team"),
                ("4-schedule.mlir", r"\n *dlir.copy GM -> IB .*", "", "of 'ib' (IB 0), which nothing has written (group \"p\""),
                ("4-schedule.mlir", r"(dlir.copy OB -> GM %\w+\[[^]]*)\]", r"\1 + 1000000]", "of 'ob' (OB 0), which has "),
                ("4-schedule.mlir", r"wait\((%\w+)\)", r"wait(\1 >= 9)", "waits for ever for token ")):
            result = self.compare(*self.texts(name, old, new), code=5)
            self.assertIn(message, result.stderr, name)
            self.assertRegex(result.stderr, rf"wrong: schedule{name[2:-5].replace('-', '.') if name[1] != '-' else ''}: node '\w+' \('[\w.]+'\) ")

    def test_a_changed_text_goes_on(self):
        """What an edited text means is what its bundle computes."""
        for name, stop, after in (("4f-spmd.mlir", "schedule.spmd", ("schedule.bands", "schedule", "run")), ("4-schedule.mlir", "schedule", ("run",))):
            self.texts(name, r'simd "tanh"', 'simd "sigmoid"')
            rows = self.rows(self.compare(model=f"texts/{name}", options=("--from", stop)))
            self.assertEqual(rows[stop], "the first")
            self.assertEqual({each: rows[each] for each in after}, dict.fromkeys(after, "equal to the bit"))

    def test_who_has_no_stages(self):
        for target in ("cpu", "aie"):
            if target in self.run_tool("--print-targets").stdout:
                result = self.run_tool("m.mlir", "--random-inputs", "1", "--stages", "--", "-t", target, tool="dmx-compare", code=2)
                self.assertIn(f"target '{target}' evaluates no stages", result.stderr)
        result = self.run_tool("m.mlir", "b.bundle", "--random-inputs", "1", "--stages", tool="dmx-compare", code=2)
        self.assertIn("--stages compiles the model itself", result.stderr)
        self.assertIn("--stage-texts is for --stages",
                      self.run_tool("m.mlir", "--random-inputs", "1", "--stage-texts", "texts", tool="dmx-compare", code=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
