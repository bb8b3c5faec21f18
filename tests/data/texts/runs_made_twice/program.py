from mykernels import square


class Array:
    dtype, shape = "fp32", (1 << 20,)

    def data_ptr(self):
        return 1 << 32

    def stride(self):
        return (1,)


square[(1024,)](Array(), Array(), 1 << 20, BLOCK=1024)
