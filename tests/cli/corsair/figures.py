#!/usr/bin/env python3
"""What the report says of multiply-adds: those of the model, counted here from its sizes alone; those that several quads do; what fills up tiles.
Their sum is what the arrays did, and the share of peak follows from clocks and the machine's figures.
Usage: figures.py BIN REPO [unittest arguments]. Exit 77 where numpy is not installed."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN, REPO = (pathlib.Path(arg).resolve() for arg in sys.argv[1:3])


def tensor(*shape):
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def function(arguments, result, *lines):
    names = ", ".join(f"%{name}: {tensor(*shape)}" for name, shape in arguments.items())
    return f"func.func @main({names}) -> {tensor(*result)} {{\n" + "\n".join(f"  {line}" for line in lines) + f"\n  return %y : {tensor(*result)}\n}}\n"


def product(out, a, b, left, right, result):
    return f"%{out} = dmir.matmul %{a}, %{b} : ({tensor(*left)}, {tensor(*right)}) -> {tensor(*result)}"


def plain(m, k, n):
    return function({"a": (m, k), "b": (k, n)}, (m, n), product("y", "a", "b", (m, k), (k, n), (m, n))), m * k * n


def chain(m, k, n):
    """Two products, of which the second has other sizes."""
    return function({"a": (m, k), "b": (k, n), "c": (n, k)}, (m, k), product("t", "a", "b", (m, k), (k, n), (m, n)),
                    product("y", "t", "c", (m, n), (n, k), (m, k))), 2 * m * k * n


def attention(heads, rows, size, causal):
    q, t, s = (heads, rows, size), (heads, size, rows), (heads, rows, rows)
    mask = (f"%m = dmir.mask %s {{keep = [affine_set<(h, i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32}} : ({tensor(*s)}) -> {tensor(*s)}" if causal else
            f"%m = dmir.relu %s : ({tensor(*s)}) -> {tensor(*s)}")
    kept = heads * (rows * (rows + 1) // 2 if causal else rows * rows)
    return function({"q": q, "k": t, "v": q}, q, product("s", "q", "k", q, t, s), mask,
                    f"%p = dmir.softmax %m {{axis = 2 : i64}} : ({tensor(*s)}) -> {tensor(*s)}", product("y", "p", "v", s, q, q)), 2 * kept * size


def convolution(channels, size, outputs):
    x, y = (1, channels, size, size), (1, outputs, size, size)
    w = (outputs, channels, 3, 3)
    elements = outputs * channels * 9
    text = function({"x": x}, y, f"%w = dmir.constant dense<0.5> : {tensor(*w)}",
                    "%y = dmir.conv %x, %w {strides = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} "
                    f": ({tensor(*x)}, {tensor(*w)}) -> {tensor(*y)}")
    return text, elements * size * size


class Figures(unittest.TestCase):
    def report(self, text, quads, *flags):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "m.mlir").write_text(text)
            subprocess.run([BIN / "dmxc", folder / "m.mlir", "-q", "-t", f"corsair:quads={quads}", *flags, "-o", folder / "m.bundle"], check=True)
            subprocess.run([BIN / "dmx-run", folder / "m.bundle", "--random-inputs", "1", "--device-opt", f"report={folder / 'r.json'}"], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            page = subprocess.run([BIN / "dmx-inspect", folder / "m.bundle", "--html", folder / "p.html", "--report", folder / "r.json"], capture_output=True)
            self.assertEqual(page.returncode, 0, page.stderr)
            self.page = (folder / "p.html").read_text()
            return json.loads((folder / "r.json").read_text())["last"]

    def check(self, text, macs, quads, *flags):
        kernels = [kernel["main"] for kernel in self.report(text, quads, *flags)]
        machine = json.loads((REPO / "schemas/corsair/corsair-like.json").read_text())
        self.assertEqual(sum(run["model_macs"] for run in kernels), macs)
        for run in kernels:
            done = sum(run["macs"].values())
            self.assertEqual(run["model_macs"] + run["repeated_macs"] + run["padding_macs"], done)
            self.assertEqual(run["macs"]["int8"], done)
            arrays = run["quads"] * machine["topology"]["slices"]["value"] * machine["topology"]["cores"]["value"]
            clocks = run["model_macs"] * machine["dimc"]["row_clocks_int8"]["value"] / 4096 / arrays
            self.assertAlmostEqual(run["useful_peak_share"], clocks / run["clocks"], places=5)
            self.assertIn(f"{100 * run['useful_peak_share']:.3g}"[:3], self.page)
        return kernels

    def test_products_of_whole_tiles_have_no_padding(self):
        (run,) = self.check(*plain(256, 512, 256), 1)
        self.assertEqual((run["repeated_macs"], run["padding_macs"]), (0, 0))

    def test_padding_is_what_fills_tiles(self):
        (run,) = self.check(*plain(100, 500, 300), 1)
        # The arrays take as many rows as there are; K is filled up to chunks of 64, columns to tiles of 64, a number of them for all slices.
        columns, rest = divmod(sum(run["macs"].values()), 100 * 512)
        self.assertEqual(rest, 0)
        self.assertEqual(columns % 64, 0)
        self.assertGreaterEqual(columns, 320)

    def test_chains_on_teams(self):
        for quads in (1, 2, 8):
            self.check(*chain(64, 128, 96), quads)

    def test_what_every_quad_does_again_is_counted_apart(self):
        text, macs = plain(64, 128, 128)
        for quads in (2, 4):
            (run,) = self.check(text, macs, quads, "--schedule", self.whole(quads))
            self.assertEqual(run["repeated_macs"], (quads - 1) * macs)
            self.assertEqual(run["padding_macs"], 0)

    def whole(self, quads):
        """A schedule that lets each quad of the team do all of the product."""
        self.schedule = tempfile.NamedTemporaryFile("w", suffix=".mlir")
        self.addCleanup(self.schedule.close)
        self.schedule.write("module attributes {transform.with_named_sequence} {\n"
                            "  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {\n"
                            '    %r = transform.dmx.match {device = "corsair"} in %m : !transform.any_op -> !transform.any_op\n'
                            f'    transform.dmx.decide %r {{quads = {quads} : i64, "dmir.matmul" = {{split = "whole"}}}} : !transform.any_op\n'
                            "    transform.yield\n  }\n}\n")
        self.schedule.flush()
        return self.schedule.name

    def test_attention_counts_what_a_mask_keeps(self):
        for causal in (False, True):
            for quads in (1, 4):
                self.check(*attention(2, 512, 64, causal), quads)
        text, _ = attention(2, 512, 64, True)
        self.check(text, 2 * 2 * 512 * 512 * 64, 1, "--sparsity", "off")

    def test_convolutions(self):
        for quads in (1, 8):
            (run,) = self.check(*convolution(3, 32, 64), quads)
            self.assertGreater(run["padding_macs"], 10 * run["model_macs"])  # 27 numbers of a window in nine chunks of 64
            self.check(*convolution(64, 28, 128), quads)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
