#!/usr/bin/env python3
"""Decisions of regions: random members of their domains compute what the model computes, each listed member is obeyed, a value outside is
refused. Usage: decisions_test.py BIN REPO [unittest arguments]

A plain run takes a sample of models and of members; DMXC_LONG=1 takes all: some hundred members for each level."""
import itertools
import json
import pathlib
import re
import struct
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


def weights(count):
    """Numbers that differ, as MLIR's text has their bytes."""
    random = Random(count)
    return struct.pack(f"<{count}f", *(random.uniform(-1, 1) for _ in range(count))).hex()


def matmul(m, k, n, constant=True):
    """y = x w, w a constant whose values differ, or of a run."""
    x, w, y = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    if not constant:
        return (f'func.func @main(%x: {x} {{dmir.name = "x"}}, %w: {w} {{dmir.name = "w"}}) -> ({y} {{dmir.name = "y"}}) {{\n'
                f'  %0 = dmir.matmul %x, %w : ({x}, {w}) -> {y} loc("product")\n  return %0 : {y}\n}}\n')
    values = weights(k * n)
    return (f'func.func @main(%x: {x} {{dmir.name = "x"}}) -> ({y} {{dmir.name = "y"}}) {{\n  %w = dmir.constant dense<"0x{values}"> : {w}\n'
            f'  %0 = dmir.matmul %x, %w : ({x}, {w}) -> {y} loc("product")\n  return %0 : {y}\n}}\n')


def conv(channels, size, outputs, kernel, stride=1, groups=1, pad=0, constant=True, batch=1):
    """A convolution of `size` = (height, width)."""
    out = [(extent + 2 * pad - kernel) // stride + 1 for extent in size]
    x, w = f"tensor<{batch}x{channels}x{size[0]}x{size[1]}xf32>", f"tensor<{outputs}x{channels // groups}x{kernel}x{kernel}xf32>"
    y = f"tensor<{batch}x{outputs}x{out[0]}x{out[1]}xf32>"
    values = weights(outputs * channels // groups * kernel * kernel)
    attributes = (f"strides = array<i64: {stride}, {stride}>, dilations = array<i64: 1, 1>, low = array<i64: {pad}, {pad}>, "
                  f"high = array<i64: {pad}, {pad}>, groups = {groups} : i64")
    argument, made = ("", f'  %w = dmir.constant dense<"0x{values}"> : {w}\n') if constant else (f', %w: {w} {{dmir.name = "w"}}', "")
    return (f'func.func @main(%x: {x} {{dmir.name = "x"}}{argument}) -> ({y} {{dmir.name = "y"}}) {{\n{made}'
            f'  %0 = dmir.conv %x, %w {{{attributes}}} : ({x}, {w}) -> {y} loc("product")\n  return %0 : {y}\n}}\n')


def attention(batch, rows, keys, depth, columns):
    q, k, v = f"tensor<{batch}x{rows}x{depth}xf32>", f"tensor<{batch}x{depth}x{keys}xf32>", f"tensor<{batch}x{keys}x{columns}xf32>"
    s, y = f"tensor<{batch}x{rows}x{keys}xf32>", f"tensor<{batch}x{rows}x{columns}xf32>"
    return (f'func.func @main(%q: {q} {{dmir.name = "q"}}, %k: {k} {{dmir.name = "k"}}, %v: {v} {{dmir.name = "v"}}) -> ({y} {{dmir.name = "y"}}) {{\n'
            f'  %0 = dmir.matmul %q, %k : ({q}, {k}) -> {s}\n  %1 = dmir.softmax %0 {{axis = 2 : i64}} : ({s}) -> {s}\n'
            f'  %2 = dmir.matmul %1, %v : ({s}, {v}) -> {y} loc("product")\n  return %2 : {y}\n}}\n')


class Decisions(Base):
    def explain(self, model, *arguments, longest=False):
        """{node: [(scope, name, value, who, members, effect)]} of the regions whose node no other has."""
        text = self.run_tool(model, "--emit", "partition", "-q", "-o", "text.mlir", "--explain-decisions", *arguments).stdout
        regions, nodes = {}, []
        for line in text.splitlines():
            if match := REGION.match(line):
                nodes.append(match[1])
                regions[match[1]] = []
            elif match := DECISION.match(line):
                scope, name, value, who, domain, effect = match.groups()
                if longest or "..." not in domain:  # else only the first values are written out
                    regions[nodes[-1]].append((scope or "", name, value, who, members(domain), effect))
        return {node: rows for node, rows in regions.items() if nodes.count(node) == 1}

    def decide_randomly(self, model, random, *arguments):
        """A script that decides a part of each region's decisions, step by step, as they are listed: domains rest on what is decided
        before. Its number of members."""
        lines, chosen = [], {}
        for step in range(3):  # algorithm first, then tiles
            regions = self.explain(model, *arguments, *(("--schedule", "s.mlir") if lines else ()))
            for node, rows in regions.items():
                last = max((i for i, row in enumerate(rows) if row[3] != "default"), default=-1)
                open_rows = [row for row in rows[last + 1:] if len(row[4]) > 1]
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

    PRODUCTS = [matmul(512, 512, 512, False), matmul(37, 70, 50), matmul(9, 130, 33), matmul(16, 64, 16), matmul(100, 257, 48, False),
                matmul(5, 8, 7), matmul(2, 300, 40), matmul(64, 66, 130, False)]
    CONVOLUTIONS = [conv(64, (56, 56), 64, 3, pad=1), conv(128, (7, 7), 128, 3, pad=1), conv(32, (7, 7), 48, 3, pad=1), conv(64, (9, 11), 40, 3, 2, pad=1),
                    conv(3, (31, 29), 20, 7, 2, pad=3), conv(96, (14, 14), 24, 1), conv(32, (13, 13), 32, 3, pad=1, constant=False),
                    conv(40, (15, 9), 40, 3, groups=40, pad=1), conv(64, (10, 10), 96, 3, groups=2, pad=1), conv(48, (5, 6), 17, 3), conv(16, (8, 8), 8, 5, pad=2),
                    conv(64, (6, 6), 130, 3, pad=1, batch=3)]
    ATTENTIONS = [attention(4, 100, 60, 32, 24), attention(2, 33, 1100, 16, 16), attention(1, 7, 40, 8, 5)]

    def test_members_of_regions(self):
        """Shapes with rests: members one by one, each against the default's outputs."""
        random, count = Random(sampling.SEED), 0
        for kind, share in ((self.PRODUCTS, 8), (self.CONVOLUTIONS, 6), (self.ATTENTIONS, 3)):
            for number, model in sampling.sample(list(enumerate(kind)), share):
                for level in LEVELS if sampling.LONG else [random.choice(LEVELS)]:
                    with self.subTest(f"{model.splitlines()[0][:90]} {number} {level}"):
                        (self.dir / "p.mlir").write_text(model)
                        count += self.members_of(("-t", f"cpu:{level}"), level, random)
        print(f"{count} members")

    def members_of(self, arguments, level, random):
        """Each decision takes other values, with one value of algorithm and vectors after the other, on which the others rest."""
        self.run_tool("p.mlir", *arguments, "-o", "d.bundle")
        self.run_tool("d.bundle", "--random-inputs", "1", "--output-dir", "d.out", tool="dmx-run")
        rows = {row[1]: row for row in self.explain("p.mlir", *arguments)["product"]}
        count = 0
        def some(values):
            return values if sampling.LONG else [random.choice(values)]

        for algorithm in some(rows["algorithm"][4] if "algorithm" in rows else [None]):
            first = [("", f"algorithm = {algorithm}")] if algorithm and algorithm != rows["algorithm"][2] else []
            self.write(first)
            after = {row[1]: row for row in self.explain("p.mlir", *arguments, *self.scripted(first))["product"]}
            for vectors in some(after["vectors"][4] if "vectors" in after else [None]):
                wide = [(level, f"vectors = {vectors}")] if vectors and vectors != after["vectors"][2] else []
                count += self.one_by_one(arguments, [*first, *wide], random)
        return count

    def scripted(self, values):
        return ("--schedule", "s.mlir") if values else ()

    def one_by_one(self, arguments, first, random):
        self.write(first)
        self.run_tool("p.mlir", *arguments, *self.scripted(first), "-o", "f.bundle")
        base, count = self.code("f.bundle"), 0
        rows = self.explain("p.mlir", *arguments, *self.scripted(first))["product"]
        for scope, name, value, who, values, effect in rows:
            others = [v for v in values if v != value]
            if who != "default" or name in ("algorithm", "vectors", "grain") or not others:
                continue
            for other in others if sampling.LONG else random.sample(others, 1):
                self.write([*first, (scope, f"{name} = {other}")])
                self.run_tool("p.mlir", *arguments, "--schedule", "s.mlir", "-o", "m.bundle")
                self.assertFalse(self.code("m.bundle") == base, f"{name} = {other} after {first} changed nothing")
                exact = ("--rtol", 0, "--atol", 0) if effect == "no bits" and not first else ("--rtol", 1e-4, "--atol", 2e-4)
                self.run_tool("m.bundle", "--random-inputs", "1", "--expect", "d.out", *exact, tool="dmx-run")
                count += 1
        return count

    def write(self, values):
        """`values`: (level or "", "NAME = VALUE")."""
        lines = [f'%r = transform.dmx.match {{node = "product"}} in %m : {ANY} -> {ANY}']
        for scope, value in values:
            inner = f'"{scope}" = {{{value}}}' if scope else value
            lines.append(f"transform.dmx.decide %r {{{inner}}} : {ANY}")
        (self.dir / "s.mlir").write_text(script(lines))

    def code(self, bundle):
        return [data for name, data in self.entries(self.dir / bundle).items() if name.startswith("code/")]

    def test_domains_are_real(self):
        for name, model in (("512^3", matmul(512, 512, 512, constant=False)), ("56x56x64 3x3", conv(64, (56, 56), 64, 3, pad=1))):
            (self.dir / "p.mlir").write_text(model)
            count = 1
            for scope, _, _, _, values, _ in self.explain("p.mlir", "-t", "cpu:x86-64-v3", longest=True)["product"]:
                count *= len(values) if scope else 1
            print(f"{name} at x86-64-v3: {count} members")
            self.assertGreaterEqual(count, 24)

    def test_values_outside(self):
        (self.dir / "p.mlir").write_text(matmul(64, 256, 64, constant=False))
        for level, value, message in (("x86-64-v3", "rows = 14", "refuses rows = 14 for node 'product' at x86-64-v3; its values are 1, 2, 3, 4, 5, 6 [schedule-refused]"),
                                      ("x86-64-v3", "vectors = 3", "refuses vectors = 3 for node 'product' at x86-64-v3; its values are 1, 2, 4 ["),
                                      ("x86-64-v3", "k_block = 7", "refuses k_block = 7"), ("x86-64-v9", "rows = 2", "nothing to decide for 'x86-64-v9'"),
                                      ("x86-64-v3", "row = 2", "has no decision 'row' for node 'product'; it has "),
                                      ("x86-64-v3", "pack_a = 2", "refuses pack_a = 2"), ("x86-64-v3", 'rows = "2"', 'refuses rows = "2"')):
            self.write([(level, value)])
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
