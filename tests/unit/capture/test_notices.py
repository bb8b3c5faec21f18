"""What a run says of packages that are missing, and of configs that were left out."""

from dataclasses import replace
from types import SimpleNamespace

from irdiff.capture import notices
from irdiff.capture.catalog import NOTHING
from irdiff.capture.pairing import CapturedWorkload
from irdiff.capture.selection import WorkloadSelection
from irdiff.model import CaptureFailure, Sides
from tests.texts import text_of
from tests.unit import runs

TRACEBACK = text_of("notices/traceback.txt")


def lacking(message="ModuleNotFoundError: No module named 'torch'", stderr=TRACEBACK):
    failure = runs.failed(stage="capture", message=message, stderr=stderr).failure
    return replace(NOTHING, failures=(CaptureFailure(id="run/rope:*", expected=True, failure=failure),))


def notes(base, head, *specs, workload="run/rope", files=None, withheld=()):
    corpus = SimpleNamespace(files=files)
    sides = Sides(
        base=SimpleNamespace(toolchain=SimpleNamespace(spec=specs[0], python="/p/python"), corpus=corpus),
        head=SimpleNamespace(toolchain=SimpleNamespace(spec=specs[-1], python="/p/python"), corpus=corpus),
    )
    row = CapturedWorkload(workload=workload, target=runs.target(), catalogs=Sides(base=base, head=head))
    return notices.notes([row, row], sides, withheld)


OWN = {"lib/torch/__init__.py": "", "bench/run.py": ""}
METADATA = "PackageNotFoundError: No package metadata was found for my-kernels"
SPACED = '  File "/my kernels/rope.py", line 1, in <module>\n'


def test_a_package_that_a_side_lacks(snapshot):
    """The repository's own package is never installed from the index."""
    rows = [
        (lacking(), "triton==3.9.0", None),
        (lacking(), "python:/p/python", None),
        (lacking(), "triton==3.9.0", OWN),
        (lacking(METADATA, ""), "triton==3.9.0", None),
        (lacking(stderr=SPACED), "triton==3.9.0", None),
        (lacking("ImportError: cannot import name 'rope'"), "triton==3.9.0", None),
    ]
    assert [
        notes(NOTHING, head, "triton==3.9.0", spec, files=files) for head, spec, files in rows
    ] == snapshot


def test_configs_that_were_left_out_are_counted_once_a_kernel():
    selection = WorkloadSelection(tiers=(), labels=(), configs=2)
    cut = replace(NOTHING, selection=selection, left_out={"matmul": 5, "norm": 1})
    (note,) = notes(cut, replace(cut, left_out={"matmul": 6}), "triton==3.9.0")
    assert note == (
        "only the first 2 configs of each autotuner were compared (--configs): 7 configs of 2 kernels left out"
    )


def test_variables_of_the_shell_that_programs_looked_for_are_named():
    looked_for = (("bench/run.py", 9, "FAST"), ("bench/run.py", 3, "FAST"), ("ops/ce.py", 5, "TILE"))
    catalog = replace(NOTHING, absent_variables=(*looked_for, ("ops/ce.py", 1, "ABSENT")))
    assert notes(NOTHING, catalog, "triton==3.9.0", withheld={"FAST", "TILE", "OTHER"}) == [
        "programs looked for variables of your shell, which they do not get: "
        "FAST (bench/run.py:3), TILE (ops/ce.py:5)"
    ]
    assert notes(NOTHING, catalog, "triton==3.9.0", withheld={"OTHER"}) == []


def test_notes_that_differ_in_the_line_alone_are_one():
    reads = tuple(("ops/ce.py", line, "reads a value") for line in (354, 9, 356, 355))
    catalog = replace(NOTHING, caveats=(*reads, ("", 0, "run/ce was recorded for sm_90")))
    assert notes(catalog, catalog, "triton==3.9.0") == [
        "ops/ce.py:9, 354, 355 and 1 more reads a value",
        "run/ce was recorded for sm_90",
    ]
