#!/usr/bin/env python3
"""dmxc tune: one region, and one product, after the other; what it says of what it found; records at other sizes; processors.
Usage: tune.py BIN REPO [unittest arguments]

A plain run takes a sample of nets and sizes and few trials; DMXC_LONG=1 takes all."""
import json
import pathlib
import re
import statistics
import sys
import unittest
from random import Random

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "cli"), str(TESTS), str(TESTS / "fuzz/hostile")]
import decisions_test  # noqa: E402
from decisions_test import conv, matmul, weights  # noqa: E402
from dmxc_case import BIN, DIGITS, Base  # noqa: E402
import mutate  # noqa: E402
import sampling  # noqa: E402

ZOO = BIN.parent / "zoo"
CORSAIR = ("-t", "corsair")
ANY = "!transform.any_op"


def net(layers, channels, size):
    """Convolutions with relu behind each; layers are (outputs, kernel, stride)."""
    lines, value, kind = [], "%x", f"tensor<1x{channels}x{size}x{size}xf32>"
    head = f'func.func @main(%x: {kind} {{dmir.name = "x"}})'
    for number, (outputs, kernel, stride) in enumerate(layers):
        pad = kernel // 2
        after = (size + 2 * pad - kernel) // stride + 1
        result, filters = f"tensor<1x{outputs}x{after}x{after}xf32>", f"tensor<{outputs}x{channels}x{kernel}x{kernel}xf32>"
        lines += [f'  %w{number} = dmir.constant dense<"0x{weights(outputs * channels * kernel * kernel)}"> : {filters}',
                  f"  %c{number} = dmir.conv {value}, %w{number} {{strides = array<i64: {stride}, {stride}>, dilations = array<i64: 1, 1>, low = array<i64: {pad}, {pad}>, "
                  f'high = array<i64: {pad}, {pad}>, groups = 1 : i64}} : ({kind}, {filters}) -> {result} loc("conv{number}")',
                  f'  %r{number} = dmir.relu %c{number} : ({result}) -> {result} loc("relu{number}")']
        value, kind, channels, size = f"%r{number}", result, outputs, after
    return "\n".join([f'{head} -> ({kind} {{dmir.name = "y"}}) {{', *lines, f"  return {value} : {kind}", "}\n"])


NETS = {"a3x14": ([(16, 3, 1), (32, 3, 2)], 3, 14), "c16x56": ([(16, 3, 1), (16, 3, 1)], 16, 56), "c32x28": ([(32, 3, 1), (64, 3, 2)], 32, 28),
        "c128x14": ([(128, 3, 1), (128, 1, 1)], 128, 14), "d64x14": ([(128, 3, 1)], 64, 14), "mix28": ([(24, 1, 1), (48, 3, 2), (96, 1, 1)], 12, 28)}


def is_object(line):
    try:
        return isinstance(json.loads(line.decode()), dict)
    except ValueError:
        return False


class TuneBase(Base):
    def setUp(self):
        super().setUp()
        self.there = self.run_tool("--print-targets").stdout

    def needs(self, target):
        if target not in self.there:
            self.skipTest(f"this build has no target {target}")

    def clocks(self, model, *arguments):
        self.run_tool(model, *CORSAIR, "-q", "-o", "c.bundle", *arguments)
        self.run_tool("c.bundle", "--random-inputs", "1", "--device-opt", "report=r.json", "-q", tool="dmx-run")
        return sum(kernel["main"]["clocks"] for kernel in json.loads((self.dir / "r.json").read_text())["last"])

    def tune(self, model, trials, *more, target=CORSAIR):
        out = self.run_tool("tune", model, *target, "--db", "d.jsonl", "--trials", trials, "--report", "t.json", *more, timeout=1200).stdout
        return out, json.loads((self.dir / "t.json").read_text())


@sampling.sampled(4)
class Devices(TuneBase):
    def setUp(self):
        super().setUp()
        self.needs("corsair")

    def test_nets_of_convolutions(self):
        """The default is near to the best of all teams: within a tenth, by clocks that the test measures itself."""
        for name, shape in sampling.sample(NETS.items(), 6):
            with self.subTest(name):
                (self.dir / "n.mlir").write_text(net(*shape))
                default, sizes = self.clocks("n.mlir"), range(1, 33) if sampling.LONG else Random(sampling.SEED).sample(range(1, 33), 3)
                for quads in sizes:
                    (self.dir / "s.mlir").write_text(
                        f"module attributes {{transform.with_named_sequence}} {{\n  transform.named_sequence @__transform_main(%m: {ANY} {{transform.readonly}}) {{\n"
                        f'    %r = transform.dmx.match {{device = "corsair"}} in %m : {ANY} -> {ANY}\n    transform.dmx.decide %r {{quads = {quads}}} : {ANY}\n    transform.yield\n  }}\n}}\n')
                    self.assertLessEqual(default, 1.1 * self.clocks("n.mlir", "--schedule", "s.mlir"), f"{name} on {quads} quads")

    def test_a_product_after_the_other(self):
        """Products of one graph, each decided by its node; never slower than the default, and what is said is what is measured."""
        (self.dir / "n.mlir").write_text(net(*NETS["mix28"]))
        default = self.clocks("n.mlir")
        out, report = self.tune("n.mlir", 64 if sampling.LONG else 10)
        row, = report["regions"]
        tried = [line for line in out.splitlines() if re.match(r"  '.*: \d+ clocks$", line)]
        self.assertTrue(any('"conv0":{' in line or '"conv1":{' in line or '"conv2":{' in line for line in tried), out)
        self.assertEqual(row["default"], default)
        self.assertEqual(len(row["measured"]), len(tried))
        self.assertEqual(row["best"], min(row["measured"]))
        self.assertLessEqual(row["best"], default)
        self.assertEqual(self.clocks("n.mlir", "--tuning-db", "d.jsonl"), row["best"])
        record = json.loads((self.dir / "d.jsonl").read_text())
        self.assertEqual(record["decided"], row["decided"])
        header, line = out.splitlines()[-2:]
        self.assertEqual(header.split()[:3], ["region", "device", "default"])
        self.assertIn(f" {default} ", line)
        self.see(row, record)

    def see(self, row, record):
        """The database as a table, and the report in a page."""
        shown = self.run_tool("d.jsonl", tool="dmx-inspect").stdout
        for text in (record["region"][:19], str(record["clocks"]), f"{row['gain']:.2f}"):
            self.assertIn(text, shown)
        as_json = json.loads(self.run_tool("d.jsonl", "--json", tool="dmx-inspect").stdout)
        self.assertEqual(as_json["records"][0]["default"], record["default_clocks"])
        (self.dir / "bad.jsonl").write_text("{\n{}\n" + (self.dir / "d.jsonl").read_text())
        shown = self.run_tool("bad.jsonl", tool="dmx-inspect").stdout
        self.assertIn("this is no JSON object", shown)
        self.assertIn(record["region"][:19], shown)
        self.assertIn("has one view", self.run_tool("d.jsonl", "--check", tool="dmx-inspect", code=2).stderr)
        self.run_tool("c.bundle", "--html", "p.html", "--report", "t.json", tool="dmx-inspect")
        page = (self.dir / "p.html").read_text()
        self.assertIn("what tuning found", page)
        self.assertEqual(page.count("trial 1: "), 1)
        self.assertIn(f"trial {len(row['measured'])}: ", page)

    def test_whole_models(self):
        """Graphs with more plans than anybody can try: some of their products are decided."""
        if not sampling.LONG:
            self.skipTest("minutes; DMXC_LONG=1")
        for name in ("bert_mini", "mlp"):
            model = ZOO / name / "model.onnx"
            if not model.exists():
                continue
            out, report = self.tune(model, 64)
            row = report["regions"][0]
            self.assertLessEqual(row["best"], row["default"], name)
            self.assertRegex(out, r'\{"\S+":\{"(split|share|num_imc)":')
            print(f"{name}: {row['default']} to {row['best']} clocks, {row['gain']:.3f}")

    def test_records_of_other_sizes(self):
        """A record of some sizes of a product serves others where the target expects no less of it, and is never 2 % slower."""
        sizes = [(m, k, n) for m in (64, 128, 256) for k in (128, 512) for n in (128, 384)]
        others = [(m + 64, k, n + 64) for m, k, n in sizes]
        known, asked = (sizes, others) if sampling.LONG else (Random(sampling.SEED).sample(sizes, 1), Random(sampling.SEED).sample(others, 2))
        for size in known:
            (self.dir / "p.mlir").write_text(matmul(*size))
            self.tune("p.mlir", 24 if sampling.LONG else 4)
        served = 0
        for size in asked:
            (self.dir / "p.mlir").write_text(matmul(*size))
            default, tuned = self.clocks("p.mlir"), self.clocks("p.mlir", "--tuning-db", "d.jsonl")
            said = self.run_tool("p.mlir", *CORSAIR, "--emit", "partition", "-q", "-o", "x", "--tuning-db", "d.jsonl", "--explain-decisions").stdout
            served += ", of other sizes)" in said
            self.assertLessEqual(tuned, 1.02 * default, size)
        print(f"{served} of {len(asked)} served")
        if sampling.LONG:
            self.assertGreaterEqual(served, 4)

    def test_records_of_before(self):
        """Without a family they are of their own region alone."""
        (self.dir / "p.mlir").write_text(matmul(128, 256, 128))
        self.tune("p.mlir", 2)
        record = json.loads((self.dir / "d.jsonl").read_text())
        del record["family"]
        record["decided"] = {"quads": 2}
        (self.dir / "d.jsonl").write_text(json.dumps(record) + "\n")
        for size, count in (((128, 256, 128), 1), ((192, 256, 128), 0)):
            (self.dir / "p.mlir").write_text(matmul(*size))
            result = self.run_tool("p.mlir", *CORSAIR, "--emit", "partition", "-q", "-o", "x", "--tuning-db", "d.jsonl", "--explain-decisions")
            self.assertEqual(result.stdout.count("quads = 2  (d.jsonl:1)"), count)
            self.assertEqual(result.stderr, "")

    def test_damaged_records(self):
        """A changed line is left out with a warning that names it, or decides something that computes the same."""
        (self.dir / "p.mlir").write_text(matmul(64, 128, 64))
        self.tune("p.mlir", 3)
        record, random, warned = (self.dir / "d.jsonl").read_bytes().strip(), Random(sampling.SEED), 0
        self.run_tool("p.mlir", *CORSAIR, "-q", "-o", "d.bundle")
        self.run_tool("d.bundle", "-q", "--random-inputs", "1", "--output-dir", "out", tool="dmx-run")
        for _ in range(400 if sampling.LONG else 6):
            line = (mutate.lie_json if random.random() < 0.7 else mutate.flip)(random, record)
            (self.dir / "x.jsonl").write_bytes(line + b"\n")
            err = self.run_tool("p.mlir", *CORSAIR, "-o", "x.bundle", "--tuning-db", "x.jsonl").stderr
            self.assertNotIn("error", err)
            warns = bool(re.search(r"x\.jsonl:\d+: warning: ", err))
            self.assertTrue(warns or is_object(line), (line, err))
            warned += warns
            self.run_tool("x.bundle", "-q", "--random-inputs", "1", "--expect", "out", "--min-sqnr", "50", tool="dmx-run")
        print(f"{warned} warned of, DMXC_SAMPLE={sampling.SEED}")


@sampling.sampled(2)
class Processors(TuneBase):
    SHAPES = [matmul(8, 768, 768), matmul(64, 256, 256), matmul(128, 128, 512), matmul(37, 70, 50), matmul(200, 64, 48), matmul(16, 512, 128), matmul(1, 1024, 256),
              matmul(96, 96, 96), matmul(300, 33, 65), matmul(256, 256, 64), conv(64, (14, 14), 64, 3, pad=1), conv(16, (28, 28), 96, 1), conv(48, (8, 8), 48, 3, pad=1),
              conv(40, (9, 9), 80, 3, pad=1), conv(3, (56, 56), 16, 3, 2, pad=1), conv(32, (14, 14), 32, 5, pad=2), conv(40, (15, 9), 40, 3, groups=40, pad=1),
              conv(128, (7, 7), 128, 3, pad=1), decisions_test.attention(4, 64, 64, 32, 32), decisions_test.attention(1, 128, 128, 64, 64)]

    def test_shapes(self):
        """What is kept gained in pairs, twice; what did not is said, and nothing is kept of it."""
        trials = 24 if sampling.LONG else 3
        for number, model in sampling.sample(list(enumerate(self.SHAPES)), 20):
            with self.subTest(number):
                (self.dir / "p.mlir").write_text(model)
                out, report = self.tune("p.mlir", trials, target=("-t", "cpu"))
                self.assertEqual(report["unit"], "ns")
                for line in re.findall(r"(?m)^  '.*\}: (\d.*)$", out):  # each of its own speed, whatever is taken for its time
                    self.assertRegex(line, r"^\d+ ns, \d+\.\d\d of the default's speed(: no sure gain)?$")
                lines = (self.dir / "d.jsonl").read_text().splitlines() if (self.dir / "d.jsonl").exists() else []
                kept = [row for row in report["regions"] if row.get("gain", 1) > 1]
                self.assertGreaterEqual(len(lines), len(kept))
                for row in kept:
                    self.assertGreater(row["gain"], 1.01)
                    print(f"shape {number}: {row['gain']:.3f} {row['decided']}")
                if not kept:
                    self.assertRegex(out, "the default$|nothing is free")
                self.run_tool("p.mlir", "-q", "-o", "t.bundle", "--tuning-db", "d.jsonl")
                self.run_tool("p.mlir", "-q", "-o", "d.bundle")
                self.run_tool("d.bundle", "--random-inputs", "1", "--output-dir", "out", "-q", tool="dmx-run")
                self.run_tool("t.bundle", "--random-inputs", "1", "--expect", "out", "--min-sqnr", "50", "-q", tool="dmx-run")
                if kept:
                    self.is_no_slower()

    def is_no_slower(self):
        """Medians in turns: the tuned one takes at most 1.02 of the default's time, beyond what the default takes beside itself."""
        def time(bundle):
            self.run_tool(bundle, "--benchmark", "--random-inputs", "1", "--threads", "1", "--min-time", "0.1", "-q", "--json", "j.json", tool="dmx-run")
            return json.loads((self.dir / "j.json").read_text())["latency"]["median"]

        rounds = [[time(f"{name}.bundle") for name in ("d", "t", "d")] for _ in range(9)]
        control = max(abs(again / first - 1) for first, _, again in rounds)
        ratio = statistics.median(tuned / min(first, again) for first, tuned, again in rounds)
        print(f"in turns: {ratio:.3f} of the default, which is within {control:.3f} of itself")
        self.assertLessEqual(ratio, 1.02 + control)

    def test_nothing_to_do(self):
        """A region that has nothing free is named; so is a model without one."""
        (self.dir / "p.mlir").write_text('func.func @main(%x: tensor<4x8xf32> {dmir.name = "x"}) -> (tensor<4x8xf32> {dmir.name = "y"}) {\n'
                                         '  %0 = dmir.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("e")\n  return %0 : tensor<4x8xf32>\n}\n')
        out, report = self.tune("p.mlir", 2, target=("-t", "cpu"))
        self.assertIn("nothing is free", out)
        self.run_tool(DIGITS, "-o", "x", "--report", "t.json", code=2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
