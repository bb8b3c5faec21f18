"""The launch ABI on real binaries of releases 3.2 to 3.9 (made by tests/data/abi/make.py)."""

import base64
import dataclasses
import json
import struct
from pathlib import Path

import pytest
import zstandard
from pydantic import TypeAdapter

from irdiff.model import Launch
from irdiff.timing import abi
from irdiff.timing.abi import AbiError, EntryParameter, KernelEntry, read_entry

DATA = Path(__file__).parents[2] / "data" / "abi"
UNRECORDED = {"launched": {"stage": "launch", "digest": "0" * 64, "size_bytes": 0}, "places": [1]}
"""What launches lack that were recorded before there was a stage `launch`; no parameter depends on it."""
FILES = sorted(path.name for path in DATA.glob("*.zst"))
MIXED = "3.9.0-sm_90-mixed.json.zst"


def read(name):
    row = json.loads(zstandard.ZstdDecompressor().decompress((DATA / name).read_bytes()))
    launch = TypeAdapter(Launch).validate_python(UNRECORDED | row["launch"])
    return row, launch, base64.b85decode(row["binary"])


def planned(name):
    row, launch, binary = read(name)
    backend, warp = ("cuda", 32) if row["target"].startswith("sm_") else ("hip", 64)
    entry = read_entry(binary, row["metadata"]["name"], backend)
    return abi.plan(launch, row["metadata"], entry, backend=backend, warp_size=warp), row, launch


def named(part):
    return [name for name in FILES if part in name]


def test_the_launch_of_every_release_fits_the_entry():
    releases = {"3.2.0", "3.3.1", "3.4.0", "3.5.1", "3.6.0", "3.7.1", "3.8.0", "3.9.0"}
    assert {name.split("-")[0] for name in FILES} == releases
    for name in FILES:
        plan, row, _ = planned(name)
        assert plan.block_threads == 4 * (32 if row["target"] == "sm_90" else 64)
        assert not {p.name for p in plan.parameters} & {"BLOCK", "skipped", "one"}
        offsets = [p.offset_bytes for p in plan.parameters]
        assert offsets == sorted(offsets)


@pytest.mark.parametrize("name", named("-mixed."))
def test_scalars_are_packed_by_their_type_and_scratch_pointers_follow(name):
    plan, row, _ = planned(name)
    first, rest = plan.parameters[:6], plan.parameters[6:]
    assert [p.name for p in first] == ["x_ptr", "n", "wide", "flag", "scale", "out_ptr"]
    values = [struct.pack("<i", 1000), struct.pack("<q", 1 << 40), b"\1", struct.pack("<f", 0.5)]
    assert [p.value for p in first] == [None, *values, None]
    if row["target"] == "sm_90":
        count = {"3.2": 0, "3.3": 1, "3.4": 1}.get(row["version"][:3], 2)
        assert [p.name for p in rest] == ["global_scratch", "profile_scratch"][:count]


@pytest.mark.parametrize("name", named("-sm_90-descriptor."))
def test_host_descriptors_become_tensor_maps(name):
    first, *rest = planned(name)[0].parameters[:3]
    found = first.tensor_map
    assert first.size_bytes == 128
    assert (found.shape, found.strides, found.block_shape) == ((32, 128), (128, 1), (16, 64))
    assert (found.element_bytes, found.element_type, found.swizzle) == (2, 6, 3)
    assert [p.value for p in rest] == [struct.pack("<i", 32), struct.pack("<i", 128)]


def test_descriptors_without_metadata_scratch_and_clusters():
    for name in named("-gfx942-descriptor."):
        plan, row, _ = planned(name)
        flags = 1 if row["version"].startswith(("3.5", "3.6")) else 2
        assert [p.size_bytes for p in plan.parameters][: 9 + flags] == [8] * 5 + [1] * flags + [4, 4, 8, 8]
    for name in named("-sm_90-device-descriptor."):
        plan, row, _ = planned(name)
        assert plan.scratch_bytes["global_scratch"] == 2 * row["metadata"]["global_scratch_size"] > 0
    for name in named("-sm_90-cluster."):
        plan, _, launch = planned(name)
        assert (plan.cluster, plan.grid) == (2, (launch.grid[0] * 2, 1, 1))


SIX = [EntryParameter(offset_bytes=8 * i, size_bytes=size) for i, size in enumerate([8, 4, 8, 1, 4, 8])]
WITHOUT_SCRATCH = KernelEntry(name="mixed", parameters=tuple(SIX), required_threads=None)


def test_what_does_not_fit_the_entry_is_an_error_before_launch():
    row, launch, binary = read(MIXED)
    whole = read_entry(binary, "mixed", "cuda")
    for signature, metadata, entry, pattern in (
        ({"n": None, "wide": None, "scale": None}, {}, whole, "the entry takes 8 parameters"),
        ({"n": "i64"}, {}, whole, "not launched"),
        ({}, {"num_warps": 8}, whole, "wants 128 threads"),
        ({}, {"global_scratch_size": 64}, WITHOUT_SCRATCH, "needs global scratch"),
    ):
        types = {name: type_ for name, type_ in (launch.signature | signature).items() if type_}
        odd = dataclasses.replace(launch, signature=types)
        with pytest.raises(AbiError, match=pattern):
            abi.plan(odd, row["metadata"] | metadata, entry, backend="cuda", warp_size=32)


def test_pack_scalar():
    for type_, value, packed in (
        *(("i32", -1, "ffffffff"), ("i32", 1 << 31, "00000080"), ("u64", (1 << 64) - 1, "ff" * 8)),
        *(("fp16", 1.5, "003e"), ("bf16", 1.0, "803f"), ("fp32", "inf", "0000807f")),
        ("fp64", 0.1, struct.pack("<d", 0.1).hex()),
    ):
        assert abi.pack_scalar(type_, value).hex() == packed, type_
