"""Packages with trained weights, end to end: the package's own pipeline, then the same with its inference session replaced by a bundle.
`tools/models --trained` runs this; results are kept in build/trained, the table goes to TRAINED.md and README.md here."""

import dataclasses
import datetime
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/python"))
import environments
import process
import trained_packages
import trained_table
import trained_torch

WORK = ROOT / "build/trained"
PACKAGES = [*trained_torch.TORCH_PACKAGES, *trained_packages.ONNX_PACKAGES, *trained_packages.ABSENT]
MEMORY = 16 << 30


@dataclasses.dataclass
class Mode:
    """How dmxc is called. fixed: a bundle for the sizes of each call; control: noise instead of a bundle, which must be found out;
    seconds: for as many inputs as it is enough for."""

    title: str
    arguments: tuple = ()
    fixed: bool = False
    control: bool = False
    seconds: int = 600


MODES = {
    "default": Mode("f32"),
    "bf16": Mode("bf16", ("--numerics", "bf16")),
    "bf16-weights": Mode("bf16-weights", ("--numerics", "bf16-weights")),
    "int8": Mode("int8", ("--numerics", "int8")),
    "int8-weights": Mode("int8-weights", ("--numerics", "int8-weights")),
    "int4-weights": Mode("int4-weights", ("--numerics", "int4-weights")),
    "corsair": Mode("corsair BFP16_64", ("-t", "corsair"), fixed=True, seconds=120),
    "control": Mode("control", control=True),
}


def package(name):
    return next(each for each in PACKAGES if each.name == name)()


class Trained:
    """programs: where dmxc is; the runtime's library lies in lib beside that folder. only: words of names, of tasks and of modes."""

    def __init__(self, programs, only=(), again=False, keep=False):
        self.programs, self.again, self.keep = pathlib.Path(programs).resolve(), again, keep
        self.library = self.programs.parent / "lib/libdmxrt.so"
        modes = [mode for mode in MODES if mode in only] or list(MODES)
        words = [word for word in only if word not in MODES]
        packages = [each for each in PACKAGES if not words or any(word in each.name or word in each.task for word in words)]
        wanted = [(each, mode) for each in packages for mode in modes if mode == "default" or each not in trained_packages.ABSENT]
        self.wanted = [(each, mode) for each, mode in wanted if again or not self.file(each, mode).exists()]

    @staticmethod
    def file(each, mode):
        return WORK / "results" / each.name / f"{mode}.json"

    def run(self):
        """Every missing result, environment by environment; each is removed after its packages."""
        WORK.mkdir(parents=True, exist_ok=True)
        done, start = 0, time.monotonic()
        for name in dict.fromkeys(each.environment for each, _ in self.wanted):
            group = [(each, mode) for each, mode in self.wanted if each.environment == name]
            environment = environments.Environment(WORK, name, self.requires(name))
            if not environment.ready():
                print(f"making the environment {name}: {', '.join(environment.groups)}", flush=True)
                environment.make(sys.executable)
            for each, mode in group:
                result = self.judge(environment, each, mode)
                done += 1
                left = (time.monotonic() - start) / done * (len(self.wanted) - done)
                said = f"{result['same']} of {result['asked']} the same" if result["state"] == "ran" else f"{result['state']}: {result['why']}"
                print(f"trained {done} of {len(self.wanted)}, about {left / 60:.0f} min left: {each.name}, {mode}: {said}", flush=True)
            if not self.keep:
                environment.remove()

    @staticmethod
    def requires(environment):
        """What all packages of an environment ask for."""
        return list(dict.fromkeys(words for each in PACKAGES if each.environment == environment for words in each.requires))

    def judge(self, environment, each, mode):
        """A package in a mode, in a process of its own; its result, kept for the table."""
        notes = json.loads(environment.notes_file.read_text())
        command = [environment.python, ROOT / "tests/models/trained_one.py", each.name, WORK, self.programs, self.library, mode]
        paths = os.pathsep.join([str(ROOT / "tests/models"), str(ROOT / "tools/python")])
        quiet = {"PYTHONPATH": paths, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        done = process.run([*command, MODES[mode].seconds], 1800, MEMORY, quiet)
        lines = [line for line in done.text.splitlines() if line.startswith("ANSWER ")]
        result = json.loads(lines[-1][7:]) if lines else {"state": "limit" if done.stopped else "crash", "why": done.reason()}
        if result["state"] == "not installed" and notes:
            result["why"] += ": " + next(iter(notes.values()))
        result |= {"day": datetime.date.today().isoformat(), "seconds": round(done.seconds, 1)}
        path = self.file(each, mode)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1))
        return result

    @staticmethod
    def table():
        for page, text in trained_table.pages(PACKAGES, MODES, WORK / "results").items():
            page.write_text(text)
            print(f"wrote {page.relative_to(ROOT)}")
