"""`irdiff normalize FILE`: the canonical text of one IR file."""

from __future__ import annotations

from pathlib import Path

import click

from irdiff import normalize
from irdiff.errors import UsageError
from irdiff.stages import Stage

_BY_SUFFIX = {".mlir": Stage.TTGIR, ".ll": Stage.LLIR, ".s": Stage.AMDGCN}
MAX_FILE_BYTES = 512 << 20


@click.command("normalize")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--ir", help="The IR: ttir, ttgir, llir, ptx, amdgcn, sass; default: by the file's suffix.")
@click.option("--numbers", is_flag=True, help="Begin each line with its line number in FILE.")
def normalize_command(*, file: Path, ir: str | None, numbers: bool) -> None:
    """Print FILE in canonical form, which is what comparisons see."""
    suffix = file.suffix.lower()
    name = ir or _BY_SUFFIX.get(suffix) or suffix.lstrip(".")
    if not name:
        raise UsageError(f"{file}: its suffix does not say which IR it holds", hint="name it: --ir ttgir")
    if file.stat().st_size > MAX_FILE_BYTES:
        raise UsageError(f"{file} is larger than {MAX_FILE_BYTES >> 20} MiB")
    text = file.read_bytes().decode("utf-8", errors="surrogateescape")
    canonical = normalize.canonicalize(name, text)
    rows = zip(canonical.numbers, canonical.lines, strict=True)
    click.echo("\n".join(f"{number:6} {line}" if numbers else line for number, line in rows))
