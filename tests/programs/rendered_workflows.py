"""The workflows as repositories of both kinds get them, written to a folder for linters: see `make lint-workflows`."""

from __future__ import annotations

import sys
from pathlib import Path

from irdiff.github import workflows
from irdiff.github.workflows import Setup

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "reports" / "github"
KINDS = {
    name: Setup(
        action=f"example/irdiff@{'0123456789abcdef' * 2}01234567",
        version="irdiff 1.2.3",
        is_compiler=name == "compiler",
        shards=shards,
        timing=True,
    )
    for name, shards in (("compiler", 4), ("kernels", 1))
}


def main(folder: Path) -> None:
    for kind, wanted in KINDS.items():
        for name, content in workflows.rendered(TEMPLATES, wanted).items():
            path = folder / kind / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
