"""Tensors of every type that the operators of com.microsoft take: exact values beside the type they are stored in."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fuzz"))

# kind: the number in onnx.proto, numpy's type of the same name if it has one
KINDS = {"f32": (1, np.float32), "u8": (2, np.uint8), "i8": (3, np.int8), "u16": (4, np.uint16), "i16": (5, np.int16),
         "i32": (6, np.int32), "i64": (7, np.int64), "bool": (9, np.bool_),
         "f16": (10, np.float16), "f64": (11, np.float64), "u32": (12, np.uint32), "u64": (13, np.uint64), "bf16": (16, None),
         "f8e4m3fn": (17, None), "f8e4m3fnuz": (18, None), "f8e5m2": (19, None), "f8e5m2fnuz": (20, None), "u4": (21, None),
         "i4": (22, None), "f4e2m1": (23, None)}
RANGES = {"u8": (0, 255), "i8": (-128, 127), "u4": (0, 15), "i4": (-8, 7), "u16": (0, 65535), "i16": (-32768, 32767),
          "i32": (-2 ** 31, 2 ** 31 - 1)}
SCHEMA_NAMES = {"f32": "float", "f16": "float16", "f64": "double", "bf16": "bfloat16", "u8": "uint8", "i8": "int8",
                "u16": "uint16", "i16": "int16", "i32": "int32",
                "i64": "int64",
                "u32": "uint32", "u64": "uint64", "bool": "bool", "u4": "uint4", "i4": "int4", "f8e4m3fn": "float8e4m3fn",
                "f8e4m3fnuz": "float8e4m3fnuz", "f8e5m2": "float8e5m2", "f8e5m2fnuz": "float8e5m2fnuz", "f4e2m1": "float4e2m1"}


def is_float(kind):
    return kind[0] in "fb" and kind != "bool"


def bfloat_bits(values):
    """Rounded to nearest, ties to even, from float32."""
    bits = np.atleast_1d(np.asarray(values, np.float32)).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def small_floats(exponent, mantissa, bias, finite):
    """What each code of a type of 8 or 4 bits means; codes that are no number are NaN. finite: "fn", "fnuz" or ""."""
    size = 1 << (1 + exponent + mantissa)
    values = np.empty(size)
    for code in range(size):
        sign = -1 if code >= size // 2 else 1
        power, fraction = (code >> mantissa) & ((1 << exponent) - 1), code & ((1 << mantissa) - 1)
        value = (fraction / (1 << mantissa)) * 2.0 ** (1 - bias) if power == 0 else (1 + fraction / (1 << mantissa)) * 2.0 ** (power - bias)
        if finite == "fnuz":
            value = np.nan if code == size // 2 else value
        elif finite == "fn" and code & (size // 2 - 1) == size // 2 - 1 and size > 16:
            value = np.nan
        elif not finite and power == (1 << exponent) - 1:
            value = np.nan if fraction else np.inf
        values[code] = sign * value
    return values


SMALL = {"f8e4m3fn": small_floats(4, 3, 7, "fn"), "f8e4m3fnuz": small_floats(4, 3, 8, "fnuz"), "f8e5m2": small_floats(5, 2, 15, ""),
         "f8e5m2fnuz": small_floats(5, 2, 16, "fnuz"), "f4e2m1": small_floats(2, 1, 1, "fn")}


class Tensor:
    """`v` is float64 for types of floats, int64 for integers, bool for bool: exactly what is stored."""

    def __init__(self, kind, values):
        self.kind = kind
        values = np.asarray(values)
        if kind in SMALL:
            self.codes = values.astype(np.int64)
            self.v = SMALL[kind][self.codes]
        elif kind == "bf16":
            self.v = (bfloat_bits(values).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        elif is_float(kind):
            with np.errstate(over="ignore"):
                self.v = values.astype(KINDS[kind][1]).astype(np.float64)
        else:
            self.v = values.astype(np.bool_ if kind == "bool" else np.int64)
        self.v = self.v.reshape(values.shape)
        self.shape = self.v.shape

    def raw(self):
        if self.kind == "bf16":
            return bfloat_bits(self.v).tobytes()
        if self.kind in ("u4", "i4", "f4e2m1"):  # two elements a byte, the first in the low half
            codes = (self.codes if self.kind in SMALL else self.v).reshape(-1) & 15
            codes = np.append(codes, 0)[:(codes.size + 1) // 2 * 2] if codes.size % 2 else codes
            return (codes[0::2] | codes[1::2] << 4).astype(np.uint8).tobytes()
        if self.kind in SMALL:
            return self.codes.astype(np.uint8).tobytes()
        return self.v.astype(KINDS[self.kind][1]).tobytes()

    def proto(self, name):
        from onnx_file import tensor
        return tensor(name, KINDS[self.kind][0], list(self.shape), raw=self.raw())


def rounded(values):
    """Nearest, ties to even."""
    return np.rint(values)


def quantized(values, scale, zero_point, kind):
    """Refuses values that lie so near the middle of two steps that float32 may round them either way: no case should have one."""
    low, high = RANGES[kind]
    steps = np.asarray(values / scale)
    middle = np.abs(steps - np.floor(steps) - 0.5) < 4e-7 * (np.abs(steps) + 16)
    if (middle & (steps + zero_point > low - 1) & (steps + zero_point < high + 1)).any():
        raise ValueError("a value lies between two steps: choose other scales")
    return Tensor(kind, np.clip(rounded(values / scale) + zero_point, low, high))
