"""What a tool can read and be asked for, found out with texts of a few lines and kept by its digest."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace

from irdiff.codegen.calls import LlvmCall
from irdiff.codegen.outcomes import unknown_intrinsics
from irdiff.codegen.running import Runner
from irdiff.codegen.spellings import SPELLINGS
from irdiff.resolve.tools.tool import Tool, ToolKind
from irdiff.store import Store, key_of

_EMPTY = "define void @f() {\n  ret void\n}\n"
_NEWEST_PTX, _OLDEST_PTX = 99, 60
_NOT_RECOGNIZED = b"is not a recognized feature"
FLAGS = ("nvptx-short-ptr", "nvptx-mad-wide-opt", "nvptx-sched4reg")
_NEWEST_ISA = re.compile(rb"current version is '(\d+)\.(\d+)'")
_NVIDIA = LlvmCall(
    triple="nvptx64-nvidia-cuda",
    processor="sm_80",
    ptx=None,
    features=(),
    flags=(),
    fuses=True,
    header=("7.0", "sm_80"),
)
_AMD = replace(_NVIDIA, triple="amdgcn-amd-amdhsa", processor="gfx906", header=None)


@dataclass(frozen=True, kw_only=True)
class Abilities:
    unreadable: tuple[str, ...]
    """Names of the spellings that it does not read."""
    newest_ptx: int | None
    """As 90 for 9.0: that an LLVM can write, or a ptxas read."""
    flags: tuple[str, ...]
    """Of the switches that Triton sets in LLVM, those that it has."""


def of_tool(tool: Tool, runner: Runner, store: Store) -> Abilities:
    key = key_of("abilities/1", tool.digest, [(row.name, row.probe) for row in SPELLINGS], FLAGS)
    known = store.get_record("abilities", key)
    if known is None:
        probe = _Probe(tool=tool, runner=runner, store=store)
        known = asdict(probe.ptxas() if tool.kind is ToolKind.PTXAS else probe.llvm())
        store.put_record("abilities", key, known)
    return Abilities(
        unreadable=tuple(known["unreadable"]), newest_ptx=known["newest_ptx"], flags=tuple(known["flags"])
    )


@dataclass(frozen=True, kw_only=True)
class _Probe:
    tool: Tool
    runner: Runner
    store: Store

    def llvm(self) -> Abilities:
        unreadable = [spelling.name for spelling in SPELLINGS if not self._reads(spelling.probe)]
        if "cuda" not in self.tool.backends:
            return Abilities(unreadable=tuple(unreadable), newest_ptx=None, flags=())
        flags = [flag for flag in FLAGS if self._takes(_EMPTY, replace(_NVIDIA, flags=(flag,)))]
        tried = range(_NEWEST_PTX, _OLDEST_PTX, -1)
        newest = next((ptx for ptx in tried if self._takes(_EMPTY, replace(_NVIDIA, ptx=ptx))), None)
        return Abilities(unreadable=tuple(unreadable), newest_ptx=newest, flags=tuple(flags))

    def _reads(self, probe: str) -> bool:
        amd = "amd" in probe
        if ("hip" if amd else "cuda") not in self.tool.backends:
            return True  # no text that has it will be given to this tool
        return self._takes(probe, _AMD if amd else _NVIDIA)

    def _takes(self, text: str, call: LlvmCall) -> bool:
        named = re.search(r'target triple = "(\S+)"', text)
        with self.store.scratch() as folder:
            (folder / "kernel.ll").write_text(text)
            asked = replace(call, triple=named[1]) if named else call
            ended = self.runner.translate(self.tool, asked, folder)
            made = folder / "kernel.s"
            known = made.exists() and not unknown_intrinsics(made.read_text(), "")
            return ended.code == 0 and known and _NOT_RECOGNIZED not in ended.stderr

    def ptxas(self) -> Abilities:
        """The newest ISA is what it says of a text of one that there is not."""
        with self.store.scratch() as folder:
            (folder / "kernel.ptx").write_text(".version 99.9\n.target sm_80\n.address_size 64\n")
            said = self.runner.run_ptxas(self.tool.programs["ptxas"], ("--gpu-name=sm_80",), folder)
        found = _NEWEST_ISA.search(said.stderr + said.stdout)
        return Abilities(unreadable=(), newest_ptx=int(found[1] + found[2]) if found else None, flags=())
