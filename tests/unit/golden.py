"""Cases that need no Python, in `tests/golden`."""

import os
import tomllib
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name):
    return tomllib.loads((GOLDEN / f"{name}.toml").read_text())


def recorded(name, said):
    """What is said stands in the file of that name. IRDIFF_UPDATE_GOLDEN writes it anew: read the difference."""
    if "IRDIFF_UPDATE_GOLDEN" in os.environ:
        (GOLDEN / name).write_text(said)
    assert said == (GOLDEN / name).read_text()
