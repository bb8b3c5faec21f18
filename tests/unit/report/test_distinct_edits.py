"""What counts as one edit: groups whose launches compile a changed file of the repository in common."""

from dataclasses import replace

import pytest

from irdiff.model import ChangedFile, FileChange, Reach, Verdict
from irdiff.report import distinct_edits
from tests.unit import runs

NORM, SILU, ROPE = "k/norm:a@sm_90", "k/silu:a@sm_90", "k/rope:a@sm_90"
"""Each compiles the file of its name."""


def of_kernels(*changed, head="3.9.0"):
    groups = (runs.group("a" * 16, NORM, SILU), runs.group("c" * 16, ROPE), runs.group("b" * 16, SILU))
    files = [
        ChangedFile(path=path, change=FileChange.CHANGED, compiled_by=1, read_by=1, not_run=())
        for path in changed
    ]
    return replace(
        runs.run(*(runs.case(name, Verdict.CHANGED) for name in (NORM, SILU, ROPE)), groups=groups),
        base=runs.revision("3.9.0", revision="main"),
        head=runs.revision(head, revision="HEAD"),
        reach=Reach(files=tuple(files), read_by=3),
    )


@pytest.mark.parametrize(
    ("changed", "edits"),
    [
        (["k/norm.py", "k/silu.py", "k/rope.py"], ["ab", "c"]),
        (["k/norm.py", "k/rope.py"], ["a", "c", "b"]),
        ([], ["a", "c", "b"]),
    ],
)
def test_an_edit_of_the_source_has_the_groups_that_compile_its_files(changed, edits):
    found = distinct_edits.of(of_kernels(*changed))
    assert ["".join(group.id[0] for group in edit.groups) for edit in found] == edits


def test_two_compilers_edit_no_source():
    run = of_kernels("k/norm.py", "k/silu.py", head="3.8.0")
    assert [len(edit.groups) for edit in distinct_edits.of(run)] == [1, 1, 1]
