"""A small decoder with caches, as exporters write it, and by numpy. Takes the argument LIBDMXRT from the command line of a test: BIN LIBDMXRT
[unittest arguments]."""
import ctypes
import json
import pathlib
import subprocess
import sys
import zipfile

LIBRARY = sys.argv.pop(2)
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[3] / "tools/python")]
from dynamic_shapes import BIN, BundleTest, np, onnx, softmax
from sampling import LONG, sampled
import dmxrt

LAYERS, SIZE, WORDS, HIDDEN, ROOM = 2, 16, 50, 48, 40
NAMES = [f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]


def value(expression, dims):
    """Of a size in graph.json."""
    if not isinstance(expression, list):
        return dims.get(expression, expression)
    a, b = (value(part, dims) for part in expression[1:])
    return {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "floordiv": lambda: a // b, "ceildiv": lambda: -(-a // b),
            "min": lambda: min(a, b), "max": lambda: max(a, b), "broadcast": lambda: max(a, b)}[expression[0]]()


class Decoder:
    """A model as exporters write it: mask and caches are inputs, caches outputs; and what it is by numpy."""

    def __init__(self, heads=4, shared=2, window=0, scaled="scores", seed=1):
        self.heads, self.shared, self.window, self.scaled = heads, shared, window, scaled
        self.rounded = lambda rows: rows  # what caches keep of them
        self.numbers = np.random.default_rng(seed)
        wide, narrow, model = heads * SIZE, shared * SIZE, 32
        weight = lambda rows, columns: (self.numbers.standard_normal((rows, columns)) / rows ** 0.5).astype("f4")
        self.words = weight(WORDS, model) * 4
        self.layers = [dict(q=weight(model, wide), k=weight(model, narrow), v=weight(model, narrow), o=weight(wide, model)) for _ in range(LAYERS)]
        self.head = weight(model, WORDS)

    # --- the file
    def model(self):
        nodes, weights = [], []
        node = lambda op, inputs, output, **more: nodes.append(onnx.node(op, inputs, output, **more)) or output
        floats = lambda name, array: weights.append(onnx.tensor(name, onnx.FLOAT, array.shape, raw=array.astype("f4").tobytes())) or name
        ints = lambda name, *numbers: weights.append(onnx.tensor(name, onnx.INT64, [len(numbers)], raw=np.array(numbers, "i8").tobytes())) or name
        scalar = lambda name, number: weights.append(onnx.tensor(name, onnx.INT64, [], raw=np.array(number, "i8").tobytes())) or name
        ints("one", 1), ints("two", 2), ints("last", -1), scalar("zero", 0), scalar("1", 1)
        x = node("Gather", f"{floats('words', self.words)} input_ids", "x", axis=0)
        self.mask_nodes(node, floats, ints, scalar)
        floats("root", np.float32(SIZE ** 0.5)), floats("fourth", np.float32(SIZE ** -0.25))
        for i, layer in enumerate(self.layers):
            name = lambda text: f"{text}.{i}"
            part = {}
            for p in "qkv":
                count = self.heads if p == "q" else self.shared
                y = node("MatMul", f"{x} {floats(name('w' + p), layer[p])}", name(p + "m"))
                y = node("Reshape", f"{y} {ints(name(p + 's'), 0, 0, count, SIZE)}", name(p + "r"))
                part[p] = node("Transpose", y, name(p), perm=[0, 2, 1, 3])
            for p, long in (("k", "key"), ("v", "value")):
                part[p] = self.repeated(node, ints, node("Concat", f"past.{i}.{long} {part[p]}", f"present.{i}.{long}", axis=2), name(p + "all"))
            turned = node("Transpose", part["k"], name("kt"), perm=[0, 1, 3, 2])
            if self.scaled == "both":  # torch's scaled_dot_product_attention
                part["q"], turned = node("Mul", f"{part['q']} fourth", name("qf")), node("Mul", f"{turned} fourth", name("kf"))
            scores = node("MatMul", f"{part['q']} {turned}", name("scores"))
            if self.scaled == "scores":
                scores = node("Div", f"{scores} root", name("div"))
            scores = node("Softmax", node("Add", f"{scores} mask", name("masked")), name("weights"), axis=-1)
            y = node("Transpose", node("MatMul", f"{scores} {part['v']}", name("mixed")), name("mt"), perm=[0, 2, 1, 3])
            y = node("Reshape", f"{y} {ints(name('os'), 0, 0, self.heads * SIZE)}", name("or"))
            x = node("Add", f"{x} " + node("MatMul", f"{y} {floats(name('wo'), layer['o'])}", name("om")), name("x1"))
        node("MatMul", f"{x} {floats('whead', self.head)}", "logits")
        cache = lambda name, rows: onnx.info(name, onnx.FLOAT, [1, self.shared, rows, SIZE])
        inputs = [onnx.info("input_ids", onnx.INT64, [1, "n"]), onnx.info("attention_mask", onnx.INT64, [1, "total"]),
                  onnx.info("position_ids", onnx.INT64, [1, "n"])] + [cache("past." + name, "past") for name in NAMES]
        outputs = [onnx.info("logits", onnx.FLOAT, [1, "n", WORDS])] + [cache("present." + name, "rows") for name in NAMES]
        return onnx.model(nodes, inputs, outputs, weights=weights, opset=17)

    def mask_nodes(self, node, floats, ints, scalar):
        """0 where a position sees a key, the least number where not: [1, 1, n, total]."""
        total = node("Gather", node("Shape", "attention_mask", "sizes") + " 1", "total_", axis=0)
        key = node("Range", f"zero {total} 1", "places")
        place = node("Unsqueeze", f"position_ids {ints('axes', 1, 3)}", "place")
        keep = node("LessOrEqual", f"{key} {place}", "causal")
        if self.window:
            near = node("Sub", f"{place} {scalar('window', self.window)}", "near")
            keep = node("And", f"{keep} " + node("Greater", f"{key} {near}", "inside"), "both")
        there = node("Cast", node("Unsqueeze", f"attention_mask {ints('axes12', 1, 2)}", "there"), "there_", to=onnx.BOOL)
        keep = node("And", f"{keep} {there}", "keep")
        node("Where", f"{keep} {floats('kept', np.float32(0))} {floats('least', np.float32(np.finfo('f4').min))}", "mask")

    def repeated(self, node, ints, value, name):
        group = self.heads // self.shared
        if group == 1:
            return value
        wide = node("Expand", node("Unsqueeze", f"{value} two", name + "u") + " " + ints(name + "s", 1, 1, group, 1, 1), name + "x")
        return node("Reshape", f"{wide} {ints(name + 'f', 1, self.heads, -1, SIZE)}", name)

    # --- by numpy
    def forward(self, ids, past):
        """Logits [n, WORDS] and caches [shared, rows, SIZE] by name."""
        n, before = len(ids), past[NAMES[0]].shape[1]
        x, present = self.words[ids].astype("f8"), {}
        i, j = np.arange(before, before + n)[:, None], np.arange(before + n)[None]
        keep = (j <= i) & (j > i - self.window) if self.window else j <= i
        for number, layer in enumerate(self.layers):
            split = lambda p, count: (x @ layer[p]).reshape(n, count, SIZE).transpose(1, 0, 2)
            for p, long in (("k", "key"), ("v", "value")):
                name = f"{number}.{long}"
                present[name] = np.concatenate([past[name], self.rounded(split(p, self.shared))], 1)
            k, v = (np.repeat(present[f"{number}.{long}"], self.heads // self.shared, 0) for long in ("key", "value"))
            scores = split("q", self.heads) @ k.transpose(0, 2, 1) / (SIZE ** 0.5 if self.scaled else 1)
            x = x + (softmax(np.where(keep, scores, -1e30)) @ v).transpose(1, 0, 2).reshape(n, -1) @ layer["o"]
        return x @ self.head, present

    def empty(self):
        return {name: np.zeros((self.shared, 0, SIZE)) for name in NAMES}


class SessionInfo(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_uint32), ("task_count", ctypes.c_uint32), ("target", ctypes.c_char_p),
                ("isa", ctypes.c_char_p)] + [(name, ctypes.c_uint64) for name in ("arena", "bound", "scratch", "state", "constant", "output")] + \
               [(name, ctypes.c_char_p) for name in ("better_isa", "machine", "remarks")] + [("copied_bytes", ctypes.c_uint64)]


class Run(dmxrt.Session):
    """A session of a decoder whose caches are states."""

    def step(self, ids):
        rows = self.state_length()[0]
        return self(input_ids=np.array([ids]), attention_mask=np.ones((1, rows + len(ids)), "i8"),
                    position_ids=np.arange(rows, rows + len(ids))[None])["logits"][0]


class DecoderTest(BundleTest):
    DECODERS = {"grouped": dict(), "alone": dict(shared=4), "scaled": dict(scaled="both"), "one": dict(shared=1, scaled="both"),
                "window": dict(window=5), "plain": dict(shared=4, scaled="both")}
    if not LONG:
        DECODERS = dict(list(DECODERS.items())[::2])

    def compile(self, decoder, *arguments, code=0, name="m"):
        (self.dir / "m.onnx").write_bytes(decoder.model())
        level = [] if LONG else ["-t", "cpu:host"]
        done = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-o", self.dir / f"{name}.bundle", *level, *arguments],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def states(self, decoder, *arguments, room=ROOM, name="m"):
        self.compile(decoder, "--state", "past.*=present.*", "--dim", f"past=0..{room}", *arguments, name=name)

    def open(self, name="m", **options):
        session = Run(self.dir / f"{name}.bundle", library=LIBRARY, **options)
        self.addCleanup(session.close)
        return session

    def info(self, session):
        info = SessionInfo(ctypes.sizeof(SessionInfo))
        session.call("dmx_session_get_info", session.session, ctypes.byref(info))
        return info

    def near(self, got, wanted, relative=1e-4):
        self.assertEqual(got.shape, wanted.shape)
        self.assertLessEqual(np.abs(got - wanted).max(), relative * np.abs(wanted).max())

    def ids(self, count, seed=3):
        return [int(i) for i in np.random.default_rng(seed).integers(0, WORDS, count)]

    def graph(self):
        return json.loads(zipfile.ZipFile(self.dir / "m.bundle").read("graph.json"))["graphs"][0]

    @staticmethod
    def weights(decoder):
        return decoder.words.size + decoder.head.size + sum(w.size for layer in decoder.layers for w in layer.values())
