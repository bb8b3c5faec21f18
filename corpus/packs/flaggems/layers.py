"""What layers of language models and of vision models are made of: norms, reductions, products, attention, caches, experts."""

import torch
from _models import MODELS
from flaggems._alone import FLOATS, call, flag_gems
from irdiff_corpus import launch


def zeros(*shape, dtype):
    return torch.zeros(shape, dtype=dtype)


def numbers(*shape, dtype=torch.int64):
    return torch.zeros(shape, dtype=dtype)


def rows(hidden, dtype):
    x, residual, weight, statistics = (zeros(*shape, dtype=dtype) for shape in ((512, hidden), (512, hidden), (hidden,), (512,)))
    mean = statistics.float()
    flag_gems.rms_norm_forward(x, [hidden], weight)
    flag_gems.rms_norm_backward(residual, x, mean, [hidden], weight)
    flag_gems.fused_add_rms_norm(x, residual, [hidden], weight)
    flag_gems.layer_norm(x, [hidden], weight, weight)
    flag_gems.layer_norm_backward(residual, x, [hidden], mean, mean, weight, weight, [True] * 3)
    flag_gems.skip_layer_norm(x, residual, [hidden], weight, weight)


def softmax(width, dtype):
    x = zeros(512, width, dtype=dtype)
    for axis in (-1, 0):
        flag_gems.softmax(x, axis)
        flag_gems.log_softmax(x, axis)
        flag_gems.softmax_backward(x, x, axis, dtype)
        flag_gems.log_softmax_backward(x, x, axis, dtype)


def loss(vocabulary, dtype):
    logits = zeros(64, vocabulary, dtype=dtype).requires_grad_()
    flag_gems.cross_entropy_loss(logits, numbers(64)).backward()


def product(m, n, k, dtype):
    a, b, bias = (zeros(*shape, dtype=dtype) for shape in ((m, k), (k, n), (n,)))
    flag_gems.mm(a, b)
    flag_gems.mm(a, zeros(n, k, dtype=dtype).t())
    flag_gems.addmm(bias, a, b)
    flag_gems.bmm(a[None], b[None])
    flag_gems.mv(a, b[:, 0].contiguous())


def attention(width, causal, dtype):
    q, k, v = (zeros(1, count, 1024, width, dtype=dtype).requires_grad_() for count in (8, 2, 2))
    out = flag_gems.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    out.backward(torch.zeros_like(out))
    q, k, v = (x.detach().transpose(1, 2).contiguous() for x in (q, k, v))
    flag_gems.flash_attention_forward(q, k, v, None, None, 1024, 1024, 0.0, causal, False)


def rotary(width, interleaved, dtype):
    q, k = (zeros(1, 512, count, width, dtype=dtype) for count in (32, 8))
    table = zeros(4096, width // 2, dtype=dtype)
    for positions in (None, numbers(1, 512)):
        flag_gems.apply_rotary_pos_emb(q, k, table, table, positions, interleaved)


def cached(width, dtype):
    keys, one = zeros(64, 8, width, dtype=dtype), torch.ones(1)
    cache = zeros(32, 8, width // 8, 16, 8, dtype=dtype), zeros(32, 8, width, 16, dtype=dtype)
    flag_gems.reshape_and_cache(keys, keys, *cache, numbers(64), "auto", one, one)
    flat = [zeros(32, 16, 8, width, dtype=dtype) for _ in range(2)]
    flag_gems.reshape_and_cache_flash(keys, keys, *flat, numbers(64), "auto", one, one)


def experts(count, k, tokens, hidden, intermediate, dtype):
    weights, ids = torch.zeros(tokens, k), numbers(tokens, k, dtype=torch.int32)
    flag_gems.topk_softmax(weights, ids, torch.zeros_like(ids), torch.zeros(tokens, count))
    sizes = (count, 2 * intermediate, hidden), (count, hidden, intermediate)
    flag_gems.outplace_fused_experts(zeros(tokens, hidden, dtype=dtype), *(zeros(*size, dtype=dtype) for size in sizes), weights, ids)


def indexed(width, dtype):
    table, index = zeros(1024, width, dtype=dtype), numbers(256)
    flag_gems.embedding(table, index)
    flag_gems.index_select(table, 0, index)
    flag_gems.index_add(table, 0, index, table[:256])
    flag_gems.gather(table, 1, numbers(1024, 16))
    flag_gems.scatter(table, 1, numbers(1024, 16), table[:, :16].contiguous())
    flag_gems.index(table, [index])
    flag_gems.index_put(table, [index], table[:256])
    flag_gems.masked_fill(table, table > 0, 0.0)
    flag_gems.where_self(table > 0, table, table)
    for name in ("triu", "tril"):
        getattr(flag_gems, name)(table)
    flag_gems.flip(table, [1])
    flag_gems.cat([table, table], 1)
    flag_gems.repeat(table, (2, 2))
    flag_gems.topk(table, 8)
    flag_gems.sort(table)


def image(channels, size, dtype):
    x, weight = zeros(2, channels, size, size, dtype=dtype), zeros(channels, dtype=dtype)
    kernel = zeros(channels, channels, 3, 3, dtype=dtype)
    flag_gems.conv2d(x, kernel, None, 1, 1)
    flag_gems.group_norm(x, weight, weight, 2, channels, size * size, 32)
    flag_gems.batch_norm(x, weight, weight, weight.clone(), weight.clone(), training=True)
    flag_gems.max_pool2d_with_indices(x, 2)
    flag_gems.avg_pool2d(x, 2)
    flag_gems.upsample_nearest2d(x, [2 * size, 2 * size])
    flag_gems._upsample_bicubic2d_aa(x, [2 * size, 2 * size])
    flag_gems.pad(x, [1, 1, 1, 1])


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
