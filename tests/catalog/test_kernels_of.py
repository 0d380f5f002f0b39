"""Kernels of variants are read from a file's text: what it says plainly is known, all else is not,
and nothing runs.
"""

import time

import pytest

from gpulab.catalog.kernels import kernels_of, shipped_kernels

HANGS_S = 10
HEAD = """from gpulab.cuda import CudaSource
cuda = CudaSource("code")
"""


def kernels(body, variants=("a",), head=HEAD, **params):
    return kernels_of(head + body, variants, params)


def kernel(call, arguments="lab, n=4, block=64", before="", **params):
    """What is known of the only kernel of a variant; None where it is left out."""
    found = kernels(f"{before}\ndef a({arguments}):\n    return {call}\n", **params).get(
        "a", [None]
    )
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("'copy'", "copy"),
        ("f'copy<{n}>'", "copy<7>"),
        ("f'{TYPE}_{kind}'", "float4_scaled"),
        ("NAME", "copy_all"),
        ("f'copy<{ratio}>'", "copy<0.5>"),
        ("f'{n!r}'", None),
        ("f'copy<{n / 2}>'", "copy<3.5>"),
        ("'copy' + str(n)", None),
        ("name(n)", None),
        ("n", None),
        ("**options", None),
    ],
)
def test_a_name_is_known_where_it_is_made_of_literals_parameters_and_numbers_of_the_file(
    text, name
):
    module = "WIDTH, TYPE = 4, 'float4'\nNAME = f'copy_{\"all\"}'\n"
    found = kernel(
        f"cuda.kernel({text})", "lab, n, kind, ratio", module, n=7, kind="scaled", ratio=0.5
    )
    assert (found and found.name) == name


@pytest.mark.parametrize(
    ("given", "threads"),
    [
        ("", (256, 1, 1)),
        (", threads=block", (64, 1, 1)),
        (", threads=(block // 8, n, 2)", (8, 4, 2)),
        (", threads=TILE", (16, 16, 1)),
        (", threads=min(block, 32)", None),
        (", threads=block // 0", None),
        (", threads=n - 4", None),
        (", threads=-32", None),
        (", threads=64.0", None),
        (", threads=()", None),
        (", threads=((8, 8), 1)", None),
    ],
)
def test_threads_are_numbers_of_one_to_three_dimensions_or_not_known(given, threads):
    module = "TILE = (16, 16)\nWARPS: int\nWARPS = 4\n"
    assert kernel(f"cuda.kernel('k'{given})", before=module).threads == threads


@pytest.mark.parametrize(
    ("given", "shared_bytes"),
    [
        ("", 0),
        (", 64, 1024", 1024),
        (", shared_bytes=4 * block", 256),
        (", shared_bytes=48 * KiB", 48 << 10),
        (", shared_bytes=int(block)", None),
        (", shared_bytes=2.5", None),
        (", shared_bytes=-1", None),
        (", shared_bytes='4'", None),
    ],
)
def test_without_its_shared_memory_a_kernel_is_left_out(given, shared_bytes):
    found = kernel(f"cuda.kernel('k'{given})")
    assert (found and found.shared_bytes) == shared_bytes


def test_a_chosen_parameter_counts_before_a_default_and_that_before_a_number_of_the_file():
    call, module = "cuda.kernel(f'k<{n}>', threads=block)", "block = 32\nn = 1\n"
    chosen = kernel(call, "lab, n=4, block=64", module, n=8)
    assert (chosen.name, chosen.threads) == ("k<8>", (64, 1, 1))
    assert kernel(call, "lab", module).name == "k<1>"
    assert kernel(call, "lab, n=2, /, block=16", module).name == "k<2>"


def test_what_the_function_gives_a_name_is_not_known():
    for change in (
        "n = n // 2",
        "n //= 2",
        "n: int = 2",
        "for n in (1, 2): pass",
        "with lab as n: pass",
    ):
        text = (
            f"def a(lab, n):\n    {change}\n    cuda.kernel('k', threads=n)\n    "
            "cuda.kernel(f'k<{n}>')\n"
        )
        assert [found.threads for found in kernels(text, n=64)["a"]] == [None]


def test_several_sources_and_kernels_have_their_own_lines_each_once():
    text = '''
from gpulab.cuda import CudaSource

first = CudaSource("""
one""")
second: CudaSource = CudaSource(
    r"""two"""
)


def a(lab):
    return [second.kernel("k2"), first.kernel("k1"), first.kernel("k1"), first.kernel("k1", threads=32)]


def b(lab):
    def step():
        return first.kernel("inner")

    return step
'''
    found = kernels_of(text, ("b", "a"), {})
    assert list(found) == ["b", "a"]
    assert [(kernel.name, kernel.code, kernel.line) for kernel in found["a"]] == [
        ("k2", "two", 7),
        ("k1", "\none", 4),
        ("k1", "\none", 4),
    ]
    assert [kernel.name for kernel in found["b"]] == ["inner"]


@pytest.mark.parametrize(
    "text",
    [
        "def a(lab): return helper(lab)\ndef helper(lab): return cuda.kernel('k')\n",
        "def other(lab): return cuda.kernel('k')\n",
        "kernel = cuda.kernel('k')\ndef a(lab): return kernel\n",
        "class A:\n    def a(lab): return cuda.kernel('k')\n",
        "def a(lab): return other.kernel('k')\n",
        "def a(lab): return lab.cuda.kernel('k')\n",
        "def a(lab): return cuda.kernels('k')\n",
        "def a(lab): return cuda.kernel\n",
        "def a(lab): return kernel('k')\n",
        "if True:\n    def a(lab): return cuda.kernel('k')\n",
    ],
)
def test_what_is_no_call_of_a_kernel_in_the_function_of_a_variant_is_not_taken(text):
    assert kernels(text) == {}


def test_calls_without_number_take_no_time():
    body = "def a(lab):\n" + "    cuda.kernel('k')\n" * 5000
    started = time.monotonic()
    assert len(kernels(body)["a"]) == 1
    assert time.monotonic() - started < HANGS_S


@pytest.mark.parametrize("text", ["", "x = 1\n", HEAD, "\x1b[31m", "not Python"])
def test_of_a_text_that_did_not_ship_nothing_is_kept(text):
    assert shipped_kernels(text) == {}
