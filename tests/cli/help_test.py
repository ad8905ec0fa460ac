#!/usr/bin/python3
"""--help, man pages and completion say the same of every program: help_test.py BIN SOURCE [unittest arguments]."""
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN, SOURCE = map(pathlib.Path, sys.argv[1:3])
PROGRAMS = [name for name in ("dmxc", "dmx-run", "dmx-generate", "dmx-inspect", "dmx-sign", "dmx-compare") if (BIN / name).exists()]
TOPICS = {"targets": "-t ", "numerics": "--numerics", "masks": "--sparsity", "schedules": "--schedule", "dims": "--dim"}
FLAG = r"(?<![\w-])(--?[A-Za-z][\w-]*)"


def run(program, *arguments, code=0, **environment):
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | environment
    done = subprocess.run([BIN / program, *arguments], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == code, f"{program} {arguments}: exit {done.returncode}, expected {code}\n{done.stdout}{done.stderr}"
    return done.stdout if code == 0 else done.stderr


def flags_of_help(program):
    """What stands in the column of names, behind two spaces; texts are set in further."""
    lines = re.findall(r"^  (-\S+)", run(program, "--help"), re.M)
    return sorted(name for line in lines for name in line.split(","))


def flags_of_man(program):
    lines = re.findall(r"^\.TP\n(\\fB\\-.*)$", run(program, "--help=man"), re.M)
    return sorted(name.replace("\\", "") for line in lines for name in re.findall(r"\\fB(.*?)\\fR", line))


def flags_of_bash(program):
    """What bash offers for a word that is a dash."""
    script = 'source "$1"; COMP_WORDS=("$2" -); COMP_CWORD=1; "_${2//-/_}"; printf "%s\\n" "${COMPREPLY[@]}"'
    with tempfile.NamedTemporaryFile("w", suffix=".bash") as file:
        file.write(run(program, "--help=bash"))
        file.flush()
        done = subprocess.run(["bash", "-c", script, "bash", file.name, program], capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return sorted(done.stdout.split())


def flags_of_zsh(program):
    return sorted(re.findall(r"^  '(?:\*|\([^)]*\))(-[\w-]+?)[=+]?\[", run(program, "--help=zsh"), re.M))


def flags_of_fish(program):
    names = []
    for line in run(program, "--help=fish").splitlines():
        flags = line.split(" -d ")[0]
        names += ["--" + name for name in re.findall(r" -l (\S+)", flags)] + ["-" + name for name in re.findall(r" -[so] (\S+)", flags)]
    return sorted(names)


class Help(unittest.TestCase):
    def test_the_same_flags_everywhere(self):
        for program in PROGRAMS:
            flags = flags_of_help(program)
            self.assertIn("--help", flags)
            self.assertGreater(len(flags), 5)
            for other in (flags_of_man, flags_of_bash, flags_of_zsh, flags_of_fish):
                self.assertEqual(flags, other(program), f"{program}: {other.__name__}")

    def test_every_flag_that_the_sources_add_is_there(self):
        rows = {"dmxc": ["src/Driver/options/Options.cpp"], "dmx-run": ["tools/dmx-run/Flags.cpp"], "dmx-inspect": ["tools/dmx-inspect/main.cpp"], "dmx-generate": ["tools/dmx-generate/main.cpp"],
                "dmx-sign": ["tools/dmx-sign/main.cpp"], "dmx-compare": ["tools/dmx-compare/main.cpp"]}
        for program in PROGRAMS:
            text = "".join((SOURCE / file).read_text() for file in rows[program])
            added = {name for names in re.findall(r'(?:add_option|add_flag|text|list|choice|option|add_option_function<std::string>)\(\s*"(-[^"]*)"', text)
                     for name in names.split(",")}
            self.assertGreater(len(added), 3, program)
            single = {"--MD", "--MF", "--MT", "--Werror"}
            self.assertLessEqual({name[1:] if name in single else name for name in added}, set(flags_of_help(program)), program)

    def test_no_line_is_wider_than_it_may_be(self):
        for program in PROGRAMS:
            for arguments in [["--help"]] + ([["--help", topic] for topic in TOPICS] if program == "dmxc" else []):
                for width in (40, 57, 80, 100, 120):
                    lines = run(program, *arguments, COLUMNS=str(width)).splitlines()
                    self.assertLessEqual(max(map(len, lines)), width, f"{program} {arguments}: {max(lines, key=len)}")
                    self.assertFalse([line for line in lines if line != line.rstrip()])
                self.assertEqual(run(program, *arguments), run(program, *arguments, COLUMNS="80"), "a pipe gets 80 columns")
                self.assertNotEqual(run(program, *arguments), run(program, *arguments, COLUMNS="57"))

    def test_the_width_of_a_terminal(self):
        import fcntl
        import struct
        import termios
        for width in (50, 110):
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
            env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
            process = subprocess.Popen([BIN / "dmx-run", "--help"], stdout=theirs, env=env)
            os.close(theirs)
            text = b""
            try:
                while chunk := os.read(ours, 65536):
                    text += chunk
            except OSError:  # the other end is closed
                pass
            process.wait()
            os.close(ours)
            self.assertEqual(text.decode().replace("\r\n", "\n"), run("dmx-run", "--help", COLUMNS=str(width)))

    def test_texts_are_those_of_help(self):
        """Words of each option's text, however the lines are broken."""
        for program in PROGRAMS:
            page = re.sub(r"\\f.|\\(?=[-e&])", "", run(program, "--help=man"))
            options = run(program, "--help").split("\n\n")
            for paragraph in options:
                if re.match(r"\S.*:\n  -", paragraph):
                    for words in re.split(r"\n(?=  \S)", paragraph)[1:]:
                        what = " ".join(" ".join(re.split(r"\s{2,}", words.strip())[1:]).split())
                        self.assertIn(what, " ".join(page.split()), program)

    def test_man_pages_are_pages(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        for program in PROGRAMS:
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=run(program, "--help=man"), capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), program)
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
                self.assertIn(f"\n.SH {section}\n", run(program, "--help=man"))

    def test_shells_take_their_completion(self):
        for shell in ("bash", "zsh", "fish"):
            if not shutil.which(shell):
                print(f"SKIPPED: {shell} is not installed")
                continue
            for program in PROGRAMS:
                with tempfile.NamedTemporaryFile("w") as file:
                    file.write(run(program, f"--help={shell}"))
                    file.flush()
                    done = subprocess.run([shell, "-n", file.name], capture_output=True, text=True)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), f"{shell} {program}")

    def complete(self, *words, cwd=None):
        """What bash offers for the last word of a dmxc command."""
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dmxc; printf "%s\\n" "${COMPREPLY[@]}"'
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(run("dmxc", "--help=bash"))
            file.flush()
            return subprocess.run(["bash", "-c", script, "bash", file.name, "dmxc", *words], capture_output=True, text=True, check=True, cwd=cwd).stdout.split("\n")[:-1]

    def test_bash_offers_values(self):
        if "dmxc" not in PROGRAMS:
            self.skipTest("this build has no dmxc")
        self.assertEqual(self.complete("--color", ""), ["auto", "always", "never"])
        self.assertEqual(self.complete("--color", "=", "al"), ["always"])
        self.assertEqual(self.complete("--explain"), ["--explain-decisions"])
        self.assertEqual(self.complete("tun"), ["tune"])
        self.assertEqual(self.complete("m.onnx", "tun"), [""])
        self.assertEqual(self.complete("--help", "ma"), ["masks"])
        built = [line.split()[0] for line in run("dmxc", "--print-targets").splitlines() if line[:1].strip()]
        self.assertEqual(self.complete("-t", ""), built)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a model.onnx").touch()
            (pathlib.Path(folder) / "a folder").mkdir()
            self.assertEqual(sorted(self.complete("a", cwd=folder)), ["a folder", "a model.onnx"])
            self.assertEqual(self.complete("--save-temps", "a", cwd=folder), ["a folder"])

    def test_topics(self):
        if "dmxc" not in PROGRAMS:
            self.skipTest("this build has no dmxc")
        text, page = run("dmxc", "--help"), run("dmxc", "--help=man")
        for topic, word in TOPICS.items():
            self.assertIn(word, run("dmxc", "--help", topic))
            self.assertEqual(run("dmxc", "--help", topic), run("dmxc", "m.onnx", f"--help={topic}"))
            self.assertIn(topic, text)
            self.assertIn(f"\n.SH {topic.upper()}\n", page)
        self.assertEqual(run("dmxc", "-h"), text)
        self.assertEqual(run("dmxc", "tune", "--help", "-q"), text)

    def test_topics_that_there_are_not(self):
        if "dmxc" in PROGRAMS:
            self.assertIn("--help has no topic 'mask' (did you mean 'masks'?)", run("dmxc", "--help", "mask", code=2))
            self.assertRegex(run("dmxc", "--help=x", code=2), r"no topic 'x'; it has targets, .*fish \[usage\]")
        self.assertIn("--help has no topic 'mna' (did you mean 'man'?); it has man, bash, zsh, fish", run("dmx-run", "--help=mna", code=2))
        self.assertEqual(run("dmx-run", "--help", "m.bundle"), run("dmx-run", "--help"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
