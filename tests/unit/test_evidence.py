"""The data of the tests of evidence: every edit can be made, and generated packages are what their seed says."""

from __future__ import annotations

import ast
from collections import Counter
from random import Random

from tests.programs import evidence_corpus
from tests.programs.evidence import kinds, projects, rows


def test_every_edit_of_the_list_can_be_made() -> None:
    edits = evidence_corpus.load()
    assert len(edits) == 200
    assert set(Counter(edit.kind for edit in edits)) == {
        *("comment", "constant", "dtype", "elsewhere", "helper"),
        *("mask", "num_warps", "operator", "reformat", "rename"),
    }
    for edit in edits:
        base, head = edit.texts()
        assert base != head
        ast.parse(head)


def test_every_row_and_every_kind_of_part_in_every_place_parses() -> None:
    files = [item for row in rows.load() for item in row.base.items()]
    for kind in kinds.KINDS:
        for host in projects.HOSTS:
            known = {"number": 2.5, "operator": "*", "flag": True, "noise": (1,) * len(projects.NOISES)}
            made = projects.Project(name="p", parts=(projects.Part(index=3, kind=kind, host=host, **known),))
            files += made.files().items()
            for path, text in made.files().items():
                assert not {"ROW", "NUMBER", "FLAG"} & set(text.replace("(", " ").split()), path
    for path, text in files:
        if path.endswith(".py"):
            ast.parse(text, path)


def test_the_same_seed_gives_the_same_edits() -> None:
    def chain(seed: str) -> list[dict[str, str]]:
        random = Random(seed)
        project = projects.new_project("p", random)
        states = [project.files()]
        for _ in range(20):
            project, _ = projects.edited(project, random)
            states.append(project.files())
        return states

    assert chain("1:p") == chain("1:p")
    assert chain("1:p") != chain("2:p")
