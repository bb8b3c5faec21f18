"""A run whose launches and cases share what they have in common, and documents that say something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.errors import RunFolderError
from irdiff.model import Argument, Case, CaseSummary, Launch, Origin, Run, Sides, Verdict
from irdiff.run import parts, run_folder

ARGUMENT = Argument(
    name="x", kind="tensor", type="*fp16", value=None, dtype="fp16", shape=(128, 64), strides=(64, 1),
    storage_offset=0, alias=0, fill="normal", block_shape=None,
)  # fmt: skip
ORIGIN = Origin(stage="ttgir", pass_name="Pipeline", masked=(), charged=(), note="")
SUMMARY = CaseSummary(title="one more fence", severity="other", score=1.0, reasons=(), causes=())


def _case(build: Any, number: int) -> tuple[Case, Sides[Launch]]:
    arguments = (ARGUMENT, replace(ARGUMENT, name="y"))
    case = build.case(f"f/w:{number}@sm_90", Verdict.CHANGED, base={"registers": 1}, head={"registers": 2})
    launches = Sides(base="base", head="head").map(
        lambda side: build.launch(case.id, side, arguments=arguments, options={"num_warps": "4"})
    )
    metadata = {"shared": 1024, "maxnreg": None, "name": f"kernel_{number}"}
    both = Sides(base=metadata, head={**metadata, "shared": 2048})
    keys = launches.map(lambda launch: launch.key)
    return replace(case, launches=keys, metadata=both, origin=ORIGIN, summary=SUMMARY), launches


@pytest.fixture
def run(build: Any) -> Run:
    """Forty cases of which each has its own name, and nothing else."""
    rows = [_case(build, number) for number in range(40)]
    launches = {launch.key: launch for _, sides in rows for launch in sides}
    return build.run(*(case for case, _ in rows), launches=launches)


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    (tmp_path / "run.json").write_bytes(b"".join(run_folder.stored(run)))
    return tmp_path


def test_what_is_common_stands_once_and_is_read_as_it_was(run: Run, folder: Path) -> None:
    content = (folder / "run.json").read_bytes()
    assert run_folder.load(folder) == run
    assert len(content) < len(run_folder.dump(run)) * 0.65
    assert b"".join(run_folder.stored(run_folder.load(folder))) == content


def test_written_out_or_in_another_layout_it_is_the_same_run(run: Run, folder: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads((folder / "run.json").read_bytes())
    written_out = json.loads(run_folder.dump(run))
    assert "parts" not in written_out
    for rows, indent in ((written_out, None), (document, 2)):
        jsonschema.validate(rows, run_folder.json_schema())
        (folder / "run.json").write_text(json.dumps(rows, indent=indent, sort_keys=indent is not None))
        assert run_folder.load(folder) == run


def _edit(change: Callable[[Any], None]) -> Callable[[bytes], bytes]:
    def edited(content: bytes) -> bytes:
        rows = json.loads(content)
        change(rows)
        return json.dumps(rows).encode()

    return edited


@pytest.mark.parametrize(
    ("edit", "pattern"),
    [
        (_edit(lambda rows: rows["cases"][0].update(summary=9999)), "9999 is the place of no part"),
        (_edit(lambda rows: rows["cases"][0].update(summary=0)), "0 is the place of no part that is summary"),
        (_edit(lambda rows: rows["cases"][0].update(summary=True)), "cases.0.summary"),
        (_edit(lambda rows: rows["cases"][0]["metadata"].update(base=[0])), "cases.0.metadata"),
        (_edit(lambda rows: rows.pop("parts")), "place of no part"),
        (_edit(lambda rows: rows.update(parts={})), "place of no part"),
        (_edit(lambda rows: rows.pop("cases")), "cases"),
        (lambda content: content.replace(b'"num_warps":"4"', b'"num_warps":4', 1), "parts.*words"),
        (lambda content: content.replace(b",\n  {", b"\n  {", 1), "is not a run"),
        (lambda content: content.replace(b"\n ]", b",\n ]", 1), "is not a run"),
        (lambda content: content + b"{}", "is not a run"),
        (lambda content: content[:-3], "is not a run"),
    ],
)
def test_what_is_no_run_is_refused(folder: Path, edit: Callable[[bytes], bytes], pattern: str) -> None:
    path = folder / "run.json"
    path.write_bytes(edit(path.read_bytes()))
    with pytest.raises(RunFolderError, match=pattern):
        run_folder.load(folder)


def test_parts_may_not_stand_for_more_than_a_run_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_WRITTEN_OUT_BYTES", 10_000)
    with pytest.raises(RunFolderError, match="its parts stand for more than 10000 bytes"):
        run_folder.load(folder)
