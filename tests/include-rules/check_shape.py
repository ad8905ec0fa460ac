#!/usr/bin/env python3
"""The rules of the house that a reader feels: functions up to 60 lines, files up to 500, folders up to 25 sources, and READMEs that name what is there
and no more. What is above is listed below and may only shrink. Usage: check_shape.py ROOT [--self-test]"""
import os
import pathlib
import re
import sys

FUNCTION, FILE, FOLDER = 60, 500, 25
PRODUCT = ("src", "include", "frontends", "targets", "runtime", "schemas", "tools")
SOURCES = (".cpp", ".h", ".hpp", ".c", ".td", ".py")
CODE = (".cpp", ".h", ".hpp", ".c")

# Functions of more lines: tables in a function.
LONG_FUNCTIONS = {
    "frontends/onnx/contrib/Fused.cpp": ["contribFusedOps"], "frontends/onnx/ops/Quant.cpp": ["quantOps"],
    "frontends/onnx/ops/Recurrent.cpp": ["recurrentOps"], "frontends/torch/ops/Elementwise.cpp": ["binaryRows"],
    "frontends/torch/ops/Reduce.cpp": ["reduceOps"], "frontends/torch/ops/Refused.cpp": ["refusedFamilies"],
    "frontends/torch/ops/View.cpp": ["viewOps"], "runtime/devices/cuda/driver/DriverErrors.cpp": ["findDriverError"],
}
LONG_FILES = ["tests/unit/TargetsCpu/ConvTest.cpp"]
# Folders of more sources, and how many.
CROWDED = {
    "frontends/common/ops": 28, "frontends/onnx/ops": 43, "frontends/torch/ops": 29, "runtime/bundle": 30, "runtime/devices/corsair": 30,
    "runtime/devices/cuda/sim": 36, "targets/cpu/product": 28, "tests/cli": 50, "tests/conformance/contrib": 27,
    "tests/models": 40,
}
# Rooms whose README names kinds of files, not each.
UNNAMED = [
    "frontends/common", "frontends/onnx", "frontends/torch", "runtime/devices/corsair", "runtime/devices/cuda", "schemas/corsair", "src/Dialect",
    "src/Phases", "src/Reference", "targets/aie", "targets/common", "targets/corsair", "targets/cpu", "tools",
]


def functions_of(text):
    """(name, line, lines) of the functions of a formatted file: from their head to the brace that ends them."""
    lines, found, first = text.split("\n"), [], None
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if not line.strip() or line.lstrip().startswith(("//", "#", "}", "public:", "private:", "protected:")):
            first = None if not line.strip() else first
            continue
        start = first if first is not None and indent >= first[1] else (number, indent)
        indent = start[1]
        if line.endswith("{"):
            head = " ".join(part.strip() for part in lines[start[0]:number + 1])
            name = re.search(r"([\w~]+|operator\S+)\s*\(", head)
            first = None
            if not name or re.match(r"(template <.*> )?(class|struct|union|enum|namespace|extern|if|for|while|switch|else|do|try|return|case)\b", head):
                continue
            if re.search(r"[=(,]\s*\{$|\]\s*(\(.*\))?[^()]*\{$", head.split("//")[0]) and not re.search(r"\)\s*(const|noexcept|override|final|\s)*(:.*)?\{$", head):
                continue
            if "[" in head and re.search(r"\[[^\]]*\]\s*\(.*\{$", head):  # a lambda
                continue
            end = next((i for i in range(number + 1, len(lines)) if re.match(rf" {{{indent}}}\}}", lines[i]) and not lines[i].startswith(" " * (indent + 1))), number)
            found.append((name.group(1), start[0] + 1, end - start[0] + 1))
        elif line.endswith((";", "}", ":")):
            first = None
        else:
            first = start
    return found


def long_functions(name, text):
    return {(function, line, lines) for function, line, lines in functions_of(text) if lines > FUNCTION}


def listed(root):
    """Names of files in the tree; what tools leave there is none."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build")) and f not in ("__pycache__",))
        for file in sorted(files):
            yield pathlib.Path(folder, file).relative_to(root).as_posix()


def check_sizes(root, names):
    errors, used = [], set()
    for name in names:
        if not name.endswith(CODE):
            continue
        text = (root / name).read_text(errors="replace")
        lines = text.count("\n")
        if lines > FILE and name in LONG_FILES:
            used.add(name)
        elif lines > FILE:
            errors.append(f"{name}: {lines} lines; a file has up to {FILE}: part it by what it is about")
        if not name.startswith(PRODUCT):
            continue
        for function, line, count in sorted(long_functions(name, text)):
            if function in LONG_FUNCTIONS.get(name, []):
                used.add((name, function))
            else:
                errors.append(f"{name}:{line}: '{function}' has {count} lines; a function has up to {FUNCTION}: give its parts names")
    errors += [f"{name}: has up to {FILE} lines now: take it out of LONG_FILES" for name in LONG_FILES if name not in used]
    errors += [f"{name}: '{function}' has up to {FUNCTION} lines now: take it out of LONG_FUNCTIONS"
               for name, functions in LONG_FUNCTIONS.items() for function in functions if (name, function) not in used]
    return errors


def check_folders(names, crowded):
    counts = {}
    for name in names:
        if name.endswith(SOURCES):
            folder = name.rpartition("/")[0]
            counts[folder] = counts.get(folder, 0) + 1
    errors = [f"{folder}: {count} sources; a folder has up to {crowded.get(folder, FOLDER)}: give what belongs together a folder"
              for folder, count in sorted(counts.items()) if count > crowded.get(folder, FOLDER)]
    return errors + [f"{folder}: {counts.get(folder, 0)} sources now: " + ("lower it in CROWDED" if counts.get(folder, 0) > FOLDER else "take it out of CROWDED")
                     for folder, count in crowded.items() if counts.get(folder, 0) < count]


def check_readmes(root, names, unnamed):
    """Each source is named by the README above it, and each source that a README's table names is there."""
    readmes = {name.rpartition("/")[0]: (root / name).read_text() for name in names if name.endswith("README.md") and name.count("/") > 0}
    there = {name.rpartition("/")[2] for name in names}
    errors, missing = [], {}
    for name in names:
        if not name.startswith(PRODUCT) or not name.endswith(SOURCES):
            continue
        folder = name.rpartition("/")[0]
        while folder and folder not in readmes:
            folder = folder.rpartition("/")[0]
        stem = name.rpartition("/")[2].rpartition(".")[0]
        kinds = re.findall(r"(\w+)\*", readmes.get(folder, ""))  # `Validate*`
        if folder and stem != "__init__" and not stem.startswith(tuple(kinds)) and not re.search(rf"\b{re.escape(stem)}\b", readmes[folder]):
            missing.setdefault(folder, []).append(name)
    for folder, files in missing.items():
        if folder not in unnamed:
            errors += [f"{folder}/README.md does not name {file}: say there what it is" for file in files]
    errors += [f"{folder}/README.md names all of its files now: take it out of UNNAMED" for folder in unnamed if folder not in missing]
    for folder, text in readmes.items():
        for named in re.findall(r"`([\w./-]+\.(?:cpp|h|hpp|py|td))`", text):
            if named.rpartition("/")[2] not in there:
                errors.append(f"{folder}/README.md names {named}, which is not there")
    return errors


def check(root):
    names = list(listed(root))
    return check_sizes(root, names) + check_folders(names, CROWDED) + check_readmes(root, names, UNNAMED), len(names)


def self_test(root):
    body = "  x();\n" * 59
    cases = [("A::A(int x)\n    : x(x), y(g(x)) {\n" + body + "}\n", ["A"]), ("struct B {\n  B(int x)\n      : x(x) {}\n" + "  int y;\n" * 90 + "};\n", []),
             ("int f() {\n" + body + "}\n", ["f"]), ("int f() {\n" + body[:-7] + "}\n", []),
             ("class A {\n  int g(int a,\n        int b) const {\n" + body + "  }\n};\n", ["g"]), ("struct A {\n" + "  int a;\n" * 90 + "};\n", []),
             ("const int kTable[] = {\n" + "    1,\n" * 90 + "};\n", []), ("namespace {\nA::~A() {\n" + body + "}\n} // namespace\n", ["~A"]),
             ("template <typename T> void f(T t) {\n" + body + "}\n", ["f"])]
    failures = 0
    for text, expected in cases:
        if [name for name, _, _ in sorted(long_functions("src/x.cpp", text))] != expected:
            print(f"self-test: {expected}: {text[:60]!r}")
            failures += 1
    sources = [f"src/A/f{i}.cpp" for i in range(26)]
    wanted = [(check_folders(sources, {}), "src/A: 26 sources"), (check_folders(sources[:25], {}), None), (check_folders(sources, {"src/A": 26}), None),
              (check_folders(sources, {"src/A": 27}), "lower it"), (check_folders(sources[:20], {"src/A": 26}), "take it out")]
    here = pathlib.Path(__file__).resolve().parents[2]
    real = list(listed(here))
    wanted += [(check_readmes(here, [*real, "src/Bundle/Unheard.cpp"], UNNAMED), "does not name src/Bundle/Unheard.cpp"),
               (check_readmes(here, [name for name in real if name != "runtime/devices/common/CpuCount.h"], UNNAMED), "names CpuCount.h, which is not there")]
    for errors, text in wanted:
        if (text is None) != (not errors) or (text and not any(text in error for error in errors)):
            print(f"self-test: expected {text}: {errors[:3]}")
            failures += 1
    return failures


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    if "--self-test" in sys.argv:
        return 1 if self_test(root) else 0
    errors, files = check(root)
    print("\n".join(errors))
    print(f"{files} files, {len(errors)} violations")
    return 1 if errors or files < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
