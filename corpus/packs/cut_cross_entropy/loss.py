"""The loss of a language model from its hidden states, forward and backward, on one of eight GPUs that share the
vocabulary. Softcapping goes through torch.compile, which cannot be asked as if there were a GPU: left out.
"""

import torch
from _models import MODELS
from cut_cross_entropy import linear_cross_entropy
from irdiff_corpus import launch


def train(model, tokens, dtype, options):
    *_, hidden, _, vocabulary = MODELS[model]
    states = torch.zeros(1, tokens, hidden, dtype=dtype).requires_grad_()
    table = torch.zeros(vocabulary // 8, hidden, dtype=dtype).requires_grad_()
    labels = torch.zeros(1, tokens, dtype=torch.int64)
    linear_cross_entropy(states, table, labels, **options).sum().backward()


LAUNCHES = {
    f"{model}-{tokens}-{name}": launch(train, model, tokens, dtype, options, configs=1)
    for model in MODELS
    for tokens in (512, 2048)
    for name, dtype, options in [
        ("bf16", torch.bfloat16, {}),
        ("bf16-shift", torch.bfloat16, {"shift": True}),
        ("fp16-unfiltered", torch.float16, {"filter_eps": None}),
    ]
}
