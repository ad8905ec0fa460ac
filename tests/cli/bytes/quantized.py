#!/usr/bin/env python3
"""Quantised ONNX graphs against exact integer sums in numpy: equal bits at every level. Usage: quantized.py BIN [unittest
arguments]. Exit 77 where numpy or onnx is not installed."""
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import zipfile

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from dynamic_shapes import BIN, BundleTest  # noqa: E402
from sampling import sample, sampled  # noqa: E402

LEVELS = ["cpu:x86-64-v3", "cpu:host"]
TYPES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8, np.float32: TensorProto.FLOAT, np.int32: TensorProto.INT32}


def convolve(x, w, pads, strides, groups):
    """Integer sums of x (padded with 0) and w."""
    x = np.pad(x.astype(np.int64), [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    w = w.astype(np.int64)
    each, (kh, kw) = w.shape[1], w.shape[2:]
    out = [(x.shape[i + 2] - w.shape[i + 2]) // strides[i] + 1 for i in range(2)]
    y = np.zeros((x.shape[0], w.shape[0], *out), np.int64)
    for o, i, j in np.ndindex(w.shape[0], kh, kw):
        g = o // (w.shape[0] // groups)
        window = x[:, g * each:(g + 1) * each, i:i + strides[0] * out[0]:strides[0], j:j + strides[1] * out[1]:strides[1]]
        y[:, o] += np.einsum("nchw,c->nhw", window, w[o, :, i, j])
    return y


def requantise(real, scale, zero):
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(real / scale) + np.float32(zero), limits.min, limits.max).astype(zero.dtype)


@sampled(2)
class Quantised(BundleTest):
    def model(self, nodes, inputs, outputs, constants):
        value = lambda name, array: helper.make_tensor_value_info(name, TYPES[array.dtype.type], array.shape)
        graph = helper.make_graph(nodes, "g", [value(*i) for i in inputs.items()], [value(*o) for o in outputs.items()],
                                  [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        (self.dir / "m.onnx").write_bytes(model.SerializeToString())

    def check(self, nodes, inputs, wanted, constants, kernel):
        """`kernel`: an algorithm that the graph must have, or None where it has no bytes to multiply."""
        self.model(nodes, inputs, wanted, constants)
        text = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "--emit", "partition", "-o", "-"], capture_output=True,
                              text=True)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertEqual(kernel in text.stdout if kernel else "-quads" not in text.stdout, True, kernel)
        for level in LEVELS:
            self.compile_file(self.dir / "m.onnx", "-t", level)
            result = self.run_bundle(inputs)
            self.assertEqual(result.returncode, 0, result.stderr)
            for name, value in wanted.items():
                got = np.load(next((self.dir / "out").glob(f"*{name}.npy")))
                np.testing.assert_array_equal(got, value, err_msg=f"{name} at {level}")

    def random(self, dtype, shape, seed):
        limits = np.iinfo(dtype)
        return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)

    def weights(self, dtype, shape):
        """Weights and a zero point that leaves them s8."""
        return self.random(dtype, shape, 5), dtype(128 if dtype == np.uint8 else 0)

    def qdq_conv(self, act, weight, zero, channelwise, ic, oc, groups, pads, strides, kernel, size=(9, 11), bias=True):
        x, (w, wz) = self.random(act, (2, ic, *size), 4), self.weights(weight, (oc, ic // groups, *kernel))
        xs, ys, yz = np.float32(0.037), np.float32(0.71), act(3)
        ws = np.linspace(0.01, 0.03, oc, dtype=np.float32) if channelwise else np.float32(0.02)
        b = np.linspace(-2, 2, oc, dtype=np.float32)
        zeros = np.full(oc, wz) if channelwise else wz
        nodes = [helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
                 helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=0),
                 helper.make_node("Conv", ["xf", "wf"] + ["b"] * bias, ["c"], pads=pads, strides=strides, group=groups),
                 helper.make_node("Relu", ["c"], ["y"]), helper.make_node("QuantizeLinear", ["y", "ys", "yz"], ["q"])]
        sums = convolve(x.astype(np.int64) - zero, w.astype(np.int64) - wz, pads, strides, groups)
        column = lambda v: np.reshape(v, (-1, 1, 1)) if np.ndim(v) else v
        real = sums.astype(np.float32) * column(xs * ws)
        if bias:
            real = real + column(b)
        quads = groups == 1 or (ic // groups % 16 == 0 and oc // groups % 16 == 0)
        blocked = oc >= 8
        q = requantise(np.maximum(real, 0), ys, yz)
        constants = {"xs": xs, "xz": act(zero), "w": w, "ws": ws, "wz": zeros, "ys": ys, "yz": yz}
        self.check(nodes, {"x": x}, {"q": q}, {**constants, **({"b": b} if bias else {})},
                   "conv-quads" if quads and blocked else None)

    def test_conv_types(self):
        cases = itertools.product((np.uint8, np.int8), (np.int8, np.uint8), (False, True), (0, 17))
        for act, weight, channelwise, zero in sample(cases, 3):
            with self.subTest(act=act, weight=weight, channelwise=channelwise, zero=zero):
                self.qdq_conv(act, weight, zero, channelwise, 18, 21, 1, [1, 1, 1, 1], [1, 1], (3, 3))

    def test_conv_shapes(self):
        for ic, oc, groups, pads, strides, kernel in [(3, 64, 1, [3, 3, 3, 3], [2, 2], (7, 7)),
                                                      (16, 32, 1, [0, 0, 0, 0], [2, 2], (1, 1)),
                                                      (64, 40, 1, [0, 2, 1, 0], [2, 1], (3, 2)),
                                                      (32, 64, 2, [1, 1, 1, 1], [1, 1], (3, 3)),
                                                      (5, 3, 1, [1, 1, 1, 1], [1, 1], (3, 3))]:
            with self.subTest(ic=ic, oc=oc, groups=groups):
                self.qdq_conv(np.uint8, np.int8, 128, True, ic, oc, groups, pads, strides, kernel, bias=groups == 1)

    def test_dense(self):
        cases = itertools.product((np.uint8, np.int8), (False, True), (False, True), ((5, 37, 19), (1, 64, 100), (33, 130, 70)))
        for act, transposed, channelwise, (m, k, n) in sample(cases, 3):
            with self.subTest(act=act, transposed=transposed, channelwise=channelwise, m=m):
                x, (w, wz) = self.random(act, (m, k), 1), self.weights(np.int8, (n, k) if transposed else (k, n))
                xs, xz, b = np.float32(0.05), act(11), np.linspace(-3, 3, n, dtype=np.float32)
                ws = np.linspace(0.01, 0.02, n, dtype=np.float32) if channelwise else np.float32(0.013)
                zeros = np.full(n, wz) if channelwise else wz
                nodes = [helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
                         helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=0 if transposed else 1),
                         helper.make_node("Gemm", ["xf", "wf", "b"], ["y"], transB=int(transposed))]
                sums = (x.astype(np.int64) - xz) @ (w.T if transposed else w).astype(np.int64)
                wanted = sums.astype(np.float32) * (xs * ws) + b
                self.check(nodes, {"x": x}, {"y": wanted},
                           {"xs": xs, "xz": xz, "w": w, "ws": ws, "wz": zeros, "b": b}, "matmul-quads")

    def test_integer_operators(self):
        x, w = self.random(np.uint8, (2, 7, 45), 1), self.random(np.int8, (45, 50), 2)
        sums = (x.astype(np.int64) - 9) @ w.astype(np.int64)
        self.check([helper.make_node("MatMulInteger", ["x", "w", "xz"], ["y"])], {"x": x}, {"y": sums.astype(np.int32)},
                   {"w": w, "xz": np.uint8(9)}, "matmul-quads")
        scales = {"xs": np.float32(0.03), "ws": np.float32(0.02), "ys": np.float32(0.9)}
        points = {"xz": np.uint8(9), "wz": np.int8(0), "yz": np.uint8(100)}
        names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
        factor = scales["xs"] * scales["ws"] / scales["ys"]
        quantised = requantise(sums.astype(np.float32) * factor, np.float32(1), points["yz"])
        self.check([helper.make_node("QLinearMatMul", names, ["y"])], {"x": x}, {"y": quantised},
                   {"w": w, **scales, **points}, "matmul-quads")
        x, w = self.random(np.uint8, (1, 20, 8, 9), 3), self.random(np.int8, (24, 20, 3, 3), 4)
        sums = convolve(x.astype(np.int64) - 9, w, [1, 1, 1, 1], [1, 1], 1)
        self.check([helper.make_node("ConvInteger", ["x", "w", "xz"], ["y"], pads=[1, 1, 1, 1])], {"x": x},
                   {"y": sums.astype(np.int32)}, {"w": w, "xz": np.uint8(9)}, "conv-quads")
        quantised = requantise(sums.astype(np.float32) * factor, np.float32(1), points["yz"])
        self.check([helper.make_node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1])], {"x": x}, {"y": quantised},
                   {"w": w, **scales, **points}, "conv-quads")

    def test_rows_that_a_run_brings(self):
        w = self.random(np.int8, (46, 50), 2)
        shape = lambda *dims: helper.make_tensor_type_proto(TensorProto.UINT8 if dims[-1] == 46 else TensorProto.INT32, dims)
        graph = helper.make_graph([helper.make_node("MatMulInteger", ["x", "w", "xz"], ["y"])], "g",
                                  [helper.make_value_info("x", shape("b", "n", 46))],
                                  [helper.make_value_info("y", shape("b", "n", 50))],
                                  [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.asarray(np.uint8(9)), "xz")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        (self.dir / "m.onnx").write_bytes(model.SerializeToString())
        for level in LEVELS:
            self.compile_file(self.dir / "m.onnx", "-t", level)
            for b, n in [(1, 1), (2, 3), (3, 33), (1, 14)]:
                x = self.random(np.uint8, (b, n, 46), n)
                result = self.run_bundle({"x": x})
                self.assertEqual(result.returncode, 0, result.stderr)
                np.testing.assert_array_equal(np.load(next((self.dir / "out").glob("*y.npy"))),
                                              (x.astype(np.int64) - 9) @ w.astype(np.int64))

    def test_max_pools(self):
        """Between a dequantisation and the same quantisation the bytes are pooled, else the floats are."""
        for act, scale in itertools.product((np.uint8, np.int8), (0.3, 0.1, 1e-6)):
            with self.subTest(act=act, scale=scale):
                x, s, z = self.random(act, (1, 20, 8, 10), 1), np.float32(scale), act(5)
                nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xf"]),
                         helper.make_node("MaxPool", ["xf"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
                         helper.make_node("QuantizeLinear", ["p", "s", "z"], ["same"]),
                         helper.make_node("QuantizeLinear", ["p", "t", "z"], ["other"])]
                pooled = x.reshape(1, 20, 4, 2, 5, 2).max(axis=(3, 5))
                real = (pooled.astype(np.int32) - z).astype(np.float32) * s
                self.check(nodes, {"x": x}, {"same": pooled, "other": requantise(real, s * 2, z)},
                           {"s": s, "z": z, "t": np.float32(s * 2)}, None)

    def test_weights_that_do_not_fit(self):
        """s8 without their zero point: what is left of it counts the sums of rows."""
        x, w = self.random(np.uint8, (4, 30), 1), self.random(np.uint8, (30, 20), 2)
        sums = x.astype(np.int64) @ (w.astype(np.int64) - 40)
        self.check([helper.make_node("MatMulInteger", ["x", "w", "", "wz"], ["y"])], {"x": x},
                   {"y": sums.astype(np.int32)}, {"w": w, "wz": np.uint8(40)}, "matmul-quads")

    def test_default_levels(self):
        """Products of bytes bring code with dot products of bytes, whether a run or the model has the zero point."""
        w, level = self.random(np.int8, (48, 64), 2), "code/cpu/x86-64-v4-vnni/kernels.so"
        nodes = [helper.make_node("MatMulInteger", ["x", "w", "xz"], ["y"])]
        x, y = np.zeros((9, 48), np.uint8), np.zeros((9, 64), np.int32)
        for of_run in (True, False):
            zero = {"xz": np.uint8(3)}
            self.model(nodes, {"x": x, **(zero if of_run else {})}, {"y": y}, {"w": w, **({} if of_run else zero)})
            temps = self.dir / f"temps{of_run}"
            subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-q", "-o", self.dir / "m.bundle", "--save-temps", temps], check=True)
            with zipfile.ZipFile(self.dir / "m.bundle") as bundle:
                self.assertIn(level, bundle.namelist())
            for name, found in ((".", True), ("x86-64-v4", False)):
                self.assertEqual(any("vpdpbusd" in path.read_text() for path in (temps / name).rglob("*.s")), found, name)

    def test_tiles_where_a_bundle_asks_for_them(self):
        """Code of tiles for the level that has them, and not by default; a text keeps what it was made for."""
        x, w = self.random(np.uint8, (30, 70), 1), self.random(np.int8, (70, 50), 2)
        wanted = (x.astype(np.int64) - 9) @ w.astype(np.int64)
        self.model([helper.make_node("MatMulInteger", ["x", "w", "xz"], ["y"])], {"x": x}, {"y": wanted.astype(np.int32)}, {"w": w, "xz": np.uint8(9)})
        asked = ["-t", "cpu:sapphirerapids+x86-64-v4-vnni+x86-64-v2"]

        def compiled(model, *flags):
            temps = self.dir / "temps"
            shutil.rmtree(temps, ignore_errors=True)
            subprocess.run([BIN / "dmxc", self.dir / model, "-q", "-o", self.dir / "m.bundle", "--save-temps", temps, *flags], check=True)
            result = self.run_bundle({"x": x})
            self.assertEqual(result.returncode, 0, result.stderr)
            np.testing.assert_array_equal(np.load(next((self.dir / "out").glob("*y.npy"))), wanted)
            levels = {path.parent.name: path.read_text() for path in temps.rglob("*.s")}
            self.assertFalse([level for level, text in levels.items() if "tdpbusd" in text and level != "sapphirerapids"])
            return "tdpbusd" in levels.get("sapphirerapids", "")

        def text(phase, *flags):
            subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-q", "--emit", phase, "-o", self.dir / "m.mlir", *flags], check=True)
            return (self.dir / "m.mlir").read_text()

        self.assertTrue(compiled("m.onnx", *asked))
        self.assertFalse(compiled("m.onnx"))
        for phase in ("partition", "memory"):
            self.assertIn('units = ["amx"]', text(phase, *asked))
            self.assertTrue(compiled("m.mlir", "--from", phase, *asked), phase)
            self.assertNotIn("units", text(phase))
            self.assertFalse(compiled("m.mlir", "--from", phase, *asked), phase)
        changed = re.sub(r"scratch = \d+ : i64, ", "", text("partition", *asked)).replace('units = ["amx"]', 'units = ["npu"]')
        (self.dir / "m.mlir").write_text(changed)
        refused = subprocess.run([BIN / "dmxc", self.dir / "m.mlir", "--from", "partition", "-o", self.dir / "m.bundle", *asked],
                                 capture_output=True, text=True)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("of its strategy is", refused.stderr)

    def test_weights_that_a_run_brings(self):
        x, w = self.random(np.uint8, (4, 30), 1), self.random(np.int8, (30, 20), 2)
        self.check([helper.make_node("MatMulInteger", ["x", "w"], ["y"])], {"x": x, "w": w},
                   {"y": x.astype(np.int32) @ w.astype(np.int32)}, {}, None)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
