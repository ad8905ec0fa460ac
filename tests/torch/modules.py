#!/usr/bin/env python3
"""Modules of one operator (one_operator.py) as raw .pt2 and as both ONNX exporters of torch write them: compiled, run, equal to eager.
modules.py BIN [--ways raw,dynamo,script] [--keep DIR] [--share S] [NAME ..]: it runs in the environment that `tools/models --keep-envs` leaves.
Of what torch exports (and ONNX Runtime runs as eager does) at least S (0.95) must be right and none wrong; exit 77 without torch. --keep: where
exported files stay for the next time."""
import argparse
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import environment  # noqa: E402

environment.enter("numpy", "onnxruntime", "torch.export", "torchvision")
import numpy as np
import onnxruntime
import torch
import torch.export
sys.path.insert(0, str(HERE.parent / "models"))
sys.path.insert(0, str(HERE))
import one_operator
import rule

SECONDS = 60


class Module(torch.nn.Module):
    """A function of some tensors as a module whose results are a tuple."""

    def __init__(self, function):
        super().__init__()
        if isinstance(function, torch.nn.Module):
            self.inner = function
        self.function = function

    def forward(self, *tensors):
        result = self.function(*tensors)
        return tuple(result) if isinstance(result, (list, tuple)) else (result,)


def flatten(value):
    return [value] if isinstance(value, torch.Tensor) else [tensor for each in value for tensor in flatten(each)]


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]


@contextlib.contextmanager
def quiet():
    with torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def export(module, inputs, way, folder):
    """Writes the file; gives the names of its inputs."""
    if way == "raw":
        program = torch.export.export(module, inputs)
        torch.export.save(program, folder / "m.pt2")
        return "m.pt2", [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    if way == "dynamo":
        torch.onnx.export(module, inputs, dynamo=True, external_data=False).save(folder / "m.onnx")
    else:
        torch.onnx.export(module, inputs, folder / "m.onnx", dynamo=False, opset_version=17)
    session = onnxruntime.InferenceSession(folder / "m.onnx", providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    results = session.run(None, {name: value.numpy() for name, value in zip(names, inputs)})
    expected = [value.numpy() for value in flatten(module(*inputs))]
    if different(results, expected):
        raise RuntimeError("ONNX Runtime differs from eager: " + different(results, expected))
    return "m.onnx", names


def make(name, way, folder):
    """Exports in a process of its own: an exporter may take the process with it. Gives meta.json's contents."""
    folder.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        function, makers = one_operator.MODULES[name]
        try:
            with quiet():
                module, inputs = Module(function).eval(), tuple(maker() for maker in makers)
                expected = [value.detach().numpy() for value in flatten(module(*inputs))]
                file, names = export(module, inputs, way, folder)
            np.savez(folder / "inputs.npz", *[value.numpy() for value in inputs])
            np.savez(folder / "expected.npz", *expected)
            meta = {"file": file, "inputs": names}
        except BaseException as error:  # what torch does not export is not asked of us
            meta = {"why": first_line(error)}
        (folder / "meta.json").write_text(json.dumps(meta))
        os._exit(0)
    end = time.monotonic() + SECONDS
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.kill(child, 9)
            os.waitpid(child, 0)
            (folder / "meta.json").write_text(json.dumps({"why": f"no end in {SECONDS} s"}))
        time.sleep(0.02)
        if (folder / "meta.json").exists() and time.monotonic() > end:
            break
    if not (folder / "meta.json").exists():
        (folder / "meta.json").write_text(json.dumps({"why": "the exporter ended the process"}))
    return json.loads((folder / "meta.json").read_text())


def different(got, expected):
    """ "" or what is wrong."""
    if len(got) != len(expected):
        return f"{len(got)} results, expected {len(expected)}"
    for i, (ours, theirs) in enumerate(zip(got, expected)):
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return f"result {i} is {ours.dtype}{ours.shape}, expected {theirs.dtype}{theirs.shape}"
        if not theirs.size:
            continue
        if rule.is_float(str(theirs.dtype)):
            if (excess := rule.excess(ours, theirs)) > 1:
                return f"result {i} is {excess:.3g} times as far off as allowed"
        elif not np.array_equal(ours, theirs):
            return f"result {i} differs"
    return ""


def judge(programs, folder, meta):
    """ "" where it is right, "refused: .." or "WRONG: .."."""
    with tempfile.TemporaryDirectory(prefix="dmxc-modules-") as place:
        place = pathlib.Path(place)
        done = subprocess.run([programs / "dmxc", folder / meta["file"], "-o", place / "m.bundle", "--color", "never", "--progress", "none"],
                              capture_output=True, text=True, timeout=SECONDS)
        if done.returncode:
            lines = [line for line in done.stderr.strip().splitlines() if "error:" in line] or done.stderr.strip().splitlines()
            return ("WRONG: " if done.returncode not in (1, 2, 3) else "refused: ") + lines[0][:300]
        with np.load(folder / "inputs.npz") as values:
            for name, value in zip(meta["inputs"], values.values()):
                np.save(place / f"in_{name}.npy", value)
        done = subprocess.run([programs / "dmx-run", place / "m.bundle", "--inputs", place, "--output-dir", place], capture_output=True, text=True,
                              timeout=SECONDS)
        if done.returncode:
            return "WRONG: " + done.stderr.strip().splitlines()[0][:300]
        shown = json.loads(subprocess.run([programs / "dmx-inspect", place / "m.bundle", "--json"], capture_output=True, text=True).stdout)
        outputs = [each["name"] for each in shown["inputs and outputs"] if each["role"] == "output"]
        with np.load(folder / "expected.npz") as values:
            wrong = different([np.load(place / f"out_{name}.npy") for name in outputs], list(values.values()))
        return wrong and "WRONG: " + wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ways", default="raw,dynamo,script")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--share", type=float, default=0.95)
    arguments = parser.parse_intermixed_args()
    counts = {way: {"right": 0, "refused": 0, "wrong": 0} for way in arguments.ways.split(",")}
    names = arguments.names or list(one_operator.MODULES)
    with tempfile.TemporaryDirectory(prefix="dmxc-modules-") as temporary:
        for name in names:
            for way, count in counts.items():
                folder = (arguments.keep or pathlib.Path(temporary)) / way / name
                ready = folder / "meta.json"
                meta = json.loads(ready.read_text()) if ready.exists() else make(name, way, folder)
                if "why" in meta:
                    print(f"{name} {way}: not exported: {meta['why']}", flush=True)
                    continue
                problem = judge(arguments.bin.resolve(), folder, meta)
                count["right" if not problem else problem.split(":")[0].lower()] += 1
                print(f"{name} {way}: {problem or 'ok'}", flush=True)
    bad = 0
    for way, count in counts.items():
        asked = sum(count.values())
        bad += count["wrong"] + (asked > 0 and count["right"] < arguments.share * asked)
        print(f"{way}: {count['right']} of {asked} right, {count['refused']} refused, {count['wrong']} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
