"""Cases that need no Python, in `tests/golden`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name: str) -> dict[str, Any]:
    return tomllib.loads((GOLDEN / f"{name}.toml").read_text())
