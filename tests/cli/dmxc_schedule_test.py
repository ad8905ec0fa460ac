#!/usr/bin/env python3
"""dmxc --schedule: scripts that match regions and decide how they are computed. Usage: dmxc_schedule_test.py BIN REPO [unittest arguments]"""
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from random import Random

from dmxc_case import BIN, DIGITS, ITS_DATA, REPO, Base

sys.path.insert(0, str(REPO / "tests"))
import sampling  # noqa: E402

ZOO = BIN.parent / "zoo"
ANY, NUMBER = "!transform.any_op", "!transform.param<i64>"


def script(*lines, name="__transform_main", attributes=""):
    """A script; the first of `lines` is its line 3, indented by four."""
    body = "".join(f"    {line}\n" for line in lines)
    return ("module attributes {transform.with_named_sequence} {\n"
            f"  transform.named_sequence @{name}(%m: {ANY} {{transform.readonly}}) {attributes}{{\n{body}    transform.yield\n  }}\n}}\n")


def match(properties, handle="r", rest="", source="m"):
    return f"%{handle} = transform.dmx.match {{{properties}}} in %{source}{rest} : {ANY} -> {ANY}"


def decide(values, handle="r"):
    return f"transform.dmx.decide %{handle} {{{values}}} : {ANY}"


CONV2 = match('node = "/conv2/Conv"')
BATCH = ("--dim", "batch=32")


class Schedules(Base):
    def write(self, file, *lines, **rest):
        (self.dir / file).write_text(script(*lines, **rest))

    def strategies(self, *arguments):
        """Of digits' regions, by node."""
        text = self.run_tool(DIGITS, "--emit", "partition", "-q", *BATCH, *arguments).stdout
        names = dict(re.findall(r'^(#loc\d+) = loc\("([^"]*)"\)', text, re.M))
        names |= {alias: names[first] for alias, first in re.findall(r"^(#loc\d+) = loc\(fused\[(#loc\d+)", text, re.M)}
        rows = re.findall(r'dmir\.region "cpu".*?strategy = (\{.*?\})\} \{\n.*?\n    \} loc\((#loc\d+)\)', text, re.S)
        return {names[alias]: strategy for strategy, alias in rows}

    def test_a_decision_is_obeyed(self):
        """Another grain and another algorithm: the bundle differs in them, and computes the same."""
        self.write("s.mlir", CONV2, decide("grain = 7"), match('algorithm = "matmul-packed"', "p"), decide('algorithm = "matmul"', "p"))
        before, after = self.strategies(), self.strategies("--schedule", "s.mlir")
        self.assertIn("grain = 7 ", after["/conv2/Conv"])
        self.assertNotIn("grain = 7 ", before["/conv2/Conv"])
        self.assertIn('algorithm = "matmul-packed"', before["/hidden/Gemm"])
        self.assertIn('algorithm = "matmul"', after["/hidden/Gemm"])
        self.assertNotIn("packed", after["/hidden/Gemm"])
        for name, arguments in (("plain", ()), ("decided", ("--schedule", "s.mlir"))):
            self.run_tool(DIGITS, "-o", f"{name}.bundle", *BATCH, *arguments)
            self.run_tool(f"{name}.bundle", "--random-inputs", "1", "--output-dir", f"{name}.out", tool="dmx-run")
        self.run_tool("decided.bundle", "--random-inputs", "1", "--expect", "plain.out", tool="dmx-run")
        plain, decided = self.entries(self.dir / "plain.bundle"), self.entries(self.dir / "decided.bundle")
        self.assertNotEqual(plain["graph.json"], decided["graph.json"])
        self.assertGreater(len(plain["weights.bin"] if "weights.bin" in plain else b"") + 1, 0)

    def test_defaults_that_are_decided_give_the_default_bundle(self):
        text = self.run_tool(DIGITS, "--emit", "partition", "-q", "-o", "p.mlir", *BATCH, "--explain-decisions").stdout
        lines, count = [], 0
        for block in re.split(r"^node ", text, flags=re.M)[1:]:
            node = block.split("'")[1]
            values = [(scoped, value) for scoped, value in re.findall(r"^  (\S+) = (.*?)  \(default\)", block, re.M)]
            flat = ", ".join(f"{name} = {value}" for name, value in values if "." not in name)
            scopes = {}
            for name, value in values:
                if "." in name:
                    scopes.setdefault(name.rsplit(".", 1)[0], []).append(f"{name.rsplit('.', 1)[1]} = {value}")
            parts = ([flat] if flat else []) + [f'"{scope}" = {{{", ".join(inner)}}}' for scope, inner in scopes.items()]
            if parts:
                count += len(values)
                lines += [match(f'node = "{node}"', f"r{len(lines)}"), decide(", ".join(parts), f"r{len(lines)}")]
        self.assertGreater(count, 6)
        self.write("s.mlir", *lines)
        for name, arguments in (("plain", ()), ("decided", ("--schedule", "s.mlir"))):
            self.run_tool(DIGITS, "-o", f"{name}.bundle", *BATCH, *arguments)
        self.assertEqual((self.dir / "plain.bundle").read_bytes(), (self.dir / "decided.bundle").read_bytes())

    def test_products(self):
        """All products, whatever op they come from; what is decided of one is its region's, or its own in a device's graph."""
        self.write("s.mlir", match('kind = "product"', rest=" expect 4"), decide("grain = 3"), match('kind = "product", op = "dmir.conv"', "c", " expect 2"))
        self.assertEqual([" grain = 3 " in strategy for node, strategy in sorted(self.strategies("--schedule", "s.mlir").items())
                          if "Conv" in node or "Gemm" in node], [True] * 4)
        if "corsair" not in self.run_tool("--print-targets").stdout:
            return
        self.write("s.mlir", match('kind = "product", node = "/hidden/*"'), decide("quads = 2, num_imc = 3"))
        explained = self.run_tool(DIGITS, "-t", "corsair", "--emit", "partition", "-q", "-o", "p.mlir", *BATCH, "--schedule", "s.mlir", "--explain-decisions").stdout
        self.assertIn("  quads = 2  (s.mlir:4:5)", explained)
        self.assertIn("  /hidden/Gemm.num_imc = 3  (s.mlir:4:5)", explained)
        self.assertEqual(explained.count("s.mlir:4:5"), 2)

    def test_a_region_of_no_node(self):
        """What --explain-decisions calls a region is found by that name."""
        text = ('func.func @main(%x: tensor<1x64x9x9xf32> {dmir.name = "x"}) -> (tensor<1x64x9x9xf32> {dmir.name = "y"}) {\n'
                '  %0 = dmir.exp %x : (tensor<1x64x9x9xf32>) -> tensor<1x64x9x9xf32>\n  return %0 : tensor<1x64x9x9xf32>\n}\n')
        (self.dir / "x.mlir").write_text(text)
        name = self.run_tool("x.mlir", "--emit", "partition", "-q", "-o", "p.mlir", "--explain-decisions").stdout.split("'")[1]
        self.write("s.mlir", match(f'node = "{name}"'), decide("grain = 1"))
        self.assertIn("grain = 1  (s.mlir:4:5)", self.run_tool("x.mlir", "--emit", "partition", "-q", "-o", "p.mlir", "--schedule", "s.mlir", "--explain-decisions").stdout)

    def test_files_in_their_order(self):
        self.write("a.mlir", CONV2, decide("grain = 5"))
        self.write("b.mlir", CONV2, decide("grain = 6"), name="late", attributes='attributes {dmx.at = "partition"} ')
        for files, grain in ((("a.mlir", "b.mlir"), 6), (("b.mlir", "a.mlir"), 5)):
            arguments = [word for file in files for word in ("--schedule", file)]
            self.assertIn(f"grain = {grain} ", self.strategies(*arguments)["/conv2/Conv"])
            explained = self.run_tool(DIGITS, "--emit", "partition", "-q", "-o", "p.mlir", *BATCH, *arguments, "--explain-decisions").stdout
            self.assertIn(f"grain = {grain}  ({files[1]}:4:5)", explained)

    def test_decisions_come_back_from_text(self):
        self.write("s.mlir", CONV2, decide("grain = 7"))
        self.run_tool(DIGITS, "-o", "direct.bundle", "--schedule", "s.mlir", *BATCH)
        self.run_tool(DIGITS, "--emit", "partition", "-o", "p.mlir", "--schedule", "s.mlir", *BATCH)
        text = (self.dir / "p.mlir").read_text()
        self.assertIn("decided = {grain = 7 : i64}", text)
        self.run_tool("p.mlir", "--from", "partition", *ITS_DATA, "-o", "resumed.bundle")
        direct, resumed = self.entries(self.dir / "direct.bundle"), self.entries(self.dir / "resumed.bundle")
        self.assertEqual({**direct, "manifest.json": 0}, {**resumed, "manifest.json": 0})
        (self.dir / "q.mlir").write_text(text.replace("decided = {grain = 7 : i64}", "decided = {grain = 8 : i64}"))
        self.assertIn("'grain' of its strategy is 7", self.run_tool("q.mlir", "--from", "partition", *ITS_DATA, "-o", "x", code=1).stderr)

    def test_a_whole_network(self):
        """Every winograd convolution of a ResNet computed directly, in two scripts, with the outputs that came with the model."""
        model = ZOO / "resnet18"
        if not model.exists():
            self.skipTest("no build/zoo/resnet18")
        self.write("s.mlir", match('op = "dmir.conv", algorithm = "conv-winograd"', rest=" expect 16"), decide('algorithm = "conv-direct"'))
        self.write("t.mlir", match('op = "dmir.conv", where = {strides = [2, 2]}, node = "/layer4/*"', rest=" expect 2"), decide("grain = 2"))
        arguments = (model / "model.onnx", "-t", "cpu:x86-64-v3", "--schedule", "s.mlir", "--schedule", "t.mlir")
        explained = self.run_tool(*arguments, "-o", "r.bundle", "--explain-decisions").stdout
        self.assertEqual(explained.count('algorithm = "conv-direct"  (s.mlir:4:5)'), 16)
        self.assertEqual(explained.count("grain = 2  (t.mlir:4:5)"), 2)
        case = json.loads((model / "meta.json").read_text())
        self.run_tool("r.bundle", "--inputs", model / "set0", "--expect", model / "set0", "--atol", case.get("atol", 1e-3), "--rtol",
                      case.get("rtol", 1e-3), tool="dmx-run")


class BadSchedules(Base):
    """Scripts that say something wrong. The messages are written from the design, each with place, node and what there is."""
    CASES = {
        "unknown-op": ([CONV2.replace("dmx.match", "dmx.mtch")],
                       ["s.mlir:3:10: error: there is no op 'transform.dmx.mtch'; did you mean 'transform.dmx.match'? [schedule-script]"]),
        "unknown-dmir-op": ([match('op = "dmir.convv"')],
                            ["s.mlir:3:10: error:", "there is no op 'dmir.convv'; did you mean 'dmir.conv'? [schedule-match]"]),
        "unknown-property": ([match('nod = "x"')], ["s.mlir:3:10: error:", "no property 'nod'", "did you mean 'node'? [schedule-match]"]),
        "unknown-node": ([match('node = "/conv3/Conv"')],
                         ["s.mlir:3:10: error: 'dmx.match' found no region, expected 1 or more [schedule-match]", "near: '/conv1/Conv' (node)"]),
        "near-op": ([match('node = "/conv2/Conv", op = "dmir.matmul"')], ["found no region", "near: '/conv2/Conv' (op dmir."]),
        "too-many": ([match('op = "dmir.conv"', rest=" expect 1")],
                     ["s.mlir:3:10: error: 'dmx.match' found 2 regions, expected 1 [schedule-match]", "found '/conv1/Conv', '/conv2/Conv'"]),
        "too-few": ([match('op = "dmir.conv"', rest=" expect 3")], ["found 2 regions, expected 3 [schedule-match]"]),
        "beyond": ([match('op = "dmir.conv", nth = 2')], ["s.mlir:3:10: error:", "nth = 2 is none of 0 to 1 [schedule-match]"]),
        "unknown-decision": ([CONV2, decide("grains = 2")],
                             ["s.mlir:4:5: error: the cpu target has no decision 'grains' for node '/conv2/Conv'; it has ",
                              "did you mean 'grain'? [schedule-refused]"]),
        "outside": ([CONV2, decide("grain = 0")],
                    ["s.mlir:4:5: error: the cpu target refuses grain = 0 for node '/conv2/Conv'; its values are 1 to ", "[schedule-refused]"]),
        "outside-text": ([CONV2, decide('algorithm = "fastest"')],
                         ['s.mlir:4:5: error: the cpu target refuses algorithm = "fastest" for node \'/conv2/Conv\'; its values are "conv-']),
        "no-region": ([match('kind = "op", op = "dmir.relu", nth = 0'), decide("grain = 1")],
                      ["s.mlir:4:5: error: 'dmir.relu' is no region and no product of one", "[schedule-refused]"]),
        "no-product": ([match('kind = "product", node = "/conv3/Conv"')],
                       ["s.mlir:3:10: error: 'dmx.match' found no product, expected 1 or more [schedule-match]", "near: '/conv1/Conv' (node)"]),
        "too-many-products": ([match('kind = "product"', rest=" expect 3")], ["found 4 products, expected 3 [schedule-match]"]),
        "consumed": ([CONV2, f'%f = transform.get_parent_op %r {{op_name = "func.func"}} : ({ANY}) -> {ANY}',
                      f'%g = transform.apply_registered_pass "canonicalize" to %f : ({ANY}) -> {ANY}', decide("grain = 1")],
                     ["s.mlir:6:5: error: 'r' was consumed by 'transform.apply_registered_pass' at s.mlir:5; go on with the handles that it "
                      "returned [schedule-consumed]"]),
        "parameter-outside": ([CONV2, f'%p = transform.dmx.param "g" one_of [2, 4] default 3 -> {NUMBER}'],
                              ["s.mlir:4:10: error: 'g' cannot be 3, its default; its values are 2, 4 [schedule-refused]"]),
        "parameter-twice": ([f'%p = transform.dmx.param "g" one_of [2, 4] -> {NUMBER}', f'%q = transform.dmx.param "g" one_of [2] -> {NUMBER}'],
                            ["s.mlir:4:10: error: 'g' is the parameter at s.mlir:3:10 already", "[schedule-refused]"]),
    }

    def refuse(self, *arguments, code=1):
        err = self.run_tool(DIGITS, "-o", "x.bundle", *BATCH, *arguments, code=code).stderr
        self.assertFalse((self.dir / "x.bundle").exists())
        return err

    def test_scripts(self):
        for name, (lines, messages) in self.CASES.items():
            with self.subTest(name):
                (self.dir / "s.mlir").write_text(script(*lines))
                err = self.refuse("--schedule", "s.mlir")
                for message in messages:
                    self.assertIn(message, err)
                self.assertNotIn("this is an error of dmxc", err)

    def test_unknown_parameter(self):
        (self.dir / "s.mlir").write_text(script(f'%p = transform.dmx.param "tile" one_of [2, 4] -> {NUMBER}'))
        err = self.refuse("--schedule", "s.mlir", "--set", "tyle=4")
        self.assertIn("s.mlir: error: --set tyle=4: the scripts have no parameter 'tyle'; they have 'tile'; did you mean 'tile'? [schedule-set]", err)
        self.assertIn("'tile' cannot be 3, as --set says; its values are 2, 4 [schedule-refused]", self.refuse("--schedule", "s.mlir", "--set", "tile=3"))
        for flags in (["--set", "tile=4"], ["--schedule", "s.mlir", "--set", "tile"], ["--schedule", "s.mlir", "--set", "t=1", "--set", "t=1"]):
            self.refuse(*flags, code=2)

    def test_files(self):
        one = script(CONV2)
        two = one.rstrip()[:-1] + f'  transform.named_sequence @b(%m: {ANY}) attributes {{dmx.at = "partition"}} {{\n    transform.yield\n  }}\n}}\n'
        other = script(CONV2, name="a", attributes='attributes {dmx.at = "tiles"} ')
        for content, message in ((b"", "no transform.named_sequence @__transform_main"), (b"\x7fELF\0\1\2\3", "this is no text"),
                                 (b"module {\n", "s.mlir:"), (two.encode(), "two entries, @__transform_main and @b"),
                                 ((one + one).encode(), "s.mlir:"), (other.encode(), '@a is to run at "tiles"; in this compile scripts run behind "frontend", "partition"'),
                                 (b"\xff\xfe\xfd\n", "s.mlir")):
            (self.dir / "s.mlir").write_bytes(content)
            err = self.refuse("--schedule", "s.mlir")
            self.assertIn(message, err)
            self.assertNotIn("this is an error of dmxc", err)
        self.assertIn("nothere.mlir", self.refuse("--schedule", "nothere.mlir", code=3))
        self.assertIn("cannot read '.'", self.refuse("--schedule", ".", code=3))


def divisors(n):
    return [i for i in range(1, n + 1) if n % i == 0]


def param(name, domain, kind=NUMBER):
    return f'%{name} = transform.dmx.param "{name}" {domain} -> {kind}'


GEMM = match('node = "/hidden/Gemm"')
WIDTH = f"%n = transform.dmx.dim %r[1] : {ANY} -> {NUMBER}"  # 32
DEPTH = f"%k = transform.dmx.dim %r operand 0 [-1] : {ANY} -> {NUMBER}"  # 512


class Parameters(Base):
    # Trees: the script, and by name the values that a parameter has after those before it, written independently of the compiler.
    TREES = {
        "pairs": ([param("a", "one_of [1, 2, 4]"), param("b", "one_of [8, 3] default 3")], {"a": lambda e: [1, 2, 4], "b": lambda e: [8, 3]}),
        "payload": ([GEMM, WIDTH, param("x", "divides %n default 16")], {"x": lambda e: divisors(32)}),
        "inner": ([GEMM, WIDTH, param("x", "divides %n"), param("y", "divides %x")],
                  {"x": lambda e: divisors(32), "y": lambda e: divisors(e["x"])}),
        "depth": ([GEMM, DEPTH, param("k1", "divides %k"), param("k2", "divides %k1"), param("k3", "divides %k2")],
                  {"k1": lambda e: divisors(512), "k2": lambda e: divisors(e["k1"]), "k3": lambda e: divisors(e["k2"])}),
        "steps": ([param("x", "range 4 to 30 step 6"), param("y", "range 2 to %x step 3"), param("z", "range -3 to 0")],
                  {"x": lambda e: range(4, 31, 6), "y": lambda e: range(2, e["x"] + 1, 3), "z": lambda e: range(-3, 1)}),
        "texts": ([param("t", 'one_of ["direct", "winograd"] default "winograd"', "!transform.any_param"),
                   param("u", "one_of [true, false]", "!transform.any_param"), param("x", "range 7 to 7")],
                  {"t": lambda e: ["direct", "winograd"], "u": lambda e: ["true", "false"], "x": lambda e: [7]}),
        "awkward": ([param("x", "divides 360"), param("y", "range 1 to %x step %x"), param("z", "divides %x default 1")],
                    {"x": lambda e: divisors(360), "y": lambda e: range(1, e["x"] + 1, e["x"]), "z": lambda e: divisors(e["x"])}),
        "same-twice": ([param("x", "one_of [2, 2, 5, 2]"), param("y", "range %x to 5")],
                       {"x": lambda e: [2, 5], "y": lambda e: range(e["x"], 6)}),
    }

    def brute(self, tree, before=None):
        before = before or {}
        if not tree:
            return [" ".join(f"{name}={value}" for name, value in before.items())]
        (name, values), *rest = tree
        return [leaf for value in values(before) for leaf in self.brute(rest, {**before, name: value})]

    def test_enumeration_is_exact(self):
        for name, (lines, tree) in self.TREES.items():
            with self.subTest(name):
                (self.dir / "s.mlir").write_text(script(*lines))
                *listed, count = self.run_tool("tune", DIGITS, *BATCH, "--schedule", "s.mlir", "--list").stdout.splitlines()
                self.assertEqual(listed, self.brute(list(tree.items())))
                self.assertEqual(count, f"{len(listed)} candidates")

    def test_members_that_are_refused(self):
        """A value that the target refuses is said once and in no candidate, whatever the parameters are that it does not rest on."""
        lines = [CONV2, param("a", "one_of [1, 2]"), param("b", "one_of [3, 5000000, 4]"), param("c", "one_of [1, 2, 3]")]
        for decides, refused in (([f"transform.dmx.decide %r with grain = %b : {ANY}, {NUMBER}", f"transform.dmx.decide %r with grain = %c : {ANY}, {NUMBER}"], 1),
                                 ([f"transform.dmx.decide %r with grain = %a : {ANY}, {NUMBER}", f"transform.dmx.decide %r with grain = %b : {ANY}, {NUMBER}"], 2)):
            (self.dir / "s.mlir").write_text(script(*lines, *decides))
            result = self.run_tool("tune", DIGITS, *BATCH, "--schedule", "s.mlir", "--list")
            members = f"{refused} member{'s' if refused > 1 else ''} refused"
            self.assertEqual(result.stdout.splitlines(), [f"a={a} b={b} c={c}" for a in (1, 2) for b in (3, 4) for c in (1, 2, 3)] + [f"12 candidates, {members}"])
            self.assertEqual(result.stderr.count("[tune-refused]"), refused)
            self.assertRegex(result.stderr, r"s.mlir:[78]:5: warning: (a=1 )?b=5000000 is not tried: the cpu target refuses grain = 5000000 for node '/conv2/Conv'; its values are 1 to ")
        one = lambda *lines: ["{", f"^bb0(%x: {ANY}):", *lines, "transform.yield", "}"]
        alternatives = [CONV2, f"transform.alternatives %r : {ANY}", *one(param("a", "one_of [1, 5000000]"), f"transform.dmx.decide %x with grain = %a : {ANY}, {NUMBER}"),
                        ",", *one(decide("grain = 2", "x"))]  # the script has an answer to the refusal
        (self.dir / "s.mlir").write_text(script(*alternatives))
        self.assertEqual(self.run_tool("tune", DIGITS, *BATCH, "--schedule", "s.mlir", "--list").stdout, "a=1\na=5000000\n2 candidates\n")
        (self.dir / "s.mlir").write_text(script(CONV2, param("a", "one_of [0, 5000000]"), f"transform.dmx.decide %r with grain = %a : {ANY}, {NUMBER}"))
        err = self.run_tool("tune", DIGITS, *BATCH, "--schedule", "s.mlir", "--list", code=1).stderr
        self.assertIn("s.mlir: error: the targets refuse all values of the scripts' parameters [schedule-refused]", err)
        self.assertEqual(err.count("[tune-refused]"), 2)

    def test_defaults_and_set(self):
        lines = [CONV2, param("g", "range 1 to 9 default 4"), f"transform.dmx.decide %r with grain = %g : {ANY}, {NUMBER}"]
        (self.dir / "s.mlir").write_text(script(*lines))
        for flags, grain in (((), 4), (("--set", "g=9"), 9)):
            explained = self.run_tool(DIGITS, "--emit", "partition", "-q", "-o", "p.mlir", *BATCH, "--schedule", "s.mlir", *flags,
                                      "--explain-decisions").stdout
            self.assertIn(f"grain = {grain}  (s.mlir:5:5)", explained)
        listed = self.run_tool("tune", DIGITS, *BATCH, "--schedule", "s.mlir", "--set", "g=9", "--list").stdout
        self.assertEqual(listed.splitlines()[-1], "1 candidates")
        (self.dir / "s.mlir").write_text(script(param("x", "range 1 to 1000"), param("y", "range 1 to %x")))
        self.assertIn("[schedule-space]", self.run_tool("tune", DIGITS, *BATCH, "--schedule", "s.mlir", "--list", code=1).stderr)


def product(m, k, n):
    """y = a b on a device, both of a run."""
    a, b, y = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    return (f'func.func @main(%a: {a} {{dmir.name = "a"}}, %b: {b} {{dmir.name = "b"}}) -> ({y} {{dmir.name = "y"}}) {{\n'
            f'  %0 = dmir.matmul %a, %b : ({a}, {b}) -> {y} loc("product")\n  return %0 : {y}\n}}\n')


@sampling.sampled(3)
class Tuning(Base):
    TARGET = ("-t", "corsair")

    def setUp(self):
        super().setUp()
        if "corsair" not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build has no target corsair")

    def tune(self, model, database, trials, *rest, target=TARGET, code=0):
        return self.run_tool("tune", model, *target, "--db", database, "--trials", trials, *rest, code=code)

    def clocks(self, bundle):
        self.run_tool(bundle, "--random-inputs", "1", "--device-opt", "report=r.json", tool="dmx-run")
        return sum(kernel["main"]["clocks"] for kernel in json.loads((self.dir / "r.json").read_text())["last"])

    def test_a_fifth_of_the_space_finds_the_best(self):
        """Within 5 % of the best of all team sizes, which the test measures itself; a default that is spoilt is found out."""
        (self.dir / "p.mlir").write_text(product(384, 448, 320))
        exact = {}
        for quads in (1, 2, 3, 4, 8, 16, 24, 32):
            self.run_tool("p.mlir", "-t", f"corsair:quads={quads}", "-o", "q.bundle")
            exact[quads] = self.clocks("q.bundle")
        for level in ("", ":quads=1", ":quads=3"):
            target = ("-t", "corsair" + level)
            self.tune("p.mlir", "d.jsonl", 16, target=target)
            self.run_tool("p.mlir", *target, "--tuning-db", "d.jsonl", "-o", "t.bundle")
            self.assertLessEqual(self.clocks("t.bundle"), 1.05 * min(exact.values()))
            record = [json.loads(line) for line in (self.dir / "d.jsonl").read_text().splitlines()
                      if json.loads(line)["level"] == (level[1:] or "default")][0]
            self.assertEqual(record["clocks"], self.clocks("t.bundle"))
            if level:
                self.assertEqual(record["default_clocks"], exact[int(level.split("=")[1])])
        print(f"team sizes {exact}")

    def test_same_database_same_bytes(self):
        self.tune(DIGITS, "a.jsonl", 4, *BATCH)
        before = (self.dir / "a.jsonl").read_bytes()
        self.assertIn("the database has it", self.tune(DIGITS, "a.jsonl", 4, *BATCH).stdout)
        self.tune(DIGITS, "b.jsonl", 4, *BATCH)
        self.assertEqual({before}, {(self.dir / name).read_bytes() for name in ("a.jsonl", "b.jsonl")})
        record = json.loads(before)
        self.assertEqual(sorted(record), ["clocks", "decided", "default_clocks", "effect", "level", "region", "target", "v"])
        slower = {**record, "clocks": record["clocks"] + 9, "decided": {"quads": 2}}
        other = {**record, "region": "sha256:00", "decided": {"quads": 3}}
        bundles = set()
        for order in itertools.permutations([record, slower, other]):
            (self.dir / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in order))
            self.run_tool(DIGITS, *self.TARGET, *BATCH, "--tuning-db", "s.jsonl", "-o", "s.bundle", "-MD")
            bundles.add((self.dir / "s.bundle").read_bytes())
        self.run_tool(DIGITS, *self.TARGET, *BATCH, "--tuning-db", "a.jsonl", "-o", "a.bundle")
        self.assertEqual(bundles, {(self.dir / "a.bundle").read_bytes()})
        self.assertIn("s.jsonl", (self.dir / "s.bundle.d").read_text())

    def test_after_a_kill_it_goes_on(self):
        (self.dir / "p.mlir").write_text(product(384, 448, 320))
        command = [str(BIN / "dmxc"), "tune", "p.mlir", *self.TARGET, "--db", "k.jsonl", "--trials", "8"]
        process = subprocess.Popen(command, cwd=self.dir, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(self.dir)})
        seen = [process.stdout.readline() for _ in range(4)][1:]
        process.kill()
        process.communicate()
        self.assertFalse((self.dir / "k.jsonl").exists())
        again = self.tune("p.mlir", "k.jsonl", 8).stdout
        for line in seen:
            self.assertIn(" clocks", line)
            self.assertNotIn(line, again)
        self.tune("p.mlir", "whole.jsonl", 8)
        self.assertEqual((self.dir / "k.jsonl").read_bytes(), (self.dir / "whole.jsonl").read_bytes())
        self.assertFalse((self.dir / "k.jsonl.trials").exists())

    def test_parameters_of_a_script(self):
        (self.dir / "s.mlir").write_text(script(match('device = "corsair"'), param("team", "one_of [1, 4, 16]"),
                                                f"transform.dmx.decide %r with quads = %team : {ANY}, {NUMBER}"))
        out = self.run_tool("tune", DIGITS, *self.TARGET, *BATCH, "--schedule", "s.mlir").stdout
        self.assertIn("best of 3 in 3 trials: --set team=16: ", out)
        (self.dir / "s.mlir").write_text(script(match('device = "corsair"'), param("team", "one_of [1, 64, 4, 16]"),
                                                f"transform.dmx.decide %r with quads = %team : {ANY}, {NUMBER}"))
        result = self.run_tool("tune", DIGITS, *self.TARGET, *BATCH, "--schedule", "s.mlir")
        self.assertIn("best of 3, 1 member refused in 3 trials: --set team=16: ", result.stdout)
        self.assertNotIn("team=64: ", result.stdout)
        self.assertIn("s.mlir:5:5: warning: team=64 is not tried: the corsair target refuses quads = 64 ", result.stderr)

    def test_bad_databases(self):
        self.tune(DIGITS, "good.jsonl", 2, *BATCH)
        good = (self.dir / "good.jsonl").read_text()
        record = json.loads(good)
        self.run_tool(DIGITS, *self.TARGET, *BATCH, "-o", "default.bundle")
        default = (self.dir / "default.bundle").read_bytes()
        cases = [(good[: len(good) // 2], "no JSON"), (json.dumps({**record, "speed": 1}), "'speed' is no key of a record"),
                 (json.dumps({**record, "v": 2}), "version 2, this dmxc knows version 1"), (b"\xff\xfe{}", "not UTF-8"),
                 (json.dumps({**record, "decided": {"quads": 33}}), "refuses quads = 33 for node '/conv1/Conv'; its values are 1 to 32"),
                 (json.dumps({**record, "decided": {"rows": 3}}), "no decision 'rows'"), (json.dumps({**record, "clocks": 2 ** 64}), "of another type"),
                 (good.replace('"quads":', '"quads":1e999, "q":'), "beyond all bounds"), (json.dumps({**record, "decided": {"quads": 1.5}}), "no whole number"),
                 (json.dumps({**record, "decided": {"quads": 2 ** 63}}), "no whole number"), ("[]", "a record is a JSON object"),
                 ("[" * 100000, "nested deeper than 200 levels"), (json.dumps({**record, "decided": {"": 1}}), "warning"), (json.dumps({"v": 1}), "a record has region")]
        for text, message in cases:
            with self.subTest(message):
                (self.dir / "bad.jsonl").write_bytes(b"\n" + (text if isinstance(text, bytes) else text.encode()) + b"\n")
                err = self.run_tool(DIGITS, *self.TARGET, *BATCH, "--tuning-db", "bad.jsonl", "-o", "x.bundle").stderr
                self.assertIn("bad.jsonl:2: warning: ", err)
                self.assertIn(message, err)
                self.assertIn("[tuning-db]", err)
                self.assertEqual((self.dir / "x.bundle").read_bytes(), default)

    def test_fuzzed_lines(self):
        self.tune(DIGITS, "good.jsonl", 2, *BATCH)
        good = (self.dir / "good.jsonl").read_bytes().strip()
        random = Random(sampling.SEED)
        lines = []
        for _ in range(1000):
            line = bytearray(good)
            for _ in range(random.randrange(1, 6)):
                at = random.randrange(len(line))
                how = random.randrange(3)
                if how == 0:
                    line[at] = random.choice([byte for byte in range(1, 256) if byte != 10])
                elif how == 1:
                    del line[at:at + random.randrange(1, 9)]
                else:
                    line[at:at] = line[random.randrange(len(line)):][:random.randrange(1, 9)]
                line = line or bytearray(b"x")
            lines.append(bytes(line))
        (self.dir / "f.jsonl").write_bytes(b"\n".join(lines))
        err = self.run_tool(DIGITS, *self.TARGET, *BATCH, "--tuning-db", "f.jsonl", "-o", "x.bundle").stderr
        print(f"{err.count('[tuning-db]')} warnings, DMXC_SAMPLE={sampling.SEED}")
        self.assertGreater(err.count("[tuning-db]"), 500)
        self.run_tool("x.bundle", "--random-inputs", "1", tool="dmx-run")

    def test_what_tune_refuses(self):
        for arguments, code, message in (((DIGITS, "-t", "corsair", "--db", "d"), 2, "add the sizes that count, for example --dim"),
                                         ((DIGITS, "-t", "nothing", *BATCH, "--db", "d"), 2, "unknown target 'nothing'"),
                                         ((DIGITS, *BATCH, "--db", "d"), 2, "simulated clock"),
                                         ((DIGITS, *BATCH, "-t", "corsair"), 2, "needs --db FILE"),
                                         ((DIGITS, *BATCH, "-t", "corsair", "--db", "no/d"), 3, "cannot write the database 'no/d'"),
                                         ((DIGITS, *BATCH, "-t", "corsair", "--db", "."), 3, ""),
                                         (("nothere.onnx", "-t", "corsair", "--db", "d"), 3, "nothere.onnx"),
                                         ((DIGITS, *BATCH, "-t", "corsair", "--db", "d", "--emit", "partition"), 2, "leave --from and --emit away")):
            err = self.run_tool("tune", *arguments, code=code).stderr
            self.assertIn(message, err)
        self.run_tool(DIGITS, *BATCH, "--trials", "3", "-o", "x", code=2)
        self.run_tool(DIGITS, *BATCH, "--tuning-db", "nothere", "-o", "x", code=3)


class Recipes(Base):
    def test_the_page(self):
        """Every file and command of SCHEDULES.md, in their order."""
        page = (REPO / "src/Driver/SCHEDULES.md").read_text()
        files = dict(zip(re.findall(r"File `(\S+)`", page), re.findall(r"```mlir\n(.*?)```", page, re.S)))
        self.assertEqual(len(files), page.count("```mlir"))
        for name, text in files.items():
            self.assertEqual(text, (REPO / name).read_text(), f"{name} and the page differ")
        (self.dir / "tools").symlink_to(REPO / "tools")
        (self.dir / "build").mkdir()
        commands = re.findall(r"^(dmxc|dmx-run) (.*)$", "".join(re.findall(r"```sh\n(.*?)```", page, re.S)), re.M)
        self.assertGreaterEqual(len(commands), 7)
        targets = self.run_tool("--print-targets").stdout
        outputs = []
        for tool, line in commands:
            if "corsair" in line and "corsair" not in targets:
                continue
            outputs.append(self.run_tool(*line.split(), tool=tool).stdout)
        self.assertEqual(*((self.dir / f"build/{name}32.bundle").read_bytes() for name in ("digits", "again")))
        self.assertRegex(outputs[3], r"grain = 200  \(\S*overrule.mlir:4:5\)")
        self.assertRegex(outputs[3], r'algorithm = "matmul"  \(\S*overrule.mlir:6:5\)')
        self.assertEqual(outputs[5].splitlines()[-1], "24 candidates")  # of 1, 2, 4, 8, 16, 32: 1 + 1 + 2 + 3 + 6 + 11


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
