"""The document of a release over several runs: the gate's answer and the report of each. Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from irdiff.gate import outputs
from irdiff.gate.outcome import Outcome
from irdiff.model import Run, Verdict
from irdiff.report import markdown, phrases, templates, timing_summary
from irdiff.timing.results import TimingResults

_MOST_CHARACTERS = 20_000
"""Of the report of one run."""


@dataclass(frozen=True, kw_only=True)
class ReleaseRun:
    """One run with its folder, its timings, and the gate's outcome."""

    run: Run
    folder: Path
    timing: TimingResults | None
    outcome: Outcome | None
    """None where no policy was given."""

    @property
    def sides(self) -> str:
        return phrases.sides(self.run)

    def gate_of(self, target: str) -> str:
        """`pass`, `not asked`, or the rules that block this target or the whole run."""
        if self.outcome is None:
            return "not asked"
        others = {case.target for case in self.run.cases} - {target}
        blocking = {
            rule.rule.id: None
            for rule in self.outcome.rules
            for finding in rule.findings
            if finding.blocks and finding.name.rpartition("@")[2] not in others
        }
        return f"fail: {', '.join(blocking)}" if blocking else "pass"

    @property
    def gate(self) -> str:
        return outputs.markdown(self.outcome) if self.outcome else ""

    @property
    def report(self) -> str:
        timing = timing_summary.of_results(self.timing) if self.timing else None
        return markdown.render(self.run, self.folder, timing, _MOST_CHARACTERS)

    @property
    def targets(self) -> dict[str, dict[str, int]]:
        """By target: how many cases were compared, changed and so on. Code that changed and was not timed may
        be slower.
        """
        timed_cases = {row.case for row in self.timing.cases if row.measurement} if self.timing else set()
        found = {}
        for target, radius in phrases.in_target_order(self.run):
            cases = [case for case in self.run.cases if case.target == target]
            counts = Counter(case.verdict for case in cases)
            changed = {case.id for case in cases if case.verdict is Verdict.CHANGED}
            found[target] = {
                "compared": radius.compared,
                "changed": len(changed),
                "broken": counts[Verdict.BROKEN],
                "failing": counts[Verdict.FAILING] + counts[Verdict.UNSUPPORTED],
                "untimed": len(changed - timed_cases),
            }
        return found


def render(parts: Sequence[ReleaseRun]) -> str:
    """Renders the document. The same parts in the same order give the same bytes."""
    pairs = dict.fromkeys((part.run.base.version, part.run.head.version) for part in parts)
    title = ", ".join(f"{base} → {head}" for base, head in pairs)
    template = templates.markdown().get_template("release.md.j2")
    return template.render(parts=parts, title=title, verdict=verdict(parts))


def verdict(parts: Sequence[ReleaseRun]) -> str:
    """The first line: the gate's answer where there was one, and never a pass for what was not asked."""
    outcomes = [part.outcome for part in parts if part.outcome]
    if not outcomes:
        return "no policy was given: nothing here is a pass"
    failing = sum(not outcome.passed for outcome in outcomes)
    if failing:
        return f"the gate fails for {failing} of {len(parts)} runs"
    if len(outcomes) < len(parts):
        return f"the gate was asked for {len(outcomes)} of {len(parts)} runs only"
    return f"the gate passes for {'the run' if len(parts) == 1 else f'all {len(parts)} runs'}"
