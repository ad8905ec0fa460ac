#!/usr/bin/env python3
"""Decoders with caches: steps that append to states with a length (dmxc --state 'past*=present*'), against numpy and against one
prefill. Usage: caches_test.py BIN LIBDMXRT [unittest arguments]. Exit 77 where numpy is not installed. With DMXC_LONG=1 all forms of
decoders at all levels, else some at one."""
import sys
import time
import unittest

from decoder import LAYERS, LIBRARY, LONG, NAMES, ROOM, SIZE, WORDS, Decoder, DecoderTest, dmxrt, np, onnx, sampled, softmax, value


def rounded(rows, kind):
    """Values of bf16 or f16, as f64."""
    if kind == "f16":
        return rows.astype("f2").astype("f8")
    word = rows.astype("f4").view("u4")
    return ((word + 0x7FFF + ((word >> 16) & 1)) & 0xFFFF0000).astype("u4").view("f4").astype("f8")


@sampled(2)
class Caches(DecoderTest):
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

    def test_memory_of_a_session(self):
        decoder = Decoder()
        self.states(decoder, room=1000)
        states = [buffer for buffer in self.graph()["buffers"] if buffer["kind"] == "state"]
        self.assertEqual({(buffer["length"], buffer["axis"]) for buffer in states}, {("past", 2)})
        self.assertEqual(sum(buffer["size"] for buffer in states), 1000 * len(NAMES) * decoder.shared * SIZE * 4)
        session = self.open()
        session.step(self.ids(5))
        self.assertLessEqual(self.info(session).state, 1.05 * 1000 * len(NAMES) * decoder.shared * SIZE * 4)

    def test_room_takes_no_time(self):
        """A step behind 10 rows, where there is room for 16 and for 4,096: the least of many, by turns, as often as the machine is busy."""
        sessions = []
        for room in (16, 4096):
            self.states(Decoder(), room=room, name=f"of{room}")
            sessions.append(self.open(f"of{room}", threads=1))
            sessions[-1].step(self.ids(10))
        for _ in range(5):
            least = [float("inf")] * 2
            for _ in range(300):
                for i, session in enumerate(sessions):
                    session.truncate_state(10)
                    start = time.perf_counter()
                    session.step([7])
                    least[i] = min(least[i], time.perf_counter() - start)
            if least[1] <= 1.05 * least[0]:
                return
        self.fail(f"{least[1] * 1e6:.0f} us with room for 4,096 rows, {least[0] * 1e6:.0f} us for 16")


    KINDS = {"bf16": 2.0 ** -8, "f16": 2.0 ** -11}

    def test_state_types(self):
        """Of half the memory: as numpy computes with rows rounded to the type, and not as in f32."""
        for name, form in list(self.DECODERS.items())[:None if LONG else 1]:
            for kind, step in self.KINDS.items():
                with self.subTest(name, kind=kind):
                    decoder, ids = Decoder(**form), self.ids(23)
                    self.states(decoder, "--state-type", kind)
                    buffers = [buffer for buffer in self.graph()["buffers"] if buffer["kind"] == "state"]
                    self.assertEqual({buffer["dtype"] for buffer in buffers}, {kind})
                    self.assertEqual(sum(buffer["size"] for buffer in buffers), ROOM * len(NAMES) * decoder.shared * SIZE * 2)
                    exact, _ = decoder.forward(ids, decoder.empty())
                    decoder.rounded = lambda rows: rounded(rows, kind)
                    wanted, _ = decoder.forward(ids, decoder.empty())
                    session = self.open()
                    got = np.concatenate([session.step(ids[:9])] + [session.step([i]) for i in ids[9:]])
                    self.near(got, wanted, step)  # a row that lies between two numbers may become either
                    self.assertGreater(np.abs(got - exact).max(), 4 * np.abs(got - wanted).max())
                    saved = session.save_state()
                    session.reset_state()
                    session.load_state(saved)
                    self.assertEqual(session.state_length()[0], 23)
                    self.assertLess(len(saved), 1000 + 23 * len(NAMES) * decoder.shared * SIZE * 2)

    def test_state_types_are_read_as_they_lie(self):
        """No task casts a cache: a step reads half the bytes of the rows that are there."""
        def step(rows):
            return sum(value(task["bytes"], {"n": 1, "past": rows, "total": rows + 1}) for task in self.graph()["tasks"])
        for name, form in list(self.DECODERS.items())[:None if LONG else 1]:
            for kind, size in (("f32", 4), ("bf16", 2), ("f16", 2)):
                with self.subTest(name, kind=kind):
                    decoder = Decoder(**form)
                    self.states(decoder, "--state-type", kind, room=4096)
                    each, row = (step(3000) - step(1000)) / 2000, len(NAMES) * decoder.shared * SIZE * size
                    self.assertGreaterEqual(each, row)
                    self.assertLessEqual(each, row + 4 * LAYERS + 40)

    def test_state_types_refused(self):
        decoder = Decoder()
        self.assertIn("--state-type bf16 is for states with a length, and there are none; give --state", self.compile(decoder, "--state-type", "bf16", code=1))
        self.assertIn("'i8' is not one of bf16, f16, f32", self.compile(decoder, "--state-type", "i8", code=2))
        self.assertIn("--state-type is for model files", self.compile(decoder, "--state-type", "f16", "--from", "frontend", code=2))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
