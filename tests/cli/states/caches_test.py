#!/usr/bin/env python3
"""Decoders with caches: steps that append to states with a length (dmxc --state 'past*=present*'), against numpy and against one
prefill. Usage: caches_test.py BIN LIBDMXRT [unittest arguments]. Exit 77 where numpy is not installed. With DMXC_LONG=1 all forms of
decoders at all levels, else some at one."""
import json
import pathlib
import subprocess
import sys
import unittest
import zipfile

LIBRARY = sys.argv.pop(2)
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[3] / "tools/python")]
from dynamic_shapes import BIN, BundleTest, np, onnx, softmax
from sampling import LONG
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
                present[name] = np.concatenate([past[name], split(p, self.shared)], 1)
            k, v = (np.repeat(present[f"{number}.{long}"], self.heads // self.shared, 0) for long in ("key", "value"))
            scores = split("q", self.heads) @ k.transpose(0, 2, 1) / (SIZE ** 0.5 if self.scaled else 1)
            x = x + (softmax(np.where(keep, scores, -1e30)) @ v).transpose(1, 0, 2).reshape(n, -1) @ layer["o"]
        return x @ self.head, present

    def empty(self):
        return {name: np.zeros((self.shared, 0, SIZE)) for name in NAMES}


class Run(dmxrt.Session):
    """A session of a decoder whose caches are states."""

    def step(self, ids):
        rows = self.state_length()[0]
        return self(input_ids=np.array([ids]), attention_mask=np.ones((1, rows + len(ids)), "i8"),
                    position_ids=np.arange(rows, rows + len(ids))[None])["logits"][0]


class Caches(BundleTest):
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

    def near(self, got, wanted, relative=1e-4):
        self.assertEqual(got.shape, wanted.shape)
        self.assertLessEqual(np.abs(got - wanted).max(), relative * np.abs(wanted).max())

    def ids(self, count, seed=3):
        return [int(i) for i in np.random.default_rng(seed).integers(0, WORDS, count)]

    def graph(self):
        return json.loads(zipfile.ZipFile(self.dir / "m.bundle").read("graph.json"))["graphs"][0]

    DECODERS = {"grouped": dict(), "alone": dict(shared=4), "scaled": dict(scaled="both"), "one": dict(shared=1, scaled="both"),
                "window": dict(window=5), "plain": dict(shared=4, scaled="both")}
    if not LONG:
        DECODERS = dict(list(DECODERS.items())[::2])

    def test_steps_are_a_prefill(self):
        for name, form in self.DECODERS.items():
            with self.subTest(name):
                decoder, ids = Decoder(**form), self.ids(23)
                self.states(decoder)
                wanted, _ = decoder.forward(ids, decoder.empty())
                session = self.open()
                self.near(session.step(ids), wanted)
                session.reset_state()
                self.assertEqual(session.state_length(), (0, ROOM))
                parts = [session.step(ids[:9]), session.step(ids[9:14])] + [session.step([i]) for i in ids[14:]]
                self.near(np.concatenate(parts), wanted)
                self.assertEqual(session.state_length("past"), (23, ROOM))

    def test_caches_of_the_caller(self):
        """Without states: both kinds of heads read the cache as it is given."""
        for name, form in self.DECODERS.items():
            with self.subTest(name):
                decoder, ids = Decoder(**form), self.ids(12)
                self.compile(decoder)
                session = self.open()
                _, past = decoder.forward(ids[:7], decoder.empty())
                wanted, present = decoder.forward(ids[7:], past)
                got = session({"input_ids": np.array([ids[7:]]), "attention_mask": np.ones((1, 12), "i8"), "position_ids": np.arange(7, 12)[None],
                               **{"past." + name: value[None].astype("f4") for name, value in past.items()}})
                self.near(got["logits"][0], wanted)
                for name, value in present.items():
                    self.near(got["present." + name][0], value)

    def test_truncate_copy_save(self):
        decoder, ids, others = Decoder(), self.ids(20), self.ids(6, seed=9)
        self.states(decoder)
        one, two = self.open(), self.open(threads=1)
        one.step(ids)
        saved = one.save_state()
        one.truncate_state(11)
        two.copy_state(one)
        wanted, _ = decoder.forward(ids[:11] + others, decoder.empty())
        self.near(one.step(others), wanted[11:])
        self.near(two.step(others), wanted[11:])
        two.load_state(saved)
        self.assertEqual(two.state_length()[0], 20)
        wanted, _ = decoder.forward(ids + others, decoder.empty())
        self.near(two.step(others), wanted[20:])
        self.assertLess(len(saved), 1000 + 20 * len(NAMES) * decoder.shared * SIZE * 4)  # the rows that are there
        with self.assertRaisesRegex(dmxrt.Error, "argument length is 27, and there are 26 rows"):
            two.truncate_state(27)
        with self.assertRaisesRegex(dmxrt.Error, "there is no length 'rows'; there are 'past'"):
            two.truncate_state(1, "rows")

    def test_sessions_interleaved(self):
        decoder = Decoder(window=7)
        self.states(decoder)
        texts = [self.ids(5 + k, seed=k) for k in range(8)]
        sessions = [self.open(threads=1) for _ in texts]
        for session, text in zip(sessions, texts):
            session.step(text[:2])
        got = [[] for _ in texts]
        for at in range(2, 13):
            for k, text in enumerate(texts):
                if at < len(text):
                    got[k].append(sessions[k].step([text[at]])[0])
        alone = self.open(threads=1)
        for text, rows in zip(texts, got):
            alone.reset_state()
            alone.step(text[:2])
            np.testing.assert_array_equal(rows, [alone.step([i])[0] for i in text[2:]])
            self.near(np.array(rows), decoder.forward(text, decoder.empty())[0][2:])

    def test_no_room(self):
        decoder, ids = Decoder(), self.ids(ROOM)
        self.states(decoder)
        session = self.open()
        session.step(ids[:ROOM - 2])
        with self.assertRaisesRegex(dmxrt.Error, f"the run needs {ROOM + 1} rows, of which {ROOM - 2} are there, and the session has room for {ROOM}; "):
            session.step(ids[:3])
        wanted, _ = decoder.forward(ids, decoder.empty())
        self.near(session.step(ids[ROOM - 2:]), wanted[ROOM - 2:])
        with self.assertRaisesRegex(dmxrt.Error, "rows"):
            session.step(ids[:1])

    def test_saved_states_of_others(self):
        decoder = Decoder()
        self.states(decoder)
        self.states(decoder, room=ROOM + 8, name="other")
        session, other = self.open(), self.open("other")
        other.step(self.ids(4))
        session.step(self.ids(3))
        saved = session.save_state()
        for bad, said in ((other.save_state(), "another bundle"), (saved[:-1], "damaged"), (b"x" * 200, "no saved states"), (b"", "no saved states"),
                          (saved[:80] + b"\xff" * 8 + saved[88:], "damaged")):
            with self.assertRaisesRegex(dmxrt.Error, said):
                session.load_state(bad)
        with self.assertRaisesRegex(dmxrt.Error, "different bundles"):
            session.copy_state(other)
        self.assertEqual(session.state_length()[0], 3)
        session.load_state(saved)

    def test_pairs_that_are_no_states(self):
        decoder = Decoder()
        for arguments, said in ((["past.*=present.*"], "--dim past=0..N"), (["pst.*=present.*"], "the model has no input 'pst.*'"),
                                (["past.*=present"], "both names need as many '*'"), (["past.*=logits*"], "no output 'logits"),
                                (["past.0.key=logits"], "a session holds states of fixed sizes"),
                                (["past.0.key=present.0.key", "past.0.key=present.0.value"], "a state already"),
                                (["past.0.key=present.0.value"], "a session holds states of fixed sizes")):
            room = [] if "0..N" in said else ["--dim", f"past=0..{ROOM}"]
            pairs = [word for pair in arguments for word in ("--state", pair)]
            self.assertIn(said, self.compile(decoder, *room, *pairs, code=1))

    def test_bytes_of_a_step(self):
        """No task copies or repeats a cache: attention alone reads the rows that are there, each of them once."""
        for name, form in self.DECODERS.items():
            with self.subTest(name):
                decoder = Decoder(**form)
                self.states(decoder, room=4096)
                graph = self.graph()
                step = lambda rows: sum(value(task["bytes"], {"n": 1, "past": rows, "total": rows + 1}) for task in graph["tasks"])
                row = len(NAMES) * decoder.shared * SIZE * 4
                mask = 4 * LAYERS + 40  # of a key: mask, its places
                each = (step(3000) - step(1000)) / 2000
                self.assertGreaterEqual(each, row)
                self.assertLessEqual(each, row + mask)
                self.assertLess(step(1000) - 1000 * each, 4 * (self.weights(decoder) + 20000))

    def test_room_costs_nothing(self):
        figures = []
        for room in (16, 4096):
            self.states(Decoder(), room=room)
            figures.append([[value(task[key], {"n": 1, "past": 10, "total": 11}) for key in ("bytes", "work", "flops", "scratch")]
                            for task in self.graph()["tasks"]])
        self.assertEqual(*figures)

    # --- operators that have caches of their own
    def operator(self, node, lengths, rows, *arguments):
        """Compiles a model of one node, whose caches have so many rows."""
        info, (before, behind) = onnx.info, rows
        inputs = [info("q", onnx.FLOAT, [1, "n", 64]), info("k", onnx.FLOAT, [1, "n", 32]), info("v", onnx.FLOAT, [1, "n", 32])]
        inputs += [info(f"past_{part}", onnx.FLOAT, [1, 2, before, SIZE]) for part in ("key", "value")]
        inputs += [info(name, onnx.INT32, [1]) for name in lengths]
        outputs = [info("y", onnx.FLOAT, [1, "n", 64])] + [info(f"present_{part}", onnx.FLOAT, [1, 2, behind, SIZE]) for part in ("key", "value")]
        extra = onnx.field(8, onnx.message((1, "com.microsoft"), (2, 1)))
        (self.dir / "g.onnx").write_bytes(onnx.model([node], inputs, outputs, extra=extra, opset=23))
        self.compile_file(self.dir / "g.onnx", "-t", "cpu:host", "--state", "past_*=present_*", *arguments)

    def check_operator(self, lengths):
        """Steps of some rows each against numpy."""
        numbers, session, got, at = np.random.default_rng(5), self.open(), [], 0
        q, k, v = (numbers.standard_normal((1, 9, width)).astype("f4") for width in (64, 32, 32))
        for n in (4, 1, 1, 2, 1):
            rows, at = slice(at, at + n), at + n
            told = {"last": np.array([at - 1], "i4"), "total": np.array([at], "i4")} if lengths else {}
            got.append(session(q=q[:, rows].copy(), k=k[:, rows].copy(), v=v[:, rows].copy(), **told)["y"][0])
        split = lambda x, heads: x[0].reshape(9, heads, SIZE).transpose(1, 0, 2)
        keys, values = (np.repeat(split(x, 2), 2, 0) for x in (k, v))
        scores = np.where(np.tril(np.ones((9, 9), bool)), split(q, 4) @ keys.transpose(0, 2, 1) / SIZE ** 0.5, -1e30)
        self.near(np.concatenate(got), (softmax(scores) @ values).transpose(1, 0, 2).reshape(9, 64))
        return session

    def check_in_place(self, kernels):
        """Each state is written by one task, and none is copied."""
        graph = self.graph()
        states = {i for i, buffer in enumerate(graph["buffers"]) if buffer["kind"] == "state"}
        self.assertEqual([task["name"] for task in graph["tasks"] if task["kind"] == "copy"], [])
        self.assertEqual({task["buffers"][-1] for task in graph["tasks"] if task["kernel"].endswith(kernels)}, states)

    def test_group_query_attention(self):
        """Its lengths are an input: rows are scattered into states of a fixed size, and appended to those of an open one, in place."""
        node = onnx.node("GroupQueryAttention", "q k v past_key past_value last total", "y present_key present_value", domain="com.microsoft",
                         num_heads=4, kv_num_heads=2)
        for rows, kernels, arguments in (((32, 32), "scatter", ()), (("past", "rows"), "append", ("--dim", "past=0..32"))):
            with self.subTest(kernels):
                self.operator(node, ("last", "total"), rows, *arguments)
                self.check_in_place(kernels)
                session = self.check_operator(True)
        one = lambda width: np.ones((1, 1, width), "f4")
        with self.assertRaisesRegex(dmxrt.Error, "takes no padding, so that seqlens_k must count all rows"):
            session(q=one(64), k=one(32), v=one(32), last=np.array([5], "i4"), total=np.array([10], "i4"))

    def test_attention(self):
        node = onnx.node_of("Attention", ["q", "k", "v", "", "past_key", "past_value"], "y present_key present_value", q_num_heads=4, kv_num_heads=2,
                            is_causal=1)
        self.operator(node, (), ("past", "rows"), "--dim", "past=0..32")
        self.check_in_place("append")
        self.check_operator(False)

    @staticmethod
    def weights(decoder):
        return decoder.words.size + decoder.head.size + sum(w.size for layer in decoder.layers for w in layer.values())

    def test_memory_of_a_session(self):
        decoder = Decoder()
        self.states(decoder, room=1000)
        states = [buffer for buffer in self.graph()["buffers"] if buffer["kind"] == "state"]
        self.assertEqual({(buffer["length"], buffer["axis"]) for buffer in states}, {("past", 2)})
        self.assertEqual(sum(buffer["size"] for buffer in states), 1000 * len(NAMES) * decoder.shared * SIZE * 4)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
