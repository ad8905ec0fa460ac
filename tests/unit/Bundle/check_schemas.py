#!/usr/bin/python3
"""Checks bundles with Python's own means: zipfile, json, the JSON Schemas, a strict safetensors reader.

    check_schemas.py --schemas DIR BUNDLE...

The schema part needs python3-jsonschema; without it, the rest is checked and the test reports itself as skipped (77).
"""
import argparse
import hashlib
import json
import struct
import sys
import zipfile

try:
    import jsonschema
except ImportError:
    jsonschema = None

SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4,
         "F32": 4, "I64": 8, "U64": 8, "F64": 8}


def check_safetensors(data, name):
    """The checks of the official reader: contiguous, complete, sizes equal to dtype and shape."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__", {})
    assert all(isinstance(v, str) for v in metadata.values()), f"{name}: __metadata__ must be strings"
    assert (8 + length) % 4096 == 0, f"{name}: data starts at {8 + length}"
    at = 0
    for tensor, info in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = info["data_offsets"]
        assert begin == at, f"{name}: {tensor} begins at {begin}, expected {at}"
        count = 1
        for dim in info["shape"]:
            count *= dim
        assert end - begin == count * SIZES[info["dtype"]], f"{name}: size of {tensor}"
        assert begin % 64 == 0 or tensor.startswith("__pad"), f"{name}: {tensor} is not aligned"
        at = end
    assert 8 + length + at == len(data), f"{name}: bytes after the last tensor"


def check_bundle(path, schemas):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert names[:2] == ["manifest.json", "graph.json"], names
        manifest_text = archive.read("manifest.json")
        digest = hashlib.sha256(manifest_text).hexdigest()
        assert archive.comment.decode() == "dmx-manifest-sha256:" + digest
        manifest = json.loads(manifest_text)
        assert [e["name"] for e in manifest["entries"]] == names[1:]
        for entry in manifest["entries"]:
            data = archive.read(entry["name"])
            assert len(data) == entry["size"], entry
            assert hashlib.sha256(data).hexdigest() == entry["sha256"], entry
            if entry["name"].endswith(".safetensors"):
                check_safetensors(data, entry["name"])
        graph = json.loads(archive.read("graph.json"))
    for document, schema in ((manifest, "manifest"), (graph, "graph")):
        if not jsonschema:
            continue
        with open(f"{schemas}/{schema}.schema.json") as file:
            loaded = json.load(file)
        jsonschema.Draft202012Validator.check_schema(loaded)
        validator = jsonschema.Draft202012Validator(loaded)
        errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(document)]
        assert not errors, f"{path}: {schema}.json breaks its schema:\n" + "\n".join(errors)
        # The schema must notice a stranger and a missing field, or it proves nothing.
        assert not validator.is_valid({**document, "stranger": 1})
        assert not validator.is_valid({})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemas", required=True)
    parser.add_argument("bundles", nargs="+")
    options = parser.parse_args()
    for bundle in options.bundles:
        check_bundle(bundle, options.schemas)
    if not jsonschema:
        print("SKIPPED: the JSON Schemas (python3-jsonschema is not installed); ZIP, checksums and safetensors were checked")
        sys.exit(77)
    print("all checks passed")


if __name__ == "__main__":
    main()
