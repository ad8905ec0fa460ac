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
LEVELS = ("x86-64-v2", "x86-64-v3", "host") + (("x86-64-v4",) if "avx512bw" in pathlib.Path("/proc/cpuinfo").read_text() else ())
CPU, CORSAIR, AIE = "cpu:x86-64-v3", "corsair", "aie"
ANY = "!transform.any_op"
REGION = re.compile(r"^node '(.*)': ([^\s,]+)(?:, (.+))?$")
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


class DecisionsBase(Base):
    def models(self, *more):
        models = [name for name in (*MODELS, *more) if (ZOO / name).exists()]
        if not models:
            self.skipTest("no build/zoo")
        return models

    def targets(self):
        """What dmxc -t is given: levels of the host, and devices of this build."""
        return [f"cpu:{level}" for level in LEVELS] + ([CORSAIR] if CORSAIR in self.run_tool("--print-targets").stdout else [])

    def tolerance(self, folder, target):
        """As a model's own outputs are compared: what the model says for the host, what the tests of devices ask for."""
        meta = json.loads((folder / "meta.json").read_text())
        return ("--min-sqnr", 22) if target == CORSAIR else ("--rtol", meta.get("rtol", 1e-3), "--atol", meta.get("atol", 1e-4))

    def code(self, bundle):
        return [data for name, data in self.entries(self.dir / bundle).items() if name.startswith("code/")]

    def explain(self, model, *arguments, longest=False):
        """{node: [(scope, name, value, who, members, effect)]} of the regions whose node no other has; `kinds`: {node: (device, algorithm)}."""
        text = self.run_tool(model, "--emit", "partition", "-q", "-o", "text.mlir", "--explain-decisions", *arguments).stdout
        regions, nodes, self.kinds = {}, [], {}
        for line in text.splitlines():
            if match := REGION.match(line):
                nodes.append(match[1])
                regions[match[1]] = []
                self.kinds[match[1]] = match.groups()[1:]
            elif match := DECISION.match(line):
                scope, name, value, who, domain, effect = match.groups()
                if longest or "..." not in domain:  # else only the first values are written out
                    regions[nodes[-1]].append((scope or "", name, value, who, members(domain), effect))
        return {node: rows for node, rows in regions.items() if nodes.count(node) == 1}


@sampling.sampled(2)
class Decisions(DecisionsBase):
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
        count, targets = 0, self.targets()
        for name, target, round_ in sampling.sample(itertools.product(self.models(), targets, range(3)), 12 * len(targets) + 1):
            with self.subTest(f"{name} {target}"):
                folder, random = ZOO / name, Random(f"{sampling.SEED} {name} {target} {round_}")
                arguments = ("-t", target)
                count += self.decide_randomly(folder / "model.onnx", random, *arguments)
                self.run_tool(folder / "model.onnx", *arguments, "--schedule", "s.mlir", "-o", "m.bundle")
                result = self.run_tool("m.bundle", "--inputs", folder / "set0", "--expect", folder / "set0", *self.tolerance(folder, target), tool="dmx-run")
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
        for kind, share in ((self.PRODUCTS, 12), (self.CONVOLUTIONS, 9), (self.ATTENTIONS, 3)):
            for number, model in sampling.sample(list(enumerate(kind)), share):
                for level in LEVELS if sampling.LONG else [random.choice(LEVELS)]:
                    with self.subTest(f"{model.splitlines()[0][:90]} {number} {level}"):
                        (self.dir / "p.mlir").write_text(model)
                        count += self.members_of(("-t", f"cpu:{level}"), level, random)
        print(f"{count} members")

    def test_members_of_tilings(self):
        """Cores of the array and their tiles: each value by itself, and the same bits."""
        if AIE not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build has no target aie")
        random, count = Random(sampling.SEED), 0
        for model in sampling.sample([matmul(70, 100, 130), matmul(9, 260, 300, constant=False), *self.CONVOLUTIONS[3:5], self.CONVOLUTIONS[9]], 3):
            with self.subTest(model.splitlines()[0][:90]):
                (self.dir / "p.mlir").write_text(model)
                self.run_tool("p.mlir", "-t", AIE, "-o", "d.bundle")
                self.run_tool("d.bundle", "--random-inputs", "1", "--output-dir", "d.out", tool="dmx-run")
                count += self.one_by_one(("-t", AIE), [], random)
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
            if who != "default" or name in ("algorithm", "vectors") or not others:
                continue
            few = not sampling.LONG or name == "grain"
            for other in random.sample(others, 1) if few else others:
                self.write([*first, (scope, f"{name} = {other}")])
                self.run_tool("p.mlir", *arguments, "--schedule", "s.mlir", "-o", "m.bundle")
                same = "no code" in effect  # it says why
                self.assertEqual(self.code("m.bundle") == base, same, f"{name} = {other} after {first}: is the code the same?")
                self.assertTrue(not same or self.entries(self.dir / "m.bundle")["graph.json"] != self.entries(self.dir / "f.bundle")["graph.json"])
                exact = ("--rtol", 0, "--atol", 0) if effect.startswith("no bits") and not first else ("--rtol", 1e-4, "--atol", 2e-4)
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


@sampling.sampled(2)
class Obeyed(DecisionsBase):
    """What the compiled model does with each decision, for each kind of region that zoo models have: a device and an algorithm."""

    def script_for(self, node, scope, one):
        inner = f'"{scope}" = {{{one}}}' if scope else one
        (self.dir / "s.mlir").write_text(script([f'%r = transform.dmx.match {{node = "{node}"}} in %m : {ANY} -> {ANY}', f"transform.dmx.decide %r {{{inner}}} : {ANY}"]))

    def regions(self, name, target, seen):
        """(node, rows) of the model's regions, of decisions that were not seen of their kind; a device's graph is of a kind of its own."""
        for node, rows in self.explain(ZOO / name / "model.onnx", "-t", target, longest=True).items():
            kind = self.kinds[node] if target != CORSAIR else name
            new = [row for row in rows if (target, kind, row[1]) not in seen]
            if new and (target != CORSAIR or self.kinds[node][0] == CORSAIR):
                seen.update((target, kind, row[1]) for row in new)
                yield node, new

    def test_another_member(self):
        seen, rows_seen, differ, task = set(), 0, 0, 0
        targets = [target for target in self.targets() if target in (CPU, CORSAIR)]
        cases = [(name, target) for name in self.models("resnet18") for target in targets if name in MODELS or target == CPU]
        for name, target in sampling.sample(cases, len(cases)):  # resnet18 takes the simulator too long
            random, model = Random(f"{sampling.SEED} {name} {target}"), (ZOO / name / "model.onnx", "-t", target)
            self.run_tool(*model, "-o", "d.bundle")
            self.run_tool("d.bundle", "--inputs", ZOO / name / "set0", "--output-dir", "d.out", tool="dmx-run")
            code, whole = self.code("d.bundle"), self.entries(self.dir / "d.bundle")["graph.json"]
            listed = [(node, row) for node, rows in self.regions(name, target, seen) for row in rows]
            for node, (scope, decision, value, _, values, effect) in listed if sampling.LONG else random.sample(listed, min(len(listed), 4)):
                others = [other for other in values if other not in (value, "...")]
                with self.subTest(f"{name} {target} {node} {scope} {decision}"):
                    self.assertTrue(others)
                    self.script_for(node, scope, f"{decision} = {random.choice(others)}")
                    self.run_tool(*model, "--schedule", "s.mlir", "-o", "m.bundle")
                    rows_seen += 1
                    if "no code" in effect:  # as the line says
                        task += 1  # regions that are computed alike have one kernel, until one of them has another grain
                        self.assertFalse(self.entries(self.dir / "m.bundle")["graph.json"] == whole)
                    else:
                        self.assertFalse(self.code("m.bundle") == code, "the code is the default's, and nothing says why")
                        differ += 1
                    exact = effect.startswith("no bits")
                    expect = "d.out" if exact else ZOO / name / "set0"
                    tolerance = ("--rtol", 0, "--atol", 0) if exact else self.tolerance(ZOO / name, target)
                    self.run_tool("m.bundle", "--inputs", ZOO / name / "set0", "--expect", expect, *tolerance, tool="dmx-run")
                    self.refuse(model, node, scope, decision, values)
        print(f"{rows_seen} decisions of {len({kind[:2] for kind in seen})} kinds of regions: {differ} with other code, {task} that the task says")

    def refuse(self, model, node, scope, decision, values):
        """Values that are none: the place, the node, the domain."""
        outside = ['"nothing"'] if values[0].startswith('"') else ["2"] if values[0] in ("true", "false") else ["-1", "0", str(2 ** 62), '"1"']
        for value in outside if sampling.LONG and model[-1] != CORSAIR else outside[-1:]:
            self.script_for(node, scope, f"{decision} = {value}")
            err = self.run_tool(*model, "--schedule", "s.mlir", "-o", "x.bundle", code=1).stderr
            at = f" at {scope}" if scope else ""
            self.assertIn("s.mlir:4:5: error: the ", err)
            self.assertIn(f"target refuses {decision} = {value} for node '{node}'{at}; its values are {values[0]}", err)

    def test_values_that_nothing_follows_from(self):
        """What other decisions rest on is no number that any shape has."""
        (self.dir / "p.mlir").write_text(conv(32, (9, 10), 40, 3, pad=1))
        for algorithm, names in (("conv-direct", ("rows", "vectors", "unroll", "tiles_per_item")), ("conv-winograd", ("rows", "vectors", "block_tiles"))):
            for name, value in itertools.product(names, (-1, 0, 2 ** 62)):
                self.script_for("product", "", f'algorithm = "{algorithm}", {name} = {value}')
                err = self.run_tool("p.mlir", "-t", CPU, "--schedule", "s.mlir", "-o", "x.bundle", code=1).stderr
                self.assertIn(f"refuses {name} = {value} for node 'product' at x86-64-v3; its values are ", err)
        (self.dir / "p.mlir").write_text(matmul(9, 130, 33))
        for name, value in itertools.product(("rows", "vectors", "k_block"), (-1, 0, 2 ** 62)):
            self.script_for("product", "", f"{name} = {value}")
            err = self.run_tool("p.mlir", "-t", CPU, "--schedule", "s.mlir", "-o", "x.bundle", code=1).stderr
            self.assertIn(f"refuses {name} = {value} for node 'product' at x86-64-v3; its values are ", err)

    def test_listed_decisions_are_real(self):
        """What the targets' pages list has several members in some region of a zoo model, and nothing else is free."""
        direct = script([f'%r = transform.dmx.match {{algorithm = "conv-winograd"}} in %m expect any : {ANY} -> {ANY}',
                         f'transform.dmx.decide %r {{algorithm = "conv-direct"}} : {ANY}'])
        (self.dir / "direct.mlir").write_text(direct)
        pages = {CPU: r"Schedules decide \(`Decisions.cpp`\): (.*?)\. A domain", CORSAIR: r"Schedules decide the same, .*?`decide/ProductDecisions`\): (.*?)\. Domains",
                 AIE: r"Schedules decide \(`Tilings.cpp`\): (.*?)\. Domains"}
        for target in sampling.sample(pages, len(pages)):
            if target not in (*self.targets(), AIE) or target.split(":")[0] not in self.run_tool("--print-targets").stdout:
                continue
            text = (REPO / "targets" / target.split(":")[0] / "README.md").read_text()
            listed = re.search(pages[target], text, re.S)[1]
            names = set(re.findall(r"`([a-z_]+)`", listed))
            found = {}
            for name in self.models("resnet18", *(("mobilenet_v2",) if target == AIE else ())):  # convolutions in groups
                for more in ((), ("--schedule", "direct.mlir"))[:2 if target == CPU and name == "resnet18" else 1]:
                    for node, rows in self.explain(ZOO / name / "model.onnx", "-t", target, *more, longest=True).items():
                        for _, decision, _, _, values, _ in rows if self.kinds[node][0] == target.split(":")[0] else ():
                            found[decision] = max(found.get(decision, 0), len(values))
            self.assertEqual(set(found), names)
            self.assertGreaterEqual(min(found.values()), 2, found)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
