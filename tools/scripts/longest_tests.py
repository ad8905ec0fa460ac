#!/usr/bin/env python3
"""The longest tests of a run of ctest, and whether each is within its budget. Usage: longest_tests.py JUNIT.xml

A plain run allows each test DMXC_TEST_BUDGET seconds (120), half as much again for each program beyond the processors that the machine
has had to run on average of late; the long run allows any. Exit 1 where a test took more."""
import os
import sys
import xml.etree.ElementTree

SHOWN = 15


def main():
    try:
        cases = xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase")
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        print(f"longest_tests.py: {sys.argv[1]}: {error}: run ctest with --output-junit")
        return 1
    times = sorted(((float(case.get("time") or 0), case.get("name")) for case in cases), reverse=True)
    total = sum(seconds for seconds, _ in times)
    print(f"the longest of {len(times)} tests, which take {total:.0f} s one after the other:")
    for seconds, name in times[:SHOWN]:
        print(f"  {seconds:7.1f} s {100 * seconds / max(total, 1e-9):5.1f} %  {name}")
    if os.environ.get("DMXC_LONG", "0") not in ("", "0"):
        return 0
    crowd = max(0.0, os.getloadavg()[2] / os.cpu_count() - 1)
    budget = float(os.environ.get("DMXC_TEST_BUDGET", 120)) * (1 + crowd / 2)
    over = [f"{name} took {seconds:.0f} s" for seconds, name in times if seconds > budget]
    for sentence in over:
        print(f"OVER ITS BUDGET of {budget:.0f} s: {sentence}: let a plain run take a sample (tests/Sample.h, tests/sampling.py)")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
