"""What layers of language models and of vision models are made of: norms, reductions, products, attention, caches, experts."""

import torch
import torch.nn.functional as F
from _models import MODELS
from _references import rotated, swiglu_experts
from _tensors import normal
from flaggems._alone import FLOATS, call, compared, flag_gems
from irdiff_corpus import checked, launch, trained


def rows(hidden, dtype):
    def rms_backward(flow, x, scale, _, weight):
        scaled, wanted, scale = x * scale[:, None], flow * weight, scale[:, None]
        return (wanted - scaled * (scaled * wanted).mean(-1, keepdim=True)) * scale, (flow * scaled).sum(0)

    def added(x, residual, _, weight):
        return F.rms_norm(x + residual, shape, weight, 1e-5), x + residual

    def backward(*inputs):
        mean, of_deviation = (value[:, None] for value in inputs[3:5])
        return torch.ops.aten.native_layer_norm_backward(*inputs[:3], mean, of_deviation, *inputs[5:])

    x, residual, weight = (normal(*shape, dtype=dtype) for shape in ((512, hidden), (512, hidden), (hidden,)))
    mean, shape = normal(512, dtype=torch.float32), [hidden]
    checked(lambda *inputs: flag_gems.rms_norm_forward(*inputs)[0], lambda *inputs: F.rms_norm(*inputs, 1e-5), x, shape, weight)
    checked(flag_gems.rms_norm_backward, rms_backward, residual, x, mean, shape, weight)
    checked(flag_gems.fused_add_rms_norm, added, x, residual, shape, weight)
    checked(lambda *inputs: flag_gems.layer_norm(*inputs)[0], F.layer_norm, x, shape, weight, weight)
    checked(flag_gems.layer_norm_backward, backward, residual, x, shape, mean, mean, weight, weight, [True] * 3)
    checked(flag_gems.skip_layer_norm, lambda x, y, *rest: F.layer_norm(x + y, *rest), x, residual, shape, weight, weight)


def softmax(width, dtype):
    def backward(flow, y, axis, _):
        return y * (flow - (flow * y).sum(axis, keepdim=True))

    def log_backward(flow, y, axis, _):
        return flow - y.exp() * flow.sum(axis, keepdim=True)

    x = normal(512, width, dtype=dtype)
    for axis in (-1, 0):
        compared("softmax", x, axis, False)
        compared("log_softmax", x, axis, False)
        checked(flag_gems.softmax_backward, backward, x, x, axis, dtype)
        checked(flag_gems.log_softmax_backward, log_backward, x, x, axis, dtype)


def loss(vocabulary, dtype):
    trained(flag_gems.cross_entropy_loss, F.cross_entropy, normal(64, vocabulary, dtype=dtype), torch.randint(vocabulary, (64,)))


def product(m, n, k, dtype):
    a, b, bias = (normal(*shape, dtype=dtype) for shape in ((m, k), (k, n), (n,)))
    compared("mm", a, b)
    compared("mm", a, normal(n, k, dtype=dtype).t())
    compared("addmm", bias, a, b)
    compared("bmm", a[None], b[None])
    compared("mv", a, b[:, 0].contiguous())


def attention(width, causal, dtype):
    def heads_first(attend):
        return lambda q, k, v: attend(q, k, v, is_causal=causal, enable_gqa=True)

    def tokens_first(q, k, v):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return heads_first(F.scaled_dot_product_attention)(q, k, v).transpose(1, 2)

    def flash(q, k, v):
        return flag_gems.flash_attention_forward(q, k, v, None, None, 1024, 1024, 0.0, causal, False)[0]

    q, k, v = (normal(1, count, 1024, width, dtype=dtype) for count in (8, 2, 2))
    trained(*map(heads_first, (flag_gems.scaled_dot_product_attention, F.scaled_dot_product_attention)), q, k, v)
    checked(flash, tokens_first, *(x.transpose(1, 2).contiguous() for x in (q, k, v)))


def rotary(width, interleaved, dtype):
    def reference(q, k, *tables_and_positions):
        *tables, positions, interleaved = tables_and_positions
        tables = [(table[:512] if positions is None else table[positions[0]])[None, :, None] for table in tables]
        if not interleaved:
            return tuple(rotated(x, *tables) for x in (q, k))
        turned = (rotated(x.unflatten(-1, (-1, 2)).mT.flatten(-2), *tables) for x in (q, k))
        return tuple(x.unflatten(-1, (2, -1)).mT.flatten(-2) for x in turned)

    q, k = (normal(1, 512, count, width, dtype=dtype) for count in (32, 8))
    table = normal(4096, width // 2, dtype=dtype)
    for positions in (None, torch.randint(4096, (1, 512))):
        checked(flag_gems.apply_rotary_pos_emb, reference, q, k, table, table, positions, interleaved)


def cached(width, dtype):
    def written(write):
        def function(rows, keys, values, slots):
            write(rows, rows, keys, values, slots, "auto", one, one)
            return keys, values

        return function

    def reference(rows, keys, values, slots):
        place = slots // 16, slots % 16
        keys = keys.permute(0, 3, 1, 2, 4).index_put(place, rows.unflatten(-1, (-1, 8))).permute(0, 2, 3, 1, 4)
        return keys, values.permute(0, 3, 1, 2).index_put(place, rows).permute(0, 2, 3, 1)

    def flat(rows, keys, values, slots):
        return tuple(cache.index_put((slots // 16, slots % 16), rows) for cache in (keys, values))

    def slots():
        return torch.randperm(512)[:64]

    rows, one = normal(64, 8, width, dtype=dtype), torch.ones(1)
    cache = normal(32, 8, width // 8, 16, 8, dtype=dtype), normal(32, 8, width, 16, dtype=dtype)
    checked(written(flag_gems.reshape_and_cache), reference, rows, *cache, slots())
    cache = (normal(32, 16, 8, width, dtype=dtype) for _ in range(2))
    checked(written(flag_gems.reshape_and_cache_flash), flat, rows, *cache, slots())


def experts(count, k, tokens, hidden, intermediate, dtype):
    def route(weights, ids, places, logits):
        flag_gems.topk_softmax(weights, ids, places, logits)
        return weights, ids

    def reference(weights, _, __, logits):
        return logits.softmax(-1).topk(weights.shape[-1])

    def mixed(x, up, down, weights, ids):
        return swiglu_experts(x, up, down, ids, weights)

    weights, ids = torch.zeros(tokens, k), torch.zeros(tokens, k, dtype=torch.int32)
    checked(route, reference, weights, ids, torch.zeros_like(ids), normal(tokens, count, dtype=torch.float32))
    sizes = (count, 2 * intermediate, hidden), (count, hidden, intermediate)
    tables = (normal(*size, dtype=dtype, scale=size[-1] ** -0.5) for size in sizes)
    error = 0.004 if dtype == torch.float32 else None  # two products of tf32
    checked(flag_gems.outplace_fused_experts, mixed, normal(tokens, hidden, dtype=dtype), *tables, weights, ids, error=error)


def indexed(width, dtype):
    def of_rows():
        return (torch.arange(1024)[:, None] + 61 * torch.arange(16)) % width

    table, index = normal(1024, width, dtype=dtype), torch.randperm(1024)[:256]
    compared("embedding", table, index)
    compared("index_select", table, 0, index)
    compared("index_add", table, 0, index, table[:256])
    compared("gather", table, 1, of_rows())
    compared("scatter", table, 1, of_rows(), table[:, :16].contiguous())
    compared("index", table, [index])
    compared("index_put", table, [index], table[:256])
    compared("masked_fill", table, table > 0, 0.0)
    compared("where_self", table > 0, table, table)
    for name in ("triu", "tril"):
        compared(name, table)
    compared("flip", table, [1])
    checked(lambda x: flag_gems.cat([x, x], 1), lambda x: torch.cat([x, x], 1), table)
    compared("repeat", table, (2, 2))
    compared("topk", table, 8)
    compared("sort", table)


def image(channels, size, dtype):
    x, weight = normal(2, channels, size, size, dtype=dtype), normal(channels, dtype=dtype)
    compared("conv2d", x, normal(channels, channels, 3, 3, dtype=dtype), None, [1, 1], [1, 1])
    compared("group_norm", x, weight, weight, 2, channels, size * size, 32, 1e-5)
    compared("batch_norm", x, weight, weight, weight.clone(), weight.clone(), True, 0.1, 1e-5)
    compared("max_pool2d_with_indices", x, [2, 2])
    compared("avg_pool2d", x, [2, 2])
    compared("upsample_nearest2d", x, [2 * size, 2 * size])
    compared("_upsample_bicubic2d_aa", x, [2 * size, 2 * size], False)
    compared("pad", x, [1, 1, 1, 1])


OVER_ONE = "argmax argmin prod_dim max_dim min_dim all_dim any_dim cumsum cummax cummin".split()
OVER_SOME = "amax sum_dim mean_dim var_mean std all_dims any_dims".split()
SHAPES = {
    rows: [(hidden,) for hidden in sorted({model.hidden for model in MODELS.values()})],
    softmax: [(width,) for width in (128, 1024, 4096, 32768)],
    loss: [(vocabulary,) for vocabulary in (32768, 128256, 262208)],
    product: [(16, 6144, 4096), (1024, 4096, 14336), (1024, 7168, 2048), (1, 32064, 4096), (512, 4000, 4096)],
    attention: [(128, causal) for causal in (False, True)],  # for 64 the first config of its tuner is refused by the kernel
    rotary: [(width, way) for width in (64, 128, 256) for way in (False, True)],
    cached: [(64,), (128,), (256,)],
    experts: [(8, 2, 64, 1024, 1792), (8, 2, 1024, 1024, 1792), (32, 8, 64, 2048, 768)],
    indexed: [(4096,), (1000,)],
    image: [(64, 56), (320, 64)],
}
LAUNCHES = {
    f"{function.__name__}-{'-'.join(map(str, shape))}-{word}": launch(function, *shape, dtype, configs=1)
    for function, shapes in SHAPES.items()
    for shape in shapes
    for word, dtype in FLOATS.items()
    if function is not attention or word != "fp32"
} | {
    f"{name}{suffix}-{word}": launch(call, name, dtype, (512, 4096), axis if name in OVER_ONE else [axis], configs=1)
    for name in OVER_ONE + OVER_SOME
    for suffix, axis in [("", -1), ("-columns", 0)]
    for word, dtype in FLOATS.items()
}
