"""dmx-generate against a loop over ONNX Runtime, 200 prompts, greedy: onnxruntime_test.py BIN [unittest arguments]. Where ONNX Runtime's two
best logits are closer than 1e-4 either token is right, and what comes behind is compared no further."""
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "models"), str(TESTS.parent / "tools/python")]
import environment

environment.enter("onnxruntime", "onnx")

import dmxrt
import fixtures
import numpy as np
import onnx
import onnxruntime
import tiny_decoder
from generate_case import BIN, PLACE, STATES, Case, answers, compiled, main, text
from sampling import sample

PROMPTS, TOKENS, CLOSE = 200, 24, 1e-4
SIZES = tiny_decoder.Sizes(layers=3, width=64, heads=8, groups=2, head=8, inner=112, vocabulary=331)


class Loop:
    """Greedy tokens with caches from run to run."""

    def __init__(self, model, names, past):
        """`past`: the shape of an empty cache."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.names = names
        self.outputs = [output.name for output in self.session.get_outputs()]
        self.inputs = [input.name for input in self.session.get_inputs()]
        self.past = {name: np.zeros(past, np.float32) for name in self.inputs if "past" in name}

    def __call__(self, prompt, count):
        """(tokens, the distance of the best logit to the next one of each)."""
        past = self.past
        ids, length, tokens, gaps = list(prompt), 0, [], []
        for _ in range(count):
            total = length + len(ids)
            inputs = {self.names.ids: np.array([ids]), self.names.mask: np.ones((1, total), np.int64),
                      self.names.positions: np.arange(length, total)[None], **past}
            inputs = {name: inputs[name] for name in self.inputs}
            outputs = dict(zip(self.outputs, self.session.run(self.outputs, inputs)))
            logits = outputs[self.names.logits][0, -1]
            past = {name: outputs[name.replace("past_key_values", "present")] for name in past}
            second, best = np.partition(logits, -2)[-2:]
            tokens.append(int(logits.argmax()))
            gaps.append(best - second)
            ids, length = [tokens[-1]], total
        return tokens, gaps


def keep_floats(file):
    """Lets ONNX Runtime multiply weights of few bits by floats, as dmxc does, and not by bytes that it rounds them to."""
    model = onnx.load(file)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "accuracy_level":
                attribute.i = 1
    onnx.save(model, file)


class OnnxRuntime(Case):
    def check(self, bundle, loop, prompts, *flags, count=TOKENS):
        given = answers(bundle, "--max-tokens", count, "--prompts", "-", "--threads", 1, *flags, stdin="\n".join(map(text, prompts)))
        self.assertEqual(len(given), len(prompts))
        equal = 0
        for prompt, answer in zip(prompts, given):
            wanted, gaps = loop(prompt, count)
            at = next((i for i in range(count) if answer[i] != wanted[i]), count)
            self.assertTrue(at == count or gaps[at] < CLOSE, f"{prompt}: token {at} of {answer} is another one than of {wanted}")
            equal += at
        print(f"{equal} of {len(prompts) * count} tokens equal; the rest comes behind two logits closer than {CLOSE}")
        self.assertGreater(equal, 0.95 * len(prompts) * count)

    def prompts(self, count, vocabulary=SIZES.vocabulary, longest=40):
        random = np.random.default_rng(9)
        return [random.integers(0, vocabulary, random.integers(1, longest)).tolist() for _ in range(count)]

    def check_tiny(self, prompts, *flags, dmxc=()):
        bundle = compiled(*dmxc, sizes=SIZES, seed=5)
        loop = Loop(bundle.with_suffix(".onnx"), tiny_decoder.NAMES["optimum"], (1, SIZES.groups, 0, SIZES.head))
        self.check(bundle, loop, prompts, *flags)

    def test_200_prompts(self):
        self.check_tiny(self.prompts(PROMPTS))

    def test_guesses(self):
        self.check_tiny(self.prompts(PROMPTS), "--lookup", 5)

    def test_states(self):
        prompts = sample(self.prompts(PROMPTS), 4)
        self.check_tiny(prompts, dmxc=STATES)
        self.check_tiny(prompts, "--lookup", 5, dmxc=STATES)

    def test_caches_bound_twice(self):
        """100 tokens with one buffer a cache, which is an input and an output of each run."""
        bundle, names = compiled(sizes=SIZES, seed=5), tiny_decoder.NAMES["optimum"]
        loop = Loop(bundle.with_suffix(".onnx"), names, (1, SIZES.groups, 0, SIZES.head))
        prompt, caches = self.prompts(1)[0], {name: np.zeros((1, SIZES.groups, 160, SIZES.head), "f4") for name in loop.past}
        wanted, gaps = loop(prompt, 100)
        ids, rows = prompt, 0
        with dmxrt.Session(bundle, threads=1, library=BIN.parent / "lib/libdmxrt.so") as session:
            for at, (token, gap) in enumerate(zip(wanted, gaps)):
                total = rows + len(ids)
                inputs = {names.ids: np.array([ids]), names.mask: np.ones((1, total), "i8"), names.positions: np.arange(rows, total)[None]}
                out = session.run({**inputs, **{name: cache[:, :, :rows] for name, cache in caches.items()}},
                                  out={name.replace("past_key_values", "present"): cache[:, :, :total] for name, cache in caches.items()})
                if gap > CLOSE:
                    self.assertEqual(int(out[names.logits][0, -1].argmax()), token, f"token {at}")
                ids, rows = [token], total
        self.assertGreater(np.count_nonzero(np.array(gaps) > CLOSE), 90)

    def test_files_of_genai(self):
        """As onnxruntime-genai's builder writes them, with sizes of heads that only the caches' outputs say."""
        for name in ("tiny-llama.genai-fp32", "tiny-llama.genai-int4", "tiny-qwen3.genai-int4"):
            folder = pathlib.Path(PLACE.name) / name
            folder.mkdir()
            meta = fixtures.unpack(fixtures.FOLDER / f"{name}.npz", folder)
            keep_floats(folder / meta["file"])
            shapes = dict(np.load(folder / "inputs_1.npz"))
            _, heads, _, head = next(value.shape for key, value in shapes.items() if "past" in key)
            subprocess.run([BIN / "dmxc", folder / meta["file"], "-q", "-o", folder / "m.bundle"], check=True, timeout=120)
            loop = Loop(folder / meta["file"], tiny_decoder.NAMES["optimum"], (1, heads, 0, head))
            vocabulary = meta["outputs_of_set"][0][0][1][-1]
            self.check(folder / "m.bundle", loop, self.prompts(20, vocabulary, 9), count=12)  # they have 24 positions


if __name__ == "__main__":
    main()
