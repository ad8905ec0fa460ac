#!/usr/bin/env python3
"""Hostile inputs to whole commands: bundles with right checksums that lie, models, archives, command lines. Usage:

  hostile.py BIN [--count N] [--first SEED] [--jobs N] [--keep FOLDER] [--only KIND]

Each seed is one input. What must hold: an exit code of the table and not that of an internal error, no signal, at most 10 s of
processor time, at most 2 GB of memory, an error where the code is not 0, no output where a compile failed. Machine code is left
alone: kernels are code. What fails is kept in FOLDER. Exit codes: 0, 1 when an input failed, 77 where numpy or onnx is missing."""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent), str(HERE.parent / "graphs"), str(HERE.parent.parent / "faults"), str(HERE.parent.parent / "torch")]
try:
    import models
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)
import mutate  # noqa: E402
import pt2file  # noqa: E402
from generate import generate  # noqa: E402
from sampling import LONG  # noqa: E402

CODES = {"dmxc": {0, 1, 2, 3, 4}, "dmx-run": {0, 1, 2, 3, 5}, "dmx-generate": {0, 1, 2, 3, 5}, "dmx-inspect": {0, 1, 2, 3, 5}, "dmx-sign": {0, 1, 2, 3, 5}, "dmx-compare": {0, 1, 2, 3, 5}}
SECONDS, BYTES, SPACE = 10, 2 << 30, 6 << 30
KINDS = (("bundle", 0.6), ("model", 0.22), ("archive", 0.06), ("command", 0.12))


class Failure(Exception):
    pass


def limits(seconds, space):
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 2, seconds + 4))
    resource.setrlimit(resource.RLIMIT_AS, (space, space))  # what a file declares may be more than there is: a named error
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(tools, folder, tool, *arguments, most=BYTES, seconds=SECONDS, space=SPACE):
    """Runs a command in a folder; gives its exit code and what it said. Raises Failure where it misbehaves. `most`: bytes, None
    where the input may ask for memory itself."""
    command = [os.fsencode(str(tools / tool)), *(os.fsencode(str(a)) for a in arguments)]
    with open(folder / ".said", "w+b") as said:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, preexec_fn=lambda: limits(seconds, space),
                                   env={**os.environ, "TMPDIR": str(folder / ".tmp"), "OMP_NUM_THREADS": "1"})
        timer = threading.Timer(12 * seconds, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = code = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace")
    used = usage.ru_utime + usage.ru_stime
    what = None
    if code not in CODES[tool]:
        what = f"exits with {code}"
    elif used > seconds:
        what = f"takes {used:.1f} s"
    elif most and usage.ru_maxrss << 10 > most:
        what = f"takes {usage.ru_maxrss >> 10} MiB"
    elif code and not re.search(r"error|FAIL|problem|usage|differ|mismatch|refused", text, re.IGNORECASE):
        what = f"exits with {code} and says no error"
    if what:
        raise Failure(f"{tool} {what}: {' '.join(text.split())[-300:]}")
    return code, text


class Inputs:
    """What is changed: models of a few kinds, the bundles made of them, archives, the flags of the tools."""

    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder
        self.models = [getattr(models, name)().SerializeToString() for name in ("lenet", "bert_toy", "dynamic")]
        self.models += [generate(seed).bytes() for seed in range(20)]
        self.bundles = []
        targets = [[], ["-t", "corsair"]] if b"corsair" in subprocess.run([tools / "dmxc", "--print-targets"], capture_output=True).stdout else [[]]
        for i, model in enumerate(self.models):
            (folder / "base.onnx").write_bytes(model)
            bundle = folder / f"base{i}.bundle"
            done = subprocess.run([tools / "dmxc", folder / "base.onnx", "-q", "-o", bundle, "--bundle-format", "dir", *targets[i % len(targets)]], capture_output=True, text=True)
            if done.returncode == 0:
                self.bundles.append(bundle)
        if len(self.bundles) < len(self.models) // 2:
            sys.exit(f"FAILED: {len(self.bundles)} of {len(self.models)} models compile: {done.stderr}")
        corpus = HERE.parent / "corpus"
        self.archives = [self.program()] + [path.read_bytes() for path in sorted((corpus / "torch").iterdir())]
        self.flags = {tool: re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", subprocess.run([tools / tool, "--help"], capture_output=True, text=True).stdout) for tool in CODES}
        self.flags = {tool: sorted(set(flags) - {"--benchmark", "--warmup", "--force"}) for tool, flags in self.flags.items()}

    @staticmethod
    def program():
        program = pt2file.Program()
        program.input("x", "f32", (2, "s0"))
        program.tensor("w", "parameter", "f32", (2, 1), b"\0\0\x80?" * 2)
        program.ranges["s0"] = {"min_val": 2, "max_val": 64}
        program.values.update(y=pt2file.meta("f32", (2, "s0")), z=pt2file.meta("f32", (2, "s0")))
        program.node("torch.ops.aten.add.Tensor", {"self": {"as_tensor": {"name": "x"}}, "other": {"as_tensor": {"name": "w"}}}, [{"as_tensor": {"name": "y"}}])
        program.node("torch.ops.aten.relu.default", {"self": {"as_tensor": {"name": "y"}}}, [{"as_tensor": {"name": "z"}}])
        program.output("z")
        return pt2file.archive(program.records())

    # Each writes one input into a folder and runs commands on it.
    def bundle(self, rng, folder):
        base, target = rng.choice(self.bundles), folder / "m.bundle"
        shutil.copytree(base, target, copy_function=os.link)
        name = "graph.json" if rng.random() < 0.85 else "manifest.json"
        text = mutate.lie_json(rng, (base / name).read_bytes())
        manifest = text
        if name == "graph.json":
            whole = json.loads((base / "manifest.json").read_text())
            for entry in whole["entries"]:
                if entry["name"] == name:
                    entry.update(size=len(text), sha256=hashlib.sha256(text).hexdigest())
            manifest = json.dumps(whole).encode()
        for entry, content in ((name, text), ("manifest.json", manifest), ("manifest.sha256", hashlib.sha256(manifest).hexdigest().encode() + b"\n")):
            (target / entry).unlink()
            (target / entry).write_bytes(content)
        run(self.tools, folder, "dmx-inspect", target, *rng.choice(([], ["--check"], ["--verify"])))
        run(self.tools, folder, "dmx-run", target, "-q", "--random-inputs", "1", "--threads", rng.choice((1, 2)), most=None)

    def compile(self, folder, path, *arguments):
        code, _ = run(self.tools, folder, "dmxc", path, "-q", "-o", "out.bundle", *arguments)
        if code and (folder / "out.bundle").exists():
            raise Failure(f"dmxc exits with {code} and leaves a bundle")
        if code == 0:
            run(self.tools, folder, "dmx-run", "out.bundle", "-q", "--random-inputs", "1", "--threads", "1", most=None)

    def model(self, rng, folder):
        data = rng.choice(self.models)
        (folder / "m.onnx").write_bytes(mutate.lie_message(rng, data) if rng.random() < 0.9 else mutate.flip(rng, data))
        self.compile(folder, "m.onnx", *rng.choice(([], ["-O0"], ["-t", "cpu:x86-64-v2"])))

    def archive(self, rng, folder):
        data = rng.choice(self.archives) if rng.random() < 0.5 else self.archives[0]
        (folder / "m.pt2").write_bytes(mutate.lie_archive(rng, data) if data[:2] == b"PK" else mutate.flip(rng, data))
        self.compile(folder, "m.pt2")

    def command(self, rng, folder):
        """Flags with values that fit, or not. Nothing outside the folder is named."""
        (folder / "m.onnx").write_bytes(self.models[2])
        shutil.copytree(self.bundles[0], folder / "m.bundle")
        tool = rng.choice(("dmxc", "dmxc", "dmxc", "dmx-run", "dmx-run", "dmx-generate", "dmx-inspect", "dmx-sign", "dmx-compare"))
        values = ["", "0", "-1", "1", "3", "99999999999999999999", "1e999", "nan", "x", "x=1", "x=", "=", "s=4", "s=-1", "s=99999999999999", "cpu", "cpu:x86-64-v9", "cpu:host", "corsair",
                  "corsair:quads=3", "corsair:quads=0", "gpu", "m.onnx", "m.bundle", "missing", ".", "out", "out/", "a" * 5000, "%n%s", "\udcff\udcfe", "main", "text", "json", "dir", "zip",
                  "partition", "schedule", "v3", "\n", "x=m.onnx"]
        words = [rng.choice(("keygen", "sign", "verify"))] if tool == "dmx-sign" else []
        for _ in range(rng.randrange(6)):
            flag = rng.choice(self.flags[tool])
            words += rng.choice(([flag], [flag, rng.choice(values)], [f"{flag}={rng.choice(values)}"], [rng.choice(values)]))
        if rng.random() < 0.8:
            words.insert(0 if tool != "dmx-sign" else 1, "m.onnx" if tool in ("dmxc", "dmx-compare") else "m.bundle")
        if tool == "dmxc" and rng.random() < 0.7:
            words += ["-o", "out.bundle"]
        (folder / "command").write_text(json.dumps([tool, *words]))
        run(self.tools, folder, tool, *words, most=None)


def kind_of(rng):
    roll = rng.random()
    for kind, share in KINDS:
        roll -= share
        if roll < 0:
            return kind
    return KINDS[0][0]


def check(inputs, seed, folder, only):
    """Runs one input; gives its kind and what was wrong."""
    rng = random.Random(seed)
    kind = kind_of(rng)
    if only and kind != only:
        return kind, None, folder
    (folder / ".tmp").mkdir(parents=True)
    try:
        getattr(inputs, kind)(rng, folder)
        left = sorted(path.name for path in (folder / ".tmp").iterdir()) + [p.name for p in folder.iterdir() if p.name.startswith(".dmxc-tmp")]
        return kind, f"leaves {left}" if left else None, folder
    except Failure as failure:
        return kind, str(failure), folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=20000 if LONG else 120)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--only", choices=[kind for kind, _ in KINDS])
    arguments = parser.parse_args()
    start, told, made, bad = time.time(), time.time(), collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="dmxc-hostile-") as place, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        place = pathlib.Path(place)
        inputs = Inputs(arguments.bin.resolve(), place)
        seeds = range(arguments.first, arguments.first + arguments.count)
        for seed, (kind, wrong, folder) in zip(seeds, pool.map(lambda seed: check(inputs, seed, place / str(seed), arguments.only), seeds)):
            made[kind] += 1
            if wrong:
                bad += 1
                print(f"seed {seed} ({kind}): {wrong}", flush=True)
                if arguments.keep:
                    shutil.copytree(folder, arguments.keep / str(seed), dirs_exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            if time.time() - told > 60:
                told = time.time()
                print(f"{sum(made.values())} inputs, {bad} failed", flush=True)
    print(f"{sum(made.values())} inputs ({', '.join(f'{n} {kind}' for kind, n in sorted(made.items()))}) in {time.time() - start:.0f} s: {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
