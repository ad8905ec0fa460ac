"""Packages with trained weights, end to end: the package's own pipeline, then the same with its inference session replaced by a bundle."""

import dataclasses
import datetime
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/python"))
import environments
import process
import trained_packages

PACKAGES = trained_packages.ONNX_PACKAGES


@dataclasses.dataclass
class Mode:
    """How dmxc is called. fixed: a bundle for the sizes of each call; control: noise instead of a bundle, which must be found out."""

    title: str
    arguments: tuple = ()
    fixed: bool = False
    control: bool = False


MODES = {
    "default": Mode("f32"),
    "bf16": Mode("bf16", ("--numerics", "bf16")),
    "int8-weights": Mode("int8-weights", ("--numerics", "int8-weights")),
    "corsair": Mode("corsair BFP16_64", ("-t", "corsair"), fixed=True),
    "control": Mode("control", control=True),
}


def package(name):
    return next(each for each in PACKAGES if each.name == name)()
