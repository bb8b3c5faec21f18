"""The loss of a language model from its hidden states, forward and backward, on one of eight GPUs that share the
vocabulary. Softcapping goes through torch.compile, which cannot be asked as if there were a GPU: left out.
"""

import torch
import torch.nn.functional as F
from _models import MODELS
from _tensors import normal
from cut_cross_entropy import linear_cross_entropy
from irdiff_corpus import launch, trained


def train(model, tokens, dtype, options):
    def loss(*inputs):
        return linear_cross_entropy(*inputs, **options).sum()

    def reference(states, table, labels):
        if options.get("shift"):
            states, labels = states[:, :-1], labels[:, 1:]
        return F.cross_entropy((states @ table.T).flatten(0, 1), labels.flatten())

    *_, hidden, _, vocabulary = MODELS[model]
    shapes = (1, tokens, hidden), (vocabulary // 8, hidden)
    states, table = (normal(*shape, dtype=dtype, scale=hidden**-0.25) for shape in shapes)
    # parts of a gradient add up in the type of the inputs; blocks without a share above an eps are left out
    error = 0.03 if "filter_eps" in options else 0.05
    trained(loss, reference, states, table, torch.randint(vocabulary // 8, (1, tokens)), error=error)


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
