"""What packages of all kinds share: the version, dates, what ELF files need."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ["dmxc", "dmx-run", "dmx-generate", "dmx-inspect", "dmx-sign"]
PROGRAMS = [*BUILT, "dmx-compare"]  # which is a link to dmxc
SUMMARY = "ahead-of-time compiler for machine-learning models"
# What every Linux has that has this C library; all else goes into the wheel.
OF_EVERY_SYSTEM = ["libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "libgcc_s.so.1", "libstdc++.so.6"]
# The newest that Debian 12 has: a build on a newer system is refused.
NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}


def fail(text):
    sys.exit(f"tools/package: error: {text}")


def run(*command, **keywords):
    """A command's stdout; what goes wrong is said in its words."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, **keywords)
    if done.returncode:
        fail(f"'{' '.join(map(str, command))}' failed with exit code {done.returncode}; its messages are above")
    return done.stdout


def version(root=ROOT):
    text = (root / "include/dmx/dmx.h").read_text()
    return ".".join(re.findall(r"#define DMX_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def epoch():
    """Seconds since 1970 that files in packages have: SOURCE_DATE_EPOCH, else the last commit's."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None and shutil.which("git") and (ROOT / ".git").exists():
        given = run("git", "-C", ROOT, "log", "-1", "--format=%ct").strip()
    if given is None or not given.isdigit():
        fail(f"SOURCE_DATE_EPOCH is '{given}'; set it to the seconds since 1970 that the files in packages are to have" if given is not None else
             "there is no git history to take a date from; set SOURCE_DATE_EPOCH to the seconds since 1970 that the files in packages are to have")
    return int(given)


def changes(root=ROOT):
    """[(version, text)] of CHANGELOG.md."""
    parts = re.split(r"^## (\S+).*$", (root / "CHANGELOG.md").read_text(), flags=re.M)
    return list(zip(parts[1::2], (part.strip() for part in parts[2::2])))


def debian_changelog(package, maintainer, when):
    """CHANGELOG.md in the form of Debian's changelogs."""
    text = ""
    for number, what in changes():
        points = re.findall(r"^- (.*(?:\n  .*)*)", what, re.M)
        text += f"{package} ({number}) unstable; urgency=medium\n\n"
        text += "".join(textwrap.fill(" ".join(point.split()), 78, initial_indent="  * ", subsequent_indent="    ", break_on_hyphens=False) + "\n" for point in points)
        text += f"\n -- {maintainer}  {time.strftime('%a, %d %b %Y %H:%M:%S +0000', time.gmtime(when))}\n\n"
    return text


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path):
    """The libraries that an ELF file names."""
    return re.findall(r"^\s*NEEDED\s+(\S+)", run("objdump", "-p", path), re.M)


def symbol_versions(text):
    """{"GLIBC": the newest tuple of it, ...} of what objdump -T prints."""
    newest = {}
    for name, number in re.findall(r"\b(GLIBC|GLIBCXX|CXXABI|GCC)_(\d[\d.]*)", text):
        value = tuple(int(part) for part in number.split(".") if part)
        newest[name] = max(newest.get(name, ()), value)
    return newest


def check_symbols(versions, file):
    """Refuses what asks for a newer library than the packages promise."""
    for name, value in versions.items():
        if value > NEWEST[name]:
            fail(f"{file} needs {name}_{'.'.join(map(str, value))}, newer than {name}_{'.'.join(map(str, NEWEST[name]))}, which packages are for; "
                 "build on Debian 12 or an older system")


def found_libraries(path):
    """{name: file} of all libraries that a program would be loaded with."""
    text = run("ldd", path)
    missing = re.findall(r"^\s*(\S+) => not found", text, re.M)
    if missing:
        fail(f"{path} needs {', '.join(missing)}, which this machine lacks")
    return {name: pathlib.Path(file) for name, file in re.findall(r"^\s*(\S+) => (/\S+)", text, re.M)}


def package_of(path):
    """The Debian package that a file is of."""
    for name in (path, path.resolve(), pathlib.Path("/usr") / path.relative_to("/"), pathlib.Path("/usr") / path.resolve().relative_to("/")):
        done = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    fail(f"no Debian package has '{path}': its licence is not known; install the library from Debian")
