"""The variants of a run that delays parts of a step."""

from __future__ import annotations

from functools import partial

from gpulab.core.jobs import ScenarioFile
from gpulab.scenario import Scenario, Variant


def derived_scenario(scenario: Scenario, subject: ScenarioFile) -> Scenario | None:
    """One step several times, each with another part delayed: the lab's own variants, whose outputs
    are checked as any other. None where nothing is to be delayed.
    """
    if all(variant.delays is None for variant in subject.variants):
        return None
    from gpulab.features.trials.hooks import Hooks, hooked  # few runs delay anything

    derived = Scenario(topic=scenario.topic)
    for info in subject.variants:
        variant = scenario.variants[info.function or info.name]
        function = variant.function
        if info.delays:
            function = hooked(function, partial(Hooks, delays=info.delays))
        derived.add(Variant(name=info.name, unchecked=variant.unchecked, function=function))
    return derived
