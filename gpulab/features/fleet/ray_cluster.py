"""`--fleet ray SCENARIO`: a task for each GPU of a Ray cluster runs it, and returns its run file.
Ray places the tasks; nothing here does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpulab.catalog.catalog import read_file
from gpulab.core.units import plural
from gpulab.headless.output import Terminal, check_run_file
from gpulab.options import Options, UsageError
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.session.launch import Launch, plan, start
from gpulab.session.temporary import temporary_folder

_INSTALL = "--fleet ray needs Ray: pip install 'gpulab[ray]', here and on every node"
_NO_CLUSTER = "--fleet ray: no Ray cluster is running here: ray start, or set RAY_ADDRESS"


def measure_on_cluster(launch: Launch, folder: Path, options: Options, terminal: Terminal) -> int:
    """Run the scenario once on each GPU; returns how many of them gave no run file. UsageError
    where there is no Ray, no cluster, or no GPU in it.
    """
    try:
        import ray
    except ImportError:
        raise UsageError(_INSTALL) from None
    try:
        ray.init(address="auto", log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError) as error:
        raise UsageError(_NO_CLUSTER) from error
    try:
        tasks = _started(launch, folder, options)
        if not tasks:
            raise UsageError("--fleet ray: no node of the cluster has a GPU (or --device cpu)")
        what = "node" if options.device == "cpu" else "GPU"
        terminal.note(f"Ray: {plural(len(tasks), what)}, a task each", "bold")
        return _collected(tasks, terminal)
    finally:
        ray.shutdown()


def _started(launch: Launch, folder: Path, options: Options) -> dict[Any, tuple[str, Path]]:
    """The tasks, each with the name of its host and its file."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    settings = replace(options, profile="off")
    needs = {"num_cpus": 0, "num_gpus": 1}
    if options.device == "cpu":
        needs = {"num_cpus": 1, "num_gpus": 0}
    tasks = {}
    for number, (node, host) in enumerate(_places("CPU" if options.device == "cpu" else "GPU")):
        path = folder / f"{host.partition('.')[0]}-{number}.jsonl"
        check_run_file(path)
        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        task = ray.remote(_measured).options(**needs, max_retries=0, scheduling_strategy=strategy)
        started = task.remote(launch.entry.path.name, launch.entry.source, settings)
        tasks[started] = host, path
    return tasks


def _places(kind: str) -> Iterator[tuple[str, str]]:
    """(node, host) of every GPU, or of every node with a CPU."""
    import ray

    for node in ray.nodes():
        count = int(node["Resources"].get(kind, 0)) if node["Alive"] else 0
        for _ in range(count if kind == "GPU" else min(count, 1)):
            yield node["NodeID"], node["NodeManagerHostname"]


def _collected(tasks: dict[Any, tuple[str, Path]], terminal: Terminal) -> int:
    """Write run files as tasks end; returns how many gave none."""
    import ray

    lost = 0
    while tasks:
        (done,), _ = ray.wait(list(tasks), num_returns=1)
        host, path = tasks.pop(done)
        try:
            data = ray.get(done)
        except ray.exceptions.RayError as error:
            reason = getattr(error, "cause", None) or f"lost ({type(error).__name__})"
            terminal.note(f"{host}: failed: {reason}", "yellow")
            lost += 1
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        terminal.note(f"{host}: done, {path.name}", "dim")
    return lost


def _measured(name: str, source: str, settings: Options) -> bytes:
    """The run file of a scenario, whose text is given with the name of its file; runs on a node.
    UsageError where it cannot run there.
    """
    with temporary_folder() as folder:
        scenario = folder / Path(name).name
        scenario.write_text(source)
        request = plan(Launch(read_file(scenario)), settings)
        if isinstance(request, RunReport):
            reason = sentence(request.reason) if request.reason else "it cannot run here"
            raise UsageError(f"{name}: {reason}")
        path = folder / "run.jsonl"
        start(request, path).wait()
        return path.read_bytes()
