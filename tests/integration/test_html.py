"""The HTML report in a real headless Chromium, at the size it is meant for."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from irdiff.model import Run, Sides, Verdict
from irdiff.report import html
from irdiff.report.timing_summary import TimingRow, TimingSummary, WrongOutput
from irdiff.timing.results import Measurement, Speed
from tests.integration import browser
from tests.integration.browser import Watched
from tests.unit import runs
from tests.unit.runs import large_run, stored

pytestmark = pytest.mark.integration
if reason := browser.missing():
    pytest.skip(reason, allow_module_level=True)  # once; what was not run is said at the end
if TYPE_CHECKING:
    from playwright.sync_api import Browser

CASES, GROUPS = 2000, 200
MAX_BYTES = 15_000_000
MAX_OPEN_S = 2.0
MAX_FILTER_MS = 100
HOSTILE = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\" onmouseover='x' {{7*7}}"
)


def module(operations: int, seed: int, *, head: bool) -> str:
    """A module of the size of a real kernel; at head a fence more and every eleventh layout another."""
    lines = ["#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], order = [1, 0]}>"]
    lines += ["#blocked1 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], order = [1, 0]}>"]
    lines += ["module {", "  tt.func public @kernel(%arg0: i32) {", "    %v0 = arith.constant 1 : i32"]
    for index in range(1, operations):
        layout = "#blocked1" if head and (index + seed) % 11 == 0 else "#blocked"
        kind = ("addi", "muli", "subi")[(index * 7 + seed) % 3]
        kind_and_type = f"arith.{kind} %v{index - 1}, %v{index // 2} : tensor<64x{64 + seed}xi32, {layout}>"
        lines.append(f"    %v{index} = {kind_and_type}")
        if head and index % 50 == 0:
            lines.append("    ttng.fence_async_shared {bCluster = false}")
    return "\n".join([*lines, "    tt.return", "  }", "}", ""])


def with_texts(run: Run, folder: Path, operations: int = 400) -> Run:
    """Gives the smallest example of each group texts in all its MLIR stages."""
    wanted = {group.representative: place for place, group in enumerate(run.groups)}
    cases = []
    for case in run.cases:
        place = wanted.get(case.id)
        if place is None:
            cases.append(case)
            continue
        texts = [module(operations, place % 16, head=head) for head in (False, True)]
        sides = [{name: stored(folder, name, text) for name in ("ttir", "ttgir")} for text in texts]
        cases.append(replace(case, artifacts=Sides(base=sides[0], head=sides[1])))
    return replace(run, cases=tuple(cases))


def measurement(**known: Any) -> Measurement:
    return Measurement(**{**dict.fromkeys(Measurement.__dataclass_fields__, 1.0), **known})


def forest(run: Run) -> TimingSummary:
    changed = [case.id for case in run.cases if case.verdict is Verdict.CHANGED][:100]
    rows = [
        TimingRow(
            case_id=case_id,
            outputs="bitwise equal",
            measured=measurement(
                ratio=0.95 + index % 13 / 100,
                ratio_low=0.94 + index % 13 / 100,
                ratio_high=0.96 + index % 13 / 100,
                noise_floor=0.004,
                speed=(Speed.FASTER, Speed.SAME, Speed.SLOWER)[index % 3],
                why="",
                base_us=100.0 + index,
                head_us=101.5 + index,
            ),
        )
        for index, case_id in enumerate(changed)
    ]
    wrong = (WrongOutput(case_id=changed[0], words="different at head"),)
    return TimingSummary(
        headline="33 slower, 33 same, 34 faster", device="1 H200", rows=tuple(rows), wrong=wrong
    )


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.chromium() as found:
        yield found


@pytest.fixture
def page(chromium: Browser) -> Iterator[Watched]:
    watched = Watched(chromium)
    yield watched
    watched.page.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    run = with_texts(large_run(CASES, GROUPS), folder)
    path = folder / "report.html"
    path.write_text(html.render(run, folder, forest(run)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    run = with_texts(large_run(60, 5), folder, operations=60)
    path = folder / "report.html"
    path.write_text(html.render(run, folder, forest(run)), encoding="utf-8")
    return path


def open_in_s(page: Watched, path: Path) -> float:
    started = time.monotonic()
    page.open(path)
    assert page.evaluate("document.documentElement.dataset.ready") == "yes"
    return time.monotonic() - started


def test_what_goes_wrong_in_a_page_is_seen(page: Watched, tmp_path: Path) -> None:
    path = tmp_path / "wrong.html"
    path.write_text(
        "<meta http-equiv=Content-Security-Policy content=\"img-src 'none'\"><img src=https://example.com/a.png>"
        "<script>console.warn('warned'); setTimeout(() => { throw new Error('thrown'); })</script>"
        "<script src=absent.js></script>"
    )
    page.open(path)
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    for word in ("warned", "thrown", "Content Security Policy", "ERR_FILE_NOT_FOUND"):
        assert any(word in complaint for complaint in page.complaints), word
    assert {url.rpartition("/")[2] for url in page.requests} == {"wrong.html", "a.png", "absent.js"}


def test_two_thousand_cases_open_at_once(page: Watched, large: Path) -> None:
    size = large.stat().st_size
    took_s = min(open_in_s(page, large) for _ in range(3))  # other tests may hold the cores
    print(f"{CASES} cases, {GROUPS} groups: {size / 1e6:.1f} MB, open in {took_s:.2f} s")
    assert size < MAX_BYTES
    assert took_s < MAX_OPEN_S
    assert page.evaluate("document.querySelectorAll('#case-table tbody tr').length") == CASES
    assert page.evaluate("document.querySelectorAll('details.group').length") == GROUPS
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith("file:")] == []


def test_cases_that_are_not_rows_of_the_page_are_found_and_sorted(page: Watched, tmp_path: Path) -> None:
    count = html.MAX_CASE_ROWS * 5
    path = tmp_path / "report.html"
    path.write_text(html.render(large_run(count, 20), tmp_path), encoding="utf-8")
    assert min(open_in_s(page, path) for _ in range(3)) < MAX_OPEN_S
    ids = "[...document.querySelectorAll('#case-table tbody tr td:first-child')].map((cell) => cell.textContent)"
    said = "document.querySelector('#case-filters output').textContent"
    assert page.evaluate(said) == f"{count} of {count} cases, the first 500 shown"
    drawn = page.evaluate("document.querySelector('#case-table tbody tr').outerHTML")
    assert drawn == first_row(path), "a script draws what the template does"
    last = large_run(count, 20).cases[-1].id
    took_ms = page.evaluate(f"""(() => {{
        const began = performance.now();
        const field = document.querySelector('#case-filters').elements.text;
        field.value = {last!r};
        field.dispatchEvent(new Event('input', {{ bubbles: true }}));
        document.body.getBoundingClientRect();
        return performance.now() - began;
    }})()""")
    assert page.evaluate(ids) == [last]
    assert took_ms < MAX_FILTER_MS
    page.evaluate("document.querySelector('#case-filters').reset()")
    page.evaluate("document.querySelector('#case-table th button').click()")
    assert page.evaluate(ids) == sorted(case.id for case in large_run(count, 20).cases)[:500]
    assert page.complaints == []


def first_row(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    row = text[text.index("<tbody>", text.index('id="case-table"')) + len("<tbody>") :].strip()
    return re.sub(r" data-\w=\"[^\"]*\"", "", row[: row.index("</tr>") + len("</tr>")])


def test_every_group_opens_with_a_diff(page: Watched, large: Path) -> None:
    page.open(large)
    page.evaluate("document.querySelectorAll('details.group').forEach((g) => { g.open = true; })")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    drawn = page.evaluate(
        "[...document.querySelectorAll('.diff')].filter((d) => d.querySelector('.tabs')).length"
    )
    assert drawn == GROUPS
    assert page.complaints == []


def test_a_diff_has_marks_folds_raw_text_and_two_sides(page: Watched, small: Path) -> None:
    page.open(small)
    page.evaluate("document.querySelectorAll('details.group')[1].open = true")
    page.evaluate("new Promise((done) => setTimeout(done, 50))")

    def count(selector: str) -> int:
        return page.evaluate(f"document.querySelectorAll('details.group[open] .diff {selector}').length")

    def press(label: str) -> None:
        page.evaluate(
            "[...document.querySelectorAll('details.group[open] .tabs button')]"
            f".find((b) => b.textContent.startsWith('{label}')).click()"
        )

    assert count("tr.add") >= 1
    assert count("mark") >= 1
    folds = count("tr.gap button")
    rows = count("tr")
    if folds:
        page.evaluate("document.querySelector('details.group[open] tr.gap button').click()")
        assert count("tr") > rows
    text = page.evaluate("document.querySelector('details.group[open] .lines').textContent")
    press("raw")
    assert page.evaluate("document.querySelector('details.group[open] .lines').textContent") != text
    press("raw")
    press("side by side")
    assert count("tr.side") > 0
    press("side by side")
    assert page.complaints == []


def test_a_cell_of_the_matrix_filters_the_cases(page: Watched, small: Path) -> None:
    page.open(small)
    page.evaluate("document.querySelector('.matrix a').click()")
    shown = page.evaluate(
        "[...document.querySelectorAll('#case-table tbody tr')].filter((r) => !r.hidden).length"
    )
    assert 0 < shown < 60
    page.evaluate("document.querySelector('#case-filters button').click()")
    page.evaluate("new Promise((done) => setTimeout(done, 20))")
    assert page.evaluate("document.querySelectorAll('#case-table tbody tr:not([hidden])').length") == 60


def test_groups_are_filtered_by_severity(page: Watched, small: Path) -> None:
    page.open(small)
    page.evaluate(
        "(() => { const s = document.querySelector('#group-filters select[name=severity]');"
        "s.selectedIndex = 1; s.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    assert 0 < page.evaluate("document.querySelectorAll('details.group:not([hidden])').length") < 5


def test_columns_sort_both_ways(page: Watched, small: Path) -> None:
    page.open(small)
    first = "document.querySelector('#case-table tbody tr td').textContent"
    page.evaluate("document.querySelector('#case-table th button').click()")
    lowest = page.evaluate(first)
    page.evaluate("document.querySelector('#case-table th button').click()")
    assert page.evaluate(first) > lowest
    assert page.evaluate("document.querySelector('#case-table th').getAttribute('aria-sort')") == "descending"
    page.evaluate("document.querySelectorAll('.forest-table th button')[3].click()")
    changes = page.evaluate(
        "[...document.querySelectorAll('.forest-table tbody tr')].map((r) => +r.children[3].dataset.value)"
    )
    assert changes == sorted(changes)


def test_keys_move_open_and_find(page: Watched, small: Path) -> None:
    page.open(small)
    page.page.keyboard.press("j")
    page.page.keyboard.press("j")
    assert page.evaluate("document.activeElement.closest('details').id") == "group-2"
    page.page.keyboard.press("k")
    page.page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('#group-1').open")
    page.page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "text"


def test_a_link_to_a_group_opens_it(page: Watched, small: Path) -> None:
    page.open(small, "#group-3")
    assert page.evaluate("document.querySelector('#group-3').open")
    assert page.evaluate("document.querySelectorAll('#group-3 .lines tr').length") > 0


def hostile_run() -> Run:
    case = replace(
        runs.numbered(0, Verdict.CHANGED), id=HOSTILE, target=HOSTILE, kernel=HOSTILE, workload=HOSTILE
    )
    broken = runs.numbered(1, Verdict.BROKEN, id=HOSTILE + "2", error=HOSTILE)
    group = runs.group(
        HOSTILE,
        HOSTILE,
        title=f"`{HOSTILE}` {HOSTILE}",
        severity=HOSTILE + " risk",
        origin_stage=HOSTILE,
        pass_name=HOSTILE,
        reasons=(HOSTILE,),
        edit=("+" + HOSTILE, "-" + HOSTILE),
    )
    run = runs.run(case, broken, groups=(group,))
    return replace(
        run,
        base=replace(run.base, spec=HOSTILE, version=HOSTILE, note=HOSTILE, ptxas={HOSTILE: HOSTILE}),
        notes=(HOSTILE,),
        command=(HOSTILE,),
        environment={HOSTILE: HOSTILE},
    )


def test_a_hostile_run_is_shown_and_does_nothing(page: Watched, tmp_path: Path) -> None:
    run = hostile_run()
    rows = [
        replace(row, case_id=HOSTILE, outputs=HOSTILE, measured=replace(row.measured, why=HOSTILE))
        for row in forest(run).rows
    ]
    wrong = (WrongOutput(case_id=HOSTILE, words=HOSTILE),)
    path = tmp_path / "report.html"
    path.write_text(
        html.render(
            run, tmp_path, TimingSummary(headline=HOSTILE, device=HOSTILE, rows=tuple(rows), wrong=wrong)
        ),
        "utf-8",
    )
    page.open(path)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.evaluate("new Promise((done) => setTimeout(done, 100))")
    assert page.evaluate("window.pwned === undefined")
    assert (
        page.evaluate("document.querySelectorAll('img, iframe, object, [onmouseover], [onerror]').length")
        == 0
    )
    assert page.evaluate("document.querySelectorAll('script:not([type])').length") == 1
    assert "window.pwned=1" in page.evaluate("document.querySelector('.title').textContent")
    assert page.complaints == []


def test_the_page_may_not_reach_the_network(page: Watched, small: Path) -> None:
    page.open(small)
    assert page.evaluate("fetch('https://example.com/').then(() => 'open', () => 'refused')") == "refused"
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.late = 1'}))"
    )
    assert page.evaluate("window.late === undefined")


CONTRAST = r"""
(() => {
  const channel = (v) => (v / 255 <= 0.03928 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  };
  const under = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/, 0\)$/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const ratio = (e) => {
    const pair = [light(getComputedStyle(e).color), light(under(e))];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  };
  const texts = "p, td, th, a, h1, h2, summary span, code, button, .lines td, mark";
  return [...document.querySelectorAll(texts)]
    .filter((e) => e.textContent.trim() && e.offsetParent)
    .map((e) => [ratio(e), `${e.tagName}.${e.className}: ${e.textContent.slice(0, 40)}`])
    .sort((a, b) => a[0] - b[0])[0];
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(
    page: Watched, small: Path, scheme: Literal["light", "dark"]
) -> None:
    page.page.emulate_media(color_scheme=scheme)
    page.open(small, "#group-2")
    ratio, where = page.evaluate(CONTRAST)
    assert ratio >= 4.5, where  # WCAG 2.2, 1.4.3


def test_a_phone_needs_no_sideways_scrolling(chromium: Browser, small: Path) -> None:
    phone = Watched(chromium, width=390, height=844)
    phone.open(small, "#group-2")
    width = phone.evaluate("document.documentElement.scrollWidth")
    phone.page.close()
    assert width <= 390
