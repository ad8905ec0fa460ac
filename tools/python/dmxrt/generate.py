"""Text from a bundle that is a language model: dmx-generate with a tokenizer on both sides.

    python3 -m dmxrt.generate llm.bundle --tokenizer DIR --prompt 'Once upon a time'
    python3 -m dmxrt.generate llm.bundle --tokenizer DIR --temperature 0.8 --seed 1       # a prompt a line of stdin

DIR has the tokenizer.json of the model; it is read by the package `tokenizers`. Flags that are not of this program are those of dmx-generate
(`dmx-generate --help`). Programs take ids as they come by `Generator`."""
from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from typing import Any, Iterator, Optional, Sequence

from . import Error


def find_program() -> str:
    """dmx-generate of the wheel or prefix that this file is installed in, else of PATH."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for place in ("dmxc/bin", "../../../bin"):
        path = os.path.normpath(os.path.join(folder, place, "dmx-generate"))
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("dmx-generate")
    if not found:
        raise Error("the program dmx-generate is neither installed beside this module nor in PATH; install dmxc, or name it with --program")
    return found


class Generator:
    """A dmx-generate that waits for prompts. Calls give token ids as they come.

        with Generator("llm.bundle", "--temperature", 0.8) as generate:
            for token in generate([1, 15043]):
                ...
    """

    def __init__(self, bundle: Any, *flags: Any, program: Optional[str] = None) -> None:
        command = [program or find_program(), os.fspath(bundle), "--prompts", "-", *map(str, flags)]
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise Error(f"'{command[0]}' cannot be run: {error.strerror}") from None

    def __call__(self, ids: Sequence[int]) -> Iterator[int]:
        """The tokens of an answer. All of them are to be taken before the next call. dmx-generate says itself on stderr what is wrong;
        Error then has its exit code as `status`."""
        try:
            self.process.stdin.write((" ".join(map(str, ids)) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        word = b""
        while True:
            byte = self.process.stdout.read(1)
            if byte.isdigit():
                word += byte
                continue
            if word:
                yield int(word)
                word = b""
            if byte == b"\n":
                return
            if not byte:
                code = self.process.wait()
                raise Error(f"dmx-generate ended with code {code} before its answer did", code)

    def close(self) -> None:
        if not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self) -> Generator:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind:  # nobody takes the rest of its answer
            self.process.terminate()
        self.close()


class TextStream:
    """Pieces of text, one a token or none: what is no whole character yet waits for the tokens that end it."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.ids = tokenizer, []
        self.begin = self.end = 0  # of the ids whose text is known to be whole, the last of them that were shown

    def add(self, token: int) -> str:
        self.ids.append(token)
        piece = self._behind()
        if piece.endswith("\ufffd"):
            return ""
        self.begin, self.end = self.end, len(self.ids)
        return piece

    def rest(self) -> str:
        return self._behind() if self.end < len(self.ids) else ""

    def _behind(self) -> str:
        """Text of the ids behind `end`; some before them are there for tokenizers that set a space between two."""
        shown, whole = (self.tokenizer.decode(self.ids[self.begin:end]) for end in (self.end, None))
        return whole[len(shown):]


def load_tokenizer(folder: str) -> Any:
    try:
        import tokenizers
    except ImportError:
        raise Error("text needs the package tokenizers: pip install tokenizers; dmx-generate takes token ids without it") from None
    path = os.path.join(folder, "tokenizer.json") if os.path.isdir(folder) else folder
    try:
        return tokenizers.Tokenizer.from_file(path)
    except Exception as error:  # of a class that the package does not name
        raise Error(f"'{path}' is no tokenizer.json that the package tokenizers reads: {error}") from None


def prompts_of(given: Sequence[str]) -> Iterator[str]:
    """Those of the command line, else lines of stdin, for which a terminal is asked."""
    if given:
        yield from given
        return
    while True:
        if sys.stdin.isatty():
            print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.rstrip("\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m dmxrt.generate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("bundle")
    parser.add_argument("--tokenizer", required=True, metavar="DIR", help="the model's folder, or its tokenizer.json")
    parser.add_argument("--prompt", action="append", default=[], metavar="TEXT", help="a prompt (repeatable); else lines of stdin")
    parser.add_argument("--program", metavar="FILE", help="dmx-generate, where it is not installed beside this module or in PATH")
    options, flags = parser.parse_known_args()
    try:
        tokenizer = load_tokenizer(options.tokenizer)
        with Generator(options.bundle, *flags, program=options.program) as generate:
            for prompt in prompts_of(options.prompt):
                stream = TextStream(tokenizer)
                for token in generate(tokenizer.encode(prompt).ids):
                    print(stream.add(token), end="", flush=True)
                print(stream.rest(), flush=True)
    except Error as error:
        if not error.status:
            print(f"dmxrt.generate: error: {error}", file=sys.stderr)
        return error.status if error.status > 0 else 3
    except KeyboardInterrupt:  # what was said is there; die of the signal, as programs do
        print(flush=True)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
