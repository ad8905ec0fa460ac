"""What other implementations do with the same file. Run inside the peers' environment, one process a file and peer:

  peers.py PEER FOLDER          prints one line of JSON {state, why, seconds, outputs}; onnxruntime also writes ort_K.npz

pass, wrong (by the rule of the table), refused; what the process did not live to print is a crash."""

import json
import pathlib
import sys
import time

import numpy as np

import judge

PEERS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "iree": "IREE"}


def sets(folder, meta):
    for number in [number for number in range(meta["sets"]) if judge.fits(folder, meta, number)] or [0]:
        arrays = judge.load(folder / f"inputs_{number}.npz")
        yield number, {name: arrays[key] for name, key in zip(meta["inputs"], judge.Judge.order(meta, arrays))}


def onnxruntime(file, meta, folder):
    import onnxruntime as library

    options = library.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = library.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    for number, inputs in sets(folder, meta):
        outputs = session.run(None, inputs)
        outputs = [from_maps(value) for value in outputs]
        np.savez(folder / f"ort_{number}.npz", **{str(key): value for key, value in enumerate(outputs)})
        yield number, outputs


def from_maps(value):
    """An output as a tensor; a map a row (what ZipMap gives) by its values."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return np.array([list(each.values()) for each in value], np.float32)
    return np.asarray(value)


def openvino(file, meta, folder):
    import openvino as library

    core = library.Core()
    compiled = core.compile_model(core.read_model(str(file)), "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    for number, inputs in sets(folder, meta):
        result = compiled(list(inputs.values()))
        yield number, [np.array(result[output]) for output in compiled.outputs]


def iree(file, meta, folder):
    """The importer, then the compiler for this processor, then its runtime, as IREE's guide for ONNX has it."""
    import subprocess
    import tempfile
    import iree.runtime as runtime

    with tempfile.TemporaryDirectory() as place:
        text, code = pathlib.Path(place) / "m.mlir", pathlib.Path(place) / "m.vmfb"
        tools = pathlib.Path(sys.executable).parent
        subprocess.run([tools / "iree-import-onnx", file, "--opset-version", "17", "-o", text], check=True, capture_output=True, text=True)
        subprocess.run(
            [
                tools / "iree-compile",
                text,
                "--iree-hal-target-device=local",
                "--iree-hal-local-target-device-backends=llvm-cpu",
                "--iree-llvmcpu-target-cpu=host",
                "-o",
                code,
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        context = runtime.SystemContext(config=runtime.Config("local-task"))
        context.add_vm_module(runtime.VmModule.mmap(context.instance, str(code)))
        modules = [module for name, module in context.modules.items() if name != "hal"]
        function = next(modules[-1][name] for name in modules[-1].vm_module.function_names if not name.startswith("__") and "$" not in name)
        for number, inputs in sets(folder, meta):
            result = function(*inputs.values())
            yield number, [np.asarray(value) for value in (result if isinstance(result, (list, tuple)) else [result])]


def sentence(error):
    text = getattr(error, "stderr", None) or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    best = [line for line in lines if "error" in line.lower()] or lines
    return (best[0] if best else type(error).__name__)[:300]


def main():
    peer, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    meta = json.loads((folder / "meta.json").read_text())
    start, answer = time.monotonic(), {"state": "pass"}
    try:
        for number, outputs in globals()[peer](folder / meta["file"], meta, folder):
            why, error = judge.against(folder, meta, number, outputs, peer=peer != "onnxruntime")
            answer["error"] = max(answer.get("error", 0.0), error)
            if why and peer == "onnxruntime":
                answer["why"] = f"set {number}: {why}"  # the rule measures by it, so that it has run is all that counts here
            elif why:
                answer |= {"state": "wrong", "why": f"set {number}: {why}"}
                break
    except ImportError as error:
        answer = {"state": "absent", "why": str(error)}
    except Exception as error:  # all of their ways to refuse
        answer = {"state": "refused", "why": sentence(error)}
    answer["seconds"] = round(time.monotonic() - start, 1)
    print("ANSWER " + json.dumps(answer))


if __name__ == "__main__":
    main()
