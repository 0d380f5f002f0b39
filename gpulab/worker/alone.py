"""One variant in a process where no other is built; and the baseline before others are, and after them."""

from __future__ import annotations

from gpulab.protocol.events import AloneRun, Examined
from gpulab.protocol.finding import finding
from gpulab.protocol.statuses import CheckKind, Stage
from gpulab.scenario import Variant
from gpulab.worker.context import WorkerContext
from gpulab.worker.handover import Handover
from gpulab.worker.measurement import Measurement
from gpulab.worker.preparation import LONG_BLOCK_S, close
from gpulab.worker.process.exception_text import first_line
from gpulab.worker.process.failure import is_out_of_memory
from gpulab.worker.timing.alone import step_alone_s
from gpulab.worker.timing.candidate import Candidate, known_candidate, warm


def run_alone(context: WorkerContext, variant: Variant, before: Handover) -> Handover:
    """Build and time one variant: what cannot be built without another one is compared with nothing."""
    facts = next(facts for facts in before.candidates if facts.name == variant.name)
    channel = context.reporter.channel
    try:
        time_s = _step_s(context, known_candidate(facts, variant))
    except BaseException as error:
        if not is_out_of_memory(error):
            reason = finding("fails_alone", variant.name, message=first_line(error))
            channel.emit(Examined(variant=variant.name, check=CheckKind.ALONE, ok=False, reason=reason))
        return Handover()
    channel.emit(AloneRun(variant=variant.name, process=before.process, time_s=time_s))
    return Handover(alone_s=time_s / facts.items)


def report_baseline(context: WorkerContext, before_s: float | None, measurement: Measurement) -> None:
    """What a step of the baseline took before others were built, and takes after the last round."""
    baseline = measurement.candidates[0]
    if before_s is None or baseline.build is None or measurement.baseline_lost:
        return
    later_s = step_alone_s(context.clock, baseline, baseline.build)
    run = AloneRun(variant=baseline.name, process=context.number, time_s=before_s, later_s=later_s)
    context.reporter.channel.emit(run)


def _step_s(context: WorkerContext, candidate: Candidate) -> float:
    position, builder, variant = context.reporter.position, context.builder, candidate.variant
    position.move(Stage.BUILD, variant.name)
    builder.pad()
    build = builder.build(variant)
    position.move(Stage.MEASURE, variant.name)
    builder.first_step(build)
    if candidate.block_s < LONG_BLOCK_S:
        warm(context.clock, candidate, build)
    time_s = step_alone_s(context.clock, candidate, build)
    close(context, variant, build)
    return time_s
