"""What reports say of the time of cases that nobody measured."""

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff import timing
from irdiff.model import Expected, ExpectedTime, Verdict
from irdiff.report import expected_times, html, markdown
from tests.unit.report.test_reports import printed
from tests.unit.runs import case, run

WORDS = (Expected.NO_CHANGE, Expected.UNKNOWN, Expected.FASTER, Expected.SLOWER)


def expecting(*words):
    return run(
        *(
            replace(
                case(f"a/x:{number}@sm_90", Verdict.CHANGED),
                expected=ExpectedTime(expected=word, why=f"instructions {number} → 9"),
            )
            for number, word in enumerate(words)
        )
    )


def test_the_first_sentence_counts_each_word_and_says_how_often_it_was_right():
    assert expected_times.headline(expecting(*WORDS)) == (
        "Time of 4 changed cases was not measured: 1 likely slower, 1 likely faster, 1 not known, 1 no change expected. "
        "On six pairs of releases timed on an H100 (the rules were chosen on the same pairs), "
        '"no change expected" was right (within 1 %) in 239 of 239 cases; '
        '"likely slower" or "likely faster" had the right direction in 98 of 104 cases.'
    )


def test_the_record_of_both_directions_names_both_where_a_run_has_one():
    words = '"likely slower" or "likely faster" had the right direction in 98 of 104 cases'
    slower = expecting(Expected.SLOWER)
    assert words in expected_times.headline(slower)
    assert words in list(expected_times.of_case(slower.cases[0]))[-1]


def test_a_measured_case_is_not_expected_to_be_anything():
    of = expecting(Expected.SLOWER, Expected.NO_CHANGE)
    assert "Time of 1 changed case was not measured: 1 no change expected." in expected_times.headline(
        of, ["a/x:0@sm_90"]
    )
    assert not expected_times.likely(of, ["a/x:0@sm_90"])


def test_where_nothing_is_known_it_says_so_without_a_record():
    words = expected_times.headline(expecting(Expected.UNKNOWN))
    assert words == (
        "Time of 1 changed case was not measured and cannot be predicted: `irdiff explain` says why."
    )
    assert expected_times.headline(run(case(verdict=Verdict.CHANGED))) == ""


@pytest.mark.parametrize(
    "render", [printed, lambda of: markdown.render(of, Path()), lambda of: html.render(of, Path())]
)
def test_every_report_names_the_cases_whose_time_is_likely_to_move(render):
    text = " ".join(render(expecting(*WORDS)).replace("&nbsp;", " ").split())
    assert "1 likely slower, 1 likely faster" in text
    first, second = text.index("likely slower: instructions 3"), text.index("likely faster: instructions 2")
    assert first < second


def test_a_gpu_times_first_what_is_likely_to_move():
    chosen = timing.chosen_cases(expecting(*WORDS), (), False)
    assert [case.id for case in chosen] == [f"a/x:{number}@sm_90" for number in (3, 2, 1, 0)]
