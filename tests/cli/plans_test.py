#!/usr/bin/env python3
"""Decisions of a device's products (split, share, num_imc): obeyed, right, refused with their domain; and tuning over them by the simulator's
clock, against all candidates, which the test measures itself. Usage: plans_test.py BIN REPO [unittest arguments]

A plain run takes a sample; DMXC_LONG=1 takes all."""
import itertools
import json
import sys
import unittest
from random import Random

from decisions_test import ANY, conv, matmul, members, script
from dmxc_case import Base

import sampling

MODELS = {"512^3": matmul(512, 512, 512), "384x320x448": matmul(384, 320, 448), "conv": conv(64, (16, 16), 64, 3, pad=1)}
# Smaller ones for members and all teams; the last has both operands of a run.
SMALL = {"128x192x256": matmul(128, 192, 256), "conv": conv(64, (8, 8), 128, 3, pad=1), "70x300x130": matmul(70, 300, 130),
         "of a run": matmul(128, 256, 192, constant=False)}
TARGET = ("-t", "corsair")
LEAST_SQNR = 45


@sampling.sampled(2)
class Plans(Base):
    def setUp(self):
        super().setUp()
        if "corsair" not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build has no target corsair")

    def decide(self, decided, file="s.mlir"):
        """`decided`: {name: value} of the region, with a dictionary for the product."""
        own = ", ".join(f"{name} = {json.dumps(value)}" for name, value in decided.items() if name != "product")
        inner = ", ".join(f"{name} = {json.dumps(value)}" for name, value in decided.get("product", {}).items())
        text = ", ".join(filter(None, [own, f"product = {{{inner}}}" if inner else ""]))
        (self.dir / file).write_text(script([f'%r = transform.dmx.match {{device = "corsair"}} in %m : {ANY} -> {ANY}',
                                             f"transform.dmx.decide %r {{{text}}} : {ANY}"]))

    def domains(self, decided):
        """{name: values} of the product, given what is decided."""
        self.decide(decided)
        text = self.run_tool("p.mlir", *TARGET, "--schedule", "s.mlir", "--emit", "partition", "-q", "-o", "t.mlir", "--explain-decisions").stdout
        found = {}
        for line in text.splitlines():
            if line.startswith("  product."):
                name, rest = line.removeprefix("  product.").split(" = ", 1)
                found[name] = [json.loads(value) for value in members(rest.split(")  of ")[1].split(";")[0])]
        return found

    def plans(self, quads):
        """All plans of a team, written down from what --explain-decisions lists."""
        all_plans = []
        for split in self.domains({"quads": quads}).get("split", [None]):
            base = {"split": split} if split else {}
            for share in self.domains({"quads": quads, "product": base} if base else {"quads": quads}).get("share", [None]):
                more = {**base, **({"share": share} if share else {})}
                counts = self.domains({"quads": quads, **({"product": more} if more else {})}).get("num_imc", [None])
                all_plans += [{**more, **({"num_imc": count} if count else {})} for count in counts]
        return all_plans

    def clocks(self, bundle="m.bundle", *expect):
        self.run_tool(bundle, "--random-inputs", "1", "--device-opt", "report=r.json", *expect, tool="dmx-run")
        return sum(kernel["main"]["clocks"] for kernel in json.loads((self.dir / "r.json").read_text())["last"])

    def measure(self, quads, plan):
        self.decide({"quads": quads, **({"product": plan} if plan else {})})
        self.run_tool("p.mlir", *TARGET, "--schedule", "s.mlir", "-o", "m.bundle")
        return self.clocks("m.bundle")

    def test_members(self):
        """Random plans of teams: other code than the default's, outputs that differ by rounding alone."""
        random = Random(sampling.SEED)
        count = defaults = 0
        for name, model in sampling.sample(SMALL.items(), 2):
            (self.dir / "p.mlir").write_text(model)
            for quads in [1, 2, 4, 8] if sampling.LONG else [random.choice([2, 4])]:
                self.decide({"quads": quads})
                self.run_tool("p.mlir", *TARGET, "--schedule", "s.mlir", "-o", "d.bundle")
                self.run_tool("d.bundle", "--random-inputs", "1", "--output-dir", "d.out", tool="dmx-run")
                plans = self.plans(quads)
                same = 0
                for plan in plans if sampling.LONG else random.sample(plans, min(4, len(plans))):
                    with self.subTest(f"{name} quads={quads} {plan}"):
                        self.measure(quads, plan)
                        self.clocks("m.bundle", "--expect", "d.out", "--min-sqnr", LEAST_SQNR)
                        count += 1
                        same += self.code("m.bundle") == self.code("d.bundle")
                self.assertLessEqual(same, 1)  # the default itself
                defaults += same
        print(f"{count} members, {count - defaults} with other code than the default")

    def code(self, bundle):
        return [data for name, data in self.entries(self.dir / bundle).items() if name.startswith("code/")]

    def test_defaults_and_refusals(self):
        (self.dir / "p.mlir").write_text(matmul(512, 192, 256))
        self.run_tool("p.mlir", "-t", "corsair:quads=4", "-o", "d.bundle")
        text = self.run_tool("p.mlir", "-t", "corsair:quads=4", "--emit", "partition", "-q", "-o", "t.mlir", "--explain-decisions").stdout
        values = dict(line.removeprefix("  product.").split("  (default)")[0].split(" = ") for line in text.splitlines() if line.startswith("  product."))
        self.assertEqual(sorted(values), ["num_imc", "share", "split"])
        self.decide({"quads": 4, "product": {name: json.loads(value) for name, value in values.items()}})
        self.run_tool("p.mlir", "-t", "corsair:quads=4", "--schedule", "s.mlir", "-o", "s.bundle")
        self.assertEqual((self.dir / "d.bundle").read_bytes(), (self.dir / "s.bundle").read_bytes())
        for product, message in (({"split": "diagonal"}, 'refuses split = "diagonal" for node \'product\' at product; its values are "'),
                                 ({"num_imc": 9}, "refuses num_imc = 9 for node 'product' at product; its values are "),
                                 ({"num_imcs": 2}, "no decision 'num_imcs' for node 'product'; it has num_imc, share, split; did you mean 'num_imc'?"),
                                 ({"share": "batch"}, 'refuses share = "batch"')):
            self.decide({"quads": 4, "product": product})
            err = self.run_tool("p.mlir", *TARGET, "--schedule", "s.mlir", "-o", "x.bundle", code=1).stderr
            self.assertIn("s.mlir:4:5: error: the corsair target ", err)
            self.assertIn(message, err)
        self.decide({"quads": 4, "product": {"split": "rows", "num_imc": 2}})
        self.run_tool("p.mlir", *TARGET, "--schedule", "s.mlir", "--emit", "partition", "-o", "t.mlir")
        text = (self.dir / "t.mlir").read_text()
        self.assertIn("#lldmir.deal<dim 0, quads 4>", text)
        self.assertIn("#lldmir.plan<num_imc 2, ppr_mode 1", text)
        self.run_tool("p.mlir", *TARGET, "--schedule", "s.mlir", "-o", "a.bundle")
        self.run_tool("t.mlir", "--from", "partition", *TARGET, "-o", "b.bundle")
        self.assertEqual(self.code("a.bundle"), self.code("b.bundle"))

    def tune(self, trials, *rest, database="db.jsonl"):
        return self.run_tool("tune", "p.mlir", *TARGET, "--db", database, "--trials", trials, *rest)

    def test_a_fifth_of_a_teams_plans(self):
        """The plan found in trials for a fifth of all is within 5 % of the best of all; a compile with the database has it, from any order of lines."""
        for name, model in MODELS.items() if sampling.LONG else sampling.sample(SMALL.items(), len(SMALL)):
            (self.dir / "p.mlir").write_text(model)
            (self.dir / "db.jsonl").unlink(missing_ok=True)
            quads, exact = 4, {}
            for plan in self.plans(quads):
                exact[json.dumps(plan)] = self.measure(quads, plan)
            best = min(exact.values())
            print(f"{name}: {len(exact)} plans of {quads} quads take {best} to {max(exact.values())} clocks", flush=True)
            self.assertGreaterEqual(len(exact), 24 if sampling.LONG else 12)
            self.decide({"quads": quads}, "team.mlir")
            trials = max(5, len(exact) // 5)  # small spaces are for a plain run alone
            self.tune(trials, "--schedule", "team.mlir")
            self.run_tool("p.mlir", *TARGET, "--tuning-db", "db.jsonl", "-o", "t.bundle")
            found = self.clocks("t.bundle")
            print(f"{name}: found {found} in {trials} trials", flush=True)
            self.assertLessEqual(found, 1.05 * best)
            record = json.loads((self.dir / "db.jsonl").read_text())
            self.assertEqual(record["clocks"], found)
            other = {**record, "region": "sha256:00"}
            bundles = set()
            for order in itertools.permutations([record, other]):
                (self.dir / "o.jsonl").write_text("".join(json.dumps(line) + "\n" for line in order))
                self.run_tool("p.mlir", *TARGET, "--tuning-db", "o.jsonl", "-o", "o.bundle")
                bundles.add((self.dir / "o.bundle").read_bytes())
            self.assertEqual(bundles, {(self.dir / "t.bundle").read_bytes()})

    def test_a_fifth_of_all_teams(self):
        (self.dir / "p.mlir").write_text(matmul(64, 128, 128))
        exact = {(quads, json.dumps(plan)): self.measure(quads, plan) for quads in (range(1, 33) if sampling.LONG else (1, 2, 4))
                 for plan in self.plans(quads)}
        for level in ("", ":quads=1"):
            target = ("-t", "corsair" + level)
            listed = self.run_tool("tune", "p.mlir", *target, "--db", "all.jsonl", "--trials", max(8, len(exact) // 5)).stdout
            self.run_tool("p.mlir", *target, "--tuning-db", "all.jsonl", "-o", "t.bundle")
            found = self.clocks("t.bundle")
            print(f"{len(exact)} plans take {min(exact.values())} to {max(exact.values())} clocks, found {found}: {listed.splitlines()[0]}")
            self.assertLessEqual(found, 1.05 * min(exact.values()))
            record = [json.loads(line) for line in (self.dir / "all.jsonl").read_text().splitlines()
                      if json.loads(line)["level"] == (level[1:] or "default")][0]
            self.assertEqual(record["clocks"], found)
            lost = record["default_clocks"] - min(*exact.values(), found)
            self.assertGreaterEqual(record["default_clocks"] - found, 0.9 * lost)

    def test_a_faster_candidate_that_computes_something_else(self):
        """A script that changes what is computed: the softmax of rows takes fewer clocks than that of columns, and is dropped."""
        graph = """func.func @main(%x: tensor<64x64xf32> {{dmir.name = "x"}}, %w: tensor<64x256xf32> {{dmir.name = "w"}})
    -> (tensor<64x256xf32> {{dmir.name = "y"}}) {{
  %0 = dmir.matmul %x, %w : (tensor<64x64xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %1 = dmir.softmax %0 {{axis = {}}} : (tensor<64x256xf32>) -> tensor<64x256xf32>
  return %1 : tensor<64x256xf32>
}}
"""
        clocks = {}
        for axis in (1, 0):
            (self.dir / "p.mlir").write_text(graph.format(axis))
            self.run_tool("p.mlir", "-t", "corsair:quads=1", "-o", "m.bundle")
            clocks[axis] = self.clocks()
        self.assertLess(clocks[1], clocks[0])
        (self.dir / "s.mlir").write_text(script([
            f'%s = transform.dmx.match {{kind = "op", op = "dmir.softmax"}} in %m : {ANY} -> {ANY}',
            '%axis = transform.dmx.param "axis" one_of [0, 1] -> !transform.param<i64>',
            f'transform.annotate %s "axis" = %axis : {ANY}, !transform.param<i64>']))
        tuned = self.run_tool("tune", "p.mlir", "-t", "corsair:quads=1", "--schedule", "s.mlir")
        self.assertIn(f"--set axis=0: {clocks[0]} clocks", tuned.stdout)
        self.assertIn("axis=1: dropped", tuned.stdout)
        self.assertRegex(tuned.stderr, r"axis=1 was dropped: it computes something else: y: SQNR .*, which is too noisy \[tune-dropped\]")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
