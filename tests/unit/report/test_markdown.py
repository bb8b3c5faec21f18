from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from irdiff.errors import UsageError
from irdiff.model import Run, Verdict
from irdiff.report import markdown
from irdiff.report.timing_summary import TimingRow, TimingSummary, WrongOutput
from tests.unit.report.runs import large_run, make_case, make_group, make_run

HOSTILE = (
    "x`</details>|@octocat #1 <script>alert(1)</script> [a](javascript:b) https://evil.example\x1b[2J\u202e"
)


def hostile() -> Run:
    case = replace(
        make_case(0, Verdict.CHANGED, group="g"), id=HOSTILE, target=HOSTILE, error=HOSTILE, workload=HOSTILE
    )
    broken = replace(make_case(1, Verdict.BROKEN), id=HOSTILE + "2", error=HOSTILE)
    group = replace(
        make_group(0, (HOSTILE,), HOSTILE + " risk", HOSTILE),
        title=HOSTILE,
        pass_name=HOSTILE,
        reasons=(HOSTILE,),
        edit=("+ ```" + HOSTILE,),
    )
    run = make_run((case, broken), (group, replace(group, id="h", severity=HOSTILE)))
    return replace(
        run,
        base=replace(run.base, spec=HOSTILE, version=HOSTILE, ptxas={HOSTILE: HOSTILE}),
        notes=(HOSTILE,),
        command=(HOSTILE,),
        environment={HOSTILE: HOSTILE},
    )


NOWHERE = Path("nowhere")


@pytest.mark.parametrize("limit", [1_000, 2_000, 4_000, 8_000, 60_000])
@pytest.mark.parametrize("run", [large_run(2000, 200, broken=40), large_run(400, 0), hostile()])
def test_never_above_the_limit_and_never_without_the_verdict(run: Run, limit: int) -> None:
    text = markdown.render(run, NOWHERE, limit=limit)
    assert len(text) <= limit
    assert text.startswith("### irdiff: ")


def test_a_comment_uses_its_room() -> None:
    assert len(markdown.render(large_run(2000, 200), NOWHERE, limit=markdown.COMMENT)) > markdown.COMMENT / 2


def test_what_is_left_out_is_counted() -> None:
    run = large_run(2000, 200)
    text = markdown.render(run, NOWHERE, limit=markdown.COMMENT)
    shown = len(re.findall(r"^\| \d+ \|", text, re.MULTILINE))
    (left,) = re.findall(r"… (\d+) more groups: ", text)
    assert shown + int(left) == len(run.groups)


def test_a_limit_too_small_for_a_headline_is_refused() -> None:
    with pytest.raises(UsageError, match="at least"):
        markdown.render(large_run(4, 0), NOWHERE, limit=10)


def test_rendered_twice_it_is_the_same() -> None:
    assert markdown.render(large_run(300, 20), NOWHERE) == markdown.render(large_run(300, 20), NOWHERE)


def test_hostile_strings_make_no_markup() -> None:
    text = markdown.render(hostile(), NOWHERE)
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "<script" not in page
    assert 'href="' not in page
    assert page.count("<details") == page.count("</details>")
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_timings_are_told() -> None:
    row = TimingRow(
        case_id="a@sm_90",
        ratio=1.1,
        low=1.05,
        high=1.15,
        noise=0.01,
        verdict="slower",
        why="",
        base_us=10.0,
        head_us=11.0,
        outputs="bitwise equal",
    )
    unclear = replace(row, case_id="c@sm_90", verdict="unclear", why="only 3 processes measured it")
    wrong = WrongOutput(case_id="b@sm_90", words="different at head")
    timing = TimingSummary(headline="1 slower of 1 timed", device="H200", rows=(row, unclear), wrong=(wrong,))
    text = markdown.render(large_run(4, 0), NOWHERE, timing)
    assert timing.headline in text
    for told in (row.words.removeprefix("+"), wrong.words, unclear.why):
        assert told in text
