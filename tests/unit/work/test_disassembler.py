"""Words of machine code become texts by a disassembler, each once: a small program stands for nvdisasm."""

import stat
import sys

import pytest

from irdiff.backends.nvidia.disassembler import MAX_CODE_BYTES, Disassembler
from irdiff.backends.nvidia.operation_counter import OperationCounter
from irdiff.errors import NormalizeError
from tests.elf_files import elf_file

FAKE = """#!{python}
import sys
words = open(sys.argv[-1], "rb").read()
texts = {1: "MOV R1, R2.reuse", 2: "BRA %#x", 3: "EXIT", 33: "@P0 FADD R1, R2, R3", 129: "LDG.E.128 R4, [R2.64]"}
with open({log}, "a") as log:
    print(len(words) // 16, file=log)
bad = [n for n in range(0, len(words), 16) if words[n] not in texts]
for n in bad:
    print(f"nvdisasm error   : Illegal instruction at address {n:#010x}", file=sys.stderr)
if bad:
    sys.exit(1)
for n in range(0, len(words), 16):
    text = texts[words[n]]
    print(f"        /*{n:04x}*/                   {text % (n - 0x20) if '%' in text else text} ;")
"""


@pytest.fixture
def asked(tmp_path):
    """A disassembler, and a file that says how many words each call of its program had."""
    program, log = tmp_path / "nvdisasm", tmp_path / "log"
    program.write_text(FAKE.replace("{python}", sys.executable).replace("{log}", repr(str(log))))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return Disassembler(program), log


def word(kind, control=0):
    return (kind | control << 105).to_bytes(16, "little")


def binary(*words):
    return elf_file({".text.k": b"".join(words)})


def texts(function):
    return [ins.text for ins in function.instructions]


def test_each_word_is_disassembled_once_whatever_its_control_bits(asked):
    disassembler, log = asked
    code = binary(word(1), word(1, control=5), word(1), word(2), word(3))
    function = disassembler.read(90, code, "k")
    assert texts(function) == ["MOV R1, R2", "MOV R1, R2", "MOV R1, R2", "BRA .-0x20", "EXIT"]
    assert [ins.control for ins in function.instructions] == [0, 5, 0, 0, 0]
    assert function.instructions[3].target == 1
    disassembler.read(90, code, "k")
    assert log.read_text().split() == ["3"]


def test_words_that_are_no_instructions_end_their_kernel_alone(asked):
    disassembler, _ = asked
    whole, forged = word(1) + word(3), word(1) + word(77) + word(3)
    disassembler.prepare(90, [whole, forged])
    assert texts(disassembler.read(90, binary(whole), "k")) == ["MOV R1, R2", "EXIT"]
    with pytest.raises(NormalizeError, match="knows no instruction at 0x10 of k"):
        disassembler.read(90, binary(forged), "k")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a 64-bit"),
        (elf_file({".text.other": word(3)}), "no code of a kernel 'k'"),
        (elf_file({".text.k": word(3) * (MAX_CODE_BYTES // 16 + 1)}), "at most 200,000 are counted"),
        (elf_file({".text.k": word(2)}), "leads out of k"),
    ],
)
def test_a_forged_binary_is_refused_with_the_reason(asked, content, words):
    with pytest.raises(NormalizeError, match=words):
        asked[0].read(90, content, "k")


ADD, LOAD = 0x207037221, 0x2047381
"""Their first bytes are 33 and 129."""


def cubin(*words):
    content = b"".join(word.to_bytes(16, "little") for word in words)
    return elf_file({".text.k": content, ".text.another": content[:16]})


def test_operations_of_both_sides_are_counted_by_one_word_of_each_form(asked):
    disassembler, log = asked
    counter = OperationCounter(disassembler)
    another_add = ADD + (3 << 16) + (1 << 105)
    base, head = counter.counted([cubin(ADD, ADD, LOAD), cubin(another_add)])
    assert (base, head) == ({"FADD": 3, "LDG": 4}, {"FADD": 2})
    assert counter.counted([cubin(LOAD)]) == [{"LDG": 8}]
    assert log.read_text().split() == ["2"]


def test_operations_that_the_disassembler_does_not_know_are_not_counted(asked):
    with pytest.raises(NormalizeError, match="knows no instruction"):
        OperationCounter(asked[0]).counted([cubin(ADD), cubin(0x7999)])
