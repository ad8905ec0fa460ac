#!/usr/bin/env python3
"""The compiler launcher: clones share objects that were made with a precompiled header, and no more than that.
Usage: compile_cached_test.py LAUNCHER. Exit 77 where ccache or clang is not installed."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

LAUNCHER, CCACHE, CLANG = pathlib.Path(sys.argv[1]).resolve(), shutil.which("ccache"), shutil.which("clang++-22")
if not CCACHE or not CLANG:
    print("SKIPPED: ccache or clang++-22 is not installed (tools/setup)")
    sys.exit(77)

PCH = "CMakeFiles/pch.dir/cmake_pch.hxx"


class Launcher(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-launcher-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        (self.dir / "system").mkdir()
        (self.dir / "system/llvm.h").write_text("inline int version() { return 22; }\n")

    def clone(self, name, ours=1):
        folder = self.dir / name
        (folder / "build/CMakeFiles/pch.dir").mkdir(parents=True)
        (folder / "include").mkdir()
        (folder / "include/ours.h").write_text(f"inline int ours() {{ return {ours}; }}\n")
        (folder / "build" / PCH).write_text("#include <llvm.h>\n#include <ours.h>\n")
        (folder / "build" / (PCH + ".cxx")).write_text("\n")
        (folder / "a.cpp").write_text("int main() { return ours() + version(); }\n")
        return folder

    def compile(self, folder, *arguments):
        build = folder / "build"
        command = [LAUNCHER, CCACHE, folder, build, CLANG, f"-I{folder}/include", "-isystem", self.dir / "system", "-Xclang", "-fno-pch-timestamp",
                   *arguments]
        done = subprocess.run([str(part) for part in command], cwd=build, capture_output=True, text=True,
                              env={**os.environ, "CCACHE_DIR": str(self.dir / "cache")})
        self.assertEqual(done.returncode, 0, done.stderr)

    def hits(self):
        text = subprocess.run([CCACHE, "--print-stats"], capture_output=True, text=True, check=True,
                              env={**os.environ, "CCACHE_DIR": str(self.dir / "cache")}).stdout
        counts = dict(line.split("\t") for line in text.splitlines())
        return int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"])

    def make(self, folder, *flags, late=()):
        """Whether the object came from the cache. `late`: files of the precompiled header that are newer than the compile of the object."""
        build, before = folder / "build", self.hits()
        header = ["-Xclang", "-include", "-Xclang", build / PCH]
        self.compile(folder, *flags, "-Xclang", "-emit-pch", *header, "-x", "c++-header", "-MD", "-MT", PCH + ".pch", "-MF", PCH + ".pch.d",
                     "-o", PCH + ".pch", "-c", build / (PCH + ".cxx"))
        for name in late:
            os.utime(build / name, (time.time() + 60,) * 2)
        self.compile(folder, *flags, "-Xclang", "-include-pch", "-Xclang", build / (PCH + ".pch"), *header, "-MD", "-MT", "a.o", "-MF", "a.o.d",
                     "-o", "a.o", "-c", folder / "a.cpp")
        return self.hits() > before

    def test_clones_share_objects(self):
        first = self.clone("first")
        self.assertFalse(self.make(first))
        wanted = (first / "build/a.o").read_bytes()
        self.assertTrue(self.make(self.clone("second")))
        shutil.rmtree(first)
        third = self.clone("third")
        self.assertTrue(self.make(third))
        self.assertEqual((third / "build/a.o").read_bytes(), wanted)
        self.assertNotIn("first", (third / "build/a.o.d").read_text())

    def test_headers_that_are_newer_than_the_compile(self):
        """Of a file system or a machine that is behind, or written while the compile starts."""
        for name in ("first", "second"):
            folder = self.clone(name)
            (folder / "a.cpp").write_text('#include "late.h"\nint main() { return late() + ours() + version(); }\n')
            (folder / "include/late.h").write_text("inline int late() { return 0; }\n")
            os.utime(folder / "include/late.h", (time.time() + 60,) * 2)
            hit = self.make(folder)
        self.assertTrue(hit)

    def test_a_precompiled_header_that_is_newer_than_the_compile(self):
        for late in ((PCH + ".pch",), (PCH + ".pch.sum",), (PCH + ".pch", PCH + ".pch.sum", PCH)):
            with self.subTest(late):
                for name in ("first", "second"):
                    folder = self.clone(f"{name}{len(late)}{late[0][-3:]}", ours=len(late) + len(late[0]))
                    hit = self.make(folder, late=late)
                self.assertTrue(hit)

    def test_a_change_makes_them_anew(self):
        self.make(self.clone("first"))
        self.assertFalse(self.make(self.clone("header", ours=2)), "a header of ours")
        self.assertFalse(self.make(self.clone("flag"), "-O1"), "a flag")
        (self.dir / "system/llvm.h").write_text("inline int version() { return 23; }\n")
        self.assertFalse(self.make(self.clone("system")), "a header of the system")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
