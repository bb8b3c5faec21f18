"""A few random edits of generated kernel packages; `python -m tests.programs.evidence_edits` does hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import evidence_edits

SEED = 7
PROJECTS, EDITS = 8, 16


@pytest.mark.integration
def test_default_verdicts_are_those_without_cache(shared_cache: Path) -> None:
    steps = list(evidence_edits.run(EDITS, SEED, PROJECTS, shared_cache))
    wrong = [step for step in steps if step.differs or step.unexpected]
    assert not wrong, "\n".join(evidence_edits.report(step, SEED, PROJECTS) for step in wrong)
    assert {"changed", "unchanged"} <= {step.without_cache for step in steps}, "the edits say something"
