def NAME(x, out, n, BLOCK):
    offsets = program_id(0) * BLOCK + arange(0, BLOCK)
    mask = offsets < n
    value = load(x + offsets, mask=mask)
    store(out + offsets, exp(value) / (1 + exp(value)), mask=mask)
