"""Tensors that packs share."""

import torch


def is_captured():
    """On a CPU no kernel computes; on a GPU `corpus verify` runs them."""
    return torch.get_default_device().type == "cpu"


def normal(*shape, dtype=torch.bfloat16, scale=1.0):
    """Normal values; zeros where launches are captured."""
    if is_captured():
        return torch.zeros(shape, dtype=dtype)
    return (torch.randn(shape) * scale).to(dtype)


def positive(*shape, dtype=torch.float32):
    """Scales around one."""
    return normal(*shape, dtype=dtype, scale=0.1).exp()


def integers(low, high, *shape, dtype=torch.int8):
    if is_captured():
        return torch.zeros(shape, dtype=dtype)
    return torch.randint(low, high, shape, dtype=dtype)


def numbers(*values):
    return torch.tensor(values, dtype=torch.int32)


def pages(sequences, count):
    """Tables of pages of a cache, not in their order."""
    return (torch.arange(sequences * count, dtype=torch.int32) * 5 % (sequences * count)).view(sequences, count)


def read(experts, rows):
    """How many experts a check has: those that its rows read. All, where launches are captured."""
    return experts if is_captured() else min(experts, rows)


def rows_by_expert(ids, count, block, size, blocks):
    """What a fused MoE kernel asks of the rows' experts: rows by expert, each one's filled up to whole blocks by a row
    that is not there, `size` in all; the expert of each block, `blocks` in all; how many rows that are.
    """
    order, of_expert = ids.argsort(stable=True), ids.bincount(minlength=count)
    filled = -(-of_expert // block)
    before = (filled * block).cumsum(0) - filled * block - (of_expert.cumsum(0) - of_expert)
    rows = torch.full((size,), len(ids), dtype=torch.int32)
    rows[torch.arange(len(ids)) + before[ids[order]]] = order.int()
    experts = torch.zeros(blocks, dtype=torch.int32)
    experts[: filled.sum()] = torch.arange(count, dtype=torch.int32).repeat_interleave(filled)
    return rows, experts, (filled.sum() * block).int().view(1)
