#!/usr/bin/python3
"""Writes the generated tables of README.md: update_readme.py [--check] DMXC

--check changes nothing and fails when the README differs from what DMXC prints."""
import pathlib
import re
import subprocess
import sys

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def output_of(dmxc, *arguments):
    return subprocess.run([dmxc, *arguments], check=True, capture_output=True, text=True).stdout


def phase_table(dmxc):
    rows = ["| phase | in -> out | what is decided |", "|---|---|---|"]
    for line in output_of(dmxc, "--print-phases").splitlines():
        name, rest = line.split(maxsplit=1)
        types, summary = rest.split(": ", 1)
        rows.append(f"| {name} | {types} | {summary} |")
    return "\n".join(rows) + "\n"


def replaced(text, name, table):
    pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
    if not re.search(pattern, text, re.S):
        raise SystemExit(f"README.md has no place for '{name}'")
    return re.sub(pattern, lambda match: match.group(1) + table + match.group(2), text, flags=re.S)


def main():
    check = "--check" in sys.argv
    dmxc = [argument for argument in sys.argv[1:] if argument != "--check"][0]
    old = README.read_text()
    new = replaced(replaced(old, "phases", phase_table(dmxc)), "ops", output_of(dmxc, "--print-ops", "--format", "md"))
    if check and new != old:
        print(f"README.md is stale; run: tools/scripts/update_readme.py {dmxc}")
        return 1
    if not check:
        README.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
