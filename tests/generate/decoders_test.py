"""Decoders from their exporters, each compiled from its folder, against those that made them: decoders_test.py BIN LIBDMXRT [unittest arguments].
Files of torch.onnx and torch.export of three kinds (torch_decoders.py), and one of onnxruntime-genai's builder with weights of 4 bits. In a plain
run some of them and some of the prompts; exit 77 without a newer torch."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "models"), str(TESTS.parent / "tools/python")]
import environment

environment.enter("torch.export", "onnxruntime", "onnx")

BIN, LIBRARY = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
import dmxrt
import fixtures
import numpy as np
import onnx
import onnxruntime
import torch
import torch_decoders
from onnx import numpy_helper
from sampling import sample

torch.set_num_threads(1)
PLACE = tempfile.TemporaryDirectory(prefix="dmxc-decoders-")
ROOM, PROMPTS, TOKENS = 128, 200, 24
# How far logits may be off, relative to the greatest: of numbers that are rounded once a product.
MODES = {"strict": 1e-4, "int8-weights": 0.03, "bf16": 0.015}


class Eager:
    """What PyTorch says in f64."""

    def __init__(self, kind):
        self.decoder, self.words = torch_decoders.Decoder(kind).double(), torch_decoders.WORDS

    def start(self):
        self.past = self.decoder.empty()

    def step(self, ids):
        logits, self.past = self.decoder.step(ids, self.past)
        return logits


class OnnxRuntime:
    """What ONNX Runtime says of a file of genai's builder."""

    def __init__(self, file):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self.outputs = [output.name for output in self.session.get_outputs()]
        self.shapes = {value.name: [size if isinstance(size, int) else 1 for size in value.shape] for value in self.session.get_outputs()}
        self.words = self.shapes["logits"][2]

    def start(self):
        self.length = 0
        self.past = {input.name: np.zeros((1, input.shape[1], 0, self.head), np.float32)
                     for input in self.session.get_inputs() if "past" in input.name}

    def step(self, ids):
        self.length += len(ids)
        outputs = dict(zip(self.outputs, self.session.run(self.outputs, {
            "input_ids": np.array([ids]), "attention_mask": np.ones((1, self.length), np.int64), **self.past})))
        self.past = {name: outputs[name.replace("past_key_values", "present")] for name in self.past}
        return outputs["logits"][0]


def genai(folder, name):
    """A fixture with more positions than it has, whose products take floats as they are."""
    meta = fixtures.unpack(fixtures.FOLDER / f"{name}.npz", folder)
    model = onnx.load(folder / meta["file"])
    for tensor in model.graph.initializer:
        if tensor.name in ("cos_cache", "sin_cache"):
            rates = 10000.0 ** -(np.arange(tensor.dims[1]) / tensor.dims[1])
            angles = np.arange(256)[:, None] * rates
            tensor.CopyFrom(numpy_helper.from_array((np.cos if tensor.name[0] == "c" else np.sin)(angles).astype(np.float32), tensor.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "accuracy_level":
                attribute.i = 1
    onnx.save(model, folder / meta["file"])
    oracle = OnnxRuntime(folder / meta["file"])
    shapes = np.load(folder / "inputs_1.npz")
    oracle.head = next(shapes[key].shape[3] for key in shapes.files if "past" in key)
    return oracle


def made(name, folder):
    """The file of a decoder in a folder, and its oracle."""
    kind, form = name.split(" ")
    if form == "genai-int4":
        return genai(folder, f"{kind}.{form}")
    decoder = torch_decoders.Decoder(kind)
    if form == "onnx":
        torch_decoders.write_onnx(decoder, folder / "model.onnx")
    else:
        torch_decoders.write_pt2(decoder, folder / "model.pt2", form)
    return Eager(kind)


# .pt2 for one sequence, for any number of them, and as the exporter finds what is open.
NAMES = ["llama onnx", "llama pt2-one", "window onnx", "window pt2-any", "gpt2 onnx", "gpt2 pt2-auto", "llama pt2-auto", "tiny-llama genai-int4",
         "tiny-qwen3 genai-int4"]
FOLDERS, BUNDLES = {}, {}


def compiled(name, mode="strict"):
    """(bundle, oracle, what dmxc said) of a decoder."""
    if name not in FOLDERS:
        folder = pathlib.Path(PLACE.name) / name.replace(" ", "-")
        folder.mkdir()
        FOLDERS[name] = folder, made(name, folder)
        (folder / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "max_position_embeddings": ROOM}))
    folder, oracle = FOLDERS[name]
    if (name, mode) not in BUNDLES:
        bundle = folder / f"{mode}.bundle"
        done = subprocess.run([BIN / "dmxc", folder, "-o", bundle, "-t", "cpu:host", "-O0", "--numerics", mode], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        BUNDLES[name, mode] = bundle, done.stderr
    return BUNDLES[name, mode][0], oracle, BUNDLES[name, mode][1]


class Run(dmxrt.Session):
    """A session of a decoder whose caches are states; inputs are told apart by what they are, as exporters give them other names."""

    def __init__(self, bundle, threads=1):
        super().__init__(bundle, library=LIBRARY, threads=threads)

    def rows(self):
        return self.state_length()[0]

    def step(self, ids):
        rows = self.rows()
        given = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, rows + len(ids)), np.int64),
                 "position_ids": np.arange(rows, rows + len(ids))[None]}
        outputs = self({tensor.name: given[tensor.name] for tensor in self.inputs})
        return next(iter(outputs.values()))[0].astype(np.float64)


class Decoders(unittest.TestCase):
    def open(self, bundle, **options):
        session = Run(bundle, **options)
        self.addCleanup(session.close)
        return session

    def near(self, got, wanted, relative):
        self.assertEqual(got.shape, wanted.shape)
        self.assertLessEqual(np.abs(got - wanted).max(), relative * np.abs(wanted).max())

    def ids(self, oracle, count, seed=3):
        return np.random.default_rng(seed).integers(0, oracle.words, count).tolist()

    def each(self, share=4, modes=("strict",)):
        for name, mode in sample([(name, mode) for name in NAMES for mode in modes], share):
            with self.subTest(f"{name} {mode}"):
                bundle, oracle, _ = compiled(name, mode)
                oracle.start()
                yield bundle, oracle, MODES[mode]

    def test_states_by_themselves(self):
        for name in sample(NAMES, 4):
            with self.subTest(name):
                said = compiled(name)[2]
                self.assertRegex(said, rf"states: \d+ with room for {ROOM} rows")
                self.assertNotIn("warning", said)
                self.assertEqual("is for one sequence" in said, "pt2-one" not in name, said)

    def test_steps_are_a_prefill(self):
        for bundle, oracle, most in self.each(share=7, modes=MODES):
            ids, session = self.ids(oracle, 40), self.open(bundle)
            wanted, prefill = oracle.step(ids), session.step(ids)
            self.near(prefill, wanted, most)
            session.reset_state()
            parts = np.concatenate([session.step(ids[:9]), session.step(ids[9:21])] + [session.step([i]) for i in ids[21:]])
            self.near(parts, wanted, most)
            self.near(parts, prefill, most if most == MODES["bf16"] else 1e-4)  # bf16: products of few rows are not rounded
            self.assertEqual(session.state_length(), (40, ROOM))

    def test_greedy_tokens(self):
        for bundle, oracle, most in self.each(share=9, modes=MODES):
            random, session = np.random.default_rng(9), self.open(bundle)
            prompts = sample([random.integers(0, oracle.words, random.integers(1, 40)).tolist() for _ in range(PROMPTS)], 16)
            equal = close = 0
            for ids in prompts:
                oracle.start()
                session.reset_state()
                for _ in range(TOKENS):
                    wanted, got = oracle.step(ids)[-1], session.step(ids)[-1]
                    best = int(wanted.argmax())
                    if got.argmax() == best:
                        equal += 1
                    else:
                        self.assertLess(wanted[best] - wanted[got.argmax()], 2 * most * np.abs(wanted).max())
                        close += 1
                    ids = [best]
            print(f"{equal} tokens equal, {close} of logits that are closer than what the mode rounds", flush=True)
            self.assertGreater(equal, 0.8 * len(prompts) * TOKENS)

    def test_answers_of_dmx_generate(self):
        """Which finds in the bundle what it needs."""
        for bundle, oracle, most in self.each():
            prompt = self.ids(oracle, 7)
            done = subprocess.run([BIN / "dmx-generate", bundle, "--prompt", " ".join(map(str, prompt)), "--max-tokens", "20"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            logits, answer = oracle.step(prompt)[-1], [int(word) for word in done.stdout.split()]
            self.assertEqual(len(answer), 20)
            for token in answer:
                self.assertLess(logits.max() - logits[token], most * np.abs(logits).max())
                logits = oracle.step([token])[-1]

    def test_truncate_copy_save(self):
        for bundle, oracle, most in self.each():
            ids, others = self.ids(oracle, 20), self.ids(oracle, 6, seed=9)
            one, two = self.open(bundle), self.open(bundle, threads=2)
            one.step(ids)
            saved = one.save_state()
            one.truncate_state(11)
            two.copy_state(one)
            wanted = oracle.step(ids[:11] + others)[11:]
            self.near(one.step(others), wanted, most)
            self.near(two.step(others), wanted, most)
            two.load_state(saved)
            self.assertEqual(two.rows(), 20)
            oracle.start()
            self.near(two.step(others), oracle.step(ids + others)[20:], most)

    def test_sessions_interleaved(self):
        for bundle, oracle, most in self.each():
            texts = [self.ids(oracle, 6 + k, seed=k) for k in range(8)]
            sessions = [self.open(bundle) for _ in texts]
            got = [[session.step(text[:3])[-1]] for session, text in zip(sessions, texts)]
            for at in range(3, 13):
                for session, text, rows in zip(sessions, texts, got):
                    if at < len(text):
                        rows.append(session.step([text[at]])[-1])
            alone = self.open(bundle)
            for text, rows in zip(texts, got):
                alone.reset_state()
                np.testing.assert_array_equal(rows, [alone.step(text[:3])[-1], *(alone.step([i])[-1] for i in text[3:])])
                oracle.start()
                self.near(np.array(rows), oracle.step(text)[2:], most)

    def test_padding_is_refused(self):
        """Of GroupQueryAttention, whose lengths are an input."""
        bundle, oracle, _ = compiled("tiny-llama genai-int4")
        session = self.open(bundle)
        session.step([1, 2, 3])
        mask = np.array([[1, 1, 1, 0, 1]])
        with self.assertRaisesRegex(dmxrt.Error, "takes no padding"):
            session(input_ids=np.array([[4, 5]]), attention_mask=mask)
        oracle.start()
        self.near(session.step([4]), oracle.step([1, 2, 3, 4])[3:], 1e-4)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
