#!/usr/bin/env python3
"""The rows of frontends/onnx/DIFFERENCES.md are true. For each, the nodes of difference_cases.py by onnx.reference, ONNX Runtime, torch and dmxc:
readers with the same words give the same numbers, those with other words others, dmxc gives what its column says, also in a file of PyTorch, and
notes the row if a compile can see it. Then GridSample and Resize as torch's exporters write them, against torch.

Usage: differences.py BIN [ROW ..]      (a sample; all with DMXC_LONG=1, or the rows that are named)
Exit 77 where onnx, onnxruntime or torch are missing."""
import contextlib
import io
import itertools
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import environment  # noqa: E402

environment.enter("numpy", "onnx.reference", "onnxruntime", "torch", "torchvision")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx.reference  # noqa: E402
import onnxruntime  # noqa: E402
import torch  # noqa: E402
sys.path.insert(0, str(HERE))
from difference_cases import CASES, QUIET  # noqa: E402
from sampling import LONG, SEED, sample  # noqa: E402

BIN = pathlib.Path(sys.argv[1]).resolve()
READERS = {"reference": "onnx.reference", "onnx_runtime": "ONNX Runtime", "torch": "torch"}
FAILS = "fails"


def rows_of_dmxc():
    done = subprocess.run([BIN / "dmxc", "--print-ops", "--input-format", "onnx", "--format", "json"], capture_output=True, text=True, check=True)
    return {row["name"]: row for operator in json.loads(done.stdout) for row in operator["differences"]}


def close(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        return np.array_equal(a, b)
    tolerance = 2e-3 if b.dtype == np.float16 else 2e-4
    with np.errstate(invalid="ignore"):  # signalling NaN
        return np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance / 10, equal_nan=True)


def same(a, b):
    """Of two readers: numbers, or FAILS."""
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str)
    return len(a) == len(b) and all(np.shape(x) == np.shape(y) and close(x, y) for x, y in zip(a, b))


def by_reader(run):
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return run()
    except Exception:  # whatever way it fails in
        return FAILS


def by_onnxruntime(case):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(case.model("").SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, case.feeds())


def by_dmxc(model, feeds):
    """The outputs, or FAILS, and what the compile says."""
    with tempfile.TemporaryDirectory(prefix="dmxc-differences-") as place:
        place = pathlib.Path(place)
        onnx.save(model, place / "m.onnx")
        done = subprocess.run([BIN / "dmxc", place / "m.onnx", "-o", place / "m.bundle", "--color", "never", "--progress", "none"],
                              capture_output=True, text=True)
        if done.returncode:
            return FAILS, done.stderr
        for name, value in feeds.items():
            np.save(place / f"in_{name}.npy", value)
        ran = subprocess.run([BIN / "dmx-run", place / "m.bundle", "--inputs", place, "--output-dir", place], capture_output=True, text=True)
        if ran.returncode:
            return FAILS, done.stderr
        return [np.load(place / f"out_{output.name}.npy") for output in model.graph.output], done.stderr


def shown(result):
    return result if isinstance(result, str) else " ".join(str(np.asarray(x).shape) + str(np.asarray(x).reshape(-1)[:8]) for x in result)


def notes(said):
    return [line for line in said.splitlines() if "[onnx-difference]" in line]


def check_words(row, results):
    """Complaints about readers: same words, same numbers."""
    asked = {reader: result for reader, result in results.items() if row[reader]}
    for reader, result in asked.items():
        if (row[reader] == FAILS) != isinstance(result, str):
            yield f"{READERS[reader]}: '{row[reader]}', but it gives {shown(result)}"
    for a, b in itertools.combinations(asked, 2):
        if (row[a] == row[b]) != same(asked[a], asked[b]):
            yield f"{READERS[a]} and {READERS[b]}: '{row[a]}' and '{row[b]}', but {shown(asked[a])} and {shown(asked[b])}"


def check_dmxc(row, words, results, ours, who):
    for reader, result in results.items():
        if row[reader] and (row[reader] == words) != same(ours, result):
            yield f"{who}: '{words}', {READERS[reader]} '{row[reader]}', but {shown(ours)} and {shown(result)}"


def compared(case, result):
    """The results that the case is about."""
    return [result[i] for i in case.compared] if case.compared and not isinstance(result, str) and len(result) > max(case.compared) else result


def check(row, case):
    if case.x86_only and platform.machine() != "x86_64":
        return
    model = case.model("")
    runs = {"reference": lambda: onnx.reference.ReferenceEvaluator(model).run(None, case.feeds()), "onnx_runtime": lambda: by_onnxruntime(case),
            "torch": case.by_torch}
    results = {reader: compared(case, by_reader(run)) for reader, run in runs.items() if row[reader] and (reader != "torch" or case.torch)}
    if row["torch"] and not case.torch:
        yield "the row has words of torch, the case has no torch"
    yield from check_words({**row, **({} if case.torch else {"torch": ""})}, results)
    producers = [("", row["choice"])] + ([("pytorch", row["of_pytorch"])] if row["of_pytorch"] else [])
    for producer, words in producers:
        ours, said = by_dmxc(case.model(producer), case.feeds())
        who = "dmxc" + (f" ({producer})" if producer else "")
        if (words == FAILS) != isinstance(ours, str):
            yield f"{who}: '{words}', but {shown(ours)} {said}"
            continue
        yield from check_dmxc(row, words, results, compared(case, ours), who)
        named = [line for line in notes(said) if f"; {row['name']} in " in line]
        if len(named) != row["seen"]:
            yield f"{who}: the row is {'' if row['seen'] else 'not '}one that a compile sees, but it says: {notes(said)}"


def check_rows(rows, names):
    complaints = [f"{name}: no case in difference_cases.py" for name in rows if name not in CASES]
    complaints += [f"{name}: no such row" for name in list(CASES) + names if name not in rows]
    chosen = [name for name in names if name in rows and name in CASES] or sample([name for name in rows if name in CASES], 8)
    for name in chosen:
        for case in CASES[name] if isinstance(CASES[name], list) else [CASES[name]]:
            complaints += [f"{name}: {complaint}" for complaint in check(rows[name], case)]
    for case in QUIET:
        _, said = by_dmxc(case.model(""), case.feeds())
        complaints += [f"{case.op} {case.attributes}: readers agree, but it says: {line}" for line in notes(said)]
    print(f"{len(chosen)} of {len(rows)} rows")
    return complaints


class Sweep(torch.nn.Module):
    """Many calls on the same tensors; their results are the outputs."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def forward(self, *tensors):
        return tuple(call(*tensors) for call in self.calls)


def exported(module, inputs, way, file):
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if way == "dynamo":
            torch.onnx.export(module, inputs, dynamo=True, external_data=False).save(file)
        else:
            torch.onnx.export(module, inputs, file, dynamo=False, opset_version=17)
    return onnx.load(file)


def sweep(what, calls, inputs):
    """`calls`: what is called, by its name; against torch, from both exporters, or one of them."""
    complaints = []
    module = Sweep(list(calls.values())).eval()
    wanted = [value.numpy() for value in module(*inputs)]
    ways = ("dynamo", "script") if LONG else (("dynamo", "script")[SEED % 2],)
    for way in ways:
        with tempfile.TemporaryDirectory(prefix="dmxc-differences-") as place:
            model = exported(module, inputs, way, pathlib.Path(place) / "m.onnx")
        ours, said = by_dmxc(model, {value.name: x.numpy() for value, x in zip(model.graph.input, inputs)})
        if isinstance(ours, str):
            complaints.append(f"{what}, {way}: {said}")
            continue
        complaints += [f"{what} {name}, {way}: {shown([got])}, torch {shown([theirs])}"
                       for name, got, theirs in zip(calls, ours, wanted) if not same([got], [theirs])]
    print(f"{what}: {len(calls)} ways, exporters: {', '.join(ways)}")
    return complaints


def grid_samples():
    ways = itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True))
    calls = {f"{mode} {padding} {corners}": lambda x, g, way=(mode, padding, corners): torch.nn.functional.grid_sample(x, g, *way)
             for mode, padding, corners in ways}
    return sweep("GridSample", calls, (torch.randn(1, 2, 5, 7), torch.rand(1, 6, 9, 2) * 3.2 - 1.6))


def resizes():
    """Each mode up and down, by whole scales and others, and to the sizes that these give."""
    calls = {}
    for mode, corners in (("nearest", None), ("bilinear", False), ("bilinear", True), ("bicubic", False), ("bicubic", True)):
        for scale in ((1.7, 1.7), (.6, .45), (2.0, 3.0), (1.3, .7), (.3, 1.1)):
            way = {"mode": mode, "align_corners": corners}
            size = tuple(int(n * s) for n, s in zip((10, 9), scale))
            calls[f"{mode} {corners} by {scale}"] = lambda x, way=way, scale=scale: torch.nn.functional.interpolate(x, scale_factor=scale, **way)
            calls[f"{mode} {corners} to {size}"] = lambda x, way=way, size=size: torch.nn.functional.interpolate(x, size, **way)
    chosen = sample(list(calls), 4)
    return sweep("Resize", {name: calls[name] for name in chosen}, (torch.randn(1, 2, 10, 9),))


def main():
    onnxruntime.set_default_logger_severity(4)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    names = sys.argv[2:]
    complaints = check_rows(rows_of_dmxc(), names)
    if not names:
        complaints += grid_samples() + resizes()
    print(*complaints, sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
