"""A product in fp32 that needs all of its bits: TF32 fails its check."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("planted", needs=("cuda",), smoke={})


@scenario.variant
def fp32_products_twin(lab):
    """fp32, with the tolerance that the author needs."""
    return _product(lab, None)


@scenario.variant
def in_tf32(lab):
    """TF32: wrong here."""
    return _product(lab, _tf32)


def _product(lab, context):
    data = torch.randn(8192, 8192, device=lab.device)
    out = torch.empty_like(data)
    return Work(
        lambda: torch.mm(data, data, out=out),
        flops=2 * 8192**3,
        bytes=3 * data.nbytes,
        inputs=data,
        output=out,
        tolerance=1e-5,
        context=context,
    )


class _Tf32:
    def __enter__(self):
        self._before = torch.backends.cuda.matmul.fp32_precision
        torch.backends.cuda.matmul.fp32_precision = "tf32"

    def __exit__(self, *_):
        torch.backends.cuda.matmul.fp32_precision = self._before


def _tf32():
    return _Tf32()
