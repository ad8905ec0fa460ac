#!/usr/bin/env python3
"""How products by tensor cores store, read from their PTX: where tensors begin at multiples of 16 bytes, 16 bytes a thread and no fewer, and bf16 is rounded two
at a time. Usage: epilogue.py BIN. Exit 77 where numpy is not there."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import products  # noqa: E402  exits where numpy is not there
from attempts import Attempts  # noqa: E402
from products import np, onnx  # noqa: E402

ROWS, COLUMNS, TERMS = 256, 384, 128
SHORT = {"f32": None, "bf16": onnx.BFLOAT16, "f16": onnx.FLOAT16}


def model(result, channels=0):
    """relu(x w + bias) + r as a type; with `channels` a convolution of 3 x 3 and no residual."""
    random = np.random.default_rng(1)
    values = lambda *shape: random.standard_normal(shape).astype(np.float32)
    tensor = lambda name, x: onnx.tensor(name, onnx.FLOAT, list(x.shape), raw=x.tobytes())
    given = [onnx.info("x", onnx.FLOAT, [2, channels, 16, 32] if channels else [ROWS, TERMS])]
    if channels:
        nodes, weights = [onnx.node("Conv", "x w", "p", pads=[1, 1, 1, 1])], [tensor("w", values(64, channels, 3, 3))]
    else:
        nodes = [onnx.node("MatMul", "x w", "m"), onnx.node("Add", "m bias", "a"), onnx.node("Relu", "a", "u"), onnx.node("Add", "u r", "p")]
        weights = [tensor("w", values(TERMS, COLUMNS)), tensor("bias", values(COLUMNS))]
        given.append(onnx.info("r", onnx.FLOAT, [ROWS, COLUMNS]))
    kind = SHORT[result]
    nodes.append(onnx.node("Cast", "p", "y", to=kind) if kind else onnx.node("Identity", "p", "y"))
    return onnx.model(nodes, given, [onnx.info("y", kind or onnx.FLOAT, None)], weights=weights)


def check(place, result, tile, conv):
    (place / "m.onnx").write_bytes(model(result, 32 if conv else 0))
    schedule = products.SCHEDULE.replace("ROWS", str(tile[0])).replace("COLUMNS", str(tile[1])).replace("STAGES", "3")
    (place / "s.mlir").write_text(schedule.replace("matmul-specialised", "conv-specialised") if conv else schedule)
    products.run("dmxc", place / "m.onnx", "-q", "-t", "cuda:sm_90a", "--numerics", "bf16", "--schedule", place / "s.mlir", "--bundle-format", "dir", "-o",
                 place / "m.bundle")  # fmt: skip
    text = (place / "m.bundle" / "code" / "cuda" / "sm_90a" / "kernels.ptx").read_text()
    [kernel] = [each for each in text.split(".visible .entry ")[1:] if "wgmma.mma_async" in each]
    blocks = [each for each in re.split(r"^\$\S+:|^\s*(?:@%p\d+ )?bra\b.*$", kernel, flags=re.MULTILINE) if each]
    wide = re.compile(r"st\.global\.v4\.(?:b32|f32|u32)|st\.global\.v2\.(?:b64|f64)")
    together = [block for block in blocks if wide.search(block)]
    stores = [line for block in together for line in re.findall(r"st\.global\S*", block)]
    short = [store for store in stores if not wide.match(store)]
    sums = tile[1] // 2  # a thread's, of 64 rows and 128 threads
    wanted = sums * (4 if result == "f32" else 2) // 16
    if short or len(stores) != wanted:
        raise RuntimeError(f"a thread stores {wanted} times 16 bytes, but there are {len(stores)} stores, of which {short[:3]} are shorter")
    pairs = sum(block.count("cvt.rn.bf16x2.f32") for block in together)
    if result == "bf16" and (pairs != sums // 2 or any("cvt.rn.bf16.f32" in block for block in together)):
        raise RuntimeError(f"{pairs} conversions of two, not {sums // 2}")


def main():
    attempts = Attempts()
    for result, tile, conv in [("bf16", (128, 128), False), ("f32", (64, 64), False), ("f16", (128, 256), False), ("f32", (64, 128), True)]:
        label = f"{'convolution' if conv else 'product'} to {result}, tile {tile[0]} x {tile[1]}"
        attempts.run(label, check, result, tile, conv)
    return attempts.status()


if __name__ == "__main__":
    sys.exit(main())
