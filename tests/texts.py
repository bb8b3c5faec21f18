"""Programs, sources and IR that tests write somewhere: `tests/data/texts`, a folder for each test file."""

from pathlib import Path

TEXTS = Path(__file__).parent / "data" / "texts"


def text_of(name):
    return (TEXTS / name).read_text(encoding="utf-8")
