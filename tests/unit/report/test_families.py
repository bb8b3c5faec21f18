from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from irdiff.model import Run, Verdict
from irdiff.report import families, html, markdown
from tests.unit.report.runs import make_case, make_run


def two_families() -> Run:
    """matmul: sm_90 changed and broken, sm_100 unchanged; attention: gfx942 absorbed."""
    first = make_case(0, Verdict.CHANGED)
    broken = replace(make_case(0, Verdict.BROKEN), id="matmul/other:x@sm_90")
    return make_run((first, broken, make_case(1, Verdict.UNCHANGED), make_case(6, Verdict.ABSORBED)))


def test_counts_changed_of_compared_and_says_what_broke_beside_it() -> None:
    attention, matmul = families.table(two_families())
    assert (attention.name, matmul.name) == ("attention", "matmul")
    assert [share.words for share in matmul.by_target] == ["1/1, 1 broken", "0/1", "", ""]
    assert (matmul.total.words, matmul.total.percent) == ("1/2, 1 broken", "50%")
    assert [share.words for share in attention.by_target] == ["", "", "0/1", ""]


def test_one_family_has_no_table() -> None:
    run = make_run((make_case(0, Verdict.CHANGED), make_case(1, Verdict.UNCHANGED)))
    assert families.table(run) == []
    assert "By family" not in markdown.render(run)


def test_families_that_were_not_compared_are_no_rows() -> None:
    unsupported = make_case(6, Verdict.UNSUPPORTED)
    assert families.table(make_run((make_case(0, Verdict.CHANGED), unsupported))) == []


def test_markdown_folds_the_table() -> None:
    text = markdown.render(two_families())
    table = text[text.index("<summary>By family</summary>") :]
    assert "| family | `sm_90` | `sm_100` | `gfx942` | `gfx950` | all | blast radius |" in table
    assert "| matmul | 1/1, 1 broken | 0/1 |  |  | 1/2, 1 broken | 50% |" in table


def test_too_many_families_are_counted() -> None:
    cases = tuple(
        replace(make_case(0, Verdict.CHANGED), id=f"f{n}/w:x@sm_90", workload=f"f{n}/w") for n in range(70)
    )
    assert "Left out: 10 families." in markdown.render(make_run(cases))


class _Rows(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._inside = "families" in (dict(attrs).get("class") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside and data.strip():
            self.text.append(data.strip())


def test_the_page_has_the_same_numbers(tmp_path: Path) -> None:
    cells = _Rows(html.render(two_families(), tmp_path)).text
    place = cells.index("matmul")
    assert cells[place:] == ["matmul", "1/1, 1 broken", "0/1", "1/2, 1 broken", "50%"]
