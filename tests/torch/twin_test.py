#!/usr/bin/env python3
"""The same network from ONNX, from an exported program as torch.export writes it, from the same program after
run_decompositions(), and from ONNX operators in torch-dialect text: equal kernels, equal memory, equal results.
Usage: twin_test.py BIN LIBDMXRT FILES [unittest arguments]. Exit 77 where numpy is not installed."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fuzz"))
import make_corpus as onnx  # writes ONNX models without the onnx package
import pt2file
from pt2_case import BIN, FILES, Pt2, np, run

OPSET = 23


def value(name):
    return {"as_tensor": {"name": name}}


def ints(*numbers):
    return {"as_ints": list(numbers)}


def flag(given):
    return {"as_bool": given}


class Network:
    """Weights, inputs, and the nodes of each form; the last node's result is the output."""

    def __init__(self, inputs, weights, seed=3):
        random = np.random.default_rng(seed)
        self.inputs = {name: list(shape) for name, shape in inputs.items()}
        self.weights = {name: random.uniform(0.1 if len(shape) == 1 else -0.3, 0.3, shape).astype(np.float32) for name, shape in weights.items()}
        self.nodes, self.numbers = [], 0

    # --- ONNX ---------------------------------------------------------------------------------------------------------
    def constant(self, array):
        self.numbers += 1
        self.weights[f"k{self.numbers}"] = array
        return f"k{self.numbers}"

    def shape(self, *dims):
        return self.constant(np.array(dims, np.int64))

    def op(self, op, operands, results, shape, **attributes):
        """Appends a node whose results all have this shape."""
        self.nodes.append((op, operands.split(), results.split(), shape, attributes))

    def write_onnx(self, path):
        used = {name for _, operands, _, _, _ in self.nodes for name in operands}
        weights = [onnx.tensor(name, onnx.INT64 if array.dtype == np.int64 else onnx.FLOAT, array.shape, raw=array.tobytes())
                   for name, array in self.weights.items() if name in used]
        nodes = [onnx.node(op, " ".join(operands), " ".join(results), **attributes) for op, operands, results, _, attributes in self.nodes]
        inputs = [onnx.info(name, onnx.FLOAT, shape) for name, shape in self.inputs.items()]
        path.write_bytes(onnx.model(nodes, inputs, [onnx.info(self.nodes[-1][2][0], onnx.FLOAT, None)], opset=OPSET, weights=weights))

    def write_text(self, path):
        kinds = {np.dtype(np.float32): "f32", np.dtype(np.int64): "si64"}
        types = {name: f"!torch.vtensor<[{','.join(map(str, array.shape))}],{kinds[array.dtype]}>" for name, array in self.weights.items()}

        def typed(shape):
            return f"!torch.vtensor<[{','.join(map(str, shape))}],f32>"

        def attribute(given):
            if isinstance(given, list):
                return "[" + ", ".join(map(attribute, given)) + "]"
            return f"{given} : si64" if isinstance(given, int) else f'"{given}"' if isinstance(given, str) else f"{given:e} : f32"
        types.update({name: typed(shape) for name, shape in self.inputs.items()})
        names = {name: name for name in types}
        lines = []
        for name, array in self.weights.items():
            tensor = f'{"x".join(map(str, array.shape))}x{kinds[array.dtype]}'
            lines.append(f'%{name} = torch.vtensor.literal(dense<"0x{array.tobytes().hex().upper()}"> : tensor<{tensor}>) : {types[name]}')
        for i, (op, operands, results, shape, attributes) in enumerate(self.nodes):
            given = ", ".join(f"torch.onnx.{name} = {attribute(a)}" for name, a in attributes.items())
            count = f":{len(results)}" if len(results) > 1 else ""
            lines.append(f'%n{i}{count} = torch.operator "onnx.{op}"({", ".join("%" + names[n] for n in operands)}) '
                         f'{{{given}}} : ({", ".join(types[n] for n in operands)}) -> ({", ".join([typed(shape)] * len(results))})')
            for j, result in enumerate(results):
                names[result], types[result] = f"n{i}#{j}" if count else f"n{i}", typed(shape)
        inputs = ", ".join(f"%{name}: {typed(shape)}" for name, shape in self.inputs.items())
        last = typed(self.nodes[-1][3])
        path.write_text(f"func.func @main({inputs}) -> {last} attributes {{torch.onnx_meta.opset_version = {OPSET} : si64}} {{\n  "
                        + "\n  ".join(lines) + f"\n  return %n{len(self.nodes) - 1} : {last}\n}}\n")

    # --- torch --------------------------------------------------------------------------------------------------------
    def program(self, calls):
        """calls: (overload, result or list of results, arguments); text is the name of a tensor."""
        program, used = pt2file.Program(), set()
        given = [(target, results, {n: value(a) if isinstance(a, str) else a for n, a in arguments.items()})
                 for target, results, arguments in calls]
        for _, _, arguments in given:
            used |= {a["as_tensor"]["name"] for a in arguments.values() if "as_tensor" in a}
        for name, array in self.weights.items():
            if name in used:
                program.tensor(name, "parameter", "f32", list(array.shape), array.tobytes())
        for name, shape in self.inputs.items():
            program.input(name, "f32", [f"Symbol('{d}', positive=True, integer=True)" if isinstance(d, str) else d for d in shape])
        for target, results, arguments in given:
            listed = isinstance(results, list)
            outputs = [{"as_tensors": [{"name": r} for r in results]}] if listed else [value(r) for r in results.split()]
            program.node("torch.ops.aten." + target, arguments, outputs)
        program.output(calls[-1][1].split()[0])
        return program


def linear(x, weight, bias, result):
    return ("linear.default", result, {"input": x, "weight": weight, "bias": bias})


def decomposed_linear(x, weight, bias, result):
    return [("permute.default", result + "_w", {"self": weight, "dims": ints(1, 0)}),
            ("addmm.default", result, {"self": bias, "mat1": x, "mat2": result + "_w"})]


def mlp(batch=5):
    n = Network({"x": (batch, 24)}, {"w1": (32, 24), "b1": (32,), "w2": (10, 32), "b2": (10,)})
    n.op("Gemm", "x w1 b1", "h", (batch, 32), transB=1)
    n.op("Relu", "h", "r", (batch, 32))
    n.op("Gemm", "r w2 b2", "y", (batch, 10), transB=1)
    relu = ("relu.default", "r", {"self": "h"})
    return n, {"training": [linear("x", "w1", "b1", "h"), relu, linear("r", "w2", "b2", "y")],
               "core": [*decomposed_linear("x", "w1", "b1", "h"), relu, *decomposed_linear("r", "w2", "b2", "y")]}


def convolutions():
    """Convolution, batch norm, pools, groups, a linear layer."""
    n = Network({"x": (2, 3, 16, 16)}, {"cw": (8, 3, 3, 3), "cb": (8,), "bw": (8,), "bb": (8,), "bm": (8,), "bv": (8,), "dw": (16, 4, 3, 3),
                                        "lw": (10, 16), "lb": (10,)})
    n.op("Conv", "x cw cb", "c", (2, 8, 16, 16), pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    n.op("BatchNormalization", "c bw bb bm bv", "b", (2, 8, 16, 16), epsilon=1e-5)
    n.op("Relu", "b", "r", (2, 8, 16, 16))
    n.op("MaxPool", "r", "m", (2, 8, 8, 8), kernel_shape=[2, 2], strides=[2, 2])
    n.op("Conv", "m dw", "d", (2, 16, 4, 4), pads=[1, 1, 1, 1], strides=[2, 2], group=2, kernel_shape=[3, 3])
    n.op("Relu", "d", "s", (2, 16, 4, 4))
    n.op("GlobalAveragePool", "s", "g", (2, 16, 1, 1))
    n.op("Flatten", "g", "f", (2, 16))
    n.op("Gemm", "f lw lb", "y", (2, 10), transB=1)
    norm = {"input": "c", "weight": "bw", "bias": "bb", "running_mean": "bm", "running_var": "bv", "momentum": {"as_float": 0.1},
            "eps": {"as_float": 1e-5}}
    relus = [("relu.default", "r", {"self": "b"}), ("relu.default", "s", {"self": "d"})]
    training = [("conv2d.default", "c", {"input": "x", "weight": "cw", "bias": "cb", "padding": ints(1, 1)}),
                ("batch_norm.default", "b", {**norm, "training": flag(False), "cudnn_enabled": flag(True)}), relus[0],
                ("max_pool2d.default", "m", {"self": "r", "kernel_size": ints(2, 2)}),
                ("conv2d.default", "d", {"input": "m", "weight": "dw", "stride": ints(2, 2), "padding": ints(1, 1), "groups": {"as_int": 2}}),
                relus[1], ("adaptive_avg_pool2d.default", "g", {"self": "s", "output_size": ints(1, 1)}),
                ("flatten.using_ints", "f", {"self": "g", "start_dim": {"as_int": 1}}), linear("f", "lw", "lb", "y")]

    def convolution(x, weight, bias, result, stride, groups):
        return ("convolution.default", result,
                {"input": x, "weight": weight, "bias": bias, "stride": ints(stride, stride), "padding": ints(1, 1), "dilation": ints(1, 1),
                 "transposed": flag(False), "output_padding": ints(0, 0), "groups": {"as_int": groups}})
    core = [convolution("x", "cw", "cb", "c", 1, 1), ("_native_batch_norm_legit_no_training.default", "b b_unused_1 b_unused_2", norm), relus[0],
            ("max_pool2d_with_indices.default", "m m_unused_1", {"self": "r", "kernel_size": ints(2, 2), "stride": ints(2, 2)}),
            convolution("m", "dw", {"as_none": True}, "d", 2, 2), relus[1],
            ("mean.dim", "g", {"self": "s", "dim": ints(-1, -2), "keepdim": flag(True)}),
            ("view.default", "f", {"self": "g", "size": ints(2, 16)}), *decomposed_linear("f", "lw", "lb", "y")]
    return n, {"training": training, "core": core}


def transformer(attention):
    """A block with causal attention of two heads; ONNX has an operator for it, or the products and a mask."""
    n = Network({"x": (2, 6, 16)}, {"g1": (16,), "e1": (16,), "aw": (48, 16), "ab": (48,), "pw": (16, 16), "pb": (16,), "g2": (16,), "e2": (16,),
                                    "fw": (64, 16), "fb": (64,), "ow": (16, 64), "ob": (16,)})
    mask = np.triu(np.full((6, 6), -np.inf, np.float32), 1)
    n.weights["mask"] = mask

    def dense(x, weight, bias, result, rows):
        n.op("MatMul", f"{x} {n.constant(np.ascontiguousarray(n.weights[weight].T))}", result + "_p", (2, 6, rows))
        n.op("Add", f"{result}_p {bias}", result, (2, 6, rows))

    def head(x, result, order, shape):
        n.op("Reshape", f"{x} {n.shape(2, 6, 2, 8)}", result + "_s", (2, 6, 2, 8))
        n.op("Transpose", result + "_s", result, shape, perm=order)
    n.op("LayerNormalization", "x g1 e1", "n1", (2, 6, 16), axis=-1, epsilon=1e-5)
    dense("n1", "aw", "ab", "qkv", 48)
    n.op("Split", "qkv", "q k v", (2, 6, 16), axis=2, num_outputs=3)
    head("q", "qh", [0, 2, 1, 3], (2, 2, 6, 8))
    head("v", "vh", [0, 2, 1, 3], (2, 2, 6, 8))
    if attention:
        head("k", "kh", [0, 2, 1, 3], (2, 2, 6, 8))
        n.op("Attention", "qh kh vh", "o", (2, 2, 6, 8), is_causal=1)
    else:
        head("k", "kh", [0, 2, 3, 1], (2, 2, 8, 6))
        root = n.constant(np.array([8 ** -0.25], np.float32))
        n.op("Mul", f"qh {root}", "qs", (2, 2, 6, 8))
        n.op("Mul", f"kh {root}", "ks", (2, 2, 8, 6))
        n.op("MatMul", "qs ks", "scores", (2, 2, 6, 6))
        n.op("Add", "scores mask", "masked", (2, 2, 6, 6))
        n.op("Softmax", "masked", "p", (2, 2, 6, 6), axis=-1)
        n.op("MatMul", "p vh", "o", (2, 2, 6, 8))
    n.op("Transpose", "o", "ot", (2, 6, 2, 8), perm=[0, 2, 1, 3])
    n.op("Reshape", f"ot {n.shape(2, 6, 16)}", "or", (2, 6, 16))
    dense("or", "pw", "pb", "a", 16)
    n.op("Add", "x a", "h", (2, 6, 16))
    n.op("LayerNormalization", "h g2 e2", "n2", (2, 6, 16), axis=-1, epsilon=1e-5)
    dense("n2", "fw", "fb", "f", 64)
    n.op("Gelu", "f", "ge", (2, 6, 64), approximate="tanh")
    dense("ge", "ow", "ob", "m", 16)
    n.op("Add", "h m", "y", (2, 6, 16))
    return n, {"training": exported_transformer(), "core": decomposed_transformer()}


GELU = ("gelu.default", "ge", {"self": "f", "approximate": {"as_string": "tanh"}})


def exported_transformer():
    def head(x):
        return [("view.default", x + "s", {"self": x, "size": ints(2, 6, 2, 8)}),
                ("transpose.int", x + "h", {"self": x + "s", "dim0": {"as_int": 1}, "dim1": {"as_int": 2}})]

    def norm(x, weight, bias, result):
        return ("layer_norm.default", result, {"input": x, "normalized_shape": ints(16), "weight": weight, "bias": bias})
    return [norm("x", "g1", "e1", "n1"), linear("n1", "aw", "ab", "qkv"),
            ("split.Tensor", ["q", "k", "v"], {"self": "qkv", "split_size": {"as_int": 16}, "dim": {"as_int": 2}}), *head("q"), *head("k"), *head("v"),
            ("scaled_dot_product_attention.default", "o", {"query": "qh", "key": "kh", "value": "vh", "is_causal": flag(True)}),
            ("transpose.int", "ot", {"self": "o", "dim0": {"as_int": 1}, "dim1": {"as_int": 2}}),
            ("reshape.default", "or", {"self": "ot", "shape": ints(2, 6, 16)}), linear("or", "pw", "pb", "a"),
            ("add.Tensor", "h", {"self": "x", "other": "a"}), norm("h", "g2", "e2", "n2"), linear("n2", "fw", "fb", "f"), GELU,
            linear("ge", "ow", "ob", "m"), ("add.Tensor", "y", {"self": "h", "other": "m"})]


def decomposed_transformer():
    root = {"as_float": 8 ** -0.25}

    def view(x, result, *shape):
        return ("view.default", result, {"self": x, "size": ints(*shape)})

    def permute(x, result, *order):
        return ("permute.default", result, {"self": x, "dims": ints(*order)})

    def norm(x, weight, bias, result):
        return ("native_layer_norm.default", f"{result} {result}_unused_1 {result}_unused_2",
                {"input": x, "normalized_shape": ints(16), "weight": weight, "bias": bias, "eps": {"as_float": 1e-5}})

    def dense(x, weight, bias, result, columns, rows):
        return [view(x, result + "_x", 12, columns), *decomposed_linear(result + "_x", weight, bias, result + "_y"), view(result + "_y", result, 2, 6, rows)]

    def folded(x, result, *shape):
        """As operands of bmm come: expanded, cloned, seen with one batch axis."""
        return [("expand.default", result + "_e", {"self": x, "size": ints(2, 2, *shape)}),
                ("clone.default", result + "_c", {"self": result + "_e", "memory_format": {"as_memory_format": 1}}), view(result + "_c", result, 4, *shape)]
    heads = [call for x in "qkv" for call in (view(x, x + "s", 2, 6, 2, 8), permute(x + "s", x + "h", 0, 2, 1, 3))]
    return [norm("x", "g1", "e1", "n1"), *dense("n1", "aw", "ab", "qkv", 16, 48),
            ("split_with_sizes.default", ["q", "k", "v"], {"self": "qkv", "split_sizes": ints(16, 16, 16), "dim": {"as_int": 2}}), *heads,
            ("mul.Scalar", "qm", {"self": "qh", "other": root}), permute("kh", "kt", 0, 1, 3, 2), ("mul.Scalar", "km", {"self": "kt", "other": root}),
            *folded("qm", "qb", 6, 8), *folded("km", "kb", 8, 6), ("bmm.default", "sb", {"self": "qb", "mat2": "kb"}), view("sb", "s", 2, 2, 6, 6),
            ("add.Tensor", "sm", {"self": "s", "other": "mask"}),
            ("_softmax.default", "p", {"self": "sm", "dim": {"as_int": -1}, "half_to_float": flag(False)}), *folded("p", "pbm", 6, 6), *folded("vh", "vb", 6, 8),
            ("bmm.default", "ob3", {"self": "pbm", "mat2": "vb"}), view("ob3", "o", 2, 2, 6, 8), permute("o", "ot", 0, 2, 1, 3),
            ("clone.default", "oc", {"self": "ot", "memory_format": {"as_memory_format": 0}}), view("oc", "or", 2, 6, 16),
            *dense("or", "pw", "pb", "a", 16, 16), ("add.Tensor", "h", {"self": "x", "other": "a"}), norm("h", "g2", "e2", "n2"),
            *dense("n2", "fw", "fb", "f", 16, 64), GELU, *dense("ge", "ow", "ob", "m", 64, 16), ("add.Tensor", "y", {"self": "h", "other": "m"})]


class Twins(Pt2):
    def bundle(self, model, inputs):
        """The number of kernels, the bytes of the arenas, and the results."""
        self.assertNotIn("warning", self.compile(model))
        tasks, memory = (json.loads(run(BIN / "dmx-inspect", self.dir / "m.bundle", "--what", what, "--json").stdout) for what in ("tasks", "memory"))
        results = list(self.run_bundle(inputs).values())
        return len(tasks["tasks of 'main'"]), [arena["bytes"] for arena in memory.get("arenas of 'main'", [])], results

    def same(self, got, expected):
        self.assertEqual(got[:2], expected[:2], "kernels and bytes of arenas")
        for values, wanted in zip(got[2], expected[2], strict=True):
            np.testing.assert_allclose(values, wanted, rtol=1e-5, atol=1e-6)

    def check(self, network, forms, batch=5):
        random = np.random.default_rng(5)
        inputs = {name: random.standard_normal([batch if isinstance(d, str) else d for d in shape]).astype(np.float32)
                  for name, shape in network.inputs.items()}
        network.write_onnx(self.dir / "m.onnx")
        expected = self.bundle(self.dir / "m.onnx", inputs)
        self.assertGreater(expected[0], 1)
        models = {}
        for name, calls in forms.items():
            models[name] = self.dir / f"{name}.pt2"
            network.program(calls).write(models[name])
        if not any(isinstance(d, str) for shape in network.inputs.values() for d in shape):
            models["text"] = self.dir / "text.mlir"
            network.write_text(models["text"])
        for name, model in models.items():
            with self.subTest(form=name):
                renamed = dict(zip(("arg0",), inputs.values())) if name == "text" else inputs
                self.same(self.bundle(model, renamed), expected)

    def test_mlp(self):
        self.check(*mlp())

    def test_mlp_with_an_open_batch(self):
        self.check(*mlp("s0"))

    def test_convolutions(self):
        self.check(*convolutions())

    def test_transformer(self):
        self.check(*transformer(attention=False))

    def test_transformer_with_the_attention_operator(self):
        self.check(*transformer(attention=True))

    def test_fixtures_in_both_dialects(self):
        """The same model as the exporter writes it and after run_decompositions()."""
        if not FILES.is_dir():
            self.skipTest(f"{FILES} is not there")
        for name in ("mlp", "cnn", "gptblock", "dynamic_batch"):
            with self.subTest(model=name):
                inputs = self.inputs_of(FILES / f"gen/{name}_core")
                first, second = (self.bundle(FILES / f"gen/{name}_{form}.pt2", inputs) for form in ("training", "core"))
                self.same(first, second)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
