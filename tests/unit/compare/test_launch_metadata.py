"""Every entry of the metadata counts but for those that are listed."""

from __future__ import annotations

import pytest

from irdiff.compare import launch_metadata
from irdiff.compare.launch_metadata import NEUTRAL

# As releases write it: of 3.4 without profile scratch, PDL and the width of a warp, of 3.5 with the cluster.
V3_4 = {
    "target": {"backend": "cuda", "arch": 90, "warp_size": 32},
    "num_warps": 4,
    "num_ctas": 2,
    "cluster_dims": [2, 1, 1],
    "shared": 1024,
    "tmem_size": None,
    "global_scratch_size": 0,
    "global_scratch_align": 1,
    "launch_cooperative_grid": False,
    "name": "kernel",
    "triton_version": "3.4.0",
    "reg_inc_consumer": 0,
}
V3_9 = {
    "target": {"backend": "cuda", "arch": 90, "warp_size": 32},
    "num_warps": 4,
    "num_ctas": 2,
    "shared": 1024,
    "tmem_size": 0,
    "global_scratch_size": 0,
    "global_scratch_align": 1,
    "profile_scratch_size": 0,
    "profile_scratch_align": 1,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
    "tensordesc_meta": [],
    "instrumentation_mode": "",
    "warp_size": 32,
    "name": "kernel",
    "triton_version": "3.9.0",
    "sched4reg": False,
}


def test_what_an_older_release_does_not_write_is_what_its_launcher_passes() -> None:
    assert launch_metadata.differing(V3_4, V3_9) == ()
    assert launch_metadata.differing(V3_9, V3_4) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shared", 2048),
        ("num_warps", 8),
        ("cluster_dims", [1, 2, 1]),
        ("tmem_size", 128),
        ("global_scratch_size", 64),
        ("global_scratch_align", 128),
        ("profile_scratch_size", 64),
        ("profile_scratch_align", 128),
        ("launch_cooperative_grid", True),
        ("launch_pdl", True),
        ("tensordesc_meta", [{"swizzle": 3}]),
        ("instrumentation_mode", "gsan"),
        ("warp_size", 64),
        ("target", {"backend": "cuda", "arch": 100, "warp_size": 32}),
        ("an_entry_of_4_0", 0),
        ("an_entry_of_4_0", None),
    ],
)
@pytest.mark.parametrize("other", [V3_4, V3_9], ids=["3.4", "3.9"])
def test_an_entry_counts(other: dict[str, object], name: str, value: object) -> None:
    assert launch_metadata.differing(other, {**V3_9, name: value}) == (name,)


def test_another_number_of_blocks_is_another_cluster() -> None:
    assert launch_metadata.differing(V3_4, {**V3_9, "num_ctas": 1}) == ("cluster_dims", "num_ctas")
    assert launch_metadata.differing(V3_9, {**V3_9, "num_ctas": 1}) == ("cluster_dims", "num_ctas")


def test_what_is_not_known_of_a_side_differs() -> None:
    assert launch_metadata.differing({}, {"shared": 0}) == ("shared",)
    assert launch_metadata.differing({"target": "?"}, {"target": "?", "warp_size": 32}) == ("warp_size",)


@pytest.mark.parametrize("name", sorted(NEUTRAL))
def test_a_neutral_entry_does_not_count(name: str) -> None:
    assert launch_metadata.differing({**V3_9, name: "one"}, {**V3_9, name: "another"}) == ()
    without = {key: value for key, value in V3_9.items() if key != name}
    assert launch_metadata.differing(without, {**V3_9, name: "another"}) == ()


def test_no_entry_that_a_launcher_reads_is_neutral() -> None:
    """Read by `CompiledKernel` and by the launchers of the releases 3.2 to 3.9."""
    read = {"num_warps", "num_ctas", "shared", "cluster_dims", "tmem_size", "target", "warp_size"}
    read |= {"tensordesc_meta", "launch_cooperative_grid", "launch_pdl", "instrumentation_mode"}
    read |= {f"{kind}_scratch_{what}" for kind in ("global", "profile") for what in ("size", "align")}
    assert not read & NEUTRAL
