#!/usr/bin/env python3
"""Levels of processors with units for bf16: their names, what says that this machine lacks them, and bundles that say less of
their code than is true. Usage: levels_test.py BIN REPO [unittest arguments]."""
import hashlib
import json
import pathlib
import sys
import unittest

from dmxc_case import Base

FLAGS = set(pathlib.Path("/proc/cpuinfo").read_text().split())
NEEDS = {"sapphirerapids": {"avx512_bf16", "amx_tile", "amx_bf16"}, "znver4": {"avx512_bf16", "sse4a"}}
HERE = {level for level, flags in NEEDS.items() if flags <= FLAGS}


class Levels(Base):
    def test_names(self):
        for name, meant in (("amx", "sapphirerapids"), ("spr", "sapphirerapids"), ("sapphirerapid", "sapphirerapids"),
                            ("znver5", "znver4"), ("v4", "x86-64-v4"), ("native", "host")):
            message = self.run_tool(self.small, "-t", "cpu:" + name, "-o", "o", code=2).stderr
            self.assertIn(f"has no level '{name}'; it has host, sapphirerapids, znver4, x86-64-v4-vnni, x86-64-v4", message)
            self.assertIn(f"did you mean 'cpu:{meant}'?", message)
        self.assertNotIn("did you mean", self.run_tool(self.small, "-t", "cpu:quantum-leap", "-o", "o", code=2).stderr)

    def test_what_this_machine_lacks(self):
        lines = self.run_tool("--print-target-info", "cpu").stdout.splitlines()
        for level in NEEDS:
            line, = [line for line in lines if line.startswith(f"  {level}: ")]
            self.assertIn("amx-bf16" if level == "sapphirerapids" else "sse4a", line)
            self.assertIn("(this machine has them)" if level in HERE else "(this machine lacks ", line)

    def edit(self, **code):
        """Changes what the manifest of the bundle o says of its code, with the checksums of what is there now."""
        folder = self.dir / "o"
        manifest = json.loads((folder / "manifest.json").read_text())
        entry = code.get("entry")
        for target in manifest["targets"]:
            if entry:
                old = folder / target["entry"]
                (folder / entry).parent.mkdir(parents=True, exist_ok=True)
                old.rename(folder / entry)
                for listed in manifest["entries"]:
                    if listed["name"] == target["entry"]:
                        listed["name"] = entry
            target.update(code)
        manifest["entries"].sort(key=lambda listed: listed["name"])
        text = json.dumps(manifest).encode()
        (folder / "manifest.json").write_bytes(text)
        (folder / "manifest.sha256").write_text(hashlib.sha256(text).hexdigest() + "\n")

    def test_a_level_alone(self):
        for level in NEEDS.keys() - HERE:
            with self.subTest(level=level):
                self.run_tool(self.small, "-o", "o", "--bundle-format", "dir", "-t", "cpu:" + level)
                run = lambda: self.run_tool("o", "--random-inputs", "1", tool="dmx-run", code=1).stderr
                message = run()
                self.assertIn(f"its {level} code needs CPU feature '", message)
                self.assertIn("-t cpu:x86-64-v2", message)
                # Whatever is said of it, code that is of a level does not run where that is not.
                few = ["sse2"]
                self.edit(features=few)
                self.assertIn(f"its {level} code needs CPU feature '", run())
                self.edit(features=few, arch="x86-64-v2")
                self.assertIn("its x86-64-v2 code needs CPU feature '", run())
                self.edit(features=few, arch="x86-64-v2", entry="code/cpu/x86-64-v2/kernels.so")
                self.assertIn(f"the code is of level {level}, whatever the manifest says, and needs CPU feature '", run())

    def test_the_next_level_runs(self):
        self.run_tool(self.small, "-o", "o", "-t", "cpu:sapphirerapids+znver4+x86-64-v2")
        best = next((level for level in NEEDS if level in HERE), "x86-64-v2")
        self.assertIn(f"ran on cpu {best}", self.run_tool("o", "--random-inputs", "1", tool="dmx-run").stdout)
        if best == "x86-64-v2":
            message = self.run_tool("o", "--random-inputs", "1", "--isa", "sapphirerapids", tool="dmx-run", code=1).stderr
            self.assertIn("its sapphirerapids code needs CPU feature '", message)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
