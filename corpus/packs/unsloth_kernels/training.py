"""Norms, rotary embeddings, gated activations and the loss of fine-tuning, forward and backward."""

import functools
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from _models import models
from _references import rotated
from _tensors import normal
import unsloth_kernels._alone  # noqa: F401, I001
from irdiff_corpus import checked, launch, trained
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


def norms(model, tokens, dtype):
    hidden = MODELS[model].hidden

    def module(weight, bias=None):
        return SimpleNamespace(weight=weight, bias=bias, eps=1e-6, elementwise_affine=True)

    def rms(x, weight, gemma):
        return fast_rms_layernorm(module(weight), x, gemma)

    def of_rms(x, weight, gemma):
        return F.rms_norm(x, (hidden,), weight + gemma, 1e-6)

    def layer(x, weight, bias):
        return fast_layernorm(module(weight, bias), x)

    def of_layer(x, weight, bias):
        return F.layer_norm(x, (hidden,), weight, bias, 1e-6)

    weight, bias = (normal(hidden, dtype=dtype) for _ in range(2))
    for gemma in (False, True):
        trained(rms, of_rms, normal(1, tokens, hidden, dtype=dtype), weight, gemma)
    trained(layer, of_layer, normal(1, tokens, hidden, dtype=dtype), weight, bias)


def rotary(model, tokens, dtype):
    heads, of_keys, width, *_ = MODELS[model]

    def both(call):
        def forward_backward(queries, keys, *tables):
            leaves = [x.detach().requires_grad_() for x in (queries, keys)]
            q, k = call(*leaves, *tables)
            (q.sum() + k.sum()).backward()
            return q, k, *(leaf.grad for leaf in leaves)

        return forward_backward

    def reference(*q_k_tables):
        *q_k, cos, sin = q_k_tables
        return [rotated(x, cos[:, : width // 2], sin[:, : width // 2]) for x in q_k]

    q_k = (normal(1, count, tokens, width, dtype=dtype) for count in (heads, of_keys))
    tables = (normal(tokens, width, dtype=dtype) for _ in range(2))
    checked(both(fast_rope_embedding), both(reference), *q_k, *tables)


def activations(model, tokens, dtype):
    intermediate = MODELS[model].intermediate

    def gradients(act, gradient, gate, up):
        gate = gate.requires_grad_()
        output = act(gate) * up
        return output, gradient * act(gate), torch.autograd.grad(output, gate, gradient)[0]

    for act, forward, of_gradients in (
        (F.silu, swiglu_fg_kernel, swiglu_DWf_DW_dfg_kernel),
        (F.gelu, geglu_exact_forward_kernel, geglu_exact_backward_kernel),
        (functools.partial(F.gelu, approximate="tanh"), geglu_approx_forward_kernel, geglu_approx_backward_kernel),
    ):
        gate, up, gradient = (normal(1, tokens, intermediate, dtype=dtype) for _ in range(3))
        checked(forward, lambda gate, up, act=act: act(gate) * up, gate, up)
        checked(of_gradients, functools.partial(gradients, act), *(x.view(-1, intermediate) for x in (gradient, gate, up)))


def loss(model, tokens, dtype):
    softcap = 30.0 if model.startswith("gemma") else 0

    def reference(logits, labels):
        logits = softcap * torch.tanh(logits / softcap) if softcap else logits
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    vocabulary = MODELS[model].vocabulary
    inputs = normal(1, tokens, vocabulary, dtype=dtype), torch.randint(vocabulary, (1, tokens))
    # a gradient is of the size of 1 / vocabulary: fp16 has few bits for it
    trained(lambda *x: fast_cross_entropy_loss(*x, softcap), reference, *inputs, error=0.02)


LAUNCHES = {
    f"{function.__name__}-{model}-{tokens}-{str(dtype)[6:]}": launch(
        function, model, tokens, dtype, configs=1
    )
    for function in (norms, rotary, activations, loss)
    for model in MODELS
    for tokens in (1, 2048)
    for dtype in (torch.bfloat16, torch.float16)
}
