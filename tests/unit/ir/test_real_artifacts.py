"""Properties that hold for every real artifact of the committed set."""

import pytest

from irdiff.backends.machine_code import machine_code
from irdiff.errors import NormalizeError
from irdiff.ir.llir import llvm_reader
from irdiff.texts import canonicalize, equivalent, instruction_facts
from tests.programs.mutation.artifacts import TEXT_STAGES, all_artifacts, of_stage
from tests.texts import text_of
from tests.unit.runs import told


@pytest.mark.parametrize("stage", TEXT_STAGES)
def test_raw_lines_point_at_what_the_line_came_from(stage):
    for artifact in of_stage(stage, release="3.9.0"):
        raw = artifact.text.split("\n")
        canonical = canonicalize(stage, artifact.text)
        for line, number in zip(canonical.lines, canonical.numbers, strict=True):
            word = line.replace("(", " ").split(" ")[0]
            if number and word.isidentifier() and not line.startswith("Function : "):
                assert word in raw[number - 1], (artifact.name, line, raw[number - 1])


@pytest.mark.parametrize("stage", TEXT_STAGES)
def test_kernels_differ_from_each_other_and_from_nothing_and_no_other_text_is_read(stage):
    artifacts = of_stage(stage, release="3.9.0")
    found = {canonicalize(stage, artifact.text).lines for artifact in artifacts}
    assert len(found) >= len({artifact.kernel for artifact in artifacts})
    assert canonicalize(stage, "").lines == ()
    assert not equivalent(stage, "", artifacts[0].text).equal
    for other in ("hello\nworld\n", "\n \n", "def kernel(x):\n    return x\n"):
        with pytest.raises(NormalizeError):
            canonicalize(stage, other)


@pytest.mark.parametrize(("old", "new"), [("3.5.1", "3.7.1"), ("3.8.0", "3.9.0")])
def test_llvm_reads_real_texts_and_judges_as_the_lexical_form_does(old, new):
    bases = {(a.kernel, a.target): a for a in of_stage("llir", release=old)}
    read = []

    def reprint(text):
        """Real texts are not known to abort LLVM; irdiff itself reads in a process of its own."""
        read.append(text)
        return llvm_reader.reprint(text)

    for artifact in of_stage("llir", release=new)[::4]:
        base = bases[artifact.kernel, artifact.target]
        found = equivalent("llir", base.text, artifact.text, reprint=reprint)
        assert found.equal == equivalent("llir", base.text, artifact.text).equal
        assert "lexical-llir:unreadable" not in told(found.findings)
    assert len(read) >= 4


@pytest.mark.parametrize(
    "artifact", [a for a in all_artifacts() if a.stage in ("cubin", "hsaco")], ids=lambda a: a.name
)
def test_machine_code_and_its_facts(artifact):
    code = machine_code(artifact.stage, artifact.content)
    assert code.facts["code_bytes"] == sum(
        len(content) for name, content in code.sections.items() if name.startswith(".text")
    )
    wanted = {"registers", "stack_bytes", "barriers", "static_shared_bytes"}
    if artifact.stage == "hsaco":
        wanted = {"vgprs", "sgprs", "lds_bytes", "scratch_bytes", "kernarg_bytes", "wavefront_size"}
    assert wanted <= code.facts.keys()


@pytest.mark.parametrize("stage", ["cubin", "hsaco"])
def test_machine_code_sees_each_byte_of_the_code_and_refuses_damage(stage):
    binary = of_stage(stage, release="3.9.0")[0].content
    code = machine_code(stage, binary)
    text = next(content for name, content in code.sections.items() if name.startswith(".text"))
    for offset in range(0, len(text), 97):
        changed = bytearray(binary)
        changed[binary.index(text) + offset] ^= 1
        assert machine_code(stage, bytes(changed)).digest != code.digest
    for damaged in (b"", b"\x7fELF", binary[:64], binary[: len(binary) // 2], b"\0" * 4096):
        with pytest.raises(NormalizeError):
            machine_code(stage, damaged)


LOOP = text_of("ir/loop.ttgir.template")


def test_dialects_of_3_2_are_counted_by_their_names_of_today():
    """Without that, every matmul would have gained its matrix instructions with 3.3."""
    today = instruction_facts("ttgir", LOOP.format(gpu="ttg", nvidia="ttng"))
    former = instruction_facts("ttgir", LOOP.format(gpu="triton_gpu", nvidia="triton_nvidia_gpu"))
    assert former == today
    assert [today[name] for name in ("async_copy", "async_wait", "fence", "dot")] == [1, 1, 1, 1]


def test_real_texts():
    for kernel, target, stage, name, count in (
        ("matmul", "sm_100", "ptx", "tcgen05_mma", None),
        ("matmul", "sm_90", "ptx", "wgmma", None),
        ("matmul", "gfx950", "amdgcn", "mfma", None),
        ("descriptor", "sm_90", "ptx", "tma", None),
        ("vector_add", "sm_90", "ptx", "load_global_32", 16),
        ("gluon_add", "sm_90", "ttgir", "convert_layout", 1),
    ):
        (artifact,) = of_stage(stage, release="3.9.0", kernel=kernel, target=target)
        found = instruction_facts(stage, artifact.text)[name]
        assert found == count if count else found > 0
