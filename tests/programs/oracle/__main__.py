from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import zstandard
from deepdiff import DeepDiff

from irdiff import config as configuration
from tests.programs.oracle import views
from tests.programs.oracle.scenarios import DATA, SCENARIOS, fresh_place

NOISY = "nondeterministic"
_SHOWN_LINES = 40
FOLDER = Path(tempfile.gettempdir(), "irdiff-oracle")
"""The same each time: compilers write paths into what they print."""
DATE = "2026-01-01T00:00:00+00:00"
"""Of commits, whose names are in reports."""


def made(name: str) -> dict[str, str]:
    os.environ |= {"GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE}
    shutil.rmtree(FOLDER, ignore_errors=True)
    try:
        place = fresh_place(FOLDER, configuration.load().cache)
        SCENARIOS[name](place)
        return views.of(place, noisy=name == NOISY)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


def recorded(name: str) -> dict[str, str]:
    content = zstandard.ZstdDecompressor().decompress((DATA / f"{name}.json.zst").read_bytes())
    found: dict[str, str] = json.loads(content)
    return found


def record(name: str) -> None:
    content = json.dumps(made(name), sort_keys=True).encode()
    (DATA / f"{name}.json.zst").write_bytes(zstandard.ZstdCompressor(level=19).compress(content))


def differences(name: str) -> list[str]:
    """One text for each view that is another."""
    before, after = recorded(name), made(name)
    found = []
    for view in sorted({*before, *after}):
        one, other = before.get(view, ""), after.get(view, "")
        if one == other:
            continue
        lines = difflib.unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=1)
        shown = "\n".join(line[:200] for line in list(lines)[:_SHOWN_LINES])
        if view == "run.json" and name != NOISY:
            deep = DeepDiff(json.loads(one), json.loads(other), ignore_order=False).pretty()
            shown = "\n".join(deep.splitlines()[:_SHOWN_LINES])
        found.append(f"== {name}: {view}\n{shown}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["record", "check"])
    parser.add_argument("names", nargs="*", choices=[*SCENARIOS, []])
    options = parser.parse_args()
    names = options.names or list(SCENARIOS)
    if options.what == "record":
        DATA.mkdir(parents=True, exist_ok=True)
        for name in names:
            record(name)
        return
    different = 0
    for name in names:
        found = differences(name)
        different += bool(found)
        print("\n".join(found) or f"== {name}: as it was", flush=True)
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
