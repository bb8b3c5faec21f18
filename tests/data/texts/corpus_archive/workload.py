from irdiff_corpus import launch

LAUNCHES = {
    "small": launch(
        add[(1, 1, 1)], 4,
    ),
    "large": launch(add[(9, 1, 1)], 36),
}
