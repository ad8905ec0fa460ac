#!/usr/bin/env python3
"""Functions of torch as torch.export writes them, after run_decompositions(), and with an open batch: compiled, run, and equal to eager.
functions.py BIN [NAME ..]: it runs in the environment that `tools/models --keep-envs` leaves, or in a Python that has torch 2.6 or later; exit
77 without."""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import environment  # noqa: E402

environment.enter("numpy", "torch.export")
import numpy as np
import torch
import torch.export
import torch.nn.functional as F

BIN = pathlib.Path(sys.argv[1]).resolve()
torch.manual_seed(0)
X, Y, V = (lambda: torch.randn(3, 4, 6)), (lambda: torch.randn(3, 4, 6)), (lambda: torch.randn(6))
POSITIVE, UNIT = (lambda: torch.rand(3, 4) + 1.1), (lambda: torch.rand(3, 4) * 1.8 - 0.9)
INTS = lambda high: (lambda: torch.randint(0, high, (3, 4)))
IMAGE = lambda: torch.randn(3, 2, 7, 8)
# A name, the function, its inputs; the first axis of each input of three rows may stay open.
FUNCTIONS = {
    "multiply": (torch.multiply, X, Y), "divide": (torch.divide, X, Y), "divide_floor": (lambda a, b: torch.divide(a, b, rounding_mode="floor"), X, Y),
    "subtract": (torch.subtract, X, Y), "negative": (torch.negative, X), "absolute": (torch.absolute, X), "clip": (lambda a: torch.clip(a, -0.5, 0.5), X),
    "greater": (torch.greater, X, Y), "greater_equal": (torch.greater_equal, X, Y), "less": (torch.less, X, Y), "less_equal": (torch.less_equal, X, Y),
    "not_equal": (torch.not_equal, X, Y), "arccos": (torch.arccos, UNIT), "arcsin": (torch.arcsin, UNIT), "arctan": (torch.arctan, X),
    "arccosh": (torch.arccosh, POSITIVE), "arcsinh": (torch.arcsinh, X), "arctanh": (torch.arctanh, UNIT), "arctan2": (torch.arctan2, X, Y),
    "concatenate": (lambda a, b: torch.concatenate([a, b], 1), X, Y), "vstack": (lambda a, b: torch.vstack([a, b]), X, Y),
    "hstack": (lambda a, b: torch.hstack([a, b]), X, Y), "dstack": (lambda a, b: torch.dstack([a, b]), X, Y),
    "column_stack": (lambda a, b: torch.column_stack([a, b]), X, Y), "hsplit": (lambda a: torch.hsplit(a, 2), X), "vsplit": (lambda a: torch.vsplit(a.transpose(0, 1), 2), X),
    "grid_sampler": (lambda a, g: F.grid_sample(a, g, align_corners=False), IMAGE, lambda: torch.rand(3, 5, 5, 2) * 2 - 1),
    "affine_grid": (lambda t: F.affine_grid(t, [t.shape[0], 2, 4, 5], align_corners=False), lambda: torch.randn(3, 2, 3)),
    "im2col": (lambda a: F.unfold(a, 3, padding=1, stride=2), IMAGE), "col2im": (lambda a: F.fold(a, (7, 8), 3, padding=1, stride=2), lambda: torch.randn(3, 18, 16)),
    "linalg_norm": (torch.linalg.norm, X), "linalg_norm_rows": (lambda a: torch.linalg.norm(a, dim=-1), X), "linalg_cross": (torch.linalg.cross, lambda: torch.randn(3, 4, 3), lambda: torch.randn(3, 4, 3)),
    "cross": (lambda a, b: torch.cross(a, b, dim=2), lambda: torch.randn(3, 4, 3), lambda: torch.randn(3, 4, 3)),
    "cosine_similarity": (F.cosine_similarity, X, Y), "pairwise_distance": (F.pairwise_distance, X, Y), "var_mean": (lambda a: torch.var_mean(a, dim=1), X),
    "std_mean": (lambda a: torch.std_mean(a, dim=1), X), "broadcast_tensors": (torch.broadcast_tensors, X, V), "tensordot": (lambda a, b: torch.tensordot(a, b, 1), X, lambda: torch.randn(6, 5)),
    "inner": (lambda a, b: torch.inner(a, b), X, V), "take_along_dim": (lambda a, i: torch.take_along_dim(a, i, 1), lambda: torch.randn(3, 4), INTS(4)),
    "msort": (lambda a: torch.msort(a.transpose(0, 1)), X), "argsort_stable": (lambda a: torch.argsort(a, stable=True), INTS(4)), "diag": (lambda a: torch.diag(a[0, 0]), X),
    "linalg_diagonal": (torch.linalg.diagonal, X), "fliplr": (torch.fliplr, X), "flipud": (torch.flipud, X), "ravel": (torch.ravel, X), "atleast_1d": (torch.atleast_1d, X),
    "atleast_2d": (torch.atleast_2d, V), "atleast_3d": (torch.atleast_3d, lambda: torch.randn(3, 4)), "adjoint": (torch.adjoint, X), "mH": (lambda a: a.mH, X),
    "isclose": (torch.isclose, X, Y), "nanmean": (lambda a: torch.nanmean(torch.where(a > 1, torch.nan, a), 1), X), "fft_fftshift": (lambda a: torch.fft.fftshift(a, dim=1), X),
    "lstm_cell": (torch.nn.LSTMCell(6, 5), lambda: torch.randn(3, 6)), "gru_cell": (torch.nn.GRUCell(6, 5), lambda: torch.randn(3, 6)),
    "channel_shuffle": (lambda a: torch.channel_shuffle(a, 2), IMAGE), "adaptive_max_pool1d": (lambda a: F.adaptive_max_pool1d(a, 4), X),
    "quantile": (lambda a: torch.quantile(a, 0.3, dim=1), X), "kron": (torch.kron, lambda: torch.randn(3, 2), lambda: torch.randn(2, 2)),
    "embedding_bag": (lambda w, i: F.embedding_bag(i, w), lambda: torch.randn(9, 4), INTS(9)), "bucketize": (torch.bucketize, X, lambda: torch.sort(torch.randn(5))[0]),
    "searchsorted": (torch.searchsorted, lambda: torch.sort(torch.randn(5))[0], X),
}  # fmt: skip


class Module(torch.nn.Module):
    """A function of some tensors as a module."""

    def __init__(self, function, count):
        super().__init__()
        if isinstance(function, torch.nn.Module):
            self.inner = function
        self.function = function
        self.count = count

    def forward(self, *tensors):
        result = self.function(*tensors)
        return tuple(result) if isinstance(result, (list, tuple)) else (result,)


def check(name, function, inputs, way, place):
    """ "" or what is wrong."""
    module = Module(function, len(inputs)).eval()
    shapes = None
    if way == "open":
        batch = torch.export.Dim("batch", min=2, max=64)
        shapes = (tuple({0: batch} if value.shape[0] == 3 else None for value in inputs),)
    with torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        program = torch.export.export(module, tuple(inputs), dynamic_shapes=shapes)
        program = program.run_decompositions() if way == "core" else program
        torch.export.save(program, place / "m.pt2")
        expected = [value.numpy() for value in module(*inputs)]
    done = subprocess.run([BIN / "dmxc", place / "m.pt2", "-o", place / "m.bundle", "--color", "never"], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().splitlines()[0]
    names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    for file in place.glob("*.npy"):
        file.unlink()
    for number, value in zip(names, inputs):
        np.save(place / f"in_{number}.npy", value.numpy())
    done = subprocess.run([BIN / "dmx-run", place / "m.bundle", "--inputs", place, "--output-dir", place], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().splitlines()[0]
    for i, value in enumerate(expected):
        got = np.load(place / f"out_out{i}.npy")
        if got.dtype != value.dtype or got.shape != value.shape or not np.allclose(got, value, 1e-4, 1e-5, equal_nan=True):
            return f"result {i} differs: {got.dtype}{got.shape}, expected {value.dtype}{value.shape}"
    return ""


def main():
    bad = 0
    for name, (function, *makers) in FUNCTIONS.items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        inputs = [make() for make in makers]
        for way in ("whole", "core", "open"):
            with tempfile.TemporaryDirectory(prefix="dmxc-functions-") as place:
                try:
                    problem = check(name, function, inputs, way, pathlib.Path(place))
                except Exception as error:  # torch does not export it so
                    problem = f"torch: {str(error).strip().splitlines()[0][:200]}"
                bad += bool(problem) and not problem.startswith("torch: ")
                print(f"{name} {way}: {problem or 'ok'}", flush=True)
    print(f"{bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
