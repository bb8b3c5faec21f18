"""The fused MoE kernel with each config that SGLang ships as tuned for any model on an H100."""

from irdiff_corpus import launch
from sglang_kernels.moe import CONFIGS, MODELS, experts, of_file

FLOAT8 = ",dtype=fp8_w8a8,block_shape=[128, 128]"


def tuned():
    """{label: (tokens, config, block of float8 scales)}: each config for any model on an H100, once."""
    rows = {}
    for path in sorted(CONFIGS.glob("*/*H100*HBM3*.json")):
        kind = path.stem.partition("HBM3")[2].removesuffix("_down")
        if kind in ("", FLOAT8):
            for tokens, config in of_file(path).items():
                sizes = "-".join(str(config[name]) for name in sorted(config))
                rows.setdefault(f"tuned-{'fp8' if kind else 'bf16'}-{sizes}", (tokens, config, 128 if kind else None))
    return rows


def experts_tuned(tokens, config, block):
    MODELS["tuned"] = (8, 2, 4096, 1792, block, "")
    experts("tuned", min(tokens, 1024), config, False)


LAUNCHES = {name: launch(experts_tuned, *words) for name, words in tuned().items()}
