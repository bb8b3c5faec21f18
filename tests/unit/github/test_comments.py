"""Commands in comments, and comments: what is taken, what is written, and that neither can be made to say anything else."""

from dataclasses import replace
from operator import itemgetter

import pytest

from irdiff.cli.comment_command import comment_command
from irdiff.errors import UsageError
from irdiff.github import checks, comment, comment_commands
from irdiff.github.comment_commands import CommentCommand
from irdiff.model import CaseSummary, Sides, Verdict
from irdiff.report import conclusion
from irdiff.report.timing_summary import TimingSummary, WrongOutput
from tests.unit import runs
from tests.unit.golden import golden
from tests.unit.typed import typed

GOLDEN = golden("comments")
HEAD = COMMIT = "a" * 40


def test_a_command_is_read_and_recorded_for_one_commit():
    for row in GOLDEN["command"]:
        lists = {name: tuple(row.get(name, ())) for name in ("targets", "cases")}
        wanted = CommentCommand(
            base=row.get("base"), tiers=tuple(row["tiers"]) if "tiers" in row else None, **lists
        )
        assert comment_commands.parse(row["text"]) == wanted
        record = comment_commands.record(wanted, HEAD)
        assert (
            comment_commands.read(f"<!-- irdiff:comment:asked -->\n{record}\nsomebody asked", HEAD) == wanted
        )
        assert comment_commands.read(record, "b" * 40) is None
        assert comment_commands.parse(f"/irdiff {comment_commands.in_words(wanted)}") == wanted


@pytest.mark.parametrize("comment", GOLDEN["refused"])
def test_anything_else_is_no_command(comment):
    with pytest.raises(UsageError):
        comment_commands.parse(comment)


def test_a_record_is_checked_as_a_comment_is_and_what_is_none_asks_for_nothing():
    for words in ("compare x;id", "compare --target $(id)", "compare --tier other", "time"):
        with pytest.raises(UsageError):
            comment_commands.read(f"<!-- irdiff:record {HEAD} {words} -->", HEAD)
    cut = f"<!-- irdiff:record {HEAD} compare -->x<!-- a -->"[5:]
    assert [comment_commands.read(text, HEAD) for text in (None, "", "<!-- irdiff:record {} -->", cut)] == [
        None
    ] * 4


PLACE = ("--repo", "o/n", "--pr", "7")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_REPOSITORY", "GITHUB_API_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path):
    case = runs.case("a/x<img>@octocat:1@sm_90", Verdict.BROKEN)
    return runs.saved(tmp_path, runs.run(case))


def test_a_dry_run_prints_the_comment_and_needs_no_token(folder, snapshot):
    more = ("--commit", COMMIT, "--url", "https://github.example/run/(1)", "--check")
    output = typed(comment_command, folder, *PLACE, *more, "--dry-run")[1]
    assert output.replace(str(folder), "FOLDER") == snapshot
    assert output.count("<img>") == output.count("`a/x<img>@octocat:1@sm_90`")


@pytest.mark.parametrize("row", GOLDEN["mistake"], ids=itemgetter("why"))
def test_a_mistake_is_named(folder, row):
    with pytest.raises(UsageError, match=row["why"]):
        typed(comment_command, folder, *row["words"].split())


FIRST, SECOND = "5d6e7f8" + "0" * 33, "1a2b3c4" + "0" * 33


def run_of(*groups):
    cases = [runs.case(f"a/b:{name}@sm_90", Verdict.CHANGED, group=name, edit="a" * 64) for name in groups]
    made = tuple(runs.group(case.group, case.id) for case in cases)
    return runs.run(*cases, groups=made)


def body(run, commit, former):
    report = comment.body("default", "### irdiff: so many changed\n\nmore", "\nfooter\n")
    return comment.appended(report, comment.of_run(run, commit), former)


def test_a_push_is_told_below_the_first_line():
    former = body(run_of("g1", "g2"), FIRST, None)
    text = body(run_of("g2", "g3", "g4"), SECOND, former)
    assert "### irdiff: so many changed\n\ngroups since 5d6e7f8: 2 new, 1 gone\n\nmore" in text


def test_what_is_not_of_the_exact_form_is_not_read():
    former = body(run_of("g1"), FIRST, None)
    for forged in (
        former.replace(FIRST, "@everyone"),
        former.replace(FIRST, FIRST + '", "x'),
        former.replace('": "', '": "<img>'),
        "<!-- irdiff:groups:[] -->",
    ):
        assert "since" not in body(run_of("g1"), SECOND, forged)


def test_the_most_that_is_kept_leaves_room_for_the_report():
    many = run_of(*(f"g{number}" for number in range(400)))
    former = body(many, FIRST, None)
    assert len(body(many, SECOND, former)) < 30_000


@pytest.fixture
def checked():
    changed = "a/x:2@sm_90"
    return runs.run(
        runs.case("a/x:1@sm_90", Verdict.BROKEN, error="head: \x1b[31mboom"),
        runs.case(changed, Verdict.CHANGED),
        runs.case("a/x:3@sm_90"),
        groups=(runs.group("g1", changed),),
    )


def test_broken_cases_come_before_groups(checked):
    broken, group = checks.annotate(checked, "corpus")
    assert (broken.path, broken.annotation_level) == ("corpus/a/x.py", "failure")
    assert broken.message == r"head: \x1b[31mboom"
    assert (group.annotation_level, group.title) == ("warning", checked.groups[0].title)
    assert (
        "), first in ttgir: triton-nvidia-gpu-proxy-fence-insertion; for example a/x:2@sm_90" in group.message
    )


def test_files_of_a_repository_of_kernels_are_its_own(checked):
    """Each at the line of the kernel's `def`; a run of an earlier irdiff does not know it."""
    head = replace(checked.head, revision="main 1a2b3c4")
    for line, said in ((7, 7), (0, 1)):
        launches = {key: replace(launch, source_line=line) for key, launch in checked.launches.items()}
        places = checks.annotate(replace(checked, head=head, launches=launches), "corpus")
        assert [(place.path, place.line) for place in places] == [("a/x.py", said)] * 2


def test_a_program_that_fails_is_annotated_where_it_fails(checked):
    stderr = 'Traceback (most recent call last):\n  File "bench/run.py", line 2, in <module>\n'
    failure = replace(runs.FAILURE, stage="capture", stderr=stderr)
    case = runs.case("program/run:1@sm_90", Verdict.BROKEN, failures=Sides(base=None, head=failure))
    (annotation,) = checks.annotate(runs.run(case), "corpus")
    assert (annotation.path, annotation.line) == ("bench/run.py", 2)


@pytest.mark.parametrize("source", ["", "/etc/passwd", "../../x.py", "a/\x1b.py"])
def test_what_lies_outside_the_repository_is_not_annotated(checked, source):
    launches = {key: replace(launch, source_path=source) for key, launch in checked.launches.items()}
    assert checks.annotate(replace(checked, launches=launches), "corpus") == ()


def test_conclusion():
    for row in golden("verdicts")["conclusion"]:
        cases = [runs.case(f"a/x:{n}@sm_90", Verdict(verdict)) for n, verdict in enumerate(row["verdicts"])]
        assert conclusion.of(runs.run(*cases)) == row["conclusion"], row


def test_the_conclusion_of_what_a_gpu_found():
    """Equal code with other outputs is a hole of irdiff or a race of the kernel."""
    name = "a/x:1@sm_90"
    same, changed = runs.case(name), runs.case(name, Verdict.CHANGED)
    edited = replace(changed, summary=CaseSummary(title="", severity="intended", reasons=(), causes=()))

    def of(case, *, is_of_head):
        wrong = (WrongOutput(case_id=name, words="different", is_of_head=is_of_head),)
        timing = TimingSummary(headline="", device="H200", rows=(), wrong=wrong)
        return conclusion.of(runs.run(case), timing)

    assert of(same, is_of_head=True) == of(changed, is_of_head=True) == "failure"
    assert of(edited, is_of_head=True) == of(same, is_of_head=False) == "neutral"
