from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from irdiff.errors import UsageError
from irdiff.model import Run, Verdict
from irdiff.report import markdown
from irdiff.report.forest import Forest, ForestRow, WrongOutput
from tests.unit.report.runs import large_run, make_case, make_group, make_run

GOLDEN = Path(__file__).parents[2] / "golden" / "markdown"
HOSTILE = (
    "x`</details>|@octocat #1 <script>alert(1)</script> [a](javascript:b) https://evil.example\x1b[2J\u202e"
)


def unchanged() -> Run:
    return make_run(tuple(make_case(number, Verdict.UNCHANGED) for number in range(8)))


def no_groups() -> Run:
    cases = [make_case(number, Verdict.CHANGED, "ttgir") for number in range(6)]
    cases[0] = replace(cases[0], nondeterministic=("head",))
    return make_run((*cases, make_case(7, Verdict.BROKEN), make_case(8, Verdict.FAILING)))


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


CASES: dict[str, Callable[[], Run]] = {
    "unchanged": unchanged,
    "no_groups": no_groups,
    "groups": lambda: large_run(60, 6),
    "hostile": hostile,
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    """Writes the files anew where IRDIFF_UPDATE_GOLDEN is set: read the difference before you commit it."""
    path = GOLDEN / f"{name}.md"
    text = markdown.render(CASES[name]())
    if os.environ.get("IRDIFF_UPDATE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def test_every_golden_file_has_a_case() -> None:
    assert {path.stem for path in GOLDEN.glob("*.md")} == set(CASES)


def test_first_line_is_the_verdict() -> None:
    assert markdown.render(unchanged()).splitlines()[0] == "### irdiff: no code changed in 8 compared cases"
    first = markdown.render(large_run(60, 6)).splitlines()[0]
    assert (
        first == "### irdiff: 3 cases broken, 29 of 57 compared cases changed in 6 distinct ways, 5 absorbed"
    )


@pytest.mark.parametrize("limit", [1_000, 2_000, 5_000, 20_000, 60_000])
@pytest.mark.parametrize("run", [large_run(2000, 200, broken=40), large_run(400, 0), hostile()])
def test_never_above_the_limit(run: Run, limit: int) -> None:
    assert len(markdown.render(run, limit=limit)) <= limit


def test_says_how_many_groups_were_left_out() -> None:
    text = markdown.render(large_run(2000, 200))
    shown = text.count("Smallest example")
    assert shown < 200
    assert f"left out: {200 - shown} groups" in text
    assert "#### 1. " in text
    assert "#### Broken" in text


def test_a_limit_too_small_for_a_headline_is_refused() -> None:
    with pytest.raises(UsageError, match="at least"):
        markdown.render(unchanged(), limit=10)


def test_rendered_twice_it_is_the_same() -> None:
    assert markdown.render(large_run(300, 20)) == markdown.render(large_run(300, 20))


def test_hostile_strings_make_no_markup() -> None:
    text = markdown.render(hostile())
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "<script" not in page
    assert 'href="' not in page
    assert page.count("<details") == page.count("</details>")
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_code_in_titles_is_code() -> None:
    run = large_run(60, 6)
    titled = tuple(replace(group, title="+1 `ttng.fence` in a loop") for group in run.groups)
    text = markdown.render(replace(run, groups=titled))
    assert "#### 1. &#43;1 `ttng.fence` in a loop" in text
    assert "<code>ttng&#46;fence</code> in a loop" in text


def test_timings_are_in_the_second_line() -> None:
    row = ForestRow(
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
    timing = Forest(headline="1 slower of 1 timed", device="H200", rows=(row, unclear), wrong=(wrong,))
    text = markdown.render(unchanged(), timing)
    assert "1 slower of 1 timed" in text.splitlines()[2]
    assert "- `b@sm_90`: `different at head`" in text
    assert "- `c@sm_90`: `only 3 processes measured it`" in text
    assert "- `a@sm_90`: &#43;10.0 % (+5.0 % to +15.0 %), 10 → 11 µs, outputs bitwise equal" in text
