#!/usr/bin/python3
"""Which tests the files that changed can reach. Usage: changed_tests.py BUILD [REV]

REV: a commit; without it origin/main, or else the commit before HEAD. What lies in the working tree and in no commit counts too. A file of a
room reaches the tests of the rooms that may include it (tests/include-rules); a page, a test or a script the tests that name it, or that name what
names it; how things are built reaches all. Prints what changed and what that reaches, and writes BUILD/changed-tests/: `numbers` for ctest -I,
`tests` a name a line, `files` for tools/lint, `sanitize` and `threads` patterns for tools/sanitize, empty where nothing of it is reached."""
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "include-rules"))
import check_includes  # noqa: E402
import rooms_of_tests  # noqa: E402

# What decides how everything is built or run.
ALL = re.compile(r"^(tests/|tools/)?CMakeLists\.txt$|tools/cmake/|\.ci/|tools/(test|setup)$|\.clang-")
SCRIPTS, CODE = (".py", ".sh", ""), (".cpp", ".h", ".hpp", ".c")  # of files that name others
SANITIZED = ("runtime", "Bundle", "Format", "Size", "Queues", "BlockFp")


def git(*arguments, check=True):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=check)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def base_of(given):
    """A commit and how it was found."""
    for name in [given] if given else ["origin/main", "HEAD~"]:
        if commit := git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False):
            return commit[0], name
    sys.exit(f"changed_tests.py: {given or 'origin/main, or HEAD~'} is no commit here")


def changed_since(commit):
    return sorted(set(git("diff", "--name-only", "--no-renames", commit)) | set(git("ls-files", "--others", "--exclude-standard")))


class Tests:
    """What ctest knows, and which files each test names."""

    def __init__(self, build):
        text = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
        known = json.loads(text)
        graph = known["backtraceGraph"]
        self.numbers = {test["name"]: number for number, test in enumerate(known["tests"], 1)}
        self.words, self.homes = {}, {}  # test -> paths in its command; the folder of tests that defines it
        recipes = {path: path.read_text() for path in (ROOT / "tests").rglob("*") if path.name == "CMakeLists.txt" or path.suffix == ".cmake"}
        homes = {}
        for test in known["tests"]:
            command = test.get("command") or []
            self.words[test["name"]] = {self.in_tree(word, build) for word in command if "/" in word} - {None}
            if "backtrace" in test:
                node = graph["nodes"][test["backtrace"]]
                while "parent" in node:
                    node = graph["nodes"][node["parent"]]
                self.homes[test["name"]] = self.in_tree(graph["files"][node["file"]], build)
            elif command:
                program = pathlib.Path(command[0]).name
                if program not in homes:
                    homes[program] = next((path.relative_to(ROOT).as_posix() for path, text in recipes.items() if re.search(rf"\b{program}\b", text)), None)
                self.homes[test["name"]] = homes[program]

    @staticmethod
    def in_tree(word, build):
        """A path of a command in the tree; tests that are configured lie at the same place in the build folder."""
        path = pathlib.Path(word.split("=")[-1])
        path = path if path.is_absolute() else ROOT / path
        for base in (build, ROOT):
            if path.is_relative_to(base):
                return path.relative_to(base).as_posix()
        return None

    def naming(self, name):
        """Tests whose command names the file, or a folder that it is in."""
        return {test for test, words in self.words.items()
                if any(word == name or (name.startswith(word + "/") and word.count("/") > 0) for word in words)}

    def beside(self, name):
        """Tests that the nearest recipe above the file defines."""
        for folder in pathlib.PurePosixPath(name).parents:
            inside = {test for test, home in self.homes.items() if home and pathlib.PurePosixPath(home).parent == folder}
            if inside and str(folder) != "tests":
                return inside
        return set()


def without_words(name, text):
    """A script without what it says to people: comments and docstrings."""
    if name.endswith(CODE):
        return text
    text = re.sub(r'^[ \t]*""".*?"""', "", text, flags=re.M | re.S)
    return re.sub(r"^[ \t]*#.*$", "", text, flags=re.M)


class Names:
    """Who names a file: a script by the file's name, with its folder where that is a word or others have it too, or as a module; code where it
    includes it."""

    def __init__(self):
        files = git("ls-files")
        self.counts = collections.Counter(pathlib.PurePosixPath(file).name for file in files)
        self.texts = {name: without_words(name, (ROOT / name).read_text(errors="replace")) for name in files
                      if name.startswith(("tests/", "tools/")) and pathlib.PurePosixPath(name).suffix in SCRIPTS + CODE and (ROOT / name).is_file()
                      and not name.startswith("tests/include-rules/")}

    def naming(self, name):
        path = pathlib.PurePosixPath(name)
        word = path.name if path.suffix and self.counts[path.name] < 2 else f"{path.parent.name}/{path.name}"
        spelt = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])")
        module = re.compile(rf"^\s*(?:import|from)\b.*\b{re.escape(path.stem)}\b", re.M) if path.suffix == ".py" else None
        included = re.compile(rf'^\s*#\s*include\s*".*{re.escape(path.name)}"', re.M)
        for other, text in self.texts.items():
            if other.endswith(CODE):
                names = path.name in text and included.search(text)
            else:
                names = (word in text and spelt.search(text)) or (module and path.stem in text and module.search(text))
            if names:
                yield other


def own_tests(name, tests, names_of):
    """The tests that a page, a test or a script is of: those that name it, or what names it."""
    found, seen, names = set(), {name}, [name]
    while names:
        current = names.pop()
        found |= tests.naming(current)
        if current.endswith((*CODE, ".cmake", "CMakeLists.txt")) and current.startswith("tests/"):
            found |= tests.beside(current)
        for other in names_of.naming(current):
            if other not in seen:
                seen.add(other)
                names.append(other)
    return found or tests.beside(name)


def reached(changed, tests):
    """(tests, lines that say why)"""
    names_of = Names()
    chosen = {test for test in tests.words if rooms_of_tests.row_of(test) == ()}
    rooms, lines = set(), []
    for name in changed:
        room = check_includes.room_of_path(ROOT / name, ROOT)
        if room and not name.endswith(".md"):
            rooms.add(room)
        elif ALL.match(name):
            return set(tests.words), set(check_includes.rooms_of(ROOT)), [f"{name}: all tests"]
        else:
            own = own_tests(name, tests, names_of)
            lines.append(f"{name}: {len(own)} tests")
            chosen |= own
    for test in tests.words:
        own = rooms_of_tests.row_of(test)
        if own is None or rooms & rooms_of_tests.reach(own, ROOT):
            chosen.add(test)
    return chosen, rooms, lines + [f"rooms: {', '.join(sorted(rooms))}"] * bool(rooms)


def pattern_of(names):
    """Of the suites that the tests are of: how their names begin."""
    suites = sorted({re.match(r"[\w-]+([./][\w-]+)?", name)[0] for name in names})
    return "|".join(suite.replace(".", "[.]") for suite in suites)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    commit, name = base_of(sys.argv[2] if len(sys.argv) > 2 else None)
    changed = changed_since(commit)
    tests = Tests(build)
    chosen, rooms, lines = reached(changed, tests)
    print(f"since {name} ({commit[:7]}) {len(changed)} files changed: {len(chosen)} of {len(tests.words)} tests")
    print("".join(f"  {line}\n" for line in lines), end="")
    sanitized = {room for room in rooms if room in SANITIZED or room.startswith(("runtime/devices/", "schemas/"))}
    tested = {test for test in chosen if re.match(r"runtime|fuzz\.(bundle|aie|cuda|corsair)|unit\.(Bundle|Tools)", test)} if sanitized else set()
    threads = {test for test in tested if re.match(r"runtime\.[A-Z]", test)} if rooms & {"runtime", "runtime/devices/common", "runtime/devices/corsair"} else set()
    out = build / "changed-tests"
    out.mkdir(exist_ok=True)
    sources = [file for file in changed if file.endswith(CODE) and (ROOT / file).exists()]
    for file, text in (("numbers", ",".join(map(str, [0, 0, 0, *sorted(tests.numbers[test] for test in chosen)]))), ("tests", "\n".join(sorted(chosen))),
                       ("files", "\n".join(sources)), ("sanitize", pattern_of(tested)), ("threads", pattern_of(threads))):
        (out / file).write_text(text + "\n" * bool(text))


if __name__ == "__main__":
    main()
