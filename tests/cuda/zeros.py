#!/usr/bin/env python3
"""Constant weights of products by tensor cores that are zero in steps of tiles: numpy's numbers, the bits of --sparsity off, fewer bytes by
tensor maps and fewer wgmma by the share of tiles that hold something; texts that keep other steps. Usage: zeros.py BIN. Exit 77 where numpy is
not installed. A plain run takes samples, DMXC_LONG=1 takes all."""
import json
import pathlib
import re
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / part) for part in ("cli/sparse", "cli", "fuzz", "cuda", ".")]
from weights import kept  # noqa: E402
from dynamic_shapes import np  # noqa: E402
import onnx_file as onnx  # noqa: E402
from models import machine  # noqa: E402
from sampling import LONG, sample  # noqa: E402
from tools_case import ToolsCase  # noqa: E402

PATTERNS = ("random", "triangular", "diagonal", "rows", "columns", "blocks", "identity", "all")
TARGET = ("-q", "-t", "cuda:sm_90a", "--numerics", "bf16")


def steps_that_hold(w, columns):
    """Of columns of tiles, steps of 64 terms that hold something."""
    k, n = w.shape
    padded = np.zeros((-(-k // 64) * 64, -(-n // columns) * columns), bool)
    padded[:k, :n] = w != 0
    return int(padded.reshape(padded.shape[0] // 64, 64, -1, columns).any(axis=(1, 3)).sum())


class Zeros(ToolsCase):
    def write(self, seed, pattern, m, k, n, turned=False, relu=False, rows=None):
        """y = x w: numbers of which bf16 and sums of f32 hold all, so that numpy has the same bits."""
        numbers = np.random.default_rng(seed)
        draw = lambda *shape: numbers.integers(-8, 9, shape).astype(np.float32)
        values = draw(k, n)
        self.w = np.where(kept(pattern, k, n, seed), values, np.where(values < 0, np.float32(-0.0), np.float32(0)))
        x = draw(m, k)
        self.y = x @ self.w
        nodes = [onnx.node("MatMul", "x wt" if turned else "x w", "p" if relu else "y")]
        if turned:
            nodes.insert(0, onnx.node("Transpose", "w", "wt", perm=[1, 0]))
        if relu:
            nodes.append(onnx.node("Relu", "p", "y"))
            self.y = np.maximum(self.y, 0)
        held = np.ascontiguousarray(self.w.T if turned else self.w)
        (self.dir / "m.onnx").write_bytes(onnx.model(nodes, [onnx.info("x", onnx.FLOAT, [rows or m, k])], [onnx.info("y", onnx.FLOAT, [rows or m, n])],
                                                     weights=[onnx.tensor("w", onnx.FLOAT, held.shape, raw=held.tobytes())]))
        np.save(self.dir / "x.npy", x)

    def compile(self, source="m.onnx", *arguments, code=0):
        return self.tool("dmxc", source, *TARGET, "-o", "m.bundle", *arguments, code=code)

    def run_bundle(self, seed=0):
        """The result and what the product's launch did."""
        self.tool("dmx-run", "m.bundle", "-q", "--input", "x=x.npy", "--output", "y=y.npy", "--device-opt", "cuda.report=r.json",
                  "--device-opt", f"cuda.sim_seed={seed}", *machine([]))
        launches = json.loads((self.dir / "r.json").read_text())["last"]
        return np.load(self.dir / "y.npy"), next(one["main"] for one in launches if "specialised" in one["kernel"])

    def emit(self, phase):
        self.tool("dmxc", "m.onnx", *TARGET, "--emit", phase, "-o", "t.mlir")
        return (self.dir / "t.mlir").read_text()

    def resume(self, text, phase, code=0):
        (self.dir / "t.mlir").write_text(text)
        return self.compile("t.mlir", "--from", phase, "--allow-external-data", self.dir, code=code)

    def test_numbers_and_bits(self):
        """Any pattern, any sizes, both ways round; the tiles that are left out are those that numpy counts."""
        for seed in sample(range(60), 20):
            numbers = np.random.default_rng(seed)
            pattern = PATTERNS[seed % len(PATTERNS)]
            m, k, n = (int(round(top ** numbers.uniform(0.6, 1))) for top in (200, 500, 500))
            with self.subTest(seed=seed, pattern=pattern, sizes=(m, k, n)):
                self.write(seed, pattern, max(m, 8), k, n, turned=seed % 2, relu=seed % 3 == 0, rows="rows" if seed % 5 == 0 else None)
                bits, done = {}, {}
                for mode in ("on", "off"):
                    self.compile("m.onnx", "--sparsity", mode)
                    bits[mode], done[mode] = self.run_bundle(seed)
                    np.testing.assert_array_equal(bits[mode], self.y)
                np.testing.assert_array_equal(bits["on"].view(np.uint32), bits["off"].view(np.uint32))
                self.assert_counts(done["on"], max(m, 8))

    def assert_counts(self, launch, m):
        """wgmma are those of steps that hold something, of the tile that the text has; of all where those are nine tenths."""
        text = self.emit("schedule.pipeline")
        rows, columns = map(int, re.search(r"cuda\.pipeline tile (\d+) x (\d+)", text).groups())
        k, n = self.w.shape
        every = -(-k // 64) * -(-n // columns)
        held = steps_that_hold(self.w, columns)
        steps = held if 10 * held <= 9 * every and "steps16" in text else every
        self.assertEqual("steps16" in text, 10 * held <= 9 * every)
        self.assertEqual(launch["wgmma"], steps * -(-m // rows) * (rows // 64) * 16)  # of each warp; 16 terms at a time

    def test_tiles_of_a_triangle(self):
        """By default flags: of tensor maps' bytes and of wgmma the share of tiles that hold something, and half of the weights in the bundle."""
        size = 1024 if LONG else 512
        self.write(1, "triangular", 128, size, size)
        done, bytes_ = {}, {}
        for mode in ("on", "off"):
            self.compile("m.onnx", "--sparsity", mode)
            y, done[mode] = self.run_bundle()
            np.testing.assert_array_equal(y, self.y)
            bytes_[mode] = (self.dir / "m.bundle").stat().st_size
        share = {key: done["on"][key] / done["off"][key] for key in ("wgmma", "tma_bytes_read", "clocks")}
        print(f"{share}, bundle {bytes_['on'] / bytes_['off']:.3f}")
        self.assertLess(share["wgmma"], 0.66)
        self.assertLess(share["tma_bytes_read"], 0.72)
        self.assertLess(bytes_["on"], 0.7 * bytes_["off"])

    def test_texts(self):
        """Each text goes on; what it keeps is kept, and of what is not zero none may go."""
        self.write(2, "triangular", 100, 512, 512)
        partition = self.emit("partition")
        for text, phase in ((partition, "partition"), (self.emit("schedule.pipeline"), "schedule.pipeline"), (self.emit("schedule"), "schedule")):
            self.resume(text, phase)
            y, launch = self.run_bundle()
            np.testing.assert_array_equal(y, self.y)
        self.assertIn('form = "steps16"', text)
        lists = re.search(r"kept = \[(array<.*?>(?:, array<.*?>)*)\]", text)[1]
        last = lists.split("array<i64: ")[-1].rstrip(">")
        begin, end = map(int, last.split(", "))
        self.assertGreater(begin, 0)
        change = lambda ends: text.replace(lists, lists[:lists.rindex("array")] + (f"array<i64: {ends}>" if ends else "array<i64>"))
        for ends, why in (("", "map of other sizes"), (f"{begin + 1}, {end}", "map of other sizes|ascend"), (f"{end}, {begin}", "ascend"),
                          (f"{begin}, 4096", "ascend"), (f"{begin}", "something else")):
            self.assertRegex(self.resume(change(ends), "schedule", code=1), why)
        other = re.sub(r'(form = "steps16".*?)columns = (\d+)|columns = (\d+)(?=[^}]*form = "steps16")', lambda at: at[0].replace(at[2] or at[3], "64" if (at[2] or at[3]) != "64" else "128"), text)
        self.assertNotEqual(other, text)
        self.assertRegex(self.resume(other, "schedule", code=1), "columns")

    def test_a_wrong_range_is_found(self):
        """A packed form that says other steps of the same number: refused as it is packed, and the numbers of a wrong one are not numpy's."""
        self.write(3, "rows", 64, 512, 128)
        text = self.emit("schedule")
        self.assertRegex(text, r"kept = \[array<i64: 0, 4>")
        moved = text.replace("array<i64: 0, 4>", "array<i64: 4, 8>")
        self.assertRegex(self.resume(moved, "schedule", code=1), r"leaves out of columns 0 to \d+ some of steps 0 to 3")
        self.assertRegex(self.resume(text.replace("array<i64: 0, 4>", "array<i64: 4, 8>", 1), "schedule", code=1), "form|leaves out")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
