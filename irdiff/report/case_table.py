"""The table of all cases of a page."""

from __future__ import annotations

from collections.abc import Iterable

from irdiff.backends.stages import in_stage_order
from irdiff.model import Case, Run, StageStatus
from irdiff.report import endings, error_clusters, families, phrases
from irdiff.report.group_names import NamedGroup

_SIGNS = {StageStatus.IDENTICAL: "·", StageStatus.EQUIVALENT: "=", StageStatus.CHANGED: "≠"}


def cells(run: Run, groups: Iterable[NamedGroup]) -> list[list[object]]:
    """Puts broken cases first, the rest in the order of verdicts and of groups."""
    number_of = {name: named.number for named in groups for name in named.group.members}
    last = len(run.groups) + 1

    def place(case: Case) -> tuple[int, int, str]:
        return endings.VERDICTS.index(case.verdict), number_of.get(case.id, last), case.id

    return [_cells_of(case, number_of.get(case.id)) for case in sorted(run.cases, key=place)]


def _cells_of(case: Case, number: int | None) -> list[object]:
    signs = (name + _SIGNS[status] for name, status in in_stage_order(case.stages) if status in _SIGNS)
    return [
        case.id,
        case.verdict.value,
        error_clusters.unstable_words(case),
        phrases.place(case.origin.stage, case.origin.pass_name) if case.origin else "",
        " ".join(signs),
        phrases.moved(case, limit=4) or case.error or "",
        number,
        families.css_class(case),
    ]
