#!/usr/bin/env python3
"""--save-schedule: the script that is written makes the same bundle from the model alone, and with one decision edited that one changes.
Usage: saved.py BIN REPO [unittest arguments]

A plain run takes a sample of models and targets; DMXC_LONG=1 takes all."""
import itertools
import os
import pathlib
import re
import subprocess
import sys
import unittest
from random import Random

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[2])]
from dmxc_case import BIN, DIGITS, REPO, Base  # noqa: E402
from schedules.scripts import ANY, interchange, match, script, tile  # noqa: E402
import sampling  # noqa: E402

ZOO = BIN.parent / "zoo"
MODELS = ("mlp", "lenet", "bert_mini", "vit_mini", "gpt2_mini_prefill", "tcn_audio")
BATCH = ("--dim", "batch=32")
SWAP = interchange([1, 0], 't')
REGION = re.compile(r"^node '(.*)': ([^\s,]+)")
DECISION = re.compile(r"^  (?:(\S+)\.)?([a-z_]+) = (.*?)  \((.*?)\)  of (.*?); .*; changes (.*)$")


class SavedBase(Base):
    def targets(self):
        there = self.run_tool("--print-targets").stdout
        return [target for target in ("cpu", "corsair") if target in there]

    def explained(self, model, *arguments):
        """{(node, scope, name): (value, who, members)}; `who` without the script's name and column."""
        rows, node = {}, None
        for line in self.run_tool(model, "--emit", "partition", "-q", "-o", "p.mlir", "--explain-decisions", *arguments).stdout.splitlines():
            if found := REGION.match(line):
                node = found[1]
            elif found := DECISION.match(line):
                scope, name, value, who, domain, _ = found.groups()
                rows[node, scope or "", name] = value, who, domain
        return rows

    def same(self, *bundles):
        return len({(self.dir / bundle).read_bytes() for bundle in bundles}) == 1

    def same_from_the_script(self, model, *arguments, saved_with=()):
        """Bundles of a compile that saves what it decides, and of one with the script that it wrote; the script."""
        self.run_tool(model, "-q", "-o", "first.bundle", "--save-schedule", "saved.mlir", *arguments, *saved_with)
        self.run_tool(model, "-q", "-o", "again.bundle", "--schedule", "saved.mlir", *arguments)
        self.assertTrue(self.same("first.bundle", "again.bundle"), f"{arguments} {saved_with}")
        return (self.dir / "saved.mlir").read_text()


@sampling.sampled(3)
class Saved(SavedBase):
    def test_models(self):
        cases = [(name, target) for name, target in itertools.product(MODELS, self.targets()) if (ZOO / name).exists()]
        for name, target in sampling.sample(cases, 12) if cases else []:
            with self.subTest(f"{name} {target}"):
                self.same_from_the_script(ZOO / name / "model.onnx", "-t", target)
        for target in self.targets():
            text = self.same_from_the_script(DIGITS, *BATCH, "-t", target)
            self.assertIn("; default: ", text)
            self.edit_one(text, DIGITS, *BATCH, "-t", target)

    def edit_one(self, text, *arguments):
        """Another value of one decision on which no other rests: it alone has another one after that."""
        before = self.explained(*arguments, "--schedule", "saved.mlir")
        keys = [key for key, (_, who, _) in sorted(before.items()) if who.startswith("saved.mlir") and key[2] in ("grain", "num_imc")]
        node, scope, name = key = Random(sampling.SEED).choice(keys)
        value, _, domain = before[key]
        other = next(number for number in ("1", "2", "3") if number != value)
        lines = text.splitlines()
        at = next(i for i, line in enumerate(lines) if f'node = "{node}"' in line) + 1
        own = re.search(rf'"{re.escape(scope)}" = {{[^}}]*?\b{name} = {value}\b' if scope else rf"\b{name} = {value}\b", lines[at])
        self.assertTrue(own, f"{key} {domain} {lines[at]}")
        lines[at] = lines[at][:own.end() - len(value)] + other + lines[at][own.end():]
        (self.dir / "edited.mlir").write_text("\n".join(lines))
        after = self.explained(*arguments, "--schedule", "edited.mlir")
        self.assertEqual(set(before), set(after))
        self.assertEqual({key for key in before if before[key][0] != after[key][0]}, {(node, scope, name)})

    def test_who(self):
        """What a script, a parameter, and a database decided, each by its name; the script that is saved needs none of them."""
        (self.dir / "s.mlir").write_text(script("partition", f'%r = transform.dmx.match {{node = "/conv2/Conv"}} in %m : {ANY} -> {ANY}',
                                                '%g = transform.dmx.param "g" range 1 to 9 default 4 -> !transform.param<i64>',
                                                f"transform.dmx.decide %r with grain = %g : {ANY}, !transform.param<i64>"))
        text = self.same_from_the_script(DIGITS, *BATCH, saved_with=("--schedule", "s.mlir", "--set", "g=7"))
        self.assertRegex(text, r'// cpu; default: algorithm.*; s\.mlir:5:5: grain\n.*"/conv2/Conv".*\n.*grain = 7')
        self.assertNotIn("transform.dmx.param", text)
        self.run_tool(DIGITS, "-q", "-o", "plain.bundle", *BATCH)
        self.assertFalse(self.same("plain.bundle", "first.bundle"))

    def test_what_is_no_decision(self):
        """Attributes, loops and parameters of loops: sequences with what they include, and the values that parameters had."""
        (self.dir / "a.mlir").write_text(script("partition", f'%r = transform.dmx.match {{node = "/conv2/Conv", kind = "op"}} in %m : {ANY} -> {ANY}',
                                                f'transform.annotate %r "mine" : {ANY}',
                                                f'%w = transform.dmx.match {{algorithm = "matmul-packed", node = "/hidden/*"}} in %m : {ANY} -> {ANY}',
                                                f'transform.dmx.decide %w {{algorithm = "matmul"}} : {ANY}'))
        text = self.same_from_the_script(DIGITS, *BATCH, saved_with=("--schedule", "a.mlir"))
        self.assertIn("transform.annotate", text)
        if "corsair" not in self.targets():
            return
        (self.dir / "lib.mlir").write_text("module attributes {transform.with_named_sequence} {\n"
                                           f"  transform.named_sequence @swap(%n: {ANY} {{transform.consumed}}) {{\n    {tile([3, 2])}\n    {SWAP}\n    transform.yield\n  }}\n}}\n")
        (self.dir / "l.mlir").write_text(script("schedule.tiles", match('kind = "nest", nth = 0'), f"transform.include @swap failures(propagate) (%n) : ({ANY}) -> ()",
                                                more='  transform.dmx.include "lib.mlir"\n'))
        text = self.same_from_the_script(DIGITS, "--dim", "batch=360", "-t", "corsair:quads=1", saved_with=("--schedule", "l.mlir"))
        self.assertIn("transform.dmx.interchange", text)
        tiles = [self.run_tool(DIGITS, "--dim", "batch=360", "-t", "corsair:quads=1", "-q", "--emit", "schedule.tiles", "-o", "-", *more).stdout
                 for more in ((), ("--schedule", "l.mlir"), ("--schedule", "saved.mlir"))]
        self.assertNotEqual(tiles[0], tiles[1])
        plain = [re.sub(r", decided = \{.*?\}\}?|loc\(.*", "", text) for text in tiles]
        self.assertEqual(plain[1], plain[2])

    def test_names(self):
        """Nodes whose names are patterns, are no words, or are of several regions."""
        names = ["a*b", "a?b", "[ab]", 'q"uote', "back\\slash", "zwölf", "same", "same"]
        lines = ['func.func @main(%0: tensor<20x64x70xf32> {dmir.name = "x"}) -> (tensor<20x64x70xf32> {dmir.name = "y"}) {']
        for number, name in enumerate(names, 1):
            shown = name.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'  %{number} = dmir.softmax %{number - 1} {{axis = {number % 2} : i64}} : (tensor<20x64x70xf32>) -> tensor<20x64x70xf32> loc("{shown}")')
        (self.dir / "m.mlir").write_text("\n".join([*lines, f"  return %{len(names)} : tensor<20x64x70xf32>", "}\n"]))
        text = self.same_from_the_script("m.mlir")
        self.assertEqual(text.count("transform.dmx.decide"), len(names))
        for name in ('"a\\\\*b"', '"a\\\\?b"', 'node = "same", nth = 1} in %m expect 2'):
            self.assertIn(name, text)

    def test_damaged(self):
        """A script with bytes that are not its own is refused with a place in it, or decides something that computes the same."""
        self.run_tool(DIGITS, "-q", "-o", "d.bundle", *BATCH, "--save-schedule", "s.mlir")
        self.run_tool("d.bundle", "-q", "--random-inputs", "1", "--output-dir", "out", tool="dmx-run")
        good, random, refused = (self.dir / "s.mlir").read_bytes(), Random(sampling.SEED), 0
        for _ in range(400 if sampling.LONG else 5):
            text = bytearray(good)
            for _ in range(random.randrange(1, 4)):
                at = random.randrange(text.index(b"{"), len(text))
                text[at:at + random.randrange(0, 3)] = random.choice([b"", b"0", b"1", b"9", b"}", b'"', b" ", bytes([random.randrange(1, 256)])])
            (self.dir / "x.mlir").write_bytes(text)
            command = [str(BIN / "dmxc"), str(DIGITS), *BATCH, "-q", "-o", "x.bundle", "--schedule", "x.mlir"]
            done = subprocess.run(command, cwd=self.dir, capture_output=True, timeout=300, env={**os.environ, "TMPDIR": str(self.dir)})
            self.assertIn(done.returncode, (0, 1), done.stderr)
            refused += done.returncode
            if done.returncode:
                self.assertRegex(done.stderr, rb"x\.mlir:?.*error: ")
            else:
                self.run_tool("x.bundle", "-q", "--random-inputs", "1", "--expect", "out", "--min-sqnr", "50", tool="dmx-run")
        print(f"{refused} refused, DMXC_SAMPLE={sampling.SEED}")

    def test_refusals(self):
        err = self.run_tool(DIGITS, *BATCH, "-o", "x.bundle", "--save-schedule", "none/s.mlir", code=3).stderr
        self.assertIn("none/s.mlir", err)
        self.assertEqual(err.count("error:"), 1, err)
        self.assertFalse((self.dir / "x.bundle").exists())
        err = self.run_tool(DIGITS, *BATCH, "--emit", "frontend", "--save-schedule", "s.mlir", code=2).stderr
        self.assertIn("--save-schedule belongs to the phase partition", err)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
