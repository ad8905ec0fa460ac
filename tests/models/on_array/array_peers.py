#!/usr/bin/env python3
"""Writes array_peers.npz: what other implementations make of fixtures with the arithmetic of the array, and how often they multiply.

Usage: array_peers.py, in an environment with torch, onnx and onnxruntime (environments.py). Of an ONNX file ONNX Runtime runs it with
both operands of each MatMul, Gemm and Conv cast to bf16, and the product in f32; of a .pt2 file torch does so, op by op. Files of bf16
and of bytes are computed as they are: their fixtures have the framework's or ONNX Runtime's results already, and get the count alone."""

import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1]))
import fixtures
import judge

FILE = pathlib.Path(__file__).resolve().parent / "array_peers.npz"
# By network: exports of torch's and ONNX's ways, in f32, f16, bf16 and bytes, with open sizes but for tiny-cache.
FIXTURES = """tiny-mlp.dynamo18 tiny-mlp.fp16 tiny-mlp.pt2-bf16 tiny-mlp.q-qdq tiny-cnn.script17 tiny-upsample.script17 tiny-attention.pt2-dyn
tiny-attention.pt2-bf16 tiny-bert.dynamo18 tiny-gpt2.script17 tiny-llama.script17 tiny-qwen3.dynamo18 tiny-t5.script17
tiny-gemma2.pt2-dyn tiny-cache.pt2-core-static""".split()
ONNX_PRODUCTS = ("MatMul", "Gemm", "Conv", "ConvTranspose")


class OnnxPeer:
    def __init__(self, file):
        import onnx
        import onnxruntime

        model = onnx.shape_inference.infer_shapes(onnx.load(file))
        self.types = {value.name: value.type.tensor_type.elem_type for value in [*model.graph.value_info, *model.graph.input, *model.graph.output]}
        self.types |= {each.name: each.data_type for each in model.graph.initializer}
        self.outputs, self.products, nodes = [value.name for value in model.graph.output], [], []
        for node in model.graph.node:
            nodes += self.rounded(onnx.helper, node) if node.op_type in ONNX_PRODUCTS and not node.domain else [node]
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        for name in {name for product in self.products for name in product[1:]} - set(self.outputs):
            model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def rounded(self, helper, node):
        """The node with operands that are bf16, in f32; its result is what it was."""
        made, own = [], self.types.get(node.output[0]) or self.types.get(node.input[0]) or 1
        if own not in (1, 10):
            return [node]
        for place, name in enumerate(list(node.input)):
            for to in ((16, 1) if place < 2 else (1,)):
                made.append(helper.make_node("Cast", [name], [f"{node.output[0]}/{place}/{to}"], to=to))
                name = made[-1].output[0]
            node.input[place] = name
        self.products.append((node.op_type, node.input[0], node.input[1], f"{node.output[0]}/f32"))
        made += [node, helper.make_node("Cast", [f"{node.output[0]}/f32"], [node.output[0]], to=own)]
        node.output[0] += "/f32"
        return made

    def run(self, inputs):
        names = [value.name for value in self.session.get_outputs()]
        values = dict(zip(names, self.session.run(names, {value.name: inputs[value.name] for value in self.session.get_inputs()})))
        macs = 0
        for kind, left, weights, result in self.products:
            if kind == "ConvTranspose":  # each number of the image meets all weights of its channel
                macs += values[left].size * int(np.prod(values[weights].shape[1:]))
                continue
            terms = values[weights].shape[1:] if kind == "Conv" else values[weights].shape[-2:][:1]
            if kind == "Gemm":  # the terms are those of the first operand that its result does not have
                terms = (values[weights].size // values[result].shape[1],)
            macs += values[result].size * int(np.prod(terms))
        return [values[name] for name in self.outputs], macs


def torch_peer(file):
    import torch

    aten = torch.ops.aten
    program = torch.export.load(file)

    class Peer(torch.fx.Interpreter):
        macs = 0

        def product(self, compute, a, b, terms, *rest):
            own = a.dtype
            rounded = [value.to(torch.bfloat16).float() for value in (a, b)]
            result = compute(*rounded, *(value.float() if isinstance(value, torch.Tensor) else value for value in rest))
            self.macs += result.numel() * terms
            return result.to(own)

        def attention(self, q, k, v, mask=None, dropout=0.0, is_causal=False, scale=None, enable_gqa=False):
            if enable_gqa:
                k, v = (value.repeat_interleave(q.shape[-3] // value.shape[-3], -3) for value in (k, v))
            scores = self.product(torch.matmul, q, k.transpose(-1, -2), q.shape[-1]) * (q.shape[-1] ** -0.5 if scale is None else scale)
            if is_causal:
                mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
            return self.product(torch.matmul, scores.softmax(-1), v, v.shape[-2])

        def call_function(self, target, args, kwargs):
            if target == aten.linear.default:
                return self.product(torch.nn.functional.linear, args[0], args[1], args[1].shape[1], *args[2:])
            if target in (aten.matmul.default, aten.mm.default, aten.bmm.default):
                return self.product(torch.matmul, args[0], args[1], args[0].shape[-1])
            if target == aten.addmm.default:
                return self.product(torch.matmul, args[1], args[2], args[1].shape[-1]) + args[0]
            if target == aten.scaled_dot_product_attention.default:
                return self.attention(*args, **kwargs)
            return super().call_function(target, args, kwargs)

    def run(inputs):
        peer = Peer(program.module())
        with torch.no_grad():
            results = peer.run(*[torch.from_numpy(value) for value in inputs.values()])
        results = results if isinstance(results, (tuple, list)) else [results]
        return [value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy() for value in results], peer.macs

    return run


def main():
    arrays = {}
    for name in FIXTURES:
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            meta = fixtures.unpack(fixtures.FOLDER / f"{name}.npz", folder)
            file = folder / meta["file"]
            run = OnnxPeer(file).run if file.suffix == ".onnx" else torch_peer(file)
            for number in range(meta["sets"]):
                if not judge.fits(folder, meta, number):
                    continue
                given = judge.load(folder / f"inputs_{number}.npz")
                keys = judge.Judge.order(meta, given)
                results, macs = run({key: given[own] for key, own in zip(meta["inputs"], keys)})
                arrays[f"{name} {number} macs"] = np.int64(macs)
                if not name.endswith(("pt2-bf16", "q-qdq")):
                    arrays |= {f"{name} {number} {at}": result for at, result in enumerate(results)}
            print(name, {key: int(value) for key, value in arrays.items() if key.startswith(name) and key.endswith("macs")})
    np.savez_compressed(FILE, **arrays)
    print(FILE.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
