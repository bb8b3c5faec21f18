"""From logits to tokens: penalties, biases, top-k and top-p, sampling, log-probabilities, speculative decoding."""

import types

import torch
import vllm_kernels._alone  # noqa: F401, I001
from _models import models
from _tensors import integers as random_integers
from _tensors import normal, pages, positive
from irdiff_corpus import checked, launch
from vllm.v1.sample.ops.topk_topp_triton import apply_top_k_top_p_triton
from vllm.v1.sample.rejection_sampler import expand_batch_to_tokens, rejection_sample
from vllm.v1.spec_decode.utils import eagle_step_update_slot_mapping_and_metadata
from vllm.v1.worker.gpu.sample import logprob
from vllm.v1.worker.gpu.sample.bad_words import apply_bad_words
from vllm.v1.worker.gpu.sample.gumbel import apply_temperature, gumbel_sample
from vllm.v1.worker.gpu.sample.logit_bias import apply_logit_bias
from vllm.v1.worker.gpu.sample.min_p import apply_min_p
from vllm.v1.worker.gpu.sample.penalties import apply_penalties, bincount

VOCABULARIES = {name: model.vocabulary for name, model in models("llama3-8b", "qwen3-4b", "mistral-7b").items()}
logprob.LogprobsTensors = types.SimpleNamespace  # what vLLM returns of it is not here


def integers(*shape):
    return torch.zeros(shape, dtype=torch.int32)


def logits(model, batch, dtype=torch.float32):
    return normal(batch, VOCABULARIES[model], dtype=dtype)


def adjust(model, batch, dtype):
    """What a request asks for: penalties, biases, bad words, temperature, min-p."""
    rows, of_row, size = logits(model, batch, dtype), torch.arange(batch, dtype=torch.int32), VOCABULARIES[model]
    seen, counts = integers(batch, -(-size // 32)), integers(batch, size)
    history, factors = random_integers(0, size, batch, 4096, dtype=torch.int32), positive(batch) / 20

    def count(history, seen, counts):
        """The first half is the prompt."""
        lengths = (torch.full((batch,), length, dtype=torch.int32) for length in (2048, 4096))
        bincount(of_row, history, *lengths, seen, counts, 4096)
        return seen, counts

    def counted(history, seen, counts):
        prompt, output = history.long().chunk(2, 1)
        bits = torch.zeros(batch, 32 * seen.shape[1], dtype=torch.int64).scatter(1, prompt, 1).unflatten(1, (-1, 32))
        return (bits << torch.arange(32)).sum(-1).int(), torch.zeros_like(counts).scatter_add(
            1, output, torch.ones_like(output, dtype=counts.dtype)
        )

    def penalize(rows, factors, seen, counts):
        apply_penalties(rows, of_row, integers(batch), integers(batch), factors, factors, factors, seen, counts)
        return rows.clone()  # the next steps write to it

    def penalized(rows, factors, seen, counts):
        factors, in_prompt = factors[:, None], (seen[..., None] >> torch.arange(32) & 1).flatten(1)[:, :size]
        scale = torch.where((in_prompt > 0) | (counts > 0), factors, 1)
        return torch.where(rows > 0, rows / scale, rows * scale) - factors * counts - factors * (counts > 0)

    def cool(rows, temperature):
        apply_temperature(rows, of_row, temperature)
        return rows.clone()

    def cut(rows, least):
        apply_min_p(rows, of_row, least)
        return rows.softmax(-1)

    def was_cut(rows, least):
        return rows.masked_fill(rows < rows.amax(-1, keepdim=True) + least.log()[:, None], -torch.inf).softmax(-1)

    checked(count, counted, history, seen, counts)
    checked(penalize, penalized, rows, factors, seen, counts)
    tokens, numbers = integers(batch, 128), integers(batch)
    apply_logit_bias(
        rows, of_row, torch.zeros(batch, dtype=torch.int64), numbers, tokens, numbers, tokens, torch.zeros(batch, 128),
        numbers, numbers, torch.zeros(batch, dtype=torch.bool), tokens,
    )
    apply_bad_words(
        rows, of_row, tokens, integers(batch, 16), numbers, integers(batch, 4096), numbers, numbers, numbers, numbers, 8
    )
    checked(cool, lambda rows, temperature: rows / temperature[:, None], rows, factors)
    checked(cut, was_cut, rows, factors)


def choose(model, batch, with_k, with_p):
    limit = torch.full((batch,), 50, dtype=torch.int32) if with_k else None
    share = torch.full((batch,), 0.9) if with_p else None

    def reference(rows):
        rows, places = rows.sort(-1, descending=True)
        if with_k:
            rows = rows.masked_fill(torch.arange(rows.shape[-1]) >= 50, -torch.inf)
        shares = rows.softmax(-1)
        if with_p:
            rows = rows.masked_fill(shares.cumsum(-1) - shares >= 0.9, -torch.inf)
        return torch.zeros_like(rows).scatter(-1, places, rows.softmax(-1))

    checked(
        lambda rows: apply_top_k_top_p_triton(rows, limit, share).softmax(-1), reference, logits(model, batch)
    )  # as shares: which of the tokens at the limit stays is of no weight


def sample(model, batch, exact):
    of_row, positions = torch.arange(batch, dtype=torch.int32), torch.zeros(batch, dtype=torch.int64)
    gumbel_sample(logits(model, batch), of_row, torch.ones(batch), positions, positions, True, False, use_fp64=exact)


def score(model, batch, count, dtype):
    def function(rows, chosen):
        found = logprob.compute_topk_scores(rows, count, chosen)
        return found.logprobs, found.selected_token_ranks

    def reference(rows, chosen):
        ids = torch.cat([chosen[:, None], rows.topk(count).indices], 1)
        return rows.log_softmax(-1).gather(1, ids), (rows >= rows.gather(1, chosen[:, None])).sum(-1)

    chosen = random_integers(0, VOCABULARIES[model], batch, dtype=torch.int64)
    checked(function, reference, logits(model, batch, dtype), chosen)


def verify(model, batch, drafted, greedy, with_probabilities):
    """Of `drafted` tokens a request, those that the model itself would give."""
    tokens = batch * drafted
    request = types.SimpleNamespace(
        all_greedy=greedy, all_random=not greedy, temperature=torch.ones(batch), generators={}
    )
    ends = torch.arange(1, batch + 1, dtype=torch.int32) * drafted

    def function(draft, rows, probabilities, bonus):
        return rejection_sample(draft, [drafted] * batch, drafted, ends, probabilities, rows, bonus, request)

    def reference(draft, rows, probabilities, bonus):
        best, draft = rows.argmax(-1).view(batch, drafted), draft.view(batch, drafted)
        right = torch.cat([torch.ones(batch, 1), (best == draft).cumprod(1)], 1)
        return torch.where(right > 0, torch.cat([best, bonus], 1), -1)

    rows = logits(model, tokens)
    draft = torch.where(torch.arange(tokens) % 5 < 4, rows.argmax(-1), 0).int()
    probabilities = torch.softmax(logits(model, tokens), -1) if with_probabilities else None
    inputs = draft, rows, probabilities, integers(batch, 1)
    if greedy:
        checked(function, reference, *inputs)
    else:
        function(*inputs)
    checked(
        lambda values: expand_batch_to_tokens(values, ends, tokens), lambda values: values.repeat_interleave(drafted),
        torch.ones(batch),
    )


def draft(batch, block):
    def function(positions, table, lengths):
        after, slots = torch.zeros_like(positions), torch.zeros(batch, dtype=torch.int64)
        eagle_step_update_slot_mapping_and_metadata(positions, table, lengths, block, 8192, after, slots)
        return after, slots, lengths

    def reference(positions, table, lengths):
        after = positions + 1
        return after, table.gather(1, after[:, None] // block)[:, 0] * block + after % block, lengths + 1

    positions = torch.arange(batch) * 100
    checked(function, reference, positions, pages(batch, 512), positions.int())


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
