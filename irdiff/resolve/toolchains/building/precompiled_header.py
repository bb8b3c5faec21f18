"""A header of MLIR's common headers, compiled once for all files of all commits that are built alike.

Most of what a file of Triton costs is parsing the same headers of MLIR and LLVM. A launcher before the
compiler compiles them once for each set of flags, below the cache folder, and gives the result to every
file that is compiled with these flags. It changes no code: the headers are those of the LLVM that is linked,
each guards itself, and a file that includes none of them merely sees declarations that it does not name. A
file that does not compile so is compiled without. What a build is known by says whether it was used.

Only clang: its `-include-pch` names one file, which ccache counts by the digest beside it (`.sum`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from irdiff.config import Config
from irdiff.resolve.toolchains.building.compilers import Compilers, cmake_arguments
from irdiff.store import key_of

SWITCH = "IRDIFF_PRECOMPILED_HEADER"
"""The variable that turns it off: `0`."""
_STANDARD = """
algorithm cassert cstdint functional limits map memory numeric optional set string tuple unordered_map
utility variant vector
"""
_COMMON = """
llvm/ADT/APFloat.h llvm/ADT/APInt.h llvm/ADT/ArrayRef.h llvm/ADT/DenseMap.h llvm/ADT/DenseSet.h
llvm/ADT/MapVector.h llvm/ADT/STLExtras.h llvm/ADT/SetVector.h llvm/ADT/SmallVector.h
llvm/ADT/StringExtras.h llvm/ADT/StringSwitch.h llvm/ADT/TypeSwitch.h
llvm/Support/CommandLine.h llvm/Support/Debug.h llvm/Support/ErrorHandling.h
llvm/Support/FormatVariadic.h llvm/Support/LogicalResult.h llvm/Support/MathExtras.h
llvm/Support/raw_ostream.h
mlir/Analysis/DataFlow/DenseAnalysis.h mlir/Analysis/DataFlow/SparseAnalysis.h
mlir/Analysis/DataFlowFramework.h mlir/Analysis/Liveness.h mlir/Analysis/SliceAnalysis.h
mlir/Conversion/LLVMCommon/Pattern.h mlir/Conversion/LLVMCommon/TypeConverter.h
mlir/Dialect/Arith/IR/Arith.h mlir/Dialect/ControlFlow/IR/ControlFlowOps.h
mlir/Dialect/Func/IR/FuncOps.h mlir/Dialect/GPU/IR/GPUDialect.h mlir/Dialect/LLVMIR/LLVMDialect.h
mlir/Dialect/LLVMIR/NVVMDialect.h mlir/Dialect/LLVMIR/ROCDLDialect.h mlir/Dialect/Math/IR/Math.h
mlir/Dialect/SCF/IR/SCF.h mlir/Dialect/SCF/Transforms/Patterns.h mlir/Dialect/Tensor/IR/Tensor.h
mlir/Dialect/UB/IR/UBOps.h
mlir/IR/AsmState.h mlir/IR/Attributes.h mlir/IR/Builders.h mlir/IR/BuiltinAttributes.h
mlir/IR/BuiltinOps.h mlir/IR/BuiltinTypes.h mlir/IR/Diagnostics.h mlir/IR/DialectImplementation.h
mlir/IR/Dominance.h mlir/IR/IRMapping.h mlir/IR/ImplicitLocOpBuilder.h mlir/IR/MLIRContext.h
mlir/IR/Matchers.h mlir/IR/OpDefinition.h mlir/IR/OpImplementation.h mlir/IR/PatternMatch.h
mlir/IR/TypeUtilities.h mlir/IR/Verifier.h
mlir/Interfaces/CallInterfaces.h mlir/Interfaces/ControlFlowInterfaces.h
mlir/Interfaces/FunctionInterfaces.h mlir/Interfaces/InferTypeOpInterface.h
mlir/Interfaces/LoopLikeInterface.h mlir/Interfaces/SideEffectInterfaces.h
mlir/Pass/Pass.h mlir/Pass/PassManager.h mlir/Transforms/DialectConversion.h
mlir/Transforms/GreedyPatternRewriteDriver.h mlir/Transforms/Passes.h mlir/Transforms/RegionUtils.h
"""

_LAUNCHER = """\
#!/bin/sh
# Before the compiler: gives it the precompiled header of its flags, and makes that at first.
here=${0%/*}
flags= fits= macros=0 skip=
for word do
  if [ "$skip" ]; then skip=; continue; fi
  case $word in
    -isystem|-o|-MF|-MT|-MQ) skip=1 ;;
    -I*|-W*|-M*|-c|*.cpp) ;;
    -x|-fprofile*|-fcoverage*|-include*|*[[:space:]\\'\\"]*) exec ccache "$@" ;;
    -fno-rtti) fits=1; flags="$flags $word" ;;
    -D*) macros=$((macros + 1)); flags="$flags $word" ;;
    *) flags="$flags $word" ;;
  esac
done
# files with macros of their own are too few for a header of their own
[ "$fits" ] && [ "$macros" -le 1 ] || exec ccache "$@"
key=$(printf %s "$flags" | cksum)
header=$here/${key%% *}.pch
if [ ! -e "$header.sum" ] && [ ! -e "$header.failed" ]; then
  exec 9>"$header.lock"
  flock 9
  if [ ! -e "$header.sum" ] && [ ! -e "$header.failed" ]; then
    if $flags -I"$LLVM_SYSPATH/include" -fpch-instantiate-templates -x c++-header "$here/common.h" \\
        -o "$header.part" 2>"$header.log"
    then mv "$header.part" "$header" && echo "$here ${key%% *}" >"$header.sum"
    else : >"$header.failed"; rm -f "$header.part"
    fi
  fi
  exec 9>&-
fi
[ -e "$header.sum" ] || exec ccache "$@"
ccache "$@" -include-pch "$header" 2>/dev/null || exec ccache "$@"
"""


@dataclass(frozen=True, kw_only=True)
class PrecompiledHeader:
    """The folder of the launcher and of what it compiled."""

    folder: Path

    @property
    def launcher(self) -> Path:
        return self.folder / "launcher"

    def environment(self, caller: Mapping[str, str]) -> dict[str, str]:
        """What a build needs beside the caller's environment."""
        before = caller.get("TRITON_APPEND_CMAKE_ARGS", "")
        sloppiness = {part for part in caller.get("CCACHE_SLOPPINESS", "").split(",") if part}
        return {
            "TRITON_APPEND_CMAKE_ARGS": f"{before} -DCMAKE_CXX_COMPILER_LAUNCHER={self.launcher}".strip(),
            "CCACHE_SLOPPINESS": ",".join(sorted({*sloppiness, "pch_defines", "time_macros"})),
            "CCACHE_PCH_EXTSUM": "1",
        }


def identity(environment: Mapping[str, str], compilers: Compilers) -> str:
    """What a build is known by: `none` where it cannot be used or is turned off."""
    wanted = environment.get(SWITCH, "1") not in ("0", "off", "no")
    own = "CMAKE_CXX_COMPILER_LAUNCHER" in cmake_arguments(environment)
    can = compilers.cxx.is_clang and "LLVM_SYSPATH" in environment
    return key_of(_LAUNCHER, text())[:16] if wanted and can and not own else "none"


def text() -> str:
    standard = "".join(f"#include <{name}>\n" for name in _STANDARD.split())
    guarded = (f'#if __has_include("{name}")\n#include "{name}"\n#endif\n' for name in _COMMON.split())
    return standard + "".join(guarded)


def prepare(llvm_digest: str, compiler_version: str, config: Config) -> PrecompiledHeader:
    """The folder for one LLVM and one compiler, at a path that all commits share: ccache counts paths."""
    name = key_of("precompiled-header/1", llvm_digest, compiler_version, _LAUNCHER, text())[:16]
    found = PrecompiledHeader(folder=config.cache / "precompiled" / name)
    found.folder.mkdir(parents=True, exist_ok=True)
    for path, content in ((found.folder / "common.h", text()), (found.launcher, _LAUNCHER)):
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8")
    found.launcher.chmod(0o755)
    return found
