#!/usr/bin/env python3
"""Texts of phases resume to the bundle that the model gives, but for what the manifest says of the model's file; also where their values
have other names, or none. Usage: phase_texts.py BIN REPO ZOO [unittest arguments]. The zoo's models (tests/conformance/zoo.sh) are a sample,
under DMXC_LONG=1 all of those below 64 MB."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

BIN, REPO, ZOO = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
sys.path.insert(0, str(REPO / "tests"))
import sampling  # noqa: E402

DIGITS = REPO / "tools/digits/digits.onnx"
PHASES = ("frontend", "partition", "memory", "schedule")
KNOWN = subprocess.run([BIN / "dmxc", "--print-targets"], capture_output=True, text=True).stdout
TARGETS = {name: ["-t", target] for name, target in (("cpu", "cpu:x86-64-v3"), ("corsair", "corsair:quads=1"), ("aie", "aie"))
           if re.search(rf"^\W*{name}\b", KNOWN, re.MULTILINE)}
STAGES = {"cpu": (), "aie": ("schedule.grid",),
          "corsair": tuple(f"schedule.{name}" for name in ("formats", "tiles", "buffers", "array", "spmd", "bands"))}


def content(bundle):
    """Entries of a bundle, without what differs between a model's file and its text."""
    with zipfile.ZipFile(bundle) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(entries.pop("manifest.json"))
    del manifest["model"]["source"], manifest["model"]["sha256"]
    return {"manifest": json.dumps(manifest), **entries}


def data_of(model):
    """For texts that lie elsewhere than their model."""
    return "--allow-external-data", pathlib.Path(model).parent


class PhaseTexts(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-texts-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def dmxc(self, *arguments):
        done = subprocess.run([BIN / "dmxc", "-q", *map(str, arguments)], cwd=self.dir, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")

    def compiled(self, source, *arguments):
        self.dmxc(source, *arguments, "-o", "b.bundle")
        return content(self.dir / "b.bundle")

    def printed(self, source, result):
        subprocess.run([BIN / "dmx-opt", source, "-o", result], cwd=self.dir, check=True)
        return (self.dir / result).read_text()

    def expect_same(self, wanted, got, what):
        self.assertEqual(wanted.keys(), got.keys(), what)
        self.assertEqual([name for name in wanted if wanted[name] != got[name]], [], what)

    def resume_all(self, model, target, phases, *arguments):
        self.dmxc(model, *target, *arguments, "--dump-phases", "phases", "-o", "b.bundle")
        wanted = content(self.dir / "b.bundle")
        texts = {re.sub(r"^\d+[a-z]-", "schedule.", re.sub(r"^\d+-", "", path.stem)): path for path in (self.dir / "phases").glob("*.mlir")}
        for phase in phases:
            shutil.copy(texts[phase], self.dir / "text.mlir")
            self.expect_same(wanted, self.compiled("text.mlir", "--from", phase, *data_of(model), *target), f"{model} {target} from {phase}")

    def test_digits(self):
        for name, target in TARGETS.items():
            self.resume_all(DIGITS, target, PHASES + STAGES[name], "--dim", "batch=8")

    def test_zoo(self):
        models = [path for path in sorted(ZOO.glob("*/model.onnx")) if path.stat().st_size < 64 << 20]
        if not models:
            self.skipTest(f"{ZOO} is not made (tests/conformance/zoo.sh)")
        cases = [(model, target, phase) for model in models for name, target in TARGETS.items()
                 for phase in PHASES + STAGES[name]]
        for model, target, phase in sampling.sample(cases, len(cases) // 2):
            with self.subTest(model=model.parent.name, target=target[1], phase=phase):
                self.resume_all(model, target, [phase])

    def test_other_names(self):
        """Names that are numbers, and those of two values exchanged, mean the same; so do buffers, memories and nodes that are called oddly."""
        for target in TARGETS.values():
            self.dmxc(DIGITS, *target, "--dim", "batch=8", "--emit", "schedule", "-o", "text.mlir")
            text = (self.dir / "text.mlir").read_text()
            wanted = self.compiled("text.mlir", "--from", "schedule", *data_of(DIGITS), *target)
            names = sorted(set(re.findall(r"%\w+", text)))
            self.assertGreater(len(names), 5)
            renamed = {"numbers": {name: f"%{i}" for i, name in enumerate(names)},
                       "turned round": dict(zip(names, reversed(names))),
                       "of any letters": {name: f"%$._-{i}" for i, name in enumerate(names)}}
            for what, to in renamed.items():
                (self.dir / "text.mlir").write_text(re.sub(r"%\w+", lambda name: to[name[0]], text))
                self.expect_same(wanted, self.compiled("text.mlir", "--from", "schedule", *data_of(DIGITS), *target), what)
            for odd in (r"a \22quoted\22 name", "two  spaces ", "%0", "", "\\\\", r"\C3\A4"):
                (self.dir / "odd.mlir").write_text(text.replace('"image"', f'"{odd}"').replace('"/conv1/Conv"', f'"{odd}2"'))
                once, twice = self.printed("odd.mlir", "once.mlir"), self.printed("once.mlir", "twice.mlir")
                self.assertEqual(re.findall(r"%\d+ = dlir", once), [], odd)
                self.assertIn(f'"{odd}"', once)
                self.assertEqual(once, twice, odd)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
