#!/usr/bin/env python3
"""Compares what the definitions say with what ONNX Runtime's CPU provider computes, for every case that it has a kernel of.

Usage: against_ort.py FOLDER [--only GLOB]    FOLDER as generate.py wrote it; with a Python that has onnxruntime and numpy
Exit 1 where they differ and DIFFERENCES does not say why, and where an entry of it explains nothing any more."""
import argparse
import ctypes
import fnmatch
import os
import pathlib
import re
import sys

import numpy as np

from generate import all_cases
from differences import DIFFERENCES, LACKING
from tensors import KINDS, bfloat_bits


def value_for(tensor):
    import onnxruntime as ort
    number, dtype = KINDS[tensor.kind]
    if dtype is not None:
        return ort.OrtValue.ortvalue_from_numpy(tensor.v.astype(dtype).reshape(tensor.shape))
    bits = bfloat_bits(tensor.v) if tensor.kind == "bf16" else tensor.codes.astype(np.uint8)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits.reshape(tensor.shape), number)


def read(value, kind):
    """As numpy, of types too that numpy lacks."""
    if kind not in ("bf16", "u4", "i4"):
        return value.numpy()
    shape, width = value.shape(), 2 if kind == "bf16" else 1
    count = int(np.prod(shape)) if width == 2 else -(-int(np.prod(shape)) // 2)
    kind_of = ctypes.c_uint16 if width == 2 else ctypes.c_uint8
    raw = np.ctypeslib.as_array(ctypes.cast(value.data_ptr(), ctypes.POINTER(kind_of)), (count,)).copy() if count else np.zeros(0, int)
    if width == 2:
        return (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64).reshape(shape)
    codes = np.stack([raw & 15, raw >> 4], -1).reshape(-1)[:int(np.prod(shape))].astype(np.int64).reshape(shape)
    return np.where(codes > 7, codes - 16, codes) if kind == "i4" else codes


def differs(got, want, tolerance):
    if got.shape != want.shape:
        return f"has the shape {got.shape}, not {want.shape}"
    got, want = got.astype(np.float64), want.astype(np.float64)
    bad = ~((np.abs(got - want) <= tolerance[1] + tolerance[0] * np.abs(want)) | (got == want) | (np.isnan(got) & np.isnan(want)))
    if not bad.any():
        return None
    at = np.unravel_index(int(np.argmax(np.where(bad, np.abs(got - want), -1))), got.shape)
    return f"{bad.sum()} of {bad.size} elements differ, at {[int(i) for i in at]} {got[at]:.7g} is {want[at]:.7g}"


def check(case, folder):
    """None, or what is wrong; "lacks: " where ONNX Runtime refuses the model."""
    import onnxruntime as ort
    near = DIFFERENCES.get(explained(DIFFERENCES, case.name), (None, None))[1]
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = ort.InferenceSession(str(folder / "cases" / case.name / "model.onnx"), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class of its own for each of its codes
        return "lacks: " + str(error).splitlines()[0]
    for number, wanted in enumerate(case.wanted):
        try:
            fed = {name: value_for(tensor) for name, tensor in case.fed(number)}
            got = session.run_with_ort_values([o.name for o in session.get_outputs()], fed)
        except Exception as error:
            return "lacks: " + str(error).splitlines()[0]
        for name, value, want in zip([o.name for o in session.get_outputs()], got, [w for w in wanted if w is not None]):
            wrong = differs(read(value, want.kind), want.v, case.tolerance)
            if wrong and near is not None:
                farther = differs(read(value, want.kind), want.v, (0, near * np.abs(want.v).max(initial=0)))
                wrong = f"farther apart than explained: {farther}" if farther else wrong
            if wrong:
                return f"{name}: {wrong}"
    return None


def checked(case, folder):
    """`check` in a process of its own: ONNX Runtime ends the process on some of these models."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        with open(os.devnull, "w") as quiet, os.fdopen(writer, "w") as answer:
            os.dup2(quiet.fileno(), 2)
            answer.write(check(case, folder) or "")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return f"lacks: it ends the process ({status})" if status else text or None


def explained(table, name):
    return next((pattern for pattern in table if fnmatch.fnmatch(name, pattern)), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="*")
    options = parser.parse_args()
    counts, used, failed = {"equal": 0, "differs as explained": 0, "no kernel": 0}, set(), 0
    for case in all_cases():
        if not fnmatch.fnmatch(case.name, options.only):
            continue
        wrong = checked(case, options.folder)
        table = LACKING if wrong and wrong.startswith("lacks: ") else DIFFERENCES
        pattern = explained(table, case.name) if wrong else None
        if wrong and (not pattern or "farther apart" in wrong):
            failed += 1
            print(f"{case.name}: {re.sub(r'/[^ ]*/', '', wrong)[:300]}")
        used.add(pattern)
        counts["equal" if not wrong else "no kernel" if table is LACKING else "differs as explained"] += 1
    if options.only == "*":
        for pattern in [p for table in (DIFFERENCES, LACKING) for p in table if p not in used]:
            failed += 1
            print(f"{pattern}: stands in differences.py, and no case needs it")
    print(", ".join(f"{count} {what}" for what, count in counts.items()) + f", {failed} not explained")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
