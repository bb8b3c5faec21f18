"""What the templates of Markdown and HTML say of a bump: rows of words."""

from __future__ import annotations

from typing import Any

from irdiff.model import Run
from irdiff.report import bump
from irdiff.report.bump import Bump, BumpPart, Distribution, MeasuredChange
from irdiff.report.bump_terminal import quiet_words

MAX_OUTLIERS = 30
MAX_FAMILIES = 60


def frame(run: Run, max_outliers: int = MAX_OUTLIERS, max_families: int = MAX_FAMILIES) -> dict[str, Any]:
    found = bump.of_run(run)
    parts = [*found.targets, *([found.whole] if len(found.targets) > 1 else [])]
    return {
        "measures": [
            {
                "name": measure.name,
                "unit": measure.unit,
                "rows": [_row(part, part.distributions[place]) for part in parts],
            }
            for place, measure in enumerate(bump.MEASURES)
        ],
        "quiet": [quiet_words(part) for part in parts],
        "tails": _tails(found),
        "families": [_family(part) for part in found.families[:max_families]],
        "families_left_out": max(0, len(found.families) - max_families),
        "names": [measure.name for measure in bump.MEASURES],
        "outliers": [
            {"id": row.case_id, "why": "; ".join(row.why), "worse": row.worse}
            for row in found.outliers[:max_outliers]
        ],
        "outlier_count": len(found.outliers),
        "outliers_left_out": max(0, len(found.outliers) - max_outliers),
    }


def _row(part: BumpPart, one: Distribution) -> dict[str, Any]:
    far = [f"{value:+.1%}" if value else "0" for value in one.quantiles] or ["–"] * 5
    unknown = f" ({one.unknown} unknown)" if one.unknown else ""
    return {
        "part": part.name,
        "better": one.better,
        "same": f"{one.same}{unknown}",
        "worse": one.worse,
        "far": far,
    }


def _tails(found: Bump) -> list[dict[str, Any]]:
    def side(changes: tuple[MeasuredChange, ...]) -> list[dict[str, str]]:
        return [{"id": change.case_id, "words": change.words} for change in changes]

    return [
        {"name": one.measure.name, "worst": side(one.worst), "best": side(one.best)}
        for one in found.whole.distributions
        if one.worst or one.best
    ]


def _family(part: BumpPart) -> dict[str, Any]:
    family, _, target = part.name.rpartition(" ")
    counts = [f"{one.better}/{one.same}/{one.worse}" for one in part.distributions]
    return {
        "family": family,
        "target": target,
        "changed": f"{part.changed}/{part.compared}",
        "counts": counts,
    }
