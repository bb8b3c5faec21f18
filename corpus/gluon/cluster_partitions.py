"""Gluon for clusters of two blocks, whose warps have work of their own: each partition sums rows that both blocks share."""

from irdiff_corpus import empty, launch, tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

SINCE = "3.9.0"


@gluon.jit
def row_sums_partition(
    x_ptr, out_ptr, first, ROWS: gl.constexpr, COLUMNS: gl.constexpr, WARPS: gl.constexpr
):
    """Half of the columns lie in each block, so a sum crosses the cluster."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [1, 32], [WARPS, 1], [1, 0], cga_layout=[[0, 1]])
    rows = first + gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))
    columns = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, layout))
    x = gl.load(x_ptr + rows[:, None] * COLUMNS + columns[None, :])
    gl.store(out_ptr + rows, gl.sum(x.to(gl.float32), axis=1))


@gluon.jit
def cluster_partitions_kernel(
    x_ptr, y_ptr, x_out_ptr, y_out_ptr,
    ROWS: gl.constexpr, COLUMNS: gl.constexpr, WORKERS: gl.constexpr, num_warps: gl.constexpr,
):
    first = gl.program_id(0) * ROWS
    gl.warp_specialize(
        [
            (row_sums_partition, (x_ptr, x_out_ptr, first, ROWS, COLUMNS, num_warps)),
            (row_sums_partition, (y_ptr, y_out_ptr, first, ROWS, COLUMNS, WORKERS)),
        ],
        [WORKERS],
    )


def sums(x, y, rows=16, workers=4, warps=4):
    x_out, y_out = empty((x.shape[0],), "fp32"), empty((y.shape[0],), "fp32")
    cluster_partitions_kernel[(x.shape[0] // rows,)](
        x, y, x_out, y_out, ROWS=rows, COLUMNS=x.shape[1], WORKERS=workers, num_warps=warps, num_ctas=2
    )
    return x_out, y_out


def reference(x, y, **_):
    return x.double().sum(1), y.double().sum(1)


def row(dtype, lines, columns, **facts):
    return launch(
        sums, tensor((lines, columns), dtype), tensor((lines, columns), dtype), targets=("sm_90", "sm_100"),
        flops=2 * lines * columns, min_bytes=2 * lines * columns * (4 if dtype == "fp32" else 2),
        reference=reference, rtol=1e-2, atol=1e-1, **facts,
    )


LAUNCHES = {
    "fp16-256": row("fp16", 4096, 256),
    "bf16-1024-8warps": row("bf16", 4096, 1024, rows=8, workers=4, warps=8),
    "fp32-512": row("fp32", 2048, 512, rows=32),
}
