"""The roofline and goodput on the screen: there while a run goes on, one type of numbers at a time."""

from dataclasses import replace

from journey import QUICK, idle, shown, until

DECLARED = """
    \"\"\"Declared: x.\"\"\"
    import time
    import torch
    from gpulab import Scenario, Work
    scenario = Scenario("mine")

    @scenario.variant
    def copies(lab):
        x = torch.zeros(4096, dtype=torch.int8)
        return Work(lambda: x.clone(), inputs=x, bytes=2 * x.nbytes, dtype="int8")

    @scenario.variant(against=None)
    def adds(lab):
        x = torch.rand(4096)
        def step():
            with lab.phase("data"):
                time.sleep(0.001)
            with lab.useful():
                return x + 1
        return Work(step, inputs=x, bytes=2 * x.nbytes, flops=4096)

    @scenario.variant(against=None)
    def multiplies(lab):
        x = torch.rand(256, 256).bfloat16()
        return Work(lambda: x @ x, inputs=x, bytes=3 * x.nbytes, flops=2 * 256**3, dtype="bf16")
"""


def test_roofline_and_phases_are_drawn_while_the_run_goes_on_and_goodput_at_its_end(lab, drive):
    async def journey(pilot):
        await pilot.press("enter")
        await until(pilot, lambda: not idle(pilot))
        await pilot.press("3")
        await until(pilot, lambda: "FLOP/byte" in shown(pilot) and "B adds" in shown(pilot))
        assert not idle(pilot)  # it is there before the run has ended
        await pilot.press("2")
        await until(pilot, lambda: "phase share" in shown(pilot) and "data 9" in shown(pilot))
        assert not idle(pilot)
        await until(pilot, lambda: idle(pilot))
        await pilot.press("tab", "end")
        await until(pilot, lambda: "aten::add" in shown(pilot) or "aten::clone" in shown(pilot))  # its operations
        await pilot.press("3")
        assert "fp32, ridge" in shown(pilot)  # the first type is int8, which has nothing to draw
        assert "C multiplies" in shown(pilot)
        for family in ("fp16/bf16", "int8", "fp32"):
            await pilot.press("f")
            assert f"{family}, ridge" in shown(pilot)
        await pilot.press("end")
        assert "C multiplies: " in shown(pilot)  # and why it is there

    drive(journey, lab.write("declared.py", DECLARED), settings=replace(QUICK, time_s=1.5))


def test_before_a_run_the_roofline_says_why_there_is_none(drive):
    async def journey(pilot):
        await pilot.press("3")
        assert "Enter runs it" in shown(pilot)

    drive(journey)
