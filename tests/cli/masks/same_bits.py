#!/usr/bin/env python3
"""Attention under random masks, with what they leave out skipped and with all of it looked at: the same bits, and what numpy gives of the dense
graph in f64. Strided and fixed masks, whose keys lie a step apart, read no others: such values may be NaN. Decoders as exporters write them
(tests/models) give the same bits too, on their own sets and on long texts. Usage: same_bits.py BIN [masks] | BIN decoders; a plain run takes 2
random masks, or one decoder, DMXC_LONG=1 200, or all. Exit 77 where numpy is not installed."""
import json
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "cli"), str(TESTS / "models")]
import mask_spellings as spelt  # exits where numpy is not installed
import fixtures
import judge
from mask_spellings import LONG, np, onnx
from sampling import SEED

N, STEP = 1100, 32


def large(random):
    """Whole rows of scores, or tiles of them."""
    return int(random.integers(40, 300)), int(random.choice([random.integers(256, 700), random.integers(1025, 1400)]))


def same(seed, attentions, folder):
    model, values, wanted = spelt.make(seed, attentions, large)
    _, every = spelt.run(f"seed {seed}, off", model, values, folder, "--sparsity", "off")
    before = {name: every(name) for name in wanted}
    _, result = spelt.run(f"seed {seed}", model, values, folder, "--sparsity-report", str(folder / "r.json"))
    for name, expected in wanted.items():
        got = result(name)
        spelt.check(f"seed {seed}: '{name}'", got, expected)
        if got.tobytes() != before[name].tobytes():
            sys.exit(f"seed {seed}: '{name}' has other bits where masks leave nothing out")
    return sum(a.get("algorithm") in ("attention-tiles", "attention-classes") for a in json.loads((folder / "r.json").read_text())["attentions"])


def apart(kind, folder):
    """Keys of a step alone are read of those far away."""
    graph = spelt.Graph(np.random.default_rng(1))
    i, j = np.arange(N)[:, None], np.arange(N)[None]
    row, column = graph.constant(np.arange(N, dtype=np.int64)[:, None]), graph.constant(np.arange(N, dtype=np.int64)[None])
    if kind == "strided":
        difference = graph.op("Sub", [row, column])
        value = graph.op("Or", [graph.op("Equal", [graph.op("Mod", [difference, graph.integer(STEP)]), graph.integer(0)]),
                                graph.op("Less", [difference, graph.integer(STEP)])])
        kept, unread = (j <= i) & (((i - j) % STEP == 0) | (i - j < STEP)), (np.arange(N) >= 4 * STEP) & (np.arange(N) % STEP != 5)
    else:
        value = graph.op("Or", [graph.op("Equal", [graph.op("Div", [row, graph.integer(STEP)]), graph.op("Div", [column, graph.integer(STEP)])]),
                                graph.op("GreaterOrEqual", [graph.op("Mod", [column, graph.integer(STEP)]), graph.integer(STEP - 2)])])
        kept, unread = (j <= i) & ((i // STEP == j // STEP) | (j % STEP >= STEP - 2)), np.arange(N) >= 4 * STEP
    value = graph.op("And", [value, graph.op("LessOrEqual", [column, row])])
    weights = graph.op("Softmax", [graph.op("Where", [value, graph.op("MatMul", ["q", "k"]), graph.constant(spelt.INFINITE)])], axis=-1)
    graph.nodes.append(onnx.node("MatMul", f"{weights} v", "y"))
    shapes = {"q": [1, N, 16], "k": [1, 16, N], "v": [1, N, 16]}
    values = {name: graph.random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    model = onnx.model(graph.nodes, [onnx.info(name, onnx.FLOAT, shape) for name, shape in shapes.items()], [onnx.info("y", onnx.FLOAT, None)],
                       weights=graph.weights)
    wanted = spelt.softmax(np.where(kept, values["q"].astype(np.float64) @ values["k"], -np.inf)) @ values["v"]
    values["v"][:, 5] = np.nan  # neither 5 % 32 == i % 32 nor 5 % 32 >= 30
    _, result = spelt.run(kind, model, values, folder, "--sparsity-report", str(folder / "r.json"))
    one, = json.loads((folder / "r.json").read_text())["attentions"]
    rules = {"strided": "((i - j) % 32 == 0 and j <= i) or (i <= j + 31 and j <= i)", "fixed": "(j // 32 == i // 32 and j <= i) or (30 <= j % 32 and j <= i)"}
    if (one["rule"], one["algorithm"]) != (rules[kind], "attention-classes"):
        sys.exit(f"{kind}: the rule is {one['rule']}, the kernel {one['algorithm']}")
    spelt.check(kind, result("y")[:, unread], wanted[:, unread])


# Those of whose positions there are as many as a text has tokens, and others that end at their table.
DECODERS, SHORT_DECODERS = ("tiny-gemma2", "tiny-llama", "tiny-qwen3", "tiny-t5"), ("tiny-gpt2", "tiny-cache")
TOKENS = 1100  # more than whole rows of scores are kept of


def texts(name, folder, meta):
    """The sets of a decoder, by the file's names, and one of long texts, the first of them padded on the left."""
    sets = []
    for number in range(meta["sets"]):
        arrays = judge.load(folder / f"inputs_{number}.npz")
        if judge.fits(folder, meta, number):
            sets.append({own: arrays[key] for own, key in zip(meta["inputs"], judge.Judge.order(meta, arrays))})
    if not name.startswith(DECODERS) or any(array.ndim != 2 for array in sets[0].values()):
        return sets
    long, random = {}, np.random.default_rng(1)
    for own, array in sets[0].items():
        is_mask = "mask" in own
        long[own] = np.ones((len(array), TOKENS), array.dtype) if is_mask else random.integers(0, 40, (len(array), TOKENS)).astype(array.dtype)
        if is_mask:
            long[own][0, :300] = 0
    return [*sets, long]


def decoder(path, folder):
    """How many attentions leave out masked keys."""
    meta, outputs, skipped = fixtures.unpack(path, folder), {}, 0
    for mode in ("off", "on"):
        bundle, report = folder / f"{mode}.bundle", folder / "r.json"
        done = subprocess.run([spelt.BIN / "dmxc", folder / meta["file"], "-q", "-t", "cpu:host", "-o", bundle, "--sparsity", mode, "--sparsity-report", report], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{path.stem}, {mode}: dmxc ended with {done.returncode}\n{done.stderr}")
        skipped = sum(a["algorithm"] == "attention-tiles" for a in json.loads(report.read_text())["attentions"])
        for number, values in enumerate(texts(path.stem, folder, meta)):
            given, out = folder / f"in{number}", folder / f"{mode}{number}"
            given.mkdir(exist_ok=True)
            for name, value in values.items():
                np.save(given / f"{name}.npy", value)
            ran = subprocess.run([spelt.BIN / "dmx-run", bundle, "--inputs", given, "--output-dir", out, "-q"], capture_output=True, text=True)
            if ran.returncode:
                sys.exit(f"{path.stem}, {mode}, set {number}: dmx-run ended with {ran.returncode}\n{ran.stderr}")
            got = {file.name: file.read_bytes() for file in out.glob("*.npy")}
            if not got or outputs.setdefault(number, got) != got:
                sys.exit(f"{path.stem}, set {number}: other bits where masks leave nothing out")
    return skipped


def decoders():
    paths = [path for path in sorted(fixtures.FOLDER.glob("*.npz")) if path.stem.startswith(DECODERS + SHORT_DECODERS)]
    quick = [path for path in paths if "t5" not in path.stem]  # which has three attentions, and takes as long to compile
    paths, skipped = paths if LONG else [quick[SEED % len(quick)]], 0
    for path in paths:
        with tempfile.TemporaryDirectory(prefix="dmxc-bits-") as name:
            skipped += decoder(path, pathlib.Path(name))
    print(f"{', '.join(path.stem for path in paths)}: the same bits; {skipped} attentions leave out masked keys, DMXC_SAMPLE={SEED}")
    if LONG and skipped < len(paths) // 2:
        sys.exit(f"only {skipped} attentions of {len(paths)} decoders leave out masked keys")


def main():
    if sys.argv[2:] == ["decoders"]:
        return decoders()
    masks = int(sys.argv[2]) if len(sys.argv) > 2 else 200 if LONG else 2
    each, skipped = min(masks, 10), 0
    with tempfile.TemporaryDirectory(prefix="dmxc-bits-") as name:
        folder = pathlib.Path(name)
        for kind in ("strided", "fixed") if LONG else (("strided", "fixed")[SEED % 2],):
            apart(kind, folder)
        for seed in range(masks // each):
            skipped += same(seed + (0 if LONG else 1000 + SEED), each, folder)
    print(f"{masks // each * each} masks give the same bits; of {skipped} scores are skipped")
    if LONG and skipped < 0.8 * masks:
        sys.exit(f"only {skipped} of {masks} are skipped by")


if __name__ == "__main__":
    main()
