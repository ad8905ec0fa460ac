#!/usr/bin/env python3
"""The text of the stop schedule.grid of target aie: it is short, it resumes to the same bundle, what is changed in it is obeyed (another
bundle, the numbers that numpy gives) or refused by name, and so is each fill and each drain that is taken out of it.
Usage: grid.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from checks import BIN, np, onnx_file, sampling

M, K, N = 128, 256, 256
# Cores and tiles that the texts below are of.
TILING = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %r = transform.dmx.match {op = "dmir.matmul"} in %m : !transform.any_op -> !transform.any_op
    transform.dmx.decide %r {herd_rows = 4, herd_columns = 4, tile_m = 64, tile_n = 64, tile_k = 32, panels = 1, result_channels = 2, stays = 0} : !transform.any_op
    transform.yield
  }
}
"""


def bf16(values):
    """To the nearest bf16, to even where two are as near."""
    fraction, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.rint(np.ldexp(fraction, 8)), exponent - 8)


def swap(text, one, other):
    """Each of them where the other was."""
    return re.sub(f"{re.escape(one)}|{re.escape(other)}", lambda found: other if found[0] == one else one, text)


def replace(old, new, count=1):
    def change(text):
        assert old in text, old
        return text.replace(old, new, count)
    return change


def ring(name, key, value):
    """Another number behind a key of a ring."""
    def change(text):
        changed, times = re.subn(rf'(dlir\.ring "L\d" "{name}" .*?{key} )\d+', rf"\g<1>{value}", text)
        assert times == 1, (name, key)
        return changed
    return change


def ring_uses(name, value):
    """What one fill of a ring brings is drained so many times."""
    def change(text):
        changed, times = re.subn(rf'(dlir\.ring "L2" "{name}" .*? to "MM2S" \d+)', rf"\g<1> {{uses = {value} : i64}}", text)
        assert times == 1, name
        return changed
    return change


def channels_of_cores(text):
    """Operands come into cores by each other's channel: the producer of each ring, and the queue."""
    for words in ('"core" from "S2MM"', 'dlir.dispatch_queue "core" "S2MM"'):
        text = swap(text, f"{words} 0", f"{words} 1")
    return text


def rings_turned_round(text):
    """The last ring is declared first: other locks and addresses."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if "dlir.ring" in line]
    for place, line in zip(places, [lines[i] for i in reversed(places)]):
        lines[place] = line
    return "\n".join(lines)


def bodies(text):
    """(first line, last line, names of rings) of each fill and drain."""
    lines = text.split("\n")
    names = dict(re.findall(r'%(\w+) = dlir\.ring "L\d" "(\w+)"', text))
    for first, line in enumerate(lines):
        if found := re.match(r"( *)dlir\.(?:fill|drain) (.*) \{$", line):
            last = next(i for i in range(first + 1, len(lines)) if lines[i].startswith(found[1] + "}"))
            yield first, last, [names[name] for name in re.findall(r"%(\w+)", found[2])]


# What is changed, and how: what is obeyed gives another bundle.
OBEYED = {
    "more slots in memory tiles": [ring("a_part0", "slots", 3), ring("b_panel", "slots", 5)],
    "one slot in memory tiles": [ring(name, "slots", 1) for name in ("a_part0", "b_panel", "c_row0", "c_row2")],
    "one slot for operands in cores": [ring("a", "slots", 1), ring("b", "slots", 1)],
    "one slot for results in cores": [ring("c", "slots", 1)],
    "roles of channels": [channels_of_cores],
    "locks and addresses": [rings_turned_round],
    "a larger slot than its tile": [ring("b_panel", "size", 8192)],
}
REFUSED = {
    "three slots of operands that come in pairs": ([ring("a", "slots", 3)], r"takes ring 'a' 2 slots further .* multiple of its `slots`, 3"),
    "several uses of several slots": ([ring_uses("b_panel", 2)], r"ring '\w+' has `uses` 2 and `slots` 2, what is drained several times is of one slot"),
    "no slots": ([ring("b_panel", "slots", 0)], r"ring 'b_panel' has `slots` 0, they are 1 to \d+"),
    "more slots than a memory has": ([ring("c", "slots", 5)], r"ring 'c' has `slots` 5, they are 1 to 4"),
    "more slots than there is room beside the others": ([ring("c", "slots", 4)], r"'c' ends at byte \d+ of L1.*a core has 65536"),
    "more slots than BDs": ([ring("a_part0", "slots", 40)], r"ring 'a_part0' takes more BDs than a memory has left"),
    "a slot beyond its memory": ([ring("b", "size", 1 << 20)], r"ring 'b' has a `size` of 1048576 bytes, it is 1 to 65536"),
    "a slot smaller than its tile": ([ring("a", "size", 2048)], r"slot of ring 'a', which has 1024"),
    "a tile of half the rows": ([replace('dlir.descriptor "bf16" unit 32 dims [64]', 'dlir.descriptor "bf16" unit 32 dims [32]')], r"ring '\w+'"),
    "a role that another queue has": ([ring("a", "from \"S2MM\"", 1)], r"ring '[ab]'"),
    "a consumer that is none": ([replace('to "compute" 0', 'to "compute" 1')], r"ring 'a' names queue 1 of \"compute\" by `to`, there are 0 to 0"),
    "fewer tiles along k": ([replace("dlir.register 0 [4]", "dlir.register 0 [3]")], r"ring '\w+' is filled \d times where it is drained \d"),
    "more trips than cores count": ([replace("dlir.register 3 [0]", "dlir.register 3 [2147483648]")], r"runs 2147483648 times, as register 3 says"),
    "a herd of fewer columns": ([replace("units 4x4", "units 3x4")], r"@\w+\[?"),
    "a deeper channel": ([replace("dlir.channel @a [4]", "dlir.channel @a [4] depth 2")], r"@a has a `depth` of 2"),
    "a kernel of other numbers": ([replace("matmul_bf16_f32", "matmul_i8_i32", 2)], r"matmul_i8_i32 computes other numbers than those of 'memref<64x32xbf16>'"),
    "a kernel of other results": ([replace("zero_f32", "zero_i32")], r"zero_i32 computes other numbers than those of 'memref<64x64xf32>'"),
}


class Grid(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-grid-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        rng = np.random.default_rng(7)
        a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((M, K), (K, N)))
        (cls.dir / "m.onnx").write_bytes(onnx_file.model(
            [onnx_file.node("MatMul", "a b", "y")], [onnx_file.info("a", onnx_file.FLOAT, a.shape)],
            [onnx_file.info("y", onnx_file.FLOAT, (M, N))], weights=[onnx_file.tensor("b", onnx_file.FLOAT, [K, N], raw=b.tobytes())]))
        (cls.dir / "data").mkdir()
        np.save(cls.dir / "data/in_a.npy", a)
        np.save(cls.dir / "data/out_y.npy", (bf16(a) @ bf16(b)).astype(np.float32))
        (cls.dir / "s.mlir").write_text(TILING)
        done = cls.dmxc("m.onnx", "--schedule", "s.mlir", "--dump-phases", "phases", "-o", "direct.bundle")
        assert done.returncode == 0, done.stderr
        [cls.file] = (cls.dir / "phases").glob("4?-grid.mlir")
        cls.text = cls.file.read_text()
        cls.wanted = cls.entries("direct.bundle")

    @classmethod
    def dmxc(cls, *arguments):
        return subprocess.run([BIN / "dmxc", "-q", "-t", "aie", *map(str, arguments)], cwd=cls.dir, capture_output=True, text=True)

    @classmethod
    def entries(cls, bundle):
        """Without the manifest, which says what file a bundle is of."""
        with zipfile.ZipFile(cls.dir / bundle) as archive:
            return {name: archive.read(name) for name in archive.namelist() if name != "manifest.json"}

    def resumed(self, text):
        (self.dir / "text.mlir").write_text(text)
        return self.dmxc("text.mlir", "--from", "schedule.grid", "--allow-external-data", self.dir, "-o", "again.bundle")

    def refused(self, text, why):
        done = self.resumed(text)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, why)

    def test_the_text_is_short(self):
        self.assertLess(self.text.count("\n"), 300)
        for word in ("dlir.ring", "dlir.fill", "dlir.drain", "dlir.descriptor", 'dlir.dispatch_queue "core" "compute" 0'):
            self.assertIn(word, self.text)

    def test_it_is_a_named_stop(self):
        done = self.dmxc("m.onnx", "--schedule", "s.mlir", "--emit", "schedule.grid", "-o", "emitted.mlir")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.dir / "emitted.mlir").read_text(), self.text)
        self.assertIn("schedule.grid", self.dmxc("--print-phases").stdout)

    def test_it_resumes_to_the_same_bundle(self):
        done = self.resumed(self.text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.entries("again.bundle"), self.wanted)

    def test_what_is_changed_is_obeyed(self):
        for name, changes in OBEYED.items():
            with self.subTest(name):
                text = self.text
                for change in changes:
                    text = change(text)
                done = self.resumed(text)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotEqual(self.entries("again.bundle"), self.wanted)
                ran = subprocess.run([BIN / "dmx-run", "again.bundle", "--inputs", "data", "--expect", "data", "--rtol", "1e-4", "--atol", "1e-4"],
                                     cwd=self.dir, capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_what_is_changed_is_refused(self):
        for name, (changes, why) in REFUSED.items():
            with self.subTest(name):
                text = self.text
                for change in changes:
                    text = change(text)
                self.assertNotEqual(text, self.text)
                self.refused(text, why)

    def test_what_is_taken_out_is_refused(self):
        """Each with all that stands in it; of those alone, and of one of two rings, a sample."""
        lines = self.text.split("\n")
        every = list(bodies(self.text))
        self.assertGreaterEqual(len(every), 20)
        cases, further = [], []
        for first, last, rings in every:
            inside = lines[first + 1:last]
            cases.append((first, last, [], {name for at, _, names in every if first <= at <= last for name in names}))
            further += [(first, last, inside, rings)] * bool(inside)
            for name in re.findall(r"%\w+", lines[first]) if len(rings) > 1 else []:
                further.append((first, last, [re.sub(r"%.*%\w+", name, lines[first]), *inside, lines[last]], rings))
        for first, last, instead, rings in cases + sampling.sample(further, 3):
            with self.subTest(line=first + 1, op=lines[first].strip(), left=instead):
                self.refused("\n".join(lines[:first] + instead + lines[last + 1:]), f"ring '({'|'.join(rings)})'")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
