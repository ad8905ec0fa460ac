#!/usr/bin/env python3
"""Checks "Who may include whom" of the architecture: check_includes.py ROOT [--target DIR | --self-test]

Each room has the list of what its files may include; anything else of ours, or a library that the room must not know, is an
error with file, line and rule. --target checks the targets of a folder outside the tree, which mirrors it, and that the tree does
not know their names. --self-test feeds it violations and expects each to be found.
"""
import functools
import os
import pathlib
import re
import sys

# Libraries by the first part of an include.
LIBRARIES = {"mlir": "mlir", "llvm": "llvm", "lld": "lld", "google": "protobuf", "onnx": "onnx", "spdlog": "spdlog", "CLI": "CLI11",
             "nlohmann": "json", "sodium.h": "sodium", "triton": "triton"}

# room -> (folders that make it, rooms it may include, libraries it may use)
ROOMS = {
    "Format": (["schemas/BundleFormat.h"], [], []),  # the bundle's names, for both its readers
    "Size": (["schemas/Size.h"], [], []),  # sizes that cannot wrap, for whoever reads what others wrote
    "BlockFp": (["schemas/blockfp"], [], []),  # block floating point, the same bits everywhere
    "Queues": (["schemas/queues"], ["Size"], ["json"]),  # programs of queues, for machines without an instruction set
    "Machines": (["schemas/machines"], [], ["json"]),  # described machines, whose figures have a source
    "runtime": (["runtime", "include/dmx"], ["Format", "Size"], ["sodium"]),
    "runtime/devices/common": (["runtime/devices/common"], ["runtime", "Queues", "BlockFp", "Size"], []),
    "runtime/serving": (["runtime/serving"], ["runtime"], ["json", "triton"]),  # over dmx.h, as any program
    "Support": (["src/Support", "include/dmxc/Support"], [], ["json"]),
    "Bundle": (["src/Bundle", "include/dmxc/Bundle"], ["Format", "Size", "Support"], ["json"]),
    "Tools": (["src/Tools", "include/dmxc/Tools"], ["Format", "Size", "Support", "Bundle", "runtime"], ["json", "CLI11", "onnx", "sodium"]),
    "Dialect": (["src/Dialect", "include/dmxc/Dialect"], ["Support"], ["mlir", "llvm"]),
    "Reference": (["src/Reference", "include/dmxc/Reference"], ["Dialect", "Support", "BlockFp"], ["mlir", "llvm"]),
    "Target": (["src/Target", "include/dmxc/Target"], ["Dialect", "Support"], ["mlir", "llvm"]),
    "Phases": (["src/Phases", "include/dmxc/Phases"], ["Reference", "Dialect", "Target", "Bundle", "Support"], ["mlir", "llvm"]),
    "Driver": (["src/Driver", "include/dmxc/Driver"],
               ["Phases", "Reference", "Dialect", "Target", "Bundle", "Support", "Tools"],
               ["mlir", "llvm", "spdlog", "CLI11", "json"]),
}
# What both model formats share knows neither's libraries.
FRONTEND_COMMON_MAY = (["Dialect", "Support"], ["mlir", "llvm"])
FRONTEND_MAY = (["frontends/common", "Dialect", "Support"], ["mlir", "llvm", "json"])
FRONTEND_LIBRARIES = {"onnx": ["protobuf", "onnx"]}  # of one format
# A target X may include schemas/X too, what its two halves share.
TARGET_MAY = (["targets/common", "Dialect", "Target", "Support"], ["mlir", "llvm", "lld", "json"])
DEVICE_MAY = (["runtime/devices/common", "runtime", "Format", "Queues", "BlockFp", "Size"], [])
SCHEMA_MAY = (["Queues", "Machines", "BlockFp", "Size"], ["json"])
# Words of the processor that dmxc itself runs on.
ONE_PROCESSOR = re.compile(r"x86|psabi|\b(?:sse|avx|f16c|bmi|fma3|amx|popcnt|lzcnt)[0-9]*|vnni|\b[xyz]mm\b|vpdpb|pmadd|\bzen\b|intel|"
                           r"\bamd\b|aarch64|\bneon\b|\bsve\b|nvptx|cuda", re.IGNORECASE)
# Folders that may include a room which the rest of their own room may not: DMIR has the block_fp type.
FOLDER_MAY = {"src/Dialect/DMIR": ["BlockFp"], "include/dmxc/Dialect/DMIR": ["BlockFp"], "targets/corsair": ["BlockFp"],
              "targets/common/queues": ["Queues"]}
# The rooms of a target outside the tree: folder, what each may include besides the target's schemas, libraries.
OUTSIDE = {"targets": (TARGET_MAY[0] + ["Queues", "BlockFp"], TARGET_MAY[1]),
           "runtime/devices": DEVICE_MAY, "schemas": SCHEMA_MAY}
TOOL_MAX_LINES = 200

# Words that only one target has, in ops, enums, tables and strings. Core code has none of them, comments aside.
CORE = ("Phases", "Driver", "Reference", "Dialect", "Target", "Bundle", "Support")
TARGET_WORDS = {"corsair": r"corsair|affine_?ext|lldmir|dmmq|num_?imc|ppr_?mode|(?<![a-z])quads?(?![a-z])",
                "cpu": ONE_PROCESSOR.pattern,
                "aie": r"(?<![a-z])aie(?![a-z])|mem(?:ory)?_?tile|(?<![a-z])shim(?![a-z])",
                "cuda": r"cuda|nvptx|nvvm|\bptx|\bsm_\d|hopper|nvidia"}
# What is for any target has not even these, nor in comments.
COMMON_WORDS = re.compile("|".join([*TARGET_WORDS.values(), r"(?<![a-z])cpu(?![a-z])|CpuTarget"]), re.IGNORECASE)
# Files that still have words of one target; what is listed and no longer there is an error, so that the list only shrinks.
STILL_OF_ONE_TARGET = {
    "aie": [],
    "corsair": [],
    "cpu": ["src/Support/Sha256.cpp"],  # code for the processor that dmxc itself runs on
    "cuda": [],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


@functools.cache
def rooms_of(root):
    rooms = dict(ROOMS)
    named = {folder for folders, _, _ in ROOMS.values() for folder in folders}
    for kind, (may, libraries) in (("schemas", SCHEMA_MAY), ("frontends", FRONTEND_MAY), ("targets", TARGET_MAY), ("runtime/devices", DEVICE_MAY)):
        for folder in sorted(path for path in (root / kind).glob("*") if path.is_dir()):
            room, shared = f"{kind}/{folder.name}", f"schemas/{folder.name}"
            if room not in named and (kind != "schemas" or any(folder.glob("*.h"))):
                own = [shared] if kind in ("targets", "runtime/devices") and (root / shared).is_dir() else []
                rooms[room] = ([room], may + own, libraries)
    rooms["frontends/common"] = (["frontends/common"], *FRONTEND_COMMON_MAY)
    for name, libraries in FRONTEND_LIBRARIES.items():
        folders, may, others = rooms[f"frontends/{name}"]
        rooms[f"frontends/{name}"] = (folders, may, others + libraries)
    return rooms


def room_of_path(path, root):
    """The room that a path is in, the innermost one; None outside of all."""
    name, best, found = path.relative_to(root).as_posix() if path.is_relative_to(root) else "", "", None
    for room, (folders, _, _) in rooms_of(root).items():
        for folder in folders:
            if (name == folder or name.startswith(folder + "/")) and len(folder) > len(best):
                best, found = folder, room
    return found


def room_of_include(name, includer, root):
    """The room an include belongs to, "lib:<library>", or None for the standard library and the file's own folder."""
    parts = name.split("/")
    if parts[0] == "dmxc":
        return parts[1]
    if name == "dmx/dmx_kernel.h":
        return None  # the one header that compiler and runtime share
    if parts[0] == "dmx":
        return "runtime"
    if parts[0] in ("frontends", "targets", "runtime", "schemas"):
        return room_of_path(root / name, root) or "/".join(parts[:2])
    if ".." in parts:
        return room_of_path(pathlib.Path(os.path.normpath(includer.parent / name)), root) or "lib:a path out of every room"
    if len(parts) > 1 and (includer.parent / name).exists():
        return room_of_path(includer.parent / name, root)  # a folder beside the file
    for kind in ("frontends", "targets"):
        if (root / kind / parts[0]).is_dir() and len(parts) > 1 and (root / kind / name).exists():
            return f"{kind}/{parts[0]}"
    if parts[0] in LIBRARIES and not (includer.parent / name).exists():
        return "lib:" + LIBRARIES[parts[0]]
    return None


def check_text(room, may, libraries, path, text, root):
    errors = []
    may = may + [other for folder, rooms in FOLDER_MAY.items() if path.is_relative_to(root / folder) for other in rooms]
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = room_of_include(match.group(1), path, root)
        if target is None or target == room:
            continue
        if target.startswith("lib:"):
            if target[4:] not in libraries:
                errors.append(f"{path}:{number}: {room} may not use {target[4:]} ({match.group(1)})")
        elif target not in may:
            errors.append(f"{path}:{number}: {room} may not include {target} ({match.group(1)})")
    return errors


def names_targets(room, path, text, root):
    """Core code names no target: a quoted target name in a core room."""
    if room not in ("Phases", "Driver", "Reference", "Dialect"):
        return []
    names = [folder.name for folder in (root / "targets").glob("*") if folder.is_dir() and folder.name != "common"]
    code = re.sub(r"//.*", "", text)
    return [f"{path}: {room} names the target '{name}'" for name in names if f'"{name}"' in code]


def common_words(room, path, text):
    """A word of one target in the room of all."""
    if room != "targets/common":
        return []
    return [f"{path}:{number}: targets/common has '{found.group()}', a word of one target"
            for number, line in enumerate(text.splitlines(), 1) for found in COMMON_WORDS.finditer(line)]


def target_words(room, path, text, root, used):
    """Core code has no op, enum, table or string that only one target has; adds (target, file) of known ones to used."""
    if room not in CORE:
        return []
    errors = []
    name = path.relative_to(root).as_posix()
    for number, line in enumerate(text.splitlines(), 1):
        for target, words in TARGET_WORDS.items():
            match = re.search(words, line.split("//")[0], re.IGNORECASE)
            if match and name in STILL_OF_ONE_TARGET[target]:
                used.add((target, name))
            elif match:
                errors.append(f"{path}:{number}: {room} has '{match.group()}', a word of the target {target} alone")
    return errors


def stale_words(used):
    return [f"{name} has no word of the target {target} any more: take it out of STILL_OF_ONE_TARGET"
            for target, names in STILL_OF_ONE_TARGET.items() for name in names if (target, name) not in used]


def check_outside(root, outside):
    """The files of targets outside the tree, and the tree's that name one of them."""
    errors, files = [], 0
    names = sorted(folder.name for folder in (outside / "targets").glob("*") if folder.is_dir())
    for name in names:
        for kind, (may, libraries) in OUTSIDE.items():
            for path in sorted((outside / kind / name).rglob("*")):
                if path.suffix in (".h", ".hpp", ".cpp", ".c", ".td"):
                    files += 1
                    errors += check_text(f"{kind}/{name}", may + [f"schemas/{name}"], libraries, path, path.read_text(), root)
        for room in ("src", "include", "runtime", "targets", "schemas", "frontends", "tools"):
            errors += [f"{path}: names the target {name}, which lies outside the tree" for path in sorted((root / room).rglob("*"))
                       if path.is_file() and re.search(rf"\b{name}", path.read_text(errors="replace"), re.IGNORECASE)]
    if not names:
        errors.append(f"{outside}: there is no folder targets/NAME")
    return errors, files


def self_test_outside(root):
    """Rules of a target outside the tree."""
    cases = [("targets", '#include "runtime/devices/Device.h"', 1), ("targets", '#include "dmxc/Phases/Phases.h"', 1),
             ("targets", '#include "targets/cpu/x.h"', 1), ("targets", '#include "schemas/mine/x.h"', 0),
             ("targets", '#include "schemas/other/x.h"', 1), ("targets", '#include "targets/common/queues/QueueCode.h"', 0),
             ("runtime/devices", '#include "dmxc/Support/Result.h"', 1), ("runtime/devices", "#include <llvm/ADT/StringRef.h>", 1),
             ("runtime/devices", '#include "runtime/devices/Device.h"', 0), ("runtime/devices", '#include "runtime/devices/common/Shadow.h"', 0),
             ("runtime/devices", '#include "runtime/devices/cpu/CpuPlan.h"', 1), ("runtime/devices", CORSAIR, 1),
             ("runtime/devices", "#include <nlohmann/json.hpp>", 1), ("runtime/devices", '#include "schemas/mine/x.h"', 0),
             ("runtime/devices", '#include "targets/mine/x.h"', 1), ("schemas", '#include "dmxc/Support/Result.h"', 1),
             ("schemas", '#include "runtime/Error.h"', 1), ("schemas", '#include "schemas/queues/Program.h"', 0)]
    failures = 0
    for kind, line, expected in cases:
        may, libraries = OUTSIDE[kind]
        path = pathlib.Path("/elsewhere") / kind / "mine" / "x.cpp"
        if len(check_text(f"{kind}/mine", may + ["schemas/mine"], libraries, path, line, root)) != expected:
            print(f"self-test: {kind} of a target outside: {line}: expected {expected} errors")
            failures += 1
    return failures


def check(root):
    errors, files, used = [], 0, set()
    for room, (folders, may, libraries) in rooms_of(root).items():
        for folder in folders:
            for path in sorted((root / folder).rglob("*")):
                if path.suffix not in (".h", ".cpp", ".c", ".td") or not path.is_file() or room_of_path(path, root) != room:
                    continue
                files += 1
                text = path.read_text(errors="replace")
                errors += check_text(room, may, libraries, path, text, root) + names_targets(room, path, text, root)
                errors += common_words(room, path, text)
                errors += target_words(room, path, text, root, used)
    errors += stale_words(used)
    for main in sorted((root / "tools").glob("*/main.cpp")):
        lines = len(main.read_text().splitlines())
        if lines > TOOL_MAX_LINES:
            errors.append(f"{main}: {lines} lines; a tool's main stays under {TOOL_MAX_LINES}: move logic into a library")
    return errors, files


CORSAIR = '#include "schemas/corsair/Isa.h"'
BLOCKFP = '#include "schemas/blockfp/BlockFormat.h"'
QUEUES = '#include "schemas/queues/Program.h"'
SIZE = '#include "schemas/Size.h"'


def self_test(root):
    here = root / "x.cpp"
    bad = [("runtime", '#include "dmxc/Support/Result.h"'), ("runtime", "#include <triton/core/tritonbackend.h>"), ("runtime", "#include <llvm/ADT/StringRef.h>"),
           ("runtime", "#include <spdlog/spdlog.h>"), ("Support", '#include "dmxc/Dialect/DMIR/DMIR.h"'),
           ("Bundle", '#include "mlir/IR/Builders.h"'), ("Dialect", '#include "dmxc/Phases/Phases.h"'),
           ("Phases", '#include "dmxc/Driver/Options.h"'), ("frontends/onnx", '#include "dmxc/Phases/Phases.h"'),
           ("frontends/onnx", '#include "frontends/torch/reader/Schema.h"'), ("frontends/mlir", '#include "frontends/onnx/Dims.h"'),
           ("frontends/common", '#include "frontends/onnx/Dims.h"'), ("frontends/common", "#include <onnx/onnx_pb.h>"),
           ("frontends/torch", '#include "frontends/onnx/OnnxOperators.h"'), ("frontends/torch", "#include <onnx/onnx_pb.h>"),
           ("frontends/common", "#include <google/protobuf/arena.h>"), ("frontends/common", "#include <nlohmann/json.hpp>"),
           ("targets/cpu", '#include "dmxc/Phases/Codegen.h"'), ("targets/common", '#include "targets/cpu/code/IsaLevel.h"'),
           ("targets/cpu", '#include "targets/corsair/CorsairTarget.h"'), ("Phases", '#include "targets/common/roots/Plans.h"'),
           ("Bundle", '#include "../Driver/Work.h"'),
           ("targets/cpu", CORSAIR), ("Phases", CORSAIR), ("Dialect", CORSAIR), ("Support", CORSAIR), ("Reference", CORSAIR),
           ("BlockFp", CORSAIR), ("Phases", QUEUES), ("targets/common", QUEUES), ("Queues", CORSAIR), ("targets/cpu", BLOCKFP), ("Dialect", BLOCKFP), ("Phases", BLOCKFP), ("Phases", SIZE), ("BlockFp", SIZE), ("BlockFp", '#include "dmx/dmx.h"'),
           ("schemas/corsair", '#include "dmxc/Support/Result.h"'), ("schemas/corsair", '#include "dmx/dmx.h"'),
           ("schemas/corsair", "#include <llvm/ADT/APInt.h>"), ("runtime", '#include "../../schemas/elsewhere/x.h"'),
           # A session, and what devices share, know none of them; no device knows another one or what that shares with the compiler.
           ("runtime", '#include "runtime/devices/cpu/CpuDevice.h"'), ("runtime", '#include "../devices/corsair/Card.h"'),
           ("runtime", '#include "runtime/devices/common/Shadow.h"'), ("runtime", CORSAIR), ("runtime", QUEUES), ("runtime", BLOCKFP),
           ("runtime", "#include <nlohmann/json.hpp>"), ("runtime/devices/common", CORSAIR),
           ("runtime/devices/common", '#include "runtime/devices/cpu/CpuPlan.h"'), ("runtime/devices/cpu", CORSAIR),
           ("runtime/devices/cpu", '#include "runtime/devices/corsair/Card.h"'), ("runtime/devices/corsair", '#include "../cpu/CpuPlan.h"'),
           ("runtime/devices/corsair", "#include <sodium.h>"), ("Phases", '#include "runtime/devices/Device.h"'),
           ("targets/corsair", '#include "runtime/devices/corsair/Card.h"')]
    inside = {"Bundle": root / "src" / "Bundle" / "x.cpp", "schemas/corsair": root / "schemas" / "corsair" / "x.cpp",
              "Dialect": root / "src" / "Dialect" / "DLIR" / "x.cpp", "runtime": root / "runtime" / "session" / "x.cpp",
              "runtime/devices/common": root / "runtime" / "devices" / "common" / "x.cpp",
              "runtime/devices/cpu": root / "runtime" / "devices" / "cpu" / "x.cpp",
              "runtime/devices/corsair": root / "runtime" / "devices" / "corsair" / "x.cpp"}
    good = [("runtime", '#include "dmx/dmx.h"'), ("targets/cpu", '#include "dmx/dmx_kernel.h"'), ("targets/cpu", '#include "targets/common/roots/Plans.h"'),
            ("frontends/torch", '#include "frontends/common/Emitter.h"'), ("frontends/onnx", "#include <onnx/onnx_pb.h>"),
            ("frontends/common", '#include "dmxc/Support/Dim.h"'),
            ("targets/common", '#include "dmxc/Dialect/DMIR/DMIR.h"'), ("Phases", "#include <vector>"),
            ("schemas/corsair", '#include "Isa.h"'), ("schemas/corsair", CORSAIR), ("Reference", BLOCKFP), ("schemas/corsair", BLOCKFP),
            ("runtime", '#include "runtime/devices/Device.h"'), ("runtime", '#include "../bundle/Graph.h"'),
            ("runtime", SIZE), ("Bundle", SIZE), ("Queues", SIZE), ("schemas/corsair", SIZE), ("runtime/devices/corsair", SIZE),
            ("runtime/devices/common", QUEUES), ("runtime/devices/common", BLOCKFP), ("runtime/devices/cpu", BLOCKFP),
            ("runtime/devices/cpu", QUEUES), ("runtime/devices/cpu", '#include "runtime/devices/common/CpuCount.h"'),
            ("runtime/devices/corsair", CORSAIR), ("runtime/devices/corsair", '#include "runtime/bundle/Manifest.h"'),
            ("runtime/devices/corsair", '#include "Card.h"'), ("targets/corsair", CORSAIR)]
    granted = [("Dialect", "src/Dialect/DMIR/x.cpp", BLOCKFP), ("Dialect", "include/dmxc/Dialect/DMIR/x.h", BLOCKFP),
               ("targets/corsair", "targets/corsair/x.cpp", BLOCKFP),
               ("targets/common", "targets/common/queues/x.cpp", QUEUES)]
    rooms, failures = rooms_of(root), 0
    for expected, cases in ((1, bad), (0, good)):
        for room, line in cases:
            _, may, libraries = rooms[room]
            if len(check_text(room, may, libraries, inside.get(room, here), line, root)) != expected:
                print(f"self-test: {room}: {line}: expected {expected} errors")
                failures += 1
    for room, path, line in granted:
        _, may, libraries = rooms[room]
        if check_text(room, may, libraries, root / path, line, root):
            print(f"self-test: {path}: {line}: expected no error")
            failures += 1
    if not names_targets("Phases", here, 'x = "cpu";', root):
        print("self-test: a core room naming a target was not found")
        failures += 1
    for word in ("LLVMInitializeX86Target();", "// for AVX-512", "isa.hasVnni", "llvm.x86.sse2.pmadd.wd", "x86-64-v3", "a zmm register",
                 "emission of one CPU kernel", "CpuTarget::refuses", "corsair::kUnit", "Value quad();", "// of all quads", "numImc", "num_imc",
                 "LLDMIRDialect", "ppr_mode", "a shim", "memTile", "nvvm.barrier0", "as Hopper's"):
        if not common_words("targets/common", here, word) or common_words("targets/cpu", here, word):
            print(f"self-test: {word}: expected in rooms of one target alone")
            failures += 1
    for word in ("mlir::isa<dmir::SoftmaxOp>(op)", "the assembler", "passes", "wave", "max(a, x)", "several vectors", "quadratic", "a shimmer"):
        if common_words("targets/common", here, word):
            print(f"self-test: {word}: is of no target alone")
            failures += 1
    return failures + self_test_words(root) + self_test_outside(root)


def self_test_words(root):
    """A word of one target is found in code of the core and nowhere else, and a permission nobody needs is an error."""
    core, failures = root / "src" / "Phases" / "x.cpp", 0
    cases = [("Phases", core, "enum class Unit { ImcArray, NumImc };", 1), ("Phases", core, 'help("-t x86-64-v4");', 1),
             ("Dialect", core, 'def DLIR_X : DLIR_Op<"ppr_mode">', 1), ("Driver", core, "int quads = 4;", 1),
             ("Phases", core, "unsigned memTiles;", 1), ("Target", core, 'add("shim");', 1), ("Phases", core, "bool shimmers;", 0),
             ("Driver", core, "int quadratic = 4; // not quads", 0), ("Phases", core, "assert(avxLevel);", 1),
             ("Driver", core, 'level == "sm_90a"', 1), ("Driver", core, "// as CUDA's", 0),
             ("targets/cpu", root / "targets" / "cpu" / "x.cpp", "int avx512;", 0),
             ("Support", root / "src" / "Support" / "Sha256.cpp", "bool hasX86();", 0)]
    for room, path, line, expected in cases:
        if len(target_words(room, path, line, root, set())) != expected:
            print(f"self-test: {room}: {line}: expected {expected} words of one target")
            failures += 1
    everything = {(target, name) for target, names in STILL_OF_ONE_TARGET.items() for name in names}
    if stale_words(everything) or len(stale_words(everything - {("cpu", "src/Support/Sha256.cpp")})) != 1:
        print("self-test: a file without words that may have them was not found")
        failures += 1
    return failures


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    if "--self-test" in sys.argv:
        return 1 if self_test(root) else 0
    outside = len(sys.argv) > 3 and sys.argv[2] == "--target"
    errors, files = check_outside(root, pathlib.Path(sys.argv[3]).resolve()) if outside else check(root)
    for error in errors:
        print(error)
    print(f"{files} files, {len(errors)} violations")
    return 1 if errors or files < (3 if outside else 50) else 0


if __name__ == "__main__":
    sys.exit(main())
