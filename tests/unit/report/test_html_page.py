"""What of the HTML report needs no browser; `tests/integration/test_html.py` has the rest."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from irdiff.model import Artifact, Sides, Verdict
from irdiff.report import html, html_diffs
from tests.unit import runs


@pytest.fixture
def run(tmp_path):
    found = runs.large_run(60, 6)
    wanted = {group.representative for group in found.groups}
    texts = (runs.TTGIR, runs.TTGIR_AT_HEAD)
    base, head = ({name: runs.stored(tmp_path, name, text) for name in ("ttir", "ttgir")} for text in texts)
    artifacts = Sides(base=base, head=head)
    cases = tuple(replace(case, artifacts=artifacts) if case.id in wanted else case for case in found.cases)
    return replace(found, cases=cases)


class Tags(HTMLParser):
    """The elements of a page, checked to be closed in order."""

    VOID = frozenset({"meta", "input", "br", "wbr", "link", "rect", "line"})

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self._open = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self._open.pop() == tag


def test_the_page_is_well_formed_and_loads_nothing(run, tmp_path):
    tags = Tags(html.render(run, tmp_path)).tags
    assert not [attrs for _, attrs in tags if "src" in attrs or attrs.get("href", "#")[:1] != "#"]
    assert not [
        attrs for _, attrs in tags if "style" in attrs or any(name.startswith("on") for name in attrs)
    ]
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_the_policy_names_the_script_and_the_sheet_by_digest(run, tmp_path):
    page = html.render(run, tmp_path)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    stated = set(re.findall(r"sha256-[A-Za-z0-9+/=]+", policy[1].replace("&#43;", "+")))
    contents = re.findall(r"<style>(.*?)</style>|<script>(.*?)</script>", page, re.DOTALL)
    digests = {
        "sha256-" + base64.b64encode(hashlib.sha256((sheet or script).encode()).digest()).decode()
        for sheet, script in contents
    }
    assert len(digests) == 2
    assert stated == digests


def test_a_missing_artifact_is_said_in_place(tmp_path):
    absent = Artifact(stage="ttgir", digest="0" * 64, size_bytes=1)
    case = runs.numbered(1, Verdict.CHANGED, artifacts=Sides(base={"ttgir": absent}, head={}))
    page = html.render(runs.run(case, groups=(runs.group("g", case.id),)), tmp_path)
    note = re.search(r'id="diffs-1">(.*?)</script>', page)
    assert note
    assert json.loads(note[1])["stages"][1]["note"]


def test_an_entry_keeps_to_its_share(run, tmp_path):
    lines = "".join(f"    x.op{i} 1 : i32\n" for i in range(900))
    text = f"module {{\n  tt.func public @kernel() {{\n{lines}    tt.return\n  }}\n}}\n"
    texts = (text, text.replace(" 1 : i32", " 2 : i32"))
    base, head = ({"ttgir": runs.stored(tmp_path, "ttgir", side)} for side in texts)
    case = runs.numbered(1, Verdict.CHANGED, artifacts=Sides(base=base, head=head))
    entry = html_diffs.entry(tmp_path, case, 20_000)
    stage = next(row for row in entry["stages"] if row["stage"] == "ttgir")
    assert 0 < stage["left_out"] < 1800
    assert len(str(entry)) < 25_000
