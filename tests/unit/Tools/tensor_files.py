#!/usr/bin/python3
"""Writes tensor files with NumPy (and ONNX, when installed) for TensorFileTest.cpp, or checks what it wrote.

    tensor_files.py write DIR E..  files with these endings (npy, pb) plus expect.txt: "<file> <dtype> <shape> <values as f64 hex>"
    tensor_files.py check DIR E..  reads every .npy (and .pb) and compares with expect.txt
Exits 77 when NumPy is missing.
"""
import os
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(77)
try:
    import onnx
    from onnx import numpy_helper
except ImportError:
    onnx = None
if "pb" not in sys.argv[3:]:
    onnx = None

DTYPES = {"bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
          "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64}
SHAPES = [(), (0,), (7,), (2, 3), (4, 1, 5), (2, 3, 4, 5)]


def sample(name, shape):
    rng = np.random.default_rng(len(shape) + 10 * len(name))
    if name == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if name[0] in "iu":
        return rng.integers(0 if name[0] == "u" else -100, 100, shape).astype(DTYPES[name])
    return np.asarray(rng.standard_normal(shape)).astype(DTYPES[name])


def line(file, name, array):
    values = " ".join(float(v).hex() for v in np.asarray(array).reshape(-1))
    return f"{file} {name} {'x'.join(map(str, array.shape)) or 'scalar'} {values}".rstrip()


def write(folder):
    lines = []

    def put(file, name, array, save):
        save(os.path.join(folder, file))
        lines.append(line(file, name, array))

    for name in DTYPES:
        for i, shape in enumerate(SHAPES):
            array = sample(name, shape)
            put(f"{name}_{i}_c.npy", name, array, lambda p: np.save(p, array))
            if shape:  # asfortranarray makes a vector of a scalar
                put(f"{name}_{i}_f.npy", name, array, lambda p: np.save(p, np.asfortranarray(array)))
            if array.dtype.itemsize > 1:
                put(f"{name}_{i}_be.npy", name, array, lambda p: np.save(p, array.astype(array.dtype.newbyteorder(">"))))
            for version in ((2, 0), (3, 0)):
                def save(path):
                    with open(path, "wb") as out:
                        np.lib.format.write_array(out, array, version=version)
                put(f"{name}_{i}_v{version[0]}.npy", name, array, save)
            if onnx:
                def save_raw(path):
                    with open(path, "wb") as out:
                        out.write(numpy_helper.from_array(array, "t").SerializeToString())
                put(f"{name}_{i}_raw.pb", name, array, save_raw)

                def save_typed(path):
                    flat = array.reshape(-1)
                    if name == "f16":
                        flat = flat.view(np.uint16)
                    tensor = onnx.helper.make_tensor("t", onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[array.dtype], array.shape, flat.tolist()) \
                        if name != "f16" else onnx.TensorProto(dims=array.shape, data_type=10, int32_data=flat.tolist(), name="t")
                    with open(path, "wb") as out:
                        out.write(tensor.SerializeToString())
                put(f"{name}_{i}_typed.pb", name, array, save_typed)
    with open(os.path.join(folder, "expect.txt"), "w") as out:
        out.write("\n".join(lines) + "\n")


def check(folder):
    with open(os.path.join(folder, "expect.txt")) as file:
        for text in file:
            file_name, name = text.split()[:2]
            path = os.path.join(folder, file_name)
            if file_name.endswith(".pb"):
                if not onnx:
                    continue
                tensor = onnx.TensorProto()
                with open(path, "rb") as data:
                    tensor.ParseFromString(data.read())
                assert tensor.name == "t"
                array = numpy_helper.to_array(tensor)
            else:
                array = np.load(path)
            assert array.dtype == DTYPES[name], (file_name, array.dtype)
            assert line(file_name, name, array) == text.rstrip(), file_name


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](sys.argv[2])
