from irdiff.github import comment
from irdiff.model import Verdict
from tests.unit import runs

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
