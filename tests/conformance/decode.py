#!/usr/bin/env python3
"""A decoder with its cache in the session, for 32 greedy steps: a target with states against the CPU with states, and that
against the CPU with the cache passed in and out. Needs numpy (the system's python3-numpy).

decode.py BIN LIBDMXRT TARGET MODEL MIN_SQNR STEPS"""
import ctypes
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import dmxrt

try:
    import numpy
except ImportError:
    print("SKIPPED: numpy is not there")
    sys.exit(77)

TOOLS, LIBRARY, TARGET, MODEL = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
MIN_SQNR, STEPS = float(sys.argv[5]), int(sys.argv[6])
DTYPES = {dmxrt.I64: numpy.int64, dmxrt.F32: numpy.float32}
if not (MODEL / "model.onnx").exists():
    print(f"SKIPPED: {MODEL} is not there")
    sys.exit(77)


class Session(dmxrt.Session):
    def __init__(self, bundle, *device_options):
        super().__init__(LIBRARY, bundle, *device_options)
        self.tensors = [self.bind_all(io) for io in (dmxrt.INPUT, dmxrt.OUTPUT)]

    def bind_all(self, io):
        tensors = {}
        for i in range(self.lib.dmx_bundle_tensor_count(self.bundle, None, io)):
            info = dmxrt.Info(ctypes.sizeof(dmxrt.Info))
            self.call("dmx_bundle_tensor_info", self.bundle, None, io, i, ctypes.byref(info))
            array = numpy.zeros([info.dims[d].min for d in range(info.rank)], DTYPES[info.dtype])
            self.bind(io, i, info.dtype, array.shape, array.ctypes.data)
            tensors[info.name.decode()] = array
        return tensors

    def run(self, **inputs):
        for name, value in inputs.items():
            self.tensors[0][name][...] = value
        self.call("dmx_session_run", self.session)
        return self.tensors[1]


def compile_model(output, *arguments):
    subprocess.run([TOOLS / "dmxc", MODEL / "model.onnx", "-q", "-o", output, *arguments], check=True)
    return output


def sqnr(got, wanted):
    noise = numpy.square(got - wanted).sum()
    return float("inf") if noise == 0 else 10 * numpy.log10(numpy.square(wanted).sum() / noise)


def inputs_of_model(scratch):
    """The names of the caches."""
    bundle = compile_model(scratch / "one.bundle", "--dim", "past=1")
    return [name for name in Session(bundle).tensors[0] if name.startswith("past")]


def decode(scratch):
    caches = inputs_of_model(scratch)
    states = [part for name in caches for part in ("--state", f"{name}={name.replace('past', 'present')}")]
    capacity = ["--dim", f"past={STEPS - 1}"]
    report = scratch / "report.json"
    device = Session(compile_model(scratch / "device.bundle", "-t", TARGET, *capacity, *states), f"report={report}")
    host = Session(compile_model(scratch / "host.bundle", *capacity, *states))
    token, worst, equal, whole, traffic = 1, float("inf"), 0, 0, []
    past = {}
    for step in range(STEPS):
        inputs = {"input_ids": token, "position_ids": step}
        got, wanted = device.run(**inputs)["logits"].copy(), host.run(**inputs)["logits"].copy()
        traffic.append(json.loads(report.read_text())["last"][0]["main"]["read_bytes"]["DDR"])
        worst = min(worst, sqnr(got, wanted))
        equal += got.argmax() == wanted.argmax()
        if step in (0, 1, 7, STEPS - 1):  # the cache passed in and out
            plain = Session(compile_model(scratch / "plain.bundle", "--dim", f"past={step}"))
            for name in caches:
                plain.tensors[0][name][...] = past.get(name, 0)
            reference = plain.run(**inputs)
            if sqnr(wanted, reference["logits"]) < 80:
                print(f"FAIL: step {step}: the CPU with states differs from the CPU without")
                return 1
            whole += 1
            token_cache = reference
        else:
            token_cache = None
        past = grow(scratch, caches, past, inputs, token_cache, step)
        token = int(wanted.argmax())
    print(f"{STEPS} steps: worst {worst:.1f} dB, {equal} of {STEPS} tokens equal; the cache in the session equals the cache "
          f"passed in and out at {whole} steps; DDR bytes read a step: first {traffic[0]}, last {traffic[-1]}")
    return int(worst < MIN_SQNR or equal < STEPS - 1 or traffic[1] != traffic[-1])


def grow(scratch, caches, past, inputs, present, step):
    """The caches after a step, from the model without states."""
    if present is None:
        plain = Session(compile_model(scratch / "plain.bundle", "--dim", f"past={step}"))
        for name in caches:
            plain.tensors[0][name][...] = past.get(name, 0)
        present = plain.run(**inputs)
    return {name: present[name.replace("past", "present")].copy() for name in caches}


with tempfile.TemporaryDirectory(prefix="dmxc-decode-") as folder:
    sys.exit(decode(pathlib.Path(folder)))
