"""Files that are generated and kept in the tree, for the scripts that write them."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def update(files, check, command):
    """Writes the texts of `files`, {path: text}, that differ; with `check` only tells of them and of `command`. The exit code."""
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    if not check:
        for path in stale:
            path.write_text(files[path])
    elif stale:
        print(f"{', '.join(str(path.relative_to(ROOT)) for path in stale)}: stale; run: {command}")
    return 1 if stale and check else 0
