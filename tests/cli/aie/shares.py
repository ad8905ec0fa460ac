#!/usr/bin/env python3
"""What of the array's peak is useful: shares.py BIN [unittest arguments]

Compiles and runs products and convolutions and takes from the report what the model asks for, what fills blocks, and the clocks.
Shares are checked against the sizes here and against each other; those of mlir-aie's whole_array, whose public logs are in
schemas/aie/NUMERICS.md, within a tenth. A plain run takes the small ones, and of whole_array's steps along k fewer; DMXC_LONG=1 all of them. Prints the table."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2])]
import sampling  # noqa: E402

BIN = pathlib.Path(sys.argv[1]).resolve()
CORES, MACS = 16, {"i8": 256, "bf16": 128}  # of a core in a clock


def product(m, k, n, kind="bf16", batch=()):
    """Of two matrices of a run."""
    element, wide = ("f32", "f32") if kind == "bf16" else ("i8", "i32")
    a, b, y = ("x".join(map(str, [*batch, *dims])) for dims in ((m, k), (k, n), (m, n)))
    return f"""func.func @main(%a: tensor<{a}x{element}> {{dmir.name = "a"}}, %b: tensor<{b}x{element}> {{dmir.name = "b"}}) -> (tensor<{y}x{wide}> {{dmir.name = "y"}}) {{
  %y = dmir.matmul %a, %b : (tensor<{a}x{element}>, tensor<{b}x{element}>) -> tensor<{y}x{wide}>
  return %y : tensor<{y}x{wide}>
}}"""


def convolution(size, channels):
    """3 x 3 as residual networks have them."""
    image, weights = f"1x{channels}x{size}x{size}", f"{channels}x{channels}x3x3"
    return f"""func.func @main(%x: tensor<{image}xf32> {{dmir.name = "x"}}) -> (tensor<{image}xf32> {{dmir.name = "y"}}) {{
  %w = dmir.constant dense<1.0> : tensor<{weights}xf32>
  %y = dmir.conv %x, %w {{strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>}} : (tensor<{image}xf32>, tensor<{weights}xf32>) -> tensor<{image}xf32>
  return %y : tensor<{image}xf32>
}}"""


# Name: text, kind, MACs, whether a plain run takes it.
CASES = {
    "one row of 1024x4096": (product(1, 1024, 4096), "bf16", 1024 * 4096, True),
    "bytes 256x256x512": (product(256, 512, 256, "i8"), "i8", 256 * 256 * 512, True),
    "12 heads of 128x64": (product(128, 64, 128, batch=(12,)), "bf16", 12 * 128 * 64 * 128, True),
    "128x768x3072": (product(128, 768, 3072), "bf16", 128 * 768 * 3072, False),
    "conv 7^2 of 512": (convolution(7, 512), "bf16", 49 * 512 * 512 * 9, True),
    "conv 14^2 of 256": (convolution(14, 256), "bf16", 196 * 256 * 256 * 9, False),
    "conv 28^2 of 128": (convolution(28, 128), "bf16", 784 * 128 * 128 * 9, False),
    "conv 56^2 of 64": (convolution(56, 64), "bf16", 3136 * 64 * 64 * 9, False),
    "512^3": (product(512, 512, 512), "bf16", 512**3, False),
    "1024^3": (product(1024, 1024, 1024), "bf16", 1024**3, False),
    "bytes 1024^3": (product(1024, 1024, 1024, "i8"), "i8", 1024**3, False),
}
# By whole_array on a Phoenix, 2048^3, of the peak at 1 GHz: kind and share; its blocks are square tiles of 64 x 64 results.
LOGGED = {"i8": (0.562, 64), "bf16": (0.506, 32)}  # with the tile's k


class Shares(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-shares-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)

    def tool(self, name, *arguments):
        done = subprocess.run([BIN / name, *map(str, arguments)], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def measured(self, text, tiling=None):
        """The report of a run, and what is said before it; by default with the tiling that costs least."""
        (self.dir / "m.mlir").write_text(text)
        said = self.tool("dmxc", "m.mlir", "-t", "aie", "-o", "m.bundle", "--explain-decisions")
        if tiling:
            self.tool("dmxc", "m.mlir", "-t", "aie", "--emit", "partition", "-o", "p.mlir")
            partition, count = re.subn(r"tiling = \{[^}]*\}", f"tiling = {{{tiling}}}", (self.dir / "p.mlir").read_text())
            self.assertEqual(count, 1)
            partition = re.sub(r'algorithm = "[^"]*", ', "", partition)  # which is derived
            (self.dir / "p.mlir").write_text(partition)
            self.tool("dmxc", "p.mlir", "--from", "partition", "-t", "aie", "-o", "m.bundle")
        self.tool("dmx-run", "m.bundle", "--random-inputs", 1, "--device-opt", "report=r.json")
        [kernel] = json.loads((self.dir / "r.json").read_text())["last"]
        return kernel, said

    def share(self, text, kind, macs, tiling=None):
        """Useful of the peak, by the sizes and the clocks alone; the report and what is said before agree with it."""
        kernel, said = self.measured(text, tiling)
        main = kernel["main"]
        done = sum(main["macs"].values())
        useful = macs / (CORES * MACS[kind] * main["clocks"])
        self.assertEqual(main["model_macs"], macs)
        self.assertEqual(main["padding_macs"], done - macs)
        self.assertAlmostEqual(main["useful_peak_share"], useful, delta=1e-4 * useful)
        self.assertAlmostEqual(main["mac_peak_share"], done / (main["cores"] * MACS[kind] * main["clocks"]), delta=1e-4)  # of those in use
        self.assertLessEqual(main["mac_peak_share"], 1)
        self.assertGreater(kernel["host_link_seconds"], 0)
        if tiling:
            return useful, main
        told = re.search(rf", {macs} MACs, ([0-9.]+) % padding", said)
        self.assertIsNotNone(told, said)
        self.assertLessEqual(abs(float(told[1]) - 100 * (1 - macs / done)), 0.1)
        return useful, main

    def test_shares(self):
        small = sampling.sample([name for name, case in CASES.items() if case[3]], 2)
        for name, (text, kind, macs, _) in CASES.items():
            if name not in small and not sampling.LONG:
                continue
            with self.subTest(name):
                useful, main = self.share(text, kind, macs)
                padding = main["padding_macs"] / (macs + main["padding_macs"])
                print(f"{name}: {100 * useful:.1f} % of the peak, {100 * padding:.1f} % of the cores' work is padding; {main['clocks']} clocks, bound by {main['bound']}")

    def test_as_logged(self):
        """Blocks follow each other without a gap, so few of them tell what 2048^3 takes: less than a tenth beside it is fill and drain."""
        m, k = (2048, 2048) if sampling.LONG else (512, 4096)
        for kind, (logged, tile) in LOGGED.items():
            with self.subTest(kind):
                tiling = f"bands = 1 : i64, stays = 0 : i64, herd_columns = 4 : i64, herd_rows = 4 : i64, panels = 1 : i64, result_channels = 1 : i64, tile_k = {tile} : i64, tile_m = 64 : i64, tile_n = 64 : i64"
                useful, main = self.share(product(m, k, m, kind), kind, m * k * m, tiling)
                print(f"{kind} {m}x{k}x{m}: {100 * useful:.1f} % of the peak in {main['clocks']} clocks, logged {100 * logged:.1f} %")
                self.assertLess(abs(useful / logged - 1), 0.1)

    def test_the_page(self):
        """dmx-inspect shows the three kinds apart."""
        macs = 10 * 100 * 130
        _, main = self.share(product(10, 100, 130), "bf16", macs)
        self.tool("dmx-inspect", "m.bundle", "--html", "m.html", "--report", "r.json")
        html = (self.dir / "m.html").read_text()
        told = re.search(r"([0-9.]+) % of peak; ([0-9.]+) % of its MACs are padding", html)
        self.assertIsNotNone(told, "the page says nothing of padding")
        self.assertAlmostEqual(float(told[1]), 100 * main["useful_peak_share"], delta=0.01)
        self.assertAlmostEqual(float(told[2]), 100 * main["padding_macs"] / (macs + main["padding_macs"]), delta=0.01)
        self.assertIn("host us", html)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
