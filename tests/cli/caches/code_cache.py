#!/usr/bin/env python3
"""--cache: the same bundles with and without it, beside other compiles and behind damage; what is wrong with it is a warning. Usage:
code_cache.py BIN [unittest arguments]."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from sampling import sampled  # noqa: E402

BIN = pathlib.Path(sys.argv[1]).resolve()
SOFTMAX = "dmir.softmax %{0} {{axis = 1 : i64, log = true}} : (tensor<4x{2}xf32>) -> tensor<4x{2}xf32>"


def text(width):
    """Three layers of equal kernels and names of their own."""
    ops, value = "", "x"
    for layer in range(3):
        ops += f"  %m{layer} = dmir.matmul %{value}, %w{layer} : (tensor<4x{width}xf32>, tensor<{width}x{width}xf32>) -> tensor<4x{width}xf32>\n"
        ops += f"  %s{layer} = " + SOFTMAX.format(f"m{layer}", "", width) + "\n"
        value = f"s{layer}"
    inputs = ", ".join(f'%w{layer}: tensor<{width}x{width}xf32> {{dmir.name = "w{layer}"}}' for layer in range(3))
    return (f'func.func @main(%x: tensor<4x{width}xf32> {{dmir.name = "x"}}, {inputs}) -> (tensor<4x{width}xf32> {{dmir.name = "y"}}) {{\n{ops}'
            f"  return %{value} : tensor<4x{width}xf32>\n}}\n")


@sampled(2)
class Cache(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        self.cache = self.dir / "cache"
        self.write(48)
        self.plain = self.compiled()
        self.assertEqual(self.plain.stderr, "")

    def write(self, width):
        (self.dir / "m.mlir").write_text(text(width))

    def command(self, output, *flags):
        return [BIN / "dmxc", self.dir / "m.mlir", "-o", self.dir / output, "-t", "cpu:x86-64-v3", "--progress", "none", "-q", *flags]

    def compiled(self, *flags, output="m.bundle", environment=None):
        result = subprocess.run(self.command(output, *flags), capture_output=True, text=True, env={**os.environ, **(environment or {})})
        self.assertEqual(result.returncode, 0, result.stderr)
        result.bundle = (self.dir / output).read_bytes()
        return result

    def counts(self, **environment):
        """(found, compiled, damaged) of a compile whose bundle is as without a cache."""
        flags = [] if environment else ["--cache", self.cache]
        result = self.compiled("--time-report=json", *flags, environment=environment)
        self.assertEqual(result.bundle, self.plain.bundle)
        cache = json.loads(result.stderr)["cache"]
        return cache["found"], cache["compiled"], cache["damaged"]

    def files(self):
        return sorted(path for path in self.cache.rglob("*") if path.is_file() and path.name != "dmxc-cache")

    def code(self):
        """The files of the two kinds of kernels; one more has what the kernels are beside each other."""
        code = [path for path in self.files() if b"\x7fELF" in path.read_bytes()]
        self.assertEqual((len(code), len(self.files())), (2, 3))
        return code

    def warned(self, *flags, sentence):
        result = self.compiled(*flags)
        self.assertEqual(result.bundle, self.plain.bundle)
        self.assertEqual(result.stderr.count("warning: "), 1, result.stderr)
        self.assertIn(sentence, result.stderr)

    def test_same_bytes(self):
        """Six kernels of two kinds are compiled once a kind, and not at all in the next compile."""
        self.assertEqual(self.counts(), (0, 2, 0))
        self.assertEqual(self.counts(), (2, 0, 0))
        self.assertEqual(self.counts(DMXC_CACHE=str(self.cache)), (2, 0, 0))
        report = self.compiled("--time-report", "--cache", self.cache).stderr
        self.assertRegex(report, r" 2  kernels' code from the cache, 0 compiled, 0 damaged")
        self.code()
        self.write(32)  # other kernels, one of which is in the same folder
        self.plain = self.compiled()
        self.assertEqual(self.counts(), (0, 2, 0))

    def test_beside_others(self):
        running = [subprocess.Popen(self.command(f"{i}.bundle", "--cache", self.cache), stderr=subprocess.PIPE) for i in range(4)]
        for i, process in enumerate(running):
            self.assertEqual((process.communicate()[1], process.returncode), (b"", 0))
            self.assertEqual((self.dir / f"{i}.bundle").read_bytes(), self.plain.bundle)
        self.code()
        self.assertEqual(self.counts(), (2, 0, 0))

    def test_damage(self):
        self.assertEqual(self.counts(), (0, 2, 0))
        first, second = self.code()
        whole = [path.read_bytes() for path in (first, second)]
        for damaged in ([whole[1], whole[0]],                                    # swapped
                        [whole[0][:-1], whole[1][:20]],                          # cut
                        [whole[0][:200] + b"\x55" + whole[0][201:], b""],        # changed
                        [b"dmxcode0" + whole[0][8:], whole[1] + b"more"]):       # of another form, longer
            first.write_bytes(damaged[0])
            second.write_bytes(damaged[1])
            self.assertEqual(self.counts(), (0, 2, 2))
            self.assertEqual([path.read_bytes() for path in (first, second)], whole)
        first.unlink()
        self.assertEqual(self.counts(), (1, 1, 0))
        shapes, = set(self.files()) - set(self.code())
        kept = shapes.read_bytes()
        for damaged in (kept[:-1], whole[0], b""):
            shapes.write_bytes(damaged)
            self.assertEqual(self.counts(), (2, 0, 1))
            self.assertEqual(shapes.read_bytes(), kept)

    def test_bound(self):
        self.counts()
        kept = self.files()
        self.assertGreater(sum(path.stat().st_size for path in kept), 0)
        big = self.cache / "00" / ("1" * 62)  # used long ago
        big.parent.mkdir(exist_ok=True)
        big.write_bytes(bytes(3 << 20))
        os.utime(big, (1, 1))
        self.compiled("--cache", self.cache, "--cache-limit", "1")
        self.assertEqual(self.files(), kept)

    def test_what_is_no_cache(self):
        file = self.dir / "file"
        file.write_text("kept")
        self.warned("--cache", file, sentence="is a file, not a folder")
        self.assertEqual(file.read_text(), "kept")
        self.warned("--cache", "/proc/nowhere", sentence="cannot be made")
        self.warned("--cache", self.dir, sentence="has other files in it")
        self.warned("--cache", self.cache, "--cache-limit", "0", sentence="--cache-limit 0 leaves no room")
        self.assertFalse(self.cache.exists())
        self.cache.mkdir()
        (self.cache / "dmxc-cache").write_text("code of dmxc, form 0\n")
        self.warned("--cache", self.cache, sentence="another version of dmxc")
        if os.geteuid() != 0:
            (self.cache / "dmxc-cache").unlink()
            self.cache.chmod(0o500)
            self.warned("--cache", self.cache, sentence="cannot be written")

    def test_what_cannot_be_kept(self):
        self.counts()
        for folder in [path for path in self.cache.iterdir() if path.is_dir()]:
            shutil.rmtree(folder)
        for number in range(256):  # where folders should be
            (self.cache / f"{number:02x}").write_text("")
        self.warned("--cache", self.cache, sentence="is not all kept in")

    def test_full_disk(self):
        """A file system of 64 KiB, where this user may mount one."""
        script = ('mount -t tmpfs -o size=64k none "$1" && shift && "$@"; code=$?; exit $code')
        self.cache.mkdir()
        run = ["unshare", "-rm", "sh", "-c", script, "sh", self.cache]
        if subprocess.run([*run, "true"], capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted here")
        filled = ["sh", "-c", 'printf "code of dmxc, form 1\\n" > "$0/dmxc-cache"; head -c 60000 /dev/zero > "$0/full"; exec "$@"', self.cache]
        result = subprocess.run([*run, *filled, *self.command("full.bundle", "--cache", self.cache)], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.dir / "full.bundle").read_bytes(), self.plain.bundle)
        self.assertEqual(result.stderr.count("warning: "), 1, result.stderr)
        self.assertIn("is not all kept in", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
