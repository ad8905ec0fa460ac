#!/usr/bin/python3
"""The example target, from a copy outside the checkout: test.py ROOT BUILD package|tree|configure

package: builds the copy with the installed component `compiler` of BUILD. tree: builds it into a second build of ROOT by
-DDMXC_EXTRA_TARGETS. Both then compile and run models; what is right comes from numpy and from the models' own outputs. configure: what
-DDMXC_EXTRA_TARGETS refuses, and the parts of a build in the tree that need no compiler."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import numpy

ROOT, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
import onnx_file  # noqa: E402

MOST_LINES = 600
TREE_BUILD = ROOT / "build-example-target"
REAL_MODELS = ("mnist_cntk", "dtln_model_1", "gtcrn_stream_simple")
failures = []


def expect(good, what):
    if not good:
        failures.append(what)
        print("FAIL:", what)


def run(*command, code=0):
    """What a command said, on both streams."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    text = done.stdout + done.stderr
    expect(done.returncode == code, f"{' '.join(map(str, command))}: exit code {done.returncode}, not {code}:\n{text[-3000:]}")
    return text


APPLICATION = r"""
#include <dmx/dmx.h>
#include <stdio.h>
int main(int argc, char **argv) {
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *bundle = NULL;
  dmx_session *session = NULL;
  if (argc != 2 || dmx_bundle_open(argv[1], &bundle, &error) || dmx_session_create(bundle, NULL, NULL, &session, &error))
    return puts(error.message), 1;
  dmx_session_destroy(session);
  dmx_bundle_close(bundle);
  return 0;
}
"""


def check_application(folder, copy):
    """A program of its own with the runtime and the device in it."""
    (folder / "app").mkdir()
    (folder / "app/app.c").write_text(APPLICATION)
    (folder / "app/CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES C CXX)\nfind_package(DmxCompiler REQUIRED)\ndmxc_programs({copy})\n"
        "add_executable(app app.c)\ntarget_link_libraries(app PRIVATE dmxrt_devices)\nset_target_properties(app PROPERTIES LINKER_LANGUAGE CXX)\n")
    run("cmake", "-S", folder / "app", "-B", folder / "app/build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}")
    run("cmake", "--build", folder / "app/build", "--target", "app")
    run(folder / "app/build/app", folder / "50x100x70.bundle")


# --- the folder ---------------------------------------------------------------------------------------------------------
def check_folder(copy):
    run(sys.executable, ROOT / "tests/include-rules/check_includes.py", ROOT, "--target", copy)
    device = copy / "runtime/devices/abacus/AbacusDevice.cpp"
    good = device.read_text()
    device.write_text('#include "dmxc/Support/Result.h"\n' + good)
    said = run(sys.executable, ROOT / "tests/include-rules/check_includes.py", ROOT, "--target", copy, code=1)
    expect("runtime/devices/abacus may not include Support" in said, f"an include that is not allowed: {said}")
    device.write_text(good)
    lines = sum(len(path.read_text().splitlines()) for path in copy.rglob("*") if path.is_file())
    expect(lines < MOST_LINES, f"the target has {lines} lines, the example shall have less than {MOST_LINES}")


def copied(folder):
    copy = folder / "abacus"
    shutil.copytree(ROOT / "tests/example-target", copy, ignore=shutil.ignore_patterns("test.py", "tests.cmake", "__pycache__"))
    return copy


# --- builds -------------------------------------------------------------------------------------------------------------
def build_package(folder, copy):
    run("cmake", "--install", BUILD, "--component", "compiler", "--prefix", folder / "first")
    (folder / "first").rename(folder / "prefix")  # a moved tree works as well
    # gcc, which the application below is built with, takes a minute for the precompiled header.
    quick = ["-DCMAKE_C_COMPILER=clang-22", "-DCMAKE_CXX_COMPILER=clang++-22"] if shutil.which("clang++-22") else []
    run("cmake", "-S", copy, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}", *quick)
    run("cmake", "--build", folder / "build", "-j2")
    return folder / "build/bin"


def build_tree(_, copy):
    """Beside the tree's build, for then the compiler's cache has most of it."""
    shutil.rmtree(TREE_BUILD, ignore_errors=True)
    run("cmake", "-S", ROOT, "-B", TREE_BUILD, "-G", "Ninja", "-DDMXC_BUILD_TESTS=OFF", f"-DDMXC_EXTRA_TARGETS={copy}")
    run("cmake", "--build", TREE_BUILD, "-j2", "--target", "dmxc", "dmx-run", "dmx-inspect")
    return TREE_BUILD / "bin"


def check_configure(folder, copy):
    def configured(name, *folders, more=(), code=1):
        return " ".join(run("cmake", "-S", ROOT, "-B", folder / name, "-G", "Ninja", "-DDMXC_BUILD_COMPILER=OFF", "-DDMXC_BUILD_TESTS=OFF",
                            "-DDMXC_EXTRA_TARGETS=" + ";".join(map(str, folders)), *more, code=code).split())

    def changed(name, change):
        other = folder / ("of-" + name)
        shutil.copytree(copy, other)
        change(other)
        return configured(name, other)

    expect(f"there is no folder '{folder / 'none'}'" in configured("missing", folder / "none"), "a folder that is missing")
    (folder / "empty").mkdir()
    expect("has no targets/NAME/CMakeLists.txt" in configured("no-target", folder / "empty"), "a folder without a target")
    expect("has no runtime/devices/abacus/CMakeLists.txt" in changed("no-device", lambda at: shutil.rmtree(at / "runtime")), "a target without a device")
    expect("has no targets/abacus/README.md" in changed("no-readme", lambda at: (at / "targets/abacus/README.md").unlink()), "a target without a README")
    expect("the name 'corsair' is taken" in changed("taken", lambda at: (at / "targets/abacus").rename(at / "targets/corsair")), "a name that is taken")
    expect("the name 'abacus' is taken" in configured("twice", copy, copy), "a name that comes twice")
    expect("lower-case" in changed("name", lambda at: (at / "targets/abacus").rename(at / "targets/Abacus")), "a name that is none")
    configured("good", copy, code=0)
    run("cmake", "-S", ROOT, "-B", folder / "whole", "-G", "Ninja", "-DDMXC_BUILD_TESTS=OFF")  # the compiler, outside the checkout
    run("cmake", "--build", folder / "good", "--target", "dmxrtDeviceAbacus", "dmxAbacusView")


# --- models -------------------------------------------------------------------------------------------------------------
class Model:
    """y = relu(a b), where b is a constant or both are inputs."""

    def __init__(self, folder, m, k, n, computed=False):
        rng = numpy.random.default_rng(m * 1000 + k)
        self.name = f"{m}x{k}x{n}" + ("c" if computed else "")
        self.path, self.data, self.bundle = folder / f"{self.name}.onnx", folder / self.name, folder / f"{self.name}.bundle"
        a, b = (rng.standard_normal(shape).astype(numpy.float32) for shape in ((m, k), (k, n)))
        weights = [] if computed else [onnx_file.tensor("b", onnx_file.FLOAT, [k, n], raw=b.tobytes())]
        inputs = [("a", a)] + ([("b", b)] if computed else [])
        self.path.write_bytes(onnx_file.model(
            [onnx_file.node("MatMul", "a b", "h"), onnx_file.node("Relu", "h", "y")],
            [onnx_file.info(name, onnx_file.FLOAT, value.shape) for name, value in inputs], [onnx_file.info("y", onnx_file.FLOAT, [m, n])], weights=weights))
        self.data.mkdir()
        for name, value in inputs:
            numpy.save(self.data / f"in_{name}.npy", value)
        numpy.save(self.data / "out_y.npy", numpy.maximum(a.astype(numpy.float64) @ b.astype(numpy.float64), 0).astype(numpy.float32))


def check_products(programs, folder):
    for sizes in ((50, 100, 70), (1, 2, 1), (16, 64, 32), (33, 65, 1), (7, 300, 31)):
        for computed in (False, True):
            model = Model(folder, *sizes, computed)
            said = run(programs / "dmxc", model.path, "-t", "abacus", "-o", model.bundle)
            expect("abacus 1 of 2 nodes" in said, f"{model.name}: {said}")
            run(programs / "dmx-run", model.bundle, "--inputs", model.data, "--expect", model.data, "--rtol", "1e-4", "--atol", "1e-4")
            run(programs / "dmx-inspect", model.bundle, "--verify")
    number = Model(folder, 3, 1, 1)
    expect("cpu 2 of 2 nodes" in run(programs / "dmxc", number.path, "-t", "abacus", "-o", number.bundle), "a number in a program")
    report = run(programs / "dmxc", model.path, "-t", "abacus", "-o", model.bundle, "--placement-report", "-")
    expect(re.search(r"MatMul_0\tdmir.matmul\tabacus\t0\ttiles of 16 x 16", report) and "the abacus only multiplies matrices" in report, report)


def check_real(programs, folder):
    data = ROOT.parent / "shared/data/real-models"
    for name in REAL_MODELS:
        if not data.is_dir():
            print(f"SKIPPED {name}: no {data}")
            continue
        said = run(programs / "dmxc", data / name / "model.onnx", "-t", "abacus", "-o", folder / f"{name}.bundle")
        expect(re.search(r"abacus [1-9]\d* of", said), f"{name}: {said}")
        for case in sorted((data / name).glob("test_data_set_*")):
            run(programs / "dmx-run", folder / f"{name}.bundle", "--inputs", case, "--expect", case, "--rtol", "1e-3", "--atol", "1e-4")


def check_regions(programs, folder):
    """Regions that were written by hand."""
    text = folder / "partition.mlir"
    region = ('%0 = dmir.region "abacus" (%a = %x : tensor<16x16xf32>, %b = %y : tensor<16x16xf32>) -> (tensor<16x16xf32>) {{\n'
              '      {}\n      dmir.yield %h : tensor<16x16xf32>\n    }}')
    product = "dmir.matmul {} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>"
    for ops, message in (("%h = " + product.format("%b, %a"), None),
                         ("%g = " + product.format("%a, %b") + "\n      %h = " + product.format("%g, %b"), "a region of the abacus is one product"),
                         ("%h = dmir.add %a, %b : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>", "the abacus only multiplies matrices")):
        text.write_text("module {\n  func.func @main(%x: tensor<16x16xf32> {dmir.name = \"x\"}, %y: tensor<16x16xf32> {dmir.name = \"y\"}) -> "
                        "(tensor<16x16xf32> {dmir.name = \"z\"}) {\n    " + region.format(ops) + "\n    return %0 : tensor<16x16xf32>\n  }\n}\n")
        said = run(programs / "dmxc", text, "--from", "partition", "-t", "abacus", "-o", folder / "region.bundle", code=1 if message else 0)
        expect((message or "wrote") in said, f"a region: {said}")
    x, y = numpy.random.default_rng(0).standard_normal((2, 16, 16)).astype(numpy.float32)
    for name, value in (("in_x", x), ("in_y", y), ("out_z", (y.astype(numpy.float64) @ x).astype(numpy.float32))):
        numpy.save(folder / f"{name}.npy", value)
    text.write_text(text.read_text().replace("dmir.add %a, %b", "dmir.matmul %b, %a"))  # the second argument comes first
    run(programs / "dmxc", text, "--from", "partition", "-t", "abacus", "-o", folder / "region.bundle")
    run(programs / "dmx-run", folder / "region.bundle", "--inputs", folder, "--expect", folder, "--rtol", "1e-4", "--atol", "1e-4")


# --- the schedule -------------------------------------------------------------------------------------------------------
def code_of(bundle):
    with zipfile.ZipFile(bundle) as archive:
        return archive.read("code/abacus/abacus/kernels.queues")


def check_schedule(programs, folder):
    model = Model(folder, 40, 200, 50)
    text = folder / "schedule.mlir"
    run(programs / "dmxc", model.path, "-t", "abacus", "-o", model.bundle)
    run(programs / "dmxc", model.path, "-t", "abacus", "--emit", "schedule", "-o", text)
    good = text.read_text()
    for part in ('dlir.memory "DRAM" "a"', 'dlir.memory "SRAM" "tiles of a"', "dlir.channel @b depth 2", "dlir.put @b", "dlir.get @b to",
                 "dlir.copy DRAM -> SRAM", "dlir.copy SRAM -> DRAM", "credits 4", ">= 2", "+= 2", "abacus.multiply", "times[2]"):
        expect(part in good, f"the schedule has no {part}")
    again = folder / "again.bundle"
    run(programs / "dmxc", text, "--from", "schedule", "-t", "abacus", "-o", again)
    expect(code_of(again) == code_of(model.bundle), "the schedule's text gives other code")

    if (programs / "dmx-opt").exists():
        expect("abacus.multiply" in run(programs / "dmx-opt", "--target=abacus", text), "dmx-opt does not read the schedule")

    def refused(what, pattern, replacement, message):
        changed, count = re.subn(pattern, replacement, good, count=1)
        expect(count == 1, f"{what}: the schedule has no {pattern}")
        text.write_text(changed)
        said = run(programs / "dmxc", text, "--from", "schedule", "-t", "abacus", "-o", again, code=1)
        expect(message in said, f"{what}: {said}")

    def stops(what, pattern, replacement, message):
        changed, count = re.subn(pattern, replacement, good, count=1)
        expect(count == 1, f"{what}: the schedule has no {pattern}")
        text.write_text(changed)
        run(programs / "dmxc", text, "--from", "schedule", "-t", "abacus", "-o", again)
        said = run(programs / "dmx-run", again, "--inputs", model.data, code=1)
        expect(re.search(message, said), f"{what}: {said}")

    refused("a memory that is not there", '"SRAM" "tiles of a"', '"TAPE" "tiles of a"', "the device has no memory TAPE; it has DRAM, SRAM")
    refused("a move that is not there", "copy DRAM -> SRAM", "copy DRAM -> DRAM", "the device does not move from DRAM to DRAM; from DRAM go SRAM")
    refused("more than a memory holds", '"tiles of a" size 4096', '"tiles of a" size 32768', "over capacity: 'tiles of a' is 32768 bytes")
    refused("more items than copies count", r"dims \[16\]", "dims [17]", "counts 17 items, the device's descriptors 16")
    refused("a put without a get", r"dlir\.get @b to [^\n]*", "", "nothing gets what is put into @b")
    refused("a task of another machine", "abacus.multiply", "corsair.multiply", "corsair.multiply")
    refused("a tile in DRAM", r"abacus\.multiply %\w+\[", "abacus.multiply %a[", "multiplies two tiles in SRAM into a third")
    for what, pattern, replacement, message in (
            ("two units", r"units 1 \(", "units 2 (", 'is not "main" on one unit'), ("another graph", '"main"', '"init"', 'is not "main" on one unit'),
            ("a state", "argument input", "argument state", "is no input or output"), ("another element", 'as "f32"', 'as "f16"', "is no input or output"),
            ("half a tensor", r"begin \[0, 0\] extent \[40, 200\]", "begin [0, 0] extent [20, 200]", "is no input or output"),
            ("permanent bytes", r'("tiles of a" size 4096)', r"\1 permanent", "has 'permanent', which programs of queues do not have"),
            ("masks of units", r"(to %\w+\[[^\]]*\] with %\w+)", r"\1 units 1", "has 'units', which programs of queues do not have"),
            ("items that are not there", r"(source \[64\] target \[\d+\])", r"\1 {high = array<i64: 3>}", "has 'high', which programs of queues do not have"),
            ("bits", r'descriptor "f32"', 'descriptor "raw"', "walks over 'raw', which are no whole bytes"),
            ("a register", r"(units 1 \(%\w+\) \{)", r"\1 %r = dlir.register 0 [1]", "is nothing that programs of queues have"),
            ("a long name", '"load a"', '"' + "a" * 64 + '"', "has a name of more than 63 bytes"),
            ("an open loop", r"loop (%\w+) times\[\d+\] \{(\s*)dlir.loop (%\w+) times\[\d+\]", r"loop \1 times[2] {\2dlir.loop \3 times[\1]", "has no fixed number of trips"),
            ("a product of indices", r"%(\w+) \* 128", r"(%\1 floordiv 2) * 128", "has a place that is no sum of multiples"),
            ("a place within an element", r"%(\w+) \* 128", r"%\1 * 126", "its place in DRAM is no multiple of 4 bytes"),
            ("a queue that is not there", '"dma" 3', '"dma" 4', "there is no queue 4, dma has 4")):
        refused(what, pattern, replacement, message)
    stops("no wait of the engine", r"dlir\.task_barrier wait\([^\n]*", "", "(race|undefined): 'multiply' of queue 3 reads SRAM at ")
    stops("no wait of the copy", r'("load a") wait\(%\w+\)', r"\1", "race: ('load a' of queue 0 writes|'multiply' of queue 3 reads) SRAM at ")
    stops("too few are waited for", r"(task_barrier wait\(%\w+) >= 2", r"\1", "race: '(multiply|load a)' of queue [03] ")
    stops("too many are waited for", r"(task_barrier wait\(%\w+) >= 2", r"\1 >= 5", "deadlock: ")


# --- decisions ----------------------------------------------------------------------------------------------------------
def check_decisions(programs, folder):
    """The order of loops is free where there are several tiles either way: another one is other code and the same bits."""
    model, script, text, decided = Model(folder, 40, 70, 90), folder / "s.mlir", folder / "decided.mlir", folder / "decided.bundle"
    explain = ("-t", "abacus", "--emit", "partition", "-q", "-o", text, "--explain-decisions")
    run(programs / "dmxc", model.path, "-t", "abacus", "-o", model.bundle)
    expect('  order = "rows"  (default)  of "rows", "columns"; ' in run(programs / "dmxc", model.path, *explain), "the decision is not listed")
    small = Model(folder, 16, 70, 90)
    said = run(programs / "dmxc", small.path, *explain)
    expect(re.search(r"': abacus, tiles of 16 x 16\n  nothing is free\n", said), f"one row of tiles has no order: {said}")

    def schedule(order):
        script.write_text("module attributes {transform.with_named_sequence} {\n  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {\n"
                          '    %r = transform.dmx.match {kind = "product"} in %m expect 1 : !transform.any_op -> !transform.any_op\n'
                          f'    transform.dmx.decide %r {{order = "{order}"}} : !transform.any_op\n    transform.yield\n  }}\n}}\n')
        return ("--schedule", script)

    outputs = []
    for order, same in (("rows", True), ("columns", False)):
        run(programs / "dmxc", model.path, "-t", "abacus", "-o", decided, *schedule(order))
        expect((code_of(decided) == code_of(model.bundle)) == same, f"the code where the order is {order}")
        run(programs / "dmx-run", decided, "--inputs", model.data, "--expect", model.data, "--rtol", "1e-4", "--atol", "1e-4", "--output-dir", folder / order)
        outputs.append([path.read_bytes() for path in sorted((folder / order).glob("*.npy"))])
    expect(outputs[0] == outputs[1] and outputs[0], "the order changes bits")
    said = run(programs / "dmxc", model.path, "-t", "abacus", "-o", decided, *schedule("depth"), code=1)
    expect("s.mlir:4:5: error: the abacus target refuses order = \"depth\" for node 'MatMul_0'; its values are \"rows\", \"columns\" [schedule-refused]" in said, said)


# --- what the tools show ------------------------------------------------------------------------------------------------
def check_tools(programs, folder):
    bundle, data = folder / "50x100x70.bundle", folder / "50x100x70"
    report, trace, page = folder / "report.json", folder / "trace.json", folder / "page.html"
    memory = run(programs / "dmx-inspect", bundle, "--what", "memory")
    for row in (r"DRAM +0 +0 +32768 +32768 +input .*a\n", r"SRAM +0 +0 +4096 +4096 +temporary .*tiles of a\n"):
        expect(re.search(row, memory), f"--what memory has no {row}:\n{memory}")
    expect("abacus.multiply" in run(programs / "dmx-inspect", bundle, "--what", "kernels"), "--what kernels has no engine task")
    run(programs / "dmx-run", bundle, "--inputs", data, "--device-opt", f"report={report}", "--device-opt", f"abacus.trace={trace}")
    main = json.loads(report.read_text())["last"][0]["main"]
    tiles = 4 * 6 * 8  # of 50 x 70 results in pairs, of k = 100 in fours
    expect(main["macs"] == {"f32": tiles * 16**3} and main["clocks"] >= tiles * 16, f"the report: {main}")
    expect(main["written_bytes"]["DRAM"] == 4 * 6 * 1024 and main["read_bytes"]["DRAM"] == 2 * tiles * 1024, f"the report's bytes: {main}")
    rows = {event["args"]["name"] for event in json.loads(trace.read_text())["traceEvents"] if event.get("name") == "thread_name"}
    expect(rows == {f"queue {i}" for i in range(5)}, f"the trace's rows: {rows}")
    run(programs / "dmx-inspect", bundle, "--html", page, "--report", report, "--report", trace)
    html = page.read_text()
    for part in ("DRAM of a machine", "SRAM of a machine", "tiles of a", "abacus.multiply", "busiest engine", "roofline over DRAM", "of peak", "load a"):
        expect(part in html, f"the page has no {part}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        copy = copied(folder)
        check_folder(copy)
        if sys.argv[3] == "configure":
            check_configure(folder, copy)
        else:
            programs = (build_package if sys.argv[3] == "package" else build_tree)(folder, copy)
            for check in (check_products, check_regions, check_schedule, check_decisions, check_tools, check_real):
                if not failures:
                    check(programs, folder)
            if sys.argv[3] == "package" and not failures:
                check_application(folder, copy)
    shutil.rmtree(TREE_BUILD, ignore_errors=True)
    print("FAILED" if failures else "PASS")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
