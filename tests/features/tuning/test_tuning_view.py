"""What a variant chose, as a person reads it."""

from conftest import printed
from run_reports import run, variant

from gpulab.core.payloads import Tried, Tuning
from gpulab.features.tuning.view import tunings

TUNING = Tuning(
    tried=[
        Tried(config="block=128 warps=4", time_s=1.0e-3, blocks=40, ratio=1.0),
        Tried(
            config="block=256 warps=4",
            time_s=1.004e-3,
            blocks=40,
            ratio=1.004,
            low=0.999,
            high=1.009,
        ),
        Tried(config="block=64 warps=4", time_s=1.1e-3, blocks=40, ratio=1.1, low=1.09, high=1.12),
        Tried(config="block=32 warps=4", time_s=2e-3, blocks=5, ratio=2.0),
        Tried(config="block=512 warps=4", reason="out of resource: shared memory"),
    ],
    tied=1,
    rounds=35,
    seconds=4.2,
    build_s=1.5,
    at="2026-11-20T10:00:00+00:00",
)


def lines(tuning, *, cached=False, width=80):
    report = run(variant("plain"), variant("tuned", tuning=tuning, tuning_cached=cached))
    return [line.rstrip() for line in printed(tunings(report), width).splitlines()]


def test_every_candidate_has_its_time_and_each_finalist_its_interval():
    shown = lines(TUNING, width=120)
    assert shown[0].split() == [
        "candidates",
        "of",
        "tuned",
        "time",
        "of",
        "best",
        "99",
        "%",
        "interval",
    ]
    assert [line.split("  ")[0] for line in shown[1:5]] == [
        tried.config for tried in TUNING.tried[:4]
    ]
    assert shown[1].endswith("chosen")
    assert "1.004x  0.999 to 1.009  as good" in shown[2]
    assert "1.090 to 1.120" in shown[3]
    assert shown[4].split()[-1] == "2.00x"
    assert shown[5] == "block=512 warps=4: out of resource: shared memory"
    assert shown[6].startswith(
        "taking the second (block=256 warps=4) costs 0.4 % (-0.1 to 0.9 %); the chosen one is"
    )
    assert (
        "4 candidates in 125 blocks, final of 3 in 35 paired rounds, 1 eliminated before · 4.20 s"
        in " ".join(shown)
    )


def test_a_choice_of_an_earlier_run_says_when_and_how_to_measure_again():
    assert lines(TUNING, cached=True, width=200)[-1].endswith(
        " · measured 2026-11-20, in an earlier run (--retune: again)"
    )


def test_a_line_of_a_configuration_of_five_figures_fits_80_columns():
    config = "tile=128x256x64 warps=8 stages=4"
    tried = [
        Tried(config=config, time_s=1.44e-3, ratio=1.0),
        Tried(config=config, time_s=1.44e-3, ratio=1.02, low=1.001, high=1.04),
    ]
    shown = lines(Tuning(tried=tried, tied=1))
    assert [line.split("  ")[0] for line in shown[1:3]] == [config, config]
    assert max(map(len, shown[:3])) <= 80


def test_one_candidate_has_no_second():
    shown = lines(Tuning(tried=TUNING.tried[:1]))
    assert "no other candidate was left to compare it with" in shown
    assert tunings(run(variant("plain"))) is None
    many = [*TUNING.tried[:1], *(Tried(config=f"n={n}", time_s=1e-3, ratio=2.0) for n in range(40))]
    assert "and 17 slower ones, which the JSON has" in lines(Tuning(tried=many))
