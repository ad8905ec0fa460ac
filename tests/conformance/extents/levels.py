"""Levels of the CPU target."""
import pathlib
import re

LEVELS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]


def levels_here():
    """Those that this machine runs."""
    flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M).group(1).split()
    needs = [["sse4_2"], ["avx2", "fma", "f16c"], ["avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"]]
    return [level for level, wanted in zip(LEVELS, needs) if set(wanted) <= set(flags)]
