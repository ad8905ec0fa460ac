#!/usr/bin/python3
"""Draws the rooms and their arrows in CONTRIBUTING.md from the include rules' table, and the rooms of tests in tests/README.md: update_rooms.py [--check]

A room stands above all that it may include; a folder that may include more than the rest of its room, below its room. --check changes nothing and fails when the picture differs."""
import re
import sys

from generated import ROOT, update

sys.path.insert(0, str(ROOT / "tests" / "include-rules"))
import check_includes  # noqa: E402
import rooms_of_tests  # noqa: E402

PAGES = {ROOT / "CONTRIBUTING.md": lambda: picture(), ROOT / "tests" / "README.md": rooms_of_tests.page}


def picture():
    rooms = {room: (folders, [name for name in may if name != room]) for room, (folders, may, _) in check_includes.rooms_of(ROOT).items()}
    heights = {}

    def height(room):
        if room not in heights:
            heights[room] = 1 + max((height(name) for name in rooms[room][1] if name in rooms), default=0)
        return heights[room]

    order = sorted(rooms, key=lambda room: (-height(room), room))
    width = max(map(len, [*rooms, *(f"  {folder}" for folder in check_includes.FOLDER_MAY)]))
    lines = []
    def line(name, may):
        may = sorted((other for other in may if other in rooms), key=lambda other: (-height(other), other))
        lines.append(f"    {name:{width}} {'──> ' + ', '.join(may) if may else ''}".rstrip())

    for room in order:
        line(room, rooms[room][1] + check_includes.FOLDER_MAY.get(room, []))
        for folder, more in sorted(check_includes.FOLDER_MAY.items()):
            if folder != room and check_includes.room_of_path(ROOT / folder, ROOT) == room:
                line(f"  {folder}", more)
    return "\n".join(lines) + "\n"


def main():
    drawn = {}
    for page, draw in PAGES.items():
        drawn[page], count = re.subn(r"(<!-- rooms -->\n).*?(<!-- /rooms -->)", lambda match: f"{match[1]}\n{draw()}\n{match[2]}", page.read_text(), flags=re.S)
        if count != 1:
            sys.exit(f"{page.relative_to(ROOT)} has no place for the rooms")
    return update(drawn, "--check" in sys.argv, "tools/scripts/update_rooms.py")


if __name__ == "__main__":
    sys.exit(main())
