#!/usr/bin/env python3
"""What dmxc, dmx-compare and dmx-run say while they work: in a pipe and on a terminal of 60 columns. With DMXC_LONG two GiB of sparse
weights and the zoo's resnet50, else smaller ones. Usage: progress_test.py BIN REPO [unittest arguments]. Exit 77 without numpy and onnx."""
import fcntl
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
import unittest

try:
    import numpy as np
    from onnx import TensorProto, helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

from dmxc_case import BIN, REPO, Base

sys.path.insert(0, str(REPO / "tests"))
from sampling import LONG, sampled  # noqa: E402

RESNET = REPO.parent / "shared/data/onnx-dev/light-hash/test_resnet50/model.onnx"
COLUMNS, GAP = 60, 3.0


class Heartbeat:
    """A process beside the others that wakes twenty times a second: how long it was kept from running is not theirs."""

    def __enter__(self):
        self.late, self.ends = [], threading.Event()
        self.thread = threading.Thread(target=self.beat)
        self.thread.start()
        return self

    def beat(self):
        last = time.monotonic()
        while not self.ends.wait(0.05):
            now = time.monotonic()
            if now - last > 0.15:
                self.late.append((last, now))
            last = now

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()

    def kept(self, start, end):
        return sum(max(0, min(b, end) - max(a, start) - 0.05) for a, b in self.late)


def watch(command, terminal, folder):
    """(chunks [(time, bytes)] of stderr with start and end, exit code)."""
    environment = {**os.environ, "TMPDIR": str(folder), "TERM": "xterm"}
    if terminal:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    else:
        ours, theirs = os.pipe()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=theirs, cwd=folder, env=environment)
    os.close(theirs)
    chunks = [(time.monotonic(), b"")]
    while True:
        select.select([ours], [], [])
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # a terminal without a writer
            data = b""
        chunks.append((time.monotonic(), data))
        if not data:
            break
    os.close(ours)
    return chunks, process.wait()


@sampled(2)
class Progress(Base):
    def check(self, command, terminal, counted=None):
        with Heartbeat() as heartbeat:
            chunks, code = watch(command, terminal, self.dir)
        text = b"".join(data for _, data in chunks).decode()
        self.assertEqual(code, 0, text)
        for (before, _), (after, _) in zip(chunks, chunks[1:]):
            gap = after - before
            self.assertLess(gap - heartbeat.kept(before, after), GAP, f"{command}: silent for {gap:.1f} s\n{text}")
        lines = [line for line in re.split(r"[\r\n]+", text.replace("\x1b[K", "")) if line]
        progress = [line for line in lines if re.search(r"\(\d+ s\)$|^\[\d", line)]
        if terminal:
            for line in progress:
                self.assertLess(len(line), COLUMNS, line)
        else:
            self.assertEqual(len(set(lines)), len(lines), text)
            self.assertNotIn("\x1b", text)
        took = chunks[-1][0] - chunks[0][0]
        if took < 1.5 and not terminal:
            self.assertEqual(progress, [], text)
        counts = [(int(done), int(total)) for done, total in re.findall(r"(\d+) of (\d+)", "\n".join(progress))]
        if counted and counts:
            self.assertEqual(counts[-1][0], counts[-1][1], text)
        print(f"{command[0].name} {'pty' if terminal else 'pipe'}: {took:.1f} s, {len(progress)} lines of progress")
        return progress

    def sparse(self, width, layers):
        nodes, weights = [], []
        size = width * width * 4
        with open(self.dir / "weights.bin", "wb") as data:
            data.truncate(layers * size)
        for i in range(layers):
            weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[width, width], data_location=TensorProto.EXTERNAL)
            for key, value in (("location", "weights.bin"), ("offset", str(i * size)), ("length", str(size))):
                weight.external_data.add(key=key, value=value)
            weights.append(weight)
            nodes.append(helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]))
        value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width])
        graph = helper.make_graph(nodes, "large", [value("x0")], [value(f"x{layers}")], weights)
        (self.dir / "large.onnx").write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
        return "large.onnx"

    def both(self, command, counted=True):
        for terminal in (False, True):
            self.check(command, terminal, counted)

    def test_large_weights(self):
        self.both([BIN / "dmxc", self.sparse(*((16384, 2) if LONG else (2048, 4))), "-o", "l.bundle"])

    def test_resnet50(self):
        if not RESNET.exists() or not LONG:
            self.skipTest("a long test of the zoo's resnet50")
        self.both([BIN / "dmxc", RESNET, "-o", "r.bundle"])
        self.both([BIN / "dmxc", RESNET, "-t", "corsair", "-o", "c.bundle"])

    def test_compare(self):
        model = RESNET if LONG and RESNET.exists() else REPO / "tools/digits/digits.onnx"
        self.both([BIN / "dmx-compare", model, "--random-inputs", "1", *([] if model == RESNET else ["--", "--dim", "batch=64"])])

    def test_run_of_a_device(self):
        if "corsair" not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build has no target corsair")
        size = 1024 if LONG else 256
        (self.dir / "m.mlir").write_text(f"""func.func @main(%x: tensor<{size}x{size}xf32> {{dmir.name = "x"}}) -> (tensor<{size}x{size}xf32> {{dmir.name = "y"}}) {{
  %w = dmir.constant dense<0.01> : tensor<{size}x{size}xf32>
  %0 = dmir.matmul %x, %w : (tensor<{size}x{size}xf32>, tensor<{size}x{size}xf32>) -> tensor<{size}x{size}xf32>
  return %0 : tensor<{size}x{size}xf32>
}}
""")
        self.run_tool("m.mlir", "-t", "corsair", "-o", "m.bundle")
        command = [BIN / "dmx-run", "m.bundle", "--random-inputs", "1"]
        self.both(command)
        self.both([*command, "--benchmark", "--min-time", "8" if LONG else "3", "--warmup", "1"], counted=False)

    def test_a_slow_run_speaks(self):
        """A benchmark takes as long as it is told to: the first word after two seconds, then one every two."""
        self.run_tool(self.small, "-o", "s.bundle")
        command = [BIN / "dmx-run", "s.bundle", "--benchmark", "--min-time", "5"]
        self.assertGreaterEqual(len(self.check(command, terminal=False)), 2)
        self.assertGreaterEqual(len(self.check(command, terminal=True)), 5)
        self.assertEqual(self.check([*command[:-1], "2.5", "-q"], terminal=False), [])

    def compiled(self, stderr, *flags, columns=None):
        """Exit code of a compile whose stderr is this; the bundle is complete."""
        subprocess.run([BIN / "dmxc", self.small, "-o", "o.bundle", *flags], cwd=self.dir, stderr=stderr, timeout=300, check=True,
                       env={**os.environ, "TERM": "xterm", "TMPDIR": str(self.dir)})
        self.run_tool("o.bundle", "--check", tool="dmx-inspect")
        data = (self.dir / "o.bundle").read_bytes()
        (self.dir / "o.bundle").unlink()
        return data

    def test_odd_places_for_messages(self):
        """A full stderr, a closed pipe, terminals of no and of one column; and the bytes are those of a silent compile."""
        silent = self.compiled(subprocess.DEVNULL, "--progress", "none")
        with open("/dev/full", "wb") as full:
            self.assertEqual(self.compiled(full, "--progress", "plain"), silent)
        reader, writer = os.pipe()
        os.close(reader)
        self.assertEqual(self.compiled(writer, "--progress", "plain"), silent)
        os.close(writer)
        for columns in (0, 1, 2, 9):
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 0, columns, 0, 0))
            drain = threading.Thread(target=lambda: [None for _ in iter(lambda: self.read(ours), b"")])
            drain.start()
            self.assertEqual(self.compiled(theirs), silent)
            os.close(theirs)
            drain.join()
            os.close(ours)

    @staticmethod
    def read(fd):
        try:
            return os.read(fd, 4096)
        except OSError:
            return b""

    def test_the_slowest_kernels_are_named(self):
        import json
        report = json.loads(self.run_tool(self.small, "-q", "-o", "o", "--time-report", "json").stderr)
        self.assertTrue(report["slowest_kernels"])
        self.assertTrue(all(kernel["seconds"] > 0 and " for x86-64" in kernel["kernel"] for kernel in report["slowest_kernels"]))
        writing = next(phase for phase in report["phases"] if phase["phase"] == "write")
        self.assertLessEqual({"hashing", "writing", "check"}, {row["pass"] for row in writing["passes"]})
        self.assertIn("slowest kernels", self.run_tool(self.small, "-q", "-o", "o", "--time-report").stderr)

    def test_kernels_of_every_processor_are_counted(self):
        import json
        if not re.search(r"^\s*cuda\b", self.run_tool("--print-targets").stdout, re.M):
            self.skipTest("this build lacks the target cuda")
        report = json.loads(self.run_tool(self.small, "-q", "-t", "cuda", "-o", "o", "--time-report", "json").stderr)
        self.assertTrue(report["slowest_kernels"])
        self.assertTrue(all(re.match(r"k\d+_\w+$", kernel["kernel"]) for kernel in report["slowest_kernels"]), report["slowest_kernels"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
