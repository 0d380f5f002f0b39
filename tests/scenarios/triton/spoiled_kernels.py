"""Mistakes that people make in kernels: by lesson and by name, a text of its file and what stands
there instead.

The checks that find the lessons right have to find each of these wrong.
"""

SPOILED = {
    "vector_add": {
        "load without its mask": ("tl.load(b + place, mask=inside)", "tl.load(b + place)"),
        "store without its mask": (
            "tl.load(b + place, mask=inside),\n            mask=inside,\n",
            "tl.load(b + place, mask=inside),\n",
        ),
    },
    "fused_softmax": {
        "wrong stride": ("row * columns + column", "row * BLOCK + column"),
        "zeros beyond the row": (
            'mask=inside, other=float("-inf"))\n        value',
            "mask=inside, other=0.0)\n        value",
        ),
    },
    "layernorm_gelu": {
        "padding in the variance": ("tl.where(real, value, 0.0)", "value"),
        "no epsilon": ("/ columns + epsilon)", "/ columns)"),
    },
    "triton_matmul": {
        "no mask of steps": ("mask=in_rows & (steps < k - start)[None, :]", "mask=in_rows"),
        "wrong stride": ("b += K * tl.cast(n, tl.int64)", "b += K * tl.cast(k, tl.int64)"),
    },
    "persistent_matmul": {
        "last group as high": ("tl.minimum(down - first, GROUP)", "GROUP"),
        "no mask of columns": (
            "mask=in_columns & (steps < k - start)[:, None]",
            "mask=(steps < k - start)[:, None]",
        ),
    },
    "attention": {
        "output not scaled down": ("values, sums * shrunk[:, None])", "values, sums)"),
        "sum not scaled down": ("total * shrunk + ", "total + "),
    },
    "reduction": {
        "counted more than once": ("tl.num_programs(0) * BLOCK)", "BLOCK)"),
        "load without its mask": (
            "tl.load(data + place, mask=place < n, other=0.0)",
            "tl.load(data + place)",
        ),
    },
    "small_kernels": {
        "wrong column": ("place % columns", "place // columns"),
        "store without its mask": (
            "tl.store(out + place, value, mask=inside)",
            "tl.store(out + place, value)",
        ),
    },
    "utilization": {
        "wrong stride": ("data + piece * PIECE", "data + piece"),
        "a piece too many": ("tl.program_id(0), pieces,", "tl.program_id(0), pieces + 1,"),
    },
}
