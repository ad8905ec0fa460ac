"""Fixtures: a NAME.npz for each file of the tiny rows. It holds the file (model, bytes: programs of torch are mostly JSON text, which zip
makes small), its sets (in K/NAME, reference K/N, peer K/N) and meta, a JSON text.

fixtures_test.py unpacks one into the folder that export_one.py would have made, so that one judge serves both."""

import json
import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent / "fixtures"
LARGEST = 60 << 10
KINDS = {"inputs": "in", "reference": "reference", "peer": "peer"}
PEER = {".onnx": "ort", ".pt2": "eager"}
KEPT = (
    "name",
    "family",
    "exporter",
    "environment",
    "torch",
    "file",
    "inputs",
    "outputs",
    "opsets",
    "outputs_of_set",
    "sets",
    "scores",
    "dims",
    "reference",
)


def pack(folder):
    """Writes the fixture of a folder of export_one; "" or why there is none."""
    meta = json.loads((folder / "meta.json").read_text())
    model = folder / meta["file"]
    arrays = {
        "meta": np.array(json.dumps({key: meta[key] for key in KEPT if key in meta})),
        "model": np.frombuffer(model.read_bytes(), np.uint8),
    }
    for kind, short in KINDS.items():
        for number in range(meta["sets"]):
            path = folder / f"{kind}_{number}.npz"
            if kind == "peer":
                path = folder / f"{PEER[model.suffix]}_{number}.npz"
            if path.exists():
                with np.load(path) as values:
                    arrays |= {f"{short} {number}/{name}": values[name] for name in values.files}
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / (meta["name"] + ".npz")
    np.savez_compressed(path, **arrays)
    if path.stat().st_size <= LARGEST and not list(folder.glob("model.onnx?*")):
        return ""
    size = path.stat().st_size
    path.unlink()
    return f"{size} bytes are too many"


def unpack(path, folder):
    """The folder of a fixture's .npz."""
    with np.load(path) as arrays:
        meta = json.loads(str(arrays["meta"]))
        sets = {}
        for key in arrays.files:
            if key not in ("meta", "model"):
                kind, _, rest = key.partition(" ")
                number, _, name = rest.partition("/")
                sets.setdefault((kind, number), {})[name] = arrays[key]
        (folder / meta["file"]).write_bytes(arrays["model"].tobytes())
    (folder / "meta.json").write_text(json.dumps(meta))
    names = {"in": "inputs", "reference": "reference", "peer": PEER[pathlib.Path(meta["file"]).suffix]}
    for (kind, number), values in sets.items():
        np.savez(folder / f"{names[kind]}_{number}.npz", **values)
    return meta
