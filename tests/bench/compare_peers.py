#!/usr/bin/env python3
"""Paired figures of dmxc bundles and a peer on the same models, in one run; README.md beside this file says how to read them.

Every round times both sides, each as a process of its own, in an order that changes from round to round. A round during
which other work took more than a tenth of the processors is repeated, and marked "*" when that never ceased. Ratios are
peer / dmxc, median [min, max] over rounds: above 1 means that dmxc is faster, or needs less.

    compare_peers.py --zoo ZOO --build BUILD --peer 'node ort_bench.mjs {dir}/model.onnx --inputs {dir}/set0 --threads {threads}'
                     [--models a,b] [--threads 1,2] [--rounds 5] [--target cpu] [--numerics MODE] [--roofs] [--errors]
                     [--json FILE]

The peer prints a JSON line with median_ms, and create_ms, peak_rss_mib and rel_err where it has them. --roofs adds the
tasks of each model that take a hundredth of its time or more and run below 70 % of this machine's roof, the most time lost
first. --errors adds the worst max|got - want| / max|want| over the outputs of all sets of a model, ours and the peer's
(its rel_err; {set} in its command is the set's folder). It needs numpy.
"""
import argparse
import importlib.util
import json
import math
import multiprocessing
import os
import pathlib
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time


class Failure(Exception):
    """A side that cannot run a model; the table says so and goes on."""


def processor_seconds():
    """Seconds that the machine's processors have worked so far, what other machines took from them included."""
    user, nice, system, _, _, irq, softirq, steal = map(int, open("/proc/stat").readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / 100


def run(command):
    """Runs a command: its output and the share of the processors that other work took meanwhile."""
    usage, all_before, start = resource.getrusage(resource.RUSAGE_CHILDREN), processor_seconds(), time.monotonic()
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wall, all_after, after = time.monotonic() - start, processor_seconds(), resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise Failure((done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").splitlines()[-1][:160])
    own = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
    return done.stdout, max(0.0, all_after - all_before - own) / wall


class Ours:
    def __init__(self, options, folder, bundle):
        self.command = [options.build / "bin/dmx-run", bundle, "--inputs", folder / "set0", "--benchmark", "--min-time", options.seconds]

    def measure(self, threads, *more):
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            _, foreign = run([*self.command, "--threads", threads, "--json", out.name, *more])
            report = json.load(open(out.name))
        # What the first run takes beyond a warm one (pages that are read, code that is linked) is loading, too.
        load = report["load_ms"] + report["session_ms"] + max(0, report["first_run_ms"] - report["latency"]["median"])
        return {"ms": report["latency"]["median"], "load": load, "rss": report["peak_rss_mb"], "foreign": foreign, "report": report}


class Peer:
    def __init__(self, options, folder):
        self.parts, self.folder = shlex.split(options.peer), folder

    def measure(self, threads, inputs=None):
        values = {"{dir}": self.folder, "{threads}": threads, "{set}": inputs or self.folder / "set0"}
        parts = self.parts
        for name, value in values.items():
            parts = [part.replace(name, str(value)) for part in parts]
        text, foreign = run(parts)
        try:
            report = next(json.loads(line) for line in text.splitlines() if line.startswith("{"))
            return {"ms": report["median_ms"], "load": report.get("create_ms"), "rss": report.get("peak_rss_mib"), "error": report.get("rel_err"),
                    "foreign": foreign}
        except (StopIteration, KeyError, json.JSONDecodeError) as error:
            raise Failure(f"no median_ms in the peer's output: {text[:120]!r}") from error


def paired(ours, peer, threads, rounds, cores):
    """The quiet rounds; all of the last ones where none was."""
    kept, loud = [], []
    for attempt in range(rounds * 3):
        if len(kept) == rounds:
            break
        first, second = (ours, peer) if attempt % 2 == 0 else (peer, ours)
        result = {first: first.measure(threads), second: second.measure(threads)}
        both = result[ours], result[peer]
        (kept if max(side["foreign"] for side in both) < 0.1 * cores else loud).append(both)
    missing = rounds - len(kept)
    return kept + (loud[-missing:] if missing else []), missing > 0


def spread(pairs, figure):
    """peer / dmxc over the rounds; None where the peer does not tell."""
    ratios = [peer[figure] / own[figure] for own, peer in pairs if peer[figure] and own[figure]]
    return {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)} if ratios else None


def bandwidth(roof, footprint):
    """GB/s of reading as much as the model touches in a run: by then a task's operands have left the smaller caches."""
    sizes = sorted((int(size), rate) for size, rate in roof["read_gbs"].items())
    return next((rate for size, rate in sizes if size >= footprint), sizes[-1][1])


def slow_tasks(ours, threads, roof):
    """Tasks below 70 % of the roof, by the time they lose to it."""
    report = ours.measure(threads, "--per-task")["report"]
    gbs, found = bandwidth(roof, report["constant_bytes"] + report["arena_bytes"]), []
    total = sum(task["mean_ms"] for task in report["tasks"])
    for task in report["tasks"]:
        least = max(task["flops"] / roof["gflops"], task["bytes"] / gbs) / 1e6
        if task["mean_ms"] >= total / 100 and least < 0.7 * task["mean_ms"]:
            found.append({"task": task["name"], "kernel": task["kernel"], "nodes": task["nodes"], "share": task["mean_ms"] / total,
                          "mean_ms": task["mean_ms"], "gflops": task["flops"] / task["mean_ms"] / 1e6,
                          "gbs": task["bytes"] / task["mean_ms"] / 1e6, "of_roof": least / task["mean_ms"]})
    return sorted(found, key=lambda task: task["mean_ms"] * (task["of_roof"] - 1))


def relative_error(got_dir, want_dir):
    """max|got - want| / max|want| of the worst output of a set."""
    import numpy
    worst = 0.0
    for path in want_dir.glob("out_*.npy"):
        want, got = numpy.load(path).astype(float), numpy.load(got_dir / path.name).astype(float)
        if want.size:
            worst = max(worst, float(abs(got - want).max() / max(abs(want).max(), 1e-30)))
    return worst


def worst_errors(options, folder, bundle, peer):
    """Ours and the peer's over all sets; None where the peer does not tell."""
    ours, theirs = [], []
    for inputs in sorted(folder.glob("set*")):
        with tempfile.TemporaryDirectory(prefix="dmxc-bench-") as outputs:
            run([options.build / "bin/dmx-run", bundle, "--inputs", inputs, "--output-dir", outputs, "-q"])
            # In a process of its own: what this one holds at most would count as the memory of all it starts.
            with multiprocessing.Pool(1) as pool:
                ours.append(pool.apply(relative_error, (pathlib.Path(outputs), inputs)))
        theirs.append(peer.measure(1, inputs)["error"])
    return max(ours), max(theirs) if None not in theirs else None


def text(ratio):
    return f"{ratio['median']:5.2f} [{ratio['min']:.2f}, {ratio['max']:.2f}]" if ratio else "    -"


def model_rows(options, name, roofs):
    folder = options.zoo / name
    with tempfile.TemporaryDirectory(prefix="dmxc-bench-") as scratch:
        bundle = pathlib.Path(scratch) / "model.bundle"
        start = time.monotonic()
        run([options.build / "bin/dmxc", folder / "model.onnx", "-o", bundle, "-q", "-t", options.target, "-j2",
             *(["--numerics", options.numerics] if options.numerics else [])])
        compiled = time.monotonic() - start
        ours, peer = Ours(options, folder, bundle), Peer(options, folder)
        errors = worst_errors(options, folder, bundle, peer) if options.errors else None
        for threads in options.threads:
            pairs, busy = paired(ours, peer, threads, options.rounds, os.cpu_count())
            report = pairs[-1][0]["report"]
            row = {"model": name, "threads": threads, "compile_s": compiled, "busy": busy,
                   "dmxc_ms": statistics.median(own["ms"] for own, _ in pairs), "peer_ms": statistics.median(other["ms"] for _, other in pairs),
                   "latency": spread(pairs, "ms"), "load": spread(pairs, "load"), "rss": spread(pairs, "rss"),
                   "arena": report["arena_bytes"] / max(report["arena_lower_bound"], 1)}
            print(f"{name:20}{threads:2} {compiled:6.1f} {row['dmxc_ms']:9.3f} {row['peer_ms']:9.3f}  {text(row['latency']):19}{'*' if busy else ' '} "
                  f"{row['load']['median'] if row['load'] else math.nan:6.1f} {row['rss']['median'] if row['rss'] else math.nan:5.2f} {row['arena']:5.2f}", flush=True)
            if errors:
                row["errors"] = errors
            if errors and threads == options.threads[0]:
                print(f"    error {errors[0]:.2e}, peer {errors[1] if errors[1] is not None else math.nan:.2e}", flush=True)
            if options.roofs:
                row["slow_tasks"] = slow_tasks(ours, threads, roofs[threads])
                for task in row["slow_tasks"]:
                    print(f"    {task['share']:6.1%} {task['mean_ms']:9.4f} ms {task['gflops']:7.1f} GFLOP/s {task['gbs']:6.1f} GB/s "
                          f"{task['of_roof']:4.0%} of the roof  {task['task']} [{task['kernel']}]", flush=True)
            yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", required=True, type=pathlib.Path, help="folder of models, each a folder with model.onnx and set0")
    parser.add_argument("--build", default="build", type=pathlib.Path)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--models", default="")
    parser.add_argument("--threads", default=[1], type=lambda value: [int(part) for part in value.split(",")])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="per side and round; the peer's command has its own")
    parser.add_argument("--target", default="cpu", help="-t of dmxc; its default has the best level of the psABI that the processor has")
    parser.add_argument("--numerics", help="dmxc's mode, e.g. bf16 for weights; the peer keeps to its own")
    parser.add_argument("--roofs", action="store_true")
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.errors and not importlib.util.find_spec("numpy"):
        parser.error("--errors needs numpy, which this Python lacks (Debian: python3-numpy for /usr/bin/python3)")
    names = options.models.split(",") if options.models else sorted(path.parent.name for path in options.zoo.glob("*/model.onnx"))
    roofs = {threads: json.loads(run([options.build / "bin/roof_bench", threads])[0]) for threads in options.threads}
    for roof in roofs.values():
        print(f"roofs, {roof['threads']} threads: {roof['gflops']} GFLOP/s; reading " +
              ", ".join(f"{int(size) >> 10} KiB {rate}" for size, rate in roof["read_gbs"].items()) + " GB/s")
    print(f"\n{'model':20}{'T':>2} {'comp s':>6} {'dmxc ms':>9} {'peer ms':>9}  latency ratio         load   RSS arena/bound")
    rows, failed = [], []
    for name in names:
        try:
            rows += model_rows(options, name, roofs)
        except Failure as failure:
            failed.append(name)
            print(f"{name:20} FAILED: {failure}", flush=True)
    for threads in options.threads:
        ratios = [row["latency"]["median"] for row in rows if row["threads"] == threads]
        if ratios:
            print(f"{threads} threads: geometric mean {statistics.geometric_mean(ratios):.3f} over {len(ratios)} models, lowest {min(ratios):.2f}")
    if options.json:
        json.dump({"roofs": roofs, "models": rows, "failed": failed}, open(options.json, "w"), indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
