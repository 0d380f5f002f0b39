"""What drawing a roofline of 8 points costs, alone and as a ratio to a Rich table of as many rows.

python benchmarks/roofline.py
"""

import io
import sys
import time
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from gpulab.features.roofline.view import roofline_view

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit" / "views"))
from rooflines import h200

SIZES = ((80, 24), (120, 40), (200, 50))
RUNS = 100


def seconds(call):
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def rich_table(points, width):
    table = Table(box=None)
    for name in ("variant", "rate", "FLOP/byte", "of roof", "bound"):
        table.add_column(name)
    for point in points:
        table.add_row(
            point.variant,
            f"{point.rate:.3g}",
            str(point.intensity),
            f"{point.fraction:.0%}",
            point.bound,
        )
    Console(width=width, file=io.StringIO()).print(table)


def main():
    roofline = h200()
    for width, height in SIZES:
        roofline_view(roofline, width=width, height=height)
        pairs = [
            (
                seconds(lambda: roofline_view(roofline, width=width, height=height)),  # noqa: B023
                seconds(lambda: rich_table(roofline.points, width)),  # noqa: B023
            )
            for _ in range(RUNS)
        ]
        own_s, ratio = (
            median(own for own, _ in pairs),
            median(own / other for own, other in pairs),
        )
        print(f"{width}x{height}: {own_s * 1e3:.2f} ms, {ratio:.2f} x a Rich table of 8 rows")


if __name__ == "__main__":
    main()
