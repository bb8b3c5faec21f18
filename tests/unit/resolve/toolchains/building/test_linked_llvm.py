"""What is linked is known by its content, and a packaged LLVM is made fit for a build."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains.building import packaged_llvm
from irdiff.resolve.toolchains.building.linked_llvm import LinkedLlvm

DESCRIPTION = """\
set(LLVM_PACKAGE_VERSION 22.1.8)
set(LLVM_LINK_LLVM_DYLIB ON)
set(LLVM_AVAILABLE_LIBS LLVMSupport;LLVMCore;LLVMDebuginfod;LTO;LLVM;LLVMBOLTCore)
set(LLVM_TARGETS_TO_BUILD X86;NVPTX)
"""
TARGETS = """\
set_target_properties(MLIRIR PROPERTIES
  INTERFACE_LINK_LIBRARIES "MLIRSupport;LLVM"
)
set_target_properties(MLIRSupport PROPERTIES
  INTERFACE_LINK_LIBRARIES "LLVM"
)
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configuration.load(cache=tmp_path / "cache")


@pytest.fixture
def llvm(tmp_path: Path) -> LinkedLlvm:
    root = tmp_path / "llvm-22"
    files = {
        "lib/cmake/llvm/LLVMConfig.cmake": DESCRIPTION,
        "lib/cmake/mlir/MLIRConfig.cmake": "set(MLIR_LINK_MLIR_DYLIB ON)\n",
        "lib/cmake/mlir/MLIRTargets.cmake": TARGETS,
        "lib/cmake/lld/LLDConfig.cmake": "",
        "lib/libLLVMCore.a": "core",
        "lib/libMLIRIR.a": "ir",
        "bin/FileCheck": "",
        "include/llvm/Plugins/PassPlugin.h": "#pragma once\n",
        "include/llvm/Passes/PassBuilder.h": "",
        "include/mlir/IR/Builders.h": "",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return LinkedLlvm(folder=root)


def test_it_says_what_it_is(llvm: LinkedLlvm) -> None:
    assert llvm.title() == "LLVM 22.1.8, shared"
    assert llvm.missing_packages() == []
    assert llvm.missing_programs() == ["mlir-tblgen"]
    assert llvm.missing_targets() == ["AMDGPU"]
    assert llvm.commit is None
    revision = llvm.folder / "include/llvm/Support/VCSRevision.h"
    revision.parent.mkdir()
    revision.write_text('#define LLVM_REVISION "0729a74e66aeeb7a9839d80bfd64fc49b2e69f52"\n')
    assert llvm.commit == "0729a74e66aeeb7a9839d80bfd64fc49b2e69f52"


def test_the_digest_is_of_the_content_that_is_linked(llvm: LinkedLlvm, config: Config) -> None:
    before = llvm.digest(config)
    archive = llvm.folder / "lib/libLLVMCore.a"
    stat = archive.stat()
    archive.write_text("c0re")
    os.utime(archive, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert llvm.digest(config) != before, "one byte of one archive, of the same size and time"
    archive.write_text("core")
    assert llvm.digest(config) == before
    (llvm.folder / "include/mlir/IR/Builders.h").touch()
    (llvm.folder / "lib/cmake/llvm/LLVMConfig.cmake").touch()
    assert llvm.digest(config) == before, "times count for nothing"


def test_a_packaged_llvm_links_archives_alone(llvm: LinkedLlvm, config: Config) -> None:
    made = packaged_llvm.prepare(llvm, config)
    assert not made.is_shared
    assert made.missing_packages() == []
    targets = (made.folder / "lib/cmake/mlir/MLIRTargets.cmake").read_text()
    assert '"MLIRSupport;AllLLVMArchives"' in targets
    assert '"AllLLVMArchives"' in targets
    described = (made.folder / "lib/cmake/llvm/LLVMConfig.cmake").read_text()
    assert 'INTERFACE_LINK_LIBRARIES "LLVMSupport;LLVMCore"' in described
    assert "OFF" in (made.folder / "lib/cmake/mlir/MLIRConfig.cmake").read_text()
    assert (made.folder / "lib/libLLVMCore.a").resolve() == (llvm.folder / "lib/libLLVMCore.a").resolve()
    assert llvm.is_shared, "the installed one is left as it is"
    assert packaged_llvm.prepare(llvm, config).folder == made.folder


def test_headers_that_moved_are_led_on(llvm: LinkedLlvm, config: Config) -> None:
    made = packaged_llvm.prepare(llvm, config)
    header = made.folder / "include/llvm/Passes/PassPlugin.h"
    assert header.read_text() == '#pragma once\n#include "llvm/Plugins/PassPlugin.h"\n'
    assert made.has_header("llvm/Passes/PassBuilder.h")
    assert made.has_header("mlir/IR/Builders.h")
    assert not (llvm.folder / "include/llvm/Passes/PassPlugin.h").exists()


def test_without_archives_there_is_nothing_to_link(llvm: LinkedLlvm, config: Config) -> None:
    for archive in llvm.archives():
        archive.unlink()
    with pytest.raises(ToolchainError, match="has no archives"):
        packaged_llvm.prepare(llvm, config)
