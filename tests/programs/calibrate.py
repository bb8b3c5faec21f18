"""How well does severity predict measured times? Of one run folder that was timed.

    python -m tests.programs.calibrate RUN [--timing timing.json] [--resamples 2000]

Each changed case that was timed counts once; times of several GPUs are joined by the geometric mean of their
ratios (head ÷ base). A case is *slower by x %* where its ratio is at least that and its whole interval is
above 1. Two scores are tried: that of the case's group, which a reader sees, and the case's own, from its facts
and the edit of its first changed stage (of the facts alone where the folder lacks the artifacts: a score of the
group knows the responsible pass, this one does not). Next to them stand plain facts, which the table of weights
has to beat.

Intervals are 95 %, of a bootstrap over cases with a fixed seed. ROC AUC is the chance that a slower case has
the higher score (ties count half), 0.5 is guessing.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from irdiff import normalize
from irdiff.compare import edits, statistics
from irdiff.compare.edits import Edit
from irdiff.errors import NormalizeError
from irdiff.group import severity
from irdiff.model import Case, Run, Verdict
from irdiff.run import run_archive, run_folder
from irdiff.timing import results, timing_file
from irdiff.timing.results import TimingResults

THRESHOLDS = (0.01, 0.02, 0.05)
SEED = 0
_NOT_COST = (severity.Severity.BROKEN, severity.Severity.WRONG_RESULT)
_PLAIN = {
    "more instructions": statistics.facts_of("instructions"),
    "more registers": statistics.facts_of("registers", "VGPRs"),
    "more spills": statistics.facts_of("spills"),
}
Statistic = Callable[[np.ndarray, np.ndarray], float | None]


@dataclass(frozen=True, kw_only=True)
class Timed:
    """One changed case with what was measured."""

    case: str
    ratio: float
    low: float
    """The least lower end of its intervals."""
    scores: Mapping[str, float]
    """By the name of the predictor."""
    rules: Mapping[str, float]
    """Rows of the severity table that hold, with how far."""

    def is_slower(self, threshold: float) -> bool:
        return self.ratio >= 1 + threshold and self.low > 1


# the cases


def timed_cases(run: Run, timing: TimingResults, edit_of: Callable[[Case], Edit | None]) -> list[Timed]:
    measured: dict[str, list[results.Measurement]] = {}
    for row in timing.cases:
        if row.measurement is not None:
            measured.setdefault(row.case, []).append(row.measurement)
    of_group = {member: group.score for group in run.groups for member in group.members}
    found = []
    for case in run.cases:
        rows = measured.get(case.id)
        if case.verdict is not Verdict.CHANGED or not rows:
            continue
        edit = edit_of(case)
        scores = {"own severity": severity.rank(case, edit).score, "… its cost rows": _cost(case, edit)}
        if case.id in of_group:
            scores["severity of its group"] = of_group[case.id]
        scores |= {name: _growth(case, facts) for name, facts in _PLAIN.items()}
        found.append(
            Timed(
                case=case.id,
                ratio=math.exp(sum(math.log(row.ratio) for row in rows) / len(rows)),
                low=min(row.ratio_low for row in rows),
                scores=scores,
                rules=severity.measures(case, edit),
            )
        )
    return found


def _cost(case: Case, edit: Edit | None) -> float:
    """The score without the rows of wrong results: they outweigh all others, and say nothing of speed."""
    found = severity.measures(case, edit)
    return sum(
        row.weight * found.get(row.name, 0.0) for row in severity.TABLE if row.severity not in _NOT_COST
    )


def _growth(case: Case, names: Sequence[str]) -> float:
    """By how much a fact grew, relative to the larger side."""
    for name in names:
        base, head = case.facts.base.get(name), case.facts.head.get(name)
        if isinstance(base, (int, float)) and isinstance(head, (int, float)):
            return (head - base) / max(base, head, 1)
    return 0.0


def edit_in(folder: Path) -> Callable[[Case], Edit | None]:
    """The edit of a case's first changed stage, from the artifacts of a run folder."""

    def read(case: Case) -> Edit | None:
        stage = case.origin.stage if case.origin else ""
        lines = [_canonical(folder, stage, side) for side in (case.artifacts.base, case.artifacts.head)]
        return edits.between(stage, lines[0], lines[1]) if lines[0] and lines[1] else None

    return read


def _canonical(folder: Path, stage: str, artifacts: Mapping[str, object]) -> tuple[str, ...] | None:
    artifact = artifacts.get(stage)
    content = run_folder.artifact(folder, artifact.digest) if artifact else None  # type: ignore[attr-defined]
    try:
        return normalize.canonicalize(stage, content.decode()).lines if content else None
    except (NormalizeError, UnicodeDecodeError):
        return None


# the statistics


def spearman(left: np.ndarray, right: np.ndarray) -> float | None:
    """Rank correlation (C. Spearman, 1904), ties by their mean rank; None without spread."""
    if len(left) < 3 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return None
    return float(np.corrcoef(rankdata(left), rankdata(right))[0, 1])


def auc(scores: np.ndarray, positive: np.ndarray) -> float | None:
    """Area under the ROC curve by Mann and Whitney's U; None without cases of both kinds."""
    many = int(positive.sum())
    others = len(positive) - many
    if not many or not others:
        return None
    return float((rankdata(scores)[positive].sum() - many * (many + 1) / 2) / (many * others))


def estimate(statistic: Statistic, left: np.ndarray, right: np.ndarray, resamples: int) -> str:
    """The statistic with its interval; `-` where it is not defined."""
    value = statistic(left, right)
    if value is None:
        return "-"
    rng = np.random.default_rng(SEED)
    samples = (rng.integers(0, len(left), len(left)) for _ in range(resamples))
    drawn = [again for some in samples if (again := statistic(left[some], right[some])) is not None]
    low, high = np.percentile(drawn, [2.5, 97.5]) if drawn else (math.nan, math.nan)
    return f"{value:+.2f} [{low:+.2f}, {high:+.2f}]"


# the report


def report(cases: Sequence[Timed], resamples: int) -> str:
    counts = (f"{sum(case.is_slower(x) for case in cases)} slower by {x:.0%}" for x in THRESHOLDS)
    heads = ("predictor", "rank/slowdown", "rank/|change|", *(f"AUC slower {x:.0%}" for x in THRESHOLDS))
    names = dict.fromkeys(name for case in cases for name in case.scores)
    table = [heads, *(_prediction(name, cases, resamples) for name in names)]
    lines = [f"{len(cases)} changed cases with times: {', '.join(counts)}", ""]
    lines += [f"{name:24}" + "".join(f"{cell:>22}" for cell in cells) for name, *cells in table]
    lines += ["", f"{'rule':18}{'cases':>6}{'median head/base':>18}{'slower 1%':>11}{'faster 1%':>11}"]
    for rule in severity.TABLE:
        held = [case for case in cases if rule.name in case.rules]
        middle = f"{np.median([case.ratio for case in held]):.4f}" if held else ""
        slower = sum(case.is_slower(THRESHOLDS[0]) for case in held)
        faster = sum(case.ratio <= 1 - THRESHOLDS[0] for case in held)
        lines.append(f"{rule.name:18}{len(held):>6}{middle:>18}{slower:>11}{faster:>11}")
    return "\n".join(lines)


def _prediction(name: str, cases: Sequence[Timed], resamples: int) -> tuple[str, ...]:
    """Of one predictor: its correlation with head ÷ base and with how far that is from 1, and its AUCs."""
    known = [case for case in cases if name in case.scores]
    scores = np.array([case.scores[name] for case in known])
    ratios = np.array([case.ratio for case in known])
    slower = [np.array([case.is_slower(x) for case in known]) for x in THRESHOLDS]
    return (
        name,
        estimate(spearman, scores, ratios, resamples),
        estimate(spearman, scores, np.abs(np.log(ratios)), resamples),
        *(estimate(auc, scores, positive, resamples) for positive in slower),
    )


def of_folder(folder: Path, timing: Path | None, resamples: int) -> str:
    run = run_folder.load(folder)
    found = timing_file.parse(timing.read_bytes(), str(timing)) if timing else timing_file.load(folder)
    if found is None:
        raise SystemExit(f"{folder} was not timed: irdiff time {folder}, or name a file by --timing")
    read = edit_in(folder)
    cases = timed_cases(run, found, read)
    known = {case.id: case for case in run.cases}
    without = sum(read(known[case.case]) is None for case in cases)
    return f"{report(cases, resamples)}\n{without} of the cases without artifacts: their own severity is that of facts"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path, help="a run folder, or an archive of one")
    parser.add_argument("--timing", type=Path, help="default: timing.json of the folder")
    parser.add_argument("--resamples", type=int, default=2000)
    given = parser.parse_args()
    with run_archive.opened(given.run) as folder:
        print(of_folder(folder, given.timing, given.resamples))


if __name__ == "__main__":
    main()
