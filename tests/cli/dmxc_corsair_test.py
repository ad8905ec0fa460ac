#!/usr/bin/env python3
"""dmxc for the simulated card. Usage: dmxc_corsair_test.py BIN REPO [unittest arguments]"""
import json
import os
import random
import re
import subprocess
import sys
import unittest

from dmxc_case import BIN, REPO, DIGITS, ITS_DATA, SMALL, Base, answers_of
from sampling import sampled


@sampled(3)
class Corsair(Base):
    """The accelerator with block floating point: what a user sees of it."""

    def setUp(self):
        super().setUp()
        if "corsair" not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build has no target corsair")

    def compile(self, *arguments, output="d.bundle", model=DIGITS):
        return self.run_tool(model, "-t", "corsair", "-o", output, *arguments)

    def test_digits_are_recognised_alike(self):
        images = REPO / "tools/digits/images.npy"
        self.run_tool(DIGITS, "-o", "c.bundle", "--dim", "batch=360")
        self.compile("--dim", "batch=360", "--require-target", "corsair:95")
        for bundle, folder in (("c.bundle", "cpu"), ("d.bundle", "device")):
            self.run_tool(bundle, "--input", f"image={images}", "--output-dir", folder, tool="dmx-run")
        cpu, device = answers_of(self.dir / "cpu"), answers_of(self.dir / "device")
        equal = sum(a == b for a, b in zip(cpu, device))
        print(f"{equal} of {len(cpu)} answers are the same")
        self.assertGreaterEqual(equal, 0.99 * len(cpu))

    def test_same_bytes(self):
        self.compile("--dim", "batch=4", "-j1", output="1.bundle")
        self.compile("--dim", "batch=4", "-j2", output="2.bundle")
        self.assertEqual((self.dir / "1.bundle").read_bytes(), (self.dir / "2.bundle").read_bytes())
        self.run_tool("1.bundle", "--diff", "2.bundle", tool="dmx-inspect")

    def test_formats_are_printed(self):
        result = self.compile("--dim", "batch=4", "--numerics", "basic")
        rows = {tuple(line.split()) for line in result.stderr.split("formats:\n")[1].splitlines()}
        self.assertIn(("/hidden/Gemm", "matmul", "BFP16_64R", "BFP16_64C", "BFP32_1"), rows)
        self.assertIn(("/hidden/Gemm", "add", "BFP32_1", "BFP32_1", "f16"), rows)
        self.assertIn(("/Softmax", "softmax", "f16", "f16"), rows)
        refused = self.run_tool(DIGITS, "-t", "corsair", "-o", "x.bundle", "--numerics", "strict", code=2)
        self.assertIn("it has basic", refused.stderr)

    def test_phases_are_entered_again(self):
        """Each phase's text gives the same program; the last has the device's queues."""
        self.compile("--dim", "batch=4", "--dump-phases", "phases")
        for phase in sorted((self.dir / "phases").glob("*.mlir")):
            stage = re.fullmatch(r"\d+[a-z]-(\w+)", phase.stem)
            name = f"schedule.{stage[1]}" if stage else phase.stem.split("-")[-1]
            self.run_tool(phase, "--from", name, *ITS_DATA, "-t", "corsair", "-o", "again.bundle")
            differ = self.run_tool("d.bundle", "--diff", "again.bundle", tool="dmx-inspect", code=5)
            self.assertEqual(set(re.findall(r"^\S+ \S+", differ.stdout, re.M)), {"manifest model.sha256", "manifest model.source"})
        self.assertIn("corsair.matmul", (self.dir / "phases" / "4-schedule.mlir").read_text())

    def test_dispatches_bring_what_programs_take(self):
        self.compile("--dim", "batch=4", "--emit", "schedule", output="s.mlir")
        text = (self.dir / "s.mlir").read_text()
        for changed, message in ((text.replace("dlir.dispatch @k0", "dlir.dispatch @x0"), "'x0_dmx_isa', which is not in the text"),
                                 (re.sub(r"(dlir.dispatch @\w+)\((%\w+)[^)]*\)", r"\1(\2)", text), "which takes 10 buffers, not 2"),
                                 (text.replace('"arg0" : tensor<4x1x8x8xf32>', '"arg0" : tensor<4x1x8x8xf64>'), "'arg0' takes 2048 bytes, and the buffer 'image' has 1024"),
                                 (text.replace('"result0" : tensor<4x10xf32>', '"result0" : tensor<4x10xf16>'), "'result0' takes 80 bytes, and the buffer 'probabilities' has 160")):
            self.assertNotEqual(changed, text)
            (self.dir / "c.mlir").write_text(changed)
            self.assertIn(message, self.run_tool("c.mlir", "--from", "schedule", *ITS_DATA, "-t", "corsair", "-o", "c.bundle", code=1).stderr)

    def test_values_of_a_schedule_have_names(self):
        """Of what they are; and a text with other names, or with numbers, means the same."""
        self.compile("--dim", "batch=4", "--emit", "schedule", output="s.mlir")
        text = (self.dir / "s.mlir").read_text()
        self.assertEqual(re.findall(r"%\d+", text), [])
        for part in ('%image = dlir.buffer input "image"', "%conv1_Conv_done = dlir.dispatch", '%conv1_Conv = dlir.memory "GM" "/conv1/Conv"',
                     '%f16_to_bfp16r = dlir.descriptor "f16" to "bfp16r"', "%r0 = dlir.register 0 ", '"main" units '):
            self.assertIn(part, text)
        names = sorted(set(re.findall(r"%\w+", text)), key=len, reverse=True)
        numbers = {name: f"%{i}" for i, name in enumerate(names)}
        (self.dir / "n.mlir").write_text(re.sub(r"%\w+", lambda name: numbers[name[0]], text))
        for changed, source in (("a", "s.mlir"), ("b", "n.mlir")):
            self.run_tool(source, "--from", "schedule", *ITS_DATA, "-t", "corsair", "-o", f"{changed}.bundle")
        differ = self.run_tool("a.bundle", "--diff", "b.bundle", tool="dmx-inspect", code=5)
        self.assertEqual(set(re.findall(r"^\S+ \S+", differ.stdout, re.M)), {"manifest model.sha256"})

    def write_product(self):
        """m.mlir: a product with a bias, relu, and an addition of another input."""
        x, w, y = "tensor<40x96xf32>", "tensor<96x160xf32>", "tensor<40x160xf32>"
        (self.dir / "m.mlir").write_text(
            f'func.func @main(%x: {x} {{dmir.name = "x"}}, %z: {y} {{dmir.name = "z"}}) -> ({y} {{dmir.name = "y"}}) {{\n'
            f"  %w = dmir.constant dense<0.01> : {w}\n  %b = dmir.constant dense<0.5> : tensor<160xf32>\n"
            f'  %p = dmir.matmul %x, %w : ({x}, {w}) -> {y} loc("p")\n  %s = dmir.add %p, %b : ({y}, tensor<160xf32>) -> {y} loc("s")\n'
            f'  %r = dmir.relu %s : ({y}) -> {y} loc("r")\n  %t = dmir.add %r, %z : ({y}, {y}) -> {y} loc("t")\n  return %t : {y}\n}}\n')

    def test_kernels_go_through_the_stages(self):
        """Tensors of block_fp, loops over tiles, ops of the array, a kernel over quads: of each size of team the same bytes."""
        self.write_product()
        self.run_tool("m.mlir", "-o", "host.bundle")
        self.run_tool("host.bundle", "--random-inputs", "3", "--output-dir", "host", tool="dmx-run")
        answers = set()
        for quads in (1, 2, 8, 32):
            self.run_tool("m.mlir", "-t", f"corsair:quads={quads}", "--dump-phases", f"t{quads}", "-o", "q.bundle")
            self.run_tool("q.bundle", "--random-inputs", "3", "--output-dir", f"q{quads}", "--expect", "host", "--min-sqnr", "30", tool="dmx-run")
            answers.add(next((self.dir / f"q{quads}").glob("*.npy")).read_bytes())
        self.assertEqual(len(answers), 1)
        for name, parts in (("4a-formats", ("!dmir.block_fp<BFP16_64R>", "!dmir.block_fp<BFP16_64C>")), ("4b-tiles", ("affine.for", "lldmir.quads")),
                            ("4c-buffers", ("affine_ext.load", "affine_ext.matmul", '"GM"', '"ST"')), ("4e-array", ("lldmir.matmul", "num_imc 2 ppr_mode 1")),
                            ("4f-spmd", ("gpu.launch_func", "known_block_size = array<i32: 8, 1, 1>"))):
            text = (self.dir / "t8" / f"{name}.mlir").read_text()
            for part in parts:
                self.assertIn(part, text, name)
            self.run_tool(self.dir / "t8" / f"{name}.mlir", "-o", "again.mlir", tool="dmx-opt")
        self.run_tool("m.mlir", "-t", "corsair:quads=8", "-o", "q.bundle")
        for path in sorted((self.dir / "t8").glob("4?-*.mlir")):
            self.run_tool(path, "--from", f"schedule.{path.stem[3:]}", "-t", "corsair:quads=8", "-o", "again.bundle")
            differ = self.run_tool("q.bundle", "--diff", "again.bundle", tool="dmx-inspect", code=5)
            self.assertEqual(set(re.findall(r"^\S+ \S+", differ.stdout, re.M)), {"manifest model.sha256", "manifest model.name"}, path)
        report = json.loads(self.run_tool("m.mlir", "-q", "-t", "corsair:quads=8", "-o", "q.bundle", "--time-report", "json").stderr)
        passes = [row["pass"] for phase in report["phases"] if phase["phase"].startswith("schedule") for row in phase["passes"]]
        self.assertEqual(passes, ["dlir-build-program", "dlir-order-tasks", "corsair-kernel-functions", "corsair-assign-formats", "corsair-tile-products",
                                  "corsair-bufferize", "corsair-fuse-epilogues", "affine-tile-scalrep", "corsair-drop-unread",
                                  "corsair-lower-tiles", "corsair-outline-spmd", "corsair-band-rows", "corsair-band-transfers", "dlir-schedule-devices"])
        text = self.run_tool("m.mlir", "-t", "corsair:quads=8", "--emit", "schedule.tiles", "-o", "-").stdout
        self.assertEqual(text, (self.dir / "t8" / "4b-tiles.mlir").read_text())
        self.assertIn("does not come after", self.run_tool("t8/4b-tiles.mlir", "-t", "corsair", "--from", "schedule.tiles", "--emit", "schedule.formats", code=2).stderr)
        self.assertIn("give -t corsair", self.run_tool("t8/4b-tiles.mlir", "--from", "schedule.tiles", code=2).stderr)

    def script(self, name, stage):
        """s.mlir: a script that runs a pass over the kernels' functions behind a stage."""
        any_op = "!transform.any_op"
        (self.dir / "s.mlir").write_text(
            f"module attributes {{transform.with_named_sequence}} {{\n  transform.named_sequence @loops(%m: {any_op} {{transform.readonly}}) "
            f'attributes {{dmx.at = "{stage}"}} {{\n    %f = transform.structured.match ops{{["func.func"]}} in %m : ({any_op}) -> {any_op}\n'
            f'    %g = transform.apply_registered_pass "{name}" to %f : ({any_op}) -> {any_op}\n    transform.yield\n  }}\n}}\n')

    def test_scripts_change_loops(self):
        """Behind a stage, by passes that see nothing but loops: what changes is other code for the same bits."""
        x, w, y = "tensor<512x64xf32>", "tensor<64x128xf32>", "tensor<512x128xf32>"
        (self.dir / "m.mlir").write_text(f'func.func @main(%x: {x} {{dmir.name = "x"}}) -> ({y} {{dmir.name = "y"}}) {{\n  %w = dmir.constant dense<0.01> : {w}\n'
                                         f'  %p = dmir.matmul %x, %w : ({x}, {w}) -> {y} loc("p")\n  return %p : {y}\n}}\n')

        def answers(*flags):
            self.run_tool("m.mlir", "-q", "-t", "corsair:quads=1", "-o", "m.bundle", *flags)
            self.run_tool("m.bundle", "--random-inputs", "3", "--output", "y=y.npy", tool="dmx-run")
            code = self.run_tool("m.bundle", "--what", "kernels", tool="dmx-inspect").stdout
            return code, (self.dir / "y.npy").read_bytes()

        def trips(*flags):
            text = self.run_tool("m.mlir", "-q", "-t", "corsair:quads=1", "--emit", "schedule.array", "-o", "-", *flags).stdout
            return re.findall(r"affine.for .* = 0 to (\d+)", text)

        before, chosen = answers(), trips()
        self.assertEqual(sorted(chosen), ["2", "8"])
        for name in ("affine-normalize-fuse", "affine-tile-scalrep", "affine-promote-single", "affine-permute-trip"):
            self.script(name, "schedule.array")
            code, bits = answers("--schedule", "s.mlir")
            self.assertEqual(bits, before[1], name)
            moves = name == "affine-permute-trip" and chosen != ["8", "2"]
            self.assertEqual(code != before[0], moves, name)
        self.assertEqual(trips("--schedule", "s.mlir"), ["8", "2"])
        self.script("affine-permute-trip", "schedule.arrays")
        refused = self.run_tool("m.mlir", "-t", "corsair", "-o", "m.bundle", "--schedule", "s.mlir", code=1).stderr
        self.assertIn('@loops is to run at "schedule.arrays"; in this compile scripts run behind "frontend", "partition", "memory", "schedule.formats", "schedule.tiles"', refused)

    def test_capacity_counts_what_weights_take(self):
        """Where they come from DDR in every run the team is none whose quads each fetch all of them."""
        x, w = "tensor<64x2048xf32>", "tensor<2048x2048xf32>"
        (self.dir / "m.mlir").write_text(f'func.func @main(%x: {x} {{dmir.name = "x"}}) -> ({x} {{dmir.name = "y"}}) {{\n  %w = dmir.constant dense<0.01> : {w}\n'
                                         f'  %v = dmir.constant dense<0.02> : {w}\n  %p = dmir.matmul %x, %w : ({x}, {w}) -> {x} loc("p")\n'
                                         f'  %r = dmir.relu %p : ({x}) -> {x} loc("r")\n  %y = dmir.matmul %r, %v : ({x}, {w}) -> {x} loc("y")\n  return %y : {x}\n}}\n')

        def clocks(level):
            self.run_tool("m.mlir", "-q", "-t", f"corsair:{level}", "-o", "m.bundle")
            self.run_tool("m.bundle", "--random-inputs", "1", "--device-opt", "report=r.json", tool="dmx-run")
            return json.loads((self.dir / "r.json").read_text())["last"][0]["main"]["clocks"]

        chosen, others = clocks("capacity"), {quads: clocks(f"capacity+quads={quads}") for quads in (1, 2, 8, 32)}
        print(f"capacity: {chosen} clocks, of {others}")
        self.assertLessEqual(chosen, 1.1 * min(others.values()))

    def test_inputs_are_fetched_once(self):
        """By the quads that read them, as tiles where a product alone does: the floors of DDR are 9,200 and 8,750 clocks."""
        m, q, t, s = "tensor<512x512xf32>", "tensor<32x128x64xf32>", "tensor<32x64x128xf32>", "tensor<32x128x128xf32>"
        models = {"mm": (8, 10500, f'func.func @main(%x: {m} {{dmir.name = "x"}}) -> ({m} {{dmir.name = "y"}}) {{\n  %w = dmir.constant dense<0.01> : {m}\n'
                                   f'  %p = dmir.matmul %x, %w : ({m}, {m}) -> {m} loc("p")\n  return %p : {m}\n}}\n'),
                  "heads": (32, 9500, f'func.func @main(%q: {q} {{dmir.name = "q"}}, %k: {q} {{dmir.name = "k"}}, %v: {q} {{dmir.name = "v"}}) -> ({q} {{dmir.name = "y"}}) {{\n'
                                      f'  %t = dmir.transpose %k {{permutation = array<i64: 0, 2, 1>}} : ({q}) -> {t} loc("t")\n'
                                      f'  %s = dmir.matmul %q, %t : ({q}, {t}) -> {s} loc("s")\n  %m = dmir.softmax %s {{axis = 2 : i64}} : ({s}) -> {s} loc("m")\n'
                                      f'  %o = dmir.matmul %m, %v : ({s}, {q}) -> {q} loc("o")\n  return %o : {q}\n}}\n')}
        for name, (quads, most, text) in models.items():
            (self.dir / f"{name}.mlir").write_text(text)
            self.run_tool(f"{name}.mlir", "-o", "host.bundle")
            self.run_tool("host.bundle", "--random-inputs", "3", "--output-dir", "host", tool="dmx-run")
            self.run_tool(f"{name}.mlir", "-t", f"corsair:quads={quads}", "-o", "d.bundle")
            self.run_tool("d.bundle", "--random-inputs", "3", "--expect", "host", "--min-sqnr", "30", "--device-opt", "report=r.json", tool="dmx-run")
            clocks = json.loads((self.dir / "r.json").read_text())["last"][0]["main"]["clocks"]
            print(f"{name}: {clocks} clocks on {quads} quads")
            self.assertLessEqual(clocks, most, name)
        self.run_tool("mm.mlir", "-t", "corsair:quads=8", "--emit", "partition", "-o", "p.mlir")
        text = (self.dir / "p.mlir").read_text()
        for deal, why in (("dim 3, quads 8", "the value has 2 dims"), ("dim 0, quads 4", "the region is for a team of 8"), ("dim 1, quads 8", "it comes as tiles"),
                          ("sums, quads 8", "a deal of a value is needed")):
            (self.dir / "c.mlir").write_text(text.replace('"0" = #lldmir.deal<dim 0, quads 8>', f'"0" = #lldmir.deal<{deal}>'))
            refused = self.run_tool("c.mlir", "--from", "partition", "-t", "corsair:quads=8", "-o", "c.bundle", code=1).stderr
            self.assertRegex(refused, rf"node 'p': 'deals' of argument 0 is #lldmir.deal<{deal}>, but {why}")

    def test_teams_that_do_not_divide(self):
        """Are no slower than one quad; what a schedule decides is obeyed, and a smaller team's text may be read for a larger one."""
        m, clocks, answers = "tensor<512x512xf32>", {}, set()
        (self.dir / "mm.mlir").write_text(f'func.func @main(%x: {m} {{dmir.name = "x"}}) -> ({m} {{dmir.name = "y"}}) {{\n  %w = dmir.constant dense<0.01> : {m}\n'
                                          f"  %p = dmir.matmul %x, %w : ({m}, {m}) -> {m}\n  return %p : {m}\n}}\n")
        (self.dir / "exact.mlir").write_text(
            "module attributes {transform.with_named_sequence} {\n  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {\n"
            "    %r = transform.dmx.match {} in %m expect 1 : !transform.any_op -> !transform.any_op\n"
            "    transform.dmx.decide %r {quads = 3} : !transform.any_op\n    transform.yield\n  }\n}\n")

        def measure(name, *arguments, model="mm.mlir"):
            self.run_tool(model, *arguments, "-o", "q.bundle")
            self.run_tool("q.bundle", "--random-inputs", "3", "--output-dir", name, "--device-opt", "report=r.json", tool="dmx-run")
            answers.add(next((self.dir / name).glob("*.npy")).read_bytes())
            main = json.loads((self.dir / "r.json").read_text())["last"][0]["main"]
            clocks[name] = main["clocks"]
            return main["quads"]

        for quads, taken in ((1, 1), (3, 2), (6, 4), (12, 8)):
            self.assertEqual(measure(f"{quads}", "-t", f"corsair:quads={quads}"), taken)
            self.assertLessEqual(clocks[f"{quads}"], clocks["1"])
        self.write_product()
        self.run_tool("m.mlir", "-t", "corsair:quads=7", "--emit", "partition", "-o", "p.mlir")
        self.assertIn("quads = 1 ", (self.dir / "p.mlir").read_text())  # small, and nothing of it would be dealt
        self.assertEqual(measure("exact", "-t", "corsair", "--schedule", "exact.mlir"), 3)
        self.run_tool("mm.mlir", "-t", "corsair:quads=2", "--emit", "partition", "-o", "p.mlir")
        self.assertEqual(measure("text", "-t", "corsair:quads=3", "--from", "partition", model="p.mlir"), 2)
        print(clocks)
        self.assertEqual(len(answers), 1)

    def test_loops_of_a_product_are_exchanged(self):
        """In the text of schedule.buffers: the tasks follow, the bits stay."""
        x, w, y = "tensor<256x512xf32>", "tensor<512x256xf32>", "tensor<256x256xf32>"
        (self.dir / "m.mlir").write_text(f'func.func @main(%x: {x} {{dmir.name = "x"}}) -> ({y} {{dmir.name = "y"}}) {{\n  %w = dmir.constant dense<0.01> : {w}\n'
                                         f'  %p = dmir.matmul %x, %w : ({x}, {w}) -> {y} loc("p")\n  return %p : {y}\n}}\n')
        self.run_tool("m.mlir", "-t", "corsair:quads=1", "--emit", "schedule.buffers", "-o", "a.mlir")
        text = (self.dir / "a.mlir").read_text()
        loops = list(re.finditer(r"affine\.for (%\w+)(?: loc\(\S*\))? = 0 to (\d+) \{", text))
        self.assertEqual([loop[2] for loop in loops], ["4", "4"])
        first, second = loops[0][1], loops[1][1]
        (self.dir / "b.mlir").write_text(text[:loops[0].start(1)] + second + text[loops[0].end(1):loops[1].start(1)] + first + text[loops[1].end(1):])
        programs, results = [], []
        for name in "ab":
            self.run_tool(f"{name}.mlir", "--from", "schedule.buffers", "-t", "corsair:quads=1", "--dump-phases", name, "-o", f"{name}.bundle")
            tasks = re.findall(r"corsair\.\w+|dlir\.loop|dlir\.copy [^{]*", (self.dir / name / "4-schedule.mlir").read_text())
            self.run_tool(f"{name}.bundle", "--random-inputs", "3", "--output-dir", f"{name}.out", "--device-opt", f"report={name}.json", tool="dmx-run")
            programs.append(tasks)
            results.append((self.dir / f"{name}.out" / "out_y.npy").read_bytes())
        self.assertNotEqual(*programs)
        self.assertEqual(*results)

    def test_texts_of_stages_that_cannot_be(self):
        """Are refused by node and key; whatever number is changed, never by an assertion."""
        self.write_product()
        self.run_tool("m.mlir", "-t", "corsair:quads=8", "--dump-phases", "s", "-o", "m.bundle")
        self.run_tool(DIGITS, "--dim", "batch=4", "-t", "corsair:quads=4", "--dump-phases", "d", "-o", "d.bundle")
        deal = r"lldmir\.deal = #lldmir\.deal<dim 0, quads \d>"
        cases = [("s", "formats", r"rounds = \d+", "rounds = 77", "node .p.: .rounds. of the form of its constant .c0. is 77 : i64, and its kernel is made for 1"),
                 ("s", "formats", r"(?s)(func\.func.*?)rounds = \d+", "\\1rounds = 77", "'lldmir.form' of argument \\d"), ("s", "formats", r"num_imc \d", "num_imc 16", "num_imc 16 <= 2\\^ppr_mode"),
                 ("s", "formats", r"lldmir\.quads = 8", "lldmir.quads = 33", "lldmir.(quads|deal)'"), ("s", "tiles", r"lldmir\.tiles = \d+", "lldmir.tiles = 7", "tiles of 7 rows"),
                 ("s", "formats", deal + r"(?=\} : \(tensor<40x160xf16>, )", "lldmir.deal = #lldmir.deal<dim 5, quads 8>", "node 't': .*'lldmir.deal'"),
                 ("s", "spmd", r"(\n *)gpu\.return", r"\1%other = gpu.subgroup_id : index\1gpu.return", "'gpu.subgroup_id' is made by no stage"),
                 ("d", "formats", r"num_imc 9", "num_imc 12", "node '/conv1/Conv': .*num_imc is 12, and the product has 9"),
                 ("d", "formats", rf"(-> \(tensor<4x10xf16> {{){deal}", "\\1lldmir.deal = #lldmir.deal<dim 3, quads 4>", "returns other shares of result 0 than its 'lldmir.deal' says"),
                 ("d", "formats", rf"(lldmir.conv .*?){deal}", "\\1lldmir.deal = #lldmir.deal<dim 3, quads 4>", "node '/conv1/Conv': 'lldmir.conv' has a 'lldmir.deal' that gives no parts"),
                 ("d", "formats", rf"(lldmir.conv .*?)({deal})", "\\1lldmir.gather = array<i64: 9>, \\2", "node '/conv1/Conv': error: has no operand 9 to gather")]
        for folder, stage, old, new, message in cases:
            text = next((self.dir / folder).glob(f"4?-{stage}.mlir")).read_text()
            self.assertRegex(text, old)
            (self.dir / "c.mlir").write_text(re.sub(old, new, text, count=1))
            quads = 8 if folder == "s" else 4
            refused = self.run_tool("c.mlir", "--from", f"schedule.{stage}", *ITS_DATA, "-t", f"corsair:quads={quads}", "-o", "c.bundle", code=1).stderr
            self.assertRegex(refused, message)
            self.assertNotIn("internal", refused)
        numbers = random.Random(os.environ.get("DMXC_SAMPLE", "1"))
        texts = {path.stem[3:]: path.read_text() for path in (self.dir / "s").glob("4?-*.mlir")}
        for _ in range(20):
            stage = numbers.choice(sorted(texts))
            text = texts[stage]
            place = numbers.choice(list(re.finditer(r'(?<![\w#."%@/])\d+(?![\w."])|(?<=x)\d+(?=x)', text[text.index("func.func"):])))
            start = text.index("func.func")
            changed = text[:start + place.start()] + numbers.choice(["0", "1", "7", "65", "1000000007"]) + text[start + place.end():]
            (self.dir / "c.mlir").write_text(changed)
            done = subprocess.run([BIN / "dmxc", "c.mlir", "--from", f"schedule.{stage}", "-q", "-t", "corsair:quads=8", "-o", "c.bundle"], cwd=self.dir, capture_output=True, text=True)
            self.assertIn(done.returncode, (0, 1, 4), f"{stage} {place[0]} at {place.start()}: {done.stderr}")

    def test_a_missing_token_is_refused(self):
        self.compile("--dim", "batch=4", "--emit", "schedule", output="s.mlir")
        text = (self.dir / "s.mlir").read_text()
        group = re.search(r' wait\([^)]*\)(?= .*\{\n.*corsair\.simd)', text)
        (self.dir / "s.mlir").write_text(text[:group.start()] + text[group.end():])
        result = self.run_tool("s.mlir", "--from", "schedule", *ITS_DATA, "-t", "corsair", "-o", "race.bundle", code=1)
        self.assertRegex(result.stderr, "'corsair.simd' op O[23]: group .* of queue 3")

    def test_a_program_without_an_encoding(self):
        """The message has the encoder's reason."""
        self.compile("--dim", "batch=4", "--emit", "schedule", output="s.mlir")
        text = (self.dir / "s.mlir").read_text()
        (self.dir / "s.mlir").write_text(re.sub(r'(dlir\.memory "GM" .*) at \d+', r"\1 at 99999936", text, count=1))
        result = self.run_tool("s.mlir", "--from", "schedule", *ITS_DATA, "-t", "corsair", "-o", "x.bundle", code=1)
        self.assertRegex(result.stderr, "over capacity: '.*' is \\d+ bytes at 99999936, GM holds 16777216")

    def test_the_host_computes_what_the_device_refuses(self):
        """exp and softmax on the device, atan and acos between and after them on the host."""
        row = "tensor<4x8xf32>"
        ops = [("exp", ""), ("atan", ""), ("softmax", " {axis = 1 : i64}"), ("acos", "")]
        text = "".join(f'  %{i + 1} = dmir.{op} %{i}{attributes} : ({row}) -> {row} loc("body/{op}")\n'
                       for i, (op, attributes) in enumerate(ops))
        (self.dir / "mixed.mlir").write_text(
            f'func.func @main(%0: {row} {{dmir.name = "x"}}) -> ({row} {{dmir.name = "y"}}) {{\n{text}  return %4 : {row}\n}}\n')
        result = self.run_tool("mixed.mlir", "-t", "corsair", "-o", "mixed.bundle", "--placement-report", "-")
        self.assertIn("body/atan\tdmir.atan\tcpu\t1\telementwise\tcorsair: 'dmir.atan' is not lowered to the device",
                      result.stdout)
        self.assertIn("corsair 2 of 4 nodes in 2 tasks; cpu 2 of 4 nodes in 2 tasks", result.stderr)
        self.run_tool("mixed.mlir", "-o", "host.bundle")
        for bundle in ("mixed.bundle", "host.bundle"):
            self.run_tool(bundle, "--random-inputs", "3", "--output-dir", bundle + ".out", tool="dmx-run")
        self.run_tool("mixed.bundle", "--random-inputs", "3", "--expect", "host.bundle.out", "--min-sqnr", "50", tool="dmx-run")
        self.run_tool("mixed.mlir", "-t", "corsair", "-o", "x.bundle", "--require-target", "corsair:95", code=4)

    def test_teams_and_machines(self):
        answers = set()
        for quads in (1, 2, 8, 32):
            self.run_tool(DIGITS, "-t", f"corsair:quads={quads}", "-o", "q.bundle", "--dim", "batch=32")
            self.run_tool("q.bundle", "--random-inputs", "1", "--output-dir", f"q{quads}", "--device-opt", f"skew_seed={quads + 1}",
                          "--device-opt", "report=r.json", tool="dmx-run")
            answers.add(next((self.dir / f"q{quads}").glob("*.npy")).read_bytes())
            self.assertEqual(json.loads((self.dir / "r.json").read_text())["last"][0]["main"]["quads"], quads)
        self.assertEqual(len(answers), 1)
        machine = json.loads(self.run_tool("--print-target-info", "corsair").stdout)
        machine["name"] = "slow-card"
        machine["dma"]["setup_clocks"]["value"] = 500
        (self.dir / "slow.json").write_text(json.dumps(machine))
        self.run_tool(DIGITS, "-t", "corsair:slow.json", "-o", "s.bundle", "--dim", "batch=32")
        self.assertIn("code/corsair/slow-card/kernels.dmxisa", self.entries(self.dir / "s.bundle"))
        machine["clock_hz"]["value"] *= 2
        (self.dir / "wrong.json").write_text(json.dumps(machine))
        result = self.run_tool(DIGITS, "-t", "corsair:wrong.json", "-o", "w.bundle", "--dim", "batch=32", code=1)
        self.assertIn("int8_ops_per_second", result.stderr)
        for level, code in (("quads=0", 2), ("quads=33", 2), ("quads=x", 2), ("nothere.json", 3), ("fast", 2)):
            self.run_tool(DIGITS, "-t", f"corsair:{level}", "-o", "w.bundle", code=code)

    def test_weights_beyond_the_fast_memory(self):
        """4 x 16 MiB of weights where a quad holds 48 MiB: kept from the first run on, or fetched in every run."""
        row, weights = "tensor<1x4096xf32>", "tensor<4096x4096xf32>"
        text = "".join(f"  %c{i} = dmir.constant dense<{0.0001 * (i + 1)}> : {weights}\n"
                       f"  %{i + 1} = dmir.matmul %{i}, %c{i} : ({row}, {weights}) -> {row}\n" for i in range(4))
        (self.dir / "l.mlir").write_text(f'func.func @main(%0: {row} {{dmir.name = "x"}}) -> ({row} {{dmir.name = "y"}}) {{\n{text}  return %4 : {row}\n}}\n')
        result = self.run_tool("l.mlir", "-t", "corsair:quads=1+performance", "-o", "p.bundle", "--require-target", "corsair", code=4)
        self.assertIn("ST holds 12582912 bytes, the model needs 17039360", result.stderr)
        result = self.run_tool("l.mlir", "-t", "corsair:quads=1+performance", "-o", "p.bundle")
        self.assertIn("placement: 1 node does not fit corsair: dmir.matmul (ST holds 12582912 bytes", result.stderr)  # they have no names
        (self.dir / "n.mlir").write_text(re.sub(r"(%(\d) = dmir.matmul .*)", r'\1 loc("layer\2")', text.join(
            (f'func.func @main(%0: {row} {{dmir.name = "x"}}) -> ({row} {{dmir.name = "y"}}) {{\n', f"  return %4 : {row}\n}}\n"))))
        result = self.run_tool("n.mlir", "-t", "corsair:quads=1+performance", "-o", "p.bundle")
        self.assertRegex(result.stderr, r"corsair 2 of 4 nodes.*\nplacement: 2 nodes do not fit corsair: .* \(ST holds 12582912 bytes")
        self.run_tool("l.mlir", "-o", "host.bundle")
        self.run_tool("host.bundle", "--random-inputs", "3", "--output-dir", "host", tool="dmx-run")
        for level, fetched in (("quads=1", True), ("quads=8+performance", False), ("quads=4+capacity", True)):
            self.run_tool("l.mlir", "-t", "corsair:" + level, "-o", "d.bundle")
            self.run_tool("d.bundle", "--random-inputs", "3", "--expect", "host", "--min-sqnr", "30", "--device-opt", "report=r.json",
                          tool="dmx-run")
            read = json.loads((self.dir / "r.json").read_text())["last"][0]["main"]["read_bytes"]["DDR"]
            self.assertEqual(read > 4 * 4096 * 4096, fetched, level)

    def test_products_along_k(self):
        """Only where a quad would have neither columns nor rows of its own; sums are then added over quads."""
        for rows, depth, columns, level, along in ((1, 16384, 128, "quads=4", True), (1, 16384, 128, "quads=1", False),
                                                   (512, 512, 512, "quads=8", False), (1, 4096, 4096, "quads=4", False)):
            x, w, y = f"tensor<{rows}x{depth}xf32>", f"tensor<{depth}x{columns}xf32>", f"tensor<{rows}x{columns}xf32>"
            (self.dir / "k.mlir").write_text(
                f'func.func @main(%x: {x} {{dmir.name = "x"}}) -> ({y} {{dmir.name = "y"}}) {{\n  %w = dmir.constant dense<0.01> : {w}\n'
                f"  %y = dmir.matmul %x, %w : ({x}, {w}) -> {y}\n  return %y : {y}\n}}\n")
            text = self.run_tool("k.mlir", "-t", "corsair:" + level, "--emit", "partition", "-o", "-").stdout
            self.assertEqual("along_k = 1" in text, along, f"{rows}x{depth}x{columns} {level}")
            self.run_tool("k.mlir", "-t", "corsair:" + level, "-o", "k.bundle")
            self.run_tool("k.mlir", "-o", "host.bundle")
            self.run_tool("host.bundle", "--random-inputs", "3", "--output-dir", "host", tool="dmx-run")
            self.run_tool("k.bundle", "--random-inputs", "3", "--expect", "host", "--min-sqnr", "30", tool="dmx-run")

    def test_a_model_too_large_for_the_device(self):
        """A value of which the team's quads cannot hold their shares is the host's; and so is what they cannot hold at once."""
        (self.dir / "large.mlir").write_text(SMALL.replace("4x8", "8192x8192"))
        result = self.run_tool("large.mlir", "-t", "corsair:quads=1", "-o", "l.bundle", "--placement-report", "-")
        self.assertIn("corsair: GM holds 16777216 bytes, and a value takes 134217728", result.stdout)
        (self.dir / "large.mlir").write_text(SMALL.replace("4x8", "4096x2048"))
        result = self.run_tool("large.mlir", "-t", "corsair:quads=1", "-o", "x.bundle")
        self.assertIn("2 nodes do not fit corsair: body/exp, body/softmax (GM holds 16777216 bytes, the model needs 33554432)", result.stderr)
        result = self.run_tool("large.mlir", "-t", "corsair", "--require-target", "corsair", "-o", "x.bundle")  # shares of a larger team fit
        (self.dir / "large.mlir").write_text(SMALL.replace("4x8", "30011x30011"))
        result = self.run_tool("large.mlir", "-t", "corsair", "-o", "l.bundle", "--placement-report", "-")
        self.assertIn("corsair: GM holds 16777216 bytes, and a value takes 1801320242", result.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
