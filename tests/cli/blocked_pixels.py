#!/usr/bin/env python3
"""What moves pixels between convolutions, against numpy: their blocked layout is handed on, with channels that fill their last block and
channels that do not. Usage: blocked_pixels.py BIN [unittest arguments]. Exit 77 where numpy or onnx is not installed."""
import sys
import unittest

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

from dynamic_shapes import BundleTest


class Chain:
    """A 1x1 convolution, moves of pixels, another one; `apply` is what numpy makes of it."""

    def __init__(self, random, channels, open_dims):
        self.random, self.nodes, self.constants, self.steps = random, [], {}, []
        self.open, self.channels, self.value = open_dims, channels, "x"

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def node(self, op, *constants, **attributes):
        result = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [self.value, *map(self.constant, constants)], [result], **attributes))
        self.value = result

    def conv(self, channels_in):
        w = self.random.standard_normal((self.channels, channels_in, 1, 1)).astype(np.float32)
        self.node("Conv", w)
        self.steps.append(lambda x: np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0].astype(np.float64)))

    def gather(self, axis, extent):
        index = self.random.integers(-extent, extent, self.random.integers(6, 12))
        self.node("Gather", index, axis=axis)
        self.steps.append(lambda x: np.take(x, index, axis))

    def pad(self, axis, mode):
        low, high = self.random.integers(0, 3, 2)
        pads = np.zeros((2, 4), np.int64)
        pads[:, axis] = low, high
        self.node("Pad", pads.ravel(), *([np.float32(1.5)] if mode == "constant" else []), mode=mode)
        how = {"constant_values": 1.5} if mode == "constant" else {}
        self.steps.append(lambda x: np.pad(x, [tuple(p) for p in pads.T], mode, **how))

    def slice(self, axis):
        start, step = self.random.integers(0, 2), int(self.random.choice([1, 2, -1]))
        start, end = (start, 1 << 40) if step > 0 else (-1 - start, -(1 << 40))
        self.node("Slice", np.int64([start]), np.int64([end]), np.int64([axis]), np.int64([step]))
        self.steps.append(lambda x: x[(slice(None),) * axis + (slice(start, end if step > 0 else None, step),)])

    def double(self):
        """Nearest neighbours at twice the size, as an exporter writes it."""
        self.nodes.append(helper.make_node("Resize", [self.value, "", self.constant(np.float32([1, 1, 2, 2]))], [f"v{len(self.nodes)}"],
                                           mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"))
        self.value = f"v{len(self.nodes) - 1}"
        self.steps.append(lambda x: x.repeat(2, 2).repeat(2, 3))

    def apply(self, x):
        for step in self.steps:
            x = step(x)
        return x

    def model(self, inner):
        self.nodes.append(helper.make_node("Identity", [self.value], ["y"]))
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", inner, "h", "w"] if self.open else [2, inner, 25, 26])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                                  [numpy_helper.from_array(v, n) for n, v in self.constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


class BlockedPixels(BundleTest):
    def check(self, seed, channels, open_dims, level):
        random = np.random.default_rng(seed)
        chain = Chain(random, channels, open_dims)
        inner = int(random.choice([3, 16, 20]))
        chain.conv(inner)
        for _ in range(random.integers(1, 4)):
            axis = int(random.integers(2, 4))
            move = random.choice(["gather", "constant", "reflect", "edge", "slice", "double", "channels"])
            if move == "gather":
                chain.gather(axis, 3)  # of every size here three are left
            elif move == "slice":
                chain.slice(axis)
            elif move == "double":
                chain.double()
            elif move == "channels":  # which leaves the layout
                chain.gather(1, channels)
                chain.conv(len(chain.constants[f"c{len(chain.constants) - 1}"]))
            else:
                chain.pad(axis, move)
        chain.conv(channels)
        (self.dir / "m.onnx").write_bytes(chain.model(inner))
        self.compile_file(self.dir / "m.onnx", "-t", f"cpu:{level}")
        for n, h, w in ((2, 25, 26), (1, 24, 33)) if open_dims else ((2, 25, 26),):
            with self.subTest(seed=seed, channels=channels, open=open_dims, level=level, size=(n, h, w)):
                x = random.standard_normal((n, inner, h, w)).astype(np.float32)
                done = self.run_bundle({"x": x})
                self.assertEqual(done.returncode, 0, done.stderr)
                wanted = chain.apply(x.astype(np.float64))
                found = np.load(self.dir / "out" / "out_y.npy")
                self.assertEqual(found.shape, wanted.shape)
                np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * max(1, np.abs(wanted).max(initial=0)))

    def test_chains(self):
        for seed in range(24):
            self.check(seed, (8, 16, 20, 33)[seed % 4], seed % 3 == 0, ("x86-64-v3", "host")[seed // 4 % 2])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
