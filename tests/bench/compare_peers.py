#!/usr/bin/env python3
"""Paired latency of dmxc bundles and a peer on the same models, in one run.

Every round times both, in alternating order, each as its own process; the table gives each side's median
latency over rounds and the ratio peer / dmxc of each round as median [min, max]. A ratio above 1 means that
dmxc is faster. Rounds in which either process got under 90 % of its processor time are repeated.

    compare_peers.py --zoo ZOO --build BUILD --peer 'node ort_bench.mjs {dir}/model.onnx --inputs {dir}/set0 --threads {threads}'
                     [--models a,b] [--threads 1] [--rounds 5] [--target cpu:host] [--json FILE]

The peer's command prints a line of JSON or text with a number after "median" (milliseconds).
"""
import argparse
import json
import os
import re
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time


def run(command, env=None):
    """Runs a command; returns its output and the share of one processor it got while it ran."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\nfailed with {done.returncode}:\n{done.stdout}{done.stderr}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, used / max(wall, 1e-9)


def peer_median(text):
    match = re.search(r'median\D{0,12}([0-9.]+)', text)
    if not match:
        sys.exit(f"no median in the peer's output:\n{text}")
    return float(match.group(1))


def dmxc_median(run_tool, bundle, inputs, threads, seconds):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [run_tool, bundle, "--inputs", inputs, "--benchmark", "--threads", str(threads),
                   "--min-time", str(seconds), "--json", out.name]
        _, share = run(command)
        report = json.load(open(out.name))
    return report["latency"]["median"], share


def measure(options, name):
    folder = os.path.join(options.zoo, name)
    bundle = os.path.join(options.work, name + ".bundle")
    compile_command = [os.path.join(options.build, "bin/dmxc"), os.path.join(folder, "model.onnx"), "-o", bundle, "-q",
                       "-t", options.target, "-j2"]
    start = time.monotonic()
    run(compile_command)
    compile_seconds = time.monotonic() - start
    peer = shlex.split(options.peer.format(dir=folder, threads=options.threads))
    run_tool = os.path.join(options.build, "bin/dmx-run")
    ours, theirs, ratios = [], [], []
    for attempt in range(options.rounds * 3):
        if len(ratios) == options.rounds:
            break
        sides = [lambda: dmxc_median(run_tool, bundle, os.path.join(folder, "set0"), options.threads, options.seconds),
                 lambda: (lambda r: (peer_median(r[0]), r[1]))(run(peer))]
        order = (0, 1) if attempt % 2 == 0 else (1, 0)
        result = {}
        for side in order:
            result[side] = sides[side]()
        if min(result[0][1], result[1][1]) < 0.9 and attempt < options.rounds * 2:
            continue
        ours.append(result[0][0])
        theirs.append(result[1][0])
        ratios.append(result[1][0] / result[0][0])
    return {"model": name, "compile_s": compile_seconds, "dmxc_ms": statistics.median(ours),
            "peer_ms": statistics.median(theirs), "ratio": statistics.median(ratios), "ratio_min": min(ratios),
            "ratio_max": max(ratios)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", required=True)
    parser.add_argument("--build", default="build")
    parser.add_argument("--peer", required=True)
    parser.add_argument("--models", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--target", default="cpu:host")
    parser.add_argument("--json")
    options = parser.parse_args()
    names = options.models.split(",") if options.models else sorted(os.listdir(options.zoo))
    rows = []
    with tempfile.TemporaryDirectory() as options.work:
        print(f"{'model':22} {'compile s':>9} {'dmxc ms':>9} {'peer ms':>9}  ratio peer/dmxc")
        for name in names:
            row = measure(options, name)
            rows.append(row)
            print(f"{name:22} {row['compile_s']:9.1f} {row['dmxc_ms']:9.3f} {row['peer_ms']:9.3f}  "
                  f"{row['ratio']:.2f} [{row['ratio_min']:.2f}, {row['ratio_max']:.2f}]", flush=True)
    if options.json:
        json.dump(rows, open(options.json, "w"), indent=1)


if __name__ == "__main__":
    main()
