#!/usr/bin/env python3
"""What is said of where nodes run: counts, warnings, flags to paste. Usage: placement_test.py BIN REPO [unittest arguments]. Exit 77
without numpy and onnx."""
import json
import os
import pathlib
import re
import shlex
import sys
import unittest

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

from dmxc_case import BIN, REPO, Base

sys.path.insert(0, str(REPO / "tests"))
from sampling import LONG, sampled  # noqa: E402

MODELS = pathlib.Path(os.environ.get("DMXC_SHARED", REPO.parent / "shared")) / "data/real-models"
OPEN = "the device's programs have static shapes, and the node has open dims"
COUNTS = r"(\w+) (\d+) of (\d+) nodes(?:, ([\d.]+) % of multiply-adds,)? in \d+ tasks?"


def two_nodes(dims=("batch", 64)):
    """y = relu(x w)."""
    weight = numpy_helper.from_array(np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="product"), helper.make_node("Relu", ["h"], ["y"], name="relu")]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, list(dims))
    graph = helper.make_graph(nodes, "two", [value("x")], [value("y")], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def file_names(path):
    """Of its nodes; unnamed ones have that of their first output."""
    return {node.name or node.output[0] for node in onnx.load(path).graph.node}


def file_nodes(path):
    return len(file_names(path))


@sampled(2)
class Placement(Base):
    def setUp(self):
        super().setUp()
        if "corsair" not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build has no target corsair")

    def real(self, name):
        path = MODELS / name / "model.onnx"
        if not path.exists():
            self.skipTest(f"{path} is not there")
        return path

    def compile(self, model, *arguments, **keywords):
        """stderr; shares {target: (nodes, of, percent)} of the summary; help lines."""
        text = self.run_tool(model, "-t", "corsair", "-o", "m.bundle", *arguments, **keywords).stderr
        line = next((line for line in text.splitlines() if line.startswith("placement: ")), "")
        shares = {name: (int(nodes), int(total), float(percent or 0)) for name, nodes, total, percent in re.findall(COUNTS, line)}
        return text, shares, re.findall(r"  help: (.*)", text)

    def paste(self, helps):
        flags = next(line for line in helps if "--dim" in line)
        return shlex.split(flags[flags.index("--dim"):])

    def test_part_that_starts_where_a_run_says(self):
        """Its types have no open dims, yet the device's programs have no place for where it starts."""
        (self.dir / "part.mlir").write_text(
            'func.func @main(%x: tensor<8x8xf32> {dmir.name = "x"}, %y: tensor<?xf32, #dmir.dims<"n">> {dmir.name = "y"}) -> (tensor<1x8xf32> {dmir.name = "z"}) {\n'
            "  %0 = dmir.slice %x {starts = array<i64: -9223372036854775808, 0>, sizes = array<i64: 1, 8>, steps = array<i64: 1, 1>, "
            'dims = #dmir.dims<"n">} : (tensor<8x8xf32>) -> tensor<1x8xf32>\n'
            "  %1 = dmir.add %0, %0 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>\n  return %1 : tensor<1x8xf32>\n}\n")
        _, shares, _ = self.compile("part.mlir")
        self.assertEqual({name: share[:2] for name, share in shares.items()}, {"corsair": (1, 2), "cpu": (1, 2)})

    def test_two_nodes(self):
        (self.dir / "two.onnx").write_bytes(two_nodes())
        text, shares, helps = self.compile("two.onnx")
        self.assertEqual(text.splitlines()[:4], [
            "placement: corsair 0 of 2 nodes, 0 % of multiply-adds, in 0 tasks; cpu 2 of 2 nodes, 100 % of multiply-adds, in 1 task",
            f"two.onnx: warning: the target 'corsair' computes 0 of 2 nodes, 0 % of multiply-adds: {OPEN} (1 products) [placement-idle]",
            "  help: fix the open dims, for example: --dim batch=1",
            "  help: --placement-report - says of every node where it runs and why"])
        text, shares, _ = self.compile("two.onnx", *self.paste(helps))
        self.assertNotIn("warning", text)
        self.assertEqual(shares["corsair"], (2, 2, 100))
        self.assertIn("error: the target 'corsair' computes", self.compile("two.onnx", "-Werror", code=1)[0])

    def test_a_dim_whose_name_needs_quotes(self):
        (self.dir / "two.onnx").write_bytes(two_nodes(("the batch's size", 64)))
        _, _, helps = self.compile("two.onnx")
        _, shares, _ = self.compile("two.onnx", *self.paste(helps))
        self.assertEqual(shares["corsair"], (2, 2, 100))

    def test_text_has_no_dims_to_fix(self):
        (self.dir / "t.mlir").write_text("""func.func @main(%x: tensor<?x8xf32, #dmir.dims<"n">> {dmir.name = "x"}) -> (tensor<?x8xf32, #dmir.dims<"n">> {dmir.name = "y"}) {
  %0 = dmir.exp %x : (tensor<?x8xf32, #dmir.dims<"n">>) -> tensor<?x8xf32, #dmir.dims<"n">> loc("e")
  return %0 : tensor<?x8xf32, #dmir.dims<"n">>
}
""")
        text, _, helps = self.compile("t.mlir")
        self.assertIn(f"computes 0 of 1 nodes: {OPEN} (1 nodes)", text)
        self.assertEqual(len(helps), 1)

    def test_a_target_behind_another(self):
        """The first one computes everything."""
        (self.dir / "two.onnx").write_bytes(two_nodes((4, 64)))
        text = self.run_tool("two.onnx", "-t", "cpu", "-t", "corsair", "-o", "m.bundle").stderr
        self.assertIn("the target 'corsair' computes 0 of 2 nodes, 0 % of multiply-adds: 'cpu', which -t names before it, computes them", text)
        self.assertNotIn("warning", self.run_tool("two.onnx", "-t", "corsair", "-t", "cpu", "-o", "m.bundle").stderr)

    def test_bert_toy(self):
        model = self.real("bert_toy")
        text, shares, helps = self.compile(model)
        self.assertIn(f"warning: the target 'corsair' computes {shares['corsair'][0]} of 384 nodes, 0 % of multiply-adds: {OPEN}", text)
        self.assertEqual(self.paste(helps), ["--dim", "batch=1", "--dim", "max_seq_len_in_batch=128"])
        _, shares, _ = self.compile(model, *self.paste(helps))
        self.assertGreater(shares["corsair"][2], 90)

    def test_magika(self):
        model = self.real("magika_standard_v3_3")
        text, shares, helps = self.compile(model)
        self.assertEqual(shares["corsair"], (0, 95, 0))
        self.assertIn(f"computes 0 of 95 nodes, 0 % of multiply-adds: {OPEN}", text)
        self.assertEqual(self.paste(helps), ["--dim", "unk__214=1"])
        _, shares, _ = self.compile(model, *self.paste(helps))
        self.assertGreater(shares["corsair"][2], 90)

    def test_counts_are_the_same_everywhere(self):
        """dmxc, its report, dmx-inspect and its page: of ten models of others; of three on plain days."""
        names = ["mnist_cntk", "mnist_torch_dynamo", "sklearn_randomforest"]
        if LONG:
            names += ["bert_toy", "byte_sb_bidi_lstm", "dtln_model_1", "dtln_model_2", "gtcrn_stream_simple", "magika_standard_v3_3", "ultraface_rfb_320"]
        for name in names:
            with self.subTest(name):
                text, shares, _ = self.compile(self.real(name), "--placement-report", "p.txt")
                self.assertEqual({total for _, total, _ in shares.values()}, {file_nodes(self.real(name))})
                rows = [line.split("\t") for line in (self.dir / "p.txt").read_text().splitlines()]
                self.assertEqual(rows[0][0], "# " + re.search(r"placement: (.*)", text).group(1))
                summary = json.loads(self.run_tool("m.bundle", "--json", tool="dmx-inspect").stdout)
                seen = {row["target"]: row for row in summary["placement"]}
                self.run_tool("m.bundle", "--html", "page.html", tool="dmx-inspect")
                page = (self.dir / "page.html").read_text()
                for target, (nodes, total, _) in shares.items():
                    self.assertEqual(len({row[0] for row in rows[2:] if row[2] == target}), nodes)
                    self.assertEqual(seen[target]["nodes"], nodes)
                    self.assertTrue(seen[target]["reason"].startswith(f"{nodes} of {total} nodes"), seen[target])
                    self.assertIn(f">{nodes} of {total} nodes", page)


@sampled(2)
class Misfits(Base):
    """Nodes whose values a device does not hold at once: known when the device's program is written, after partition."""
    SHAPE = "tensor<4096x1536xf32>"  # 12 MiB on the device, of whose 16 two do not fit

    def setUp(self):
        super().setUp()
        if "corsair" not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build has no target corsair")
        wide, narrow = self.SHAPE, "tensor<4096x64xf32>"
        (self.dir / "m.mlir").write_text(
            f'func.func @main(%x: {narrow} {{dmir.name = "x"}}) -> ({narrow} {{dmir.name = "y"}}) {{\n'
            f'  %up = dmir.constant dense<0.125> : tensor<64x1536xf32>\n  %down = dmir.constant dense<0.001> : tensor<1536x64xf32>\n'
            f'  %0 = dmir.tanh %x : ({narrow}) -> {narrow} loc("first")\n'
            f'  %1 = dmir.matmul %0, %up : ({narrow}, tensor<64x1536xf32>) -> {wide} loc("up")\n'
            f'  %2 = dmir.softmax %1 {{axis = 1 : i64}} : ({wide}) -> {wide} loc("soft")\n'
            f'  %3 = dmir.add %2, %1 : ({wide}, {wide}) -> {wide} loc("sum")\n'
            f'  %4 = dmir.matmul %3, %down : ({wide}, tensor<1536x64xf32>) -> {narrow} loc("down")\n'
            f'  %5 = dmir.tanh %4 : ({narrow}) -> {narrow} loc("last")\n  return %5 : {narrow}\n}}\n')

    def test_the_host_takes_them(self):
        done = self.run_tool("m.mlir", "-t", "corsair:quads=1", "-o", "m.bundle", "--placement-report", "-")
        rows = [line.split("\t") for line in done.stdout.splitlines() if not line.startswith("#")]
        places = {row[0]: row[2] for row in rows}
        self.assertEqual((places["first"], places["last"]), ("corsair", "corsair"), places)
        moved = {name for name, place in places.items() if place == "cpu"}
        self.assertTrue({"soft", "up"} <= moved, places)
        for row in rows:
            self.assertEqual("corsair: GM holds 16777216 bytes, the model needs " in row[5], row[0] in moved, row)
        said = re.findall(r"placement: \d+ nodes? do(?:es)? not fit corsair: (.*) \(GM holds 16777216 bytes, the model needs \d+\)", done.stderr)
        self.assertEqual({name for line in said for name in line.split(", ")}, moved, done.stderr)
        self.run_tool("m.mlir", "-o", "host.bundle")
        self.run_tool("host.bundle", "--random-inputs", "3", "--output-dir", "host", tool="dmx-run")
        self.run_tool("m.bundle", "--random-inputs", "3", "--expect", "host", "--min-sqnr", "30", tool="dmx-run")

    def test_what_is_shown_is_what_was_taken(self):
        """A text of an earlier phase is that of the last plan, whichever way it is asked for; taken up again it fits."""
        said = self.run_tool("m.mlir", "-t", "corsair:quads=1", "-o", "m.bundle", "--dump-phases", "phases").stderr
        for stop, file, count in (("partition", "2-partition.mlir", 2), ("memory", "3-memory.mlir", 3), ("schedule.buffers", "4c-buffers.mlir", 6),
                                  ("schedule", "4-schedule.mlir", 11)):
            done = self.run_tool("m.mlir", "-t", "corsair:quads=1", "--emit", stop, "-o", "-", "--dump-phases", f"dump-{stop}")
            self.assertEqual(done.stdout, (self.dir / "phases" / file).read_text(), stop)
            self.assertEqual((self.dir / f"dump-{stop}" / file).read_text(), done.stdout)
            self.assertEqual(len(list((self.dir / f"dump-{stop}").iterdir())), count, stop)
            self.assertEqual([line for line in done.stderr.splitlines() if line.startswith("placement: ")],
                             [line for line in said.splitlines() if line.startswith("placement: ")])
            (self.dir / "m2.mlir").write_text(done.stdout)
            self.run_tool("m2.mlir", "-t", "corsair:quads=1", "--from", stop, "-o", "again.bundle")
        self.assertEqual(said.count("placement: corsair"), 1)

    def test_what_must_run_there(self):
        for flags, why in ((("--require-target", "corsair"), r"cannot be met: \d of the 6 nodes .*\n  note: \d nodes? do(es)? not fit corsair: .*GM holds"),
                           (("--place", "soft=corsair"), r"node 'soft': error: --place soft=corsair cannot be met: corsair refuses: GM holds 16777216 bytes")):
            wrong = self.run_tool("m.mlir", "-t", "corsair:quads=1", *flags, "-o", "m.bundle", code=4).stderr
            self.assertRegex(wrong, why)
            self.assertNotIn("placement: ", wrong)
        self.assertFalse((self.dir / "m.bundle").exists())
        said = self.run_tool("m.mlir", "-t", "corsair:quads=1", "--place", "[!fl]*=cpu", "--require-target", "corsair:30", "-o", "m.bundle").stderr
        self.assertNotIn("fit", said)

    def test_a_text_that_does_not_fit(self):
        """What runs where is said in it, so nothing is planned again; a text before partition does not say it."""
        self.run_tool("m.mlir", "--emit", "frontend", "-o", "f.mlir")
        self.assertIn("do not fit corsair", self.run_tool("f.mlir", "-t", "corsair:quads=1", "--from", "frontend", "-o", "m.bundle").stderr)
        (self.dir / "s.mlir").write_text((self.dir / "m.mlir").read_text().replace("4096x", "256x"))  # that fits, and then no more
        self.run_tool("s.mlir", "-t", "corsair:quads=1", "--emit", "partition", "-o", "p.mlir")
        text = re.sub(r"lldmir\.\w+ = #lldmir\.\w+<[^>]*>,? ?|flops = \d+ : i64, ", "", (self.dir / "p.mlir").read_text())
        (self.dir / "p.mlir").write_text(text.replace("256x", "4096x"))
        wrong = self.run_tool("p.mlir", "-t", "corsair:quads=1", "--from", "partition", "-o", "x.bundle", code=4).stderr
        self.assertIn("does not fit the device: GM holds 16777216 bytes, the model needs ", wrong)
        self.assertFalse((self.dir / "x.bundle").exists())


    def same_as_host(self, model, *flags):
        """{node: target} of a compile for corsair whose results are the host's."""
        self.run_tool(model, "-o", "host.bundle")
        self.run_tool("host.bundle", "--random-inputs", "3", "--output-dir", "host", tool="dmx-run")
        text = self.run_tool(model, "-t", "corsair", *flags, "-o", "m.bundle", "--placement-report", "-").stdout
        self.run_tool("m.bundle", "--random-inputs", "3", "--expect", "host", "--min-sqnr", "30", tool="dmx-run")
        return {row[0]: row[2] for row in (line.split("\t") for line in text.splitlines()) if len(row) > 2}

    def test_a_value_that_is_only_seen_otherwise(self):
        """It has no room beside another kernel's table, and no task of the device has its node's name."""
        part, wide, tall = "tensor<1000x2048xf32>", "tensor<1000x8192xf32>", "tensor<8192x1000xf32>"
        (self.dir / "t.mlir").write_text(
            f'func.func @main(%x: {part} {{dmir.name = "x"}}) -> ({tall} {{dmir.name = "y"}}) {{\n  %c = dmir.constant dense<0.5> : {part}\n'
            f'  %0 = dmir.add %x, %c : ({part}, {part}) -> {part} loc("table")\n'
            f'  %1 = dmir.concat %0, %0, %0, %0 {{axis = 1 : i64}} : ({part}, {part}, {part}, {part}) -> {wide} loc("wide")\n'
            f'  %2 = dmir.transpose %1 {{permutation = array<i64: 1, 0>}} : ({wide}) -> {tall} loc("turn")\n  return %2 : {tall}\n}}\n')
        seen = self.same_as_host("t.mlir", "--place", "wide=cpu")
        self.assertEqual((seen["table"], seen["turn"]), ("corsair", "cpu"), seen)

    def test_a_view_apart_from_what_made_its_bytes(self):
        """What reads the view waits for the host, what reads its operand does not."""
        a, b = "tensor<8x16xf32>", "tensor<16x8xf32>"
        (self.dir / "v.mlir").write_text(
            f'func.func @main(%x: {a} {{dmir.name = "x"}}) -> ({a} {{dmir.name = "y"}}, {b} {{dmir.name = "z"}}) {{\n'
            f'  %0 = dmir.exp %x : ({a}) -> {a} loc("first")\n  %1 = dmir.reshape %0 : ({a}) -> {b} loc("view")\n'
            f'  %2 = dmir.relu %1 : ({b}) -> {b} loc("behind")\n  %3 = dmir.tanh %0 : ({a}) -> {a} loc("beside")\n  return %3, %2 : {a}, {b}\n}}\n')
        seen = self.same_as_host("v.mlir", "--place", "view=cpu")
        self.assertEqual([seen[name] for name in ("first", "behind", "beside")], ["corsair"] * 3)


@sampled(2)
class Places(Base):
    """--place: of a name, and of a glob, on each target."""
    PRODUCTS = ("/fc1/Gemm", "/fc2/Gemm", "/fc3/Gemm")

    def setUp(self):
        super().setUp()
        self.model = BIN.parent / "zoo/mlp/model.onnx"
        if not self.model.exists():
            self.skipTest(f"{self.model} is not there (conformance.zoo makes it)")
        self.targets = [name for name in ("corsair", "aie", "cuda") if name in self.run_tool("--print-targets").stdout]

    def placed(self, *flags, model=None):
        """{node: target} of the products; the run's outputs are right."""
        text = self.run_tool(model or self.model, *flags, "-o", "m.bundle", "--placement-report", "-").stdout
        rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
        data = self.model.parent / "set0"
        self.run_tool("m.bundle", "--inputs", data, "--expect", data, "--min-sqnr", "30", tool="dmx-run")
        return {row[0]: row[2] for row in rows if row[1] == "dmir.matmul"}

    def test_on_each_target(self):
        for target in self.targets:
            with self.subTest(target):
                all_there = {name: target for name in self.PRODUCTS}
                self.assertEqual(self.placed("-t", target), all_there)
                self.assertEqual(self.placed("-t", target, "--place", "/fc2/Gemm=cpu"), {**all_there, "/fc2/Gemm": "cpu"})
                self.assertEqual(self.placed("-t", target, "--place", "/fc[13]*=cpu"), {name: "cpu" for name in self.PRODUCTS} | {"/fc2/Gemm": target})
                self.assertEqual(set(self.placed("-t", target, "--place", "*=cpu").values()), {"cpu"})
                self.assertEqual(self.placed("-t", target, "--place", "*=cpu", "--place", f"/fc2*={target}"),
                                 {name: "cpu" for name in self.PRODUCTS} | {"/fc2/Gemm": target})

    def test_a_device_that_another_target_stands_before(self):
        """The first target computes all; what is placed elsewhere runs there, through the text of phase frontend too."""
        for target in self.targets:
            with self.subTest(target):
                flags = ("-t", "cpu", "-t", target, "--place", f"/fc2/Gemm={target}")
                seen = self.placed(*flags)
                self.assertEqual(seen, {name: "cpu" for name in self.PRODUCTS} | {"/fc2/Gemm": target})
                self.run_tool(self.model, *flags, "--emit", "frontend", "-o", "f.mlir", code=2)  # no partition, no place
                self.run_tool(self.model, "-t", "cpu", "-t", target, "--emit", "frontend", "-o", "f.mlir")
                self.assertEqual(self.placed(*flags, "--from", "frontend", "--allow-external-data", self.model.parent, model="f.mlir"), seen)

    def test_what_a_target_refuses(self):
        if "aie" not in self.targets:
            self.skipTest("this build has no target aie")
        text = self.run_tool(self.model, "-t", "aie", "-o", "m.bundle", "--placement-report", "-").stdout
        host = next(row.split("\t")[0] for row in text.splitlines() if "\tcpu\t" in row)
        wrong = self.run_tool(self.model, "-t", "aie", "--place", f"{host}=aie", "-o", "x.bundle", code=4).stderr
        self.assertIn(f"node '{host}': error: --place {host}=aie cannot be met: aie refuses: the array multiplies matrices, convolves, and does to rows", wrong)
        wrong = self.run_tool(self.model, "-t", "cpu", "--place", "*=aie", "-o", "x.bundle", code=4).stderr
        self.assertIn("aie refuses: it is not among the -t targets", wrong)
        self.assertFalse((self.dir / "x.bundle").exists())

    def test_what_matches_nothing(self):
        name = next(iter(file_names(self.model)))
        wrong = self.run_tool(self.model, "--place", f"{name}x=cpu", "-o", "x.bundle", code=2).stderr
        self.assertIn(f"error: --place {name}x=cpu matches no node of the model [place]\n  help: did you mean '{name}'", wrong)
        wrong = self.run_tool(self.model, "--place", "*=cpu", "--place", "some-other-thing=cpu", "-o", "x.bundle", code=2).stderr
        self.assertIn("--place some-other-thing=cpu matches no node of the model", wrong)
        self.assertIn("help: its nodes have names like '", wrong)
        self.assertFalse((self.dir / "x.bundle").exists())

    def test_what_computes_nothing(self):
        """A view has no place; it is said, and no error."""
        view = next(node.name or node.output[0] for node in onnx.load(self.model).graph.node if node.op_type == "Flatten")
        said = self.run_tool(self.model, "--place", f"{view}=cpu", "-o", "m.bundle").stderr
        self.assertIn(f"warning: --place {view}=cpu matches no node that is computed", said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
