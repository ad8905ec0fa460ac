"""Makes files: run inside an environment, it reads lines of JSON {name, folder, seconds, limit} and answers each by a line. What is slow to
import is imported once; each export is a process of its own, forked from there, with limits of time and memory.

A folder gets model.onnx or model.pt2, inputs_K.npz, reference_K.npz (outputs by number, float64 where the framework computes in it),
eager_K.npz (what the framework computes in the model's own type), meta.json, and log.txt."""

import importlib
import json
import os
import pathlib
import re
import sys
import time
import traceback

import numpy as np

import catalog
import process

PRELOADED = ["torch", "torchvision", "transformers", "timm", "diffusers", "sklearn", "torch.onnx", "torch.export"]


def numbers(value):
    """A tensor as numpy has it; bfloat16 as float32."""
    import torch

    value = value.detach()
    return (value.float() if value.dtype == torch.bfloat16 else value).cpu().contiguous().numpy()


def run_eager(case, double):
    """The outputs of each set. Buffers that runs change start anew."""
    import torch
    from exporters import flatten

    if double:
        case.model.double()
    start = {name: value.clone() for name, value in case.model.named_buffers()}
    results = []
    for inputs in case.inputs:
        if double:
            inputs = {name: value.double() if value.is_floating_point() else value for name, value in inputs.items()}
        with torch.no_grad():
            result = case.call(case.model, **inputs) if case.call else case.model(*inputs.values())
        results.append([numbers(value) for value in flatten(result)])
        restore(case.model, start)
    return results


def restore(model, state):
    """Buffers as they were before runs and exports changed them."""
    for name, value in model.named_buffers():
        if name in state:
            value.data.copy_(state[name])


def has_one(case, inputs):
    return any(inputs[name].shape[axis] == 1 for name, axes in case.dims.items() if name in inputs for axis in axes)


def save(folder, kind, sets):
    for number, values in enumerate(sets):
        np.savez(folder / f"{kind}_{number}.npz", **{str(key): value for key, value in values})


def references(case, folder, meta):
    if getattr(case.model, "reference", None):
        sets = [case.model.reference(inputs) for inputs in case.inputs]
        meta["outputs_of_set"] = [[[str(value.dtype), list(value.shape)] for value in values] for values in sets]
        save(folder, "reference", [list(enumerate(values)) for values in sets])
        return
    try:
        sets = run_eager(case, True)
        save(folder, "reference", [list(enumerate(values)) for values in sets])
        meta["reference"] = "float64"
    except Exception as error:  # what a model's code does in float64 is its own affair
        meta["reference"] = "float32"
        meta["reference_why"] = str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def make(name, folder):
    """One export, in this process."""
    start = time.monotonic()
    export = catalog.find(name)
    import torch

    torch.set_num_threads(1)
    import exporters

    exporters.clear(folder)
    meta = {
        "name": name,
        "row": export.row.name,
        "family": export.row.family,
        "exporter": export.exporter,
        "environment": export.environment,
        "torch": torch.__version__,
    }
    case = export.row.build()
    # An axis of 1 in the example is a fixed axis of 1 for exporters that trace: the first set has none where there is such a set.
    case.inputs.sort(key=lambda inputs: has_one(case, inputs))
    start_state = {name: value.clone() for name, value in case.model.named_buffers()}
    meta |= exporters.find(export.exporter)(case, folder, export.row.options)
    restore(case.model, start_state)
    arrays = [{key: value.numpy() if hasattr(value, "numpy") else value for key, value in inputs.items()} for inputs in case.inputs]
    eager = [] if getattr(case.model, "reference", None) else run_eager(case, False)
    save(folder, "inputs", [inputs.items() for inputs in arrays])
    if eager:
        meta["outputs_of_set"] = [[[str(value.dtype), list(value.shape)] for value in values] for values in eager]
        save(folder, "eager", [list(enumerate(values)) for values in eager])
    meta |= {"sets": len(arrays), "scores": case.scores, "dims": case.dims, "ones": [has_one(case, inputs) for inputs in case.inputs]}
    references(case, folder, meta)
    if meta.get("reference") == "float32":
        save(folder, "reference", [list(enumerate(values)) for values in eager])
    meta["seconds"] = round(time.monotonic() - start, 1)
    meta["bytes"] = sum(path.stat().st_size for path in folder.glob("model*"))
    return meta


def child(task, folder):
    """Never returns: what goes wrong is in meta.json as the row's reason."""
    os.setsid()
    log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.stdout = sys.stderr = os.fdopen(1, "w", encoding="utf-8", errors="replace", closefd=False)
    try:
        meta = make(task["name"], folder)
    except BaseException as error:  # exporters raise all kinds
        traceback.print_exc()
        while error.__cause__ is not None:  # what an exporter wraps says more
            error = error.__cause__
        lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines() if line.strip()]
        meta = {"name": task["name"], "error": f"{type(error).__name__}: {' '.join(lines)[:300]}"}
    (folder / "meta.json").write_text(json.dumps(meta, indent=1, default=str))
    sys.stdout.flush()
    os._exit(0)


def warm():
    """What exporters build once a process (tables of decompositions and of operators) is built before the forks."""
    import tempfile
    import torch

    torch.set_num_threads(1)
    model, inputs = torch.nn.Linear(2, 2).eval(), (torch.zeros(1, 2),)
    with torch.no_grad(), tempfile.TemporaryDirectory() as place:
        torch.export.export(model, inputs, strict=True)
        torch.export.export(model, inputs, strict=False).run_decompositions()
        torch.onnx.export(model, inputs, place + "/m.onnx", dynamo=True, verbose=False)


def serve():
    sys.stdout, answers = open(os.devnull, "w", encoding="utf-8"), sys.stdout
    for module in PRELOADED:
        try:
            importlib.import_module(module)
        except Exception as error:  # its rows will say so
            print(json.dumps({"note": f"{module}: {error}"[:300]}), file=answers, flush=True)
    try:
        warm()
    except Exception as error:  # an exporter that this environment lacks
        print(json.dumps({"note": str(error)[:300]}), file=answers, flush=True)
    catalog.rows()
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        folder = pathlib.Path(task["folder"])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "meta.json").unlink(missing_ok=True)
        start = time.monotonic()
        pid = os.fork()
        if pid == 0:
            child(task, folder)
        stopped, _, status = process.watch(pid, start, task["seconds"], task["limit"])
        if not (folder / "meta.json").exists():
            reason = stopped or f"the exporter's process ended by status {os.waitstatus_to_exitcode(status)}"
            (folder / "meta.json").write_text(json.dumps({"name": task["name"], "error": reason}))
        print(json.dumps({"name": task["name"], "seconds": round(time.monotonic() - start, 1)}), file=answers, flush=True)


if __name__ == "__main__":
    serve()
