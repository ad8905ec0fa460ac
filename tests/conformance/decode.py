#!/usr/bin/env python3
"""A decoder with its cache in the session, for 32 greedy steps: a target with states against the CPU with states, and that
against the CPU with the cache passed in and out. Needs numpy (the system's python3-numpy).

decode.py BIN LIBDMXRT TARGET MODEL MIN_SQNR STEPS"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import dmxrt

try:
    import numpy
except ImportError:
    print("SKIPPED: numpy is not there")
    sys.exit(77)

TOOLS, LIBRARY, TARGET, MODEL = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
MIN_SQNR, STEPS = float(sys.argv[5]), int(sys.argv[6])
if not (MODEL / "model.onnx").exists():
    print(f"SKIPPED: {MODEL} is not there")
    sys.exit(77)


class Session(dmxrt.Session):
    def __init__(self, bundle, *device_options):
        super().__init__(bundle, library=LIBRARY, device_options=device_options)

    def step(self, **values):
        """A run on inputs that are filled with these values, or 0."""
        return self.run(**{t.name: numpy.full([low for low, _ in t.shape], values.get(t.name, 0), dmxrt.DTYPES[t.dtype])
                           if numpy.ndim(values.get(t.name, 0)) == 0 else values[t.name] for t in self.inputs})


def compile_model(output, *arguments):
    subprocess.run([TOOLS / "dmxc", MODEL / "model.onnx", "-q", "-o", output, *arguments], check=True)
    return output


def sqnr(got, wanted):
    noise = numpy.square(got - wanted).sum()
    return float("inf") if noise == 0 else 10 * numpy.log10(numpy.square(wanted).sum() / noise)


def inputs_of_model(scratch):
    """The names of the caches."""
    bundle = compile_model(scratch / "one.bundle", "--dim", "past=1")
    with Session(bundle) as opened:
        return [tensor.name for tensor in opened.inputs if tensor.name.startswith("past")]


def without_states(scratch, step, inputs, past):
    """A step with the caches passed in and out."""
    with Session(compile_model(scratch / "plain.bundle", "--dim", f"past={step}")) as plain:
        return plain.step(**inputs, **past)


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
        got, wanted = device.step(**inputs)["logits"], host.step(**inputs)["logits"]
        traffic.append(json.loads(report.read_text())["last"][0]["main"]["read_bytes"]["DDR"])
        worst = min(worst, sqnr(got, wanted))
        equal += got.argmax() == wanted.argmax()
        reference = without_states(scratch, step, inputs, past)
        if sqnr(wanted, reference["logits"]) < 80:
            print(f"FAIL: step {step}: the CPU with states differs from the CPU without")
            return 1
        whole += 1
        past = {name: reference[name.replace("past", "present")] for name in caches}
        token = int(wanted.argmax())
    print(f"{STEPS} steps: worst {worst:.1f} dB, {equal} of {STEPS} tokens equal; the cache in the session equals the cache "
          f"passed in and out at {whole} steps; DDR bytes read a step: first {traffic[0]}, last {traffic[-1]}")
    return int(worst < MIN_SQNR or equal < STEPS - 1 or traffic[1] != traffic[-1])


with tempfile.TemporaryDirectory(prefix="dmxc-decode-") as folder:
    sys.exit(decode(pathlib.Path(folder)))
