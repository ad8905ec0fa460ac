#!/usr/bin/env python3
"""Attention, products and a layer of a language model at real sizes: whole on a card's quads, each of which has its share of what is dealt,
against numpy in f64. Usage: large.py BIN [unittest arguments]; a plain run takes a third of them. Exit 77 where numpy is not installed."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from corsair_rotations import Graph
from dynamic_shapes import BundleTest, np, onnx, softmax
from sampling import sampled

MASKED = -1e9


def attention(q, k, v, causal=False):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(scores + np.triu(np.full(scores.shape[-2:], MASKED), 1) * causal) @ v


def in_bands(q, k, v):
    """Of one head, 512 rows at a time."""
    return np.concatenate([attention(q[..., at:at + 512, :], k, v) for at in range(0, q.shape[-2], 512)], -2)


class Layer:
    """RMSNorm, attention of heads that RoPE turns under a causal mask, and SwiGLU: what exporters write, and numpy's."""

    def __init__(self, rows, width, hidden, heads):
        self.rows, self.width, self.heads, self.size = rows, width, heads, width // heads
        random = np.random.default_rng(2)
        sizes = {"q": (width, width), "k": (width, width), "v": (width, width), "o": (width, width), "gate": (width, hidden),
                 "up": (width, hidden), "down": (hidden, width)}
        self.weights = {name: (random.standard_normal(size) * size[0]**-0.5).astype(np.float32) for name, size in sizes.items()}
        self.scales = [(1 + random.standard_normal(width) / 10).astype(np.float32) for _ in range(2)]
        angles = np.outer(np.arange(rows), 10000.0**(-np.arange(0, self.size, 2) / self.size))
        self.cosine, self.sine = (f(np.concatenate([angles, angles], -1)) for f in (np.cos, np.sin))

    def norm(self, g, x, scale):
        mean = g.op("ReduceMean", g.op("Mul", x, x), axes=[-1], keepdims=1)
        root = g.op("Sqrt", g.op("Add", mean, g.constant(np.float32(1e-5))))
        return g.op("Mul", g.op("Div", x, root), g.constant(scale))

    def product(self, g, x, name):
        return g.op("MatMul", x, g.constant(self.weights[name]))

    def heads_of(self, g, x, name):
        apart = g.op("Reshape", self.product(g, x, name), g.constant([1, self.rows, self.heads, self.size]))
        return g.op("Transpose", apart, perm=[0, 2, 1, 3])

    def turned(self, g, x):
        half = self.size // 2
        quarter = g.op("Concat", g.op("Neg", g.part(x, half, self.size)), g.part(x, 0, half), axis=-1)
        return g.op("Add", g.op("Mul", x, g.constant(self.cosine)), g.op("Mul", quarter, g.constant(self.sine)))

    def write(self, g, x):
        a = self.norm(g, x, self.scales[0])
        q, k, v = (self.heads_of(g, a, name) for name in "qkv")
        scores = g.op("MatMul", self.turned(g, q), g.op("Transpose", self.turned(g, k), perm=[0, 1, 3, 2]))
        scores = g.op("Mul", scores, g.constant(np.float32(self.size**-0.5)))
        masked = g.op("Add", scores, g.constant(np.triu(np.full((self.rows, self.rows), MASKED), 1)))
        mixed = g.op("Transpose", g.op("MatMul", g.op("Softmax", masked, axis=-1), v), perm=[0, 2, 1, 3])
        h = g.op("Add", x, self.product(g, g.op("Reshape", mixed, g.constant([1, self.rows, self.width])), "o"))
        b = self.norm(g, h, self.scales[1])
        gate = self.product(g, b, "gate")
        hidden = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), self.product(g, b, "up"))
        return g.op("Add", h, self.product(g, hidden, "down"))

    def numbers(self, x):
        norm = lambda x, scale: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale
        quarter = lambda x: np.concatenate([-x[..., self.size // 2:], x[..., :self.size // 2]], -1)
        turned = lambda x: x * self.cosine + quarter(x) * self.sine
        apart = lambda x: x.reshape(self.rows, self.heads, self.size).swapaxes(0, 1)
        a = norm(x[0], self.scales[0])
        q, k, v = (apart(a @ self.weights[name]) for name in "qkv")
        mixed = attention(turned(q), turned(k), v, causal=True).swapaxes(0, 1).reshape(self.rows, self.width)
        h = x[0] + mixed @ self.weights["o"]
        b = norm(h, self.scales[1])
        gate = b @ self.weights["gate"]
        return (h + (gate / (1 + np.exp(-gate)) * (b @ self.weights["up"])) @ self.weights["down"])[None]


@sampled(3)
class Large(BundleTest):
    def check(self, graph, y, shapes, oracle, at_least=30, quads=32):
        graph.nodes.append(onnx.node("Identity", y, "y"))
        inputs = [onnx.info(name, onnx.FLOAT, list(shape)) for name, shape in shapes.items()]
        (self.dir / "m.onnx").write_bytes(onnx.model(graph.nodes, inputs, [onnx.info("y", onnx.FLOAT, None)], weights=graph.weights))
        self.compile_file(self.dir / "m.onnx", "-t", f"corsair:quads={quads}", "--require-target", "corsair:100")
        random = np.random.default_rng(1)
        values = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        done = self.run_bundle(values)
        self.assertEqual(done.returncode, 0, done.stderr)
        wanted = oracle(*(value.astype(np.float64) for value in values.values()))
        error = np.load(self.dir / "out/out_y.npy") - wanted
        self.assertGreaterEqual(10 * np.log10((wanted * wanted).sum() / (error * error).sum()), at_least)

    def heads(self, count, rows, size, oracle=attention, **arguments):
        g = Graph()
        scores = g.op("MatMul", "q", g.op("Transpose", "k", perm=[0, 1, 3, 2]))
        scores = g.op("Mul", scores, g.constant(np.float32(size**-0.5)))
        self.check(g, g.op("MatMul", g.op("Softmax", scores, axis=-1), "v"), dict.fromkeys("qkv", (1, count, rows, size)), oracle, **arguments)

    def test_heads_of_512_rows(self):
        self.heads(32, 512, 128)

    def test_heads_of_1024_rows(self):
        self.heads(16, 1024, 64)

    def test_a_head_of_2048_rows(self):
        self.heads(1, 2048, 64)

    def test_a_head_of_8192_rows(self):
        """Half of the weights of a row are below the smallest normal f16, 2^-14: they are f32."""
        self.heads(1, 8192, 64, in_bands)

    def test_a_product(self):
        g, weights = Graph(), (np.random.default_rng(0).standard_normal((1024, 4096)) / 32).astype(np.float32)
        self.check(g, g.op("MatMul", "x", g.constant(weights)), {"x": (4096, 1024)}, lambda x: x @ weights)

    def test_weights_beyond_a_quad(self):
        """57 MB of tiles where ST has 48 MiB: they come in pieces of columns, the last of them ragged."""
        g, random = Graph(), np.random.default_rng(0)
        weights, bias = (random.standard_normal((4096, 13990)) / 64).astype(np.float32), random.standard_normal(13990).astype(np.float32)
        y = g.op("Add", g.op("MatMul", "x", g.constant(weights)), g.constant(bias))
        self.check(g, y, {"x": (70, 4096)}, lambda x: x @ weights + bias, quads=1)

    def test_a_layer(self):
        g, layer = Graph(), Layer(rows=512, width=2048, hidden=5504, heads=16)
        self.check(g, layer.write(g, "x"), {"x": (1, 512, 2048)}, layer.numbers)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
