#!/usr/bin/env python3
"""Pastes every command of README.md and of each page that it links to, in order, in a checkout where only tools/demo ran.

    readme_test.py REPO BUILD [--list]

Commands are the lines of ```sh blocks; so are those of ```python blocks. All run in one shell, whose folder is a copy of the checkout: what is
tracked, by links, and a folder build with what the target `installable` makes (tools/demo builds that and no more). A command with a note
"takes minutes" or "needs ..." in its comment is not run, and its page shows why; "exit code N" is what it must end with. A line of a linked page
that looks like a command and is in no such block fails: nobody would run it."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

REPO, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
LEFT_OUT = re.compile(r"# (?:takes minutes|needs root|needs a GPU|needs a full build|needs the network)\b")
COMMAND = re.compile(r"^(?: {4}|\$ )(?:\w+=\S+ )*(?:build/bin/|dmxc |dmx-[a-z]+ |cmake |ninja |ctest |tools/|tests/|pip |g?cc |python3? |make |sudo )")
MARK = "@@@"


def pages():
    """README.md, then the pages it links to, in the order of the links."""
    found = [REPO / "README.md"]
    for link in re.findall(r"\]\(([^)#:]+)\)", found[0].read_text()):
        page = REPO / link
        page = page / "README.md" if page.is_dir() else page
        assert page.is_file(), f"README.md links to '{link}', which is not there"
        if page.suffix == ".md" and page not in found:
            found.append(page)
    return found


def commands(page):
    """(line, command) of a page; lines that end in a backslash are joined, a whole Python block is one command."""
    found, block, text, start = [], None, [], 0
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            if block == "python" and text:
                found.append((start, "python3 - <<'END'\n" + "\n".join(text) + "\nEND"))
            block = None if block is not None else line[3:].strip()
            text, start = [], number + 1
            left_out = ""
        elif block == "python":
            text.append(line)
        elif block == "sh" and line.startswith("#"):  # a note on all that follows in the block
            left_out = line if LEFT_OUT.match(line) else ""
        elif block == "sh" and line.strip():
            text.append(line)
            if not line.endswith("\\"):
                found.append((number, "\n".join(text) + (f"  {left_out}" if left_out else "")))
                text = []
        elif block is None and COMMAND.match(line):
            sys.exit(f"{page.relative_to(REPO)}:{number}: a command outside of a ```sh block, which no test runs: {line.strip()}")
    return found


def make_checkout(folder):
    """What is tracked, and build/ after tools/demo."""
    for entry in REPO.iterdir():
        if not entry.name.startswith(("build", ".")):
            (folder / entry.name).symlink_to(entry)
    build = folder / "build"
    (build / "bin").mkdir(parents=True)
    made = subprocess.run(["ninja", "-C", BUILD, "-t", "query", "installable"], capture_output=True, text=True, check=True).stdout.split()
    for name in made:
        if name.startswith("bin/"):
            (build / name).symlink_to(BUILD / name)
    # The install rules copy from the real build folder: what they copied must be among what is made (check_installed).
    (build / "cmake_install.cmake").symlink_to(BUILD / "cmake_install.cmake")
    (build / "CMakeCache.txt").symlink_to(BUILD / "CMakeCache.txt")
    return tuple(pathlib.Path(name).name for name in made if name.startswith(("bin/", "lib/")))


def run(shell, command):
    """The exit code and output of a command in the shell."""
    shell.stdin.write(f"{{\n{command}\n}} < /dev/null\ncode=$?; echo; echo {MARK} $code\n")
    shell.stdin.flush()
    output = []
    for line in shell.stdout:
        if line.startswith(MARK):
            return int(line.split()[1]), "".join(output)
        output.append(line)
    sys.exit(f"the shell ended at: {command}\n{''.join(output)}")


def check_installed(folder, made):
    """Programs and libraries of the prefix are of what tools/demo makes."""
    for path in (folder / "build/prefix").rglob("*"):
        if path.parent.name in ("bin", "lib") and path.is_file() and not path.is_symlink():
            assert path.name.startswith(made), f"{path.name} is installed, and tools/demo does not make it (the target installable)"
    for name in ("bin/dmxc", "lib/libdmxrt.so", "lib/libdmxrt.a", "include/dmx/dmx.hpp", "lib/python3/dist-packages/dmxrt/__init__.py"):
        assert (folder / "build/prefix" / name).exists(), f"{name} was not installed"


def main():
    missing = [name for name in ("bin/dmxc", "lib/libdmxrt.so", "bin/dmx-sign") if not (BUILD / name).exists()]
    if missing:
        print(f"skipped: this build lacks {', '.join(missing)}")
        return 77
    ran, left_out, failed = 0, [], []
    with tempfile.TemporaryDirectory(prefix="dmxc-readme-") as place:
        folder = pathlib.Path(place)
        made = make_checkout(folder)
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PATH": f"/usr/bin:{os.environ['PATH']}"}  # Debian's Python has numpy
        for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "DMXRT_LIBRARY", "PKG_CONFIG_PATH"):
            env.pop(name, None)
        shell = subprocess.Popen(["bash"], cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 errors="replace")
        for page in pages():
            for line, command in commands(page):
                where = f"{page.relative_to(REPO)}:{line}"
                if LEFT_OUT.search(command):
                    left_out.append(where)
                    print(f"not run  {where}: {command}", flush=True)
                    continue
                start = time.monotonic()
                code, output = run(shell, command)
                wanted = re.search(r"exit code (\d+)", command)
                good = code == (int(wanted[1]) if wanted else 0) and "Left out:" not in output
                print(f"{'ok' if good else 'FAILED':8} {where}: {time.monotonic() - start:.1f} s: {command.splitlines()[0]}", flush=True)
                ran += 1
                if not good:
                    failed.append(where)
                    print(f"exit code {code}\n{output}")
                elif "cmake --install build --prefix \"$PWD/build/prefix\"" in command:
                    check_installed(folder, made)
                elif "build/digits" in command and "| head -n 3" in command or "/digits.bundle | head" in command:
                    digits = [word for word in output.split() if word.isdigit()]
                    assert digits == truth(3), f"{where} prints {digits}, the first images are {truth(3)}"
        shell.stdin.close()
        shell.wait()
    print(f"{ran} commands ran, {len(left_out)} were not run, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    assert ran > 40, "README.md and its pages have more commands than that"
    return 1 if failed else 0


def truth(count):
    """The labels of the first test images."""
    import numpy
    return [str(label) for label in numpy.load(REPO / "tools/digits/labels.npy")[:count]]


if __name__ == "__main__":
    if "--list" in sys.argv:
        for page in pages():
            for line, command in commands(page):
                print(f"{page.relative_to(REPO)}:{line}: {command}")
        sys.exit(0)
    sys.exit(main())
