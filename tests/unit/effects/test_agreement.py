"""What must agree with the code: headers, launches, and the operations that ptxas made."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from irdiff import effects
from irdiff.effects import cases
from irdiff.ir.sass import operations
from irdiff.model import Artifact, Bits, Meaning, Sides, StageStatus, Verdict
from irdiff.store import sha256
from tests.elf_files import elf_file
from tests.unit import runs

AMD = [
    ".text", ".type k,@function", "k:", "v_mov_b32_e32 v40, s2", "global_store_dword v0, v40, s[0:1]", "s_endpgm",
    '.section .rodata,"a",@progbits', ".amdhsa_kernel k",
]  # fmt: skip
PTX = [
    ".target sm_90a", ".visible .entry k(", ")", ".reqntid 128", "{", "ld.param.b64 %rd1, [k_param_0];",
    "mov.u32 %r1, %tid.x;", "st.global.b32 [%rd1], %r1;", "ret;", "}",
]  # fmt: skip
SASS = (
    "/*0010*/ FADD R1, R2, R3 ;\n/*0020*/ @P0 STG.E.128 desc[UR4][R2.64], R4 ;\n/*0030*/ FADD R4, -RZ, RZ ;"
)


def registers(vectors, offset):
    return [f".amdhsa_next_free_vgpr {vectors}", f".amdhsa_accum_offset {offset}", ".end_amdhsa_kernel"]


def test_a_header_that_reserves_fewer_registers_than_code_uses_is_a_hazard():
    base = AMD + registers(41, 44)
    found = effects.compare("amdgcn", base, AMD + registers(8, 8))
    assert (found.kind, found.hazards[0].what) == (Meaning.HAZARD, "reserves 8 registers for `v` and uses 41")
    assert [line.number for line in found.hazards[0].witness.head] == [5, 10]
    assert effects.compare("amdgcn", base, AMD + registers(48, 48)).kind is Meaning.SAME


def test_scalar_registers_are_reserved_too():
    base, head = ([*AMD, *registers(41, 44)[:2], f".amdhsa_next_free_sgpr {n}"] for n in (16, 1))
    found = effects.compare("amdgcn", base, head)
    assert found.kind is Meaning.HAZARD and found.hazards[0].what.startswith("reserves 1 register for `s`")


def test_arguments_are_loaded_into_the_registers_that_they_are_preloaded_into():
    preloads = [".amdhsa_user_sgpr_kernarg_segment_ptr 1", ".amdhsa_user_sgpr_kernarg_preload_length 4"]
    base = [*AMD[:3], "s_load_dwordx2 s[2:3], s[0:1], 0x0", "s_load_dwordx2 s[4:5], s[0:1], 0x8",
            "s_waitcnt lgkmcnt(0)", "v_mov_b32_e32 v1, s4", "global_store_dword v0, v1, s[2:3]",
            *AMD[5:], *preloads, *registers(2, 4)]  # fmt: skip
    assert effects.compare("amdgcn", base, base).kind is Meaning.SAME
    pairs = {"s[2:3]": "s[4:5]", "s[4:5]": "s[2:3]", "s4": "s2"}
    head = [re.sub(r"s\[[24]:[35]\]|s4", lambda match: pairs[match[0]], line) for line in base]
    found = effects.compare("amdgcn", base, head)
    assert found.kind is Meaning.HAZARD
    assert [hazard.witness.head[0].number for hazard in found.hazards] == [4, 5]
    sides = [[line for line in side if line not in preloads[1:]] for side in (base, head)]
    assert effects.compare("amdgcn", *sides).kind is Meaning.SAME


@dataclass(frozen=True)
class Cubins:
    """By digest: their texts, where a disassembler is there, and what they hold."""

    texts: Mapping[str, str]
    held: bytes = b"no cubin"

    def content(self, digest):
        return self.held

    def operations(self, digests):
        texts = [self.texts.get(digest) for digest in digests]
        return None if None in texts else [operations.counted(text) for text in texts]


def of_case(metadata=({}, {}), machine_code=None, held=b"no cubin", ptx=PTX, stages=()):
    artifacts = {
        stage: Artifact(stage=stage, digest=sha256(stage.encode()), size_bytes=1)
        for stage in ("ptx", "cubin")
    }
    head = {**artifacts, "cubin": replace(artifacts["cubin"], digest=sha256(b"other"))}
    case = runs.case("a/x:1@sm_90", Verdict.CHANGED, artifacts=Sides(base=artifacts, head=head))
    sides = Sides(base=dict(metadata[0]), head=dict(metadata[1]))
    case = replace(case, metadata=sides, stages=dict(stages))
    texts = {sha256(b"cubin"): SASS, sha256(b"other"): SASS, **(machine_code or {})}
    return cases.of_case(case, lambda stage, digest: ptx, Cubins(texts, held))


@pytest.mark.parametrize(
    ("metadata", "kind", "words"),
    [
        (({"shared": 8}, {"shared": 8}), Meaning.SAME, None),
        (({"shared": 8192}, {"shared": 4096}), Meaning.NOT_SHOWN, "shared 8192 → 4096"),
        (({"tensordesc_meta": "a"}, {"tensordesc_meta": "b"}), Meaning.NOT_SHOWN, "tensordesc_meta a → b"),
        (
            ({"global_scratch_size": 64}, {"global_scratch_size": 0}),
            Meaning.NOT_SHOWN,
            "global_scratch_size 64 → 0",
        ),
        (({}, {"global_scratch_size": 0, "global_scratch_align": 1}), Meaning.SAME, None),
        (
            ({"num_warps": 4}, {"num_warps": 8}),
            Meaning.HAZARD,
            "8 warps of 32, and its code is for 128 threads",
        ),
    ],
)
def test_what_a_launch_passes_has_to_agree_with_its_code(metadata, kind, words):
    found = of_case(metadata)
    assert found.kind is kind
    assert (words or "") in "".join(found.said)


@pytest.mark.parametrize(
    ("head", "kind", "words"),
    [
        (SASS.replace("FADD R1", "FMUL R1"), Meaning.NOT_SHOWN, "1 → 0 FADD, 0 → 1 FMUL"),
        (SASS.replace("STG.E.128", "STG.E"), Meaning.NOT_SHOWN, "4 → 1 STG"),
        (SASS + "\n/*0040*/ IADD3 R1, R1, R2, RZ ;", Meaning.SAME, ""),
        (None, Meaning.NOT_SHOWN, "the machine code could not be read (ptxas)"),
    ],
)
def test_ptxas_may_be_wrong(head, kind, words):
    found = of_case(machine_code={sha256(b"other"): head})
    assert found.kind is kind
    assert words in "".join(found.said)
    assert (found.bits is Bits.SAME) == (kind is Meaning.SAME)


def test_the_same_code_with_other_arguments_is_not_the_same():
    launched_otherwise = {"launch": StageStatus.CHANGED}
    assert of_case(stages={**launched_otherwise, "ttir": StageStatus.CHANGED}).kind is Meaning.NOT_SHOWN
    assert of_case(stages=launched_otherwise) is None


def test_machine_code_of_the_same_operations_needs_no_disassembler():
    unread = dict.fromkeys((sha256(b"cubin"), sha256(b"other")))
    assert of_case(machine_code=unread).kind is Meaning.NOT_SHOWN
    cubin = elf_file({".text.k": 0x207037221.to_bytes(16, "little")})
    assert of_case(machine_code=unread, held=cubin).bits is Bits.SAME


def of_llvm_ir(*bodies):
    """A case that has nothing else."""
    digests = [sha256(name) for name in (b"base", b"head")]
    artifacts = [{"llir": Artifact(stage="llir", digest=each, size_bytes=1)} for each in digests]
    case = runs.case("a/x:1@gpu", Verdict.CHANGED, artifacts=Sides(base=artifacts[0], head=artifacts[1]))
    kernel = "define void @k(ptr addrspace(1) %0, i32 %1, ptr addrspace(3) %9) {"
    texts = {digest: [kernel, *body, "ret void", "}"] for digest, body in zip(digests, bodies, strict=True)}
    return cases.of_case(case, lambda stage, digest: texts[digest], Cubins({}))


def test_llvm_ir_alone_is_never_the_same():
    """A later step may act on a stronger promise."""
    store = "store i32 %2, ptr addrspace(1) %0"
    found = of_llvm_ir(["%2 = add i32 %1, 1", store], ["%2 = add nsw i32 %1, 1", store])
    assert found.kind is Meaning.NOT_SHOWN
    assert "no assembly that is made of it was read" in found.said[0]


def test_llvm_ir_alone_shows_no_order_that_is_lost_but_an_access_that_is():
    store, read = "store i32 %1, ptr addrspace(3) %9", "%2 = load i32, ptr addrspace(3) %9"
    out = "store i32 %2, ptr addrspace(1) %0"
    barrier = "call void @llvm.nvvm.barrier0()"
    found = of_llvm_ir([store, barrier, read, out], [store, read, out])
    assert (found.kind, found.hazards) == (Meaning.NOT_SHOWN, ())
    assert any(each.detail == "of LLVM IR alone, of which no assembly was read" for each in found.not_shown)
    found = of_llvm_ir([store, barrier, read, out], [store, barrier, read])
    assert found.kind is Meaning.HAZARD


def test_moves_of_the_floating_point_unit_and_what_never_runs_are_not_counted():
    assert operations.counted(f"{SASS}\n/*0040*/ @!PT LDS RZ, [RZ] ;\n@PT LDS R1, [R2] ;") == {
        "FADD": 1, "STG": 4, "LDS": 1,
    }  # fmt: skip


PRODUCT = "mul.f32 %r3, %r1, %r2;"
SUM = "add.f32 %r4, %r3, %r1;"
TWO = f"{PRODUCT} {SUM} mul.f32 %r5, %r4, %r2; sub.f32 %r4, %r2, %r5;"


@pytest.mark.parametrize(
    ("body", "machine_code", "bits"),
    [
        (f"{PRODUCT} {SUM}", "FFMA R1, R2, R3, R4", Bits.SAME),
        (f"{PRODUCT} {SUM}", "FMUL R1, R2, R3; FADD R1, R1, R4", Bits.SAME),
        ("div.full.f32 %r3, %r1, %r2; add.f32 %r4, %r3, %r1;", "FFMA R1, R2, R3, R4", Bits.SAME),
        (TWO, "FFMA R1, R2, R3, R4; FFMA R1, R2, R3, R4", Bits.SAME),
        (TWO, "FMUL R1, R2, R3; FADD R1, R1, R4; FMUL R1, R2, R3; FADD R1, R1, R4", Bits.SAME),
        # no assembler may fuse what says how it rounds
        ("mul.rn.f32 %r3, %r1, %r2; add.f32 %r4, %r3, %r1;", "", Bits.SAME),
        # one of two is fused: which one is open
        (TWO, "FFMA R1, R2, R3, R4; FMUL R1, R2, R3; FADD R1, R1, R4", Bits.UNKNOWN),
        # so it is of a reciprocal that ends in a product, and not of one that does not
        (
            f"rcp.approx.f32 %r3, %r1; {SUM} {PRODUCT} {SUM}",
            "FMUL R1, R2, R3; FFMA R1, R2, R3, R4; FADD R1, R1, R4",
            Bits.UNKNOWN,
        ),
        (f"rcp.approx.ftz.f32 %r3, %r1; {SUM}", "FADD R1, R1, R4", Bits.SAME),
        # nothing reads a sum: the other two are not fused, though two are lacking
        (
            f"{TWO} add.f32 %r5, %r1, %r2;",
            "FFMA R1, R2, R3, R4; FMUL R1, R2, R3; FADD R1, R1, R4",
            Bits.UNKNOWN,
        ),
        # and it stays open where the machine code has a sum more, of a sign
        (
            TWO,
            "FFMA R1, R2, R3, R4; FMUL R1, R2, R3; FADD R1, R1, R4; FADD R1, |R0|, -RZ",
            Bits.UNKNOWN,
        ),
        # all are single, and so are both of a packed sum; what the text fuses is no sum
        (TWO, "FMUL2 R1, R2, R3; FADD2 R1, R1, R4", Bits.SAME),
        (
            f"fma.rn.f32 %r1, %r1, %r2, %r2; {PRODUCT} {SUM}",
            "FFMA R1, R2, R3, R4; FMUL R1, R2, R3; FADD R1, R1, R4",
            Bits.SAME,
        ),
        # a sum stands twice in the machine code, so it may be fused in one of its places only
        (TWO, "FFMA R1, R2, R3, R4; FFMA R1, R2, R3, R4; FADD R1, R2, R3", Bits.UNKNOWN),
        (f"{PRODUCT} {SUM}", "FFMA R1, R2, R3, R4; FADD R1, R2, R3; FADD R1, R2, R3", Bits.UNKNOWN),
        # the text computes one sum in two places
        (f"{PRODUCT} {SUM} add.f32 %r4, %r3, %r1;", "FFMA R1, R2, R3, R4; FADD R1, R2, R3", Bits.UNKNOWN),
        # a loop may be unrolled, and its sum be fused in some rounds
        (
            f"$L0: {PRODUCT} {SUM} setp.lt.s32 %p1, %r1, %r9; @%p1 bra $L0;",
            "FFMA R1, R2, R3, R4",
            Bits.UNKNOWN,
        ),
        # a sum has two products: either may be the one that is not rounded
        (f"{PRODUCT} mul.f32 %r5, %r1, %r1; add.f32 %r4, %r3, %r5;", "FFMA R1, R2, R3, R4", Bits.UNKNOWN),
        (f"{PRODUCT} mul.f32 %r5, %r1, %r1; sub.f32 %r4, %r3, %r5;", "FFMA R1, R2, R3, R4", Bits.UNKNOWN),
        (f"{PRODUCT} neg.f32 %r3, %r3; div.full.f32 %r5, %r1, %r2; add.f32 %r4, %r3, %r5;", "", Bits.UNKNOWN),
        (f"{PRODUCT} add.f32 %r4, %r3, %r3;", "FFMA R1, R2, R3, R4", Bits.UNKNOWN),
        # a sum may be made by an operation that multiplies by 1
        (f"{PRODUCT} {SUM}", "FFMA R1, R2, 1, R4", Bits.UNKNOWN),
        (f"{PRODUCT} {SUM}", "FMUL R1, R2, R3; FFMA R1, -1, R2, R4", Bits.UNKNOWN),
        # other formats have other operations
        ("mul.f64 %rd3, %rd1, %rd2; add.f64 %rd4, %rd3, %rd1;", "DFMA R1, R2, R3, R4", Bits.UNKNOWN),
        ("mul.f16 %r3, %r1, %r2; add.f16 %r4, %r3, %r1;", "HFMA2 R1, R2, R3, R4", Bits.UNKNOWN),
        ("mul.f16x2 %r3, %r1, %r2; add.f16x2 %r4, %r3, %r1;", "HFMA2 R1, R2, R3, R4", Bits.UNKNOWN),
        # no disassembler is there
        (f"{PRODUCT} {SUM}", None, Bits.UNKNOWN),
    ],
)
def test_bits_are_the_same_where_it_is_certain_which_sums_ptxas_fused(body, machine_code, bits):
    result = "%rd4" if "%rd4" in body else "%r4"
    lines = [
        "ld.global.b32 %r1, [%rd1+4];", "ld.global.b32 %r2, [%rd1+8];", "ld.global.b64 %rd2, [%rd1+16];",
        *(each if each.endswith(":") else f"{each};" for each in re.split(r"(?<=:) |; ", body)), f"st.global.b{64 if 'rd' in result else 32} [%rd1], {result};",
    ]  # fmt: skip
    ptx = [*PTX[:6], *(line.replace(";;", ";") for line in lines), *PTX[8:]]
    cubin = elf_file({".text.k": 0x207037221.to_bytes(16, "little")})
    texts = dict.fromkeys((sha256(b"cubin"), sha256(b"other")))
    if machine_code is not None:
        text = "\n".join(f"/*0010*/ {each} ;" for each in machine_code.split("; "))
        texts = dict.fromkeys(texts, text)
    found = of_case(machine_code=texts, held=cubin, ptx=ptx)
    assert (found.kind, found.bits) == (Meaning.SAME, bits)


def test_a_sum_that_ptxas_fused_on_one_side_is_not_the_same():
    ptx = [
        *PTX[:6],
        "ld.global.b32 %r1, [%rd1+4];",
        PRODUCT.replace("%r2", "%r1"),
        SUM,
        "st.global.b32 [%rd1], %r4;",
        *PTX[8:],
    ]
    texts = {
        sha256(b"cubin"): "/*0010*/ FFMA R1, R2, R3, R4 ;",
        sha256(b"other"): "/*0010*/ FMUL R1, R2, R3 ;\n/*0020*/ FADD R1, R1, R4 ;",
    }
    assert of_case(machine_code=texts, ptx=ptx).kind is Meaning.NOT_SHOWN
