from dataclasses import replace

import pytest

from irdiff.github import checks
from irdiff.model import Verdict
from irdiff.report import conclusion
from tests.unit import runs
from tests.unit.golden import golden


@pytest.fixture
def run():
    changed = "a/x:2@sm_90"
    return runs.run(
        runs.case("a/x:1@sm_90", Verdict.BROKEN, error="head: \x1b[31mboom"),
        runs.case(changed, Verdict.CHANGED),
        runs.case("a/x:3@sm_90"),
        groups=(runs.group("g1", changed),),
    )


def test_broken_cases_come_before_groups(run):
    broken, group = checks.annotate(run, "corpus")
    assert (broken.path, broken.annotation_level) == ("corpus/a/x.py", "failure")
    assert broken.message == r"head: \x1b[31mboom"
    assert (group.annotation_level, group.title) == ("warning", run.groups[0].title)
    assert (
        "), first in ttgir: triton-nvidia-gpu-proxy-fence-insertion; for example a/x:2@sm_90" in group.message
    )


@pytest.mark.parametrize("source", ["", "/etc/passwd", "../../x.py", "a/\x1b.py"])
def test_what_lies_outside_the_repository_is_not_annotated(run, source):
    launches = {key: replace(launch, source_path=source) for key, launch in run.launches.items()}
    assert checks.annotate(replace(run, launches=launches), "corpus") == ()


def test_conclusion():
    for row in golden("verdicts")["conclusion"]:
        cases = [runs.case(f"a/x:{n}@sm_90", Verdict(verdict)) for n, verdict in enumerate(row["verdicts"])]
        assert conclusion.of(runs.run(*cases)) == row["conclusion"], row
