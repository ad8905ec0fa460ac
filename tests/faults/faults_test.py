#!/usr/bin/env python3
"""Files that misbehave, memory that is not there, programs that are killed.
Usage: faults_test.py BIN SHIM RUNNER [unittest arguments]. DMXC_LONG=1: every fault, not a sample. Exit 77 without numpy and onnx."""
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import numpy as np
    import models
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from sampling import LONG  # noqa: E402

BIN, SHIM, RUNNER = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
CORSAIR = "corsair" in subprocess.run([BIN / "dmxc", "--print-targets"], capture_output=True, text=True).stdout
TARGETS = ["cpu:x86-64-v3"] + (["corsair"] if CORSAIR else [])


def sample(calls, count):
    """All of 1..calls, or `count` of them spread evenly, the first and last among them."""
    if LONG or calls <= count:
        return list(range(1, calls + 1))
    return sorted({1 + round(i * (calls - 1) / (count - 1)) for i in range(count)})


class Base(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-faults-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.out, self.tmp = self.dir / "out", self.dir / "tmp"
        self.out.mkdir()
        self.tmp.mkdir()
        self.env = {**os.environ, "TMPDIR": str(self.tmp)}

    def save(self, model, name):
        path = self.dir / f"{name}.onnx"
        path.write_bytes(model.SerializeToString())
        return path

    def tool(self, tool, *arguments, env=None, timeout=120, **more):
        return subprocess.run([BIN / tool, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, cwd=self.out,
                              env={**self.env, **(env or {})}, **more)

    def refused(self, done, code=3, *parts):
        """One named error with that exit code."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr, r"error: .{8,}")
        for part in parts:
            self.assertIn(part, done.stderr)

    def nothing_left(self, *names):
        self.assertEqual(sorted(os.listdir(self.out)), sorted(names))
        self.assertEqual(os.listdir(self.tmp), [])

    def fault(self, fault, *command, **more):
        return self.tool(*command, env={"LD_PRELOAD": str(SHIM), **({"DMX_FAULT": fault} if fault else {}), **more.pop("env", {})}, **more)

    def counts(self, *command):
        """How often each kind of call comes, without a fault."""
        file = self.dir / "counts"
        file.unlink(missing_ok=True)
        done = self.fault(None, *command, env={"DMX_FAULT_COUNTS": str(file)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return {kind: int(count) for kind, count in (line.split() for line in file.read_text().splitlines())}


class Names(Base):
    """F8: names and paths of any length."""

    def test_longest_names(self):
        model = self.save(models.dynamic(), "m")
        name = "n" * 255
        for arguments in (["-o", name], ["-o", name, "--bundle-format", "dir"], ["--emit", "frontend", "-o", name]):
            for _ in range(2):  # new, then in place of what is there
                done = self.tool("dmxc", model, *arguments)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.nothing_left(name)
            if "dir" in arguments:
                shutil.rmtree(self.out / name)
            else:
                (self.out / name).unlink()
        done = self.tool("dmxc", model, "-o", "b")
        done = self.tool("dmx-run", "b", "--random-inputs", 1, "--output", "y=" + "n" * 251 + ".npy", "--json", "n" * 255)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.nothing_left("b", "n" * 251 + ".npy", "n" * 255)

    def test_names_that_are_too_long(self):
        model = self.save(models.dynamic(), "m")
        for path in ("n" * 256, "/".join(["n" * 200] * 25), "./" * 2100 + "m"):
            for more in ([], ["--bundle-format", "dir"], ["--emit", "frontend"]):
                self.refused(self.tool("dmxc", model, "-o", path, *more), 3, "File name too long")
                self.nothing_left()
        self.refused(self.tool("dmxc", "n" * 5000, "-o", "b"), 3, "File name too long")

    def test_a_deep_folder(self):
        """The folder's path fits, a longer name beside the output would not."""
        model = self.save(models.dynamic(), "m")
        folder = self.out
        while len(str(folder)) < 4096 - 102:
            folder = folder / ("d" * min(98, 4093 - len(str(folder))))
        os.makedirs(folder)
        room = 4094 - len(str(folder))
        for format in ("zip", "dir"):
            done = self.tool("dmxc", model, "-o", folder / ("n" * room), "--bundle-format", format)
            self.assertEqual(done.returncode, 0, done.stderr[-300:])
            shutil.rmtree(folder / ("n" * room)) if format == "dir" else (folder / ("n" * room)).unlink()


class Pipes(Base):
    """F9: a FIFO that nobody writes is refused, not waited for."""

    def test_every_file_that_is_read(self):
        model = self.save(models.dynamic(), "m")
        self.assertEqual(self.tool("dmxc", model, "-o", "b").returncode, 0)
        pipes = {}
        for name in ("p", "p.onnx", "p.pt2", "p.mlir", "p.npy", "p.pb", "p.json"):
            os.mkfifo(self.dir / name)
            pipes[name] = self.dir / name
        p = pipes["p"]
        commands = [["dmxc", pipes[name], "-o", "o"] for name in ("p", "p.onnx", "p.pt2", "p.mlir")]
        commands += [["dmxc", p, "--from", phase, "-o", "o"] for phase in ("frontend", "schedule")]
        commands += [["dmxc", f"@{p}"], ["dmxc", model, "--schedule", p, "-o", "o"]]
        commands += [["dmx-inspect", p], ["dmx-inspect", "b", "--diff", p], ["dmx-inspect", "b", "--html", "h", "--report", pipes["p.json"]]]
        commands += [["dmx-run", p], ["dmx-run", p, "--load", "copy"]]
        commands += [["dmx-run", "b", "--input", f"x={pipes[name]}"] for name in ("p.npy", "p.pb")]
        np.save(self.dir / "x.npy", np.zeros((1, 64), np.float32))
        commands += [["dmx-compare", p, "--random-inputs", "1"], ["dmx-compare", self.save(models.products(64, 1), "fixed"), p, "--inputs", self.dir]]
        if CORSAIR:
            commands.append(["dmxc", model, "-t", f"corsair:{pipes['p.json']}", "-o", "o"])
        for command in commands:
            with self.subTest(command=" ".join(map(str, command))):
                done = self.tool(*command, timeout=30)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("not a regular file", done.stderr)

    def test_external_data(self):
        from onnx import TensorProto
        model = models.dynamic()
        weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
        weight.external_data.add(key="location", value="data.bin")
        model.graph.initializer.append(weight)
        model.graph.node[0].input[1] = "w"
        path = self.save(model, "m")
        os.mkfifo(self.dir / "data.bin")
        done = self.tool("dmxc", path, "-o", "o", timeout=30)
        self.assertNotIn(done.returncode, (0, 70))
        self.assertIn("not a regular file", done.stderr)

    def test_a_bundle_folder(self):
        model = self.save(models.dynamic(), "m")
        self.assertEqual(self.tool("dmxc", model, "-o", "b", "--bundle-format", "dir").returncode, 0)
        for name in ("graph.json", "manifest.json", "manifest.sha256"):
            with self.subTest(name=name):
                content = (self.out / "b" / name).read_bytes()
                (self.out / "b" / name).unlink()
                os.mkfifo(self.out / "b" / name)
                for command in (["dmx-inspect", "b"], ["dmx-run", "b", "--random-inputs", 1], ["dmx-run", "b", "--load", "copy"]):
                    self.refused(self.tool(*command, timeout=30), 3, "not a regular file")
                (self.out / "b" / name).unlink()
                (self.out / "b" / name).write_bytes(content)


class Ends(Base):
    """F10 to F12: limits and signals."""

    def test_a_limit_of_file_sizes(self):
        model = self.save(models.products(600, 2), "m")
        for more in ([], ["--bundle-format", "dir"]):
            done = self.tool("dmxc", model, "-o", "b", *more, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
            self.refused(done, 3, "File too large", "ulimit -f")
            self.nothing_left()
        self.assertEqual(self.tool("dmxc", model, "-o", "b").returncode, 0)
        np.save(self.dir / "x.npy", np.zeros((1, 600), np.float32))
        done = self.tool("dmx-run", "b", "--input", f"x={self.dir / 'x.npy'}", "--output", "y=y.npy",
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
        self.refused(done, 3, "File too large")
        self.nothing_left("b")

    def test_signals(self):
        """Sent at any time, they leave nothing or, where they come after the bundle has its name, all of it, and the process dies of them."""
        model = self.save(models.bert_toy(), "m")
        start = time.monotonic()
        self.assertEqual(self.tool("dmxc", model, "-o", "b").returncode, 0)
        whole = time.monotonic() - start
        bundle = (self.out / "b").read_bytes()
        (self.out / "b").unlink()
        signals = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
        count, died = 60 if LONG else 9, 0
        for i in range(count):
            process = subprocess.Popen([BIN / "dmxc", model, "-o", "b", "-q"], cwd=self.out, env=self.env, stderr=subprocess.PIPE, text=True)
            time.sleep(whole * (i + 0.5) / count)
            process.send_signal(signals[i % 3])
            _, err = process.communicate(timeout=60)
            if process.returncode:
                self.assertEqual(process.returncode, -signals[i % 3], err)
                died += 1
            left = (self.out / "b").exists()
            self.nothing_left(*["b"] * left)
            self.assertGreaterEqual(left, process.returncode == 0)
            if left:
                self.assertTrue((self.out / "b").read_bytes() == bundle, "half a bundle")
                (self.out / "b").unlink()
        self.assertGreater(died, count // 3)

    def test_no_folder_for_temporaries_is_needed(self):
        model = self.save(models.lenet(), "m")
        for target in TARGETS:
            done = self.tool("dmxc", model, "-t", target, "-o", "b", env={"TMPDIR": "/nonexistent"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.nothing_left("b")
        np.save(self.dir / "x.npy", np.zeros((1, 1, 28, 28), np.float32))
        done = self.tool("dmx-compare", model, "--inputs", self.dir, env={"TMPDIR": "/nonexistent"})
        self.refused(done, 3, "/nonexistent", "TMPDIR")


class Memory(Base):
    """F7 and F12: what is too large is said."""

    def test_large_dims(self):
        model = self.save(models.dynamic(), "m")
        self.assertEqual(self.tool("dmxc", model, "-o", "b").returncode, 0)
        for extent, size in ((99999999999999, "399999999999996"), (2 ** 62, "more than 2^63")):
            done = self.tool("dmx-run", "b", "--random-inputs", 1, "--dim", f"s={extent}")
            self.refused(done, 3, f"input 'x' of f32 {extent}x1 needs {size} bytes", "--dim")
        shared = pathlib.Path(__file__).resolve().parents[3] / "shared/data/repro/bad-alloc-dim-min.bundle"
        if shared.exists():
            self.refused(self.tool("dmx-run", shared, "--random-inputs", 1), 3, "bytes")
        else:
            print("note: ../shared is missing; its bundle was not tried")

    def test_address_space(self):
        """ulimit -v: a bundle or one sentence, at any limit under which the libraries can be loaded."""
        model, constants = self.save(models.lenet(), "m"), self.save(models.scaled(), "c")
        least = self.least_limit(model)
        seen = set()
        # Densest where a compile just begins to fit; of the other model where its constants do.
        limits = [(model, int(least * (1 + (i / (49 if LONG else 4)) ** 2 * 0.6))) for i in range(50 if LONG else 5)]
        limits += [(constants, least + (4 * i << 20)) for i in range(0, 40, 1 if LONG else 4)]
        for model, limit in limits:
            done = self.tool("dmxc", model, "-o", "b", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            with self.subTest(limit=limit):
                self.ended_well(done)
            seen.add(done.returncode)
            self.clean()
        self.assertIn(3, seen)

    def least_limit(self, model):
        """The least limit under which main is reached, within 1 MiB."""
        low, high = 1 << 20, 1 << 32
        while high - low > 1 << 20:
            middle = (low + high) // 2
            done = self.tool("dmxc", "--version", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (middle, middle)))
            if done.returncode in (0, 3):
                high = middle
            else:
                self.assertEqual(done.returncode, 127, done.stderr)  # the loader's
                low = middle
        return high

    def clean(self):
        (self.out / "b").unlink(missing_ok=True)
        for name in os.listdir(self.tmp):
            shutil.rmtree(self.tmp / name)

    def ended_well(self, done):
        self.assertIn(done.returncode, (0, 3), done.stderr)
        if done.returncode == 3:
            self.assertRegex(done.stderr, "out of memory|Cannot allocate memory")
            self.assertEqual(done.stderr.count("error:"), 1, done.stderr)
        self.assertNotIn("reproducer", done.stderr)
        self.nothing_left(*(["b"] if done.returncode == 0 else []))

    def test_allocations(self):
        """The k-th allocation of a compile fails, or all from it on."""
        for target in TARGETS:
            model = self.save(models.lenet(), "m")
            calls = self.counts("dmxc", model, "-o", "b", "-t", target)["alloc"]
            want = (self.out / "b").read_bytes()
            (self.out / "b").unlink()
            count = 500 if LONG else 8
            for i in range(count):
                k = 1 + round(calls ** (i / (count - 1))) if i % 2 else 1 + i * (calls - 1) // (count - 1)
                fault = f"alloc:{k}" + ("+" if i % 4 < 2 else "")
                with self.subTest(target=target, fault=fault):
                    done = self.fault(fault, "dmxc", model, "-o", "b", "-t", target)
                    self.ended_well(done)
                    if done.returncode == 0:
                        self.assertTrue((self.out / "b").read_bytes() == want)
                self.clean()

    def test_allocations_of_dmx_run(self):
        model = self.save(models.dynamic(), "m")
        self.assertEqual(self.tool("dmxc", model, "-o", "b").returncode, 0)
        command = ["dmx-run", "b", "--random-inputs", 1, "--output", "y=y.npy"]
        calls = self.counts(*command)["alloc"]
        (self.out / "y.npy").unlink()
        for k in sample(calls, 100):
            done = self.fault(f"alloc:{k}", *command)
            with self.subTest(k=k):
                self.assertIn(done.returncode, (0, 3), done.stderr)
                self.nothing_left("b", *(["y.npy"] if done.returncode == 0 else []))
            (self.out / "y.npy").unlink(missing_ok=True)


class Calls(Base):
    """Point 7: each call that touches files fails once."""
    KINDS = {"open": ["EACCES", "EMFILE", "ENOMEM"], "read": ["EIO", "short", "EINTR", "end"], "write": ["ENOSPC", "EIO", "short", "EINTR"],
             "sync": ["EIO", "EINTR", "EINVAL"], "map": ["ENOMEM"], "stat": ["EIO"], "rename": ["EIO", "EACCES"], "mkdir": ["ENOSPC"], "thread": ["usual"]}

    def every_call(self, command, output, count):
        counts = self.counts(*command)
        target = self.out / output
        want = self.content(target)
        tried = 0
        for kind, ways in self.KINDS.items():
            for k in sample(counts[kind], count):
                for way in ways if LONG else ways[k % len(ways):][:1]:
                    for old in (False, True) if LONG or kind in ("rename", "sync") else (k % 2 == 0,):
                        tried += 1
                        fault = f"{kind}:{k}" + ("" if way == "usual" else f":{way}")
                        with self.subTest(command=command[0], output=output, fault=fault, old=old):
                            self.one_call(command, target, want, fault, old)
        return tried

    def content(self, path):
        if path.is_dir():
            return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}
        return path.read_bytes()

    def one_call(self, command, target, want, fault, old):
        others = [name for name in os.listdir(self.out) if name != target.name and not name.startswith(".dmxc-tmp-")]
        for name in set(os.listdir(self.out)) - {*others, target.name}:  # a fault before this one is a failure already
            shutil.rmtree(self.out / name) if (self.out / name).is_dir() else (self.out / name).unlink()
        for left in self.tmp.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        before = None
        if old:
            if isinstance(want, dict):
                target.mkdir()
                (target / "manifest.json").write_bytes(b"old")
            else:
                target.write_bytes(b"old")
            before = self.content(target)
        done = self.fault(fault, *command)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        if done.returncode == 3:
            self.assertRegex(done.stderr, r"error: .{8,}")
            self.assertNotIn("reproducer", done.stderr)
        if done.returncode == 0:
            self.assertTrue(self.content(target) == want, "another bundle than without the fault")
        elif target.exists():  # as it was; complete where it was only the folder that could not be synchronised
            self.assertIn(self.content(target), [before, want] if "is written, but" in done.stderr else [before])
        self.nothing_left(*others, *([target.name] if target.exists() else []))
        if before:
            self.assertTrue(target.exists())

    def compiles(self, target, *more):
        names = ("lenet", "bert_toy") if LONG else ("lenet",)
        for name in names:
            model = self.save(getattr(models, name)(), name)
            tried = self.every_call(["dmxc", model, "-t", target, "-o", "b", *more], "b", 6)
            print(f"{name} for {target} {' '.join(more)}: {tried} faults")

    def test_compile_cpu(self):
        self.compiles("cpu:x86-64-v3")

    def test_threads_of_large_weights(self):
        """What two threads hash and write is done without them where they cannot be had; they are the last that start."""
        model = self.save(models.products(1200, 1), "m")
        command = ["dmxc", model, "-t", "cpu:x86-64-v3", "-j1", "-o", "b"]
        calls = self.counts(*command)["thread"]
        target = self.out / "b"
        want = self.content(target)
        self.assertGreater(calls, 1)
        for k in range(1, calls + 1):
            with self.subTest(k=k):
                self.one_call(command, target, want, f"thread:{k}", old=False)
                if k > calls - 2:
                    self.assertTrue(target.exists())

    def test_compile_cpu_folder(self):
        self.compiles("cpu:x86-64-v3", "--bundle-format", "dir")

    @unittest.skipUnless(CORSAIR, "this build has no corsair target")
    def test_compile_corsair(self):
        self.compiles("corsair")

    def test_text(self):
        model = self.save(models.lenet(), "lenet")
        self.every_call(["dmxc", model, "--emit", "frontend", "-o", "t"], "t", 5)

    def test_run(self):
        for target in TARGETS:
            model = self.save(models.lenet(), "lenet")
            self.assertEqual(self.tool("dmxc", model, "-t", target, "-o", "b").returncode, 0)
            for load in ("map", "copy"):
                self.every_call(["dmx-run", "b", "--threads", 2, "--load", load, "--random-inputs", 1, "--output", "y=y.npy"], "y.npy", 9)

    def test_full_devices(self):
        model = self.save(models.lenet(), "lenet")
        self.refused(self.tool("dmxc", model, "--emit", "frontend", "-o", "/dev/full"), 3, "/dev/full", "No space left")
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN / "dmxc", model, "--emit", "frontend"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.refused(done, 3, "standard output", "No space left")

    def test_output_is_on_the_disk_before_it_has_its_name(self):
        """F15: files, then folders, then the name, then the folder that has it."""
        model = self.save(models.lenet(), "lenet")
        for more, files in (([], 1), (["--bundle-format", "dir"], 6)):
            for _ in range(2):  # new, then in place of what is there
                file = self.dir / "trace"
                file.unlink(missing_ok=True)
                done = self.fault(None, "dmxc", model, "-t", "cpu:x86-64-v3", "-o", "b", *more, env={"DMX_FAULT_TRACE": str(file)})
                self.assertEqual(done.returncode, 0, done.stderr)
                calls = file.read_text().split()
                named = max(i for i, call in enumerate(calls) if call in ("link", "rename"))
                first = min(i for i, call in enumerate(calls) if call in ("link", "rename"))
                self.assertEqual(calls[named + 1:], ["sync-folder"])
                self.assertGreaterEqual(calls[:first].count("sync-file"), files)
                self.assertEqual(calls[:first].count("pwrite"), calls.count("pwrite"))
                last = max(i for i, call in enumerate(calls) if call == "pwrite")
                self.assertIn("sync-file", calls[last:first])
            shutil.rmtree(self.out / "b") if more else (self.out / "b").unlink()


class Kills(Base):
    """kill -9: the output is absent, old or complete, and the next compile leaves nothing else."""

    def test_kills(self):
        # Weights that take a while to write.
        width, layers = (4096, 5) if LONG else (1024, 4)
        model = self.save(models.products(width, layers), "m")
        wants, times = {}, {}
        for form in ("zip", "dir") * 3:  # the first is slower: nothing is in memory yet
            start = time.monotonic()
            self.assertEqual(self.tool("dmxc", model, "-o", form, "--bundle-format", form, timeout=600).returncode, 0)
            times[form] = min(times.get(form, 600), time.monotonic() - start)
        seeds, count, tries, killed = random.Random(7), 300 if LONG else 10, 0, 0
        while killed < count and tries < 3 * count:
            form = ("zip", "dir")[tries % 2]
            old, path = tries % 4 < 2, self.out / form
            tries += 1
            if path.exists() and not old:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            elif old and not path.exists():
                self.assertEqual(self.tool("dmxc", model, "-o", form, "--bundle-format", form, timeout=600).returncode, 0)
            process = subprocess.Popen([BIN / "dmxc", model, "-o", form, "--bundle-format", form, "-q"], cwd=self.out, env=self.env)
            # Most of them while it is written, which is the end.
            time.sleep(times[form] * (1 - seeds.random() ** 2 * (1 if tries % 8 < 2 else 0.5)))
            process.kill()
            process.wait(60)
            # What else runs changes how long a compile takes: the estimate follows.
            ended = process.returncode != -signal.SIGKILL
            times[form] *= 0.8 if ended else 1.05
            killed += not ended
            with self.subTest(tries=tries, form=form, old=old):
                if old or ended:
                    self.assertTrue(path.exists())
                if path.exists():
                    done = self.tool("dmx-inspect", path, "--verify", "--check", timeout=300)
                    self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
                if LONG and tries % 10 and killed < count:
                    continue
                done = self.tool("dmxc", model, "-o", form, "--bundle-format", form, timeout=600)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.nothing_left(*(name for name in ("zip", "dir") if (self.out / name).exists()))
        print(f"{killed} of {tries} compiles were killed")
        self.assertEqual(killed, count)

    def test_only_what_the_dead_left_is_removed(self):
        """The temporaries of living programs stay."""
        import fcntl
        model = self.save(models.dynamic(), "m")
        for name in (".dmxc-tmp-1-dead", ".dmxc-tmp-1-alive", "mine"):
            (self.out / name).write_text("x")
        (self.out / ".dmxc-tmp-1-dead-folder/code").mkdir(parents=True)
        (self.out / ".dmxc-tmp-1-dead-folder/code/a").write_text("x")
        (self.out / ".dmxc-tmp-1-alive-folder").mkdir()
        (self.out / ".dmxc-tmp-1-link").symlink_to(self.dir)
        with open(self.out / ".dmxc-tmp-1-alive") as alive:
            fcntl.flock(alive, fcntl.LOCK_EX)
            folder = os.open(self.out / ".dmxc-tmp-1-alive-folder", os.O_RDONLY)
            fcntl.flock(folder, fcntl.LOCK_EX)
            self.assertEqual(self.tool("dmxc", model, "-o", "b").returncode, 0)
            self.nothing_left("b", "mine", ".dmxc-tmp-1-alive", ".dmxc-tmp-1-alive-folder", ".dmxc-tmp-1-link")
            os.close(folder)
        self.assertTrue(model.exists())

    def test_without_nameless_files(self):
        """A file system without O_TMPFILE: the same with a name beside the output."""
        model = self.save(models.products(256, 2), "m")
        opens = self.counts("dmxc", model, "-o", "b")["open"]
        for k in range(max(1, opens - 12), opens + 1):
            done = self.fault(f"open:{k}:EOPNOTSUPP", "dmxc", model, "-o", "b")
            self.assertIn(done.returncode, (0, 3), done.stderr)
            self.nothing_left("b")


class Runtime(Base):
    """Every call of every kind in open, verify, create, bind, run and async."""

    def check(self, target, threads, names=("lenet", "bert_toy", "dynamic"), stride=7):
        bundles = []
        for name in names:
            model = self.save(getattr(models, name)(), name)
            done = self.tool("dmxc", model, "-t", target, "-o", name, *(["--dim", "s=3"] if (target, name) == ("corsair", "dynamic") else []))
            self.assertEqual(done.returncode, 0, done.stderr)
            bundles.append(name)
        done = subprocess.run([RUNNER, "--stride", str(stride), "--threads", str(threads), *bundles], cwd=self.out, text=True,
                              capture_output=True, timeout=3000, env={**self.env, "LD_PRELOAD": str(SHIM)})
        print(done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)

    def test_cpu(self):
        self.check("cpu:x86-64-v3", 1, stride=1 if LONG else 7)

    def test_cpu_threads(self):
        self.check("cpu:x86-64-v3", 2, stride=1 if LONG else 7)


class RuntimeCorsair(Runtime):
    """The same on the simulated card."""

    def test_cpu(self):
        self.skipTest("Runtime has it")

    test_cpu_threads = test_cpu

    @unittest.skipUnless(CORSAIR, "this build has no corsair target")
    def test_corsair(self):
        # Each run is simulated, 28 quads of lenet: 100 ms and 80,000 allocations.
        self.check("corsair", 2, ("lenet", "bert_toy", "dynamic") if LONG else ("lenet",), stride=37 if LONG else 3607)

    @unittest.skipUnless(CORSAIR, "this build has no corsair target")
    def test_corsair_small(self):
        self.check("corsair", 2, ("card", "dynamic"), stride=1 if LONG else 263)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:])
