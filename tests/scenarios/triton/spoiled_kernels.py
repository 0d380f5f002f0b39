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
        "a program too few": ("(triton.cdiv(n, per_block),)", "(max(1, n // per_block),)"),
    },
    "fused_softmax": {
        "wrong stride": ("row * columns + column", "row * BLOCK + column"),
        "zeros beyond the row": (
            'mask=inside, other=float("-inf"))\n        value',
            "mask=inside, other=0.0)\n        value",
        ),
        "no mask of rows": ("(row < count) & (column < columns)", "column < columns"),
        "no maximum": ("tl.exp(value - tl.max(value, axis=1)[:, None])", "tl.exp(value)"),
        "sum not scaled down": ("total * tl.exp(most - base) + ", "total + "),
        "minus infinity less itself": ('tl.where(higher == float("-inf"), 0.0, higher)', "higher"),
    },
    "layernorm_gelu": {
        "padding in the variance": ("tl.where(real, value, 0.0)", "value"),
        "no epsilon": ("/ columns + epsilon)", "/ columns)"),
        "weight as bias": ("tl.load(bias + column", "tl.load(weight + column"),
        "wrong factor": ("0.7071067811865476", "0.7978845608028654"),
    },
    "triton_matmul": {
        "no mask of steps": ("mask=in_rows & (steps < k - start)[None, :]", "mask=in_rows"),
        "wrong stride": ("b += K * tl.cast(n, tl.int64)", "b += K * tl.cast(k, tl.int64)"),
        "last group as high": ("tl.minimum(down - first, GROUP)", "GROUP"),
        "sums forgotten": ("tl.dot(left, right, sums)", "tl.dot(left, right)"),
        "store over the end of rows": ("mask=in_rows & in_columns,", "mask=in_rows,"),
    },
    "persistent_matmul": {
        "last group as high": ("tl.minimum(down - first, GROUP)", "GROUP"),
        "no mask of columns": (
            "mask=in_columns & (steps < k - start)[:, None]",
            "mask=(steps < k - start)[:, None]",
        ),
        "first tile left out": (
            "tl.range(tl.program_id(0), tiles",
            "tl.range(tl.program_id(0) + 1, tiles",
        ),
        "coordinates exchanged": ("b.load([start, side])", "b.load([side, start])"),
    },
    "attention": {
        "output not scaled down": ("values, sums * shrunk[:, None])", "values, sums)"),
        "sum not scaled down": ("total * shrunk + ", "total + "),
        "keys beyond the end": (
            'tl.where((columns < length - whole)[None, :], scores, float("-inf"))',
            "scores",
        ),
        "wrong stride of heads": ("tl.int64) * length * WIDTH", "tl.int64) * (length + 1) * WIDTH"),
        "queries without their mask": (
            "tl.load(q + head + of_q, mask=inside, other=0.0)",
            "tl.load(q + head + of_q)",
        ),
    },
    "reduction": {
        "counted more than once": ("tl.num_programs(0) * BLOCK)", "BLOCK)"),
        "load without its mask": (
            "tl.load(data + place, mask=place < n, other=0.0)",
            "tl.load(data + place)",
        ),
        "first block left out": (
            "range(tl.program_id(0) * BLOCK, n",
            "range(tl.program_id(0) * BLOCK + BLOCK, n",
        ),
    },
    "small_kernels": {
        "wrong column": ("place % columns", "place // columns"),
        "store without its mask": (
            "tl.store(out + place, value, mask=inside)",
            "tl.store(out + place, value)",
        ),
        "no ReLU": ("tl.maximum(value + add, 0.0)", "(value + add)"),
    },
    "utilization": {
        "wrong stride": ("data + piece * PIECE", "data + piece"),
        "a piece too many": ("tl.program_id(0), pieces,", "tl.program_id(0), pieces + 1,"),
        "no squares": ("values * values", "values"),
    },
}
