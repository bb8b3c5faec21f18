"""The search for a commit in histories that are made up."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.bisect.code_bisect import CodeBisection
from irdiff.bisect.commit_search import GitHistory, SideList
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Sides, StageStatus, Verdict
from irdiff.resolve.toolchains import repository
from tests.programs.checkouts import commit, git, new_repository, write
from tests.unit import runs

CASE = "matmul/tma:fp16@sm_90"
COMMITS = "abcdefgh"


def failures(code):
    return runs.failed(message=f"no {code}").failure if code.isupper() else None


@dataclass
class Search:
    """What each commit makes of the case: a digit, a capital where it fails with that message, or `-` without the case."""

    code: str = "11111111"
    ttir: str = "11111111"
    unbuildable: str = ""
    built: set[str] = field(default_factory=set)

    def compare(self, base, head):
        self.built |= {base, head}
        for side in (base, head):
            if side in self.unbuildable:
                raise ToolchainError(f"{side} does not build\nmore")
        places = [COMMITS.index(side) for side in (base, head)]
        ours, theirs = (self.code[place] for place in places)
        if ours == theirs == "-":
            return None
        failed = Sides(base=failures(ours), head=failures(theirs))
        verdict = {
            (True, True): Verdict.FAILING,
            (False, True): Verdict.BROKEN,
            (True, False): Verdict.FIXED,
            (False, False): Verdict.UNCHANGED if ours == theirs else Verdict.CHANGED,
        }[bool(failed.base), bool(failed.head)]
        same = len({self.ttir[place] for place in places}) == 1
        status = StageStatus.IDENTICAL if same else StageStatus.CHANGED
        verdict = Verdict.ADDED if ours == "-" else Verdict.REMOVED if theirs == "-" else verdict
        return runs.case(CASE, verdict, stages={"ttir": status}, failures=failed)

    def find(self, good="a", bad="h", stage=None):
        more = {"history": SideList([*COMMITS]), "compare": self.compare, "report": lambda _: None}
        return CodeBisection(good=good, bad=bad, case_id=CASE, stage=stage, **more).run()


@pytest.mark.parametrize("place", range(1, 8))
def test_the_first_commit_whose_code_differs_is_found(place):
    found = Search("0" * place + "1" * (8 - place)).find()
    assert (found.commits, found.case.verdict, found.skipped) == ((COMMITS[place],), Verdict.CHANGED, ())
    assert (found.before, found.after) == (COMMITS[place - 1], COMMITS[place])
    assert len(found.tried) <= 3


def test_a_commit_that_cannot_be_built_is_skipped_and_suspected():
    found = Search("00001111", unbuildable="de").find()
    assert (set(found.commits), set(found.skipped)) == ({*"def"}, {*"de"})
    assert (found.before, found.case.verdict) == ("c", Verdict.CHANGED), "no parent of it can be built"


def test_a_case_that_changes_again_is_said():
    """As after a revert: the first change may not be what made BAD's code."""
    assert Search("00112222").find().changes_again
    assert not Search("00222222").find().changes_again


def test_commits_that_do_more_than_change_the_code():
    for code, first, skipped, verdict in (
        ("000D0111", "f", ("d",), Verdict.CHANGED),
        ("000--001", "h", ("d", "e"), Verdict.CHANGED),
        ("00001---", "e", (), Verdict.CHANGED),
        ("00000---", "f", (), Verdict.REMOVED),
        ("AA000BBB", "c", (), Verdict.FIXED),
        ("11BBBBBB", "c", (), Verdict.BROKEN),
        ("------11", "g", (), Verdict.ADDED),
        ("AAAAABBB", "f", (), Verdict.FAILING),
    ):
        found = Search(code).find()
        assert (found.commits, found.skipped, found.case.verdict) == ((first,), skipped, verdict), code


def test_what_cannot_be_searched():
    for search, words, mistake, hint in (
        (Search(ttir="00111111"), (), "the machine code is the same", "for --stage: ttir"),
        (Search(), ("a", "h", "ttir"), "the ttir is the same at a and h", ""),
        (Search("AAAAAAAA"), (), "is the same", ""),
        (Search("--------"), (), "there is no case matmul/tma:fp16", "corpus list --case"),
    ):
        with pytest.raises(UsageError, match=mistake) as caught:
            search.find(*words)
        assert hint in (caught.value.hint or "")
        assert len(search.built) <= 2


@dataclass
class Repository:
    """The case's code is the content of one file."""

    place: Path
    unbuildable: str = ""
    """The message of a commit."""

    def commit(self, message, code=None):
        write(self.place, {"code": code} if code else {})
        commit(self.place, message)

    def compare(self, base, head):
        if self.unbuildable in (git(self.place, "log", "-1", "--format=%s", side) for side in (base, head)):
            raise ToolchainError(f"{self.unbuildable} does not build")
        ours, theirs = (git(self.place, "show", f"{side}:code") for side in (base, head))
        return runs.case(CASE, Verdict.UNCHANGED if ours == theirs else Verdict.CHANGED)

    def search(self, good, bad):
        history = GitHistory(repository.open_store(self.place, configuration.load()))
        more = {"history": history, "compare": self.compare, "report": lambda _: None}
        return CodeBisection(good=good, bad=bad, case_id=CASE, stage=None, **more).run()

    def find(self, good, bad):
        found = self.search(good, bad)
        return [git(self.place, "log", "-1", "--format=%s", name) for name in found.commits]


@pytest.fixture
def branches(tmp_path):
    """GOOD mends something that the side branch, which began before it, still has."""
    made = Repository(new_repository(tmp_path / "kernels"))
    made.commit("a mistake", "wrong")
    git(made.place, "branch", "side")
    made.commit("it is mended", "right")
    git(made.place, "tag", "good")
    git(made.place, "checkout", "-q", "side")
    for number in range(6):
        made.commit(f"side {number}")
    return made


def test_a_branch_that_began_before_good_is_not_blamed_for_what_it_lacks(branches):
    git(branches.place, "checkout", "-q", "main")
    git(branches.place, "merge", "-q", "--no-edit", "side")
    branches.commit("the change", "other")
    branches.commit("after it")
    assert branches.find("good", "main") == ["the change"]


def test_a_merge_that_takes_its_code_from_no_branch_is_named(branches):
    branches.commit("the same mending", "right")
    git(branches.place, "checkout", "-q", "main")
    git(branches.place, "merge", "-q", "--no-commit", "--no-ff", "side")
    branches.commit("the merge", "other")
    branches.commit("after it")
    assert branches.find("good", "main") == ["the merge"]


def test_a_parent_that_is_as_bad_is_not_shown_as_the_commit_before(branches):
    git(branches.place, "checkout", "-q", "main")
    branches.commit("beside it")
    branches.unbuildable = "beside it"
    git(branches.place, "merge", "-q", "--no-commit", "--no-ff", "side")
    branches.commit("the merge", "wrong")
    search = branches.search("good", "main")
    assert search.before == git(branches.place, "rev-parse", "good").strip()
    assert search.case.verdict is Verdict.CHANGED


def test_the_commit_of_a_merged_branch_is_found(branches):
    branches.commit("the change", "other")
    branches.commit("after it")
    git(branches.place, "checkout", "-q", "main")
    git(branches.place, "merge", "-q", "--no-edit", "-X", "theirs", "side")
    branches.commit("after the merge")
    assert branches.find("good", "main") == ["the change"]


def test_a_commit_beside_a_good_one_is_searched(tmp_path):
    """Though both branches began behind GOOD, at a commit that need not be tried."""
    made = Repository(new_repository(tmp_path / "kernels"))
    for message in ("good", "where they part"):
        made.commit(message, "right")
        git(made.place, "tag", message.split()[0])
    git(made.place, "checkout", "-q", "-b", "side")
    made.commit("the change", "other")
    git(made.place, "checkout", "-q", "main")
    made.commit("beside it")
    git(made.place, "merge", "-q", "--no-edit", "side")
    good, beside, changed, merge = git(made.place, "rev-parse", "good", "main~", "side", "main").split()
    history = GitHistory(repository.open_store(made.place, configuration.load()))
    assert set(history.order(merge, [good, beside])) == {changed, merge}
