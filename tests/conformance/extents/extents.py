#!/usr/bin/env python3
"""Every operator with each of its axes at 0 and 1, known at compile time, left to the run, and folded by the reference
interpreter; at every level of the CPU target that this machine runs, and for other targets. Judged by the operators'
definitions in numpy (cases.py); with DMXC_LONG=1 over all combinations of extents and at every level; a plain run takes a sixth of the operators, others in each run. A refusal is a failure unless the table has the sentence of the definition that forbids the shape.

Usage: extents.py BIN [--targets cpu,corsair] [--modes static,open,folded] [--only GLOB] [--failures FILE] [-j N]
Exit 77 where numpy is not installed."""
import argparse
import concurrent.futures
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from case import Placed, model
from cases import CASES, INSIDE
from levels import levels_here
from reached import Reached, computed
from sampling import LONG, sample

CHUNK = 60  # nodes of a model
LIMIT = 180  # seconds of one command


def sqnr(wanted, got):
    finite = np.isfinite(wanted)
    noise = ((wanted[finite] - got[finite]) ** 2).sum()
    return np.inf if not noise else 10 * np.log10((wanted[finite] ** 2).sum() / noise)


def in_device_numbers(wanted, got):
    """What f16 makes of results: below its smallest normal number they are zero, infinities saturate where the device
    computed them (the host, which has parts of a graph, keeps them)."""
    wanted, got = (np.where(np.abs(x) < 2.0 ** -14, 0.0, x) for x in (wanted, got))
    return np.where(np.isinf(wanted) & np.isfinite(got), np.clip(wanted, -65504.0, 65504.0), wanted), got


class Judge:
    def __init__(self, target):
        self.target = target

    def differs(self, placed, sizes, results):
        """What is wrong with a node's results; None where nothing is."""
        for i, (wanted, got) in enumerate(zip(placed.case.wanted(sizes), results)):
            if got.shape != wanted.shape:
                return f"result {i} has the shape {got.shape}, not {wanted.shape}"
            floats = wanted.dtype.kind == "f"
            if floats != (got.dtype.kind == "f"):
                return f"result {i} is of type {got.dtype}"
            if not floats:
                close = 0 if self.target == "cpu" and not placed.case.op.startswith(("Quantize", "QLinear", "Dynamic")) else 1
                wrong = np.abs(wanted.astype(np.int64) - got.astype(np.int64)) > close
            elif self.target == "cpu":
                wrong = ~np.isclose(got, wanted, placed.case.tolerance, placed.case.tolerance, equal_nan=True)
            elif placed.case.coarse(sizes):
                continue  # numbers of the device do not hold what the definition needs
            else:
                wanted, got = in_device_numbers(wanted, got)
                wrong = (np.isnan(wanted) != np.isnan(got)) | (np.isinf(wanted) != np.isinf(got))
                if not wrong.any() and sqnr(wanted, got) < 20:
                    return f"result {i} has {sqnr(wanted, got):.1f} dB: {got.reshape(-1)[:4]}, not {wanted.reshape(-1)[:4]}"
            if wrong.any():
                at = tuple(int(a) for a in np.argwhere(wrong)[0])
                return f"result {i} at {at} is {got[at]}, not {wanted[at]}"
        return None


class Tools:
    """dmxc and dmx-run with their files in a folder."""

    def __init__(self, bin_, folder, target, levels):
        self.bin, self.folder, self.target, self.levels = bin_, folder, target, levels

    def compile(self, placed, name):
        path = self.folder / f"{name}.onnx"
        path.write_bytes(model(placed))
        target = "cpu:" + "+".join(self.levels) if self.target == "cpu" else self.target
        return self.run("dmxc", path, "-t", target, "-o", self.folder / f"{name}.bundle", "--dump-phases", self.folder / f"{name}-phases")

    def ops(self, name):
        """What the phases made of a model whose ops are DMIR's."""
        return "".join((self.folder / f"{name}-phases" / phase).read_text() for phase in ("1-frontend.mlir", "2-partition.mlir"))

    def execute(self, placed, name, sizes, level):
        """Runs a model; its results by node, or what went wrong."""
        work = self.folder / f"{name}-{level}"
        shutil.rmtree(work, ignore_errors=True)
        (work / "in").mkdir(parents=True)
        for p in placed:
            if p.folded:
                continue
            for key, value in p.case.values(sizes[p]).items():
                if key not in p.case.constants:
                    np.save(work / "in" / f"{p.prefix}{key}.npy", value)
        isa = ["--isa", level] if self.target == "cpu" else []
        done = self.run("dmx-run", self.folder / f"{name}.bundle", "--inputs", work / "in", "--output-dir", work / "out", "--threads", "1", *isa)
        if done.returncode:
            return None, done
        return {p: [np.load(work / "out" / f"out_{p.prefix}o{i}.npy") for i in range(p.case.results)] for p in placed}, done

    def run(self, tool, *arguments):
        command = [self.bin / tool, *map(str, arguments)]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"error: {tool} has not ended within {LIMIT} s")


def said(done, label):
    """What a tool says of a node."""
    lines = [line for line in done.stderr.splitlines() if label + "'" in line] or [
        line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines() or ["no message"]
    return f"exit {done.returncode}: {lines[0].split('.onnx: ')[-1][:300]}"


class Batch:
    """Nodes that are compiled together; those that a tool stumbles over are taken out and named."""

    def __init__(self, tools, judge, name, placed, runs):
        self.tools, self.judge, self.name, self.placed, self.runs = tools, judge, name, placed, runs
        self.failures, self.refused, self.checked, self.reached = [], 0, 0, Reached()

    def fail(self, placed, sizes, why):
        label = placed.label if placed.sizes is not None else f"{placed.label} open, " + ",".join(f"{k}={v}" for k, v in sizes.items())
        self.failures.append(f"{label}{' folded' if placed.folded else ''}: {why}")
        print("FAILED", self.failures[-1], flush=True)

    def refuse(self, placed, sizes, done, where):
        """A refusal: by an exit code and a sentence, and only where the definition forbids the shape."""
        if done.returncode in (1, 2, 4) and placed.case.forbidden(sizes):
            self.refused += 1
        else:
            self.fail(placed, sizes, f"{where} {said(done, placed.label)}")

    def go(self):
        for alone in self.compiled(self.placed, self.name):
            for number, sizes in enumerate(self.runs(alone)):
                for level in self.tools.levels:
                    self.execute(alone, f"{self.name}", sizes, level)
        return self

    def named(self, placed, done):
        """The nodes that a message names."""
        return [p for p in placed if re.search(re.escape(p.label) + r"(?![0-9])", done.stderr)]

    def compiled(self, placed, name):
        """Yields the nodes that could be compiled together."""
        while placed:
            done = self.tools.compile(placed, name)
            if not done.returncode:
                self.reached.add(self.tools.ops(name))
                yield placed
                return
            culprits = self.named(placed, done) if done.returncode in (1, 4) else []
            if len(placed) == 1 or not culprits:
                if len(placed) == 1:
                    self.refuse(placed[0], placed[0].sizes or placed[0].case.base, done, "dmxc:")
                    return
                half = len(placed) // 2
                yield from self.compiled(placed[:half], name)
                yield from self.compiled(placed[half:], name)
                return
            for p in culprits:
                self.refuse(p, p.sizes or p.case.base, done, "dmxc:")
            placed = [p for p in placed if p not in culprits]

    def execute(self, placed, name, sizes, level):
        results, done = self.tools.execute(placed, name, sizes, level)
        if results is None:
            if len(placed) == 1:
                return self.refuse(placed[0], sizes[placed[0]], done, f"dmx-run {level}:")
            return self.separately(placed, name, sizes, level)
        for p in placed:
            if p.case.forbidden(sizes[p]):
                continue # what is not defined may have any result
            self.checked += 1
            if why := self.judge.differs(p, sizes[p], results[p]):
                self.fail(p, sizes[p], f"{level}: {why}")

    def separately(self, placed, name, sizes, level):
        """Halves of what a run fails with, compiled anew, down to the nodes that are at fault."""
        half = len(placed) // 2
        for part in (placed[:half], placed[half:]):
            if self.tools.compile(part, name + "-part").returncode:
                for p in part:
                    self.fail(p, sizes[p], "it compiles with others only")
            else:
                self.execute(part, name + "-part", sizes, level)


def chunks(items):
    return [items[i:i + CHUNK] for i in range(0, len(items), CHUNK)]


def batches(tools, judge, mode, cases):
    """The models of a mode."""
    by_opset = {}
    for case in cases:
        by_opset.setdefault(case.opset, []).append(case)
    for opset, group in sorted(by_opset.items()):
        if mode == "open":
            for number, part in enumerate(chunks([c for c in group if c.is_open()])):
                placed = [Placed(c, i) for i, c in enumerate(part)]

                def runs(alone):
                    allowed = {p: [s for s in p.case.variants(LONG) if not p.case.forbidden(s)] for p in alone}
                    for i in range(max(len(v) for v in allowed.values())):
                        yield {p: allowed[p][i % len(allowed[p])] for p in alone}
                yield Batch(tools, judge, f"open-{opset}-{number}", placed, runs)
            # A run with a forbidden shape is refused as a whole, so that these nodes are alone.
            for number, c in enumerate(c for c in group if c.is_open()):
                if any(map(c.forbidden, c.variants(LONG))):
                    yield Batch(tools, judge, f"open-forbidden-{opset}-{number}", [Placed(c, 0)],
                                lambda alone: [{alone[0]: s} for s in alone[0].case.variants(LONG) if alone[0].case.forbidden(s)])
            continue
        every = [(c, s) for c in group for s in c.variants(LONG)]
        if mode == "folded" and not LONG:
            every = every[::6]
        legal = [cs for cs in every if not cs[0].forbidden(cs[1])]
        illegal = [cs for cs in every if cs[0].forbidden(cs[1])]
        for kind, part in [*(("", p) for p in chunks(legal)), *(("-forbidden", p) for p in chunks(illegal))]:
            placed = [Placed(c, i, s, mode == "folded") for i, (c, s) in enumerate(part)]
            name = f"{mode}-{opset}-{id(part)}{kind}"
            yield Batch(tools, judge, name, placed, lambda alone: [{p: p.sizes for p in alone}])


def uncovered():
    """Operators of the table of the importer that no case has; the domain com.microsoft has cases of its own."""
    table = pathlib.Path(__file__).resolve().parents[3] / "frontends" / "onnx" / "OPERATORS.md"
    rows = re.findall(r"^\| (?:[a-z.]+\.)?([A-Z]\w*) \| [^|]* \| ([^|]*) \|", table.read_text().partition("## The domain")[0], re.M)
    return sorted({name for name, types in rows if "refused" not in types} - {c.op for c in CASES} - INSIDE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--targets", default="cpu")
    parser.add_argument("--modes", default="static,open,folded")
    parser.add_argument("--only", default="*")
    parser.add_argument("--failures")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-extents-"))
    try:
        return run(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def batches_for(target, options, cases, folder):
    """The models for a target, with the tools that compile and run them."""
    levels = levels_here() if target == "cpu" else [target]
    folder.mkdir()
    for mode in options.modes.split(","):
        for number, batch in enumerate(batches(None, Judge(target), mode, cases)):
            few = levels if LONG or mode == "open" else [levels[number % len(levels)]]
            batch.tools = Tools(options.bin, folder, target, few)
            yield batch


def unreached(bin_, batches_done):
    """DMIR ops that are computed, but in no case at an extent of 0 or of 1."""
    reached = Reached()
    for batch in batches_done:
        reached.join(batch.reached)
    missing = reached.missing(computed(bin_))
    print("DMIR ops reached at 0 and 1: " + ", ".join(sorted(reached.ops["0"] & reached.ops["1"])))
    for what in missing:
        print("FAILED no case reaches", what)
    return missing


def run(options, folder):
    if missing := uncovered():
        print("FAILED no case for", ", ".join(missing))
        return 1
    cases = [c for c in CASES if fnmatch.fnmatch(c.name, options.only)]
    cases = sample(cases, 12) if options.only == "*" else cases
    failed = []
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for target in options.targets.split(","):
            done = list(pool.map(Batch.go, batches_for(target, options, cases, folder / target)))
            failures = sorted({f for b in done for f in b.failures})
            failed += failures
            if target == "cpu" and LONG and options.only == "*" and {"static", "open"} <= set(options.modes.split(",")):
                failed += unreached(options.bin, done)
            print(f"{target}: {len(cases)} cases, {sum(b.checked for b in done)} results checked, {sum(b.refused for b in done)} forbidden shapes refused, "
                  f"{len(failures)} failures", flush=True)
    if options.failures:
        pathlib.Path(options.failures).write_text("\n".join(failed) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
