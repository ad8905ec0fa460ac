"""Fixtures: files of the tiny rows, each with a NAME.npz of its sets: in K/NAME, reference K/N, peer K/N, and meta, a JSON text.

fixtures_test.py unpacks one into the folder that export_one.py would have made, so that one judge serves both."""
import json
import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent / "fixtures"
LARGEST = 60 << 10
KINDS = {"inputs": "in", "reference": "reference", "peer": "peer"}
KEPT = ("name", "family", "exporter", "environment", "torch", "file", "inputs", "outputs", "opsets", "outputs_of_set", "sets", "scores", "dims", "reference")


def pack(folder):
    """Writes the fixture of a folder of export_one; "" or why there is none."""
    meta = json.loads((folder / "meta.json").read_text())
    model = folder / meta["file"]
    if list(folder.glob("model.onnx?*")) or model.stat().st_size > LARGEST:
        return f"{model.stat().st_size} bytes are too many"
    arrays = {"meta": np.array(json.dumps({key: meta[key] for key in KEPT if key in meta}))}
    for kind, short in KINDS.items():
        for number in range(meta["sets"]):
            path = folder / f"{kind}_{number}.npz"
            if kind == "peer":
                path = next((each for each in (folder / f"ort_{number}.npz", folder / f"eager_{number}.npz") if each.exists()), path)
            if path.exists():
                with np.load(path) as values:
                    arrays |= {f"{short} {number}/{name}": values[name] for name in values.files}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / (meta["name"] + model.suffix)).write_bytes(model.read_bytes())
    np.savez_compressed(FOLDER / (meta["name"] + ".npz"), **arrays)
    return ""


def unpack(path, folder):
    """The folder of a fixture's .npz."""
    with np.load(path) as arrays:
        meta = json.loads(str(arrays["meta"]))
        sets = {}
        for key in arrays.files:
            if key != "meta":
                kind, _, rest = key.partition(" ")
                number, _, name = rest.partition("/")
                sets.setdefault((kind, number), {})[name] = arrays[key]
    (folder / "meta.json").write_text(json.dumps(meta))
    (folder / meta["file"]).write_bytes(path.with_suffix(pathlib.Path(meta["file"]).suffix).read_bytes())
    names = {"in": "inputs", "reference": "reference", "peer": "ort" if meta["file"].endswith(".onnx") else "eager"}
    for (kind, number), values in sets.items():
        np.savez(folder / f"{names[kind]}_{number}.npz", **values)
    return meta
