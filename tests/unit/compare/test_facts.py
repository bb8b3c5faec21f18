"""Figures of a compiled side: what nobody states is unknown, and never 0."""

from pathlib import Path

import pytest

from irdiff import backends
from irdiff.backends.statistic import value_of
from irdiff.compare import facts
from irdiff.group import figures
from irdiff.model import Verdict
from irdiff.report import phrases
from irdiff.resolve import targets
from tests.programs.mutation.artifacts import of_stage
from tests.unit import runs
from tests.unit.runs import compiled

GFX950 = targets.load_all([Path(__file__).parents[3] / "targets"])["gfx950"]
ASSEMBLY = """
	.text
	s_endpgm
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
    .group_segment_fixed_size: 0
    .max_flat_workgroup_size: 512
    .name:           kernel
    .private_segment_fixed_size: 1464
    .sgpr_count:     34
    .sgpr_spill_count: 0
    .vgpr_count:     256
    .vgpr_spill_count: 365
    .wavefront_size: 64
  - .name:           another
    .vgpr_count:     9
amdhsa.target:   amdgcn-amd-amdhsa--gfx950
...
	.end_amdgpu_metadata
"""


def test_without_a_linker_the_assembly_says_what_the_code_object_would():
    of_text = facts.of_side(compiled(), {"amdgcn": ASSEMBLY.encode()}, GFX950)
    assert {name: of_text[name] for name in ("vgprs", "vgpr_spills", "sgpr_spills", "scratch_bytes")} == {
        "vgprs": 256,
        "vgpr_spills": 365,
        "sgpr_spills": 0,
        "scratch_bytes": 1464,
    }
    assert "code_bytes" not in of_text  # the assembly does not state it


@pytest.mark.parametrize("release", ["3.8.0", "3.9.0"])
@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_the_assembly_and_the_code_object_made_of_it_state_the_same(release, target):
    binaries = {each.kernel: each.content for each in of_stage("hsaco", release=release, target=target)}
    texts = {each.kernel: each.text for each in of_stage("amdgcn", release=release, target=target)}
    both = binaries.keys() & texts.keys()
    assert both
    for kernel in both:
        of_binary = backends.amd.read(binaries[kernel])[1]
        assert {
            **backends.amd.assembly_facts(texts[kernel]),
            "code_bytes": of_binary["code_bytes"],
        } == of_binary


def test_an_assembly_without_metadata_gives_no_figures():
    assert "vgprs" not in facts.of_side(compiled(), {"amdgcn": b"\ts_endpgm\n"}, GFX950)


@pytest.mark.parametrize(
    ("base", "head", "said", "moved"),
    [
        ({}, {"vgpr_spills": 2, "sgpr_spills": 0}, [], {}),
        ({"vgpr_spills": 2}, {"vgpr_spills": 0}, ["spills 2 → 0 registers"], {"vgpr_spills": (2, 0)}),
        (
            {"amdgcn.total": 9},
            {"amdgcn.total": 9, "amdgcn.wait": 1},
            ["`s_waitcnt` 0 → 1"],
            {"amdgcn.wait": (0, 1)},
        ),
    ],
)
def test_a_figure_that_one_side_lacks_did_not_move(base, head, said, moved):
    case = runs.case("a/b:c@gfx950", Verdict.CHANGED, base=base, head=head)
    assert list(figures.moved([case], "")) == said
    assert phrases.moved_facts(base, head) == moved


def test_what_a_counted_text_does_not_have_is_there_no_time():
    assert value_of("ptx.barrier", {"ptx.total": 3}) == 0
    assert value_of("ptx.barrier", {"amdgcn.total": 3}) is None
    assert phrases.unknown_facts({}, {"vgprs": 8}) == {"vgprs": "base"}
