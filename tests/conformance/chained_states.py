#!/usr/bin/env python3
"""Streaming models whose state is passed out and in again: calls behind the first take the state that the call before gave,
by one bundle with open dims. The oracle is numpy, which must give what the data sets have first.

chained_states.py BIN LIBDMXRT CALLS MODEL:STATE=NEW_STATE ..."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import dmxrt

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper

    import evaluate
except ImportError:
    print("SKIPPED: numpy or onnx is not there (tools/setup --bench)")
    sys.exit(77)

TOOLS, LIBRARY, CALLS = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])


def tensors(folder, stem, names):
    """The data set's tensors by the names of the model."""
    result = {}
    for i, name in enumerate(names):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((folder / f"{stem}_{i}.pb").read_bytes())
        result[name] = numpy_helper.to_array(tensor)
    return result


def wrong(got, wanted):
    """The first output that differs."""
    for name, value in wanted.items():
        if got[name].shape != value.shape or not np.allclose(got[name], value, rtol=1e-3, atol=1e-5):
            return name
    return ""


def check(folder, state, new_state, bundle):
    model = onnx.load(folder / "model.onnx")
    weights = {t.name for t in model.graph.initializer}
    inputs = [i.name for i in model.graph.input if i.name not in weights]
    subprocess.run([TOOLS / "dmxc", folder / "model.onnx", "-q", "-o", bundle], check=True)
    random = np.random.default_rng(3)
    with dmxrt.Session(bundle, library=LIBRARY) as session:
        for data in sorted(folder.glob("test_data_set_*")):
            given = tensors(data, "input", inputs)
            if name := wrong(evaluate.evaluate(model, given), tensors(data, "output", [o.name for o in model.graph.output])):
                return f"numpy does not give '{name}' of {data.name}"
            mine, oracle = dict(given), dict(given)
            for call in range(CALLS):
                got, wanted = session.run(**mine), evaluate.evaluate(model, oracle)
                if name := wrong(got, wanted):
                    return f"{data.name}, call {call}: '{name}' differs"
                if call and not wrong(got, evaluate.evaluate(model, {**oracle, state: given[state]})):
                    return f"{data.name}, call {call}: the state changes nothing"
                fresh = {n: (v + 0.1 * random.standard_normal(v.shape)).astype(v.dtype) if v.dtype.kind == "f" else v
                         for n, v in given.items() if n != state}
                mine, oracle = {**fresh, state: got[new_state]}, {**fresh, state: wanted[new_state]}
    return ""


def main():
    failed, done = 0, 0
    for argument in sys.argv[4:]:
        path, _, states = argument.rpartition(":")
        folder = pathlib.Path(path)
        if not (folder / "model.onnx").exists():
            print(f"SKIPPED {folder.name}: {folder} is not there")
            continue
        with tempfile.TemporaryDirectory(prefix="dmxc-states-") as scratch:
            problem = check(folder, *states.split("="), pathlib.Path(scratch) / "model.bundle")
        print(f"{'FAIL' if problem else 'ok  '} {folder.name:18} {problem or f'{CALLS} calls, each with the state of the one before'}",
              flush=True)
        done, failed = done + 1, failed + bool(problem)
    return 77 if not done else int(failed > 0)


sys.exit(main())
