"""From logits to tokens: penalties, biases, top-k and top-p, sampling, log-probabilities, speculative decoding."""

import types

import torch
import vllm_kernels._alone  # noqa: F401, I001
from _models import models
from irdiff_corpus import launch
from vllm.v1.sample.ops.topk_topp_triton import apply_top_k_top_p_triton
from vllm.v1.sample.rejection_sampler import expand_batch_to_tokens, rejection_sample
from vllm.v1.spec_decode.utils import eagle_step_update_slot_mapping_and_metadata
from vllm.v1.worker.gpu.sample.bad_words import apply_bad_words
from vllm.v1.worker.gpu.sample.gumbel import apply_temperature, gumbel_sample
from vllm.v1.worker.gpu.sample.logit_bias import apply_logit_bias
from vllm.v1.worker.gpu.sample.logprob import compute_topk_scores
from vllm.v1.worker.gpu.sample.min_p import apply_min_p
from vllm.v1.worker.gpu.sample.penalties import apply_penalties, bincount

VOCABULARIES = {name: model.vocabulary for name, model in models("llama3-8b", "qwen3-4b", "mistral-7b").items()}


def integers(*shape):
    return torch.zeros(shape, dtype=torch.int32)


def logits(model, batch, dtype=torch.float32):
    return torch.zeros(batch, VOCABULARIES[model], dtype=dtype)


def adjust(model, batch, dtype):
    """What a request asks for: penalties, biases, bad words, temperature, min-p."""
    rows, of_row, size = logits(model, batch, dtype), torch.arange(batch, dtype=torch.int32), VOCABULARIES[model]
    seen, counts, ones = integers(batch, -(-size // 32)), integers(batch, size), torch.ones(batch)
    bincount(of_row, integers(batch, 4096), integers(batch), integers(batch), seen, counts, 4096)
    apply_penalties(rows, of_row, integers(batch), integers(batch), ones, ones, ones, seen, counts)
    tokens, numbers = integers(batch, 128), integers(batch)
    apply_logit_bias(
        rows, of_row, torch.zeros(batch, dtype=torch.int64), numbers, tokens, numbers, tokens, torch.zeros(batch, 128),
        numbers, numbers, torch.zeros(batch, dtype=torch.bool), tokens,
    )
    apply_bad_words(
        rows, of_row, tokens, integers(batch, 16), numbers, integers(batch, 4096), numbers, numbers, numbers, numbers, 8
    )
    apply_temperature(rows, of_row, ones)
    apply_min_p(rows, of_row, ones)


def choose(model, batch, with_k, with_p):
    limit = torch.full((batch,), 50, dtype=torch.int32) if with_k else None
    apply_top_k_top_p_triton(logits(model, batch), limit, torch.full((batch,), 0.9) if with_p else None)


def sample(model, batch, exact):
    of_row, positions = torch.arange(batch, dtype=torch.int32), torch.zeros(batch, dtype=torch.int64)
    gumbel_sample(logits(model, batch), of_row, torch.ones(batch), positions, positions, True, False, use_fp64=exact)


def score(model, batch, count, dtype):
    compute_topk_scores(logits(model, batch, dtype), count, torch.zeros(batch, dtype=torch.int64))


def verify(model, batch, drafted, greedy, with_probabilities):
    """Of `drafted` tokens a request, those that the model itself would give."""
    tokens = batch * drafted
    probabilities = torch.softmax(logits(model, tokens), -1) if with_probabilities else None
    request = types.SimpleNamespace(
        all_greedy=greedy, all_random=not greedy, temperature=torch.ones(batch), generators={}
    )
    ends = torch.arange(1, batch + 1, dtype=torch.int32) * drafted
    rejection_sample(
        integers(tokens), [drafted] * batch, drafted, ends, probabilities, logits(model, tokens), integers(batch, 1),
        request,
    )
    expand_batch_to_tokens(torch.ones(batch), ends, tokens)


def draft(batch, block):
    positions, slots = torch.zeros(batch, dtype=torch.int64), torch.zeros(batch, dtype=torch.int64)
    eagle_step_update_slot_mapping_and_metadata(
        positions, integers(batch, 512), integers(batch), block, 8192, torch.zeros_like(positions), slots
    )


LAUNCHES = {
    f"{function.__name__}-{'-'.join(str(word).removeprefix('torch.') for word in words)}": launch(function, *words)
    for function, variants in [
        (adjust, [("llama3-8b", 64, torch.float32), ("llama3-8b", 1, torch.bfloat16)]),
        (choose, [("llama3-8b", batch, *asked) for batch in (1, 64) for asked in ((1, 1), (1, 0), (0, 1))]),
        (choose, [("mistral-7b", 64, 1, 1)]),
        (sample, [("llama3-8b", 64, False), ("llama3-8b", 64, True)]),
        (score, [("llama3-8b", 64, 0, torch.float32), ("llama3-8b", 64, 20, torch.float32)]),
        (score, [("qwen3-4b", 1, 5, torch.bfloat16)]),
        (verify, [("llama3-8b", 16, 3, greedy, True) for greedy in (False, True)]),
        (verify, [("llama3-8b", 16, 3, False, False)]),
        (draft, [(64, 16), (64, 64)]),
    ]
    for words in variants
}
