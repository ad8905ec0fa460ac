#!/usr/bin/python3
"""Compiles many models with two builds of dmxc and compares every byte: bundles, texts of phases, messages, exit codes. Usage:

  compare_bundles.py BEFORE AFTER [--graphs N] [--zoo FOLDER] [--only GLOB] [--skip GLOB] [--variants NAME,NAME] [--texts all|cpu|none] [--jobs N]
                     [--keep FOLDER]

BEFORE and AFTER are build folders (they have bin/dmxc). For a change that must not change what is compiled: run it with a build of
the commit before. Models: the zoo (FOLDER, as tests/conformance/zoo.sh makes it), real models and exported programs beside the
checkout, the twins and ATen calls of tests/torch, random graphs with open and with fixed dims, and as models
that are wrong the corpora of tests/fuzz and the broken archives. Each is compiled with default flags, for x86-64-v2, -v3 and -v4, in
every mode of --numerics, for corsair with 1, 8 and as many quads as it likes, for aie and for cuda; the texts of their phases are compared with default
flags and for corsair (--texts cpu: without it). What is not there is skipped and named. Needs numpy. Exit codes: 0 all equal, 1 something differs."""
import argparse
import concurrent.futures
import fnmatch
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
VARIANTS = {
    "default": [],
    "levels": ["-t", "cpu:x86-64-v2+x86-64-v3+x86-64-v4"],
    "bf16": ["--numerics", "bf16"],
    "bf16-weights": ["--numerics", "bf16-weights"],
    "int8-columns": ["--numerics", "int8-columns"],
    "int8": ["--numerics", "int8"],
    "int8-weights": ["--numerics", "int8-weights"],
    "int4-weights": ["--numerics", "int4-weights:64"],
    "corsair": ["-t", "corsair"],
    "corsair-1": ["-t", "corsair:quads=1"],
    "corsair-8": ["-t", "corsair:quads=8"],
    "aie": ["-t", "aie"],
    "cuda": ["-t", "cuda"],
}
# Those whose phases are compared as text, by --texts.
TEXTS = {"none": (), "cpu": ("default",), "all": ("default", "corsair")}


class Case:
    """One model: `arguments` of dmxc, and the variants that it is compiled in."""

    def __init__(self, name, path, *arguments, variants=tuple(VARIANTS)):
        self.name, self.path, self.arguments, self.variants = name, path, list(arguments), variants


def zoo(folder):
    for model in sorted(folder.glob("*/model.onnx")):
        if model.stat().st_size < 64 << 20:  # the small ones
            yield Case(f"zoo/{model.parent.name}", model)


def real_models():
    for model in sorted((SHARED / "real-models").glob("*/model.onnx")):
        yield Case(f"real/{model.parent.name}", model)


def archives():
    for kind in ("gen", "real"):
        for model in sorted((SHARED / "torch-files" / kind).rglob("*")):
            if model.suffix in (".pt2", ".mlir"):
                yield Case(f"torch/{model.relative_to(SHARED / 'torch-files')}", model)


def twins(folder):
    """Networks of tests/torch in each of their forms, and families of ATen calls."""
    argv, sys.argv = sys.argv, ["", "bin", "", str(SHARED / "torch-files")]  # which the tests read when they are imported
    import aten_test
    import twin_test
    sys.argv = argv
    networks = {"mlp": twin_test.mlp(), "mlp-open": twin_test.mlp("s0"), "convolutions": twin_test.convolutions(),
                "transformer": twin_test.transformer(False), "attention": twin_test.transformer(True)}
    for name, (network, programs) in networks.items():
        network.write_onnx(folder / f"{name}.onnx")
        if not name.endswith("open"):
            network.write_text(folder / f"{name}.mlir")
        for form, calls in programs.items():
            network.program(calls).write(folder / f"{name}-{form}.pt2")
    families = {}
    for number, case in enumerate(aten_test.CASES):
        families.setdefault(case["family"], {})[number] = case
    for name, family in families.items():
        aten_test.Family(family).program.write(folder / f"aten-{name}.pt2")
    for path in sorted(folder.iterdir()):
        yield Case(f"twins/{path.name}", path)


def graphs(folder, count):
    from generate import generate
    for seed in range(count):
        graph = generate(seed)
        path = folder / f"graph{seed}.onnx"
        path.write_bytes(graph.bytes())
        used = {d.key for v in graph.inputs for d in v.dims}
        dims = [word for name, value in graph.bindings[0].items() if name in used for word in ("--dim", f"{name}={value}")]
        yield Case(f"graphs/{seed}", path)
        if dims:
            yield Case(f"graphs/{seed}-fixed", path, *dims)


def wrong():
    once = ("default",)
    for model in sorted((SHARED / "torch-files" / "bad").rglob("*")):
        if model.is_file():
            yield Case(f"wrong/bad/{model.name}", model, variants=once)
    for name in ("onnx", "torch", "torch-import"):
        for model in sorted((ROOT / "tests" / "fuzz" / "corpus" / name).iterdir()):
            yield Case(f"wrong/{name}/{model.name}", model, "--input-format", "onnx" if name == "onnx" else "auto", variants=once)


def cases(options, folder):
    sources = [("the zoo", zoo(options.zoo)), ("real models", real_models()), ("archives", archives()), ("wrong models", wrong())]
    try:
        import numpy  # noqa: F401
        sys.path[:0] = [str(ROOT / "tests" / part) for part in ("fuzz/graphs", "fuzz", "torch")]
        for name in ("twins", "graphs"):
            (folder / name).mkdir()
        sources += [("twins", twins(folder / "twins")), ("random graphs", graphs(folder / "graphs", options.graphs))]
    except ImportError:
        print("SKIPPED: twins and random graphs: numpy is not installed (python3-numpy)")
    for what, source in sources:
        some = False
        for case in source:
            some = True
            if fnmatch.fnmatch(case.name, options.only) and not fnmatch.fnmatch(case.name, options.skip):
                yield case
        if not some:
            print(f"SKIPPED: {what}: none are there", flush=True)


def tidy(text, folder):
    """A message without what two compiles of one model may differ in: folders, times, and how far it was at one of them."""
    text = text.replace(str(folder), "FOLDER")
    text = re.sub(r"^\[\d+/\d+\] .*\(\d+ s\)\n", "", text, flags=re.M)
    return re.sub(r"\b\d+(\.\d+)? (ms|s|MiB/s)\b", "TIME", text)


def compile_once(build, case, variant, folder, texts):
    """What a compile leaves: name -> bytes or text."""
    folder.mkdir(parents=True)
    bundle = folder / "m.bundle"
    command = [str(build / "bin" / "dmxc"), str(case.path), "-o", str(bundle), "-j", "1", *case.arguments, *VARIANTS[variant]]
    if texts:
        command += ["--dump-phases", str(folder / "phases")]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=folder, env={**os.environ, "NO_COLOR": "1"})
    left = {"exit code": str(done.returncode), "stdout": tidy(done.stdout, folder), "stderr": tidy(done.stderr, folder)}
    if bundle.exists():
        left["bundle"] = bundle.read_bytes()
    for text in sorted((folder / "phases").glob("*")):
        left[text.name] = tidy(text.read_text(), folder)
    return left


def differences(before, after):
    """One sentence for each thing that differs."""
    for key in sorted(before.keys() | after.keys()):
        a, b = before.get(key), after.get(key)
        if a == b:
            continue
        if a is None or b is None:
            yield f"{key}: only {'after' if a is None else 'before'}"
        elif isinstance(a, bytes):
            yield "bundle: " + ", ".join(entries(a, b))
        else:
            rows = [(x, y) for x, y in zip(a.splitlines() + [""], b.splitlines() + [""]) if x != y]
            yield f"{key}: '{rows[0][0][:160]}' became '{rows[0][1][:160]}'" if rows else f"{key}: other length"


def entries(a, b):
    """Names of the entries of two bundles that differ."""
    first, second = (zipfile.ZipFile(io.BytesIO(data)) for data in (a, b))
    names = sorted(set(first.namelist()) | set(second.namelist()))
    found = [n for n in names if n not in first.namelist() or n not in second.namelist() or first.read(n) != second.read(n)]
    return found or ["other bytes between the entries"]


def compare(options, case, variant, scratch):
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    texts = variant in TEXTS[options.texts]
    try:
        left = [compile_once(build, case, variant, folder / name, texts) for name, build in (("a", options.before), ("b", options.after))]
        found = list(differences(*left))
        if found and options.keep:
            shutil.copytree(folder, options.keep / f"{case.name.replace('/', '_')}-{variant}", dirs_exist_ok=True)
        return case, variant, left[0]["exit code"], found
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("after", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--zoo", type=pathlib.Path, default=ROOT / "build" / "zoo")
    parser.add_argument("--only", default="*")
    parser.add_argument("--skip", default="")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--texts", choices=TEXTS, default="all")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    wanted = options.variants.split(",")
    for name in wanted:
        if name not in VARIANTS:
            parser.error(f"no variant '{name}'; there are {', '.join(VARIANTS)}")
    bad, codes, count = 0, {}, 0
    with tempfile.TemporaryDirectory(prefix="dmx-compare-") as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        made = pathlib.Path(scratch) / "models"
        made.mkdir()
        jobs = [pool.submit(compare, options, case, variant, scratch) for case in cases(options, made) for variant in case.variants if variant in wanted]
        for job in concurrent.futures.as_completed(jobs):
            case, variant, code, found = job.result()
            count += 1
            codes[code] = codes.get(code, 0) + 1
            bad += bool(found)
            for text in found:
                print(f"{case.name} {variant}: {text}", flush=True)
            if count % 100 == 0:
                print(f"{count} of {len(jobs)}, {bad} differ", flush=True)
    print(f"{count} compiles each, exit codes {codes}: {bad} differ")
    return 1 if bad or not count else 0


sys.exit(main())
