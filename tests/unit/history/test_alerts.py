"""What the newest version moved, as text, exit code and issue."""

import pytest

from irdiff.cli import history_commands
from irdiff.errors import ExitCode
from irdiff.github.api import Client
from irdiff.history import add, alerts, database, lines
from irdiff.model import Verdict
from tests.unit import runs
from tests.unit.history import histories
from tests.unit.typed import typed

A, B = "matmul/tma:fp16@sm_90", "moe/x:fp8@sm_90"
SAME, SAME_B = runs.case(A), runs.case(B)
CHANGED = runs.case(A, Verdict.CHANGED)


class Nights:
    """A history that grows a version at a time."""

    def __init__(self, file):
        self.file = file

    def add(self, base, head, *cases, groups=(), ratio=None):
        with database.writing(self.file) as history:
            add.add_run(history, histories.run(base, head, *cases, groups=groups), None)
            if ratio is not None:
                histories.session(history, A, {head: (ratio, 0.002)}, name=head)
        return alerts.check(self.read())

    def read(self):
        with database.reading(self.file) as history:
            return lines.read(history, "releases")


@pytest.fixture
def nights(tmp_path):
    """3.7.0 was timed."""
    found = Nights(tmp_path / "h")
    found.add("3.6.0", "3.7.0", SAME, ratio=1.0)
    return found


def test_spills_are_news_and_other_figures_are_not(tmp_path):
    group = runs.group("g1", A, severity="not shown")
    for fact, base, head, news in (
        ("spill_store_bytes", 0, 8, True),
        ("spill_store_bytes", 8, 0, False),
        ("warps_per_multiprocessor", 16, 12, False),
        ("registers", 100, 110, False),
    ):
        case = runs.case(A, Verdict.CHANGED, base={fact: base}, head={fact: head})
        alert = Nights(tmp_path / f"{fact} {base}").add("3.7.0", "3.8.0", case, groups=(group,))
        assert alert.is_news is news, (fact, base)


def check(nights, text):
    words = ("check", "--db", nights.file, "--markdown", text)
    return typed(history_commands.history_group, *words)[0], text.read_text()


def test_check_ends_with_1_for_news_and_never_with_0_where_nothing_was_compared(nights, tmp_path, snapshot):
    found = [check(nights, tmp_path / "text.md")]
    for base, head, a, b in (
        ("3.7.0", "3.8.0", Verdict.UNCHANGED, Verdict.BROKEN),
        ("3.8.0", "3.9.0", Verdict.UNCHANGED, Verdict.FAILING),
        ("3.9.0", "3.10.0", Verdict.FAILING, Verdict.UNSUPPORTED),
    ):
        nights.add(base, head, runs.case(A, a), runs.case(B, b))
        found.append(check(nights, tmp_path / "text.md"))
    with database.writing(nights.file) as history:
        add.put_versions(history, [histories.version("3.11.0")])
    found.append(check(nights, tmp_path / "text.md"))
    codes = [code for code, _ in found]
    assert codes == [0, 1, 0, ExitCode.NOT_COMPARED, ExitCode.NOT_COMPARED]
    assert [text for _, text in found] == snapshot


class FakeGithub:
    """The issues of one repository."""

    listed = Client.listed

    def __init__(self, *issues):
        self.issues = list(issues)

    def graphql(self, query, variables, *, to):
        return {"viewer": {"login": "irdiff[bot]"}}

    def rest(self, verb, path, body=None, *, to, **_):
        if verb == "GET":
            return [row for row in self.issues if row["state"] == "open"]
        if path == "/issues":
            self.issues.append({**body, **issue(len(self.issues) + 1, "irdiff[bot]")})
            return self.issues[-1]
        if verb == "PATCH":
            self.issues[int(path.rsplit("/", 1)[1]) - 1].update(body)
        return {}


def issue(number, user):
    return {"number": number, "state": "open", "user": {"login": user}, "html_url": f"u{number}"}


def keep(github, nights):
    series = nights.read()
    return history_commands.keep_issues(github, series, alerts.check(series))


def test_one_issue_is_opened_updated_and_closed_when_undone(nights):
    github = FakeGithub()

    def night(*arguments, **more):
        nights.add(*arguments, **more)
        return keep(github, nights)

    assert night("3.7.0", "3.8.0", CHANGED, runs.case(B, Verdict.BROKEN), ratio=1.1) == ["issue opened: u1"]
    assert github.issues[0]["title"] == "irdiff: 3.8.0: 1 no longer compiles, 1 slower"
    assert keep(github, nights) == ["issue unchanged: u1"]
    assert night("3.8.0", "3.9.0", CHANGED, SAME_B, ratio=1.11) == []  # still slower
    assert github.issues[0]["state"] == "open"
    assert night("3.9.0", "3.10.0", CHANGED, runs.case(B, Verdict.FIXED), ratio=1.0) == ["issue closed: u1"]
    assert github.issues[0]["state"] == "closed"


def test_issues_of_others_are_never_touched(nights):
    body = "<!-- irdiff:issue:releases-3.8.0 -->\nhello"
    github = FakeGithub({**issue(1, "eve"), "title": "t", "body": body})
    nights.add("3.7.0", "3.8.0", runs.case(B, Verdict.BROKEN))
    assert keep(github, nights) == ["issue opened: u2"]
    assert github.issues[0]["body"] == body
