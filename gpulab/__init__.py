"""gpulab: a terminal lab for GPU performance.

What the author of a scenario imports needs the standard library only. Scripts and notebooks also find `run` and
`load` here, which give the same report as the command line:

>>> import gpulab
>>> report = gpulab.run("batched_matmul", device="cpu", smoke=True)
>>> [variant.name for variant in report.variants]
['loop', 'bmm']
>>> report == gpulab.load(report.run_file)
True
"""

from typing import TYPE_CHECKING

from gpulab.scenario import GiB, KiB, Lab, MiB, Scenario, Work
from gpulab.version import __version__ as __version__

if TYPE_CHECKING:
    from gpulab.session.scripting import load as load
    from gpulab.session.scripting import run as run

__all__ = ["GiB", "KiB", "Lab", "MiB", "Scenario", "Work", "load", "run"]


def __getattr__(name: str) -> object:
    """`run` and `load` are imported when they are used: a scenario's file needs neither."""
    if name not in ("load", "run"):
        raise AttributeError(f"module 'gpulab' has no attribute {name!r}")
    from gpulab.session import scripting

    return getattr(scripting, name)
