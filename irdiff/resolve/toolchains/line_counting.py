"""Builds a compiler that counts which of its lines run, only in the units of an edit.

A launcher before the compiler adds clang's counters to the listed units and passes all others on to the
build's own launcher. Before the linker it adds clang's runtime and three functions by which a worker marks,
resets and writes the counters (`worker/serve/operations.py`). Units that only include an edited header are
listed too: the linker keeps one copy of an inline function, and it must be one that counts.

Such a build has a key of its own and is never a side of a comparison. Paths in its profiles begin with
`ROOT`.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from irdiff import process
from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains.cxx_compiler import CxxCompiler, cmake_arguments
from irdiff.store import key_of

ROOT = "/source"
TOOLS = ("llvm-profdata", "llvm-cov")
_TIMEOUT_S = 60.0

_FUNCTIONS = """\
#include <stdlib.h>
#include <string.h>
#define EXPORTED __attribute__((visibility("default")))
int __llvm_profile_runtime; /* nothing is written when the process ends */
char *__llvm_profile_begin_counters(void);
char *__llvm_profile_end_counters(void);
void __llvm_profile_set_filename(const char *);
int __llvm_profile_write_file(void);
static char *kept;
static size_t size(void) {
  return (size_t)(__llvm_profile_end_counters() - __llvm_profile_begin_counters());
}
EXPORTED void irdiff_coverage_mark(void) {
  kept = (char *)realloc(kept, size() + 1);
  if (kept) memcpy(kept, __llvm_profile_begin_counters(), size());
}
EXPORTED void irdiff_coverage_begin(const char *path) {
  if (kept) memcpy(__llvm_profile_begin_counters(), kept, size());
  __llvm_profile_set_filename(path);
}
EXPORTED int irdiff_coverage_end(void) { return __llvm_profile_write_file(); }
"""

_LAUNCHER = """\
#!/bin/sh
# Before the compiler and the linker: counts the lines of the listed units, and links what reads the counters.
here=${0%%/*}
root=%(root)s
real=%(real)s
compiled= before=
for word do
  [ "$before" = -c ] && compiled=$word
  before=$word
done
if [ -z "$compiled" ]; then
  for word do [ "$word" = -c ] && exec %(next)s "$@"; done
  exec "$@" "$here/functions.o" -fprofile-instr-generate
fi
unit=${compiled#"$root"/}
unit=${unit#"$real"/}
grep -qxF -- "$unit" "$here/units" || exec %(next)s "$@"
exec "$@" -fprofile-instr-generate -fcoverage-mapping \\
  "-fcoverage-prefix-map=$root=%(mapped)s" "-fcoverage-prefix-map=$real=%(mapped)s"
"""


Units = tuple[str, ...]
"""Units of compilation whose lines are counted, by their path in the checkout; if empty, nothing is
counted.
"""


def digest(units: Units) -> str:
    return key_of("line-counting/1", units, _FUNCTIONS, _LAUNCHER)


def require(run: CxxCompiler) -> Path:
    """Returns the folder of clang's tools for profiles. Raises ToolchainError if the compiler cannot
    count.
    """
    if not run.is_clang or run.path is None:
        raise ToolchainError(
            f"lines are counted by clang, and this build runs {run.version}",
            hint="TRITON_BUILD_WITH_CLANG_LLD=true, with clang and lld on PATH",
        )
    folder = run.path.resolve().parent
    for name in TOOLS:
        if not (folder / name).is_file():
            raise ToolchainError(
                f"{name} is not next to {run.path}", hint="install LLVM's tools of this clang"
            )
    return folder


def prepare(
    counted: Units, folder: Path, source: Path, run: CxxCompiler, environment: Mapping[str, str]
) -> dict[str, str]:
    """Writes the launcher into `folder` and links a library with it as a build would. Returns additional
    variables for the build's environment. Raises ToolchainError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    own = cmake_arguments(environment).get("CMAKE_CXX_COMPILER_LAUNCHER")
    following = own or shutil.which("ccache", path=environment.get("PATH")) or ""
    (folder / "units").write_text("".join(f"{unit}\n" for unit in counted), encoding="utf-8")
    (folder / "functions.c").write_text(_FUNCTIONS, encoding="utf-8")
    launcher, cxx = folder / "launcher", str(run.path)
    paths = {"root": shlex.quote(str(source.absolute())), "real": shlex.quote(str(source.resolve()))}
    launcher.write_text(_LAUNCHER % {**paths, "next": following, "mapped": ROOT}, encoding="utf-8")
    launcher.chmod(0o755)
    try:
        _run([cxx, "-x", "c", "-O1", "-fPIC", "-c", "functions.c", "-o", "functions.o"], folder, environment)
        _run([launcher, cxx, "-shared", "-o", "tried.so"], folder, environment)
    except process.CommandFailed as error:
        raise ToolchainError(
            f"{run.version} cannot link a library that counts its lines:\n{error.tail(4)}",
            hint="install clang's runtime for profiles (libclang-rt-dev, compiler-rt)",
        ) from error
    before = environment.get("TRITON_APPEND_CMAKE_ARGS", "")
    added = f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher} -DCMAKE_CXX_LINKER_LAUNCHER={launcher}"
    return {"TRITON_APPEND_CMAKE_ARGS": f"{before} {added}".strip()}


def _run(words: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> None:
    process.run(words, env=environment, cwd=folder, timeout_s=_TIMEOUT_S)
