"""One function an exporter: it writes a file from a case and says what the file's inputs and outputs are called. EXPORTERS maps a word of
the catalog to a function of (case, folder, options)."""

import inspect
import logging
import pathlib

import torch

import quantizers

logging.getLogger("torch.onnx").setLevel(logging.ERROR)


def flatten(value):
    """Tensors of a result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for each in value for tensor in flatten(each)]


class Flat(torch.nn.Module):
    """A module whose forward takes tensors by name and gives a tuple of them: what all exporters agree on."""

    def __init__(self, case):
        super().__init__()
        self.model, self.call = case.model, case.call

    def compute(self, **inputs):
        result = self.call(self.model, **inputs) if self.call else self.model(*inputs.values())
        return tuple(flatten(result))


def flat(case):
    """The flat module of a case. Exporters read the names of inputs from the signature of forward, so one is written for it."""
    names = list(case.inputs[0])
    scope = {}
    exec(f"def forward(self, {', '.join(names)}):\n  return self.compute({', '.join(f'{name}={name}' for name in names)})\n", scope)
    kind = type("Flat", (Flat,), {"forward": scope["forward"]})
    return kind(case).eval()


def example(case):
    return tuple(case.inputs[0].values())


def open_dims(case):
    """Sizes that an export leaves open: one symbol a name."""
    symbols = {}
    return {
        name: {axis: symbols.setdefault(word, torch.export.Dim(word, min=1, max=1 << 16)) for axis, word in axes.items()} or None
        for name, axes in ((name, case.dims.get(name, {})) for name in case.inputs[0])
    }


def automatic(case):
    return {name: {axis: torch.export.Dim.AUTO for axis in case.dims.get(name, {})} or None for name in case.inputs[0]}


def pt2(strict=False, dynamic=False, core=False, named=False):
    def export(case, folder, options):
        module = flat(case)
        shapes = (open_dims(case) if named else automatic(case)) if dynamic else None
        with torch.no_grad():
            program = torch.export.export(module, example(case), dynamic_shapes=shapes, strict=strict)
        if core:
            program = program.run_decompositions()
        if options.get("bare"):
            strip(program)
        file = folder / "model.pt2"
        torch.export.save(program, file)
        signature = program.graph_signature
        places = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
        shapes = {
            name: [int(str(size)) if str(size).isdigit() else str(size) for size in places[name].shape] for name in signature.user_inputs
        }
        return {"file": file.name, "inputs": shapes, "operators": operators(program)}

    return export


class Narrow(torch.nn.Module):
    """A model of bf16 between inputs and outputs of f32, as it is served; in the type of its parameters, for references."""

    def __init__(self, model):
        super().__init__()
        self.model = model.to(torch.bfloat16)

    def forward(self, *args, **kwargs):
        own = next(self.model.parameters()).dtype
        cast = lambda value: value.to(own) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        result = self.model(*map(cast, args), **{key: cast(value) for key, value in kwargs.items()})
        wide = torch.float32 if own == torch.bfloat16 else own
        return tuple(value.to(wide) if value.is_floating_point() else value for value in flatten(result))


def pt2_of_bf16(case, folder, options):
    case.model = Narrow(case.model).eval()
    return pt2(dynamic=True)(case, folder, options)


def strip(program):
    """Takes out what says where on this machine a node comes from: fixtures are the same wherever they are made."""
    for module in program.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", []):
            for key in ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "from_node"):
                node.meta.pop(key, None)


def operators(program):
    names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    return sorted(names)


def onnx_inputs(file):
    import onnx

    graph = onnx.load(file, load_external_data=False).graph
    constants = {each.name for each in graph.initializer}

    def sizes(value):
        return [dim.dim_param or (dim.dim_value if dim.HasField("dim_value") else "?") for dim in value.type.tensor_type.shape.dim]

    return {value.name: sizes(value) for value in graph.input if value.name not in constants}


def onnx_types(file):
    import onnx

    graph = onnx.load(file, load_external_data=False).graph
    return {value.name: str(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)) for value in graph.input}


def onnx_answer(file):
    import onnx

    model = onnx.load(file, load_external_data=False)
    found = {(node.domain + "." if node.domain not in ("", "ai.onnx") else "") + node.op_type for node in model.graph.node}
    return {
        "file": file.name,
        "inputs": onnx_inputs(file),
        "types": onnx_types(file),
        "outputs": [value.name for value in model.graph.output],
        "operators": sorted(found),
        "opsets": {each.domain or "ai.onnx": each.version for each in model.opset_import},
    }


def dynamo(opset):
    def export(case, folder, options):
        file = folder / "model.onnx"
        shapes = automatic(case) if case.dims else None
        with torch.no_grad():
            torch.onnx.export(
                flat(case),
                example(case),
                file,
                dynamo=True,
                opset_version=opset,
                input_names=list(case.inputs[0]),
                dynamic_shapes=shapes,
                verbose=False,
                external_data=options.get("external", False),
            )
        if options.get("bare"):
            strip_onnx(file)
        return onnx_answer(file)

    return export


def strip_onnx(file):
    import onnx

    model = onnx.load(file)
    for each in [model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output, *model.functions]:
        del each.metadata_props[:]
        if hasattr(each, "doc_string"):
            each.doc_string = ""
    onnx.save(model, file)


def script(opset):
    def export(case, folder, options):
        file = folder / "model.onnx"
        axes = {name: dict(axes) for name, axes in case.dims.items() if axes}
        arguments = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
        with torch.no_grad():
            torch.onnx.export(
                flat(case),
                example(case),
                str(file),
                opset_version=opset,
                input_names=list(case.inputs[0]),
                dynamic_axes=axes,
                do_constant_folding=True,
                **arguments,
            )
        return onnx_answer(file)

    return export


def after(first, then):
    """An exporter that rewrites the ONNX file of another."""

    def export(case, folder, options):
        first(case, folder, options)
        source = (folder / "model.onnx").rename(folder / "source.onnx")
        try:
            then(case, source, folder / "model.onnx", options)
        finally:
            for left in folder.glob("source*"):
                left.unlink()
        return onnx_answer(folder / "model.onnx")

    return export


EXPORTERS = {
    "pt2": pt2(),
    "pt2-strict": pt2(strict=True),
    "pt2-dyn": pt2(dynamic=True),
    "pt2-strict-dyn": pt2(strict=True, dynamic=True),
    "pt2-named": pt2(dynamic=True, named=True),
    "pt2-core": pt2(dynamic=True, core=True),
    "pt2-core-static": pt2(core=True),
    "pt2-bf16": pt2_of_bf16,
    **{f"dynamo{opset}": dynamo(opset) for opset in range(18, 27)},
    **{f"script{opset}": script(opset) for opset in range(11, 21)},
    **{word: after(dynamo(21) if word in quantizers.OF_OPSET_21 else script(17), then) for word, then in quantizers.REWRITERS.items()},
}


def find(word):
    if word in EXPORTERS:
        return EXPORTERS[word]
    import classic
    import huggingface

    return {**classic.EXPORTERS, **huggingface.EXPORTERS}[word]


def clear(folder):
    for path in pathlib.Path(folder).glob("*"):
        if path.is_file():
            path.unlink()
