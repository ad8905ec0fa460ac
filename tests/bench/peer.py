#!/usr/bin/env python3
"""A peer of compare_peers.py: another runtime on one file, with its default flags. Prints a JSON line with median_ms, create_ms,
peak_rss_mib and rel_err.

    peer.py openvino|onnxruntime MODEL.onnx --inputs FOLDER [--threads 1] [--seconds 2] [--precision f32]

FOLDER has in_NAME.npy, and out_NAME.npy for rel_err: max|got - want| / max|want| of the worst output. Latency is measured from call to
result, one request at a time, after a warm-up; --precision asks OpenVINO for f32 where it would take bf16 by itself. Needs numpy and the
runtime asked for, e.g. from PyPI in an environment of its own. Exit 1 with a sentence where the peer refuses the model."""
import argparse
import json
import pathlib
import resource
import statistics
import sys
import time

import numpy as np


def openvino(options, inputs):
    import openvino as library

    hints = {"INFERENCE_NUM_THREADS": options.threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}
    if options.precision:
        hints["INFERENCE_PRECISION_HINT"] = options.precision
    compiled = library.Core().compile_model(str(options.model), "CPU", hints)
    request = compiled.create_infer_request()
    names = [output.get_any_name() for output in compiled.outputs]
    feed = {port.get_any_name(): inputs[port.get_any_name()] for port in compiled.inputs}

    def run():
        request.infer(feed, share_inputs=True)
        return {name: np.array(request.get_output_tensor(i).data) for i, name in enumerate(names)}

    return run


def onnxruntime(options, inputs):
    import onnxruntime as library

    settings = library.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = options.threads, 3
    session = library.InferenceSession(str(options.model), settings, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    feed = {port.name: inputs[port.name] for port in session.get_inputs()}
    return lambda: dict(zip(names, session.run(names, feed)))


def arrays(folder, role):
    return {path.stem[len(role) + 1:]: np.load(path) for path in sorted(folder.glob(f"{role}_*.npy"))}


def relative_error(got, want):
    """Of the worst output; None where none is expected."""
    errors = [float(np.abs(got[name].astype(float) - array.astype(float)).max() / max(np.abs(array.astype(float)).max(), 1e-30))
              for name, array in want.items() if name in got and array.size]
    return max(errors, default=None)


def measure(run, seconds):
    """Milliseconds of runs, each timed, for so many seconds and at least five of them."""
    times, start = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        run()
        times.append(1000 * (time.perf_counter() - before))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["openvino", "onnxruntime"])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--inputs", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--precision", help="OpenVINO's INFERENCE_PRECISION_HINT; its own choice by default")
    options = parser.parse_args()
    if options.precision and options.peer != "openvino":
        parser.error("--precision is OpenVINO's")
    start = time.perf_counter()
    try:
        run = globals()[options.peer](options, arrays(options.inputs, "in"))
        created = 1000 * (time.perf_counter() - start)
        got = run()
    except ImportError as error:
        sys.exit(f"{error}: install it, e.g. with pip in a virtual environment, and run this script with its Python")
    except KeyError as error:
        sys.exit(f"{options.inputs} has no in_NAME.npy for input {error}")
    except Exception as error:  # all of their ways to refuse
        sentences = str(error).strip().splitlines() or [type(error).__name__]
        sys.exit(f"{options.peer} refuses {options.model}: {sentences[-1]}")
    times = measure(run, options.seconds)
    print(json.dumps({"median_ms": statistics.median(times), "min_ms": min(times), "create_ms": created,
                      "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                      "rel_err": relative_error(got, arrays(options.inputs, "out"))}))


if __name__ == "__main__":
    main()
