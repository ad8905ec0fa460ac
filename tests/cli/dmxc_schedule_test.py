#!/usr/bin/env python3
"""dmxc --schedule: scripts that match regions and decide how they are computed. Usage: dmxc_schedule_test.py BIN REPO [unittest arguments]"""
import itertools
import json
import pathlib
import re
import sys
import unittest

from dmxc_case import BIN, DIGITS, Base

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
        self.run_tool("p.mlir", "--from", "partition", "-o", "resumed.bundle")
        direct, resumed = self.entries(self.dir / "direct.bundle"), self.entries(self.dir / "resumed.bundle")
        self.assertEqual({**direct, "manifest.json": 0}, {**resumed, "manifest.json": 0})
        (self.dir / "q.mlir").write_text(text.replace("decided = {grain = 7 : i64}", "decided = {grain = 8 : i64}"))
        self.assertIn("'grain' of its strategy is 7", self.run_tool("q.mlir", "--from", "partition", "-o", "x", code=1).stderr)

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
        "no-region": ([match('kind = "op", op = "dmir.conv", nth = 0'), decide("grain = 1")],
                      ["s.mlir:4:5: error: 'dmir.conv' is no region", "[schedule-refused]"]),
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
        for content, message in ((b"", "no transform.named_sequence @__transform_main"), (b"\x7fELF\0\1\2\3", "a script is text"),
                                 (b"module {\n", "s.mlir:"), (two.encode(), "two entries, @__transform_main and @b"),
                                 ((one + one).encode(), "s.mlir:"), (other.encode(), '@a is to run at "tiles"'),
                                 (b"\xff\xfe\xfd\n", "s.mlir")):
            (self.dir / "s.mlir").write_bytes(content)
            err = self.refuse("--schedule", "s.mlir")
            self.assertIn(message, err)
            self.assertNotIn("this is an error of dmxc", err)
        self.assertIn("nothere.mlir", self.refuse("--schedule", "nothere.mlir", code=3))
        self.assertIn("cannot read '.'", self.refuse("--schedule", ".", code=3))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
