"""What counts of a binary: each entry that the loader or the launch reads, and nothing else."""

import functools
import struct
import time
import tracemalloc
from dataclasses import replace

import msgpack
import pytest

from irdiff.backends import elf
from irdiff.backends.elf import Section
from irdiff.backends.machine_code import machine_code, symbols
from irdiff.backends.nvidia import cubin, encodings
from irdiff.errors import NormalizeError
from tests.elf_files import HEADER_BYTES, assembled, content, named, rebuilt
from tests.programs.mutation.artifacts import of_stage
from tests.unit.golden import golden

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
    new = bytearray(old)
    new[at] ^= 1
    return bytes(new)


@pytest.mark.parametrize(("bit", "is_same"), [(115, True), (20, False)])
def test_control_bits_alone_may_differ(bit, is_same):
    binary = original("cubin", "sm_90")
    code = named(f".text.{KERNEL}", lambda s: replace(s, content=flipped_bit(s.content, bit)))
    assert encodings.is_same_but_for_control_bits(binary, rebuilt(binary, code)) is is_same
    assert digest("cubin", rebuilt(binary, code)) != digest("cubin", binary)


def flipped_bit(content, bit):
    new = bytearray(content)
    new[bit // 8] ^= 1 << bit % 8
    return bytes(new)


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


def of_section(row):
    """The edit of sections that a row of the golden file stands for."""
    name, edit = row["section"], functools.partial(content, row["section"])
    match row:
        case {"attribute": number, "flip": at}:
            return attributes(name, lambda found, value: flipped(value, at) if found == number else value)
        case {"without": gone}:
            return attributes(name, lambda found, value: None if found in gone else value)
        case {"flip": at}:
            return edit(lambda old: flipped(old, at))
        case {"append": text}:
            return edit(lambda old: old + text.encode())
        case {"cut": count}:
            return edit(lambda old: old[:-count])
        case {"replace": texts}:
            return edit(lambda old: old.replace(*(text.encode() for text in texts)))

    def changed(section):
        added = {field: getattr(section, field) + count for field, count in row.get("add", {}).items()}
        return replace(section, **row.get("set", {}), **added)

    return named(name, changed)


def of_metadata(row):
    def changed(note):
        name_size, size, kind = struct.unpack_from("<III", note)
        start = 12 + (name_size + 3) // 4 * 4
        found = msgpack.unpackb(note[start : start + size])
        kernels = found["amdhsa.kernels"]
        found.update(row.get("note", {}))
        kernels[0].update(row.get("kernel", {}))
        kernels[0][".args"][3].update(row.get("argument", {}))
        kernels[0][".args"] += row.get("arguments", [])
        kernels += row.get("kernels", [])
        packed = msgpack.packb(found)
        padding = b"\0" * (-len(packed) % 4)
        return struct.pack("<III", name_size, len(packed), kind) + note[12:start] + packed + padding

    return content(".note", changed)


@pytest.mark.parametrize(
    ("stage", "target", "row", "counts"),
    [
        pytest.param(stage, target, row, of == "counts", id=f"{target} {row['why']}")
        for stage, target in (("cubin", "sm_90"), ("cubin", "sm_100"), ("hsaco", "gfx942"))
        for of, rows in golden("contract")[stage].items()
        for row in rows
    ],
)
def test_a_contract_has_all_that_counts_and_nothing_else(stage, target, row, counts):
    binary = original(stage, target)
    edited = rebuilt(binary, of_section(row) if "section" in row else of_metadata(row))
    assert edited != rebuilt(binary)
    assert (digest(stage, edited) != digest(stage, binary)) == counts


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
