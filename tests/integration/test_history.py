"""Histories with real processes: several writers, a killed one, an index of wheels, and the site in a browser."""

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.history import database, site, versions
from tests.programs.browser import Watched
from tests.programs.checkouts import commit, new_repository
from tests.texts import text_of
from tests.unit.history import histories

ROOT = Path(__file__).parents[2]
KERNEL = "#/kernel/matmul%2Fpointer"
COPIES = 5
MAX_BYTES = 5_000_000
HOSTILE = "<img src=x onerror=window.pwned=1>`</code><script>window.pwned=1</script>"


_WRITER = text_of("history/writer.py")


def writer(path, name, pause_s, times):
    words = [sys.executable, "-c", _WRITER, str(path), name, str(pause_s), str(times)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)


def test_writers_at_the_same_time_wait_for_each_other(tmp_path):
    file = tmp_path / "history.duckdb"
    both = [writer(file, name, 0.02, 5) for name in ("one", "other")]
    assert [process.wait() for process in both] == [0, 0]
    with database.reading(file) as history:
        rows = history.rows("SELECT version, count(*) FROM facts GROUP BY version ORDER BY version")
    assert rows == [("one", 200), ("other", 200)]  # each write replaces that version's facts


def test_a_killed_writer_leaves_the_file_whole(tmp_path):
    file = tmp_path / "history.duckdb"
    histories.sample(file)
    with database.reading(file) as history:
        before = history.rows("SELECT * FROM facts ORDER BY ALL")
    killed = writer(file, "killed", 60.0, 1)
    assert killed.stdout.readline() == "inside\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    with database.writing(file) as history:
        assert history.rows("SELECT * FROM facts ORDER BY ALL") == before
        history.put("facts", [("later", "case", "fact", 1.0, "measured")])
    with database.reading(file) as history:
        assert history.value("SELECT count(*) FROM facts") == len(before) + 1


def wheel(folder, version):
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: triton\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: a\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(folder / f"triton-{version}-py3-none-any.whl", "w") as file:
        for name, text in files.items():
            file.writestr(f"triton-{version}.dist-info/{name}", text)


def test_nightlies_of_an_index_are_found_and_thinned(tmp_path):
    index = tmp_path / "simple" / "triton"
    index.mkdir(parents=True)
    names = ["3.4.0", *(f"3.5.0.dev202506{day:02d}" for day in (1, 2, 3, 9))]
    for name in names:
        wheel(index, name)
    rows = "".join(f'<a href="{path.name}">{path.name}</a>' for path in sorted(index.iterdir()))
    (index / "index.html").write_text(f"<!doctype html><html><body>{rows}</body></html>")
    config = versions.with_index(configuration.load(cache=tmp_path / "cache"), index.parent.as_uri())
    found = versions.of_specs(["triton==3.5.0.dev20250601..3.5.0.dev20250630"], 0, tmp_path, config)
    assert [point.label for point in found] == names[1:]
    weekly = versions.of_specs(["triton==3.5.0.dev20250601..3.5.0"], 7, tmp_path, config)
    assert [point.day for point in weekly] == ["2025-06-01", "2025-06-03", "2025-06-09"]
    assert {point.series for point in weekly} == {"nightlies"}


def test_commits_between_two_revisions(tmp_path):
    repo = new_repository(tmp_path / "repo")
    commits = [commit(repo, f"commit {number}") for number in range(4)]
    found = versions.of_specs(["main~2..main"], 0, repo, configuration.load(cache=tmp_path / "cache"))
    assert [point.spec for point in found] == commits[1:]
    assert [point.sort_key for point in found] == sorted(point.sort_key for point in found)


def written(folder, copies):
    """The site of eleven releases, whose cases are there so many times; a title in each run is hostile."""
    with database.writing(histories.sample(folder / "h.duckdb")) as history:
        for table in ("cases", "facts", "compilations", "stage_costs", "verdicts"):
            for n in range(1, copies):
                rows = f"SELECT * REPLACE (replace(case_id, ':', ':{n}-') AS case_id) FROM {table}"
                history.run(f"INSERT INTO {table} {rows} WHERE NOT regexp_matches(case_id, ':[1-9]-')")
        largest = "SELECT arg_max(group_id, members) FROM groups GROUP BY run"
        history.run(f"UPDATE groups SET title = ? WHERE group_id IN ({largest})", [HOSTILE])
    with database.reading(folder / "h.duckdb") as history:
        made = site.write(history, folder / "out", ROOT / "reports" / "history", None)
    return folder / "out" / "index.html", made


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return written(tmp_path_factory.mktemp("small"), 1)[0]


def show(page, path, hash_="#/"):
    page.open(path, hash_)
    page.until("document.documentElement.dataset.ready")


def go(page, hash_):
    page.evaluate(f"location.hash = {hash_!r}")
    page.until(f"document.documentElement.dataset.ready === {hash_!r}")


def text(page, selector):
    return page.evaluate(f"document.querySelector({selector!r})?.textContent ?? ''")


def inked(page):
    """Pixels of the first chart that are not empty."""
    return page.evaluate(
        "(() => { const c = document.querySelector('canvas');"
        "return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v).length })()"
    )


def test_eleven_versions_of_960_cases_load_little(page, tmp_path):
    path, made = written(tmp_path, COPIES)
    assert made.cases == 192 * COPIES
    show(page, path)
    files = [url.removeprefix("file://").partition("#")[0] for url in page.requests if url[:5] == "file:"]
    loaded = sum(Path(name).stat().st_size for name in files)
    assert loaded == made.overview_bytes < MAX_BYTES
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
    assert page.count("main tbody tr") == made.versions - 1
    assert page.complaints == []


def test_every_page_draws_and_says_nothing_to_the_console(page, small):
    show(page, small)
    assert inked(page) > 500
    links = set()
    hrefs = "[...document.querySelectorAll('main a')].map((a) => a.getAttribute('href'))"
    for start in ("#/", "#/kernels", "#/steps", "#/search?q=fence"):
        go(page, start)
        links |= set(page.evaluate(hrefs))
    assert {link.split("/")[1].partition("?")[0] for link in links} >= {"kernel", "pair", "step", "steps"}
    for link in sorted(links)[:60]:
        go(page, link)
        assert page.count(".error") == 0, link
    assert page.complaints == []


def test_what_the_history_says_is_text(page, small):
    show(page, small, "#/steps?v=10")
    hostile = "[...document.querySelectorAll('.steps a')].find((a) => a.textContent.includes('onerror'))"
    go(page, page.evaluate(f"{hostile}.getAttribute('href')"))
    assert "onerror" in text(page, "h1")
    assert page.evaluate("window.pwned") is None


def test_a_kernel_has_lines_for_every_fact_and_target(page, small):
    show(page, small, f"{KERNEL}?t=sm_90")
    facts = page.evaluate("[...document.querySelectorAll('label select')].map((s) => s.options.length)")
    assert max(facts) >= 40
    assert text(page, "h1") == "matmul/pointer"
    labels = page.evaluate("[...document.querySelectorAll('label')].map((l) => l.firstChild.textContent)")
    assert labels == ["Target", "Fact", "From", "To", "Cases"]
    assert page.count(".legend button") >= 1
    page.page.locator("label select").nth(1).select_option("ptx.fence")
    page.until("document.documentElement.dataset.ready.includes('f=ptx.fence')")
    assert text(page, "main section h2").startswith("ptx.fence on ")


def test_hover_zoom_and_hidden_lines_are_in_the_address(page, small):
    show(page, small, f"{KERNEL}?t=sm_90&f=registers")
    box = page.page.locator(".chart .u-over").bounding_box()
    page.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
    assert re.match(r"3\.5\.1 .*fp16-", text(page, ".readout"))
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 50, steps=4)
    page.page.mouse.up()
    assert "a=5" in page.evaluate("location.hash")
    page.page.locator(".legend button").first.click()
    assert "off=" in page.evaluate("location.hash")
    shared = page.evaluate("location.hash")
    show(page, small, shared)
    assert page.evaluate("document.querySelector('.legend button').getAttribute('aria-pressed')") == "false"
    assert page.evaluate("document.querySelectorAll('label select')[2].value") == "5"
    assert page.complaints == []


def test_everything_can_be_done_with_keys(page, small):
    show(page, small, f"{KERNEL}?t=sm_90&f=registers")
    page.page.locator(".chart").focus()
    page.page.keyboard.press("ArrowRight")
    assert text(page, ".readout").startswith("3.2.0")
    page.page.keyboard.press("End")
    assert text(page, ".readout").startswith("3.9.0")
    page.page.keyboard.press("+")
    assert "a=" in page.evaluate("location.hash")
    page.page.keyboard.press("0")
    assert "a=" not in page.evaluate("location.hash")
    page.page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.page.keyboard.press("/")
    page.page.keyboard.type("softmax")
    page.page.keyboard.press("Enter")
    page.until("document.documentElement.dataset.ready.startsWith('#/search')")
    assert "normalization/softmax" in text(page, "main section ul")
    page.page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "A"
    page.page.keyboard.press("Enter")
    page.until("document.documentElement.dataset.ready.startsWith('#/kernel/')")


def test_steps_are_filtered(page, small):
    show(page, small, "#/steps")
    every = page.count(".steps li")
    go(page, "#/steps?v=3")
    some = page.count(".steps li")
    assert 0 < some < every
    versions = page.evaluate("[...document.querySelectorAll('.steps div.dim')].map((d) => d.textContent)")
    assert all("→ 3.4.0" in text for text in versions)
    go(page, "#/steps?f=time")
    assert text(page, "main h2") == "0 change points" or "time" in text(page, ".steps")


def test_what_is_not_there_is_said(page, small, tmp_path):
    for hash_ in ("#/kernel/absent", "#/step/absent", "#/pair/0/7/9", "#/nowhere", "#/?s=9"):
        show(page, small, hash_)
        assert text(page, ".error h1") == "This page cannot be shown"
        go(page, "#/")
        assert page.count(".error") == 0
    copy = tmp_path / "copy"
    shutil.copytree(small.parent, copy)
    for path in (copy / "data").glob("kernel-*.js"):
        path.unlink()
    show(page, copy / "index.html", KERNEL)
    assert "is the whole folder here?" in text(page, ".error")


def test_phone_and_dark(chromium, small):
    for dark in (False, True):
        watched = Watched(chromium, width=390, dark=dark)
        for hash_ in ("#/", KERNEL, "#/steps", "#/kernels"):
            show(watched, small, hash_)
            assert watched.evaluate("document.documentElement.scrollWidth") == 390, hash_
        colour = "getComputedStyle(document.body).backgroundColor"
        assert (watched.evaluate(f"{colour}.match(/\\d+/g).map(Number)[0]") < 60) is dark
        assert watched.complaints == []
        watched.page.close()


def test_a_folder_of_someone_else_is_left_as_it_is(small, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine")
    with (
        database.reading(small.parent.parent / "h.duckdb") as history,
        pytest.raises(database.HistoryError, match="was not written by irdiff"),
    ):
        site.write(history, mine, ROOT / "reports" / "history", None)
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]
