"""A case of the operators of com.microsoft: one node (or some), its operands and attributes, written in the layout of ONNX's own cases."""
import numpy as np

from tensors import KINDS, Tensor
import onnx_file as onnx

TOLERANCES = {"f32": (1e-4, 1e-5), "f64": (1e-9, 1e-12), "f16": (4e-3, 2e-3), "bf16": (2e-2, 1e-2)}


class Weight:
    """Marks an operand that the model holds."""

    def __init__(self, tensor):
        self.tensor = tensor


class Computed(Weight):
    """Marks an operand that nodes before this one compute (`Before`)."""


class Before:
    """Nodes that compute operands: `inputs` is a list of (name, Tensor), one a data set; `nodes` and `weights` are encoded."""

    def __init__(self, inputs, nodes, weights=()):
        self.inputs, self.nodes, self.weights = inputs, nodes, weights

    def infos(self, open_dims):
        return [onnx.info(one[0][0], KINDS[one[0][1].kind][0], open_dims([t.shape for _, t in one])) for one in zip(*self.inputs)]


def tensors_of(operands):
    return [o.tensor if isinstance(o, Weight) else o for o in operands]


class Case:
    """`sets` are lists of operands, one a data set: Tensor, Weight(Tensor) or None for one left out. `results` says which
    outputs the node gives (1, 0 ..). `definition(operands, attributes, results)` returns the outputs, None for those that
    are not asked for. `specified(operands)`: output -> the elements that the definition gives a value. Where sets differ in an
    extent, the model leaves it open under a name. `domain`: the node's; `before`: what computes its Computed operands."""

    def __init__(self, name, op, sets, attributes, results, definition, input_names, domain="com.microsoft", opset=17, tolerance=None,
                 group="core", specified=None, before=None):
        self.name, self.op, self.attributes, self.results, self.domain, self.opset = name, op, attributes, results, domain, opset
        self.sets, self.input_names, self.group, self.before = sets, input_names, group, before or Before([[]] * len(sets), [])
        self.specified, self.wanted = specified or (lambda operands: {}), []
        for operands in sets:
            outputs = definition(tensors_of(operands), attributes, results)
            masks = self.specified(tensors_of(operands))
            self.wanted.append([self.cut(o, masks.get(i)) if i < len(results) and results[i] else None for i, o in enumerate(outputs)])
        self.tolerance = tolerance or max((TOLERANCES.get(o.kind, (0, 1e-9)) for o in self.wanted[0] if o is not None), default=(0, 1e-9))

    @staticmethod
    def cut(output, mask):
        """With zeros where the definition leaves open what an output holds."""
        if mask is None:
            return output
        kept = Tensor(output.kind, np.where(mask, output.v, 0))
        kept.mask = Tensor("bool", np.broadcast_to(mask, output.shape))
        return kept

    def fed(self, number):
        """What a data set's run is given, by name."""
        operands = [(self.input_name(i), o) for i, o in enumerate(self.sets[number]) if isinstance(o, Tensor)]
        masks = [(f"specified{i}", w.mask) for i, w in enumerate(self.wanted[number]) if hasattr(w, "mask")]
        return [*self.before.inputs[number], *operands, *masks]

    def input_name(self, index):
        return self.input_names[index] if index < len(self.input_names) else f"in{index}"

    def output_name(self, index):
        return f"out{index}"

    def open_dims(self, shapes):
        """An extent's name is made of what the sets have there: equal ones are equal in every set."""
        if len({len(s) for s in shapes}) != 1:
            raise ValueError(f"{self.name}: the ranks of the sets differ")
        return [sizes[0] if len(set(sizes)) == 1 else "n" + "_".join(map(str, sizes)) for sizes in zip(*shapes)]

    def model(self, declared=True):
        """`declared`: whether outputs have a shape."""
        inputs, weights, names = self.before.infos(self.open_dims), [*self.before.weights], []
        for i, operand in enumerate(self.sets[0]):
            names.append(self.input_name(i) if operand is not None else "")
            if isinstance(operand, Computed):
                continue
            if isinstance(operand, Weight):
                weights.append(operand.tensor.proto(names[-1]))
            elif operand is not None:
                dims = self.open_dims([s[i].shape for s in self.sets])
                inputs.append(onnx.info(names[-1], KINDS[operand.kind][0], dims))
        outputs, out_names, after = [], [], []
        for i, wanted in enumerate(self.results):
            out_names.append(self.output_name(i) if wanted else "")
            if wanted:
                first = self.wanted[0][i]
                dims = self.open_dims([w[i].shape for w in self.wanted]) if declared else None
                outputs.append(onnx.info(self.output_name(i), KINDS[first.kind][0], dims))
                if hasattr(first, "mask"):
                    out_names[-1] = f"whole{i}"
                    inputs.append(onnx.info(f"specified{i}", KINDS["bool"][0], dims))
                    weights.append(Tensor(first.kind, np.zeros(())).proto(f"nothing{i}"))
                    after.append(self.where(i))
        node = (b"".join(onnx.field(1, n) for n in names) + b"".join(onnx.field(2, n) for n in out_names) +
                onnx.message((3, self.op.lower()), (4, self.op)) +
                b"".join(onnx.field(5, onnx.attribute(k, v)) for k, v in self.attributes.items()) +
                (onnx.field(7, self.domain) if self.domain else b""))
        domains = onnx.field(8, onnx.message((1, "com.microsoft"), (2, 1)))
        return onnx.model([*self.before.nodes, node, *after], inputs, outputs, opset=self.opset, weights=weights, extra=domains)

    def where(self, i):
        inputs = b"".join(onnx.field(1, f"{what}{i}") for what in ("specified", "whole", "nothing"))
        return inputs + onnx.field(2, self.output_name(i)) + onnx.message((3, f"cut{i}"), (4, "Where"))

    def write(self, folder):
        folder = folder / self.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(self.model())
        for number, wanted in enumerate(self.wanted):
            data = folder / f"test_data_set_{number}"
            data.mkdir(exist_ok=True)
            given = [(self.output_name(i), o) for i, o in enumerate(wanted) if o is not None]
            for kind, listed in (("input", self.fed(number)), ("output", given)):
                for i, (name, value) in enumerate(listed):
                    (data / f"{kind}_{i}.pb").write_bytes(value.proto(name))
