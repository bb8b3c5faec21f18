"""What the newest version moved, as text, exit code and issue."""

from dataclasses import replace

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

    def add(self, base, head, *cases, groups=(), ratio=None, **of_session):
        with database.writing(self.file) as history:
            add.add_run(history, histories.run(base, head, *cases, groups=groups), None)
            if ratio is not None:
                histories.session(history, A, {head: (ratio, 0.002)}, name=head, **of_session)
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


@pytest.mark.parametrize("unfit", [{"trustworthy": False}, {"processes": 6}], ids=["busy", "quick look"])
def test_times_of_a_busy_gpu_or_a_quick_look_are_no_news(nights, unfit):
    assert nights.add("3.7.0", "3.8.0", CHANGED, ratio=1.3).slower
    assert not nights.add("3.8.0", "3.9.0", CHANGED, ratio=1.7, **unfit).is_news
    alert = nights.add("3.9.0", "3.10.0", CHANGED, ratio=1.3)
    assert not alert.is_news, "it is as fast as what was measured before"


def test_outputs_that_differ_from_those_before_are_news_and_close_no_issue(nights, tmp_path):
    github = FakeGithub()
    nights.add("3.7.0", "3.8.0", SAME, ratio=1.0, outputs="different")
    assert keep(github, nights) == ["issue opened: u1"]
    code, text = check(nights, tmp_path / "text.md")
    assert (code, github.issues[0]["title"]) == (1, "irdiff: 3.8.0: 1 with other outputs")
    assert f"- `{A}`: different on NVIDIA H200" in text
    nights.add("3.8.0", "3.9.0", SAME, ratio=1.0)
    assert keep(github, nights) == [], "3.7.0 agrees with it, and a person closes the issue"
    assert check(nights, tmp_path / "text.md")[0] == 0


def test_the_newest_version_is_the_reference_from_which_all_before_it_differ(nights):
    nights.add("3.7.0", "3.8.0", SAME)
    with database.writing(nights.file) as history:
        both = {"3.6.0": (1.0, 0.002), "3.7.0": (1.0, 0.002)}
        histories.session(history, A, both, name="3.7.0", outputs="different")
        histories.session(history, A, {"3.8.0": (1.0, 0.002)}, name="3.8.0")
    (wrong,) = alerts.check(nights.read()).wrong
    assert (wrong.case_id, wrong.outputs) == (A, "different")


def test_a_pair_of_two_series_is_not_checked_and_says_so(nights, tmp_path):
    """Two nights of one path are two versions."""
    made = histories.run("3.7.0", "3.8.0", SAME)
    with database.writing(nights.file) as history:
        for digits in ("a" * 64, "b" * 64):
            head = replace(made.head, spec="python:/opt/bin/python", digest=digits)
            add.add_run(history, replace(made, head=head, created=f"2026-11-2{digits[0]}"), None)
    code, text = check(nights, tmp_path / "text.md")
    assert code == ExitCode.NOT_COMPARED
    words = "python bbbbbbbbbb (others) was compared with a version of another series"
    assert text.startswith(words), text
    with database.reading(nights.file) as history:
        assert len(lines.read(history, "others").versions) == 2


def test_issues_of_others_are_never_touched(nights):
    body = "<!-- irdiff:issue:releases-3.8.0 -->\nhello"
    github = FakeGithub({**issue(1, "eve"), "title": "t", "body": body})
    nights.add("3.7.0", "3.8.0", runs.case(B, Verdict.BROKEN))
    assert keep(github, nights) == ["issue opened: u2"]
    assert github.issues[0]["body"] == body
