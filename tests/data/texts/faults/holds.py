

def holds(fails_in_python):
    held = bytearray(600 << 20)
    if fails_in_python:
        raise ValueError("planted error")
    kernel[(1,)](tensor((16,), "fp32"), HOW="error")


LAUNCHES = {f"{number}": launch(holds, number % 2) for number in range(8)} | {"fine": LAUNCHES["fine"]}
