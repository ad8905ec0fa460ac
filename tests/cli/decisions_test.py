#!/usr/bin/env python3
"""Decisions of regions: random members of their domains compute what the model computes, each listed member is obeyed, a value outside is
refused. Usage: decisions_test.py BIN REPO [unittest arguments]

A plain run takes a sample of models and of members; DMXC_LONG=1 takes all: some hundred members for each level."""
import itertools
import json
import pathlib
import re
import sys
import unittest
from random import Random

from dmxc_case import BIN, REPO, Base

sys.path.insert(0, str(REPO / "tests"))
import sampling  # noqa: E402

ZOO = BIN.parent / "zoo"
MODELS = ("mlp", "lenet", "gpt2_mini_prefill", "bert_mini", "vit_mini")
LEVELS = ("x86-64-v2", "x86-64-v3") + (("x86-64-v4",) if "avx512bw" in pathlib.Path("/proc/cpuinfo").read_text() else ())
ANY = "!transform.any_op"
REGION = re.compile(r"^node '(.*)': (\S+?)(?:, (\S+))?$")
DECISION = re.compile(r"^  (?:(\S+)\.)?([a-z_]+) = (.*?)  \((.*?)\)  of (.*?); .*; changes (.*)$")


def members(text):
    """The values of a domain as --explain-decisions prints it."""
    if match := re.fullmatch(r"(-?\d+) to (-?\d+)(?: step (\d+))?", text):
        low, high, step = int(match[1]), int(match[2]), int(match[3] or 1)
        return [str(value) for value in range(low, high + 1, step)]
    return text.split(", ")


def script(lines):
    return ("module attributes {transform.with_named_sequence} {\n  transform.named_sequence @__transform_main(%m: "
            f"{ANY} {{transform.readonly}}) {{\n" + "".join(f"    {line}\n" for line in lines) + "    transform.yield\n  }\n}\n")


def matmul(m, k, n, constant=True):
    """y = x w, w a constant whose values differ, or of a run."""
    x, w, y = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    if not constant:
        return (f'func.func @main(%x: {x} {{dmir.name = "x"}}, %w: {w} {{dmir.name = "w"}}) -> ({y} {{dmir.name = "y"}}) {{\n'
                f'  %0 = dmir.matmul %x, %w : ({x}, {w}) -> {y} loc("product")\n  return %0 : {y}\n}}\n')
    random = Random(k * n)
    values = ", ".join("[" + ", ".join(f"{random.uniform(-1, 1):.4f}" for _ in range(n)) + "]" for _ in range(k))
    return (f'func.func @main(%x: {x} {{dmir.name = "x"}}) -> ({y} {{dmir.name = "y"}}) {{\n  %w = dmir.constant dense<[{values}]> : {w}\n'
            f'  %0 = dmir.matmul %x, %w : ({x}, {w}) -> {y} loc("product")\n  return %0 : {y}\n}}\n')


class Decisions(Base):
    def explain(self, model, *arguments):
        """{node: [(scope, name, value, who, members, effect)]} of the regions whose node no other has."""
        text = self.run_tool(model, "--emit", "partition", "-q", "-o", "text.mlir", "--explain-decisions", *arguments).stdout
        regions, nodes = {}, []
        for line in text.splitlines():
            if match := REGION.match(line):
                nodes.append(match[1])
                regions[match[1]] = []
            elif match := DECISION.match(line):
                scope, name, value, who, domain, effect = match.groups()
                if "..." not in domain:
                    regions[nodes[-1]].append((scope or "", name, value, who, members(domain), effect))
        return {node: rows for node, rows in regions.items() if nodes.count(node) == 1}

    def decide_randomly(self, model, random, *arguments):
        """A script that decides a part of each region's decisions, step by step: domains rest on what is decided. Its number of members."""
        lines, chosen = [], {}
        for step in range(3):  # algorithm first, then tiles
            regions = self.explain(model, *arguments, *(("--schedule", "s.mlir") if lines else ()))
            for node, rows in regions.items():
                open_rows = [row for row in rows if row[3] == "default" and len(row[4]) > 1]
                first = [row for row in open_rows if row[1] == "algorithm"] if step == 0 else open_rows
                if not first:
                    continue
                scope, name, _, _, values, _ = random.choice(first)
                value = random.choice(values)
                one = f"{name} = {value}"
                handle = f"%r{len(lines)}"
                lines += [f'{handle} = transform.dmx.match {{node = "{node}"}} in %m : {ANY} -> {ANY}',
                          f'transform.dmx.decide {handle} {{{f"{chr(34)}{scope}{chr(34)} = {{{one}}}" if scope else one}}} : {ANY}']
                chosen.setdefault(node, []).append(one)
            (self.dir / "s.mlir").write_text(script(lines))
        return sum(map(len, chosen.values()))

    def test_random_members_of_models(self):
        models = [name for name in MODELS if (ZOO / name).exists()]
        if not models:
            self.skipTest("no build/zoo")
        count = 0
        for name, level, round_ in sampling.sample(itertools.product(models, LEVELS, range(3)), 15 if len(LEVELS) == 2 else 22):
            with self.subTest(f"{name} {level}"):
                folder, random = ZOO / name, Random(f"{sampling.SEED} {name} {level} {round_}")
                arguments = ("-t", f"cpu:{level}")
                count += self.decide_randomly(folder / "model.onnx", random, *arguments)
                self.run_tool(folder / "model.onnx", *arguments, "--schedule", "s.mlir", "-o", "m.bundle")
                meta = json.loads((folder / "meta.json").read_text())
                result = self.run_tool("m.bundle", "--inputs", folder / "set0", "--expect", folder / "set0", "--rtol", meta.get("rtol", 1e-3),
                                       "--atol", meta.get("atol", 1e-4), tool="dmx-run")
                self.assertIn("PASS", result.stdout)
        print(f"{count} random members")

    def test_members_of_products(self):
        """Shapes with rests of rows, columns and depth: members one by one, each against the default's outputs."""
        shapes = [(512, 512, 512, False), (37, 70, 50, True), (9, 130, 33, True), (16, 64, 16, True), (100, 257, 48, False), (5, 8, 7, True),
                  (2, 300, 40, True), (64, 66, 130, False)]
        random, count = Random(sampling.SEED), 0
        for m, k, n, constant in sampling.sample(shapes, 4):
            for level in LEVELS:
                with self.subTest(f"{m}x{k}x{n} {level}"):
                    (self.dir / "p.mlir").write_text(matmul(m, k, n, constant))
                    arguments = ("-t", f"cpu:{level}")
                    self.run_tool("p.mlir", *arguments, "-o", "d.bundle")
                    self.run_tool("d.bundle", "--random-inputs", "1", "--output-dir", "d.out", tool="dmx-run")
                    rows = self.explain("p.mlir", *arguments)["product"]
                    tiles = {row[1]: row for row in rows if row[0] == level}
                    for vectors in tiles["vectors"][4] if "vectors" in tiles else [None]:
                        count += self.one_by_one(arguments, level, vectors, random)
        print(f"{count} members")

    def one_by_one(self, arguments, level, vectors, random):
        first = [f"vectors = {vectors}"] if vectors else []
        self.write(level, first)
        rows = [row for row in self.explain("p.mlir", *arguments, *(("--schedule", "s.mlir") if first else ()))["product"] if row[0] == level]
        default = self.code("d.bundle")
        for scope, name, value, who, values, effect in rows:
            if who != "default":
                continue
            for other in [v for v in values if v != value] if sampling.LONG else random.sample([v for v in values if v != value], 1):
                self.write(level, [*first, f"{name} = {other}"])
                self.run_tool("p.mlir", *arguments, "--schedule", "s.mlir", "-o", "m.bundle")
                self.assertFalse(self.code("m.bundle") == default, f"{name} = {other} changed nothing")
                exact = ("--rtol", 0, "--atol", 0) if effect == "no bits" and not first else ("--rtol", 1e-4, "--atol", 1e-4)
                self.run_tool("m.bundle", "--random-inputs", "1", "--expect", "d.out", *exact, tool="dmx-run")
        return len(rows)

    def write(self, level, values):
        decided = f'transform.dmx.decide %r {{"{level}" = {{{", ".join(values)}}}}} : {ANY}' if values else ""
        (self.dir / "s.mlir").write_text(script([f'%r = transform.dmx.match {{node = "product"}} in %m : {ANY} -> {ANY}', decided]))

    def code(self, bundle):
        return [data for name, data in self.entries(self.dir / bundle).items() if name.startswith("code/")]

    def test_domains_are_real(self):
        (self.dir / "p.mlir").write_text(matmul(512, 512, 512, constant=False))
        rows = self.explain("p.mlir", "-t", "cpu:x86-64-v3")["product"]
        count = 1
        for scope, name, _, _, values, _ in rows:
            if scope:
                count *= len(values)
        print(f"512^3 at x86-64-v3: {count} members")
        self.assertGreaterEqual(count, 24)

    def test_values_outside(self):
        (self.dir / "p.mlir").write_text(matmul(64, 256, 64, constant=False))
        for level, value, message in (("x86-64-v3", "rows = 14", "refuses rows = 14 for node 'product' at x86-64-v3; its values are 1, 2, 3, 4, 5, 6 [schedule-refused]"),
                                      ("x86-64-v3", "vectors = 3", "refuses vectors = 3 for node 'product' at x86-64-v3; its values are 1, 2, 4 ["),
                                      ("x86-64-v3", "k_block = 7", "refuses k_block = 7"), ("x86-64-v9", "rows = 2", "nothing to decide for 'x86-64-v9'"),
                                      ("x86-64-v3", "row = 2", "has no decision 'row' for node 'product'; it has "),
                                      ("x86-64-v3", "pack_a = 2", "refuses pack_a = 2"), ("x86-64-v3", 'rows = "2"', 'refuses rows = "2"')):
            self.write(level, [value])
            err = self.run_tool("p.mlir", "-t", "cpu:x86-64-v3", "--schedule", "s.mlir", "-o", "x.bundle", code=1).stderr
            self.assertIn("s.mlir:4:5: error: the cpu target " + message if message[0] in "rh" else message, err)

    def test_one_value_for_all_levels(self):
        """What stands outside of a level is for each; it must be a value of each. A level's own counts before it."""
        (self.dir / "p.mlir").write_text(matmul(64, 64, 64, constant=False))
        (self.dir / "s.mlir").write_text(script([f'%r = transform.dmx.match {{node = "product"}} in %m : {ANY} -> {ANY}',
                                                 f'transform.dmx.decide %r {{rows = 3, "x86-64-v4" = {{rows = 8}}}} : {ANY}']))
        rows = self.explain("p.mlir", "-t", "cpu:x86-64-v3+x86-64-v4", "--schedule", "s.mlir")["product"]
        self.assertEqual({row[0]: row[2:4] for row in rows if row[1] == "rows"}, {"x86-64-v3": ("3", "s.mlir:4:5"), "x86-64-v4": ("8", "s.mlir:4:5")})
        (self.dir / "s.mlir").write_text(script([f'%r = transform.dmx.match {{node = "product"}} in %m : {ANY} -> {ANY}',
                                                 f'transform.dmx.decide %r {{rows = 8}} : {ANY}']))
        err = self.run_tool("p.mlir", "-t", "cpu:x86-64-v3+x86-64-v4", "--schedule", "s.mlir", "-o", "x", code=1).stderr
        self.assertIn("at x86-64-v3; its values are 1, 2, 3, 4, 5, 6", err)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
