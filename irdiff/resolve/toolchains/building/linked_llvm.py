"""The LLVM that a build links: what it is, known by the content of its libraries.

Its version says little: a distribution rebuilds one version with other patches. So the digest is over the
content of all archives and shared libraries of LLVM, MLIR and lld, each remembered by inode, size and time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from irdiff.config import Config
from irdiff.resolve.toolchains import identity
from irdiff.store import key_of

_DESCRIPTION = Path("lib", "cmake", "llvm", "LLVMConfig.cmake")
_LIBRARY = re.compile(r"lib(?:LLVM|MLIR|lld|Polly)\w*(?:-\d+)?(?:\.a|\.so(?:\.[\d.]+)?)")
_PACKAGE = {"llvm": "LLVMConfig.cmake", "mlir": "MLIRConfig.cmake", "lld": "LLDConfig.cmake"}
_REVISION = Path("include", "llvm", "Support", "VCSRevision.h")
PROGRAMS = ("FileCheck", "mlir-tblgen")
"""Programs of LLVM that a build of Triton runs or copies."""


@dataclass(frozen=True, kw_only=True)
class LinkedLlvm:
    """An installed LLVM."""

    folder: Path

    @property
    def is_there(self) -> bool:
        return (self.folder / _DESCRIPTION).is_file()

    @cached_property
    def _description(self) -> str:
        try:
            return (self.folder / _DESCRIPTION).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def setting(self, name: str) -> str:
        """The value of a variable in LLVM's CMake description; empty where it has none."""
        found = re.search(rf"^set\({name} \"?([^)\"]*)\"?\)", self._description, re.MULTILINE)
        return found[1].strip() if found else ""

    @property
    def version(self) -> str:
        return self.setting("LLVM_PACKAGE_VERSION") or "unknown"

    @property
    def major(self) -> int | None:
        first = self.version.partition(".")[0]
        return int(first) if first.isdigit() else None

    @property
    def commit(self) -> str | None:
        """The commit that it was built from, where it says so."""
        try:
            text = (self.folder / _REVISION).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        found = re.search(r'#define LLVM_REVISION "([0-9a-f]{8,40})"', text)
        return found[1] if found else None

    @property
    def is_shared(self) -> bool:
        """Whether what links MLIR gets one shared libLLVM instead of archives."""
        return self.setting("LLVM_LINK_LLVM_DYLIB").upper() in ("ON", "TRUE", "1")

    def missing_packages(self) -> list[str]:
        """Those of llvm, mlir and lld whose CMake description is not there."""
        folder = self.folder / "lib" / "cmake"
        return [name for name, file in _PACKAGE.items() if not (folder / name / file).is_file()]

    def missing_programs(self) -> list[str]:
        return [name for name in PROGRAMS if not (self.folder / "bin" / name).is_file()]

    def missing_targets(self) -> list[str]:
        """Those of the GPU backends of Triton that it was built without."""
        built = self.setting("LLVM_TARGETS_TO_BUILD").split(";")
        return [name for name in ("NVPTX", "AMDGPU") if name not in built]

    def libraries(self) -> list[Path]:
        folder = self.folder / "lib"
        return sorted(path for path in folder.glob("lib*") if _LIBRARY.fullmatch(path.name))

    def archives(self) -> list[Path]:
        return [path for path in self.libraries() if path.suffix == ".a"]

    def has_header(self, name: str) -> bool:
        return (self.folder / "include" / name).is_file()

    def digest(self, config: Config) -> str:
        """SHA-256 over what is linked: the content of the libraries, and how CMake links them."""
        digests = identity.hash_files([path.resolve() for path in self.libraries()], config)
        rows = sorted((path.name, digests[path.resolve()]) for path in self.libraries())
        described = sorted((self.folder / "lib" / "cmake").glob("*/*.cmake"))
        texts = [(path.name, path.read_text(encoding="utf-8", errors="replace")) for path in described]
        return key_of("llvm/2", rows, texts)

    def title(self) -> str:
        """`LLVM 22.1.8 (0729a74e66ae), static`."""
        commit = f" ({self.commit[:12]})" if self.commit else ""
        return f"LLVM {self.version}{commit}, {'shared' if self.is_shared else 'static'}"


def installed(prefix: Path = Path("/usr/lib")) -> list[LinkedLlvm]:
    """LLVMs with MLIR where distributions put them, the newest first."""
    found = [LinkedLlvm(folder=path) for path in prefix.glob("llvm-*") if path.is_dir()]
    whole = [one for one in found if one.is_there and not one.missing_packages()]
    return sorted(whole, key=lambda one: one.major or 0, reverse=True)
