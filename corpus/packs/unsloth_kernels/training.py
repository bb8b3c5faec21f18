"""Norms, rotary embeddings, gated activations and the loss of fine-tuning, forward and backward."""

import torch
from _models import models
import unsloth_kernels._alone  # noqa: F401, I001
from irdiff_corpus import launch
from unsloth.kernels.cross_entropy_loss import fast_cross_entropy_loss
from unsloth.kernels.geglu import (
    geglu_approx_backward_kernel,
    geglu_approx_forward_kernel,
    geglu_exact_backward_kernel,
    geglu_exact_forward_kernel,
)
from unsloth.kernels.layernorm import fast_layernorm
from unsloth.kernels.rms_layernorm import fast_rms_layernorm
from unsloth.kernels.rope_embedding import fast_rope_embedding
from unsloth.kernels.swiglu import swiglu_DWf_DW_dfg_kernel, swiglu_fg_kernel

MODELS = models("llama3-8b", "llama3-70b", "qwen3-4b", "mistral-7b", "gemma3-4b")


def zeros(*shape, dtype):
    return torch.zeros(shape, dtype=dtype, requires_grad=True)


def backward(output):
    output.backward(torch.zeros_like(output))


def norms(model, tokens, dtype):
    hidden = MODELS[model].hidden
    norm = torch.nn.LayerNorm(hidden, eps=1e-6, dtype=dtype)
    for gemma in (False, True):
        backward(fast_rms_layernorm(norm, zeros(1, tokens, hidden, dtype=dtype), gemma))
    backward(fast_layernorm(norm, zeros(1, tokens, hidden, dtype=dtype)))


def rotary(model, tokens, dtype):
    heads, of_keys, width, *_ = MODELS[model]
    tables = [torch.zeros(tokens, width, dtype=dtype) for _ in range(2)]
    queries, keys = (zeros(1, count, tokens, width, dtype=dtype) for count in (heads, of_keys))
    q, k = fast_rope_embedding(queries, keys, *tables)
    (q.sum() + k.sum()).backward()


def activations(model, tokens, dtype):
    intermediate = MODELS[model].intermediate
    for forward, of_gradients in (
        (swiglu_fg_kernel, swiglu_DWf_DW_dfg_kernel),
        (geglu_exact_forward_kernel, geglu_exact_backward_kernel),
        (geglu_approx_forward_kernel, geglu_approx_backward_kernel),
    ):
        gate, up, gradient = (torch.zeros(1, tokens, intermediate, dtype=dtype) for _ in range(3))
        forward(gate, up)
        of_gradients(*(tensor.view(-1, intermediate) for tensor in (gradient, gate, up)))


def loss(model, tokens, dtype):
    logits = zeros(1, tokens, MODELS[model].vocabulary, dtype=dtype)
    softcap = 30.0 if model.startswith("gemma") else 0
    fast_cross_entropy_loss(logits, torch.zeros(1, tokens, dtype=torch.int64), softcap).backward()


LAUNCHES = {
    f"{function.__name__}-{model}-{tokens}-{str(dtype)[6:]}": launch(
        function, model, tokens, dtype, configs=1
    )
    for function in (norms, rotary, activations, loss)
    for model in MODELS
    for tokens in (1, 2048)
    for dtype in (torch.bfloat16, torch.float16)
}
