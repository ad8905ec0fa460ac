#!/usr/bin/env python3
"""Decoders that are given their cache and give it back one row longer: steps from an empty cache on, by one bundle whose
past length is open. The oracle is the same network in PyTorch in float64, which reads the whole text at once and needs no
cache.

grow_cache.py BIN LIBDMXRT MAKE_ZOO.py STEPS MODEL...     a MODEL is a folder of the zoo, named like its entry there"""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import dmxrt

try:
    import numpy
    import torch
except ImportError:
    print("SKIPPED: numpy or torch is not there (tools/setup --bench)")
    sys.exit(77)

TOOLS, LIBRARY, SCRIPT, STEPS = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
RTOL, ATOL = 1e-3, 1e-4


def load_zoo():
    spec = importlib.util.spec_from_file_location("make_zoo", SCRIPT)
    zoo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(zoo)
    return zoo


@torch.no_grad()
def whole_text(zoo, name):
    """Token numbers, and the logits and the cache after all of them, read at once."""
    module = zoo.ZOO[name][1]().module.double()
    vocabulary = next(m for m in module.modules() if isinstance(m, torch.nn.Embedding)).num_embeddings
    ids = zoo.tokens(7, 1, STEPS, vocabulary)
    logits, *cache = module(ids, torch.arange(STEPS)[None])
    return ids.numpy(), logits.numpy()[0], [part.numpy() for part in cache]


def near(got, wanted):
    return got.shape == wanted.shape and numpy.allclose(got, wanted, rtol=RTOL, atol=ATOL)


def check(zoo, model, bundle):
    """What is wrong, or nothing."""
    subprocess.run([TOOLS / "dmxc", model / "model.onnx", "-q", "-o", bundle], check=True)
    ids, logits, cache = whole_text(zoo, model.name)
    with dmxrt.Session(bundle, library=LIBRARY) as session:
        names = [tensor.name for tensor in session.inputs if tensor.name.startswith("past")]
        past = {name: numpy.zeros((*whole.shape[:2], 0, whole.shape[3]), "f4") for name, whole in zip(names, cache)}
        for step in range(STEPS):
            token = {"input_ids": ids[:, step:step + 1], "position_ids": numpy.array([[step]])}
            got = session.run(**token, **past)
            if not near(got["logits"][0, 0], logits[step]):
                return f"step {step}: the logits differ by {numpy.abs(got['logits'][0, 0] - logits[step]).max()}"
            before, past = past, {name: got[name.replace("past", "present")] for name in names}
            for name, whole in zip(names, cache):
                if not near(past[name], whole[:, :, :step + 1]):
                    return f"step {step}: {name} is wrong"
        # Negative control: a cache without its first row must show.
        blind = session.run(**token, **{name: numpy.where(numpy.arange(STEPS - 1)[:, None] == 0, 0, part).astype("f4")
                                        for name, part in before.items()})
        if near(blind["logits"][0, 0], logits[-1]):
            return "a cache without its first row gives the same logits"
    return ""


def main():
    if not SCRIPT.exists():
        print(f"SKIPPED: {SCRIPT} is not there")
        return 77
    zoo, failed, done = load_zoo(), 0, 0
    for model in map(pathlib.Path, sys.argv[5:]):
        if not (model / "model.onnx").exists():
            print(f"SKIPPED {model.name}: {model} is not there")
            continue
        with tempfile.TemporaryDirectory(prefix="dmxc-cache-") as folder:
            wrong = check(zoo, model, pathlib.Path(folder) / "model.bundle")
        print(f"{'FAIL' if wrong else 'ok  '} {model.name:18} {wrong or f'{STEPS} steps by one bundle'}", flush=True)
        done, failed = done + 1, failed + bool(wrong)
    return 77 if not done else int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
