"""What Triton alone makes of the kernels: for each, its machine code and what its launcher reads, or how it
failed. `python by_hand.py BACKEND ARCH WARP_SIZE OPTIONS_AS_JSON` prints {kernel: [hex of the binary, metadata]}.
"""

import json
import sys

import kernels
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

ALIGNED = [["tt.divisibility", 16]]
LAUNCHER = "num_warps num_ctas shared launch_pdl launch_cooperative_grid global_scratch_size profile_scratch_size"


def sources():
    yield ASTSource(
        fn=kernels.polynomial,
        signature={"x": "*fp32", "o": "*fp32", "n": "i32", "STEPS": "constexpr", "BLOCK": "constexpr"},
        constexprs={(3,): 8, (4,): 1024},
        attrs={(0,): ALIGNED, (1,): ALIGNED, (2,): ALIGNED},
    )
    yield ASTSource(
        fn=kernels.product,
        signature={"a": "*fp16", "b": "*fp16", "c": "*fp32", "k": "i32", "BLOCK": "constexpr"},
        constexprs={(4,): 64},
        attrs={(0,): ALIGNED, (1,): ALIGNED, (2,): ALIGNED, (3,): ALIGNED},
    )


def made(source, target, options):
    try:
        kernel = triton.compile(source, target=target, options=options)
    except Exception as error:
        return ["", type(error).__name__]
    binary = kernel.asm["cubin" if target.backend == "cuda" else "hsaco"]
    return [binary.hex(), {name: getattr(kernel.metadata, name, None) for name in LAUNCHER.split()}]


def main(backend, arch, warp_size, options):
    target = GPUTarget(backend, int(arch) if arch.isdigit() else arch, int(warp_size))
    compiler = triton.compiler.make_backend(target)
    known = {name for name in vars(compiler.parse_options({}))}
    options = {name: value for name, value in json.loads(options).items() if name in known}
    print(json.dumps({source.fn.__name__: made(source, target, options) for source in sources()}))


main(*sys.argv[1:])
