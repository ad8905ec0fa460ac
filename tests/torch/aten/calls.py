"""A call of an operator of ATen with what torch computes for it (Debian's python3-torch 1.13), and its operands."""
import math

import torch

NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32",
         torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool"}
TYPES = {name: dtype for dtype, name in NAMES.items()}
generator = torch.Generator().manual_seed(1)
torch.manual_seed(1)  # of rand_like
cases = []


def T(*shape, dtype="f32", lo=-2.0, hi=2.0):
    """Random numbers with two digits: short to write down."""
    dtype = TYPES[dtype]
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    values = torch.rand(shape, generator=generator, dtype=torch.float64) * (hi - lo) + lo
    return (values * 64).round().div(64).to(dtype) if dtype.is_floating_point else values.round().to(dtype)


def I(*shape, hi=4, lo=0, dtype="i64"):
    return torch.randint(lo, hi, shape, generator=generator).to(TYPES[dtype])


def L(values, dtype="f32"):
    return torch.tensor(values, dtype=TYPES[dtype])


def encode(value):
    """An argument of the schema's union tags."""
    if value is None:
        return {"as_none": True}
    if isinstance(value, torch.Tensor):
        return {"tensor": tensor(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": NAMES[value]}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, float):
        return {"as_float": value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}[value]}
    if isinstance(value, str):
        return {"as_string": value}
    items = list(value)
    if any(isinstance(item, torch.Tensor) for item in items):
        return {"tensors": [None if item is None else tensor(item) for item in items]}
    if items and all(isinstance(item, bool) for item in items):
        return {"as_bools": items}
    if any(isinstance(item, float) for item in items):
        return {"as_floats": items}
    return {"as_ints": items}


def tensor(value):
    flat = value.detach().reshape(-1)
    numbers = flat.to(torch.float64).tolist() if value.dtype.is_floating_point else [int(x) for x in flat.tolist()]
    if value.dtype.is_floating_point:
        numbers = [float("%.8g" % x) if value.dtype != torch.float64 else x for x in numbers]
    return {"dtype": NAMES[value.dtype], "shape": list(value.shape), "data": numbers}


def call(operator, values, rest):
    with torch.no_grad():
        try:
            return operator(*[v.clone() if isinstance(v, torch.Tensor) else v for v in values], **rest)
        except RuntimeError as error:
            if "not implemented for 'Half'" not in str(error):
                raise
        widened = operator(*[v.float() if isinstance(v, torch.Tensor) else v for v in values], **rest)
        return widened.half() if widened.dtype == torch.float32 else widened


def case(target, /, instead=None, tolerance=None, results=None, **arguments):
    """One call; `instead` computes it where torch 1.13 has no such operator, or another library has it, `results` are the ones to
    compare."""
    if instead is None:
        name, overload = target.split(".")
        operator = getattr(getattr(torch.ops.aten, name), overload)
        positional = [a.name for a in operator._schema.arguments if not a.kwarg_only]
        last = max((i for i, n in enumerate(positional) if n in arguments), default=-1)
        defaults = {a.name: a.default_value for a in operator._schema.arguments}
        values = [arguments[n] if n in arguments else defaults[n] for n in positional[:last + 1]]
        rest = {n: v for n, v in arguments.items() if n not in positional}
        got = call(operator, values, rest)
    else:
        with torch.no_grad():
            got = instead(**arguments)
    as_list = isinstance(got, list)
    got = [got] if isinstance(got, torch.Tensor) else list(got)
    entry = {"target": target, "arguments": {n: encode(v) for n, v in arguments.items()}, "list": as_list,
             "results": [tensor(r) if isinstance(r, torch.Tensor) and (results is None or i in results) else None
                         for i, r in enumerate(got)]}
    if tolerance:
        entry["tol"] = tolerance
    cases.append(entry)
