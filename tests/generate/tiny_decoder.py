"""A small decoder of the kind that exporters write, by onnx.helper alone: RMS norms, rotary positions, grouped heads, a gated MLP, caches as
inputs and outputs. Weights are of a seed, so that answers mean nothing. `write` makes the file; `NAMES` are what exporters call things.

    tiny_decoder.py FOLDER        makes a folder as onnxruntime-genai's builder does: model.onnx and genai_config.json"""
import dataclasses
import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclasses.dataclass(frozen=True)
class Sizes:
    layers: int = 2
    width: int = 32
    heads: int = 4
    groups: int = 2  # heads of keys and values
    head: int = 8
    inner: int = 48
    vocabulary: int = 97


@dataclasses.dataclass(frozen=True)
class Names:
    ids: str
    mask: str
    positions: str
    past: str  # of "{layer}" and "{part}"
    present: str
    logits: str = "logits"
    parts: tuple = ("key", "value")


NAMES = {
    "optimum": Names("input_ids", "attention_mask", "position_ids", "past_key_values.{layer}.{part}", "present.{layer}.{part}"),
    "plain": Names("ids", "attn_mask", "positions", "past.{layer}.{part}", "present.{layer}.{part}"),
    "torch": Names("tokens", "mask", "pos", "past_{part}_{layer}", "present_{part}_{layer}"),
    "strange": Names("what", "keep", "where", "memory_{part}_{layer}", "remembered_{part}_{layer}", "scores_of_next"),
}


class Graph:
    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def __call__(self, op, *inputs, out=None, **attributes):
        out = out or f"t{len(self.nodes)}"
        inputs = [item if isinstance(item, str) else self.constant(item) for item in inputs]
        self.nodes.append(helper.make_node(op, inputs, [out], name=f"{op}_{len(self.nodes)}", **attributes))
        return out


def weights(sizes, seed, tied=False):
    """f32 arrays by name; `head` is the transpose of `embedding` where it is tied."""
    random = np.random.default_rng(seed)

    def matrix(rows, columns):
        return (random.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)

    made = {"embedding": random.standard_normal((sizes.vocabulary, sizes.width)).astype(np.float32)}
    for layer in range(sizes.layers):
        for name, rows, columns in (("q", sizes.width, sizes.heads * sizes.head), ("k", sizes.width, sizes.groups * sizes.head),
                                    ("v", sizes.width, sizes.groups * sizes.head), ("o", sizes.heads * sizes.head, sizes.width),
                                    ("gate", sizes.width, sizes.inner), ("up", sizes.width, sizes.inner), ("down", sizes.inner, sizes.width)):
            made[f"{name}{layer}"] = matrix(rows, columns)
        for name in ("norm_a", "norm_b"):
            made[f"{name}{layer}"] = (1 + 0.1 * random.standard_normal(sizes.width)).astype(np.float32)
    made["norm"] = (1 + 0.1 * random.standard_normal(sizes.width)).astype(np.float32)
    made["head"] = np.ascontiguousarray(made["embedding"].T) if tied else matrix(sizes.width, sizes.vocabulary)
    return made


def norm(g, x, scale):
    mean = g("ReduceMean", g("Mul", x, x), axes=[-1], keepdims=1)
    return g("Mul", g("Div", x, g("Sqrt", g("Add", mean, np.float32(1e-5)))), scale)


def rotated(g, x, cos, sin, half):
    first, second = (g("Slice", x, np.array([a]), np.array([b]), np.array([3])) for a, b in ((0, half), (half, 2 * half)))
    return g("Add", g("Mul", x, cos), g("Mul", g("Concat", g("Neg", second), first, axis=-1), sin))


def attention(g, x, made, layer, sizes, cos, sin, mask, past, present, here):
    """`here`: where a cache of one size gets the token; null where caches grow."""
    def heads(name, count):
        y = g("Reshape", g("MatMul", x, made[f"{name}{layer}"]), np.array([0, 0, count, sizes.head]))
        return g("Transpose", y, perm=[0, 2, 1, 3])

    q = rotated(g, heads("q", sizes.heads), cos, sin, sizes.head // 2)
    k = rotated(g, heads("k", sizes.groups), cos, sin, sizes.head // 2)
    parts = (k, heads("v", sizes.groups))
    if past and here:
        parts = [g("Where", here, new, was, out=out) for was, new, out in zip(past, parts, present)]
    elif past:
        parts = [g("Concat", was, new, axis=2, out=out) for was, new, out in zip(past, parts, present)]
    times = sizes.heads // sizes.groups
    k, v = (g("Reshape", g("Expand", g("Unsqueeze", part, np.array([2])), np.array([1, 1, times, 1, 1])), np.array([0, sizes.heads, -1, sizes.head]))
            for part in parts)
    scores = g("Add", g("Mul", g("MatMul", q, g("Transpose", k, perm=[0, 1, 3, 2])), np.float32(sizes.head ** -0.5)), mask)
    y = g("Transpose", g("MatMul", g("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return g("MatMul", g("Reshape", y, np.array([0, 0, sizes.heads * sizes.head])), made[f"o{layer}"])


def angles(g, positions, sizes):
    frequency = (10000.0 ** -(np.arange(0, sizes.head, 2) / sizes.head)).astype(np.float32)
    angle = g("Mul", g("Unsqueeze", g("Cast", positions, to=TensorProto.FLOAT), np.array([2])), frequency)
    angle = g("Unsqueeze", g("Concat", angle, angle, axis=-1), np.array([1]))
    return g("Cos", angle), g("Sin", angle)


def causal(g, positions, mask, kind):
    """What each token must not see is the least f32: those behind it, and those that the mask leaves out. Masks of other kinds say it of each
    pair of tokens: as bools, or as floats that are added."""
    if kind != "tokens":
        return mask if kind == "added" else g("Where", mask, np.float32(0), np.finfo(np.float32).min)
    total = g("Gather", g("Shape", mask), np.int64(1))
    places = g("Unsqueeze", g("Range", np.int64(0), total, np.int64(1)), np.array([0, 1, 2]))
    seen = g("LessOrEqual", places, g("Unsqueeze", positions, np.array([1, 3])))
    there = g("Not", g("Equal", g("Unsqueeze", mask, np.array([1, 2])), np.int64(0)))
    return g("Where", g("And", seen, there), np.float32(0), np.finfo(np.float32).min)


def build(sizes, names, seed, caches=True, tied=False, room=0, mask_kind="tokens", branch=False, drop=()):
    """A ModelProto. `room`: caches have that many tokens from the start, and a run takes one. `mask_kind`: that of `causal`.
    `branch`: has optimum's input of decoders of both kinds, and logits are wrong where that is. `drop`: outputs that it does not have."""
    g, made = Graph(), weights(sizes, seed, tied)
    cos, sin = angles(g, names.positions, sizes)
    mask = causal(g, names.positions, names.mask, mask_kind)
    embedding = g.constant(made["embedding"])
    x = g("Gather", embedding, names.ids)
    new, past_size, total = (1, room, room) if room else ("n", "past", "total" if caches else "n")
    here = g("Equal", np.arange(room).reshape(1, 1, room, 1), g("Unsqueeze", names.positions, np.array([1, 3]))) if room else None
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, size])
              for name, size in ((names.ids, new), (names.mask, total), (names.positions, new))]
    if mask_kind != "tokens":
        types = {"added": TensorProto.FLOAT, "bools": TensorProto.BOOL}
        inputs[1] = helper.make_tensor_value_info(names.mask, types[mask_kind], [1, 1, new, total])
    outputs = []
    for layer in range(sizes.layers):
        past, present = ([name.format(layer=layer, part=part) for part in names.parts] for name in (names.past, names.present))
        y = norm(g, x, made[f"norm_a{layer}"])
        x = g("Add", x, attention(g, y, made, layer, sizes, cos, sin, mask, past if caches else None, present, here))
        y = norm(g, x, made[f"norm_b{layer}"])
        gate = g("MatMul", y, made[f"gate{layer}"])
        y = g("Mul", g("Mul", gate, g("Sigmoid", gate)), g("MatMul", y, made[f"up{layer}"]))
        x = g("Add", x, g("MatMul", y, made[f"down{layer}"]))
        if caches:
            inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, sizes.groups, past_size, sizes.head]) for name in past]
            outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, sizes.groups, room or "all", sizes.head]) for name in present]
    head = g("Transpose", embedding, perm=[1, 0]) if tied else g.constant(made["head"])
    logits = g("MatMul", norm(g, x, made["norm"]), head, **({} if branch else {"out": names.logits}))
    if branch:
        inputs.append(helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1]))
        empty = g("Equal", g("Gather", g("Shape", inputs[3].name), np.array([2])), np.int64(0))
        g("Where", g("Xor", "use_cache_branch", empty), logits, g("Neg", logits), out=names.logits)
    outputs.insert(0, helper.make_tensor_value_info(names.logits, TensorProto.FLOAT, [1, new, sizes.vocabulary]))
    outputs = [output for output in outputs if output.name not in drop]
    graph = helper.make_graph(g.nodes, "tiny_decoder", inputs, outputs, g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def write(path, sizes=Sizes(), names="optimum", seed=1, **options):
    """The file at `path`; its bytes are the same each time."""
    path = pathlib.Path(path)
    path.write_bytes(build(sizes, NAMES[names], seed, **options).SerializeToString(deterministic=True))
    return path


def genai_config(sizes, names, context=256, eos=2):
    """What genai_config.json says of such a file, a dict."""
    def pattern(text, part):
        return text.format(layer="%d", part=part)

    inputs = {"input_ids": names.ids, "attention_mask": names.mask, "position_ids": names.positions}
    outputs = {"logits": names.logits}
    for part in names.parts:
        inputs[f"past_{part}_names"], outputs[f"present_{part}_names"] = pattern(names.past, part), pattern(names.present, part)
    return {"model": {"type": "llama", "bos_token_id": 1, "eos_token_id": eos, "context_length": context, "vocab_size": sizes.vocabulary,
                      "decoder": {"filename": "model.onnx", "inputs": inputs, "outputs": outputs}}}


class Reference:
    """The same network in numpy, in f64, without a cache: logits of the last token of some ids."""

    def __init__(self, sizes=Sizes(), seed=1, tied=False):
        self.sizes = sizes
        self.made = {name: array.astype(np.float64) for name, array in weights(sizes, seed, tied).items()}

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * self.made[name]

    def attention(self, x, layer):
        count, sizes = len(x), self.sizes
        angle = np.arange(count)[:, None] * 10000.0 ** -(np.arange(0, sizes.head, 2) / sizes.head)
        cos, sin = (np.concatenate((part, part), -1)[:, None] for part in (np.cos(angle), np.sin(angle)))

        def heads(name, heads):
            return (x @ self.made[f"{name}{layer}"]).reshape(count, heads, sizes.head)

        def turned(y):
            first, second = np.split(y, 2, -1)
            return y * cos + np.concatenate((-second, first), -1) * sin

        q, k, v = turned(heads("q", sizes.heads)), turned(heads("k", sizes.groups)), heads("v", sizes.groups)
        k, v = (np.repeat(part, sizes.heads // sizes.groups, 1) for part in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(sizes.head)
        scores = np.where(np.tri(count, dtype=bool), scores, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        y = np.einsum("hij,jhd->ihd", scores / scores.sum(-1, keepdims=True), v)
        return y.reshape(count, -1) @ self.made[f"o{layer}"]

    def logits(self, ids):
        x = self.made["embedding"][np.asarray(ids)]
        for layer in range(self.sizes.layers):
            x = x + self.attention(self.norm(x, f"norm_a{layer}"), layer)
            y = self.norm(x, f"norm_b{layer}")
            gate = y @ self.made[f"gate{layer}"]
            x = x + (gate / (1 + np.exp(-gate)) * (y @ self.made[f"up{layer}"])) @ self.made[f"down{layer}"]
        return self.norm(x, "norm")[-1] @ self.made["head"]


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "model.onnx", seed=3)
    (folder / "genai_config.json").write_text(json.dumps(genai_config(Sizes(), NAMES["optimum"]), indent=1) + "\n")
