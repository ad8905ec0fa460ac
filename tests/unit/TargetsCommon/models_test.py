#!/usr/bin/python3
"""Whole models on the target of OneLane.cpp: models_test.py BIN TEST REPO ZOO

BIN has dmxc, TEST is TargetsCommonTest, ZOO the folder of made models. Their frontend texts go to ModelTest.cpp."""
import os
import pathlib
import subprocess
import sys
import tempfile

BIN, TEST, REPO, ZOO = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
MODELS = [("digits", REPO / "tools/digits/digits.onnx", ["--dim", "batch=8"]), ("gpt2_mini_step", ZOO / "gpt2_mini_step/model.onnx", ["--dim", "past=7"]),
          ("bert_mini", ZOO / "bert_mini/model.onnx", []), ("resnet18", ZOO / "resnet18/model.onnx", [])]


def main():
    with tempfile.TemporaryDirectory(prefix="dmxc-models-") as folder:
        texts = []
        for name, model, arguments in MODELS:
            if not model.exists():
                print(f"SKIPPED {name}: {model} is not made (tests/conformance/zoo.sh)")
            else:
                text = pathlib.Path(folder) / f"{name}.mlir"
                subprocess.run([BIN / "dmxc", model, *arguments, "--emit", "frontend", "-o", text], check=True)
                texts.append(str(text))
        sys.stdout.flush()
        return subprocess.run([TEST, "--gtest_filter=Models.*"], env={**os.environ, "DMXC_MODEL_TEXTS": ":".join(texts)}).returncode


sys.exit(main())
