#!/usr/bin/env python3
"""Branches, loops and recurrences that a run decides: one bundle, many inputs, against numpy. Usage: control_flow.py BIN
[unittest arguments]. Exit 77 where numpy or protoc is not installed."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)
if not shutil.which("protoc"):
    print("SKIPPED: protoc is not installed (protobuf-compiler)")
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1]).resolve()
CODES = {"f32": (1, np.float32), "i64": (7, np.int64), "bool": (9, np.bool_)}


# --- ONNX as protobuf text ---------------------------------------------------------------------------------------------

def port(field, name, dtype, shape):
    dims = "".join(f" dim {{ {'dim_param: ' + chr(34) + d + chr(34) if isinstance(d, str) else f'dim_value: {d}'} }}" for d in shape)
    return f'{field} {{ name: "{name}" type {{ tensor_type {{ elem_type: {CODES[dtype][0]} shape {{{dims} }} }} }} }}\n'


def attribute(name, value):
    if isinstance(value, str) and value.startswith("node") or isinstance(value, Graph):
        return f'attribute {{ name: "{name}" type: GRAPH g {{ {value} }} }} '
    if isinstance(value, str):
        return f'attribute {{ name: "{name}" type: STRING s: "{value}" }} '
    if isinstance(value, int):
        return f'attribute {{ name: "{name}" type: INT i: {value} }} '
    return f'attribute {{ name: "{name}" type: INTS {" ".join(f"ints: {v}" for v in value)} }} '


def node(outputs, op, inputs, **attributes):
    names = "".join(f'input: "{n}" ' for n in inputs.split()).replace('"_"', '""') + "".join(f'output: "{n}" ' for n in outputs.split())
    return f'node {{ op_type: "{op}" name: "{outputs.split()[0]}" {names}' + "".join(attribute(k, v) for k, v in attributes.items()) + "}\n"


def constant(name, value):
    value = np.asarray(value)
    kind = {np.dtype(np.float64): "f32", np.dtype(np.int64): "i64", np.dtype(np.bool_): "bool"}[value.dtype]
    data = value.astype(CODES[kind][1]).tobytes()
    raw = "".join(f"\\{b:03o}" for b in data)
    dims = "".join(f"dims: {d} " for d in value.shape)
    return f'initializer {{ name: "{name}" data_type: {CODES[kind][0]} {dims}raw_data: "{raw}" }}\n'


class Graph(str):
    """Text of a GraphProto's fields."""


def graph(body, inputs=(), outputs=()):
    return Graph('name: "g" ' + body + "".join(f'input {{ name: "{n}" }}\n' for n in inputs) + "".join(f'output {{ name: "{n}" }}\n' for n in outputs))


# --- Cases -------------------------------------------------------------------------------------------------------------

class Case:
    """`ports`: inputs as {name: (dtype, shape)}; `runs`: input values; `oracle`: values to outputs in order."""

    def __init__(self, ports, body, outputs, oracle, runs):
        self.ports, self.body, self.outputs, self.oracle, self.runs = ports, body, outputs, oracle, runs

    def text(self):
        ports = "".join(port("input", n, *p) for n, p in self.ports.items())
        outputs = "".join(f'output {{ name: "{n}" }}\n' for n in self.outputs)
        return f'ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "m"\n{ports}{outputs}{self.body} }}'


RANDOM = np.random.default_rng(7)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def branches():
    """Dims that differ between the branches, and one that both have; a branch that needs a dim alone."""
    then = graph(node("a", "Concat", "x x", axis=0) + node("s", "Shape", "x") + node("z", "ConstantOfShape", "s") + node("b", "Add", "z one"), outputs="ab")
    other = graph(node("a", "Slice", "x zero two") + node("b", "Neg", "x"), outputs="ab")
    body = (constant("one", 1.0) + constant("zero", [0]) + constant("two", [2]) +
            node("r t", "If", "c", then_branch=then, else_branch=other) + node("y", "Relu", "r") + node("u", "Add", "t x"))

    def oracle(x, c):
        r, t = (np.concatenate([x, x]), np.ones_like(x)) if c else (x[:2], -x)
        return [np.maximum(r, 0), t + x]
    return Case({"x": ("f32", ["n", 5]), "c": ("bool", [])}, body, ["y", "u"], oracle,
                [dict(x=floats(n, 5), c=np.array(c)) for n in (0, 1, 3, 40) for c in (True, False)])


def growing():
    """A carried value that grows, a scanned one, a trip count that a run brings; x is captured."""
    body = graph(node("grown", "Concat", "value x", axis=0) + node("f", "Cast", "i", to=1) + node("scaled", "Mul", "x f") + node("go", "Identity", "cond"),
                 "i cond value".split(), "go grown scaled".split())
    text = node("all steps", "Loop", "trips _ start", body=body) + node("sum", "ReduceSum", "all axes", keepdims=0) + constant("axes", [0])

    def oracle(x, start, trips):
        steps = [x * i for i in range(int(trips))]
        everything = np.concatenate([start] + [x] * max(int(trips), 0))
        return [everything, np.stack(steps) if steps else np.zeros((0, *x.shape), np.float32), everything.sum(0)]
    return Case({"x": ("f32", ["k", 3]), "start": ("f32", ["n", 3]), "trips": ("i64", [])}, text, ["all", "steps", "sum"], oracle,
                [dict(x=floats(k, 3), start=floats(n, 3), trips=np.array(t)) for k, n, t in ((1, 0, 0), (1, 1, 1), (2, 3, 7), (5, 0, 100), (3, 2, 0))])


def viewed():
    """Values that branches and a loop capture or carry, computed in place of an output that is a view of them: of another
    rank, and of the same rank with the extents elsewhere."""
    def either(x):
        return {"then_branch": graph(node("t", "Tanh", x), outputs="t"), "else_branch": graph(node("e", "Neg", x), outputs="e")}
    step = graph(node("next", "Add", "w v") + node("go", "Identity", "cond"), "i cond w".split(), "go next".split())
    text = (constant("last", [-1]) + node("v", "Relu", "x") + node("flat", "Flatten", "v", axis=1) + node("y", "If", "c", **either("v")) +
            node("row", "Gather", "rows last", axis=0) + node("column", "Transpose", "row", perm=[1, 0]) + node("z", "If", "c", **either("row")) +
            node("s", "Abs", "x") + node("line", "Reshape", "s last") + node("sum", "Loop", "trips _ s", body=step))

    def oracle(x, rows, c, trips):
        v, row = np.maximum(x, 0), rows[-1:]
        return [v.reshape(len(v), -1), np.tanh(v) if c else -v, row.T, np.tanh(row) if c else -row, np.abs(x).reshape(-1), np.abs(x) + int(trips) * v]
    return Case({"x": ("f32", [2, 3, "k"]), "rows": ("f32", ["n", "m"]), "c": ("bool", []), "trips": ("i64", [])}, text,
                "flat y column z line sum".split(), oracle,
                [dict(x=floats(2, 3, k), rows=floats(n, m), c=np.array(c), trips=np.array(k)) for k, n, m in ((4, 3, 5), (1, 1, 1), (3, 2, 0)) for c in (True, False)])


def searching():
    """A while loop: halves until the sum is small; counts the iterations."""
    body = graph(node("next", "Mul", "v half") + node("n", "Add", "count unit") + node("size", "ReduceSum", "next", keepdims=0) +
                 node("go", "Greater", "size limit"), "i cond v count".split(), "go next n".split())
    text = (constant("half", 0.5) + constant("unit", 1) + constant("limit", 1.0) + constant("none", 0) +
            node("s", "ReduceSum", "x", keepdims=0) + node("begin", "Greater", "s limit") + node("y count", "Loop", "_ begin x none", body=body))

    def oracle(x):
        n = 0
        while x.sum() > 1:
            x, n = x * np.float32(0.5), n + 1
        return [x, np.array(n)]
    return Case({"x": ("f32", ["n"])}, text, ["y", "count"], oracle, [dict(x=np.abs(floats(n))) for n in (0, 1, 10, 1000)])


def nested():
    """A branch in a loop in a loop; the inner ones use values of all graphs around them."""
    even = graph(node("p", "Add", "w x"), outputs="p")
    odd = graph(node("p", "Sub", "w x"), outputs="p")
    inner = graph(node("ij", "Add", "i j") + node("m", "Mod", "ij two") + node("e", "Equal", "m none") + node("q", "If", "e", then_branch=even, else_branch=odd) +
                  node("go1", "Identity", "cond1"), "j cond1 w".split(), "go1 q".split())
    outer = graph(node("r", "Loop", "i _ v", body=inner) + node("last", "ReduceSum", "r", keepdims=0) + node("go0", "Identity", "cond0"),
                  "i cond0 v".split(), "go0 r last".split())
    text = constant("two", 2) + constant("none", 0) + node("y sums", "Loop", "trips _ start", body=outer) + node("start", "Mul", "x x")

    def oracle(x, trips):
        v, sums = x * x, []
        for i in range(int(trips)):
            for j in range(i):
                v = v + x if (i + j) % 2 == 0 else v - x
            sums.append(v.sum())
        return [v, np.array(sums, np.float32).reshape(-1)]
    return Case({"x": ("f32", ["n"]), "trips": ("i64", [])}, text, ["y", "sums"], oracle,
                [dict(x=floats(n), trips=np.array(t)) for n, t in ((4, 0), (1, 1), (4, 6), (33, 9))])


def scanning():
    """Running sums along axis 1, backwards, with the results stacked along the last axis."""
    body = graph(node("next", "Add", "sum piece") + node("out", "Identity", "next"), "sum piece".split(), "next out".split())
    text = node("last all", "Scan", "start x", body=body, num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1],
                scan_output_axes=[-1], scan_output_directions=[1])

    def oracle(start, x):
        sums = np.cumsum(x[:, ::-1], 1) + start[:, None]
        return [sums[:, -1] if x.shape[1] else start, sums[:, ::-1].transpose(0, 2, 1)]
    return Case({"start": ("f32", ["b", 4]), "x": ("f32", ["b", "t", 4])}, text, ["last", "all"], oracle,
                [dict(start=floats(b, 4), x=floats(b, t, 4)) for b, t in ((1, 1), (2, 5), (3, 64), (1, 300), (2, 0))])


def unrolled():
    """A loop and a scan of few steps, whose slices have an open extent."""
    steps = graph(node("next", "Add", "v x") + node("go", "Identity", "cond") + node("kept", "Identity", "v"), "i cond v".split(), "go next kept".split())
    sums = graph(node("sum", "Add", "s piece") + node("out", "Neg", "sum"), "s piece".split(), "sum out".split())
    text = (constant("three", 3) + node("y all", "Loop", "three _ x", body=steps) +
            node("last sums", "Scan", "first x", body=sums, num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1]))

    def oracle(x, first):
        sums = first[:, None] + np.cumsum(x, 1)
        return [4 * x, np.stack([x, 2 * x, 3 * x]), sums[:, -1], -sums]
    return Case({"x": ("f32", ["n", 4]), "first": ("f32", ["n"])}, text, "y all last sums".split(), oracle,
                [dict(x=floats(n, 4), first=floats(n)) for n in (5, 1, 0)])


def pieces():
    """What a run splits: by sizes, in chunks, into rows; taken apart by a loop and by positions."""
    body = graph(node("piece", "SequenceAt", "parts i") + node("sum", "ReduceSum", "piece axes", keepdims=0) + node("go", "Identity", "cond"),
                 "i cond".split(), "go sum".split())
    text = (constant("axes", [0]) + constant("last", -1) +
            node("parts", "SplitToSequence", "x sizes") + node("count", "SequenceLength", "parts") + node("sums", "Loop", "count _", body=body) +
            node("whole", "ConcatFromSequence", "parts", axis=0) +
            node("chunks", "SplitToSequence", "x part", axis=0) + node("chunk_count", "SequenceLength", "chunks") + node("tail", "SequenceAt", "chunks last") +
            node("rows", "SplitToSequence", "x", keepdims=0) + node("row", "SequenceAt", "rows at") + node("turned", "ConcatFromSequence", "rows", axis=1, new_axis=1) +
            node("double", "Add", "x x") + node("two", "SequenceConstruct", "x double") + node("either", "SequenceAt", "two which"))

    def oracle(x, sizes, part, at, which):
        parts = np.split(x, np.cumsum(sizes)[:-1]) if len(sizes) else []
        chunks = [x[i:i + int(part)] for i in range(0, len(x), int(part))]
        return [np.array(len(sizes)), np.array([p.sum(0) for p in parts]).reshape(-1, x.shape[1]), x, np.array(len(chunks)), chunks[-1], x[at], x.T,
                [x, x + x][which]]
    return Case({"x": ("f32", ["n", 3]), "sizes": ("i64", ["m"]), "part": ("i64", []), "at": ("i64", []), "which": ("i64", [])}, text,
                "count sums whole chunk_count tail row turned either".split(), oracle,
                [dict(x=floats(sum(s), 3), sizes=np.array(s, np.int64), part=np.array(p), at=np.array(a), which=np.array(w))
                 for s, p, a, w in (([1], 1, 0, 0), ([2, 0, 5], 3, -1, 1), ([0, 9, 1, 1, 0], 100, 10, -1), ([4, 4], 4, 3, -2))])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrence():
    """A bidirectional LSTM over an open time, with lengths."""
    hidden, width = 6, 3
    w, r, b = floats(2, 4 * hidden, width), floats(2, 4 * hidden, hidden) * 0.5, floats(2, 8 * hidden)
    text = (constant("w", w.astype(float)) + constant("r", r.astype(float)) + constant("b", b.astype(float)) +
            node("y h c", "LSTM", "x w r b lengths", hidden_size=hidden, direction="bidirectional"))

    def oracle(x, lengths):
        time, batch, _ = x.shape
        y, h, c = np.zeros((time, 2, batch, hidden)), np.zeros((2, batch, hidden)), np.zeros((2, batch, hidden))
        for d in range(2):
            for n in range(batch):
                for k in range(lengths[n]):
                    t = lengths[n] - 1 - k if d else k
                    gates = w[d] @ x[t, n] + r[d] @ h[d, n] + b[d, :4 * hidden] + b[d, 4 * hidden:]
                    i, o, f, g = (gates[q * hidden:(q + 1) * hidden] for q in range(4))
                    c[d, n] = sigmoid(f) * c[d, n] + sigmoid(i) * np.tanh(g)
                    h[d, n] = sigmoid(o) * np.tanh(c[d, n])
                    y[t, d, n] = h[d, n]
        return [y, h, c]
    ports = {"x": ("f32", ["t", "b", width]), "lengths": ("i64", ["b"])}
    text = text.replace('input: "lengths"', 'input: "l32"') + node("l32", "Cast", "lengths", to=6)
    return Case(ports, text, ["y", "h", "c"], oracle,
                [dict(x=floats(t, b, width), lengths=np.array(n)) for t, b, n in ((1, 1, [1]), (5, 3, [5, 2, 4]), (130, 2, [130, 77]), (4, 2, [0, 4]))])


CASES = {"branches": branches(), "growing": growing(), "viewed": viewed(), "searching": searching(), "nested": nested(), "scanning": scanning(), "unrolled": unrolled(), "pieces": pieces(), "recurrence": recurrence()}


class Base(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-control-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def run_tool(self, *command):
        return subprocess.run([str(c) for c in command], capture_output=True, text=True)

    def compile(self, text, *arguments):
        model = subprocess.run(["protoc", "--encode=onnx.ModelProto", "-I/usr/include/onnx", "onnx.proto"], input=text.encode(), capture_output=True)
        self.assertEqual(model.returncode, 0, model.stderr.decode())
        (self.dir / "m.onnx").write_bytes(model.stdout)
        return self.run_tool(BIN / "dmxc", self.dir / "m.onnx", "-o", self.dir / "m.bundle", "-q", *(() if "-t" in arguments else ("-t", "cpu:x86-64-v3")), *arguments)

    def run_bundle(self, values):
        folder = self.dir / "in"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, value in values.items():
            np.save(folder / f"{name}.npy", value)
        return self.run_tool(BIN / "dmx-run", self.dir / "m.bundle", "--inputs", folder, "--output-dir", self.dir / "out")


class ControlFlow(Base):
    def check(self, name, *arguments):
        case = CASES[name]
        compiled = self.compile(case.text(), *arguments)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        for values in case.runs:
            shapes = {n: v.shape if v.size > 3 else v.tolist() for n, v in values.items()}
            with self.subTest(case=name, **shapes):
                result = self.run_bundle(values)
                self.assertEqual(result.returncode, 0, result.stderr)
                for output, wanted in zip(case.outputs, case.oracle(**values)):
                    got = np.load(self.dir / "out" / f"out_{output}.npy")
                    self.assertEqual(got.shape, wanted.shape, output)
                    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5, err_msg=output)


for _name in CASES:
    setattr(ControlFlow, f"test_{_name}", lambda self, name=_name: self.check(name))
    setattr(ControlFlow, f"test_{_name}_unoptimised", lambda self, name=_name: self.check(name, "-O0"))


class Refusals(Base):
    def test_scanned_values_of_different_shapes_end_the_run(self):
        body = graph(node("r", "Range", "none i unit") + node("go", "Identity", "cond"), "i cond".split(), "go r".split())
        case = Case({"trips": ("i64", [])}, constant("none", 0) + constant("unit", 1) + node("y", "Loop", "trips _", body=body), ["y"], None, [])
        self.assertEqual(self.compile(case.text()).returncode, 0)
        result = self.run_bundle({"trips": np.array(3)})
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("'y'", result.stderr)

    def test_pieces_must_make_up_the_whole(self):
        case = CASES["pieces"]
        self.assertEqual(self.compile(case.text()).returncode, 0)
        good = dict(x=floats(4, 3), sizes=np.array([1, 3]), part=np.array(2), at=np.array(0), which=np.array(0))
        for name, value, culprit in (("sizes", [1, 2], "parts"), ("sizes", [1, 4], "parts"), ("sizes", [-1, 5], "parts"), ("part", 0, "chunks"),
                                     ("part", -3, "chunks"), ("at", 4, "row"), ("at", -5, "row"), ("which", 2, "either")):
            with self.subTest(name=name, value=value):
                result = self.run_bundle({**good, name: np.array(value)})
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertRegex(result.stderr, f"'{culprit}[':]")
        self.assertEqual(self.run_bundle(good).returncode, 0)

    def test_a_known_number_of_pieces_must_make_up_the_whole(self):
        case = Case({"x": ("f32", ["n", 3]), "sizes": ("i64", [2])}, node("parts", "SplitToSequence", "x sizes") + constant("first", 0) +
                    node("y", "SequenceAt", "parts first"), ["y"], None, [])
        self.assertEqual(self.compile(case.text()).returncode, 0)
        self.assertEqual(self.run_bundle(dict(x=floats(4, 3), sizes=np.array([1, 3]))).returncode, 0)
        result = self.run_bundle(dict(x=floats(4, 3), sizes=np.array([1, 2])))
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stderr, "'parts[':]")

    def test_pieces_are_no_output(self):
        case = Case({"x": ("f32", ["n", 3])}, node("rows", "SplitToSequence", "x"), ["rows"], None, [])
        compiled = self.compile(case.text())
        self.assertEqual(compiled.returncode, 1)
        self.assertIn("'rows' is a sequence whose length is known at run time only", compiled.stderr)

    def test_carried_types_must_stay(self):
        body = graph(node("n", "Cast", "v", to=1) + node("go", "Identity", "cond"), "i cond v".split(), "go n".split())
        case = Case({"x": ("i64", [2]), "trips": ("i64", [])}, node("y", "Loop", "trips _ x", body=body), ["y"], None, [])
        compiled = self.compile(case.text())
        self.assertEqual(compiled.returncode, 1)
        self.assertIn("node 'y'", compiled.stderr)
        self.assertIn("carried value 0", compiled.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
