"""Which scenarios there are: files read as text, in the order in which they are looked for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path

import gpulab
from gpulab.model.listing import Row
from gpulab.model.plain import plain
from gpulab.model.scenario import Scenario
from gpulab.run.needs import first_missing
from gpulab.run.reader import EMPTY, Source, UnreadableError, read_source

COURSE = {
    "data movement": (
        "pinned_memory preallocation double_buffering input_pipeline memory_layout channels_last utilization "
        "cache_footprint"
    ),
    "launch and host overhead": (
        "cuda_graphs batched_matmul sync_every_step small_kernels optimizer_step cold_start timing_without_sync "
        "graph_breaks dynamic_shapes"
    ),
    "compute": (
        "batch_size roofline_tour precision autocast_training gradient_accumulation recomputation training_step "
        "latency_throughput compile_workloads matmul_epilogue"
    ),
    "CUDA C++ kernels": (
        "coalescing vectorized_loads arithmetic_intensity roofline_walk loop_unrolling launch_bounds "
        "restrict_pointers shared_memory_tiling shared_memory_prefetch divergence occupancy reduction "
        "batched_gemm_cublas"
    ),
    "Triton, compilers, attention": (
        "vector_add fused_softmax layernorm_gelu triton_matmul persistent_matmul attention compile_modes jax_jit"
    ),
    "distributed": (
        "gradient_buckets collectives pipeline_handoff hybrid_sharding kv_cache model_pool speculative_decoding"
    ),
}
"""The order in which the sources teach: topics, and the lessons in each. Others follow by their names."""
_PLACE = {name: place for place, name in enumerate(" ".join(COURSE.values()).split())}


class ScenarioNotFoundError(LookupError):
    """Nothing to run goes by that name; the message says what there is."""


@dataclass(frozen=True)
class Entry:
    """One file of the catalog: a scenario that can be listed, or the error that keeps it from running."""

    name: str
    path: Path
    sha256: str = ""
    source: Source = EMPTY
    error: UnreadableError | None = None

    @property
    def scenario(self) -> Scenario | None:
        return self.source.scenario

    @property
    def title(self) -> str:
        """The first line of the lesson."""
        return plain(self.source.lesson.partition("\n")[0]) or self.name

    @property
    def missing(self) -> str | None:
        """The need that this machine does not meet, with the reason."""
        return first_missing(self.scenario.needs) if self.scenario else None

    @property
    def row(self) -> Row:
        """What a list shows of it; safe for a terminal."""
        scenario = self.scenario
        if scenario is None:
            return Row(name=self.name, title=self.title, path=str(self.path), error=plain(str(self.error)))
        return Row(
            name=self.name,
            topic=plain(scenario.topic),
            title=self.title,
            lesson=plain(self.source.lesson),
            claim=plain(scenario.claim),
            path=str(self.path),
            variants=tuple(scenario.variants),
            summaries=tuple(plain(one.summary) for one in scenario.variants.values()),
            params=scenario.params,
            cpu=scenario.cpu,
            sweep=scenario.sweep,
            missing=self.missing,
        )


def read_file(path: Path) -> Entry:
    """Read one file. An unreadable one is an entry too, with its error."""
    path = path.resolve()
    try:
        data = path.read_bytes()
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        return Entry(path.stem, path, error=UnreadableError(1, f"cannot be read: {error}", "is this a Python file?"))
    digest = sha256(data).hexdigest()
    try:
        return Entry(path.stem, path, digest, read_source(text))
    except UnreadableError as error:
        return Entry(path.stem, path, digest, error=error)


def folders() -> list[Path]:
    """Where scenarios are looked for: here, `$GPULAB_SCENARIOS`, the ones that ship."""
    named = [Path(one).expanduser() for one in os.environ.get("GPULAB_SCENARIOS", "").split(os.pathsep) if one]
    # The package first: an editable install keeps its scenarios beside the package instead.
    package = Path(gpulab.__file__).parent
    shipped = package / "scenarios"
    return [Path("scenarios"), *named, shipped if shipped.is_dir() else package.parent / "scenarios"]


def catalog(paths: Iterable[Path] = ()) -> list[Entry]:
    """All scenarios, by topic; of several of one name the first that is found. `paths` come before the folders."""
    found: dict[str, Entry] = {}
    for place in [*paths, *folders()]:
        for file in sorted(place.glob("*.py")) if place.is_dir() else [place] if place.is_file() else []:
            entry = read_file(file)
            if entry.error or entry.scenario:
                found.setdefault(entry.name, entry)
    return sorted(found.values(), key=_order)


def find(name: str) -> Entry:
    """A scenario by its name or its file. A broken file is an entry with its error."""
    if name.endswith(".py") or os.sep in name:
        path = Path(name)
        if not path.is_file():
            raise ScenarioNotFoundError(f"there is no file {name}")
        entry = read_file(path)
        if not entry.error and not entry.scenario:
            raise ScenarioNotFoundError(
                f"{name} has no Scenario; to time a function of it, run {name}:FUNCTION, "
                f"with one of {', '.join(entry.source.functions) or '(it has none)'}"
            )
        return entry
    entries = {entry.name: entry for entry in catalog()}
    if name in entries:
        return entries[name]
    close = get_close_matches(name, entries, n=3)
    raise ScenarioNotFoundError(
        f"there is no scenario {name!r}" + (f"; did you mean {' or '.join(close)}?" if close else "")
    )


def _order(entry: Entry) -> tuple[int, str, int, str]:
    topics, topic = list(COURSE), entry.scenario.topic if entry.scenario else ""
    place = topics.index(topic) if topic in COURSE else len(topics)
    return place, topic, _PLACE.get(entry.name, len(_PLACE)), entry.name
