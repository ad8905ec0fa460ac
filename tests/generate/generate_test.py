"""dmx-generate against the same network in numpy, and what it says of misuse: generate_test.py BIN [unittest arguments]."""
import json
import os
import pathlib
import signal
import subprocess
import time

import numpy as np
from generate_case import BIN, PLACE, STATES, Case, answers, compiled, main, run, text
from tiny_decoder import NAMES, Reference, Sizes

CLOSE = 1e-4  # logits that rounding may swap
STRANGE = ("--ids", "what", "--mask", "keep", "--positions", "where", "--logits", "scores_of_next", "--cache", "memory_*=remembered_*")


def prompts_of(count, seed, longest=12):
    random = np.random.default_rng(seed)
    return [random.integers(0, Sizes().vocabulary, random.integers(1, longest)).tolist() for _ in range(count)]


class Answers(Case):
    def check(self, prompt, answer, reference, count):
        """Each id is the best one behind those before it, or as good as that."""
        self.assertEqual(len(answer), count)
        ids = list(prompt)
        for at, token in enumerate(answer):
            logits = reference.logits(ids)
            self.assertLess(logits.max() - logits[token], CLOSE, f"{prompt}: {answer}: token {at} should be {logits.argmax()}")
            ids.append(token)

    def test_the_best_tokens(self):
        prompts = prompts_of(20, 1)
        given = answers(compiled(), "--max-tokens", 24, "--prompts", "-", stdin="\n".join(map(text, prompts)))
        self.assertEqual(len(given), len(prompts))
        for prompt, answer in zip(prompts, given):
            self.check(prompt, answer, Reference(), 24)
        self.assertGreater(len(set(map(str, given))), 15, "answers differ from prompt to prompt")

    def test_names_of_exporters(self):
        for names in NAMES:
            flags = STRANGE if names == "strange" else ()
            for answer in answers(compiled(names=names), "--prompt", "5 6 7", "--max-tokens", 12, *flags):
                self.check([5, 6, 7], answer, Reference(), 12)
        self.assertEqual(answer, answers(compiled(names="strange"), "--prompt", "5 6 7", "--max-tokens", 12, *STRANGE[:6])[0], "the rest by its order")

    def test_masks_of_pairs_and_decoders_of_both_kinds(self):
        for options in ({"mask_kind": "added"}, {"mask_kind": "bools"}, {"branch": True}):
            answer = answers(compiled(**options), "--prompt", "5 6 7", "--max-tokens", 12, "--lookup", 2)[0]
            self.check([5, 6, 7], answer, Reference(), 12)

    def test_without_caches(self):
        bundle = compiled(caches=False)
        out, err = run(bundle, "--prompt", "5 6 7", "--max-tokens", 12)
        self.check([5, 6, 7], list(map(int, out.split())), Reference(), 12)
        self.assertIn("the bundle has no caches", err)
        self.assertEqual(run(bundle, "--prompt", "5 6 7", "--max-tokens", 12, "-q")[1], "")

    def test_caches_of_one_size(self):
        """From run to run, and as states of the session; forgotten before the next prompt."""
        names = [f"past_key_values.{layer}.{part}" for layer in (0, 1) for part in ("key", "value")]
        states = [word for name in names for word in ("--state", f"{name}={name.replace('past_key_values', 'present')}")]
        for flags in ((), states):
            bundle = compiled(*flags, room=24)
            for prompt, answer in zip(([5, 6, 7], [8, 9]), answers(bundle, "--prompt", "5 6 7", "--prompt", "8 9", "--max-tokens", 12)):
                self.check(prompt, answer, Reference(), 12)
            out = json.loads(run(bundle, "--prompt", "5 6 7", "--json", "-")[0])["answers"][0]
            self.assertEqual((len(out["ids"]), out["ending"]), (22, "context"))

    def test_states_with_a_length(self):
        """The tokens of caches from run to run, prompt by prompt in one session, up to the room."""
        bundle, prompts = compiled(*STATES), prompts_of(20, 1)
        lines = "\n".join(map(text, prompts))
        given = answers(bundle, "--max-tokens", 24, "--prompts", "-", stdin=lines)
        self.assertEqual(given, answers(compiled(), "--max-tokens", 24, "--prompts", "-", stdin=lines))
        self.check(prompts[-1], given[-1], Reference(), 24)
        file = pathlib.Path(PLACE.name) / "states.json"
        self.assertEqual(given, answers(bundle, "--max-tokens", 24, "--prompts", "-", "--lookup", 4, "--json", file, stdin=lines))
        said = json.loads(file.read_text())
        self.assertLess(said["decode"]["runs"], 0.95 * said["decode"]["tokens"])
        self.assertEqual((said["prefill"]["runs"], said["prefill"]["tokens"]), (20, sum(map(len, prompts))))
        for count, tokens in ((3, 62), (64, 1)):  # the last of them is not computed
            out = json.loads(run(bundle, "--prompt", text(range(count)), "--json", "-")[0])["answers"][0]
            self.assertEqual((len(out["ids"]), out["ending"]), (tokens, "context"))
        self.refused(2, ["the prompt has 65 tokens", "takes 64 in all", "dmxc --dim"], bundle, "--prompt", text(range(65)))
        mixed = compiled("--state", "past_key_values.0.*=present.0.*", "--dim", "past=0..64")
        self.refused(1, ["some caches are states", "'past_key_values.1.key'", "dmxc --state"], mixed, "--prompt", "1")

    def test_a_token_in_a_run(self):
        """Compiled for single tokens a prompt takes as many runs."""
        bundle = compiled("--dim", "n=1")
        file = pathlib.Path(PLACE.name) / "one.json"
        given = answers(bundle, "--prompt", "5 6 7", "--max-tokens", 12, "--json", file)
        self.check([5, 6, 7], given[0], Reference(), 12)
        self.assertEqual(json.loads(file.read_text())["prefill"]["runs"], 3)
        self.refused(2, ["--lookup", "one token in a run"], bundle, "--prompt", "5", "--lookup", 3)

    def test_prompts_from_everywhere(self):
        file = pathlib.Path(PLACE.name) / "prompts.txt"
        file.write_text("[5, 6, 7]\n\n  8,9 \r\n10")
        given = answers(compiled(), "--prompt", "3 4", "--prompts", file, "--max-tokens", 4)
        self.assertEqual(given, [answers(compiled(), "--prompt", ids, "--max-tokens", 4)[0] for ids in ("3 4", "5 6 7", "8 9", "10")])
        random = answers(compiled(), "--random-prompt", 9, "--seed", 4, "--max-tokens", 4)
        self.assertEqual(random, answers(compiled(), "--random-prompt", 9, "--seed", 4, "--max-tokens", 4))

    def test_a_line_is_answered_before_the_next_one_comes(self):
        process = subprocess.Popen([BIN / "dmx-generate", compiled(), "--prompts", "-", "--max-tokens", "3"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        for _ in range(2):
            process.stdin.write("5 6\n")
            process.stdin.flush()
            self.assertEqual(len(process.stdout.readline().split()), 3)
        process.stdin.close()
        self.assertEqual(process.wait(10), 0)
        process.stdout.close()

    def test_guesses_change_nothing(self):
        file = pathlib.Path(PLACE.name) / "guesses.json"
        prompts = "\n".join(map(text, prompts_of(12, 2)))
        plain = answers(compiled(), "--prompts", "-", "--max-tokens", 40, stdin=prompts)
        for most in (1, 4, 9):
            self.assertEqual(plain, answers(compiled(), "--prompts", "-", "--max-tokens", 40, "--lookup", most, "--json", file, stdin=prompts))
            decode = json.loads(file.read_text())["decode"]
            self.assertLess(decode["runs"], 0.9 * decode["tokens"], "answers of small networks repeat themselves")
        self.assertEqual(plain, answers(compiled(caches=False), "-q", "--prompts", "-", "--max-tokens", 40, "--lookup", 4, stdin=prompts))

    def test_what_ends_an_answer(self):
        whole = answers(compiled(), "--prompt", "5 6 7", "--max-tokens", 20)[0]
        end = next(i for i in range(3, 20) if whole[i] not in whole[:i])
        for flags, ids, ending in (((), whole, "length"), (("--stop", whole[end]), whole[:end], "stop"), (("--stop", 96, "--stop", whole[end]), whole[:end], "stop"),
                                   (("--context", 3 + end - 1), whole[:end], "context"), (("--max-tokens", 0), [], "length")):
            most = () if "--max-tokens" in flags else ("--max-tokens", 20)
            out, _ = run(compiled(), "--prompt", "5 6 7", "--json", "-", *most, *flags)
            answer = json.loads(out)["answers"][0]
            self.assertEqual((answer["prompt"], answer["ids"], answer["ending"]), ([5, 6, 7], ids, ending), flags)

    def test_bounds_of_the_bundle(self):
        bundle = compiled("--dim", "n=1..4", "--dim", "past=0..7", "--dim", "total=1..8")
        whole = answers(compiled(), "--prompt", "5 6 7", "--max-tokens", 20)[0]
        out, _ = run(bundle, "--prompt", "5 6 7", "--json", "-")
        answer = json.loads(out)["answers"][0]
        self.assertEqual((answer["ids"], answer["ending"]), (whole[:6], "context"))  # the last of them is not computed
        longer = answers(bundle, "--prompt", "1 2 3 4 5 6", "--max-tokens", 2)  # in two runs
        self.assertEqual(longer, answers(compiled(), "--prompt", "1 2 3 4 5 6", "--max-tokens", 2))
        self.refused(2, ["the prompt has 9 tokens", "takes 8 in all"], bundle, "--prompt", "1 2 3 4 5 6 7 8 9")


class Choices(Case):
    def test_a_seed_repeats(self):
        flags = ("--temperature", 1, "--max-tokens", 30)
        same = [answers(compiled(), "--prompt", "5 6", "--prompt", "7", *flags, "--seed", 3) for _ in range(2)]
        self.assertEqual(*same)
        self.assertNotEqual(same[0], answers(compiled(), "--prompt", "5 6", "--prompt", "7", *flags, "--seed", 4))
        seeds = {json.loads(run(compiled(), "--prompt", "5", *flags, "--json", "-")[0])["answers"][0]["seed"] for _ in range(3)}
        self.assertEqual(len(seeds), 3, "without one each run has its own")
        seed = seeds.pop()
        self.assertEqual(answers(compiled(), "--prompt", "5", *flags, "--seed", seed), answers(compiled(), "--prompt", "5", *flags, "--seed", seed))

    def first_tokens(self, count, *flags):
        """How often each token comes first, of prompts that are one."""
        counts = np.zeros(Sizes().vocabulary)
        for (token,) in answers(compiled(), "--prompts", "-", "--max-tokens", 1, "--seed", 11, *flags, stdin="5 6 7\n" * count):
            counts[token] += 1
        return counts

    def check_shares(self, counts, shares):
        """Within five standard deviations of a binomial each."""
        count = counts.sum()
        self.assertTrue((counts[shares == 0] == 0).all(), "a token that must not come")
        self.assertTrue((np.abs(counts - count * shares) < 5 * np.sqrt(count * shares * (1 - shares)) + 1).all(), (counts, count * shares))

    def test_tokens_come_as_often_as_they_are_likely(self):
        logits = Reference().logits([5, 6, 7])

        def shares(values):
            values = np.exp(values - values.max())
            return values / values.sum()

        self.check_shares(self.first_tokens(4000, "--temperature", 1), shares(logits))
        self.check_shares(self.first_tokens(2000, "--temperature", 2.5), shares(logits / 2.5))
        best = np.argsort(-logits)
        among = np.where(np.isin(np.arange(97), best[:4]), logits, -np.inf)
        self.check_shares(self.first_tokens(2000, "--temperature", 1, "--top-k", 4), shares(among))
        before = np.concatenate(([0], np.cumsum(shares(logits)[best])[:-1]))
        among = np.where(np.isin(np.arange(97), best[before < 0.7]), logits, -np.inf)
        self.assertGreater(np.isfinite(among).sum(), 2)
        self.check_shares(self.first_tokens(2000, "--temperature", 1, "--top-p", 0.7), shares(among))

    def test_the_penalty(self):
        ids, reference = [5, 6, 7], Reference()
        for _ in range(20):
            logits = reference.logits(ids)
            seen = np.unique(ids)
            logits[seen] = np.where(logits[seen] > 0, logits[seen] / 1.7, logits[seen] * 1.7)
            ids.append(int(logits.argmax()))
        given = answers(compiled(), "--prompt", "5 6 7", "--max-tokens", 20, "--repetition-penalty", 1.7)[0]
        self.assertEqual(given, ids[3:])
        self.assertNotEqual(given, answers(compiled(), "--prompt", "5 6 7", "--max-tokens", 20)[0])


class Refusals(Case):
    def test_prompts(self):
        bundle = compiled()
        self.refused(2, ["the token id 97 is outside of the vocabulary, 0 to 96"], bundle, "--prompt", "5 97")
        self.refused(2, ["-:2: the token id -1"], bundle, "--prompts", "-", stdin="\n-1\n")
        self.refused(2, ["'five' is no token id"], bundle, "--prompt", "five")
        self.refused(2, ["there is no token id"], bundle, "--prompt", " ")
        self.refused(2, ["no prompt was given"], bundle)
        self.refused(2, ["the prompt has 3 tokens", "takes 2 in all"], bundle, "--prompt", "1 2 3", "--context", 2)
        self.refused(3, ["cannot read '/nowhere'"], bundle, "--prompts", "/nowhere")

    def test_bundles(self):
        self.refused(1, ["'past_key_values.1.value'", "'present.1.value', is missing", "--cache"], compiled(drop=("present.1.value",)), "--prompt", "1")
        self.refused(1, ["no decoder of tokens", "no output is logits", "--logits"], compiled(drop=("logits",)), "--prompt", "1")
        self.refused(1, ["may both be the token ids", "--ids"], compiled(names="strange"), "--prompt", "1")
        self.refused(1, ["cannot be empty", "dmxc --dim past=0..N"], compiled("--dim", "past=1..9"), "--prompt", "1")
        self.refused(1, ["at least 4 tokens in a run"], compiled("--dim", "n=4"), "--prompt", "1")
        self.refused(3, ["/nowhere.bundle"], "/nowhere.bundle", "--prompt", "1")
        digits = pathlib.Path(__file__).resolve().parents[2] / "tools/digits/digits.onnx"
        bundle = pathlib.Path(PLACE.name) / "digits.bundle"
        subprocess.run([BIN / "dmxc", digits, "-q", "-o", bundle], check=True)
        self.refused(1, ["no decoder of tokens", "'image'", "--ids"], bundle, "--prompt", "1")
        self.refused(1, ["is a model, not a bundle"], digits, "--prompt", "1")

    def test_flags(self):
        bundle = compiled()
        self.refused(2, ["--ids input_idz", "did you mean 'input_ids'?"], bundle, "--prompt", "1", "--ids", "input_idz")
        self.refused(2, ["--cache a*=b", "one * on both sides"], bundle, "--prompt", "1", "--cache", "a*=b")
        self.refused(2, ["no such input"], bundle, "--prompt", "1", "--cache", "a.*=b.*")
        self.refused(2, ["'presnt.0.key', which is not there"], bundle, "--prompt", "1", "--cache", "past_key_values.*=presnt.*")
        self.refused(2, ["--top-k", "--temperature"], bundle, "--prompt", "1", "--top-k", 3)
        for flag in ("--temperature", "--top-p", "--repetition-penalty"):
            self.refused(2, [f"{flag} is no number"], bundle, "--prompt", "1", flag, "nan")
        self.refused(2, ["--lookup"], bundle, "--prompt", "1", "--lookup", 3, "--temperature", 1)
        self.refused(2, ["--stop", "--ignore-stop"], bundle, "--prompt", "1", "--stop", 3, "--ignore-stop")


class Endings(Case):
    def interrupted(self, number):
        """(code, stdout, JSON) of a run that a signal ends once it has said something."""
        file = pathlib.Path(PLACE.name) / "interrupted.json"
        process = subprocess.Popen([BIN / "dmx-generate", compiled(), "--prompts", "-", "--max-tokens", "10000000", "--json", file],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(b"5 6 7\n")
        process.stdin.flush()
        begun = os.read(process.stdout.fileno(), 64)
        time.sleep(0.1)
        process.send_signal(number)
        rest = process.stdout.read()
        process.stdin.close()
        process.stdout.close()
        return process.wait(20), (begun + rest).decode(), json.loads(file.read_text())

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            code, out, said = self.interrupted(number)
            self.assertEqual(code, -number, "it dies of the signal")
            ids = [int(word) for word in out.split()]
            self.assertTrue(out.endswith("\n"))
            self.assertGreater(len(ids), 10)
            self.assertEqual((said["answers"][0]["ids"], said["answers"][0]["ending"]), (ids, "interrupted"))
            self.assertEqual(ids[:5], answers(compiled(), "--prompt", "5 6 7", "--max-tokens", 5)[0])

    def test_a_signal_while_it_waits(self):
        process = subprocess.Popen([BIN / "dmx-generate", compiled(), "--prompts", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(b"5\n")
        process.stdin.flush()
        line = process.stdout.readline()
        self.assertEqual(len(line.split()), 128)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), -signal.SIGINT)
        process.stdin.close()
        process.stdout.close()

    def test_a_reader_that_went_away(self):
        process = subprocess.Popen([BIN / "dmx-generate", compiled(), "--prompt", "5", "--max-tokens", "10000000"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        os.read(process.stdout.fileno(), 16)
        process.stdout.close()
        self.assertEqual(process.wait(20), 3)
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()


class Figures(Case):
    def test_a_benchmark(self):
        file = pathlib.Path(PLACE.name) / "figures.json"
        out, _ = run(compiled(), "--random-prompt", 20, "--seed", 1, "--max-tokens", 11, "--benchmark", "--json", file, "--threads", 1)
        self.assertRegex(out, r"^weights 0\.\d MB, 1 thread on cpu x86-64-v\d\nprefill +20 tokens in 1 run, [\d.]+ tokens/s, [\d.]+ GB/s")
        self.assertRegex(out, r"\ndecode +10 tokens in 10 runs, [\d.]+ tokens/s, [\d.]+ GB/s \(caches 0\.\d MB a run\)\n$")
        said = json.loads(file.read_text())
        decode = said["decode"]
        self.assertAlmostEqual(decode["tokens_per_s"], decode["tokens"] * 1000 / decode["ms"], places=3)
        states = json.loads(run(compiled(*STATES), "--prompt", text(range(20)), "--max-tokens", 11, "--json", "-")[0])
        token = 2 * Sizes().layers * Sizes().groups * Sizes().head * 4  # bytes of a token in the caches
        moved = sum((past + past + 1) * token for past in range(20, 30))
        self.assertAlmostEqual(decode["gb_per_s"], (10 * said["constant_bytes"] + moved) / 1e6 / decode["ms"], places=6)
        moved = sum((past + 1) * token for past in range(20, 30))  # a run reads those before and writes its own
        decode = states["decode"]
        self.assertAlmostEqual(decode["gb_per_s"], (10 * states["constant_bytes"] + moved) / 1e6 / decode["ms"], places=6)


if __name__ == "__main__":
    main()
