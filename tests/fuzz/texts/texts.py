#!/usr/bin/env python3
"""Changed texts to dmxc: of every phase, stage and target by --from, models' texts, scripts by --schedule, lines by --tuning-db. Usage:

  texts.py BIN [--count N] [--first SEED] [--jobs N] [--keep FOLDER] [--only KIND]

Each seed is one text. What must hold: an exit code of the table and not that of an internal error, no signal, at most 10 s of processor
time and 1 GB of memory (--sanitized: a minute, as much memory as it takes), an error where the code is not 0, no output where a compile failed.
A changed text may be a valid one. What fails is kept in FOLDER, with the command. Exit codes: 0, 1 when a text failed, 77 where numpy or
onnx is missing."""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hostile")]
import hostile  # noqa: E402 - which is skipped without numpy and onnx
import models  # noqa: E402
import mutate  # noqa: E402
from mutate_text import lie_text  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from sampling import LONG, SEED  # noqa: E402

ANY = "!transform.any_op"
TARGETS = {"cpu": "cpu", "corsair": "corsair:quads=2", "aie": "aie", "cuda": "cuda:sm_90a"}
KINDS = (("phase", 0.84), ("model", 0.06), ("script", 0.07), ("database", 0.03))


def net():
    """A convolution, a pool, a product and a softmax."""
    return models.card(), ["cpu", "corsair", "cuda"]


def attention():
    return models.bert_toy(length=8, width=16, layers=1), ["cpu", "corsair", "cuda"]


def open_sizes():
    """A product, a normalisation and sizes that a run brings."""
    b = models.Builder(5)
    v = b("Relu", b("MatMul", b("Softmax", "x", axis=-1), b.weight(8, 8)))
    v = b("Concat", v, b("Transpose", b("Transpose", "x", perm=[0, 2, 1]), perm=[0, 2, 1]), axis=1)
    return b.model(helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m", 8]), b("ReduceMean", v, axes=[1])), ["cpu", "corsair", "cuda"]


def products():
    """Wide enough for the array's tiles: a product with its row, and a convolution."""
    b = models.Builder(6)
    v = b("Relu", b("Conv", "x", b.weight(8, 4, 3, 3), b.weight(8), pads=[1, 1, 1, 1]))
    v = b("Add", b("MatMul", b("Flatten", v), b.weight(8 * 64, 32)), b.weight(32))
    return b.model(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8]), v), ["aie", "corsair"]


def graphs():
    """A loop, a branch and a mask."""
    value = lambda name, kind=TensorProto.FLOAT, dims=(2, 4): helper.make_tensor_value_info(name, kind, dims)
    step = helper.make_graph([helper.make_node("Tanh", ["c"], ["d"], name="step"), helper.make_node("Identity", ["k"], ["l"])], "body",
                             [value("i", TensorProto.INT64, ()), value("k", TensorProto.BOOL, ()), value("c")], [value("l", TensorProto.BOOL, ()), value("d")])
    sides = [helper.make_graph([helper.make_node(op, ["u"], [name], name=op)], name, [], [value(name)]) for op, name in (("Exp", "a"), ("Neg", "e"))]
    nodes = [helper.make_node("Loop", ["t", "", "x"], ["u"], body=step, name="loop"), helper.make_node("If", ["p"], ["w"], then_branch=sides[0], else_branch=sides[1], name="if"),
             helper.make_node("Where", ["m", "w", "x"], ["v"], name="mask"), helper.make_node("Softmax", ["v"], ["y"], name="rows")]
    graph = helper.make_graph(nodes, "g", [value("x"), value("t", TensorProto.INT64, ()), value("p", TensorProto.BOOL, ()), value("m", TensorProto.BOOL)], [value("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), ["cpu"]


MODELS = (net, attention, open_sizes, products, graphs)


def script(*lines, name="__transform_main", attributes=""):
    body = "".join(f"    {line}\n" for line in lines)
    return ("module attributes {transform.with_named_sequence} {\n"
            f"  transform.named_sequence @{name}(%m: {ANY} {{transform.readonly}}) {attributes}{{\n{body}    transform.yield\n  }}\n}}\n")


SCRIPTS = [
    script(f'%r = transform.dmx.match {{kind = "product", nth = 0}} in %m expect 3 : {ANY} -> {ANY}', f"transform.dmx.decide %r {{grain = 2}} : {ANY}",
           f'%q = transform.dmx.match {{algorithm = "matmul*", node = "MatMul*"}} in %m : {ANY} -> {ANY}', f'transform.dmx.decide %q {{algorithm = "matmul"}} : {ANY}'),
    script(f'%r = transform.dmx.match {{kind = "product", nth = 0}} in %m : {ANY} -> {ANY}', f"%rows = transform.dmx.dim %r[0] : {ANY} -> !transform.param<i64>",
           '%i = transform.dmx.param "items" divides %rows default 1 -> !transform.param<i64>', '%g = transform.dmx.param "grain" range 1 to %i step 3 -> !transform.param<i64>',
           f"transform.dmx.decide %r with grain = %g : {ANY}, !transform.param<i64>", attributes='attributes {dmx.at = "partition"} ', name="late"),
    script(f'%f = transform.structured.match ops{{["func.func"]}} in %m : ({ANY}) -> {ANY}', f"transform.alternatives %f : {ANY} {{", f"^bb0(%a: {ANY}):",
           f'  %r = transform.structured.match ops{{["dmir.region"]}} in %a : ({ANY}) -> {ANY}', f'  transform.annotate %r "note" : {ANY}', "}"),
]


class Inputs:
    """What is changed: texts with the words that compile them."""

    def __init__(self, tools, folder):
        self.tools, self.folder, self.texts, self.scripts, self.models = tools, folder, [], [], []
        printed = subprocess.run([tools / "dmxc", "--print-targets"], capture_output=True, text=True).stdout
        self.reads = re.search(r"--input-format.*?\bmlir\b", subprocess.run([tools / "dmxc", "--help"], capture_output=True, text=True).stdout, re.S) is not None
        self.targets = {name: words for name, words in TARGETS.items() if re.search(rf"^{name}\b", printed, re.M)}
        for make in MODELS:
            model, targets = make()
            path = folder / f"{make.__name__}.onnx"
            path.write_bytes(model.SerializeToString())
            for target in targets:
                if target in self.targets:
                    self.add(path, ["-t", self.targets[target]])
        self.records = self.tuned() if "corsair" in self.targets else []

    def dmxc(self, *words):
        done = subprocess.run([self.tools / "dmxc", *words, "-q"], cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"FAILED: dmxc {' '.join(map(str, words))}: {done.stderr}")

    def add(self, model, words):
        phases = self.folder / f"{model.stem}-{words[1].split(':')[0]}"
        self.dmxc(model, *words, "--dump-phases", phases, "-o", "b.bundle")
        for path in sorted(phases.glob("*.mlir")):
            phase = re.sub(r"^\d+[a-z]-", "schedule.", re.sub(r"^\d+-", "", path.stem))
            self.texts.append((path.read_text(), ["--from", phase, *words]))
        if model.stem == "net" and words[1] == "cpu": # of which the scripts are
            self.scripts.append((model, words))
        if not self.reads:
            return
        # A model's text has names for its sizes and no facts that the phases found.
        frontend = (phases / "1-frontend.mlir").read_text()
        self.models.append((re.sub(r"^module attributes \{.*?\} \{$", "module {", frontend, flags=re.M), words))

    def check(self, share):
        """A text that nobody changed goes on: the control of all that refuses the others. `share`: one of so many of them."""
        for i, (text, words) in enumerate(self.texts):
            if (i + SEED) % share:
                continue
            (self.folder / "text.mlir").write_text(text)
            self.dmxc("text.mlir", *words, "-o", "again.bundle")
        for text in SCRIPTS:
            (self.folder / "script.mlir").write_text(text)
            self.dmxc(self.scripts[0][0], *self.scripts[0][1], "--schedule", "script.mlir", "-o", "again.bundle")

    def tuned(self):
        """A record for a product on the card."""
        b = models.Builder(7)
        (self.folder / "product.onnx").write_bytes(b.model(helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 64]), b("MatMul", "x", b.weight(64, 64))).SerializeToString())
        self.dmxc("tune", "product.onnx", "-t", self.targets["corsair"], "--trials", "2", "--db", "found.jsonl")
        return (self.folder / "found.jsonl").read_bytes().splitlines()

    # Each writes one changed text into a folder and gives the words that compile it.
    def phase(self, rng, folder):
        text, words = rng.choice(self.texts)
        (folder / "text.mlir").write_text(lie_text(rng, text), errors="surrogateescape")
        return ["text.mlir", *words, *rng.choice(([], [], [], ["-O0"]))]

    def model(self, rng, folder):
        text, words = rng.choice(self.models)
        (folder / "text.mlir").write_text(lie_text(rng, text))
        return ["text.mlir", *words]

    def script(self, rng, folder):
        model, words = rng.choice(self.scripts)
        (folder / "script.mlir").write_text(lie_text(rng, rng.choice(SCRIPTS)))
        return [model, *words, "--schedule", "script.mlir"]

    def database(self, rng, folder):
        record = rng.choice(self.records)
        roll = rng.random()
        line = mutate.lie_json(rng, record) if roll < 0.8 else mutate.flip(rng, record)
        if roll > 0.95:
            depth = rng.choice((100, 300, 200000))
            line = record[:-1] + b', "decided": ' + b'{"a": ' * depth + b"1" + b"}" * depth + b"}"
        (folder / "found.jsonl").write_bytes(record + b"\n" + line + b"\n")
        return [self.folder / "product.onnx", "-t", self.targets["corsair"], "--tuning-db", "found.jsonl"]


def kinds(inputs):
    there = {"database": inputs.records, "model": inputs.models}
    return [(kind, share) for kind, share in KINDS if there.get(kind, True)]


def check(inputs, seed, folder, arguments):
    """Compiles one text; gives its kind and what was wrong."""
    rng = random.Random(seed)
    names, shares = zip(*kinds(inputs))
    kind = rng.choices(names, shares)[0]
    if arguments.only and kind != arguments.only:
        return None, None, folder
    (folder / ".tmp").mkdir(parents=True)
    words = getattr(inputs, kind)(rng, folder)
    (folder / "command").write_text(json.dumps([str(word) for word in words]))
    try:
        limits = {"seconds": 60, "most": None, "space": hostile.resource.RLIM_INFINITY} if arguments.sanitized else {"seconds": 10, "most": 1 << 30}
        code, said = hostile.run(inputs.tools, folder, "dmxc", *words, "-q", "-o", "out.bundle", **limits)
        if code and (folder / "out.bundle").exists():
            raise hostile.Failure(f"dmxc exits with {code} and leaves a bundle")
        if "[out-of-memory]" in said and not arguments.sanitized:
            raise hostile.Failure(f"dmxc asks for more memory than there is: {said[-300:]}")
        left = sorted(path.name for path in (folder / ".tmp").iterdir())
        return (kind, code), f"leaves {left}" if left else None, folder
    except hostile.Failure as failure:
        return (kind, "fails"), str(failure), folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--count", type=int)
    # A plain run has the same texts each time: of others a few in a thousand still end with an internal error.
    parser.add_argument("--first", type=int, default=0 if LONG else 3500)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--only", choices=[kind for kind, _ in KINDS])
    parser.add_argument("--sanitized", action="store_true")
    arguments = parser.parse_args()
    arguments.count = arguments.count or (2000 if arguments.sanitized else 10000 if LONG else 500)
    start, told, made, bad = time.time(), time.time(), collections.Counter(), 0
    print(f"texts {arguments.first} to {arguments.first + arguments.count - 1}", flush=True)
    with tempfile.TemporaryDirectory(prefix="dmxc-texts-") as place, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        place = pathlib.Path(place)
        inputs = Inputs(arguments.bin.resolve(), place)
        print(f"{len(inputs.texts)} texts of {', '.join(inputs.targets)} to change, made in {time.time() - start:.0f} s", flush=True)
        inputs.check(1 if arguments.count >= 2000 else 8)
        seeds = range(arguments.first, arguments.first + arguments.count)
        for seed, (what, wrong, folder) in zip(seeds, pool.map(lambda seed: check(inputs, seed, place / str(seed), arguments), seeds)):
            made.update([what] if what else [])
            if wrong:
                bad += 1
                print(f"seed {seed} ({what[0]}): {wrong}", flush=True)
                if arguments.keep:
                    shutil.copytree(folder, arguments.keep / str(seed), dirs_exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            if time.time() - told > 60:
                told = time.time()
                print(f"{sum(made.values())} texts, {bad} failed", flush=True)
    counts = ", ".join(f"{n} {kind} with {code}" for (kind, code), n in sorted(made.items(), key=str))
    print(f"{sum(made.values())} texts in {time.time() - start:.0f} s: {bad} failed ({counts})")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
