"""The runs of `tests/data/report`, recorded anew: `python -m tests.programs.recordings [NAME…]`.

Each is a comparison by real compilers, and stays in a folder until the next one of its name. Needs 3.8.0 and
3.9.0. The release takes minutes; of its compilations what the cache has is taken from there.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import zstandard

from irdiff import config as configuration
from tests.programs import checkouts
from tests.programs.evidence import comparing
from tests.programs.oracle import scenarios
from tests.programs.oracle.__main__ import DATE
from tests.programs.oracle.scenarios import BASE, HEAD, Place

DATA = Path(__file__).parents[1] / "data" / "report"
FOLDER = Path(tempfile.gettempdir(), "irdiff-recordings")
SAME_PASS = scenarios.OTHER_PASS.replace('    options.__dict__["num_stages"] = 1\n', "")


def release(place: Place) -> None:
    place.compare(BASE, HEAD, "--tier", "gate")


def unchanged(place: Place) -> None:
    """A compiler whose Python was edited so that it does what it did."""
    side = place.edited("refactored", {"triton/backends/amd/compiler.py": SAME_PASS})
    place.compare(HEAD, side, "--case", "matmul/pointer:fp16-4096", "--case", "elementwise/*")


def unreached(place: Place) -> None:
    """A kernel that no workload launches is edited."""
    repo = checkouts.new_repository(place.folder / "kernels")
    idle, _ = scenarios.kernel("idle", "2.0").items()
    checkouts.write(repo, {
        "irdiff.toml": comparing.PLAN, "src/mykernels/__init__.py": "", **scenarios.kernel("kept", "4.0"), idle[0]: idle[1],
    })  # fmt: skip
    checkouts.commit(repo, "base")
    base = checkouts.git(repo, "rev-parse", "HEAD").strip()
    idle, _ = scenarios.kernel("idle", "2.5").items()
    checkouts.write(repo, {idle[0]: idle[1]})
    checkouts.commit(repo, "head")
    place.irdiff("compare", base, "HEAD", "--repo", repo, "--triton", HEAD, "--out", place.run)


RECORDED: dict[str, Callable[[Place], None]] = {
    "release": release,
    "one-pass": scenarios.revision,
    "kernel-option": scenarios.kernel_repository,
    "broken": scenarios.broken,
    "unchanged": unchanged,
    "unreached": unreached,
}


def record(name: str) -> None:
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    cache = configuration.load().cache
    is_long = name == "release"
    place = Place(folder=folder, cache=cache) if is_long else scenarios.fresh_place(folder, cache)
    RECORDED[name](place)
    text = (place.run / "run.json").read_text()
    for path, name_there in ((place.folder, "FOLDER"), (folder, "FOLDER"), (DATA.parents[2], "IRDIFF")):
        text = text.replace(str(path), name_there)
    (DATA / f"{name}.json.zst").write_bytes(zstandard.ZstdCompressor(level=19).compress(text.encode()))


def main() -> None:
    os.environ |= {"GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE}
    for name in sys.argv[1:] or RECORDED:
        record(name)


if __name__ == "__main__":
    main()
