"""What counts of a binary: each entry that the loader or the launch reads, and nothing else."""

import struct
import time
import tracemalloc
from dataclasses import replace

import msgpack
import pytest

from irdiff.binaries import cubin, elf, machine_code, symbols
from irdiff.binaries.elf import Section
from irdiff.errors import NormalizeError
from tests.elf_files import HEADER_BYTES, assembled, content, named, rebuilt
from tests.programs.mutation.artifacts import of_stage

KERNEL = "vector_add"


def original(stage, target):
    (artifact,) = of_stage(stage, release="3.9.0", kernel=KERNEL, target=target)
    return artifact.content


def digest(stage, binary):
    return machine_code(stage, binary).digest


def attributes(section, change):
    """Each attribute of a section `.nv.info…` with another value of the same length; None leaves it out."""

    def changed(info):
        parts, position = [], 0
        for number, value in cubin.attributes(info):
            head, is_sized = info[position : position + 4], info[position] == 4
            new = change(number, value)
            if new is not None:
                parts.append((head[:2] + struct.pack("<H", len(new)) if is_sized else head[:2]) + new)
            position += 4 + (len(value) if is_sized else 0)
        return b"".join(parts)

    whole = (section, section + KERNEL)
    return named(section, lambda s: replace(s, content=changed(s.content)) if s.name in whole else s)


def flipped(old, at):
    """One bit is another."""
    return old[:at] + bytes([old[at] ^ 1]) + old[at + 1 :]


def with_value(section, number, *, at):
    return attributes(section, lambda found, value: flipped(value, at) if found == number else value)


def without(section, *numbers):
    return attributes(section, lambda found, value: None if found in numbers else value)


CUBIN_COUNTS = {
    "registers": with_value(".nv.info", 0x2F, at=4),
    "frame": with_value(".nv.info", 0x11, at=4),
    "local memory": with_value(".nv.info", 0x12, at=5),
    "required threads": with_value(".nv.info.", 0x10, at=0),
    "size of a parameter": with_value(".nv.info.", 0x17, at=11),
    "offset of a parameter": with_value(".nv.info.", 0x17, at=6),
    "bytes of parameters": with_value(".nv.info.", 0x19, at=0),
    "limit of registers": with_value(".nv.info.", 0x1B, at=0),
    "an attribute nobody knows": content(".nv.info.", lambda old: old + b"\x03\x7e\x01\x00"),
    "an attribute that is gone": without(".nv.info.", 0x1B),
    "another value than all others have": with_value(".nv.info.", 0x6D, at=0),
    "barriers": named(".text.", lambda s: replace(s, flags=s.flags | 5 << 20)),
    "registers of the code's header": named(".text.", lambda s: replace(s, info=s.info | 40 << 24)),
    "shared memory": named(".nv.shared.reserved.0", lambda s: replace(s, size=s.size + 1024)),
    "constants": content(".nv.constant0", lambda old: old[:-1] + b"\1"),
    "the code": content(".text.", lambda old: b"\1" + old[1:]),
    "alignment": named(".text.", lambda s: replace(s, alignment=s.alignment * 2)),
    "a section nobody knows": named(".nv.compat", lambda s: replace(s, name=".nv.uft.entry")),
    "instructions in a section of notes": named(".note.nv.tkinfo", lambda s: replace(s, flags=6)),
}
CUBIN_NEUTRAL = {
    "debug information": content(".debug_line", lambda old: old + b"more"),
    "the PTX text": content(".nv_debug_ptx_txt", lambda old: old[:-9]),
    "the tool": content(".note.nv.tkinfo", lambda old: old.replace(b"13.4", b"13.5")),
    "the toolkit": with_value(".nv.info.", 0x37, at=0),
    "what older releases do not write": without(".nv.info.", 0x66, 0x6B, 0x6D, 0x5F),
    "other architectures": content(".nv.compat", lambda old: old[:-1] + b"\1"),
    "the place of the symbol": named(".text.", lambda s: replace(s, info=s.info + 3)),
}


def test_another_sm_is_another_contract():
    binary = original("cubin", "sm_90")
    flags = elf.read(binary, "").flags
    assert digest("cubin", rebuilt(binary, flags=flags ^ 0x3000000)) == digest("cubin", binary)
    for other in (rebuilt(binary, flags=flags ^ 0x100), rebuilt(binary, abi_version=9)):
        assert digest("cubin", other) != digest("cubin", binary)


def test_barriers_count_alike_in_both_versions_of_the_format():
    binary = original("cubin", "sm_90")
    as_attribute = rebuilt(binary, content(f".nv.info.{KERNEL}", lambda old: old + b"\x02\x4c\x03\x00"))
    as_flags = rebuilt(binary, named(".text.", lambda s: replace(s, flags=s.flags | 3 << 20)))
    assert digest("cubin", as_attribute) == digest("cubin", as_flags) != digest("cubin", binary)
    assert machine_code("cubin", as_flags).facts["barriers"] == 3


def metadata(change):
    def changed(note):
        name_size, size, kind = struct.unpack_from("<III", note)
        start = 12 + (name_size + 3) // 4 * 4
        found = msgpack.unpackb(note[start : start + size])
        change(found)
        packed = msgpack.packb(found)
        padding = b"\0" * (-len(packed) % 4)
        return struct.pack("<III", name_size, len(packed), kind) + note[12:start] + packed + padding

    return content(".note", changed)


def of_kernel(name, value):
    return metadata(lambda found: found["amdhsa.kernels"][0].update({name: value}))


def of_argument(name, value):
    return metadata(lambda found: found["amdhsa.kernels"][0][".args"][3].update({name: value}))


def in_descriptor(at):
    return content(".rodata", lambda old: flipped(old, at))


HIDDEN = {".offset": 48, ".size": 8, ".value_kind": "hidden_global_offset_x"}
ENTRIES = """
.agpr_count .vgpr_count .sgpr_count .vgpr_spill_count .group_segment_fixed_size .private_segment_fixed_size
.kernarg_segment_size .kernarg_segment_align .max_flat_workgroup_size .wavefront_size .uniform_work_group_size
.of_a_later_version
"""
HSACO_COUNTS = {
    **{f"{name} of the kernel": of_kernel(name, 777) for name in ENTRIES.split()},
    "a required work-group size": of_kernel(".reqd_workgroup_size", [64, 1, 1]),
    "a cluster": of_kernel(".cluster_dims", [2, 1, 1]),
    "offset of an argument": of_argument(".offset", 28),
    "size of an argument": of_argument(".size", 8),
    "kind of an argument": of_argument(".value_kind", "global_buffer"),
    "a hidden argument": metadata(lambda found: found["amdhsa.kernels"][0][".args"].append(HIDDEN)),
    "another kernel": metadata(lambda found: found["amdhsa.kernels"].append({".name": "another"})),
    "features of the processor": metadata(
        lambda found: found.update({"amdhsa.target": found["amdhsa.target"] + ":xnack+"})
    ),
    "another entry of the note": metadata(lambda found: found.update({"amdhsa.printf": ["1:1:4:%d"]})),
    # LDS, scratch, kernarg, entry, the resource registers, properties
    **{f"byte {at} of the descriptor": in_descriptor(at) for at in (0, 4, 8, 16, 44, 48, 52, 56)},
    "the code": content(".text", lambda old: b"\1" + old[1:]),
    "a section nobody knows": named(".debug_str", lambda s: replace(s, name=".data.rel.ro")),
    "alignment": named(".text", lambda s: replace(s, alignment=s.alignment * 2)),
}
HSACO_NEUTRAL = {
    "debug information": content(".debug_line", lambda old: old + b"more"),
    "the linker": content(".comment", lambda old: old + b"LLD 99"),
    "spelling of the triple": metadata(
        lambda found: found.update({"amdhsa.target": "amdgcn-amd-amdhsa--gfx942"})
    ),
    "name of an argument": of_argument(".name", "n_elements"),
    "type of an argument in the source": of_argument(".type_name", "int"),
    "name of the kernel": metadata(
        lambda found: found["amdhsa.kernels"][0].update({".name": "other", ".symbol": "other.kd"})
    ),
}


EDITS = [
    *(("cubin", target, what) for target in ("sm_90", "sm_100") for what in (*CUBIN_COUNTS, *CUBIN_NEUTRAL)),
    *(("hsaco", "gfx942", what) for what in (*HSACO_COUNTS, *HSACO_NEUTRAL)),
]


@pytest.mark.parametrize(("stage", "target", "what"), EDITS)
def test_a_contract_has_all_that_counts_and_nothing_else(stage, target, what):
    counts, neutral = (CUBIN_COUNTS, CUBIN_NEUTRAL) if stage == "cubin" else (HSACO_COUNTS, HSACO_NEUTRAL)
    binary = original(stage, target)
    edited = rebuilt(binary, counts.get(what) or neutral[what])
    assert edited != rebuilt(binary)
    assert (digest(stage, edited) != digest(stage, binary)) == (what in counts)


def test_the_distance_to_the_code_is_no_part_and_its_place_is():
    """A longer name moves descriptor and code apart; what the descriptor leads to stays."""
    binary = original("hsaco", "gfx942")

    def apart(by, leads_to):
        def distance(old):
            (found,) = struct.unpack_from("<q", old, 16)
            return old[:16] + struct.pack("<q", found + by + leads_to) + old[24:]

        def symbols(old):
            rows = [list(row) for row in struct.iter_unpack("<IBBHQQ", old)]
            for row in rows:
                row[4] += by if row[3] == code else 0
            return b"".join(struct.pack("<IBBHQQ", *row) for row in rows)

        code = next(n for n, s in enumerate(elf.read(binary, "").sections) if s.name == ".text")
        return rebuilt(
            binary,
            content(".rodata", distance),
            named(".text", lambda s: replace(s, address=s.address + by)),
            content(".symtab", symbols),
            content(".dynsym", symbols),
        )

    assert digest("hsaco", apart(256, 0)) == digest("hsaco", binary)
    assert digest("hsaco", apart(256, 8)) != digest("hsaco", binary)


def section(number, kind, body, **changes):
    plain = {"address": 0, "link": 0, "info": 0, "alignment": 1, "flags": 0}
    return Section(name=f".s{number}", type=kind, size=len(body), content=body, **{**plain, **changes})


def overlapping(count, size):
    """Many sections, each of them the whole body."""
    header = bytearray(b"\x7fELF\x02\x01" + bytes(HEADER_BYTES - 6))
    body = bytes(size)
    rows = struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, HEADER_BYTES, size, 0, 0, 1, 0) * count
    struct.pack_into("<Q", header, 0x28, HEADER_BYTES + size)
    struct.pack_into("<HHH", header, 0x3A, 64, count, 0)
    return bytes(header) + body + rows


def many_names(count, size):
    """A table of symbols each of which has the whole table of strings as its name."""
    header = b"\x7fELF\x02\x01" + bytes(HEADER_BYTES - 6)
    rows = struct.pack("<IBBHQQ", 1, 0, 0, 0, 0, 0) * count
    sections = [
        section(0, 0, b""),
        section(1, 3, b""),
        section(2, elf.SYMTAB, rows, link=3),
        section(3, 1, b"\0" + b"a" * size + b"\0"),
        section(4, 1, b"\0" * 16, flags=6),
    ]
    sections[4] = replace(sections[4], name=".text.f")
    return assembled(header, sections, 1)


@pytest.mark.parametrize("stage", ["cubin", "hsaco"])
@pytest.mark.parametrize(
    "hostile",
    [overlapping(3000, 4 << 20), many_names(80_000, 2 << 20)],
    ids=["overlapping sections", "long names"],
)
def test_memory_and_time_are_bounded_by_the_size_of_the_file(stage, hostile):
    assert len(hostile) < 5 << 20
    start = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(NormalizeError):
            machine_code(stage, hostile)
        assert tracemalloc.get_traced_memory()[1] < 16 * len(hostile)
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < 10


def test_a_note_nested_deeply_is_damaged():
    note = struct.pack("<III", 0, 100_000, 32) + b"\x91" * 100_000
    with pytest.raises(NormalizeError):
        machine_code("hsaco", rebuilt(original("hsaco", "gfx942"), content(".note", lambda _: note)))


def test_sections_of_one_name_are_both_counted():
    binary = original("cubin", "sm_90")
    twice = named(".nv.compat", lambda s: replace(s, name=".nv.constant0." + KERNEL))
    other = named(".nv.constant0", lambda s: replace(s, content=b"\1" + s.content[1:]) if s.type != 1 else s)
    assert digest("cubin", rebuilt(binary, twice)) != digest("cubin", rebuilt(binary, twice, other))


@pytest.mark.parametrize(("stage", "target"), [("cubin", "sm_90"), ("hsaco", "gfx942")])
@pytest.mark.parametrize(("info", "found"), [(0x12, True), (0x22, True), (0x02, False), (0x11, False)])
def test_only_what_a_driver_looks_up_is_found(stage, target, info, found):
    """Functions, global (1) or weak (2); neither local ones nor data."""
    binary = original(stage, target)
    kernel = next(n for n, s in enumerate(elf.symbols(elf.read(binary, stage))) if s.name == KERNEL)
    with_info = content(
        ".symtab", lambda old: old[: 24 * kernel + 4] + bytes([info]) + old[24 * kernel + 5 :]
    )
    assert (KERNEL in symbols(stage, rebuilt(binary, with_info))) is found
    with pytest.raises(NormalizeError):
        symbols(stage, binary[:100])
