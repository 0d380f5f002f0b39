"""gpulab: a terminal lab for GPU performance.

What the author of a scenario imports needs the standard library only. Scripts and notebooks also
find `run` and `load` here, which give the same report as the command line:

>>> import gpulab
>>> report = gpulab.run("batched_matmul", device="cpu", smoke=True)
>>> [variant.name for variant in report.variants]
['loop', 'graphed', 'bmm']
>>> report == gpulab.load(report.run_file)
True
"""

from gpulab.version import __version__ as __version__

# as that of typing, which would be imported before the program can set a handler
TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpulab.report.sentences import sentence as sentence
    from gpulab.report.sentences import to_json as to_json
    from gpulab.scenario import GiB as GiB
    from gpulab.scenario import KiB as KiB
    from gpulab.scenario import Lab as Lab
    from gpulab.scenario import MiB as MiB
    from gpulab.scenario import Scenario as Scenario
    from gpulab.scenario import Work as Work
    from gpulab.scenario import tune as tune
    from gpulab.session.scripting import load as load
    from gpulab.session.scripting import run as run

__all__ = [
    "GiB",
    "KiB",
    "Lab",
    "MiB",
    "Scenario",
    "Work",
    "load",
    "run",
    "sentence",
    "to_json",
    "tune",
]


def __getattr__(name: str) -> object:
    """All of it is imported when it is used: a scenario's file needs no session, and the program
    none of it.
    """
    if name not in __all__:
        raise AttributeError(f"module 'gpulab' has no attribute {name!r}")
    if name in ("load", "run"):
        from gpulab.session import scripting

        return getattr(scripting, name)
    if name in ("sentence", "to_json"):
        from gpulab.report import sentences

        return getattr(sentences, name)
    from gpulab import scenario

    return getattr(scenario, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
