"""`kernel.ll` to `kernel.s` by the LLVM of llvmlite, in a process with the standard library and llvmlite.

    python llvmlite_child.py TRIPLE PROCESSOR FEATURES OBJECT [FLAG ...]

OBJECT is the file that the object is written to, or empty.
"""

from __future__ import annotations

import sys
from pathlib import Path

import llvmlite.binding as llvm


def main(triple: str, processor: str, features: str, target: str, *flags: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for flag in flags:
        llvm.set_option("irdiff", f"--{flag}")
    module = llvm.parse_assembly(Path("kernel.ll").read_text())
    module.triple = triple
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor, features=features, opt=3, reloc="pic", codemodel="default"
    )
    module.data_layout = str(machine.target_data)
    module.verify()
    if target:
        Path(target).write_bytes(machine.emit_object(module.clone()))
    Path("kernel.s").write_text(machine.emit_assembly(module))


if __name__ == "__main__":
    main(*sys.argv[1:])
