from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from irdiff.cost.expected import EVIDENCE, RECORD
from irdiff.model import Case, Expected, ExpectedTime, Run
from irdiff.words import counted

_DIRECTIONS = (Expected.SLOWER, Expected.FASTER)


@dataclass(frozen=True, kw_only=True)
class LikelyRow:
    case_id: str
    words: str
    """`likely slower: instructions 10 → 20 (+100 %)`."""


def headline(run: Run, measured: Collection[str] = ()) -> str:
    expected = [expectation for _, expectation in _not_measured(run, measured)]
    counts = Counter(expectation.expected for expectation in expected)
    if not counts:
        return ""
    cases = counted(len(expected), "changed case")
    if set(counts) == {Expected.UNKNOWN}:
        return f"Time of {cases} was not measured and cannot be predicted: `irdiff explain` says why."
    words = ", ".join(f"{counts[word]} {word}" for word in Expected if counts[word])
    return f"Time of {cases} was not measured: {words}. {_records(counts)}"


def _records(words: Collection[Expected]) -> str:
    by_record = dict.fromkeys(record for word, record in RECORD.items() if word in words)
    if not by_record:
        return "`irdiff explain` says why for each case."
    record_words = "; ".join(f"{' or '.join(_of_record(record))} {record}" for record in by_record)
    return f"On {EVIDENCE}, {record_words}."


def _of_record(record: str) -> list[str]:
    """Returns all predictions that share a record, whether or not the run has them."""
    return [f'"{word}"' for word, own in RECORD.items() if own == record]


def likely(run: Run, measured: Collection[str] = ()) -> Sequence[LikelyRow]:
    """Puts slower ones first."""
    likely_cases = [
        (case, time) for case, time in _not_measured(run, measured) if time.expected in _DIRECTIONS
    ]
    ordered = sorted(likely_cases, key=lambda each: (_DIRECTIONS.index(each[1].expected), each[0].id))
    return [LikelyRow(case_id=case.id, words=f"{time.expected}: {time.why}") for case, time in ordered]


def of_case(case: Case) -> Iterator[str]:
    if case.expected is not None:
        yield f"{case.expected.expected}: {case.expected.why}"
        if record := RECORD.get(case.expected.expected):
            yield f"on {EVIDENCE}, {' or '.join(_of_record(record))} {record}"


def _not_measured(run: Run, measured: Collection[str]) -> Iterator[tuple[Case, ExpectedTime]]:
    for case in run.cases:
        if case.expected is not None and case.id not in measured:
            yield case, case.expected
