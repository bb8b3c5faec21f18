"""What a run was made from and with: versions, digests, the command, the environment."""

from __future__ import annotations

from irdiff.model import Run


def sides(run: Run) -> list[tuple[str, str, str]]:
    """Rows of (name, value at base, value at head)."""
    names = sorted({*run.base.ptxas, *run.head.ptxas})
    rows = [
        ("toolchain", run.base.spec, run.head.spec),
        ("version", run.base.version, run.head.version),
        ("digest", run.base.digest, run.head.digest),
        ("corpus", run.base.corpus, run.head.corpus),
        *((name, run.base.ptxas.get(name, "none"), run.head.ptxas.get(name, "none")) for name in names),
        ("note", run.base.note, run.head.note),
    ]
    return [row for row in rows if row[1] or row[2]]


def rows(run: Run) -> list[tuple[str, str]]:
    """Rows of (name, value)."""
    return [
        ("command", " ".join(("irdiff", *run.command))),
        ("irdiff", f"{run.irdiff_version}, normalizer {run.normalizer_version}, schema {run.schema}"),
        ("compared", f"{run.created}, in {run.duration_s:.1f} s"),
        *(("environment", f"{name}={value}") for name, value in run.environment.items()),
    ]
