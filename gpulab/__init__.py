"""gpulab: a terminal lab for GPU performance.

What the author of a scenario imports needs the standard library only. Scripts and notebooks also
find `run`, `load` and `plot` here, which give the same as the command line, and the names of what
they return and raise:

>>> import gpulab
>>> report = gpulab.run("batched_matmul", device="cpu", smoke=True)
>>> [variant.name for variant in report.variants]
['loop', 'graphed', 'bmm']
>>> report == gpulab.load(report.run_file)
True
"""

# as that of typing, which would be imported before the program can set a handler
TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpulab.catalog.catalog import ScenarioNotFoundError as ScenarioNotFoundError
    from gpulab.core.events import Event
    from gpulab.core.findings import Finding as Finding
    from gpulab.core.run_file import RunFileError as RunFileError
    from gpulab.core.statuses import ExitCode as ExitCode
    from gpulab.core.statuses import Verdict as Verdict
    from gpulab.headless.scripting import compare as compare
    from gpulab.headless.scripting import history as history
    from gpulab.headless.scripting import load as load
    from gpulab.headless.scripting import plot as plot
    from gpulab.headless.scripting import run as run
    from gpulab.options import UsageError as UsageError
    from gpulab.report.report import RunReport as RunReport
    from gpulab.report.report import VariantReport as VariantReport
    from gpulab.report.sentences import sentence as sentence
    from gpulab.report.sentences import to_json as to_json
    from gpulab.scenario import GiB as GiB
    from gpulab.scenario import KiB as KiB
    from gpulab.scenario import Lab as Lab
    from gpulab.scenario import MiB as MiB
    from gpulab.scenario import Scenario as Scenario
    from gpulab.scenario import Work as Work
    from gpulab.scenario import tune as tune
    from gpulab.stats.comparison import Comparison as Comparison
    from gpulab.steps import step as step
    from gpulab.version import __version__ as __version__

_MODULES = {
    "Comparison": "stats.comparison",
    "ExitCode": "core.statuses",
    "Finding": "core.findings",
    "GiB": "scenario",
    "KiB": "scenario",
    "Lab": "scenario",
    "MiB": "scenario",
    "RunFileError": "core.run_file",
    "RunReport": "report.report",
    "Scenario": "scenario",
    "ScenarioNotFoundError": "catalog.catalog",
    "UsageError": "options",
    "VariantReport": "report.report",
    "Verdict": "core.statuses",
    "Work": "scenario",
    "compare": "headless.scripting",
    "history": "headless.scripting",
    "load": "headless.scripting",
    "plot": "headless.scripting",
    "run": "headless.scripting",
    "sentence": "report.sentences",
    "to_json": "report.sentences",
    "step": "steps",
    "tune": "scenario",
    "__version__": "version",
}
"""Where each public name is."""

__all__ = [*_MODULES]


def __getattr__(name: str) -> object:
    """All of it is imported when it is used: a scenario's file needs no session, and the program
    none of it.
    """
    if name not in _MODULES:
        raise AttributeError(f"module 'gpulab' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"gpulab.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def events_of_features() -> "list[type[Event]]":
    """Return the kinds of events that features add to those of the core, which knows no feature."""
    from gpulab.features import event_types

    return event_types()
