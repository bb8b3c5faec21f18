"""Programs, sources and IR that tests write somewhere: `tests/data/texts`, a folder for each test file."""

from pathlib import Path

TEXTS = Path(__file__).parent / "data" / "texts"


def text_of(name):
    return (TEXTS / name).read_text(encoding="utf-8")


def files_of(name):
    """Every file below a folder by its path; `dot` stands for the dot of a name."""
    paths = sorted(path for path in (TEXTS / name).rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(TEXTS / name)).replace("dot.", "."): path.read_text() for path in paths}
