"""dmx-generate against a loop over ONNX Runtime, 200 prompts, greedy: onnxruntime_test.py BIN [unittest arguments]. Where ONNX Runtime's two
best logits are closer than 1e-4 either token is right, and what comes behind is compared no further."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import environment

environment.enter("onnxruntime", "onnx")

import numpy as np
import onnxruntime
import tiny_decoder
from generate_case import PLACE, Case, answers, compiled, main, text

PROMPTS, TOKENS, CLOSE = 200, 24, 1e-4
SIZES = tiny_decoder.Sizes(layers=3, width=64, heads=8, groups=2, head=8, inner=112, vocabulary=331)


class Loop:
    """Greedy tokens with caches from run to run."""

    def __init__(self, model, names):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.names = names
        self.outputs = [output.name for output in self.session.get_outputs()]
        self.pasts = [input.name for input in self.session.get_inputs()][3:]

    def __call__(self, prompt, count):
        """(tokens, the distance of the best logit to the next one of each)."""
        past = {name: np.zeros((1, SIZES.groups, 0, SIZES.head), np.float32) for name in self.pasts}
        ids, length, tokens, gaps = list(prompt), 0, [], []
        for _ in range(count):
            total = length + len(ids)
            inputs = {self.names.ids: np.array([ids]), self.names.mask: np.ones((1, total), np.int64),
                      self.names.positions: np.arange(length, total)[None], **past}
            outputs = dict(zip(self.outputs, self.session.run(self.outputs, inputs)))
            logits = outputs[self.names.logits][0, -1]
            past = {name: outputs[name.replace("past_key_values", "present")] for name in self.pasts}
            second, best = np.partition(logits, -2)[-2:]
            tokens.append(int(logits.argmax()))
            gaps.append(best - second)
            ids, length = [tokens[-1]], total
        return tokens, gaps


class OnnxRuntime(Case):
    def check(self, flags, prompts):
        bundle = compiled(sizes=SIZES, seed=5)
        loop = Loop(bundle.with_suffix(".onnx"), tiny_decoder.NAMES["optimum"])
        given = answers(bundle, "--max-tokens", TOKENS, "--prompts", "-", "--threads", 1, *flags, stdin="\n".join(map(text, prompts)))
        self.assertEqual(len(given), len(prompts))
        equal = 0
        for prompt, answer in zip(prompts, given):
            wanted, gaps = loop(prompt, TOKENS)
            at = next((i for i in range(TOKENS) if answer[i] != wanted[i]), TOKENS)
            self.assertTrue(at == TOKENS or gaps[at] < CLOSE, f"{prompt}: token {at} of {answer} is another one than of {wanted}")
            equal += at
        print(f"{equal} of {len(prompts) * TOKENS} tokens equal; the rest comes behind two logits closer than {CLOSE}")
        self.assertGreater(equal, 0.95 * len(prompts) * TOKENS)

    def prompts(self, count):
        random = np.random.default_rng(9)
        return [random.integers(0, SIZES.vocabulary, random.integers(1, 40)).tolist() for _ in range(count)]

    def test_200_prompts(self):
        self.check((), self.prompts(PROMPTS))

    def test_guesses(self):
        self.check(("--lookup", 5), self.prompts(PROMPTS))


if __name__ == "__main__":
    main()
