"""Edited sources lead to the passes that use them: by symbols of objects, by includes, by tables."""

from __future__ import annotations

from irdiff.resolve.toolchains.building import object_uses
from irdiff.resolve.toolchains.edited_passes import PassIndex

TABLE = """\
def TritonGPUCoalesce : Pass<"tritongpu-coalesce", "mlir::ModuleOp"> {}
def TritonGPUPipeline : Pass<"tritongpu-pipeline", "mlir::ModuleOp"> {}
"""
TEXTS = {
    "include/Passes.td": TABLE,
    "include/triton/Axis.h": "struct Axis;",
    "lib/Axis.cpp": '#include "triton/Axis.h"\nint axis() { return 1; }',
    "lib/Utility.cpp": "int utility() { return axis(); }",
    "lib/Coalesce.cpp": '#include "triton/Axis.h"\nstruct P : impl::TritonGPUCoalesceBase<P> {};',
    "lib/Pipeline.cpp": "struct P : impl::TritonGPUPipelineBase<P> { int x = utility(); };",
    "lib/Driver.cpp": "void all() { createCoalesce(); }",
    "python/src/llvm.cc": "int bind();",
    "test/Test.cpp": "struct T : impl::TritonGPUPipelineBase<T> { int x = axis(); };",
}
ROWS = [
    "/o/Axis.o: _Z4axisv T 0 1f",
    "/o/Axis.o: _ZN5SmallC2Ev W 0 1f",
    "/o/Utility.o: _Z7utilityv T 0 1f",
    "/o/Utility.o: _Z4axisv U         ",
    "/o/Coalesce.o: _Z4axisv U         ",
    "/o/Coalesce.o: _ZN5SmallC2Ev U         ",
    "/o/Coalesce.o: _Z14createCoalescev T 0 1f",
    "/o/Pipeline.o: _Z7utilityv U         ",
    "/o/Driver.o: _Z14createCoalescev U         ",
    "/o/unknown.o: _Z4axisv U         ",
]
SOURCES = {
    f"/o/{name}.o": f"lib/{name}.cpp" for name in ("Axis", "Utility", "Coalesce", "Pipeline", "Driver")
}


def test_uses_are_what_the_linker_resolves() -> None:
    assert object_uses.uses(ROWS, SOURCES) == {
        "lib/Axis.cpp": ["lib/Coalesce.cpp", "lib/Utility.cpp"],
        "lib/Coalesce.cpp": ["lib/Driver.cpp"],
        "lib/Driver.cpp": [],
        "lib/Pipeline.cpp": [],
        "lib/Utility.cpp": ["lib/Pipeline.cpp"],
    }


def test_an_edited_file_leads_to_the_passes_that_use_it() -> None:
    index = PassIndex(TEXTS, object_uses.uses(ROWS, SOURCES))
    edited = [*TEXTS, "docs/index.md"]
    assert index.passes_of(edited) == {
        "include/Passes.td": ["TritonGPUCoalesce", "TritonGPUPipeline"],
        "include/triton/Axis.h": ["TritonGPUCoalesce", "TritonGPUPipeline"],
        "lib/Axis.cpp": ["TritonGPUCoalesce", "TritonGPUPipeline"],
        "lib/Utility.cpp": ["TritonGPUPipeline"],
        "lib/Coalesce.cpp": ["TritonGPUCoalesce"],
        "lib/Pipeline.cpp": ["TritonGPUPipeline"],
        "lib/Driver.cpp": [],
        "python/src/llvm.cc": [],
    }


def test_without_objects_only_a_passs_own_file_is_known() -> None:
    index = PassIndex(TEXTS, {})
    assert index.passes_of(["lib/Pipeline.cpp", "lib/Axis.cpp"]) == {
        "lib/Axis.cpp": [],
        "lib/Pipeline.cpp": ["TritonGPUPipeline"],
    }
