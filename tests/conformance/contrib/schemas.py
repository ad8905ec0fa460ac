#!/usr/bin/env python3
"""Writes schemas.json, the attributes, operands and types of the operators that are tested here, as an installed ONNX Runtime
declares them, and which of them its CPU provider computes.

Usage: schemas.py        with a Python that has onnxruntime (and onnx, which reads the defaults)"""
import json
import pathlib

FILE = pathlib.Path(__file__).resolve().parent / "schemas.json"
OPERATORS = """GroupQueryAttention MultiHeadAttention Attention RotaryEmbedding SimplifiedLayerNormalization
SkipSimplifiedLayerNormalization SkipLayerNormalization EmbedLayerNormalization MatMulNBits GatherBlockQuantized MoE
QMoE BiasGelu FastGelu QuickGelu Gelu BiasSplitGelu GroupNorm SkipGroupNorm FusedMatMul FusedGemm FusedConv QAttention
DynamicQuantizeMatMul MatMulIntegerToFloat QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu QLinearSoftmax
QLinearAveragePool QLinearGlobalAveragePool QLinearConcat QLinearReduceMean QLinearWhere RelativePositionBias
GatedRelativePositionBias LinearAttention CausalConvWithState QGemm QLinearConv QuantizeLinear DequantizeLinear
NhwcMaxPool NhwcConv NhwcFusedConv TransposeMatMul FusedMatMulActivation GemmFastGelu BiasAdd BiasSoftmax MulInteger
ReduceSumInteger MatMulBnb4""".split()
DOMAINS = {"SimplifiedLayerNormalization": ""}  # where the schema stands, if not com.microsoft


def default_of(attribute):
    import onnx
    proto = onnx.AttributeProto()
    proto.ParseFromString(attribute._default_value)
    if not proto.type:
        return None
    value = onnx.helper.get_attribute_value(proto)
    return value.decode() if isinstance(value, bytes) else value


def last(value):
    return str(value).split(".")[-1]


def described(schema, kernels):
    mixed = lambda o: {} if o.isHomogeneous else {"mixed": True}  # operands of several types
    operands = lambda listed: [{"name": o.name, "type": o.typeStr, "option": last(o.option), **mixed(o)} for o in listed]
    attributes = {name: {"type": last(a.type), "required": bool(a.required), "default": default_of(a)}
                  for name, a in sorted(schema.attributes.items())}
    types = {t.type_param_str: [name[7:-1] for name in t.allowed_type_strs] for t in schema.type_constraints}
    return {"domain": schema.domain, "attributes": attributes, "inputs": operands(schema.inputs), "outputs": operands(schema.outputs),
            "types": types, "cpu_kernels": kernels}


def laid_out(value, depth=0):
    """JSON with a line for each attribute and operand."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(v, (dict, list)) for v in inner):
        return json.dumps(value)
    lines = [json.dumps(k) + ": " + laid_out(v, depth + 1) for k, v in value.items()] if isinstance(value, dict) else [
        laid_out(v, depth + 1) for v in value]
    brackets = "{}" if isinstance(value, dict) else "[]"
    return brackets[0] + "\n" + ",\n".join(" " * (depth + 1) + line for line in lines) + "\n" + " " * depth + brackets[1]


def main():
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as state
    kernels, schemas = {}, {}
    for kernel in state.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider":
            types = {t: sorted(name[7:-1] for name in names) for t, names in sorted(kernel.type_constraints.items())}
            kernels.setdefault((kernel.domain, kernel.op_name), []).append(types)
    for schema in state.get_all_operator_schema():
        if schema.name in OPERATORS and schema.domain == DOMAINS.get(schema.name, "com.microsoft"):
            schemas[schema.name] = described(schema, kernels.get((schema.domain, schema.name), []))
    missing = sorted(set(OPERATORS) - set(schemas))
    if missing:
        raise SystemExit(f"this ONNX Runtime has no schema of {', '.join(missing)}")
    table = {"onnxruntime": onnxruntime.__version__, "operators": {name: schemas[name] for name in OPERATORS}}
    FILE.write_text(laid_out(table) + "\n")


if __name__ == "__main__":
    main()
