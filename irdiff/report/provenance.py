from __future__ import annotations

from irdiff.model import Revision, Run

_DIGITS = 16


def sides(run: Run) -> list[tuple[str, str, str]]:
    """Returns (name, value at base, value at head)."""
    base, head = _of_side(run.base), _of_side(run.head)
    compared = ((name, base.get(name, "none"), head.get(name, "none")) for name in {**base, **head})
    return [(name, ours, theirs) for name, ours, theirs in compared if ours or theirs]


def _of_side(side: Revision) -> dict[str, str]:
    """Shortens digests: `run.json` has them in full."""
    digests = {"digest": side.digest, "corpus": side.corpus, **side.assemblers}
    shown = {name: digest[:_DIGITS] for name, digest in digests.items()}
    return {"toolchain": side.spec, "version": side.version, **shown, "note": side.note}


def circumstances(run: Run) -> list[tuple[str, str]]:
    return [
        ("command", " ".join(("irdiff", *run.command))),
        ("irdiff", f"{run.irdiff_version}, normalizer {run.normalizer_version}, schema {run.schema}"),
        ("compared", f"{run.created}, in {run.duration_s:.1f} s"),
        *(("environment", f"{name}={value}") for name, value in run.environment.items()),
    ]
