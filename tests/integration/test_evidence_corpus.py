"""A few real edits of the corpus; `python -m tests.programs.evidence_corpus` does all of the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import evidence_corpus

EVERY = 20


@pytest.mark.integration
def test_no_miss_and_no_alarm(shared_cache: Path) -> None:
    judged = evidence_corpus.judge(evidence_corpus.load()[::EVERY], shared_cache)
    assert not [row for row in judged if row.missed or row.alarmed], evidence_corpus.table(judged)
    assert [row.prediction for row in judged] == [row.edit.prediction for row in judged]
    assert {"changed", "same"} <= {row.prediction for row in judged}, "the edits say something"
