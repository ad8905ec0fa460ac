#!/usr/bin/env python3
"""Recurrences that an exporter unrolled, step by step in one graph: cells, rows written in place, scans, rings, neighbours. The numbers are
numpy's, and a compile takes time by the number of steps. Usage: recurrences.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import resource
import sys
import unittest

from dynamic_shapes import BIN, BundleTest, np, onnx  # noqa: F401 - the words of the command line are read there
from sampling import LONG

SECONDS = 10  # of a processor that a compile may take
WIDTH = 8


def cpu_seconds():
    """What the commands of this test took so far, however busy the machine is."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Unrolled:
    """A graph of x [2, steps, WIDTH] and the numbers of every value in it."""

    def __init__(self, steps, rows=None):
        self.random, self.nodes, self.weights, self.values = np.random.default_rng(steps), [], {}, {}
        self.steps = steps
        self.values["x"] = self.random.uniform(-1, 1, (2, rows or steps, WIDTH))

    def weight(self, value, dtype=np.float32):
        name = f"w{len(self.weights)}"
        self.weights[name] = self.values[name] = np.asarray(value, dtype)
        return name

    def node(self, operator, inputs, value, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(onnx.node(operator, " ".join(inputs), name, **attributes))
        self.values[name] = value(*(self.values[i] for i in inputs))
        return name

    def add(self, a, b):
        return self.node("Add", [a, b], np.add)

    def mul(self, a, b):
        return self.node("Mul", [a, b], np.multiply)

    def tanh(self, a):
        return self.node("Tanh", [a], np.tanh)

    def sigmoid(self, a):
        return self.node("Sigmoid", [a], sigmoid)

    def product(self, a, w):
        return self.node("MatMul", [a, w], np.matmul)

    def rows(self, a, start, end):
        """Rows start to end of axis 1."""
        numbers = [self.weight([n], np.int64) for n in (start, end, 1)]
        return self.node("Slice", [a, *numbers], lambda v, s, e, axis: v[:, int(s[0]):int(e[0])])

    def joined(self, *parts):
        return self.node("Concat", list(parts), lambda *v: np.concatenate(v, 1), axis=1)

    def summed(self, a):
        return self.node("ReduceSum", [a, self.weight([1], np.int64)], lambda v, axes: v.sum(1, keepdims=True), keepdims=1)


def dense(g, *more):
    return g.weight(g.random.standard_normal((WIDTH, WIDTH)) * 0.3, *more)


def rows_written(steps):
    """y[:, t] = h of each step, as a front end writes it: the rows before, the new one, the rows behind."""
    g = Unrolled(steps)
    w, h = dense(g), g.weight(np.zeros((2, 1, WIDTH)))
    y = g.weight(np.zeros((2, steps, WIDTH)))
    for t in range(steps):
        h = g.tanh(g.add(g.product(g.rows("x", t, t + 1), w), h))
        y = g.joined(*([g.rows(y, 0, t)] if t else []), h, *([g.rows(y, t + 1, steps)] if t + 1 < steps else []))
    return g, y


def rows_added(steps):
    """y[:, t] += h: the row that is replaced is read, too, and so is the whole."""
    g = Unrolled(steps)
    y = "x"
    for t in range(steps):
        h = g.tanh(g.add(g.rows(y, t, t + 1), g.rows(y, (t + 7) % steps, (t + 7) % steps + 1)))
        y = g.joined(*([g.rows(y, 0, t)] if t else []), h, *([g.rows(y, t + 1, steps)] if t + 1 < steps else []))
    return g, y


def gated(steps):
    """A cell of two gates and its state."""
    g = Unrolled(steps)
    ws, h, ys = [dense(g) for _ in range(4)], g.weight(np.zeros((2, 1, WIDTH))), []
    for t in range(steps):
        x = g.rows("x", t, t + 1)
        z, n = (g.add(g.product(x, a), g.product(h, b)) for a, b in (ws[:2], ws[2:]))
        z = g.sigmoid(z)
        h = g.add(h, g.mul(z, g.add(g.tanh(n), g.mul(h, g.weight(-1.0)))))
        ys.append(h)
    return g, g.joined(*ys)


def scan(steps):
    """h = a_t h + x_t."""
    g = Unrolled(steps)
    a, h, ys = g.sigmoid(g.product("x", dense(g))), g.weight(np.zeros((2, 1, WIDTH))), []
    for t in range(steps):
        h = g.add(g.mul(g.rows(a, t, t + 1), h), g.rows("x", t, t + 1))
        ys.append(h)
    return g, g.joined(*ys)


def doubled_scan(steps):
    """The same by shifts of 1, 2, 4 ... rows."""
    g = Unrolled(steps)
    a, b, d = g.sigmoid("x"), "x", 1
    while d < steps:
        late, early = g.rows(a, d, steps), g.rows(b, 0, steps - d)
        b = g.joined(g.rows(b, 0, d), g.add(g.mul(late, early), g.rows(b, d, steps)))
        a = g.joined(g.rows(a, 0, d), g.mul(late, g.rows(a, 0, steps - d)))
        d *= 2
    return g, b


def ring(steps):
    """The last eight rows, of which each step drops one."""
    g = Unrolled(steps)
    w, rows, ys = dense(g), g.weight(np.zeros((2, 8, WIDTH))), []
    for t in range(steps):
        new = g.tanh(g.add(g.product(g.rows("x", t, t + 1), w), g.summed(rows)))
        rows = g.joined(g.rows(rows, 1, 8), new)
        ys.append(g.summed(rows))
    return g, g.joined(*ys)


def neighbours(steps):
    """Each step reads the one before at two places."""
    g = Unrolled(steps, rows=steps + 3)
    y = "x"
    for t in range(steps):
        n = steps + 3 - t
        y = g.tanh(g.add(g.rows(y, 1, n), g.mul(g.rows(y, 0, n - 1), g.weight(0.5))))
    return g, y


class Recurrences(BundleTest):
    def check(self, make, steps):
        g, result = make(steps)
        types = {"float32": onnx.FLOAT, "int64": onnx.INT64}
        weights = [onnx.tensor(n, types[str(v.dtype)], v.shape, raw=v.tobytes()) for n, v in g.weights.items()]
        start = cpu_seconds()
        self.compile_onnx(onnx.model(g.nodes, [onnx.info("x", onnx.FLOAT, g.values["x"].shape)], [onnx.info(result, onnx.FLOAT, None)],
                                     weights=weights))
        self.assertLess(cpu_seconds() - start, SECONDS)
        done = self.run_bundle({"x": g.values["x"].astype(np.float32)})
        self.assertEqual(done.returncode, 0, done.stderr)
        np.testing.assert_allclose(np.load(self.dir / "out" / f"out_{result}.npy"), g.values[result], rtol=1e-4, atol=1e-5)


STEPS = {rows_written: 256, rows_added: 128, gated: 40, scan: 256, doubled_scan: 256, ring: 128, neighbours: 40}
for make, most in STEPS.items():
    setattr(Recurrences, f"test_{make.__name__}", lambda self, make=make, steps=most if LONG else max(24, most // 4): self.check(make, steps))

if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
