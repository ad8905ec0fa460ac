"""What a graph must fulfil: every variant compiles, runs and gives what the interpreter and ONNX Runtime give."""
import pathlib
import platform
import shutil

import numpy as np

from device import LEAST_SQNR, slack, Device, other_bits, sqnr
from graph import is_float
from worker import Worker

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")


def levels():
    """Those of this processor."""
    if platform.machine() != "x86_64":
        return []
    flags = set(pathlib.Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].split("\n", 1)[0].split())
    return [level for level, flag in zip(LEVELS, ("sse4_2", "avx2", "avx512vl")) if flag in flags]


class Failure:
    """`what`: compile, run, interpreter, wrong or oracles; with `variant` it tells apart what a reducer must keep."""

    def __init__(self, variant, what, text, binding=0, output=None, oracle=None):
        self.variant, self.what, self.text, self.binding, self.output, self.oracle = variant, what, text, binding, output, oracle

    def __str__(self):
        return f"{self.variant}: {self.what}: {self.text.strip()[:600]}"

    def like(self, other):
        return self.variant == other.variant and self.what == other.what and kind(self.text) == kind(other.text)


def kind(text):
    """What stays of a message when names and numbers are left out."""
    for mark in ("[", "Assertion", "signal"):
        if mark in text:
            return text[text.rindex(mark) if mark == "[" else text.index(mark):][:40]
    return "".join(c for c in text if c.isalpha() or c == " ")[:24]


def different(value, got, wanted):
    """How an output differs from what it must be; None where it does not."""
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return f"is {got.dtype}{list(got.shape)}, not {wanted.dtype}{list(wanted.shape)}"
    if not got.size:
        return None
    if not is_float(value.dtype) and got.dtype.kind != "f":
        bad = np.abs(got.astype(object) - wanted.astype(object)) > value.err if got.dtype != np.bool_ else got != wanted
    else:
        a, b = got.astype(np.float64), wanted.astype(np.float64)
        with np.errstate(invalid="ignore"):
            bad = ~((np.abs(a - b) <= 2 * value.err) | (a == b) | (np.isnan(a) & np.isnan(b)))
    bad = np.asarray(bad, bool)
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} elements differ, first {list(at)}: {got[at]} instead of {wanted[at]} (bound {2 * value.err:.3g})"


class Checker:
    """Checks graphs in a folder of its own. `second`: the command of ONNX Runtime, or None; `devices`: also on corsair."""

    def __init__(self, bin_, folder, second=None, devices=True, level_list=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.worker = Worker([bin_ / "dmx-graph-worker"], self.folder)
        self.second = Worker(second, self.folder) if second else None
        self.device = Device(bin_ / "dmx-inspect") if devices else None
        self.levels = level_list if level_list is not None else levels()
        self.refused, self.noisy = [], []
        self.compiles = self.runs = 0

    def close(self):
        self.worker.close()
        if self.second:
            self.second.close()

    # --- one graph ------------------------------------------------------------------------------------------------
    def check(self, graph, seed, only=None, bindings=None):
        """The failures of a graph. `only`: the variants to check; `bindings`: those to run."""
        for old in self.folder.glob("*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        self.graph, self.failures, self.only, self.seed = graph, [], only, seed
        self.bindings = list(range(len(graph.bindings))) if bindings is None else bindings
        (self.folder / "m.onnx").write_bytes(graph.bytes())
        for k in self.bindings:
            into = self.folder / f"in{k}"
            into.mkdir()
            for value in graph.inputs:
                np.save(into / f"{value.name}.npy", graph.data(value, k, seed))
        self.expected = {k: {} for k in self.bindings}  # binding -> oracle -> results
        self.accepted = None  # whether ONNX Runtime runs it
        if self.second:
            self.ask_second()
        self.interpret()
        self.judge_oracles()
        for name, arguments, which, isas in self.variants():
            if only is None or name in only:
                self.variant(name, arguments, which, isas)
        return self.failures

    def dims(self, k, graph=None):
        used = {d.key for v in (graph or self.graph).inputs for d in v.dims}
        return [word for name, value in self.graph.bindings[k].items() if name in used for word in ("--dim", f"{name}={value}")]

    def variants(self):
        """(name, arguments, bindings, levels that run)"""
        every, first, levels_ = self.bindings, self.bindings[:1], self.levels
        both = ["-t", "cpu:" + "+".join(levels_)] if levels_ else ["-t", "cpu"]
        one = lambda i: ["-t", "cpu:" + levels_[i % len(levels_)]] if levels_ else ["-t", "cpu"]
        yield "open-O2", both + ["-O2"], every, levels_ or [""]
        yield "open-O0", one(1) + ["-O0"], every, [""]
        if self.graph.bindings[0]:
            for k in every:
                yield f"static{k}-O2", one(k + 1) + ["-O2"] + self.dims(k), [k], [""]
            yield f"static{first[0]}-O0", one(2) + ["-O0"] + self.dims(first[0]), first, [""]
        else:
            yield "static-O3", one(2) + ["-O3"], every, [""]
        if self.device:
            card = ["-t", "corsair", "--dump-phases", "phases"]
            yield "corsair", card + self.dims(first[0]), first, [""]
            if len(every) > 1:
                yield f"corsair{every[1]}", card + self.dims(every[1]), every[1:2], [""]
                yield "corsair-open", card, every, [""]

    def folders(self, bindings, stem):
        return [word for k in bindings for word in (f"in{k}", f"{stem}{k}")]

    def load(self, stem, k):
        return {name: np.load(self.folder / f"{stem}{k}" / f"out_{name}.npy") for name in self.graph.outputs}

    def ask_second(self):
        done = self.second.ask("m.onnx", *self.folders(self.bindings, "ort"))
        self.accepted = bool(done)
        self.why = done.text
        if done:
            for k in self.bindings:
                self.expected[k]["ONNX Runtime"] = self.load("ort", k)
        else:
            self.refused.append(("ONNX Runtime", done.text))

    def interpret(self):
        for k in self.bindings:
            done = self.worker.ask("interpret", f"in{k}", f"ref{k}", "m.onnx", "-q", *self.dims(k))
            if done:
                self.expected[k]["interpreter"] = self.load("ref", k)
            elif "shape that is not known" not in done.text and "does not know this op" not in done.text:
                if self.accepted is not False:
                    self.failures.append(Failure("interpreter", "interpreter", code_text(done), k))

    def judge_oracles(self):
        for k, oracles in self.expected.items():
            if len(oracles) == 2:
                self.compare("interpreter", oracles["interpreter"], oracles["ONNX Runtime"], k, "oracles")

    def variant(self, name, arguments, which, isas):
        done = self.worker.ask("compile", "m.onnx", "-o", "m.bundle", "-q", "--reproducer", "reproducer", *arguments)
        self.compiles += 1
        if not done:
            if self.accepted is False and done.code == 1:
                self.refused.append((name, done.text))
            else:
                self.failures.append(Failure(name, "compile", code_text(done), which[0]))
            return
        for isa in isas:
            done = self.worker.ask("run", "m.bundle", isa, 1 if isa else 2, "", *self.folders(which, "got"))
            self.runs += 1
            if not done:
                self.failures.append(Failure(name, "run", code_text(done) + (f" ({isa})" if isa else ""), which[0]))
                continue
            for k in which:
                got, oracles = self.load("got", k), self.expected[k]
                if not oracles:
                    oracles.update({name: got})  # the variants must agree at least
                if "corsair" in name:
                    self.compare_coarse(name, arguments, got, next(iter(oracles.values())), k)
                    continue
                for oracle, wanted in oracles.items():
                    self.compare(f"{name} {isa}".strip(), got, wanted, k, "wrong", name, oracle)

    def compare(self, who, got, wanted, k, what, variant=None, oracle="ONNX Runtime"):
        for name in self.graph.outputs:
            text = different(self.graph.values[name], got[name], wanted[name])
            if text:
                self.failures.append(Failure(variant or who, what, f"output {name} at {self.graph.bindings[k]} against {oracle}: {text}", k, name, oracle))
                return

    def compare_coarse(self, who, arguments, got, wanted, k):
        """On a device of coarse numbers: its bits where they can be told, and what no jump makes far away is near."""
        bits = self.device.bits(self.folder, f"in{k}")
        for name in self.graph.outputs:
            value, a, b = self.graph.values[name], got[name], wanted[name]
            text = None
            if a.shape != b.shape or a.dtype != b.dtype:
                text = f"{a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
            elif bits is not None:
                text = other_bits(a, bits[name])
            elif a.size and not value.hazy:
                text = different(value, a, b) if a.dtype.kind != "f" else self.too_noisy(who, arguments, a, b, k, name)
            if text:
                self.failures.append(Failure(who, "wrong", f"output {name} at {self.graph.bindings[k]}: {text}", k, name))
                return

    def too_noisy(self, who, arguments, got, wanted, k, name):
        """What is wrong with an output below the least ratio; None where the device's formats alone lose as much."""
        ratio = sqnr(got, wanted)
        if ratio >= LEAST_SQNR:
            return None
        # Alone: of what another output needs, the interpreter may not know the shapes.
        alone = self.graph.part([name])
        (self.folder / "one.onnx").write_bytes(alone.bytes())
        done = self.worker.ask("formats", f"in{k}", "formats", "one.onnx", "-q", *arguments[:2], *self.dims(k, alone))
        if not done:
            return f"{ratio:.1f} dB, and the interpreter in the same formats says: {done.text[:200]}"
        formats = sqnr(np.load(self.folder / "formats" / f"out_{name}.npy"), wanted)
        if formats < LEAST_SQNR and formats - slack(got.size) <= ratio:
            self.noisy.append((self.seed, who, name, ratio, formats))
            return None
        return f"{ratio:.1f} dB, the interpreter in the same formats {formats:.1f} dB"


def code_text(done):
    return (f"signal {-done.code}" if done.code < 0 else f"exit {done.code}") + ": " + done.text
