"""Facts count opcodes by class."""

from irdiff.normalize import instruction_facts
from tests.programs.mutation.artifacts import of_stage

LOOP = """
    %1 = {gpu}.async_copy_global_to_local %0, %b : tensor<64x64x!tt.ptr<f16>> -> <64x64xf16>
    %2 = {gpu}.async_wait %1 {{num = 0 : i32}}
    {nvidia}.fence_async_shared {{bCluster = false}}
    %3 = {nvidia}.warp_group_dot %a, %b, %c : !m * !m -> tensor<64x64xf32>
"""


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
