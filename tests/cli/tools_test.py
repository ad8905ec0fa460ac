#!/usr/bin/python3
"""Command lines of dmx-run and dmx-inspect: exit codes, messages, files. Standard library only.

    tools_test.py --bin DIR --golden BUNDLE --device-kernels ASSEMBLY CASE
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

OPTIONS = None


def run(tool, *arguments, code=0, out=(), err=(), env=None, cwd=None):
    """Runs a tool; checks its exit code and the texts that must be on stdout and stderr."""
    command = [os.path.join(OPTIONS.bin, tool), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd, env={**os.environ, **(env or {})})
    what = f"{' '.join(command)}\nexit {done.returncode}\n--- stdout\n{done.stdout}--- stderr\n{done.stderr}"
    assert done.returncode == code, f"expected exit {code}:\n{what}"
    for text in out:
        assert text in done.stdout, f"stdout lacks {text!r}:\n{what}"
    for text in err:
        assert text in done.stderr, f"stderr lacks {text!r}:\n{what}"
    if code == 0:
        assert not done.stderr, f"stderr is not empty:\n{what}"
    return done.stdout


class Scratch(tempfile.TemporaryDirectory):
    """A directory with the golden bundle's sample tensors in `set`."""

    def __enter__(self):
        path = super().__enter__()
        with zipfile.ZipFile(OPTIONS.golden) as archive:
            for name in archive.namelist():
                if name.startswith("tests/"):
                    os.makedirs(path + "/set", exist_ok=True)
                    with open(path + "/set/" + name[6:], "wb") as file:
                        file.write(archive.read(name))
        return path


def case_help():
    for tool in ("dmx-run", "dmx-inspect"):
        text = run(tool, "--help", out=["Usage:", "Examples:", "--json"])
        assert text.index("Examples:") < text.index("--json"), "examples come first"
        run(tool, "--version", out=[tool + " 0."])
    run("dmx-run", "--help", out=["Inputs and outputs:", "Comparison:", "Execution:", "Measurement:"])
    run("dmx-inspect", "--help", out=["Views:", "Checks:", "summary|tensors|dims|tasks|memory|kernels|sizes", "--kernel NAME", "--report FILE",
                                      "dmx-inspect m.bundle --what kernels --kernel k0_conv"])


def case_usage():
    run("dmx-run", code=2, err=["bundle"])
    run("dmx-run", OPTIONS.golden, "--benchmrk", code=2, err=["unknown flag '--benchmrk' (did you mean '--benchmark'?)"])
    run("dmx-run", OPTIONS.golden, "--thread=2", code=2, err=["did you mean '--threads'?"])
    run("dmx-run", OPTIONS.golden, "second", code=2, err=["unexpected argument 'second'"])
    run("dmx-run", OPTIONS.golden, "--threads", "many", code=2, err=["--threads"])
    run("dmx-run", OPTIONS.golden, "--rtol", "-1", code=2, err=["--rtol"])
    run("dmx-run", OPTIONS.golden, "--iters", "3", "--min-time", "1", code=2, err=["--iters", "--min-time"])
    run("dmx-run", OPTIONS.golden, "--input", "x", code=2, err=["--input x: expected NAME=FILE"])
    run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--dim", "batch=-2", code=2, err=["--dim batch=-2"])
    run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--dim", "btch=2", code=2, err=["did you mean 'batch'?"])
    run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--isa", "x86-64-v9", code=2, err=["x86-64-v9", "x86-64-v2"])
    run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--entry", "mian", code=2, err=["mian", "main"])
    run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--device-opt", "cpu.spin=1", code=2, err=["cpu.spin"])
    run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--device-opt", "guard=middle", code=2, err=["cpu.guard=start|end"])
    for side in "start", "end":
        run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--device-opt", f"cpu.guard={side}", "--threads", "2")
    run("dmx-inspect", OPTIONS.golden, "--what", "sumary", code=2, err=["unknown view (did you mean 'summary'?)"])
    run("dmx-inspect", OPTIONS.golden, "--wat", "tasks", code=2, err=["did you mean '--what'?"])
    run("dmx-inspect", OPTIONS.golden, "--what", "tasks", "--kernel", "k0_affine", code=2, err=["--kernel goes with --what kernels"])
    run("dmx-inspect", OPTIONS.golden, "--kernel", "k0_affin", code=2, err=["did you mean 'k0_affine'?"])
    run("dmx-inspect", OPTIONS.golden, "--report", "r.json", code=2, err=["--html"])


def case_files():
    for tool in ("dmx-run", "dmx-inspect"):
        run(tool, "/nonexistent/m.bundle", code=3, err=["error: ", "/nonexistent/m.bundle", "No such file"])
        run(tool, "/dev/null", code=3)
    with Scratch() as path:
        with open(path + "/text", "w") as file:
            file.write("this is not a bundle\n" * 20)
        run("dmx-run", path + "/text", code=1, err=["not a bundle"])
        run("dmx-inspect", path + "/text", code=1, err=["not a bundle"])
        run("dmx-run", path, code=3, err=["manifest.sha256"])
        run("dmx-inspect", path, code=1, err=["has no manifest.json"])
        run("dmx-run", OPTIONS.golden, "--input", f"x={path}/none.npy", code=3, err=["none.npy"])
        run("dmx-run", OPTIONS.golden, "--input", f"x={path}/text", code=2, err=["ends in .npy or .pb"])
        run("dmx-run", OPTIONS.golden, "--inputs", path + "/none", code=3, err=["is not a directory"])
        run("dmx-run", OPTIONS.golden, "--inputs", path, code=3, err=["in_x.npy", "input_0.pb"])
        run("dmx-run", OPTIONS.golden, "--inputs", path + "/set", "--output", f"y={path}/no/dir/y.npy", code=3, err=["No such file"])
        run("dmx-run", OPTIONS.golden, "--inputs", path + "/set", "--json", path, code=3, err=["cannot write"])
        run("dmx-inspect", OPTIONS.golden, "--html", path, code=3, err=["cannot write"])


def rule_of_expect(path):
    """What --expect allows by default is the rule of the table of models; what is given by hand is that of each element."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../models"))
    try:
        import numpy as np
        import rule
    except ImportError:
        print("SKIPPED: the rule needs numpy (python3-numpy)")
        return
    said = f"rule: |error| <= {rule.RELATIVE:g} |expected| + {rule.ABSOLUTE:g} max |expected|; integers equal\n"
    near = path + "/near"
    shutil.copytree(path + "/set", near)
    y = np.load(near + "/out_y.npy")
    smallest, largest = np.abs(y) == np.abs(y).min(), y == y.max()
    for at, part, passes in ((smallest, 0.9, True), (smallest, 1.1, False), (largest, 0.9, True), (largest, 1.1, False)):
        other = y.astype(np.float32)
        other[at] += part * (rule.RELATIVE * np.abs(other[at]) + rule.ABSOLUTE * np.abs(y).max())
        assert (rule.excess(y, other) <= 1) == passes
        np.save(near + "/out_y.npy", other)
        run("dmx-run", OPTIONS.golden, "--inputs", near, "--expect", near, code=0 if passes else 5, out=[said + ("PASS\n" if passes else "FAIL\n")])
        run("dmx-run", OPTIONS.golden, "-q", "--inputs", near, "--expect", near, "--rtol", "1e-3", code=5, out=["rule: |error| <= 0.001 |expected| + 1e-07\nFAIL\n"])


def case_run():
    with Scratch() as path:
        run("dmx-run", OPTIONS.golden, "--inputs", path + "/set", "--expect", path + "/set", out=["y: ok", "z: ok", "PASS\n"])
        rule_of_expect(path)
        quiet = run("dmx-run", OPTIONS.golden, "-q", "--inputs", path + "/set", "--expect", path + "/set")
        assert quiet == "PASS\n", quiet
        text = run("dmx-run", OPTIONS.golden, "--inputs", path + "/set", out=["y: f32 3x5, min -14, max 15", "ran on cpu x86-64-v2"])
        with open("/proc/cpuinfo") as cpu:
            flags = cpu.read().split()
        better = "x86-64-v4" if "avx512vl" in flags else "x86-64-v3" if "avx2" in flags else ""
        assert ("compile the model with -t cpu:x86-64-v2+" + better if better else "ran on cpu x86-64-v2\n") in text, text
        # A flag that may be repeated takes one value.
        run("dmx-run", "--dim", "batch=2", OPTIONS.golden, "--random-inputs", "1", out=["y: f32 2x5"])
        run("dmx-run", OPTIONS.golden, code=2, err=["no file was given for input 'x' (f32 batchx5)", "--random-inputs"])
        for ending in OPTIONS.endings.split():
            run("dmx-run", OPTIONS.golden, "--input", f"x={path}/set/in_x.npy", "--output", f"y={path}/y.{ending}", "--output-dir", path + "/out")
            # What was written serves as input again: y has x's shape.
            run("dmx-run", OPTIONS.golden, "--input", f"x={path}/y.{ending}")
        if "pb" in OPTIONS.endings:
            with open(path + "/y.pb", "rb") as file:
                assert b"\x42\x01y" in file.read()  # the tensor's name
        else:
            run("dmx-run", OPTIONS.golden, "--input", f"x={path}/y.pb", code=3, err=["y.pb': this build has no ONNX front end", ".npy"])
        run("dmx-run", OPTIONS.golden, "--inputs", path + "/set", "--expect", path + "/out", out=["PASS"])
        shutil.copy(path + "/set/in_x.npy", path + "/out/out_y.npy")
        run("dmx-run", OPTIONS.golden, "--inputs", path + "/set", "--expect", path + "/out", code=5,
            out=["first mismatch at [0, 0]: got -14, expected -7", "worst mismatch", "z: ok", "FAIL"], err=["output 'y' differs"])
        run("dmx-run", OPTIONS.golden, "--inputs", path + "/set", "--expect", path + "/out", "--atol", "100", out=["PASS"])
        os.remove(path + "/out/out_z.npy")
        run("dmx-run", OPTIONS.golden, "--inputs", path + "/set", "--expect", path + "/out", code=3, err=["no expected tensor for output 'z'"])
        shutil.copy(path + "/set/out_z.npy", path + "/set/in_x.npy")
        run("dmx-run", OPTIONS.golden, "--inputs", path + "/set", code=2, err=["x"])


def case_color():
    with Scratch() as path:
        text = run("dmx-run", OPTIONS.golden, "--inputs", path + "/set", "--expect", path + "/set")
        assert "\033" not in text, "no colour into a pipe"
        # On a terminal, unless NO_COLOR is set.
        for extra, colored in (({}, True), ({"NO_COLOR": "1"}, False)):
            main, worker = os.openpty()
            env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | extra
            subprocess.run([OPTIONS.bin + "/dmx-run", OPTIONS.golden, "--inputs", path + "/set", "--expect", path + "/set"],
                           stdout=worker, check=True, env=env)
            assert (b"\033[1;32mPASS" in os.read(main, 4096)) == colored
            os.close(main)
            os.close(worker)


def case_benchmark():
    with Scratch() as path:
        run("dmx-run", OPTIONS.golden, "--benchmark", "--iters", "7", "--warmup", "1", "--threads", "1", "--per-task", "--json", path + "/b.json",
            "--profile", path + "/t.json", out=["1 thread,", "7 runs", "median", "p99", "load", "session", "affine [k0_affine]"])
        with open(path + "/b.json") as file:
            report = json.load(file)
        assert report["iters"] == 7 and report["threads"] == 1, report
        assert report["latency"]["min"] <= report["latency"]["median"] <= report["latency"]["p90"] <= report["latency"]["p99"]
        for key in ("model", "load_ms", "session_ms", "peak_rss_mb", "arena_bytes", "tasks"):
            assert key in report, key
        with open(path + "/t.json") as file:
            events = json.load(file)["traceEvents"]
        assert {"affine", "copy y", "copy z"} <= {event["name"] for event in events}
        start = time.monotonic()
        run("dmx-run", OPTIONS.golden, "--benchmark", "--min-time", "0.3", out=["2 threads," if os.cpu_count() == 2 else "thread"])
        assert time.monotonic() - start >= 0.3


def case_inspect():
    for view in ("summary", "tensors", "dims", "tasks", "memory", "kernels", "sizes"):
        assert run("dmx-inspect", OPTIONS.golden, "--what", view)
        assert json.loads(run("dmx-inspect", OPTIONS.golden, "--what", view, "--json"))
    run("dmx-inspect", OPTIONS.golden, "--check", out=["checked, no problems"])
    run("dmx-inspect", OPTIONS.golden, "--verify", out=["verified, no problems"])
    with Scratch() as path:
        with open(OPTIONS.golden, "rb") as file:
            data = bytearray(file.read())
        with zipfile.ZipFile(OPTIONS.golden) as archive:
            info = archive.getinfo("weights/model.safetensors")
        at = info.header_offset
        tensors = at + 30 + int.from_bytes(data[at + 26:at + 28], "little") + int.from_bytes(data[at + 28:at + 30], "little") + 4096
        data[tensors + 3] ^= 1
        with open(path + "/damaged", "wb") as file:
            file.write(data)
        run("dmx-inspect", path + "/damaged", "--verify", code=5, out=["sha256"], err=["is not sound"])
        problems = json.loads(run("dmx-inspect", path + "/damaged", "--verify", "--json", code=5))
        assert problems["ok"] is False and problems["problems"]
        with open(path + "/cut", "wb") as file:
            file.write(data[:3000])
        run("dmx-inspect", path + "/cut", "--check", code=5, err=["is not sound"])
        # A directory with the same tree is the same bundle.
        with zipfile.ZipFile(OPTIONS.golden) as archive:
            archive.extractall(path + "/tree")
            with open(path + "/tree/manifest.sha256", "wb") as file:
                file.write(archive.comment.split(b":")[1] + b"\n")
        run("dmx-inspect", path + "/tree", "--verify", out=["no problems"])
        run("dmx-inspect", OPTIONS.golden, "--diff", path + "/tree", out=["no differences"])
        run("dmx-run", path + "/tree", "--inputs", path + "/set", "--expect", path + "/set", out=["PASS"])
        run("dmx-inspect", OPTIONS.golden, "--html", path + "/m.html")
        with open(path + "/m.html") as file:
            assert "<svg" in file.read()


class DeviceBundle:
    """A folder with a bundle for the simulated card, made of assembly."""

    def __init__(self, path):
        self.path = path
        with open(OPTIONS.device_kernels) as file:
            self.text = file.read()

    def make(self, name, text=None):
        assembly, bundle = f"{self.path}/{name}.txt", f"{self.path}/{name}.bundle"
        with open(assembly, "w") as file:
            file.write(self.text if text is None else text)
        run("dmx-write-device-bundle", assembly, bundle)
        return bundle


CODE = "code/corsair/corsair-like/kernels.dmxisa"


def entry(bundle, name):
    with zipfile.ZipFile(bundle) as archive:
        return archive.read(name)


def case_device():
    with tempfile.TemporaryDirectory() as path:
        device = DeviceBundle(path)
        bundle = device.make("m")
        run("dmx-inspect", bundle, out=["instructions in " + CODE, "count/1"])
        # The disassembly, cut off the tables, makes the same code again.
        text = run("dmx-inspect", bundle, "--what", "kernels", out=["MATMUL", "footprints in " + CODE])
        assembly = text[text.index("\n; " + CODE):]
        assert entry(device.make("again", assembly), CODE) == entry(bundle, CODE)
        data = json.loads(run("dmx-inspect", bundle, "--what", "kernels", "--json"))["objects"][0]
        assert entry(device.make("data", data["disassembly"]), CODE) == entry(bundle, CODE)
        assert [kernel["name"] for kernel in data["kernels"]] == ["product", "count/1"], data["kernels"]
        # One kernel is an image of its own.
        text = run("dmx-inspect", bundle, "--kernel", "count/1", out=[".stream count_main"])
        assert "product" not in text, text
        run("dmx-run", device.make("part", text[text.index("\n; " + CODE):]), "--random-inputs", "1", out=["sum: f32 64"])
        run("dmx-inspect", bundle, "--kernel", "cuont/1", code=2, err=["did you mean 'count/1'?"])
        # A change on purpose is found by name.
        other = device.make("other", device.text.replace("MATMUL slot=0 rows=64", "MATMUL slot=0 rows=32"))
        run("dmx-inspect", bundle, "--diff", other, code=5, err=["differ in 1 place"],
            out=[f"stream {CODE}: product_compute at 4\n  - MATMUL st=0x40 stream=1\n  + MATMUL rows=32 st=0x40 stream=1\n"])
        differences = json.loads(run("dmx-inspect", bundle, "--diff", other, "--json", code=5))["differences"]
        assert len(differences) == 1 and differences[0]["what"] == "stream", differences


def case_device_page():
    with tempfile.TemporaryDirectory() as path:
        bundle = DeviceBundle(path).make("m")
        run("dmx-run", bundle, "--random-inputs", "1", "--device-opt", f"corsair.report={path}/r.json", "--device-opt",
            f"corsair.trace={path}/t.json")
        for name in ("a", "b"):
            run("dmx-inspect", bundle, "--html", f"{path}/{name}.html", "--report", path + "/r.json", "--report", path + "/t.json")
        with open(path + "/a.html", "rb") as a, open(path + "/b.html", "rb") as b:
            page = a.read()
            assert page == b.read(), "the same bytes twice"
        page = page.decode()
        for text in ("memories of kernel", "permanent ranges of kernel", "roofline over", "<h3>quad 1</h3>", "DIMC 0"):
            assert text in page, text
        for outside in ("http://", "https://", "<script", "src=", "@import"):
            assert outside not in page, outside
        run("dmx-inspect", bundle, "--html", path + "/c.html", "--report", path + "/none", code=3, err=["No such file"])
        run("dmx-inspect", bundle, "--html", path + "/c.html", "--report", path + "/a.html", code=3, err=["it is not JSON"])
        run("dmx-inspect", OPTIONS.golden, "--html", path + "/c.html", "--report", path + "/r.json", code=2, err=["does not have"])
        assert not os.path.exists(path + "/c.html")


def case_device_damage():
    with tempfile.TemporaryDirectory() as path:
        bundle = DeviceBundle(path).make("m")
        with zipfile.ZipFile(bundle) as archive:
            at = archive.getinfo(CODE).header_offset
        with open(bundle, "rb") as file:
            data = bytearray(file.read())
        at += 30 + int.from_bytes(data[at + 26:at + 28], "little") + int.from_bytes(data[at + 28:at + 30], "little")
        for offset, why in ((0, "magic"), (8, "the image has format"), (100, "section table fails its checksum"),
                            (8000, "section STRM fails its checksum")):
            bad = bytearray(data)
            bad[at + offset] ^= 0x41
            with open(path + "/bad", "wb") as file:
                file.write(bad)
            for arguments in (["--what", "kernels"], ["--what", "memory"], ["--kernel", "product"], ["--html", path + "/page"]):
                run("dmx-inspect", path + "/bad", *arguments, code=1, err=[f"entry '{CODE}'", why])
            assert not os.path.exists(path + "/page")
            run("dmx-inspect", path + "/bad", out=["damaged", why])
            run("dmx-inspect", path + "/bad", "--check", code=5, out=[CODE], err=["is not sound"])
            run("dmx-run", path + "/bad", "--random-inputs", "1", code=1, err=[CODE])


def main():
    global OPTIONS
    cases = {name[5:]: function for name, function in globals().items() if name.startswith("case_")}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--golden", required=True)
    parser.add_argument("--device-kernels", required=True)
    parser.add_argument("--endings", default="npy pb")  # of the tensor files that this build knows
    parser.add_argument("case", choices=cases)
    OPTIONS = parser.parse_args()
    cases[OPTIONS.case]()


if __name__ == "__main__":
    main()
