#!/usr/bin/env python3
"""Single operators beside ONNX Runtime, in turns, in one process: README.md beside this file says how to read the figures.

    ops.py --build BUILD [--only REGEX] [--threads 1,2] [--rounds 7] [--before BUILD] [--json FILE] [--table OPS.md]

Ratios are ONNX Runtime's time over ours, medians of rounds: above 1 means that dmxc is faster. With one thread it is CPU time, with more
the time that passes, as ONNX Runtime's threads wait at work. `roof` is the least time that the machine needs for a task's operations and
bytes (roof_bench) over ours; `peak` is the share of the multiply-add peak that products and convolutions reach, each task by the least of
many times, without those by minimal filtering, whose operations are fewer than they count. --before adds a build whose time over this one's is `before`. --table writes the rows as a page, those below 1
first. Results are compared, too: a row whose numbers differ by more than 1e-3 of the largest is marked `!`. Needs numpy, onnx and
onnxruntime, e.g. in a virtual environment below build/."""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import compare_peers
import op_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]


def our_side(build, bundle, case, threads):
    """What runs the case, compiled with a build, on arrays that are bound once; and its results."""
    import dmxrt

    compare_peers.run([build / "bin/dmxc", bundle.with_name("model.onnx"), "-o", bundle, "-q"])
    session = dmxrt.Session(bundle, threads=threads, library=build / "lib/libdmxrt.so")
    feeds = case.arrays()
    results = list(session.run(feeds).values())  # what it binds stays bound

    def run():
        session.call("dmx_session_run", session.session)
        return results, feeds

    return run, results


def peer_side(model, case, threads):
    """The same of ONNX Runtime."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = threads, 3
    session, feeds = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"]), case.arrays()
    results, bound = session.run(None, feeds), session.io_binding()
    for name, value in feeds.items():
        bound.bind_cpu_input(name, value)
    for port in session.get_outputs():
        bound.bind_output(port.name)
    return lambda: session.run_with_iobinding(bound), results


def figure(run, clock, seconds):
    """Seconds of a run: the mean of as many as take `seconds` together."""
    count, start, begin = 0, time.perf_counter(), clock()
    while not count or time.perf_counter() - start < seconds:
        run()
        count += 1
    return (clock() - begin) / count


def in_turns(sides, clock, rounds, seconds, pause):
    """The median of each side's times; sides take turns, in an order that changes, with a pause before each."""
    times = {name: [] for name in sides}
    for name, run in sides.items():
        figure(run, clock, seconds / 4)
    for i in range(rounds):
        for name in list(sides)[::1 if i % 2 else -1]:
            time.sleep(pause)
            times[name].append(figure(sides[name], clock, seconds))
    return {name: statistics.median(values) for name, values in times.items()}


def differs(ours, theirs):
    for got, want in zip(ours, theirs):
        if got.shape != want.shape:
            return True
        got, want = got.astype(float), want.astype(float)
        if want.size and not np.abs(got - want).max() <= 1e-3 * max(np.abs(want).max(), 1e-30):
            return True
    return False


def share_of_roof(build, bundle, feeds, folder, seconds, roof):
    """The least time of the machine over `seconds`."""
    (folder / "set").mkdir(exist_ok=True)
    for name, value in feeds.items():
        np.save(folder / "set" / f"in_{name}.npy", value)
    report = folder / "report.json"
    compare_peers.run([build / "bin/dmx-run", bundle, "--inputs", folder / "set", "--benchmark", "--min-time", 0.01, "--per-task", "--threads", 1, "--json", report])
    told = json.loads(report.read_text())
    gbs = compare_peers.bandwidth(roof, told["constant_bytes"] + told["arena_bytes"] + sum(value.nbytes for value in feeds.values()))
    return sum(max(task["flops"] / roof["gflops"], task["bytes"] / gbs) for task in told["tasks"]) / 1e9 / seconds


def share_of_peak(build, bundle, folder, roof):
    """What products and convolutions multiply over the machine's peak; None where there are none."""
    trace, least, flops = folder / "trace.json", {}, {}
    for _ in range(3):
        compare_peers.run([build / "bin/dmx-run", bundle, "--inputs", folder / "set", "--benchmark", "--min-time", 0.01, "--threads", 1, "--profile", trace])
        for event in json.loads(trace.read_text())["traceEvents"]:
            if event["ph"] == "X" and re.search(r"_(matmul|conv)_(?!winograd)", event["args"].get("kernel", "")):
                task = event["args"]["task"]
                least[task], flops[task] = min(event["dur"], least.get(task, event["dur"])), event["args"].get("flops", 0)
    return sum(flops.values()) / sum(least.values()) / 1e3 / roof["gflops"] if least else None


def row_of(case, options, roof):
    import onnx

    row = {"name": case.name, "differs": False}
    with tempfile.TemporaryDirectory(prefix="dmxc-ops-") as scratch:
        folder = pathlib.Path(scratch)
        onnx.save(case.model(), folder / "model.onnx")
        for threads in options.threads:
            sides = {"ours": our_side(options.build, folder / "ours.bundle", case, threads), "peer": peer_side(folder / "model.onnx", case, threads)}
            row["differs"] |= differs(sides["ours"][1], sides["peer"][1])
            if options.before:
                sides["before"] = our_side(options.before, folder / "before.bundle", case, threads)
            runs = {name: side[0] for name, side in sides.items()}
            # The peer's threads look for work for a while after a turn, on processors that the next one is to have.
            clock, pause = (time.process_time, 0) if threads == 1 else (time.perf_counter, 0.1)
            times = in_turns(runs, clock, options.rounds, options.seconds, pause)
            row[threads] = {name: 1000 * value for name, value in times.items()}
            if threads == 1:
                row["roof"] = share_of_roof(options.build, folder / "ours.bundle", case.arrays(), folder, times["ours"], roof)
                row["peak"] = share_of_peak(options.build, folder / "ours.bundle", folder, roof)
    return row


def ratio(row, threads, side="peer"):
    return row[threads][side] / row[threads]["ours"]


def line_of(row, options, separator="  "):
    cells = []
    for threads in options.threads:
        cells += [f"{row[threads]['ours']:9.3f}", f"{row[threads]['peer']:9.3f}", f"{ratio(row, threads):5.2f}"]
        if options.before:
            cells.append(f"{ratio(row, threads, 'before'):5.2f}")
    if "roof" in row:
        cells += [f"{row['roof']:5.0%}", f"{row['peak']:5.0%}" if row["peak"] is not None else "     "]
    return separator.join([f"{'!' if row['differs'] else ''}{row['name']:60}", *cells])


def header(options):
    names = []
    for threads in options.threads:
        names += [f"ms, {threads} T", "ORT", "ratio"] + (["before"] if options.before else [])
    return ["operator", *names] + (["roof", "peak"] if 1 in options.threads else [])


def page(rows, options, machine):
    head = header(options)
    lines = ["# Operators beside ONNX Runtime", "", "Made by `tests/bench/ops.py --table`, whose text says what the columns are; rows below 1 first.", "", machine, "",
             "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    worst = lambda row: min(ratio(row, threads) for threads in options.threads)
    return "\n".join([*lines, *("| " + " ".join(line_of(row, options, " | ").split()) + " |" for row in sorted(rows, key=worst))]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=lambda value: pathlib.Path(value).resolve())
    parser.add_argument("--before", type=lambda value: pathlib.Path(value).resolve(), help="another build, measured in turns with both")
    parser.add_argument("--only", default="", help="a regular expression that names of rows match")
    parser.add_argument("--threads", default=[1], type=lambda value: [int(part) for part in value.split(",")])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.05, help="a side and round")
    parser.add_argument("--json")
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tools/python"))
    cases = [case for case in op_cases.cases() if re.search(options.only, case.name)]
    if not cases:
        parser.error(f"no row's name matches '{options.only}'; ops.py --only '' measures all of them")
    roof = json.loads(compare_peers.run([options.build / "bin/roof_bench", 1])[0]) if 1 in options.threads else None
    print(f"{'operator':60}  " + "  ".join(header(options)[1:]))
    rows, failed = [], []
    for case in cases:
        try:
            rows.append(row_of(case, options, roof))
            print(line_of(rows[-1], options), flush=True)
        except compare_peers.Failure as failure:
            failed.append(case.name)
            print(f"{case.name:60} FAILED: {failure}", flush=True)
    if options.json:
        json.dump({"rows": rows, "failed": failed}, open(options.json, "w"), indent=1)
    if options.table:
        machine = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
        machine += f"; {roof['gflops']:.0f} GFLOP/s of f32 in registers" if roof else ""
        options.table.write_text(page(rows, options, f"{machine}."))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
