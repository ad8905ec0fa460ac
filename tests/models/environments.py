"""The virtual environments that models are exported in, one a torch release, and that of the peers. Pinned where a newer release no
longer goes with that torch; a package that cannot be had leaves a note, and what needs it becomes a row of the table with that reason."""

import json
import os
import shutil
import subprocess

import process

# Those that export from torch need these, in the releases that were published with it.
ENVIRONMENTS = {
    "2.15": [
        "torch==2.15.0 torchvision==0.29.2 numpy==2.4.6",
        "transformers==5.24.0 timm==1.0.31 diffusers==0.42.1 accelerate==1.15.0 safetensors==0.8.0",
        "onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0 sympy==1.14.0",
        "onnxruntime-genai==0.18.0 --no-deps",
        "scikit-learn==1.9.1 skl2onnx==1.20.0 onnxmltools==1.16.0 lightgbm==4.7.0 xgboost==3.2.0",
    ],
    "2.9": [
        "torch==2.9.1 torchvision==0.24.1 numpy==2.4.6",
        "transformers==4.57.6 timm==1.0.31 optimum==2.1.0 optimum-onnx==0.1.0 sentencepiece==0.2.3",
        "onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0",
    ],
    "2.6": ["torch==2.6.0 torchvision==0.21.0", "transformers==4.49.0 timm==1.0.15", "onnx==1.17.0 onnxscript==0.2.2 onnxruntime==1.32.0"],
    "peers": [
        "numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0",
        "openvino==2026.4.1",
        "iree-base-compiler==3.13.0 iree-base-runtime==3.13.0",
    ],
}
NEWEST = "2.15"


class Environment:
    def __init__(self, base, name, groups=None):
        self.name, self.folder, self.groups = name, base / f"venv-{name}", groups or ENVIRONMENTS[name]
        self.python = self.folder / "bin/python"
        self.notes_file = base / f"venv-{name}.json"

    def ready(self):
        return self.python.exists() and self.notes_file.exists()

    def make(self, interpreter):
        """Makes it, group by group: a group that cannot be installed is noted and left out."""
        if self.ready():
            return
        if not self.python.exists():
            subprocess.run([interpreter, "-m", "venv", self.folder], check=True)
        notes = {}
        for group in self.groups:
            pip = [self.python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--quiet", *group.split()]
            done = process.run(pip, seconds=1800)
            if done.code:
                notes[group] = done.reason()
        self.notes_file.write_text(json.dumps(notes))

    def remove(self):
        """A folder that is a link to one of another checkout stays there."""
        if self.folder.is_symlink():
            self.folder.unlink()
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.notes_file.unlink(missing_ok=True)


def disk(folder):
    """Bytes below a folder, links left out; other runs may remove what this one looks at."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                pass
    return total
