"""Cross entropy, also fused with the last linear layer; KL, JSD and total variation; softmax; GRPO."""

import torch
from irdiff_corpus import launch
from liger._calls import DTYPES, normal, train
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


def labels():
    return torch.zeros(ROWS, dtype=torch.int64)


def cross_entropy(vocabulary, smoothing=0.0, softcap=None, weight=None, dtype=torch.bfloat16):
    logits = normal(ROWS, vocabulary, dtype=dtype)
    train(LigerCrossEntropyFunction, logits, labels(), weight, -100, 1e-4, smoothing, "mean", softcap)


def fused_linear_cross_entropy(hidden):
    train(LigerFusedLinearCrossEntropyFunction, normal(ROWS, hidden), normal(VOCABULARY, hidden), labels())


def kl_div(reduction):
    target = torch.zeros(ROWS, VOCABULARY)
    train(LigerKLDivLossFunction, normal(ROWS, VOCABULARY, dtype=torch.float32), target, reduction)


def jsd(beta):
    target = torch.zeros(ROWS, VOCABULARY)
    train(LigerJSDFunction, normal(ROWS, VOCABULARY, dtype=torch.float32), target, labels(), beta)


def tvd():
    target = torch.zeros(ROWS, VOCABULARY)
    train(LigerTVDLossFunction, normal(ROWS, VOCABULARY, dtype=torch.float32), target, labels())


def fused_linear_jsd(hidden):
    teacher = torch.zeros(ROWS, hidden, dtype=torch.bfloat16), torch.zeros(VOCABULARY, hidden).bfloat16()
    train(LigerFusedLinearJSDFunction, normal(ROWS, hidden), normal(VOCABULARY, hidden), *teacher, labels())


def fused_linear_kl_div(hidden):
    target = torch.zeros(ROWS, VOCABULARY)
    train(LigerFusedLinearKLDivFunction, normal(ROWS, hidden), normal(VOCABULARY, hidden), target)


def fused_ce_tvd():
    train(LigerFusedCETVDFunction, normal(ROWS, VOCABULARY), normal(ROWS, VOCABULARY), labels())


def softmax(n, dtype=torch.bfloat16):
    train(LigerSoftmaxFunction, normal(256, n, dtype=dtype))


def sparsemax(n):
    train(LigerSparsemaxFunction, normal(256, n, dtype=torch.float32), -1)


def grpo(loss_type, level):
    batch, length = 4, 16
    old, reference = (torch.zeros(batch, length) for _ in range(2))
    train(
        GrpoLossFunction,
        normal(batch, length + 1, VOCABULARY),
        old,
        reference,
        torch.zeros(batch, length, dtype=torch.int64),
        torch.zeros(batch),
        torch.ones(batch, length, dtype=torch.int64),
        0.9,
        0.04,
        0.2,
        0.2,
        False,
        loss_type,
        None,
        True,
        level,
    )


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
    "sparsemax-4096": launch(sparsemax, 4096),
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
