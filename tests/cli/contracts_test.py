#!/usr/bin/env python3
"""Graphs that lie about what their kernels touch, with right checksums: every one is refused by the kernel's name, by
dmx-run before it runs and by dmx-inspect --check, which computes nothing.
Usage: contracts_test.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import hashlib
import json
import subprocess
import sys
import unittest

from dynamic_shapes import BIN, BundleTest, np  # exits where numpy is not installed
from strategies_test import convolution, onnx, transformer


def branches(shape):
    """c ? exp(x) + w : exp(x) * w, and a loop whose body takes the sine."""
    def body(operator):
        nodes = [onnx.node("Exp", "x", operator + "e"), onnx.node(operator, operator + "e w", operator + "r")]
        return ("g", onnx.graph(nodes, [], [onnx.info(operator + "r", onnx.FLOAT, None)]))
    loop = onnx.graph([onnx.node("Sin", "a", "b"), onnx.node("Identity", "go", "again")],
                      [onnx.info("i", onnx.INT64, []), onnx.info("go", onnx.BOOL, []), onnx.info("a", onnx.FLOAT, shape)],
                      [onnx.info("again", onnx.BOOL, []), onnx.info("b", onnx.FLOAT, shape)])
    nodes = [onnx.node("If", "c", "z", then_branch=body("Add"), else_branch=body("Mul")), onnx.node("Loop", "n c z", "y", body=("g", loop))]
    return onnx.model(nodes, [onnx.info("c", onnx.BOOL, []), onnx.info("n", onnx.INT64, []), onnx.info("x", onnx.FLOAT, shape)],
                      [onnx.info("y", onnx.FLOAT, None)], weights=[onnx.floats("w", [4, 32])])


class Contracts(BundleTest):
    def unpack(self, model):
        """Compiles to a folder; gives its graphs."""
        (self.dir / "m.onnx").write_bytes(model)
        self.compile_file(self.dir / "m.onnx", "--bundle-format", "dir")
        self.graph = self.dir / "m.bundle" / "graph.json"
        return json.loads(self.graph.read_text())

    def pack(self, graph):
        """Writes the graphs back, with the checksums of what is there now."""
        folder = self.dir / "m.bundle"
        text = json.dumps(graph).encode()
        self.graph.write_bytes(text)
        manifest = json.loads((folder / "manifest.json").read_text())
        for entry in manifest["entries"]:
            if entry["name"] == "graph.json":
                entry.update(size=len(text), sha256=hashlib.sha256(text).hexdigest())
        text = json.dumps(manifest).encode()
        (folder / "manifest.json").write_bytes(text)
        (folder / "manifest.sha256").write_text(hashlib.sha256(text).hexdigest() + "\n")

    def said(self, tool, *arguments):
        done = subprocess.run([BIN / tool, self.dir / "m.bundle", *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def kernels(self, graph):
        return [task for task in graph["graphs"][0]["tasks"] if task["kind"] == "dispatch"]

    def test_the_truth_runs(self):
        for model in (convolution(), transformer()):
            self.pack(self.unpack(model))
            code, text = self.said("dmx-run", "--random-inputs", "1", "--require-contracts")
            self.assertEqual(code, 0, text)
            self.assertEqual(self.said("dmx-inspect", "--check")[0], 0)

    def test_lies_are_refused_by_name(self):
        lies = named = 0
        for model in (convolution(), transformer()):
            truth = self.unpack(model)
            for index, task in enumerate(self.kernels(truth)):
                for field, change in (("work", lambda v: ["add", v, 1]), ("scratch", lambda v: ["max", ["sub", v, 64], 0]),
                                      ("outputs", lambda v: v + 1), ("buffers", lambda v: v + v[:1]), ("dims", lambda v: v + [1])):
                    value = task.get(field, [] if field == "dims" else 0)
                    if field == "scratch" and value == 0:
                        continue
                    graph = json.loads(json.dumps(truth))
                    self.kernels(graph)[index][field] = change(value)
                    self.pack(graph)
                    code, text = self.said("dmx-run", "--random-inputs", "1")
                    self.assertEqual(code, 1, (task["kernel"], field, text))
                    # Some lies already contradict the graph itself, which names the task.
                    self.assertTrue(task["kernel"] in text or f"tasks[{truth['graphs'][0]['tasks'].index(task)}]" in text, text)
                    named += task["kernel"] in text
                    code, text = self.said("dmx-inspect", "--check")
                    self.assertEqual(code, 5, (task["kernel"], field, text))
                    lies += 1
        self.assertGreater(lies, 20)
        self.assertGreater(named, lies / 2)

    def test_operands_are_as_large_as_kernels_need(self):
        """The operands of a kernel in another order: each has a buffer, but not one of its size."""
        truth = self.unpack(transformer())
        refused = 0
        for index, task in enumerate(self.kernels(truth)):
            graph = json.loads(json.dumps(truth))
            self.kernels(graph)[index]["buffers"] = task["buffers"][:-1][::-1] + task["buffers"][-1:]
            self.pack(graph)
            code, text = self.said("dmx-run", "--random-inputs", "1")
            self.assertIn(code, (0, 1), text)
            refused += code == 1 and task["kernel"] in text
        self.assertGreater(refused, 2)

    def test_bodies_are_compared_when_a_session_is_made(self):
        """A run with c false and n 0 comes to the second branch alone."""
        truth = self.unpack(branches([4, 32]))
        bodies = [k for k in range(1, len(truth["graphs"])) if any(task["kind"] == "dispatch" for task in truth["graphs"][k]["tasks"])]
        self.assertEqual(len(bodies), 3)
        inputs = []
        for name, value in (("c", np.zeros([], np.bool_)), ("n", np.zeros([], np.int64)), ("x", np.zeros([4, 32], np.float32))):
            np.save(self.dir / f"{name}.npy", value)
            inputs += ["--input", f"{name}={self.dir / name}.npy"]
        self.pack(truth)
        code, text = self.said("dmx-run", *inputs)
        self.assertEqual(code, 0, text)
        for k in bodies:
            graph = json.loads(json.dumps(truth))
            task = next(task for task in graph["graphs"][k]["tasks"] if task["kind"] == "dispatch")
            task["work"] = ["add", task["work"], 1]
            self.pack(graph)
            code, text = self.said("dmx-run", *inputs)
            self.assertEqual(code, 1, (k, text))
            self.assertIn(task["kernel"], text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
