#!/usr/bin/env python3
"""Further data sets for the zoo's models with open dims, so that each is run at three sizes at least.

zoo_sets.py MAKE_ZOO.py FOLDER MODEL...     writes set2 of models that have two; the references are the zoo's, in float64"""
import importlib.util
import pathlib
import sys

import torch


def text(zoo, vocabulary, batch, length):
    return {"input_ids": zoo.tokens(5, batch, length, vocabulary), "position_ids": torch.arange(length).repeat(batch, 1)}


# A third size: odd where the others are even, larger where they are small.
THIRD = {
    "llama_mini_dyn": lambda zoo: text(zoo, zoo.LLAMA_MINI["vocab"], 2, 49),
    "llama_4l_dyn": lambda zoo: text(zoo, zoo.LLAMA_4L["vocab"], 3, 7),
    "unet_mini_dyn": lambda zoo: {"input": zoo.images(5, 3, 3, 40, 24)},
    "tcn_audio_dyn": lambda zoo: {"audio": zoo.waveform(5, 3, 9001)},
    "detector_dyn": lambda zoo: {"image": zoo.images(5, 1, 3, 128, 224)},
}


@torch.no_grad()
def add_set(zoo, folder, name):
    case = zoo.ZOO[name][1]()
    case.sets.append(THIRD[name](zoo))
    zoo.write_sets(folder / name, case.sets, case.outputs, zoo.references(case))


def main():
    spec = importlib.util.spec_from_file_location("make_zoo", sys.argv[1])
    zoo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(zoo)
    folder = pathlib.Path(sys.argv[2])
    for name in sys.argv[3:]:
        if name in THIRD and (folder / name / "model.onnx").exists() and not (folder / name / "set2").exists():
            add_set(zoo, folder, name)


main()
