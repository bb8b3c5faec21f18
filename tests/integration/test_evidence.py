"""`unchanged` is true from the user's edit to the verdict.

The rows are those of `tests.programs.evidence.rows`, all compared at once: with a store that a comparison of base
with another revision has filled, in which the kernels of every third row compute something else; and, in the wide
tests, with an empty one, and compiling everything anew.
"""

import pytest

from tests.programs import evidence_corpus, evidence_edits
from tests.programs.evidence import comparing, rows
from tests.programs.evidence.comparing import Repository

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    made = Repository.new(tmp_path_factory.mktemp("evidence") / "kernels")
    base = {path: text for row in rows.load() for path, text in row.base.items()}
    made.commit("base", base)
    third = {path: text for row in rows.load()[::3] for path, text in row.base.items()}
    made.commit("other", {**base, **rows.computing_differently(third)})
    made.commit("head", {path: text for row in rows.load() for path, text in row.head.items()})
    return made


def filled(repo, cache):
    other = comparing.compare_commits(repo, "other", "base", cache=cache)
    assert other.run is not None, other.stderr


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        pytest.param(filled, (), id="warm"),
        pytest.param(lambda *_: None, (), id="empty", marks=pytest.mark.wide),
        pytest.param(filled, ("--no-cache",), id="no-shortcut", marks=pytest.mark.wide),
    ],
)
def test_every_verdict(fill, words, repo, cache):
    fill(repo, cache)
    found = comparing.compare_commits(repo, "base", "head", *words, cache=cache)
    wrong = {
        row.name: (row.about, found.verdicts_of(row.workload), row.expected)
        for row in rows.load()
        if tuple(found.verdicts_of(row.workload)) != row.expected
    }
    assert not wrong, wrong


def test_a_file_that_an_option_names_is_the_same_in_every_export(cache, tmp_path):
    """The catalog of one revision serves another where it may, and their exports lie in different folders."""
    row = next(row for row in rows.load() if row.name == "extern_library")
    repo = Repository.new(tmp_path / "kernels")
    repo.commit("first", {**row.base, "other.py": "A = 1\n"})
    repo.commit("second", {**row.base, "other.py": "A = 2\n"})
    repo.commit("third", {**row.head, "other.py": "A = 2\n"})
    for base, head, expected in (("first", "second", "unchanged"), ("second", "third", "changed")):
        compared = comparing.compare_commits(repo, base, head, cache=cache)
        assert compared.verdicts_of(row.workload) == [expected], compared.cases()


def test_a_few_random_edits_of_generated_packages(shared_cache):
    """Default verdicts are those of `--no-cache`; `python -m tests.programs.evidence_edits` does hundreds."""
    steps = list(evidence_edits.run(8, 7, 4, shared_cache))
    wrong = [step for step in steps if step.differs or step.unexpected]
    assert not wrong, "\n".join(evidence_edits.report(step, 7, 4) for step in wrong)
    assert {"changed", "unchanged"} <= {step.without_cache for step in steps}, "the edits say something"


def test_a_few_real_edits_of_the_corpus(shared_cache):
    """No miss and no alarm; `python -m tests.programs.evidence_corpus` does all of the list."""
    judged = evidence_corpus.judge(evidence_corpus.load()[::40], shared_cache)
    assert not [row for row in judged if row.missed or row.alarmed], evidence_corpus.table(judged)
    assert [row.prediction for row in judged] == [row.edit.prediction for row in judged]
    assert {"changed", "same"} <= {row.prediction for row in judged}, "the edits say something"
