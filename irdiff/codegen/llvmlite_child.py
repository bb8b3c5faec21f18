"""One text through the LLVM of llvmlite, in a process of its own: standard library and llvmlite only.

    python llvmlite_child.py REQUEST.json

The request names the input, the triple, processor, features and flags, and the outputs `assembly` and, where
it is wanted, `object`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import llvmlite.binding as llvm


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text())
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for flag in request["flags"]:
        llvm.set_option("irdiff", f"--{flag}")
    module = llvm.parse_assembly(Path(request["input"]).read_text())
    module.triple = request["triple"]
    machine = llvm.Target.from_triple(request["triple"]).create_target_machine(
        cpu=request["processor"], features=request["features"], opt=3, reloc="pic", codemodel="default"
    )
    module.data_layout = str(machine.target_data)
    module.verify()
    if request["object"]:
        copy = module.clone()
        Path(request["object"]).write_bytes(machine.emit_object(copy))
    Path(request["assembly"]).write_text(machine.emit_assembly(module))


if __name__ == "__main__":
    main()
