#!/usr/bin/env python3
"""Writes flex/*.npz: programs of flex_attention as torch.export makes and dmxrt.pt2 saves them, inputs and what torch computes for them.
Usage: make_flex_cases.py [NAME...], with torch 2.15 (tools/models has an environment of it). What flex_test.py expects of each by name is
written there by hand."""
import math
import pathlib
import sys
import tempfile

import numpy as np
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools/python"))
from dmxrt import pt2

BATCH, HEADS, N, SIZE = 2, 2, 24, 4
INF = float("inf")
torch.manual_seed(71)
DOCUMENTS = torch.tensor([0] * 5 + [1] * 9 + [2] * 10)
PREFIX = torch.tensor([3, 11])
TABLE = torch.randn(HEADS, 2 * N - 1)
NESTED = torch.randn(2, HEADS, N)


def causal(b, h, q, kv):
    return q >= kv


class Flex(torch.nn.Module):
    """A block mask made beside the model, whose tables are constants of the program."""

    def __init__(self, score=None, mask=None, batch=None, **more):
        super().__init__()
        self.score, self.more = score, more
        self.mask = create_block_mask(mask, batch, None, N, N, device="cpu") if mask else None

    def forward(self, q, k, v):
        return flex_attention(q, k, v, score_mod=self.score, block_mask=self.mask, **self.more)


class Made(torch.nn.Module):
    """A block mask made in the model, of documents whose ids are an input."""

    def forward(self, q, k, v, ids):
        mask = create_block_mask(lambda b, h, i, j: (ids[b, i] == ids[b, j]) & (i >= j), q.shape[0], None, N, N, device="cpu")
        return flex_attention(q, k, v, block_mask=mask)


class Past(torch.nn.Module):
    """Open numbers of queries and keys; the last query is the last key."""

    def forward(self, q, k, v):
        past = k.shape[2] - q.shape[2]
        return flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: torch.where(j <= i + past, score, -INF))


CASES = {
    "plain": Flex(),
    "causal": Flex(mask=causal),
    "window": Flex(mask=lambda b, h, q, kv: (q >= kv) & (q - kv < 6)),
    "documents": Flex(mask=lambda b, h, q, kv: (DOCUMENTS[q] == DOCUMENTS[kv]) & (q >= kv)),
    "alibi": Flex(lambda s, b, h, q, kv: s + torch.exp2(-((h + 1) * 8.0 / HEADS)) * (kv - q), causal),
    "softcap": Flex(lambda s, b, h, q, kv: 5 * torch.tanh(s / 5), causal),
    "relative": Flex(lambda s, b, h, q, kv: s + TABLE[h, kv - q + N - 1], causal),
    "prefix": Flex(mask=lambda b, h, q, kv: (kv <= q) | (kv < PREFIX[b]), batch=BATCH),
    "blind": Flex(mask=lambda b, h, q, kv: (q >= kv) & (q >= 7)),
    "by-score": Flex(lambda s, b, h, q, kv: torch.where((q >= kv) & (q >= 3), s, -INF)),
    "nested": Flex(lambda s, b, h, q, kv: s * NESTED[0][h][q] + NESTED[1, h, kv]),
    "heads": Flex(mask=causal, enable_gqa=True, scale=0.3),
    "half": Flex(mask=causal),
    "sums": Flex(mask=lambda b, h, q, kv: (q >= kv) & (q >= 2), return_lse=True),
    "made": Made(),
    "past": Past(),
}


def inputs_of(name):
    rows, kv_heads = (N - 7 if name == "past" else N), (1 if name == "heads" else HEADS)
    shapes = [(BATCH, HEADS, rows, SIZE), (BATCH, kv_heads, N, SIZE), (BATCH, kv_heads, N, SIZE)]
    given = [torch.randn(shape) * math.sqrt(3) for shape in shapes]
    if name == "half":
        given = [x.half() for x in given]
    if name == "made":
        given.append(torch.stack([DOCUMENTS, torch.arange(N) // 7]))
    return tuple(given)


def write(name, folder):
    model, given = CASES[name], inputs_of(name)
    n, t = torch.export.Dim("n", min=2, max=64), torch.export.Dim("t", min=2, max=64)
    program = torch.export.export(model, given, dynamic_shapes={"q": {2: n}, "k": {2: t}, "v": {2: t}} if name == "past" else None, strict=False)
    program.example_inputs = None
    for module in program.graph_module.modules():
        for node in module.graph.nodes if hasattr(module, "graph") else []:
            node.meta = {key: value for key, value in node.meta.items() if key in ("val", "tensor_meta")}  # no places of this machine
    path = pathlib.Path(folder) / "m.pt2"
    pt2.save(program, path)
    with torch.no_grad():
        answers = model(*given)
    answers = answers if isinstance(answers, tuple) else (answers,)
    arrays = {"in_" + key: value.numpy() for key, value in zip(("q", "k", "v", "ids"), given)}
    arrays.update({f"out{i}": value.numpy() for i, value in enumerate(answers)})
    np.savez_compressed(HERE / f"flex/{name}.npz", model=np.frombuffer(path.read_bytes(), np.uint8), **arrays)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or CASES:
            write(name, folder)
