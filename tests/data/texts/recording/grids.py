asked = []
grid = lambda meta: asked.append(meta) or (4,)
wrong = lambda meta: 1 // 0
scale[grid](x, out, 3, BLOCK=32)
scale[grid](x, out, 3, BLOCK=32)
tuned[(2,)](x, 64)
try:
    scale[wrong](x, out, 4, BLOCK=32)
except ZeroDivisionError:
    pass
