"""Compile kernels of `kernels.py` for one target with the Triton of this interpreter.

    PYTHONHASHSEED=0 setarch -R PYTHON compile_one.py OUT TARGET [KERNEL ...]

Writes OUT/KERNEL/TARGET/STAGE. Exits 0 when at least one kernel compiled.
"""

import os
import pathlib
import sys
import tempfile
import traceback

STAGES = ("ttir", "ttgir", "glir", "source", "llir", "ptx", "cubin", "amdgcn", "hsaco")


def main(out, target_name, names):
    os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp())
    import kernels
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    if target_name.startswith("sm_"):
        target = GPUTarget("cuda", int(target_name[3:]), 32)
    else:
        target = GPUTarget("hip", target_name, 64)
    table = kernels.entries(target.backend, target.arch)
    done = 0
    for name in names or table:
        if name not in table:
            continue
        entry = table[name]
        fn = entry["fn"]
        signature = dict(entry["signature"])
        signature.update({key: "constexpr" for key in entry["constexprs"]})
        order = {p: i for i, p in enumerate(fn.arg_names)}
        attrs = {
            (order[p],): [["tt.divisibility", 16]]
            for p, kind in signature.items()
            if kind.startswith("*") or p in ("k", "stride")
        }
        constexprs = {(order[key],): value for key, value in entry["constexprs"].items()}
        signature = {p: signature[p] for p in fn.arg_names}
        source_class = ASTSource
        if name.startswith("gluon"):
            from triton.experimental.gluon._runtime import GluonASTSource as source_class
        try:
            source = source_class(fn, signature, constexprs, attrs)
            compiled = compile(source, target=target, options=entry["options"])
        except BaseException as error:
            print(f"{name}@{target_name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
            if os.environ.get("SHOW_TRACEBACK"):
                traceback.print_exc()
            continue
        folder = pathlib.Path(out) / name / target_name
        folder.mkdir(parents=True, exist_ok=True)
        for stage in STAGES:
            content = compiled.asm.get(stage)
            if content is not None:
                content = content if isinstance(content, bytes) else str(content).encode()
                (folder / stage).write_bytes(content)
        done += 1
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
