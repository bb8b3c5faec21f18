from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from irdiff.cli import history_commands as command
from irdiff.history import add, alerts, database, lines
from irdiff.model import Verdict
from tests.unit.history import histories

A, B = "matmul/tma:fp16@sm_90", "moe/x:fp8@sm_90"
FAST = {"3.6.0": (1.0, 0.002), "3.7.0": (1.003, 0.002)}


class Bench:
    """A history that grows a version at a time."""

    def __init__(self, file: Path, build) -> None:
        self.file, self.build = file, build
        self.ratios: dict[str, tuple[float, float]] = {}

    def add(self, base: str, head: str, *cases, groups=(), ratio: float | None = None):
        with database.writing(self.file) as history:
            add.add_run(history, histories.run(base, head, *cases, groups=groups), None)
            self.ratios |= {head: (ratio, 0.002)} if ratio else {}
            if self.ratios:
                histories.session(history, A, self.ratios)
        return self.check()

    def read(self):
        with database.reading(self.file) as history:
            return lines.read(history, "releases")

    def check(self):
        return alerts.check(self.read())

    def same(self, case: str = A):
        return self.build.case(case, Verdict.UNCHANGED)


@pytest.fixture
def bench(tmp_path: Path, build) -> Bench:
    return Bench(tmp_path / "h", build)


def test_nothing_moved_is_no_news(bench: Bench) -> None:
    bench.add("3.6.0", "3.7.0", bench.same(), ratio=1.0)
    alert = bench.add("3.7.0", "3.8.0", bench.same(), ratio=1.004)
    assert not alert.is_news
    assert alerts.markdown(alert) == "3.8.0 moved nothing beyond the noise of its lines (releases).\n"


def test_a_slower_case_is_news_with_its_noise_and_a_command(bench: Bench, build) -> None:
    bench.add("3.6.0", "3.7.0", bench.same(), ratio=1.0)
    alert = bench.add("3.7.0", "3.8.0", build.case(A, Verdict.CHANGED), ratio=1.06)
    text = alerts.markdown(alert)
    assert text.startswith("### 3.8.0 after 3.7.0: 1 slower\n")
    assert f"`{A}`: +6.0 % (50.0 → 53.0 µs) on NVIDIA H200, where ±1.0 % is noise\n" in text
    assert f"v3.8.0 --case '{A}' --measure time" in text


def test_a_slower_case_names_its_change(bench: Bench, build) -> None:
    bench.add("3.6.0", "3.7.0", bench.same(), ratio=1.0)
    group = build.group("g1", A, title="one more `ttng.fence`")
    case = build.case(A, Verdict.CHANGED, base={"registers": 90}, head={"registers": 92})
    text = alerts.markdown(bench.add("3.7.0", "3.8.0", case, groups=(group,), ratio=1.06))
    assert "is noise. Its change: one more `ttng.fence`" in text


def test_a_faster_case_alone_is_no_news(bench: Bench, build) -> None:
    bench.add("3.6.0", "3.7.0", bench.same(), ratio=1.0)
    alert = bench.add("3.7.0", "3.8.0", build.case(A, Verdict.CHANGED), ratio=0.9)
    assert not alert.is_news
    assert len(alert.faster) == 1


@pytest.mark.parametrize(
    ("base", "head", "news"),
    [
        ({"spill_store_bytes": 0}, {"spill_store_bytes": 8}, True),
        ({"spill_store_bytes": 8}, {"spill_store_bytes": 0}, False),
        ({"warps_per_multiprocessor": 16}, {"warps_per_multiprocessor": 12}, True),
        ({"registers": 100}, {"registers": 110}, False),
    ],
)
def test_facts_that_cost_are_news(bench: Bench, build, base, head, news: bool) -> None:
    case = build.case(A, Verdict.CHANGED, base=base, head=head)
    group = build.group("g1", A, severity="instruction mix in loops")
    assert bench.add("3.7.0", "3.8.0", case, groups=(group,)).is_news is news


def test_an_edit_that_may_be_wrong_is_news(bench: Bench, build) -> None:
    case = build.case(A, Verdict.CHANGED, base={"ptx.fence": 1}, head={"ptx.fence": 0})
    group = build.group("g1", A, title="-1 `ttng.fence` <b>")
    text = alerts.markdown(bench.add("3.7.0", "3.8.0", case, groups=(group,)))
    assert "`ttng.fence`" in text
    assert "<b>" not in text


def test_a_long_line_is_held_against_its_own_noise(bench: Bench) -> None:
    labels = [f"3.{minor}.0" for minor in range(13)]
    wiggle = itertools.cycle((1.0, 1.03, 0.98, 1.01, 0.97, 1.02))
    bench.ratios = {head: (next(wiggle), 0.002) for head in labels[1:]}
    histories.kept(bench.file, *(histories.run(*pair, bench.same()) for pair in itertools.pairwise(labels)))
    assert not bench.add("3.12.0", "3.13.0", bench.same(), ratio=1.05).is_news  # far, for a line that does so
    assert bench.add("3.13.0", "3.14.0", bench.same(), ratio=1.3).slower


# issues


@dataclass
class FakeGithub:
    """The issues of one repository."""

    issues: list[dict[str, Any]] = field(default_factory=list)
    sent: list[tuple[str, str]] = field(default_factory=list)

    def graphql(self, query: str, variables: object, *, to: str) -> Any:
        return {"viewer": {"login": "irdiff[bot]"}}

    def rest(
        self, verb: str, path: str, body=None, *, to: str, parameters=None, repeatable: bool = True
    ) -> Any:
        if verb == "GET":
            return [row for row in self.issues if row["state"] == "open"]
        self.sent.append((verb, path))
        if path == "/issues":
            number = len(self.issues) + 1
            user = {"login": "irdiff[bot]"}
            self.issues.append(
                {**body, "number": number, "state": "open", "user": user, "html_url": f"u{number}"}
            )
            return self.issues[-1]
        if verb == "PATCH":
            self.issues[int(path.rsplit("/", 1)[1]) - 1].update(body)
        return {}


def test_one_issue_is_opened_updated_and_closed_when_undone(bench: Bench, build) -> None:
    github = FakeGithub()

    def night(*arguments, **more) -> list[str]:
        alert = bench.add(*arguments, **more)
        return command.keep_issues(github, bench.read(), alert)

    slower = build.case(A, Verdict.CHANGED)
    assert night("3.6.0", "3.7.0", bench.same(), bench.same(B), ratio=1.0) == []
    assert night("3.7.0", "3.8.0", slower, build.case(B, Verdict.BROKEN), ratio=1.1) == ["issue opened: u1"]
    assert github.issues[0]["title"] == "irdiff: 3.8.0: 1 no longer compiles, 1 slower"
    again = command.keep_issues(github, bench.read(), bench.check())
    assert again == ["issue unchanged: u1"]
    assert night("3.8.0", "3.9.0", slower, bench.same(B), ratio=1.11) == []  # still slower
    assert github.issues[0]["state"] == "open"
    assert night("3.9.0", "3.10.0", slower, build.case(B, Verdict.FIXED), ratio=1.0) == ["issue closed: u1"]
    assert github.issues[0]["state"] == "closed"
    assert github.sent[-2:] == [("POST", "/issues/1/comments"), ("PATCH", "/issues/1")]


def test_issues_of_others_are_never_touched(bench: Bench, build) -> None:
    body = "<!-- irdiff:issue:releases-3.8.0 -->\nhello"
    row = {
        "number": 1,
        "state": "open",
        "title": "t",
        "body": body,
        "html_url": "u1",
        "user": {"login": "eve"},
    }
    github = FakeGithub(issues=[row])
    bench.add("3.7.0", "3.8.0", build.case(B, Verdict.BROKEN))
    told = command.keep_issues(github, bench.read(), bench.check())
    assert told == ["issue opened: u2"]
    assert github.issues[0]["body"] == body


def test_check_ends_with_1_and_writes_its_text(bench: Bench, build, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from irdiff.cli.history_commands import history_group

    def check() -> tuple[int, str]:
        words = ["check", "--db", str(bench.file), "--markdown", str(tmp_path / "text.md")]
        result = CliRunner().invoke(history_group, words, standalone_mode=False)
        assert result.exception is None
        return int(result.return_value), (tmp_path / "text.md").read_text()

    bench.add("3.6.0", "3.7.0", bench.same(B))
    assert check()[0] == 0
    bench.add("3.7.0", "3.8.0", build.case(B, Verdict.BROKEN))
    code, text = check()
    assert code == 1
    assert f"- `{B}`" in text
