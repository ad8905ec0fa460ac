"""Compiles a file with dmxc and runs it with dmx-run as a user would, and holds the results against the
framework's by the rule (rule.py)."""

import datetime
import json
import pathlib
import re
import tempfile

import numpy as np

import process
import rule

COMPILE_SECONDS, RUN_SECONDS, MEMORY = 120, 120, 8 << 30


def load(path):
    """The arrays of a file of sets, in order; nothing where there is none."""
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


class Judge:
    def __init__(self, programs, target="", run_options=()):
        self.programs, self.target = pathlib.Path(programs), ["-t", target] if target else []
        self.run_options = list(run_options)  # of dmx-run

    def judge(self, folder, first_alone=False):
        """{mode: result} of a folder of export_one. first_alone: the file as it is, without the mode that fixes its sizes."""
        meta = json.loads((folder / "meta.json").read_text())
        sets = [number for number in range(meta["sets"]) if fits(folder, meta, number)] or [0]
        results = {}
        for mode in self.modes(meta)[: 1 if first_alone else 2]:
            arguments = self.fixing(folder, meta) if mode == "fixed" else []
            results[mode] = self.mode(folder, meta, arguments, [0] if arguments else sets)
        return results

    @staticmethod
    def modes(meta):
        return ["open", "fixed"] if Judge.is_open(meta) else ["fixed"]

    @staticmethod
    def is_open(meta):
        return any(not isinstance(size, int) for sizes in meta["inputs"].values() for size in sizes)

    @staticmethod
    def fixing(folder, meta):
        """Arguments that fix every size as the first set has it: by the dim's name where it has one, by the input's shape where not."""
        arrays, words, dims = load(folder / "inputs_0.npz"), [], {}
        for (name, sizes), values in zip(meta["inputs"].items(), [arrays[key] for key in Judge.order(meta, arrays)]):
            by_name = True
            for size, extent in zip(sizes, values.shape):
                if isinstance(size, str) and re.fullmatch(r"[A-Za-z_]\w*", size):
                    dims[size] = extent
                elif not isinstance(size, int):
                    by_name = False
            if not by_name:
                words += ["--shape", f"{name}={'x'.join(map(str, values.shape))}"]
        return words + [word for name, extent in dims.items() for word in ("--dim", f"{name}={extent}")]

    @staticmethod
    def order(meta, arrays):
        """Names of our arrays in the file's order: by name where the file kept them, by place where not."""
        names = list(meta["inputs"])
        return names if all(name in arrays for name in names) else list(arrays)[: len(names)]

    def mode(self, folder, meta, arguments, sets):
        with tempfile.TemporaryDirectory(dir=folder.parents[1], prefix="judge-") as place:
            bundle = pathlib.Path(place) / "m.bundle"
            done = self.compile(folder, meta, "-o", bundle, "--reproducer", place, *self.target, *arguments)
            day = datetime.date.today().isoformat()
            result = {"compile_s": round(done.seconds, 1), "compile_bytes": done.peak, "arguments": arguments, "day": day}
            if done.code or done.stopped:
                return result | {"state": self.ended(done, "refused"), "why": done.reason(), "all": errors(done.text)}
            result["bundle_bytes"] = bundle.stat().st_size
            for number in sets:
                state, why, error = self.run_set(folder, meta, bundle, number)
                result["error"] = max(result.get("error", 0.0), error)
                if state != "pass":
                    return result | {"state": state, "why": f"set {number}: {why}"}
            return result | {"state": "pass"}

    def compile(self, folder, meta, *arguments):
        command = [self.programs / "dmxc", folder / meta["file"], "--color", "never", "--progress", "none", *arguments]
        return process.run(command, COMPILE_SECONDS, MEMORY)

    def read(self, folder):
        """What the front end alone says: fast, and all of its refusals."""
        meta = json.loads((folder / "meta.json").read_text())
        with tempfile.TemporaryDirectory(prefix="dmxc-read-") as place:
            done = self.compile(folder, meta, "--emit", "frontend", "-o", "/dev/null", "--reproducer", place)
        bad = done.code or done.stopped
        return {
            "state": self.ended(done, "refused") if bad else "imports",
            "why": done.reason() if bad else "",
            "all": errors(done.text),
            "compile_s": round(done.seconds, 1),
        }

    @staticmethod
    def ended(done, otherwise):
        return "crash" if done.crashed() else "limit" if done.stopped else otherwise

    def run_set(self, folder, meta, bundle, number):
        """(state, why, error) of one set."""
        shown = process.run([self.programs / "dmx-inspect", bundle, "--json"], 60)
        if shown.code:
            return self.ended(shown, "wrong"), "dmx-inspect: " + shown.reason(), 0.0
        roles = json.loads(shown.text)["inputs and outputs"]
        inputs = [each["name"] for each in roles if each["role"] == "input"]
        outputs = [each["name"] for each in roles if each["role"] == "output"]
        arrays = load(folder / f"inputs_{number}.npz")
        keys = dict(zip(meta["inputs"], self.order(meta, arrays)))
        place, words = bundle.parent, []
        for at, name in enumerate(inputs):
            if name not in keys and len(inputs) != len(keys):
                return "wrong", f"the bundle wants an input {name} that the file does not have", 0.0
            np.save(place / f"i{at}.npy", arrays[keys.get(name) or list(keys.values())[at]])
            words += ["--input", f"{name}={place}/i{at}.npy"]
        for at, name in enumerate(outputs):
            words += ["--output", f"{name}={place}/o{at}.npy"]
        done = process.run([self.programs / "dmx-run", bundle, *words, *self.run_options], RUN_SECONDS, MEMORY)
        if done.code or done.stopped:
            return self.ended(done, "wrong"), "dmx-run: " + done.reason(), 0.0
        got = [np.load(place / f"o{at}.npy") for at in range(len(outputs))]
        why, error = against(folder, meta, number, got)
        return ("wrong" if why else "pass"), why, error


def fits(folder, meta, number):
    """Whether the file takes a set: an exporter may have fixed what the case leaves open, and torch.export's open axes begin at 2."""
    arrays = load(folder / f"inputs_{number}.npz")
    if meta["file"].endswith(".pt2") and meta.get("ones", [False] * meta["sets"])[number]:
        return number == 0
    return all(
        len(sizes) == arrays[key].ndim
        and all(size == extent or not isinstance(size, int) for size, extent in zip(sizes, arrays[key].shape))
        for sizes, key in zip(meta["inputs"].values(), Judge.order(meta, arrays))
    )


def errors(text):
    """Every refusal of a compile, without the file's name."""
    return [line.split("error:", 1)[1].strip()[:300] for line in text.splitlines() if "error:" in line][:40]


def against(folder, meta, number, got, peer=True):
    """What is wrong with a set's outputs. The peer of the rule is ONNX Runtime where it ran the file, the framework in the model's own
    type where no ONNX Runtime can."""
    reference = list(load(folder / f"reference_{number}.npz").values())
    other = load(folder / f"ort_{number}.npz")
    if other is None and meta["file"].endswith(".pt2"):
        other = load(folder / f"eager_{number}.npz")
    return rule.check(
        got, reference, expected_outputs(folder, meta, number), list(other.values()) if peer and other else None, meta.get("scores")
    )


def expected_outputs(folder, meta, number):
    """[dtype, shape] of each output: the framework's, except where the file itself says another type (converted to f16, ids as i64)."""
    expected = meta["outputs_of_set"][number]
    other = load(folder / f"ort_{number}.npz")
    if other is None or len(other) != len(expected):
        return expected
    return [[str(theirs.dtype), shape] for (_, shape), theirs in zip(expected, other.values())]
