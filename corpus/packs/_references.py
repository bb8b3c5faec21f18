"""What several packs' kernels should give, in PyTorch."""

import torch
import torch.nn.functional as F


def rotated(x, cos, sin):
    """Rotary embedding of the two halves of the last dimension; `cos` and `sin` of one half."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def sparsemax(x):
    """Of the last dimension: the nearest point of the simplex."""
    falling = x.sort(-1, descending=True).values
    sums = falling.cumsum(-1) - 1
    count = (falling * torch.arange(1, x.shape[-1] + 1) > sums).sum(-1, keepdim=True)
    return (x - sums.gather(-1, count - 1) / count).clamp_min(0)


def swiglu_experts(x, up, down, chosen, weights):
    """Experts of SwiGLU: `up` has (expert, gate and up, hidden), `down` (expert, hidden, intermediate)."""
    result = torch.zeros_like(x)
    for expert in range(len(up)):
        token, place = (chosen == expert).nonzero(as_tuple=True)
        gate, value = (x[token] @ up[expert].T).chunk(2, -1)
        output = (F.silu(gate) * value) @ down[expert].T
        result = result.index_add(0, token, output * weights[token, place, None])
    return result


def widened(x, scales, rows, columns):
    """Of quantized matrices, whose blocks of this size have a scale each."""
    return x.float() * scales.repeat_interleave(rows, -2).repeat_interleave(columns, -1)

def scores(q, k, scale=None, causal=True, window=None, softcap=0.0):
    """Of (batch, heads, tokens, width), of which `k` may have fewer heads; queries are the last tokens.

    `window`: how far back a token sees.
    """
    found = (q.unflatten(1, (k.shape[1], -1)).flatten(2, 3) @ k.mT).view(*q.shape[:3], -1)
    found = found * (q.shape[-1] ** -0.5 if scale is None else scale)
    found = softcap * torch.tanh(found / softcap) if softcap else found
    queries, keys = found.shape[-2:]
    back = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    hidden = (back < 0) & causal | (back > (keys if window is None else window))
    return found.masked_fill(hidden, -torch.inf)


def attention(q, k, v, sinks=None, **options):
    found = scores(q, k, **options)
    if sinks is not None:  # one more score of each head, without a value
        found = torch.cat([found, sinks[:, None, None].expand(*found.shape[:-1], 1)], -1)
    shares = found.softmax(-1)[..., : k.shape[2]].reshape(len(q), v.shape[1], -1, k.shape[2])
    return (shares @ v).view(*q.shape[:3], -1)


def pages_of(cache, table, scales=None):
    """(batch, heads, tokens, width) of a cache (pages, tokens of one, heads, width)."""
    cache = cache if scales is None else cache * scales[..., None]
    return cache[table].flatten(1, 2).transpose(1, 2)


def mamba_scan(x, dt, a, b, c, d):
    """Mamba 2 over (tokens, heads, width); `b`, `c` of (tokens, groups, state). The result and the last state."""
    b, c = (part.repeat_interleave(x.shape[1] // part.shape[1], 1) for part in (b, c))
    decay = (dt * a).cumsum(0)
    later = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)[..., None]
    shares = torch.einsum("thn,shn->tsh", c, b) * (decay[:, None] - decay).masked_fill(later, -torch.inf).exp() * dt
    state = torch.einsum("shn,shp->hpn", b, x * (dt * (decay[-1] - decay).exp())[..., None])
    return torch.einsum("tsh,shp->thp", shares, x) + d[:, None] * x, state


def mamba_step(state, x, dt, a, b, c, d):
    """One token of each sequence: (batch, heads, …)."""
    b, c = (part.repeat_interleave(x.shape[1] // part.shape[1], 1) for part in (b, c))
    state = state * (dt * a).exp()[..., None, None] + (dt[..., None] * x)[..., None] * b[:, :, None]
    return torch.einsum("bhpn,bhn->bhp", state, c) + d[:, None] * x, state


def delta_rule(q, k, v, gate, beta, state):
    """Gated, over (batch, tokens, heads, width), with keys of length 1; `gate`: logarithms for a head (…, 1), or for
    each element of a key. The state is (batch, heads, width of values, width of keys).
    """
    q, k = (F.normalize(x, dim=-1).repeat_interleave(v.shape[2] // k.shape[2], 2) for x in (q, k))
    results = []
    for token in range(v.shape[1]):
        state = state * gate[:, token, :, None].exp()
        known = torch.einsum("bhvk,bhk->bhv", state, k[:, token])
        state = state + (beta[:, token, :, None] * (v[:, token] - known))[..., None] * k[:, token, :, None]
        results.append(torch.einsum("bhvk,bhk->bhv", state, q[:, token]) * k.shape[-1] ** -0.5)
    return torch.stack(results, 1), state
