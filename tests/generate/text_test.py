"""`python3 -m dmxrt.generate`: text by a tokenizer whose tokens are bytes: text_test.py BIN [unittest arguments]. Needs the package tokenizers."""
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import environment

environment.enter("tokenizers", "onnx")

import tokenizers
from generate_case import BIN, PLACE, Case, answers, compiled, main, text
from tiny_decoder import Sizes
from tokenizers import decoders, models, pre_tokenizers

MODULES = pathlib.Path(__file__).resolve().parents[2] / "tools/python"
SIZES = Sizes(vocabulary=260)  # bytes, and words with a space before them
WORDS = [" the", "Ä", "€", " 日本"]


def tokenizer():
    """A folder with tokenizer.json. Most tokens are a byte of UTF-8, so that characters come in pieces."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(word)[0][0] for word in WORDS]
    made = tokenizers.Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(alphabet + words)}, merges=[]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    folder = pathlib.Path(PLACE.name) / "tokenizer"
    folder.mkdir(exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    return folder, made


class Text(Case):
    def command(self, *arguments):
        return [sys.executable, "-m", "dmxrt.generate", compiled(sizes=SIZES), "--tokenizer", tokenizer()[0], "--program", BIN / "dmx-generate",
                *map(str, arguments)]

    def start(self, *arguments, **options):
        env = {**os.environ, "PYTHONPATH": str(MODULES), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}
        return subprocess.Popen(self.command(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, **options)

    def say(self, *arguments, stdin="", code=0):
        process = self.start(*arguments)
        out, err = process.communicate(stdin.encode(), timeout=120)
        self.assertEqual(process.returncode, code, err.decode())
        return out.decode() if code == 0 else err.decode()

    def test_text_in_and_out(self):
        _, made = tokenizer()
        prompts = ["Once upon", "naïve €", "日本 x"]
        ids = answers(compiled(sizes=SIZES), "--prompts", "-", "--max-tokens", 60, "--temperature", 1, "--seed", 2,
                      stdin="\n".join(text(made.encode(prompt).ids) for prompt in prompts))
        wanted = "".join(made.decode(answer) + "\n" for answer in ids)
        flags = ("--max-tokens", 60, "--temperature", 1, "--seed", 2)
        self.assertEqual(self.say(*flags, stdin="\n".join(prompts)), wanted)
        self.assertEqual(self.say(*flags, *(word for prompt in prompts for word in ("--prompt", prompt))), wanted)
        self.assertIn("\ufffd", wanted, "bytes by chance are no characters, which is said as decode says it")

    def test_characters_in_pieces(self):
        sys.path.insert(0, str(MODULES))
        from dmxrt.generate import TextStream
        _, made = tokenizer()
        said = "a€ naïve 日本語 🙂 the end"
        stream = TextStream(made)
        pieces = [stream.add(token) for token in made.encode(said).ids]
        self.assertEqual("".join(pieces) + stream.rest(), said)
        self.assertNotIn("\ufffd", "".join(pieces))
        self.assertIn("€", pieces, "a character comes whole with the last of its bytes")

    def test_refusals(self):
        self.assertIn("the prompt has 9 tokens", self.say("--prompt", "nine char", "--context", 3, code=2))
        self.assertIn("unknown flag '--seeed'", self.say("--prompt", "x", "--seeed", 3, code=2))
        self.assertEqual(self.say("--prompt", "x", "--tokenizer", "/nowhere", code=3).count("\n"), 1)
        self.assertIn("'/nowhere' cannot be run", self.say("--prompt", "x", "--program", "/nowhere", code=3))

    def test_interrupted(self):
        process = self.start("--prompt", "x", "--max-tokens", 10000000, start_new_session=True)
        begun = os.read(process.stdout.fileno(), 1)
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, err), (-signal.SIGINT, b""))
        self.assertGreater(len(begun + out), 20)


if __name__ == "__main__":
    main()
