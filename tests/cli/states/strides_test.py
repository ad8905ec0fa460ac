#!/usr/bin/env python3
"""Caches that are inputs and outputs of a run, bound as one buffer with room for more rows, and other tensors with strides, against
numpy. Usage: strides_test.py BIN LIBDMXRT [unittest arguments]. Exit 77 where numpy is not installed."""
import ctypes
import sys
import unittest

from decoder import LAYERS, NAMES, ROOM, SIZE, WORDS, Decoder, DecoderTest, dmxrt, np, sampled, value

ROW = SIZE * 4


@sampled(2)
class Strides(DecoderTest):
    def run_on(self, session, ids, rows, past, present):
        """Runs on views: past and present are functions of a name."""
        out = {"present." + name: present(name) for name in NAMES}
        given = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, rows + len(ids)), "i8"),
                 "position_ids": np.arange(rows, rows + len(ids))[None]}
        return session.run({**given, **{"past." + name: past(name) for name in NAMES}}, out=out)["logits"][0]

    PARTS = (9, 5, 1, 1, 1, 3, 1)

    def buffers(self, decoder, room, fill=7.0):
        return {name: np.full((1, decoder.shared, room, SIZE), fill, "f4") for name in NAMES}

    def check(self, decoder, view, rows, ids):
        """That views of all rows are what numpy has."""
        _, present = decoder.forward(ids[:rows], decoder.empty())
        for name in NAMES:
            self.near(view(name)[0], present[name])

    def test_one_buffer(self):
        for name, form in self.DECODERS.items():
            for threads in (1, 2):
                with self.subTest(name, threads=threads):
                    decoder, ids, rows = Decoder(**form), self.ids(sum(self.PARTS)), 0
                    self.compile(decoder)
                    session, caches = self.open(threads=threads), self.buffers(decoder, ROOM)
                    wanted, _ = decoder.forward(ids, decoder.empty())
                    for n in self.PARTS:
                        got = self.run_on(session, ids[rows:rows + n], rows, lambda name: caches[name][:, :, :rows], lambda name: caches[name][:, :, :rows + n])
                        self.near(got, wanted[rows:rows + n])
                        rows += n
                        self.assertEqual(self.info(session).copied_bytes, 0)
                    self.check(decoder, lambda name: caches[name][:, :, :rows], rows, ids)
                    for cache in caches.values():
                        self.assertEqual(set(cache[:, :, rows:].ravel()), {7.0})  # what no row needs is as it was

    def test_two_buffers(self):
        """The rows that are there are copied, once, whatever room either has."""
        decoder, ids = Decoder(), self.ids(12)
        self.compile(decoder)
        session, wanted = self.open(), decoder.forward(ids, decoder.empty())[0]
        for rooms in ((ROOM, ROOM), (ROOM, 12), (7, ROOM), (7, 12)):
            with self.subTest(rooms):
                old, new = (self.buffers(decoder, room) for room in rooms)
                _, past = decoder.forward(ids[:7], decoder.empty())
                for name in NAMES:
                    old[name][0, :, :7] = past[name]
                got = self.run_on(session, ids[7:], 7, lambda name: old[name][:, :, :7], lambda name: new[name][:, :, :12])
                self.near(got, wanted[7:])
                self.check(decoder, lambda name: new[name][:, :, :12], 12, ids)
                self.assertEqual(self.info(session).copied_bytes, len(NAMES) * decoder.shared * 7 * ROW)

    def test_other_forms(self):
        """What no task takes as it lies: heads behind rows, every other row, rooms that differ."""
        decoder, ids = Decoder(), self.ids(12)
        self.compile(decoder)
        session, wanted = self.open(), decoder.forward(ids, decoder.empty())[0]
        rooms = iter(range(20, 100))
        forms = {"rows first": lambda: np.full((1, ROOM, decoder.shared, SIZE), 7, "f4").transpose(0, 2, 1, 3),
                 "every other": lambda: np.full((1, decoder.shared, 2 * ROOM, SIZE), 7, "f4")[:, :, ::2],
                 "columns of more": lambda: np.full((1, decoder.shared, ROOM, SIZE + 3), 7, "f4")[:, :, :, 2:-1],
                 "other rooms": lambda: np.full((1, decoder.shared, next(rooms), SIZE), 7, "f4")}
        for name, make in forms.items():
            with self.subTest(name):
                caches, rows = {name: make() for name in NAMES}, 0
                for n in (7, 1, 4):
                    got = self.run_on(session, ids[rows:rows + n], rows, lambda name: caches[name][:, :, :rows], lambda name: caches[name][:, :, :rows + n])
                    self.near(got, wanted[rows:rows + n])
                    self.assertGreaterEqual(self.info(session).copied_bytes, len(NAMES) * decoder.shared * (rows + n) * ROW)
                    rows += n
                self.check(decoder, lambda name: caches[name][:, :, :rows], rows, ids)
                for cache in caches.values():
                    self.assertEqual(set(cache[:, :, rows:].ravel()), {7.0})

    def test_outputs_left_to_the_session(self):
        """Caches of which one alone is bound, and dense ones after strided ones."""
        decoder, ids = Decoder(), self.ids(12)
        self.compile(decoder)
        session, wanted, caches = self.open(), decoder.forward(ids, decoder.empty())[0], self.buffers(decoder, ROOM)
        for name, past in decoder.forward(ids[:7], decoder.empty())[1].items():
            caches[name][0, :, :7] = past
        inputs = {"input_ids": np.array([ids[7:]]), "attention_mask": np.ones((1, 12), "i8"), "position_ids": np.arange(7, 12)[None],
                  **{"past." + name: caches[name][:, :, :7] for name in NAMES}}
        for given in ((), NAMES[:1], NAMES, (), NAMES[1:3]):
            got = session.run(inputs, out={"present." + name: caches[name][:, :, :12] for name in given})
            self.near(got["logits"][0], wanted[7:])
            self.check(decoder, lambda name: got["present." + name], 12, ids)

    def test_overlaps(self):
        decoder, ids = Decoder(), self.ids(12)
        self.compile(decoder)
        session, caches, whole = self.open(), self.buffers(decoder, ROOM), np.zeros((1, 2, ROOM, SIZE), "f4")
        first, last = NAMES[0], NAMES[-1]
        def run(past, present):
            self.run_on(session, ids[7:], 7, lambda name: past.get(name, caches[name][:, :, :7]), lambda name: present.get(name, caches[name][:, :, :12]))
        for past, present, said in (({first: whole[:, :, :7]}, {last: whole[:, :, :12]}, (f"'present.{last}'", f"'past.{first}'")),
                                    ({first: whole[:, :, 1:8]}, {first: whole[:, :, :12]}, (f"'present.{first}'", f"'past.{first}'")),
                                    ({first: whole[:, :, :14:2]}, {first: whole[:, :, :12]}, (f"'present.{first}'", f"'past.{first}'")),
                                    ({}, {first: whole[:, :, :12], last: whole[:, :, :12]}, (f"'present.{first}'", f"'present.{last}'"))):
            with self.assertRaisesRegex(dmxrt.Error, "overlaps .* in memory; bind outputs to memory of their own") as error:
                run(past, present)
            for name in said:
                self.assertIn(name, str(error.exception))
        run({}, {})  # the session goes on

    def test_bad_strides(self):
        self.compile(Decoder())
        session, whole = self.open(), np.zeros((1, 2, ROOM, SIZE), "f4")
        inputs, outputs = ([tensor.name for tensor in tensors] for tensors in (session.inputs, session.outputs))
        past, present = inputs.index("past.0.key"), outputs.index("present.0.key")
        dense = [ROOM * SIZE * 2, ROOM * SIZE, SIZE, 1]
        def bind(io, shape, strides):
            session.bind(io, past if io == dmxrt.INPUT else present, 14, shape, whole.ctypes.data, strides)
        for io in (dmxrt.INPUT, dmxrt.OUTPUT):
            bind(io, [1, 2, 8, SIZE], dense)
            for shape, strides, said in (([1, 2, 8, SIZE], [0, -ROOM * SIZE, SIZE, 1], "the stride of axis 1 is -640, and strides are not negative"),
                                         ([1, 2, 8, SIZE], [0, 7 * SIZE, SIZE, 1], "the stride of axis 1 is 112 elements, less than the 128 from the first"),
                                         ([1, 2, 8, SIZE], [0, ROOM * SIZE, 0, 1], "the stride of axis 2 is 0 elements, less than the "),
                                         ([1, 2, 8, SIZE], [0, 2 ** 62, SIZE, 1], "its strides reach over more than 63 bits"),
                                         ([2, 8, SIZE], dense, "rank is 3, expected 4"), ([1, 3, 8, SIZE], dense, "axis 1 is 3, expected 2")):
                with self.assertRaisesRegex(dmxrt.Error, said):
                    bind(io, shape, strides)
        with self.assertRaisesRegex(dmxrt.Error, "out: the array of 'logits' has the strides .* not be negative"):
            self.run_on_arrays(session, out=np.zeros((1, 3, WORDS), "f4")[:, ::-1])

    def run_on_arrays(self, session, **more):
        ids = np.arange(6)[None, ::2]  # every other
        out = {"logits": more["out"]} if more else {}
        empty = np.zeros((1, 2, 0, SIZE), "f4")
        return session.run({"input_ids": ids, "attention_mask": np.ones((1, 9), "i8")[:, ::-3], "position_ids": np.arange(3)[None, ::-1][:, ::-1],
                            **{"past." + name: empty for name in NAMES}}, out=out)["logits"]

    def test_arrays_that_are_not_dense(self):
        decoder = Decoder()
        self.compile(decoder)
        session, wanted = self.open(), decoder.forward([0, 2, 4], decoder.empty())[0]
        self.near(self.run_on_arrays(session)[0], wanted)
        room = np.full((1, 6, WORDS + 1), 7, "f4")
        got = self.run_on_arrays(session, out=room[:, 1::2, 1:])
        self.near(got[0], wanted)
        self.assertEqual(set(room[:, ::2].ravel()) | set(room[:, :, 0].ravel()), {7.0})
        with self.assertRaisesRegex(dmxrt.Error, "output 'logits' is bound with strides; read it where it is bound"):
            session.call("dmx_session_output", session.session, 0, ctypes.byref(dmxrt._View()))

    def test_bytes_of_a_step(self):
        """No task copies a cache: attention alone reads the rows that are there, each of them once, whatever room there is."""
        for name, form in self.DECODERS.items():
            with self.subTest(name):
                decoder = Decoder(**form)
                self.compile(decoder)
                graph = self.graph()
                def step(rows, room, key="bytes"):
                    return sum(value(task[key], {"n": 1, "past": rows, "total": rows + 1, "past_room": room}) for task in graph["tasks"])
                self.assertEqual([task["name"] for task in graph["tasks"] if task["kind"] == "copy"], [])
                for key in ("bytes", "work", "flops"):
                    self.assertEqual(step(10, 16, key), step(10, 4096, key))
                row = len(NAMES) * decoder.shared * ROW
                each = (step(3000, 4096) - step(1000, 4096)) / 2000
                self.assertGreaterEqual(each, row)
                self.assertLessEqual(each, row + 4 * LAYERS + 40)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
