"""The lines of both sides that show a hazard, or another rounding, as all reports print them."""

from __future__ import annotations

from collections.abc import Iterator

from irdiff.model import Case, CodeLine, Effects, Witness

_MAX = 2
_MAX_LINE = 140


def of(case: Case) -> tuple[str, ...]:
    """Shows the first hazards, or without any, the first other rounding."""
    effects = case.summary.effects if case.summary else None
    return tuple(_lines(effects)) if effects else ()


def _lines(effects: Effects) -> Iterator[str]:
    for hazard in effects.hazards[:_MAX]:
        words = f"{hazard.what}: {hazard.detail}" if hazard.detail else hazard.what
        yield from _witness(effects.stage, words.replace("`", ""), hazard.witness)
    for rounding in effects.roundings[: 1 - bool(effects.hazards)]:
        words = f"{rounding.kind}: {rounding.operations}".removesuffix(": ").replace("`", "")
        yield from _witness(effects.stage, words, rounding.witness)


def _witness(stage: str, words: str, witness: Witness) -> Iterator[str]:
    if not (witness.base or witness.head):
        return
    yield f"witness ({words}):"
    for side, lines in (("base", witness.base), ("head", witness.head)):
        yield from (_line(stage, side, line) for line in lines)


def _line(stage: str, side: str, line: CodeLine) -> str:
    text = line.text if len(line.text) <= _MAX_LINE else f"{line.text[: _MAX_LINE - 1]}…"
    return f"  {side} {stage} {line.number}: {text}"
