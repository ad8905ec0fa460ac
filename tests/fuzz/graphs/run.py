#!/usr/bin/env python3
"""Random graphs, compiled every way and compared. Usage:

  run.py BIN [--seconds N | --count N] [--first SEED] [--second PYTHON] [--keep FOLDER] [--only OP,OP] [--no-devices]

BIN has dmx-graph-worker. PYTHON has onnxruntime, the second oracle; where there is no such file, there is none. A graph that fails
is reduced and kept in FOLDER. A run of many graphs makes each operator that is not refused.
Exit codes: 0, 1 when a graph failed or an operator was not made, 77 where numpy is not installed."""
import argparse
import collections
import pathlib
import signal
import sys
import tempfile
import time

try:
    import numpy  # noqa: F401
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from check import Checker  # noqa: E402
from coverage import Coverage  # noqa: E402
from generate import generate  # noqa: E402
from reduce import reduce_graph  # noqa: E402

MANY = 1000  # graphs, which make every operator


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--count", type=int)
    parser.add_argument("--first", type=int)
    parser.add_argument("--second", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--only")
    parser.add_argument("--no-devices", action="store_true")
    parser.add_argument("--no-reduce", action="store_true")
    return parser.parse_args()


def main():
    arguments = parse()
    first = arguments.first if arguments.first is not None else int(time.time() * 1000) % 2 ** 31
    oracle = pathlib.Path(__file__).resolve().parent / "second_oracle.py"
    second = [arguments.second.absolute(), oracle] if arguments.second and arguments.second.exists() else None
    only = set(arguments.only.split(",")) if arguments.only else None
    start, count, bad = time.time(), 0, collections.Counter()
    told = start
    coverage = Coverage()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="dmx-graphs-") as folder:
        checker = Checker(arguments.bin.resolve(), pathlib.Path(folder) / "work", second, not arguments.no_devices)
        try:
            while (arguments.count is None or count < arguments.count) and (arguments.seconds is None or time.time() - start < arguments.seconds):
                seed = first + count
                graph = generate(seed, only)
                failures = checker.check(graph, seed)
                count += 1
                coverage.add(graph)
                if time.time() - told > 60:
                    told = time.time()
                    print(f"{count} graphs, {sum(bad.values())} failed", flush=True)
                if failures:
                    report(checker, graph, seed, failures, arguments, bad)
        except KeyboardInterrupt:  # what was done until then is told
            print("interrupted")
        checker.close()
    coverage.print()
    took = time.time() - start
    print(f"seeds {first} to {first + count - 1}: {count} graphs, {checker.compiles} compiles, {checker.runs} runs in {took:.0f} s; failed: "
          f"{sum(bad.values())} {dict(bad) or ''}; second oracle: {'ONNX Runtime' if second else 'none'}")
    for who, text in collections.Counter((w, t.strip().split(chr(10))[0][-150:]) for w, t in checker.refused).most_common(12):
        print(f"  refused {text} times: {who[0]}: {who[1]}")
    if checker.device:
        print(f"  device: the bits of {checker.device.outputs} outputs of {checker.device.followed} variants compared; below 20 dB as the interpreter in the "
              f"same formats: {len(checker.noisy)} outputs")
        for seed, who, name, ratio, formats in checker.noisy:
            print(f"    seed {seed} {who} {name}: {ratio:.1f} dB, interpreter {formats:.1f} dB")
    unmade = coverage.missing() if count >= MANY and not only else []
    if unmade:
        print(f"FAILED: {count} graphs, but none with {', '.join(unmade)}")
    return 1 if bad or unmade else 0


def report(checker, graph, seed, failures, arguments, bad):
    failure = failures[0]
    bad[f"{failure.variant} {failure.what}"] += 1
    print(f"seed {seed}: {failure}", flush=True)
    if not arguments.no_reduce:
        graph = reduce_graph(checker, graph, seed, failure)
        print("  reduced to " + ", ".join(f"{n.op}" for n in graph.nodes) + f" ({graph.bindings})", flush=True)
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        (arguments.keep / f"seed{seed}-{failure.variant}.onnx").write_bytes(graph.bytes())


sys.exit(main())
