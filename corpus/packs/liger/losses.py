"""Cross entropy, also fused with the last linear layer; KL, JSD and total variation; softmax; GRPO."""

import torch
import torch.nn.functional as F
from _references import sparsemax
from _tensors import normal
from irdiff_corpus import launch, trained
from liger._calls import DTYPES
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
from liger_kernel.ops.fused_ce_tvd import LigerFusedCETVDFunction
from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction
from liger_kernel.ops.fused_linear_jsd import LigerFusedLinearJSDFunction
from liger_kernel.ops.fused_linear_kl_div import LigerFusedLinearKLDivFunction
from liger_kernel.ops.grpo_loss import GrpoLossFunction
from liger_kernel.ops.jsd import LigerJSDFunction
from liger_kernel.ops.kl_div import LigerKLDivLossFunction
from liger_kernel.ops.softmax import LigerSoftmaxFunction
from liger_kernel.ops.sparsemax import LigerSparsemaxFunction
from liger_kernel.ops.tvd import LigerTVDLossFunction

ROWS, VOCABULARY = 64, 32000


def labels(vocabulary=VOCABULARY):
    return torch.randint(vocabulary, (ROWS,))


def logarithms():
    return normal(ROWS, VOCABULARY, dtype=torch.float32).log_softmax(-1)


def linear(hidden):
    """Hidden states and a table of the vocabulary, whose products are of size one."""
    return normal(ROWS, hidden), normal(VOCABULARY, hidden, scale=hidden**-0.5)


def cross_entropy(vocabulary, smoothing=0.0, softcap=None, weight=None, dtype=torch.bfloat16):
    def loss(x, labels):
        return LigerCrossEntropyFunction.apply(x, labels, weight, -100, 1e-4, smoothing, "mean", softcap)[0]

    def reference(x, labels):
        x = softcap * torch.tanh(x / softcap) if softcap else x
        of_size = 1e-4 * x.logsumexp(-1).square().mean()
        return F.cross_entropy(x, labels, weight, label_smoothing=smoothing) + of_size

    trained(loss, reference, normal(ROWS, vocabulary, dtype=dtype), labels(vocabulary))


def fused_linear_cross_entropy(hidden):
    def reference(x, table, labels):
        return F.cross_entropy(x @ table.T, labels)

    trained(lambda *x: LigerFusedLinearCrossEntropyFunction.apply(*x)[0], reference, *linear(hidden), labels())


def kl_div(reduction):
    def reference(x, target):
        return F.kl_div(x, target, reduction=reduction)

    inputs = logarithms(), logarithms().exp()
    trained(lambda *x: LigerKLDivLossFunction.apply(*x, reduction), reference, *inputs)


def divergence(x, target, beta):
    """Jensen-Shannon's, of two tables of logarithms; of Kullback-Leibler where beta is 0."""
    if beta == 0:
        return F.kl_div(x, target, reduction="batchmean", log_target=True)
    middle = (beta * target.exp() + (1 - beta) * x.exp()).log()
    parts = (F.kl_div(middle, part, reduction="batchmean", log_target=True) for part in (target, x))
    return sum(weight * part for weight, part in zip((beta, 1 - beta), parts))


def jsd(beta):
    def reference(x, target, _):
        return divergence(x, target, beta)

    trained(lambda *x: LigerJSDFunction.apply(*x, beta), reference, logarithms(), logarithms(), labels())


def variation(p, q):
    return 0.5 * (p - q).abs().sum(-1)


def tvd():
    def reference(p, q, _):
        return variation(p, q).mean()

    trained(LigerTVDLossFunction.apply, reference, logarithms().exp(), logarithms().exp(), labels())


def fused_linear_jsd(hidden):
    def reference(x, table, teacher, of_teacher, _):
        return divergence((x @ table.T).log_softmax(-1), (teacher @ of_teacher.T).log_softmax(-1), 0.5)

    trained(LigerFusedLinearJSDFunction.apply, reference, *linear(hidden), *linear(hidden), labels())


def fused_linear_kl_div(hidden):
    def reference(x, table, target):
        return F.kl_div((x @ table.T).log_softmax(-1), target, reduction="batchmean")

    trained(LigerFusedLinearKLDivFunction.apply, reference, *linear(hidden), logarithms().exp())


def fused_ce_tvd():
    def reference(x, teacher, labels):
        return F.cross_entropy(x, labels, reduction="none"), variation(x.softmax(-1), teacher.softmax(-1))

    inputs = normal(ROWS, VOCABULARY), normal(ROWS, VOCABULARY), labels()
    trained(LigerFusedCETVDFunction.apply, reference, *inputs)


def softmax(n, dtype=torch.bfloat16):
    trained(LigerSoftmaxFunction.apply, lambda x: x.softmax(-1), normal(256, n, dtype=dtype))


def sparse_softmax(n):
    trained(lambda x: LigerSparsemaxFunction.apply(x, -1), sparsemax, normal(256, n, dtype=torch.float32))


def grpo(loss_type, level):
    batch, length = 4, 16
    temperature, beta, clip = 0.9, 0.04, 0.2
    options = temperature, beta, clip, clip, False, loss_type, None, True, level

    def reference(logits, old, reference, tokens, advantages, mask):
        of_tokens = (logits[:, :-1] / temperature).log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
        change = of_tokens - old
        ratio = (change.mean(-1, keepdim=True) if level == "sequence" else change).exp()
        gains = (part * advantages[:, None] for part in (ratio, ratio.clamp(1 - clip, 1 + clip)))
        distance = (reference - of_tokens).exp() - (reference - of_tokens) - 1
        return (beta * distance - torch.minimum(*gains)).mean(), distance.detach().mean(), None

    old, of_reference = (normal(batch, length, dtype=torch.float32) - 11 for _ in range(2))
    tokens, mask = torch.randint(VOCABULARY, (batch, length)), torch.ones(batch, length, dtype=torch.int64)
    logits, advantages = normal(batch, length + 1, VOCABULARY), normal(batch, dtype=torch.float32)
    inputs = logits, old, of_reference, tokens, advantages, mask
    trained(lambda *x: GrpoLossFunction.apply(*x, *options), reference, *inputs)


LAUNCHES = {
    "cross-entropy-32000": launch(cross_entropy, VOCABULARY, tier="gate"),
    "cross-entropy-128256-smoothing": launch(cross_entropy, 128256, 0.1),
    "cross-entropy-256000-softcap": launch(cross_entropy, 256000, 0.0, 30.0),
    "fused-linear-cross-entropy-1024": launch(fused_linear_cross_entropy, 1024, tier="gate"),
    "kl-div-batchmean": launch(kl_div, "batchmean"),
    "jsd-0.5": launch(jsd, 0.5),
    "jsd-forward-kl": launch(jsd, 0.0),
    "tvd": launch(tvd),
    "fused-linear-jsd-1024": launch(fused_linear_jsd, 1024),
    "fused-linear-kl-div-1024": launch(fused_linear_kl_div, 1024),
    "fused-ce-tvd": launch(fused_ce_tvd),
    "softmax-4096": launch(softmax, 4096),
    "sparsemax-4096": launch(sparse_softmax, 4096),
    "grpo-token": launch(grpo, "grpo", "token"),
    "grpo-sequence": launch(grpo, "grpo", "sequence"),
} | {
    f"cross-entropy-{vocabulary}-{smoothing}-{softcap}-{word}": launch(
        cross_entropy, vocabulary, smoothing, softcap, dtype=dtype
    )
    for vocabulary in (32768, 128256)
    for smoothing in (0.0, 0.1)
    for softcap in (None, 30.0)
    for word, dtype in DTYPES.items()
} | {
    f"softmax-{n}-{word}": launch(softmax, n, dtype=dtype)
    for n in (512, 1024, 2048, 8192, 16384, 32768)
    for word, dtype in DTYPES.items()
}
