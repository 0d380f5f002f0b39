"""`--fleet ray SCENARIO`: a task for each GPU of a Ray cluster runs it, and its run file comes back
as it grows. Ray places the tasks; nothing here does.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from gpulab.core.units import plural
from gpulab.headless.options import Options
from gpulab.headless.output import Terminal, check_run_file
from gpulab.session.launch import Launch
from gpulab.session.settings import Settings, UsageError
from gpulab.features.fleet.streamed import streamed

_INSTALL = "--fleet ray needs Ray: pip install 'gpulab[ray]', here and on every node"
_WAIT_S = 1.0
_CONNECT_S = 5.0


@dataclass
class _Work:
    """One task: where it is to run, and its file."""

    number: int
    host: str
    node: str | None
    """None: wherever Ray has room."""
    path: Path
    chunks: Any = None
    """Ray's generator of them."""
    file: BinaryIO | None = None


def measure_on_cluster(launch: Launch, folder: Path, options: Options, terminal: Terminal) -> int:
    """Run the scenario once on each GPU; returns how many of them gave no whole run file.
    UsageError where there is no Ray, no cluster, or no GPU in it.
    """
    try:
        import ray
    except ImportError:
        raise UsageError(_INSTALL) from None
    _check_address()
    try:
        ray.init(address="auto", log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError) as error:
        message = "--fleet ray: no Ray cluster is running here: ray start, or set RAY_ADDRESS"
        raise UsageError(message) from error
    try:
        return _Cluster(launch, folder, options, terminal).run()
    finally:
        ray.shutdown()


def _check_address() -> None:
    """UsageError where nobody listens at RAY_ADDRESS: Ray itself would try for minutes."""
    address = os.environ.get("RAY_ADDRESS", "")
    if address.startswith("ray://"):
        raise UsageError(f"--fleet ray: RAY_ADDRESS={address}: run it on a node of the cluster")
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), _CONNECT_S).close()
    except (OSError, OverflowError) as error:
        message = f"--fleet ray: RAY_ADDRESS={address}: {getattr(error, 'strerror', None) or error}"
        raise UsageError(message) from None


class _Cluster:
    def __init__(self, launch: Launch, folder: Path, options: Options, terminal: Terminal) -> None:
        import ray

        self._terminal = terminal
        self._folder = folder
        self._on_cpu = options.device == "cpu"
        self._settings = Settings(
            device=options.device,
            chosen=options.chosen,
            time_s=options.time_s,
            quick=options.quick,
            smoke=options.smoke,
            profile="off",
        )
        self._name = launch.entry.path.name
        self._source = launch.entry.source
        self._task = ray.remote(streamed)

    def run(self) -> int:
        """How many of them gave no whole run file."""
        works = list(self._works())
        if not works:
            raise UsageError("--fleet ray: no node of the cluster has a GPU (or --device cpu)")
        for work in works:
            check_run_file(work.path)
        what = "node" if self._on_cpu else "GPU"
        self._terminal.note(f"Ray: {plural(len(works), what)}, a task each", "bold")
        for work in works:
            self._start(work)
        return self._follow(works)

    def _works(self) -> Iterator[_Work]:
        import ray

        number = 0
        for node in ray.nodes():
            count = 1 if self._on_cpu else int(node["Resources"].get("GPU", 0))
            if not node["Alive"] or (self._on_cpu and not node["Resources"].get("CPU")):
                count = 0
            for _ in range(count):
                host = node["NodeManagerHostname"]
                path = self._folder / f"{host.partition('.')[0]}-{number}.jsonl"
                yield _Work(number, host, node["NodeID"], path)
                number += 1

    def _start(self, work: _Work) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        strategy: Any = "DEFAULT"
        if work.node is not None:
            strategy = NodeAffinitySchedulingStrategy(work.node, soft=False)
        work.path.parent.mkdir(parents=True, exist_ok=True)
        work.file = work.path.open("xb")
        work.chunks = self._task.options(
            num_cpus=1 if self._on_cpu else 0,
            num_gpus=0 if self._on_cpu else 1,
            max_retries=0,
            num_returns="streaming",
            scheduling_strategy=strategy,
        ).remote(self._name, self._source, self._settings)

    def _follow(self, works: Sequence[_Work]) -> int:
        """Take chunks as they come until all tasks have ended; returns how many failed for good."""
        import ray

        running = {work.chunks: work for work in works}
        lost = 0
        try:
            while running:
                ready, _ = ray.wait(list(running), num_returns=1, timeout=_WAIT_S)
                for chunks in ready:
                    work = running.pop(chunks)
                    again, failed = self._take(work)
                    lost += failed
                    if again is not None:
                        running[again.chunks] = again
        finally:
            for chunks in running:
                ray.cancel(chunks)
        return lost

    def _take(self, work: _Work) -> tuple[_Work | None, int]:
        """(what is to be followed from now on, how many failed for good) once a task has sent
        something, or has ended.
        """
        import ray

        assert work.file is not None
        try:
            work.file.write(ray.get(next(work.chunks)))
            work.file.flush()
        except StopIteration:
            work.file.close()
            self._terminal.note(f"{work.host}: done, {work.path.name}", "dim")
            return None, 0
        except ray.exceptions.RayTaskError as error:
            work.file.close()
            self._terminal.note(f"{work.host}: failed: {error.cause}", "yellow")
            return None, 1
        except ray.exceptions.RayError as error:
            work.file.close()
            return self._elsewhere(work, type(error).__name__)
        return work, 0

    def _elsewhere(self, work: _Work, why: str) -> tuple[_Work | None, int]:
        """A node that died: its work is tried once more, wherever Ray has room."""
        if work.node is None:
            self._terminal.note(f"{work.host}: lost again ({why}): given up", "yellow")
            return None, 1
        message = f"{work.host}: its node or task died ({why}): tried once more elsewhere"
        self._terminal.note(message, "yellow")
        path = work.path.with_stem(f"{work.path.stem}-again")
        again = replace(work, host=f"{work.host} (again)", node=None, path=path)
        self._start(again)
        return again, 0
