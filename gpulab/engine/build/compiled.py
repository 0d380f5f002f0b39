"""torch.compile between builds and blocks. Nothing here imports it: unused, it costs nothing."""

from __future__ import annotations

import os
import sys
from typing import Any

from gpulab.core.jobs import ScenarioFile, TimedJob, WorkerJob
from gpulab.core.statuses import Shows

_THREADS = "TORCHINDUCTOR_COMPILE_THREADS"


def keep_code_of_the_run(job: WorkerJob) -> None:
    """Set folders in which the first process leaves what JAX and NVRTC compiled; torch and Triton
    have such a folder anyway.
    """
    if not isinstance(job, TimedJob) or job.folder is None:
        return
    # each process is to start from nothing
    if job.shows == Shows.CURVE:
        return
    folders = {
        "GPULAB_KERNELS": f"{job.folder}/kernels",
        "JAX_COMPILATION_CACHE_DIR": f"{job.folder}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    chosen = job.subject.env if isinstance(job.subject, ScenarioFile) else {}
    for name in folders.keys() - chosen.keys():
        os.environ.setdefault(name, folders[name])


def try_in_threads() -> None:
    """Have the compiler try its candidates in as many threads as there are cores, and in no helper
    processes.

    It reads the variable once to decide on processes, which take six seconds to end; and again for
    each matmul that it tunes, where one thread took 29 s for twenty candidates.
    """
    config: Any = sys.modules.get("torch._inductor.config")
    if config is not None and os.environ.get(_THREADS) == "1":
        config.compile_threads = 1
        os.environ[_THREADS] = str(len(os.sched_getaffinity(0)))


def strict() -> None:
    """Past 8 recompilations dynamo runs eager without a word: make that an error."""
    if dynamo := sys.modules.get("torch._dynamo"):
        dynamo.config.fail_on_recompile_limit_hit = True


def vector_instructions() -> str | None:
    """The vector instructions that torch's compiler has found; None before it has looked."""
    isa = sys.modules.get("torch._inductor.cpu_vec_isa")
    if isa is None or not isa.valid_vec_isa_list.cache_info().currsize:
        return None
    return str(isa.pick_vec_isa())


def know_vector_instructions(found: str) -> None:
    """Spare the compiler its test programs, which take a second in each process: another process
    has run them.
    """
    isa = sys.modules.get("torch._inductor.cpu_vec_isa")
    config = sys.modules.get("torch._inductor.config")
    if isa is None or config is None:
        return
    with config.patch({"cpp.vec_isa_ok": True}):
        isa.valid_vec_isa_list.cache_clear()
        picked = str(isa.pick_vec_isa())
    if picked != found:
        isa.valid_vec_isa_list.cache_clear()


def frames() -> int:
    """Frames of Python code that were compiled so far: to torch each is one operation."""
    dynamo = sys.modules.get("torch._dynamo")
    return sum(dynamo.utils.counters["frames"].values()) if dynamo else 0


def reset() -> None:
    """Forget compiled code, so that the next build compiles its own and no limit fills up."""
    dynamo = sys.modules.get("torch._dynamo")
    # Any optimizer imports dynamo. Where a GPU is, its reset imports the whole compiler, which
    # takes 3 seconds.
    if dynamo and dynamo.convert_frame.FRAME_COUNTER:
        dynamo.reset()


def end() -> None:
    """End the compiler's own processes: they are not the scenario's."""
    if workers := sys.modules.get("torch._inductor.async_compile"):
        workers.shutdown_compile_workers()


def mark_step() -> None:
    """Tell CUDA graph trees that a new iteration begins."""
    # Any optimizer imports torch._inductor; asking torch itself would then import its compiler too,
    # for 3 seconds.
    if "torch._inductor.cudagraph_trees" in sys.modules:
        import torch

        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
