"""The HTML report in a real headless Chromium, at the size it is meant for."""

import re
from dataclasses import replace

import pytest

from irdiff.model import Sides, Verdict
from irdiff.report import html
from irdiff.report.timing_summary import TimingRow, TimingSummary, WrongOutput
from irdiff.timing.results import Measurement, Speed
from tests.programs.browser import Watched
from tests.texts import text_of
from tests.unit import runs
from tests.unit.report.test_reports import hostile
from tests.unit.runs import large_run, stored

CASES, GROUPS = 2000, 200
MAX_BYTES = 15_000_000
HOSTILE = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\" onmouseover='x' {{7*7}}"
)


def module(operations, seed, *, head):
    """A module of the size of a real kernel; at head every eleventh layout is another, with a fence before it."""
    rows = []
    for index in range(1, operations):
        moved = head and (index + seed) % 11 == 0
        kind, layout = ("addi", "muli", "subi")[(index * 7 + seed) % 3], "#blocked1" if moved else "#blocked"
        types = f"tensor<64x{64 + seed}xi32, {layout}>"
        rows += ["    ttng.fence_async_shared {bCluster = false}"] * moved
        rows.append(f"    %v{index} = arith.{kind} %v{index - 1}, %v{index // 2} : {types}")
    return text_of("html/module.ttgir.template").replace("    ROWS\n", "\n".join([*rows, ""]))


def with_texts(run, folder, operations):
    """Gives the smallest example of each group texts in all its MLIR stages."""
    wanted = {group.representative: place for place, group in enumerate(run.groups)}
    cases = []
    for case in run.cases:
        if (place := wanted.get(case.id)) is not None:
            texts = [module(operations, place % 16, head=head) for head in (False, True)]
            sides = [{name: stored(folder, name, text) for name in ("ttir", "ttgir")} for text in texts]
            case = replace(case, artifacts=Sides(base=sides[0], head=sides[1]))
        cases.append(case)
    return replace(run, cases=tuple(cases))


def forest(run, **more):
    changed = [case.id for case in run.cases if case.verdict is Verdict.CHANGED][:100]
    rows = []
    for index, case_id in enumerate(changed):
        ratio = 0.95 + index % 13 / 100
        known = {"speed": (Speed.FASTER, Speed.SAME, Speed.SLOWER)[index % 3], "why": more.get("why", "")}
        known |= {"ratio": ratio, "ratio_low": ratio - 0.01, "ratio_high": ratio + 0.01, "noise_floor": 0.004}
        known |= {"base_us": 100.0 + index, "head_us": 101.5 + index}
        measured = runs.blank(Measurement, **known)
        words = {"case_id": case_id, "outputs": "bitwise equal", **more}
        rows.append(TimingRow(case_id=words["case_id"], outputs=words["outputs"], measured=measured))
    wrong = (WrongOutput(case_id=rows[0].case_id, words="different at head", is_of_head=True),)
    return TimingSummary(headline="33 slower, 34 faster", device="1 H200", rows=tuple(rows), wrong=wrong)


def written(folder, run, timing=None):
    path = folder / "report.html"
    path.write_text(html.render(run, folder, timing), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    run = with_texts(large_run(CASES, GROUPS), folder, operations=400)
    return written(folder, run, forest(run))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    run = with_texts(large_run(60, 5), folder, operations=60)
    return written(folder, run, forest(run))


def click(page, selector, place=0):
    page.evaluate(f"document.querySelectorAll({selector!r})[{place}].click()")


def drawn(page):
    """Each group that is open shows its diff."""
    page.until("[...document.querySelectorAll('details.group[open] .diff')].every((box) => box.data)")


def test_what_goes_wrong_in_a_page_is_seen(page, tmp_path):
    path = tmp_path / "wrong.html"
    path.write_text(
        "<meta http-equiv=Content-Security-Policy content=\"img-src 'none'\"><img src=https://example.com/a.png>"
        "<script>console.warn('warned'); setTimeout(() => { throw new Error('thrown'); })</script>"
        "<script src=absent.js></script>"
    )
    page.open(path)
    for word in ("warned", "thrown", "Content Security Policy", "ERR_FILE_NOT_FOUND"):
        while not any(word in complaint for complaint in page.complaints):
            page.page.wait_for_timeout(10)
    assert {url.rpartition("/")[2] for url in page.requests} == {"wrong.html", "a.png", "absent.js"}


def test_two_thousand_cases_and_every_diff(page, large):
    page.open(large)
    assert page.evaluate("document.documentElement.dataset.ready") == "yes"
    assert large.stat().st_size < MAX_BYTES
    assert page.count("#case-table tbody tr") == CASES
    assert page.count("details.group") == GROUPS
    page.evaluate("document.querySelectorAll('details.group').forEach((g) => { g.open = true; })")
    drawn(page)
    assert page.count(".diff:has(.tabs)") == GROUPS
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith("file:")] == []


def test_cases_that_are_not_rows_of_the_page_are_found_and_sorted(page, tmp_path):
    many = html.MAX_CASE_ROWS * 5
    run = large_run(many, 20)
    path = written(tmp_path, run)
    page.open(path)
    ids = "[...document.querySelectorAll('#case-table tbody tr td:first-child')].map((cell) => cell.textContent)"
    said = page.evaluate("document.querySelector('#case-filters output').textContent")
    assert said == f"{many} of {many} cases, the first 500 shown"
    row = page.evaluate("document.querySelector('#case-table tbody tr').outerHTML")
    assert row == first_row(path), "a script draws what the template does"
    page.evaluate(f"""(() => {{
        const field = document.querySelector('#case-filters').elements.text;
        field.value = {run.cases[-1].id!r};
        field.dispatchEvent(new Event('input', {{ bubbles: true }}));
    }})()""")
    assert page.evaluate(ids) == [run.cases[-1].id]
    page.evaluate("document.querySelector('#case-filters').reset()")
    click(page, "#case-table th button")
    assert page.evaluate(ids) == sorted(case.id for case in run.cases)[:500]
    assert page.complaints == []


def first_row(path):
    text = path.read_text(encoding="utf-8")
    row = text[text.index("<tbody>", text.index('id="case-table"')) + len("<tbody>") :].strip()
    return re.sub(r" data-\w=\"[^\"]*\"", "", row[: row.index("</tr>") + len("</tr>")])


def test_a_diff_has_marks_folds_raw_text_and_two_sides(page, small):
    page.open(small)
    page.evaluate("document.querySelectorAll('details.group')[1].open = true")
    drawn(page)
    diff, lines = (
        "details.group[open] .diff",
        "document.querySelector('details.group[open] .lines').textContent",
    )

    def press(label):
        buttons = "[...document.querySelectorAll('details.group[open] .tabs button')]"
        page.evaluate(f"{buttons}.find((b) => b.textContent.startsWith('{label}')).click()")

    assert page.count(f"{diff} tr.add") >= 1 and page.count(f"{diff} mark") >= 1
    rows = page.count(f"{diff} tr")
    if page.count(f"{diff} tr.gap button"):
        click(page, "details.group[open] tr.gap button")
        assert page.count(f"{diff} tr") > rows
    text = page.evaluate(lines)
    press("raw")
    assert page.evaluate(lines) != text
    press("raw")
    press("side by side")
    assert page.count(f"{diff} tr.side") > 0
    assert page.complaints == []


def test_cases_and_groups_are_filtered_and_sorted(page, small):
    page.open(small)
    shown = "#case-table tbody tr:not([hidden])"
    click(page, ".matrix a")
    assert 0 < page.count(shown) < 60
    click(page, "#case-filters button")
    page.until(f"document.querySelectorAll('{shown}').length === 60")
    page.evaluate(
        "(() => { const s = document.querySelector('#group-filters select[name=risk]');"
        "s.selectedIndex = 1; s.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    assert 0 < page.count("details.group:not([hidden])") < 5

    first = "document.querySelector('#case-table tbody tr td').textContent"
    click(page, "#case-table th button")
    lowest = page.evaluate(first)
    click(page, "#case-table th button")
    assert page.evaluate(first) > lowest
    assert page.evaluate("document.querySelector('#case-table th').getAttribute('aria-sort')") == "descending"
    click(page, ".forest-table th button", 3)
    rows = "[...document.querySelectorAll('.forest-table tbody tr')]"
    changes = page.evaluate(f"{rows}.map((r) => +r.children[3].dataset.value)")
    assert changes == sorted(changes)


def test_keys_and_links_move_open_and_find(page, small):
    page.open(small)
    for key in "jj":
        page.page.keyboard.press(key)
    groups = "[...document.querySelectorAll('details.group')]"  # what a GPU found slow comes first
    assert page.evaluate(f"document.activeElement.closest('details') === {groups}[1]")
    for key in ("k", "Enter"):
        page.page.keyboard.press(key)
    assert page.evaluate(f"{groups}[0].open")
    page.page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "text"
    page.open(small, "#group-3")
    assert page.evaluate("document.querySelector('#group-3').open")
    page.until("document.querySelector('#group-3 .lines tr')")


def test_a_row_shows_its_own_diff_in_its_group(page, small):
    page.open(small)
    links = page.page.query_selector_all("#case-table a[data-diffs]")
    shown = set()
    for link in links[:6]:
        link.click()
        group = link.get_attribute("href")
        page.until(f"document.querySelector('{group}').open")
        page.until(
            f"document.querySelector('{group} .diff').textContent.includes('Diff of {link.inner_text()}')"
        )
        shown.add(link.inner_text())
    assert len(shown) > 1


def test_a_hostile_run_is_shown_and_does_nothing(page, tmp_path):
    run = hostile(HOSTILE)
    timing = forest(run, case_id=HOSTILE, why=HOSTILE, outputs=HOSTILE)
    wrong = (WrongOutput(case_id=HOSTILE, words=HOSTILE, is_of_head=True),)
    page.open(written(tmp_path, run, replace(timing, headline=HOSTILE, device=HOSTILE, wrong=wrong)))
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    drawn(page)
    assert page.evaluate("window.pwned === undefined")
    assert page.count("img, iframe, object, [onmouseover], [onerror]") == 0
    assert page.count("script:not([type])") == 1
    assert "window.pwned=1" in page.evaluate("document.querySelector('.title').textContent")
    assert page.complaints == []


def test_the_page_may_not_reach_the_network(page, small):
    page.open(small)
    assert page.evaluate("fetch('https://example.com/').then(() => 'open', () => 'refused')") == "refused"
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.late = 1'}))"
    )
    assert page.evaluate("window.late === undefined")


CONTRAST = text_of("html/contrast.js")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(page, small, scheme):
    page.page.emulate_media(color_scheme=scheme)
    page.open(small, "#group-2")
    ratio, where = page.evaluate(CONTRAST)
    assert ratio >= 4.5, where  # WCAG 2.2, 1.4.3


def test_a_phone_needs_no_sideways_scrolling(chromium, small):
    phone = Watched(chromium, width=390, height=844)
    phone.open(small, "#group-2")
    width = phone.evaluate("document.documentElement.scrollWidth")
    phone.page.close()
    assert width <= 390
