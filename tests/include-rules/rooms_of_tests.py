"""The rooms that tests are of. A test is run for a change of a room if one of its own rooms is that, or may include it (check_includes.py)."""
import re

import check_includes

CPU, CORSAIR, AIE, CUDA = (("targets/" + name, "runtime/devices/" + name) for name in ("cpu", "corsair", "aie", "cuda"))
DEVICES = tuple("runtime/devices/" + name for name in ("cpu", "corsair", "aie", "cuda", "common"))
ONNX, TORCH = ("frontends/onnx",), ("frontends/torch",)
# Whoever runs dmxc and dmx-run, on a text or a model.
WHOLE = ("Driver", "Tools", "runtime", "frontends/mlir")
ALL = WHOLE + CPU + CORSAIR + AIE + CUDA + ONNX + TORCH

# (the beginning of a test's name, as a pattern; its rooms). The first that fits counts; those without rooms run for every change.
ROWS = [
    (r"include-rules|pages", ()),
    (r"support", ("Support",)),
    (r"blockfp", ("BlockFp",)),
    (r"dialect", ("Dialect",)),
    (r"driver", ("Driver",)),
    (r"phases", ("Phases", "frontends/mlir")),
    (r"reference", ("Reference",)),
    (r"unit\.Bundle", ("Bundle", "runtime")),
    (r"unit\.Tools", ("Tools",)),
    (r"frontends\.onnx|conformance\.unit|fuzz\.(onnx|tensor)", ONNX),
    (r"frontends\.torch|fuzz\.torch", TORCH),
    (r"TargetsCommon|VectorMath|Isa/VectorMath", ("Driver", *CPU, *ONNX)),
    (r"corsair\.stages", ("Driver", *CORSAIR)),
    (r"corsair", ("schemas/corsair",)),
    (r"aie", AIE),
    (r"runtime\.(Cuda|exports\.cuda)|fuzz\.cuda", ("runtime/devices/cuda", "runtime")),
    (r"runtime\.(Corsair|exports\.corsair)|fuzz\.corsair", ("runtime/devices/corsair", "runtime")),
    (r"runtime\.exports\.aie|fuzz\.aie", ("runtime/devices/aie", "runtime")),
    (r"runtime|fuzz\.bundle", ("runtime", *DEVICES)),
    (r"serving", ("runtime/serving", "runtime", "runtime/devices/cpu")),
    (r"lit\.targets/cpu", WHOLE + CPU),
    (r"lit\.targets/corsair", WHOLE + CORSAIR),
    (r"lit\.targets/aie", WHOLE + AIE),
    (r"lit\.targets/cuda", WHOLE + CUDA),
    (r"lit\.Phases", WHOLE + CPU + CORSAIR),
    (r"lit\.frontends/onnx", WHOLE + ONNX),
    (r"lit", WHOLE),
    (r"fuzz\.texts", WHOLE + CPU + CORSAIR + AIE + CUDA + ONNX),
    (r"fuzz\.hostile", WHOLE + CPU + CORSAIR + ONNX + TORCH),
    (r"fuzz", WHOLE + CPU + CORSAIR + ONNX),
    (r"cuda\.joins", ALL),
    (r"cuda|gpu|conformance\.cuda", WHOLE + CUDA + ONNX + TORCH),
    (r"conformance\.corsair", WHOLE + CORSAIR + ONNX),
    (r"conformance\.extents", WHOLE + CPU + CORSAIR + ONNX),
    (r"conformance|bench", WHOLE + CPU + ONNX),
    (r"torch", WHOLE + CPU + TORCH),
    (r"models\.array", WHOLE + AIE + ONNX + TORCH),
    (r"generate|models", WHOLE + CPU + ONNX + TORCH),
    (r"dmxsched", WHOLE + CPU + CORSAIR + ONNX),
    (r"example-target", WHOLE + CPU + ONNX),
    (r"cli\.aie", WHOLE + AIE + ONNX),
    (r"cli\.(corsair|dmxc\.Corsair)", WHOLE + CORSAIR + ONNX),
    (r"cli\.misuse", WHOLE + CPU + CUDA + ONNX),
    (r"cli\.(sign|tools)", ("Tools", "runtime", *DEVICES)),
    (r"cli\.(states|caches|strides|placement|decisions|plans|phase-texts|dmxc\.(Schedules|BadSchedules|Parameters|Tuning|Recipes|Guards|Texts|PhaseFacts))",
     WHOLE + CPU + CORSAIR + ONNX),
    (r"cli\.(progress|readme|help)", ALL),
    (r"cli", WHOLE + CPU + ONNX),
    (r"faults", WHOLE + CPU + CORSAIR + ONNX + TORCH),
    (r"[A-Z]", CPU),  # kernels of the processor: tests/unit/TargetsCpu
]


def row_of(test):
    """The rooms of a test; None for a test of no row."""
    return next((rooms for pattern, rooms in ROWS if re.match(pattern, test)), None)


def reach(rooms, root):
    """The rooms, and all that they may include."""
    table, found, open_rooms = check_includes.rooms_of(root), set(), list(rooms)
    while open_rooms:
        room = open_rooms.pop()
        if room in found:
            continue
        found.add(room)
        folders, may, _ = table.get(room, ([], [], []))
        more = [other for folder, others in check_includes.FOLDER_MAY.items() if any(folder == own or folder.startswith(own + "/") for own in folders)
                for other in others]
        open_rooms += may + more
    return found


def unknown_rooms(root):
    return sorted({room for _, rooms in ROWS for room in rooms} - set(check_includes.rooms_of(root)))


def page():
    """The table, as tests/README.md prints it."""
    lines = ["| tests | rooms |", "|---|---|"]
    for pattern, rooms in ROWS:
        names = pattern.replace("\\", "").replace("|", "\\|")
        lines.append(f"| `{names}` | {', '.join(rooms) if rooms else 'every change'} |")
    return "\n".join(lines) + "\n"
