# === inside_the_process
# Steps that forge their time from inside the process that times them.

import ctypes
import gc
import itertools
import struct
import sys
import threading
import time
import weakref

N = 192
PART = 0.5
ROW, HEAD = struct.Struct("<IIIddIIdQd"), struct.Struct("<QQ")
VARIANT, TIME, CPU, ENDED, STEPS = 2, 3, 4, 7, 8


def reference(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: a @ b, inputs=(a, b))


def caller(name):
    """The frame of a function of the lab that led here."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != name:
        frame = frame.f_back
    return frame


def write_local(frame, name, value):
    frame.f_locals[name] = value
    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def looked_at(a, b, during, alone=False):
    """A step that calls a function within timed blocks, after it has computed; with `alone`, also
    where the checks time a single step.
    """

    def step():
        result = a @ b
        frame = sys._getframe(1).f_back  # of what calls each step
        if frame.f_code.co_name == "_run" and (alone or caller("single_s") is None):
            during(frame)
        return result

    return Work(step, inputs=(a, b))


def followed(a, b, after):
    """A step whose result calls a function when it is dropped, after a block."""
    last = []

    def dropped(_):
        frame = caller("_timed")
        if frame is not None and isinstance(frame.f_locals.get("block"), tuple):
            after(frame)

    def step():
        result = a @ b
        last[:] = [weakref.ref(result, dropped)]
        return result

    return Work(step, inputs=(a, b))


def shorter(block, lead_in=0):
    """A block that claims a part of its time; with `lead_in` it ends earlier, too."""
    hidden_s = block.time_s * (block.steps + lead_in) * (1 - PART) if lead_in else 0.0
    return block._replace(
        time_s=block.time_s * PART, cpu_s=block.cpu_s * PART, ended=block.ended - hidden_s
    )


def the(kind, where=lambda found: True):
    """An object of the lab, by the name of its class."""
    gc.unfreeze()
    return next(
        found for found in gc.get_objects() if type(found).__name__ == kind and where(found)
    )


def rewrite(buffer, change):
    """Rows that were not sent yet, in the memory that the supervisor shares."""
    count, _ = HEAD.unpack_from(buffer._memory)
    places = [HEAD.size + place * ROW.size for place in range(count)]
    rows = [list(ROW.unpack_from(buffer._memory, place)) for place in places]
    change(rows)
    for place, row in zip(places, rows, strict=True):
        ROW.pack_into(buffer._memory, place, *row)


def rounds_of(rows):
    return [list(entries) for _, entries in itertools.groupby(rows, lambda row: row[:2])]


def shorten(row, lead_in, before=None):
    """Seconds that a row hides, no more than passed since the row `before`; `lead_in`: blocks and
    what comes before them, in blocks.
    """
    block_s = row[TIME] * row[STEPS]
    hidden_s = block_s * (1 - PART) * lead_in
    if before:
        hidden_s = min(hidden_s, row[ENDED] - before[ENDED] - 1.05 * PART * block_s)
    row[TIME] *= PART
    row[CPU] *= PART
    return hidden_s


class Proxy:
    def __init__(self, instead, **methods):
        self.__dict__.update(instead=instead, **methods)

    def __getattr__(self, name):
        return getattr(self.instead, name)

    def __setattr__(self, name, value):
        setattr(self.instead, name, value)

    def __len__(self):
        return len(self.instead)


def rewritten(a, b, change):
    """A step in whose process rows are changed just before they are sent."""

    def step():
        result = a @ b
        timed = caller("_timed")
        if timed is None:
            return result
        recorder, candidate = timed.f_locals["self"].recorder, timed.f_locals["candidate"]
        buffer = recorder._buffer
        if not isinstance(buffer, Proxy):
            own = buffer.names.index(candidate.name)

            def take():
                rewrite(buffer, lambda rows: change(rows, own))
                return buffer.take()

            recorder._buffer = Proxy(buffer, take=take)
        return result

    return Work(step, inputs=(a, b))


def start_in_the_frame(lab):
    """Moves the start of the block in the frame of the lab's clock.

    Caught by: elapsed time or computes_when_waited_for
    """
    a, b = torch.randn(N, N), torch.randn(N, N)
    return started_later(a, b, lambda frame, moved: write_local(frame, "started", moved))


def started_later(a, b, move):
    """A step that has the start of its block moved."""
    began = []

    def during(frame):
        calls = caller("call_each")
        if not began or began[0] is not calls:
            began[:] = [calls, frame.f_locals["started"]]
        now = time.perf_counter_ns()
        move(frame, began[1] + int((now - began[1]) * (1 - PART)))

    return looked_at(a, b, during)


def start_object_rewritten(lab):
    """Writes into the integer that holds the start of the block.

    Caught by: elapsed time or computes_when_waited_for
    """
    a, b = torch.randn(N, N), torch.randn(N, N)

    def move(frame, moved):
        digits = ctypes.c_uint32 * 2
        held = digits.from_address(id(frame.f_locals["started"]) + 24)
        held[0], held[1] = moved & (2**30 - 1), moved >> 30

    began = []

    def during(frame):
        calls = caller("call_each")
        started = frame.f_locals["started"]
        if not began or began[0] is not calls:
            began[:] = [calls, int(str(started))]
        move(frame, began[1] + int((time.perf_counter_ns() - began[1]) * (1 - PART)))

    return looked_at(a, b, during)


def start_by_a_tracer(lab):
    """A tracer of the lab's frame moves the start of the block, and ends itself.

    Caught by: elapsed time or computes_when_waited_for
    """
    a, b = torch.randn(N, N), torch.randn(N, N)

    def traced(frame, event, argument):
        if "ended" in frame.f_locals:
            passed = frame.f_locals["ended"] - frame.f_locals["started"]
            frame.f_locals["started"] += int(passed * (1 - PART))
            frame.f_trace = None
            sys.settrace(None)
        return traced

    def during(frame):
        if frame.f_trace is None:
            frame.f_trace = traced
            sys.settrace(lambda frame, event, argument: None)

    return looked_at(a, b, during)


def clock_for_one_block(lab):
    """Replaces the lab's clock for the end of a block; the clock puts itself back.

    Caught by: elapsed time or computes_when_waited_for
    """
    a, b = torch.randn(N, N), torch.randn(N, N)
    from gpulab.engine.measure import clock

    counted = clock.perf_counter_ns

    def during(frame):
        started = frame.f_locals["started"]

        def once():
            clock.perf_counter_ns = counted
            return started + int((counted() - started) * PART)

        clock.perf_counter_ns = once

    return looked_at(a, b, during)


def block_for_one_call(lab):
    """Replaces the class of blocks for one call, and lets it claim a part of the time.

    Caught by: elapsed time or computes_when_waited_for
    """
    a, b = torch.randn(N, N), torch.randn(N, N)
    return looked_at(a, b, lambda frame: replace_block(lead_in=0))


def replace_block(lead_in):
    from gpulab.engine.measure import clock
    from gpulab.engine.processes.channel import Block

    def once(*values):
        clock.Block = Block
        return shorter(Block(*values), lead_in)

    clock.Block = once


def block_that_ends_earlier(lab):
    """The same, and the block ends earlier: what it hides passes in the next variant's.

    Caught by: elapsed time
    """
    a, b = torch.randn(N, N), torch.randn(N, N)

    def during(frame):
        block = caller("block")
        replace_block(lead_in=block.f_locals["lead_in"] if block else 0)

    return looked_at(a, b, during, alone=True)


def result_replaces_its_block(lab):
    """What a step returned is dropped after the block, and replaces it in the frame of the lab.

    Caught by: elapsed time
    """
    a, b = torch.randn(N, N), torch.randn(N, N)

    def after(frame):
        lead_in = frame.f_locals["candidate"].lead_in
        write_local(frame, "block", shorter(frame.f_locals["block"], lead_in))

    return followed(a, b, after)


def tuple_rewritten(lab):
    """Writes other numbers into the block itself, which cannot be changed.

    Caught by: elapsed time
    """
    a, b = torch.randn(N, N), torch.randn(N, N)
    kept = []

    def after(frame):
        block = frame.f_locals["block"]
        new = shorter(block, frame.f_locals["candidate"].lead_in)
        kept.append((new, block))
        items = (ctypes.c_void_p * len(block)).from_address(id(block) + 24)
        for place in (0, 1, 4):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(new[place]))
            items[place] = id(new[place])

    return followed(a, b, after)


def profiler_rewrites_the_block(lab):
    """A profiler sees the block on its way out of the lab's clock.

    Caught by: elapsed time or computes_when_waited_for
    """
    a, b = torch.randn(N, N), torch.randn(N, N)
    kept = []

    def profiled(frame, event, argument):
        if event == "return" and frame.f_code.co_name == "_run":
            sys.setprofile(None)
            new = shorter(argument, frame.f_back.f_locals.get("lead_in", 0))
            kept.append((new, argument))
            items = (ctypes.c_void_p * len(argument)).from_address(id(argument) + 24)
            for place in (0, 1, 4):
                items[place] = id(new[place])
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(new[place]))

    return looked_at(a, b, lambda frame: sys.setprofile(profiled))


def constant_of_the_clock(lab):
    """Makes the nanosecond in the code of the lab's clock shorter while its own block runs.

    Caught by: elapsed time
    """
    a, b = torch.randn(N, N), torch.randn(N, N)
    from gpulab.engine.measure.clock import WallClock

    constants = WallClock._run.__code__.co_consts
    held = next(value for value in constants if isinstance(value, float) and value < 1e-6)
    nanosecond = ctypes.c_double.from_address(id(held) + 16)

    def during(frame):
        nanosecond.value = 1e-9 * PART

    def step():
        result = a @ b
        if sys._getframe(1).f_back.f_code.co_name == "_run" and caller("_timed") is not None:
            nanosecond.value = 1e-9 * PART
            last[:] = [weakref.ref(result, dropped)]
        return result

    def dropped(_):
        if "block" in getattr(caller("_timed"), "f_locals", {}):
            nanosecond.value = 1e-9

    last = []
    return Work(step, inputs=(a, b))


def code_for_one_block(lab):
    """Gives the lab's clock other code, with a shorter nanosecond, while its own block runs.

    Caught by: elapsed time
    """
    a, b = torch.randn(N, N), torch.randn(N, N)
    from gpulab.engine.measure.clock import WallClock

    code = WallClock._run.__code__
    constants = tuple(PART * 1e-9 if value == 1e-9 else value for value in code.co_consts)
    other = code.replace(co_consts=constants)
    last = []

    def dropped(_):
        if "block" in getattr(caller("_timed"), "f_locals", {}):
            WallClock._run.__code__ = code

    def step():
        result = a @ b
        if caller("_timed") is not None:
            WallClock._run.__code__ = other
            last[:] = [weakref.ref(result, dropped)]
        return result

    return Work(step, inputs=(a, b))


def rows_rewritten_in_place(lab):
    """Rewrites its rows of earlier rounds in shared memory, before they are sent.

    Caught by: elapsed time
    """
    a, b = torch.randn(N, N), torch.randn(N, N)
    done = set()

    def after(frame):
        candidate, buffer = frame.f_locals["candidate"], frame.f_locals["self"]._context.buffer
        own = buffer.names.index(candidate.name)

        def change(rows):
            for row in rows:
                if row[VARIANT] == own and row[TIME] not in done:
                    steps = row[STEPS] + candidate.lead_in
                    row[ENDED] -= row[TIME] * steps * (1 - PART)
                    row[TIME] *= PART
                    row[CPU] *= PART
                    done.add(row[TIME])

        rewrite(buffer, change)

    return followed(a, b, after)


def rows_of_more_steps(lab):
    """Rewrites its rows in shared memory: they took as long, for twice as many steps.

    Caught by: block_of_other_steps
    """
    a, b = torch.randn(N, N), torch.randn(N, N)

    def after(frame):
        block = frame.f_locals["block"]
        new = block._replace(time_s=block.time_s / 2, cpu_s=block.cpu_s / 2, steps=2 * block.steps)
        write_local(frame, "block", new)

    return followed(a, b, after)


def baseline_rows_longer(lab):
    """Rewrites the rows of all others in shared memory, to longer ones.

    Caught by: elapsed time
    """
    a, b = torch.randn(N, N), torch.randn(N, N)
    done = set()

    def after(frame):
        candidate, buffer = frame.f_locals["candidate"], frame.f_locals["self"]._context.buffer
        own = buffer.names.index(candidate.name)

        def change(rows):
            for row in rows:
                if row[VARIANT] != own and row[TIME] not in done:
                    row[TIME] *= 1.4
                    row[CPU] *= 1.4
                    done.add(row[TIME])

        rewrite(buffer, change)

    return followed(a, b, after)


def better_of_two(lab):
    """Takes the shorter time of each round for itself, and leaves the longer one to the baseline.

    Caught by: nothing
    """

    def change(rows, own):
        for entries in rounds_of(rows):
            blocks = {row[VARIANT]: row for row in entries}
            if own in blocks and 0 in blocks and blocks[own][TIME] > blocks[0][TIME]:
                for column in (TIME, CPU):
                    blocks[own][column], blocks[0][column] = blocks[0][column], blocks[own][column]

    return rewritten(torch.randn(N, N), torch.randn(N, N), change)


def thread_rewrites_rows(lab):
    """A thread looks for its rows in shared memory.

    Caught by: elapsed time or timer
    """
    a, b = torch.randn(N, N), torch.randn(N, N)
    buffer = the("SampleBuffer")
    own = buffer.names.index("thread_rewrites_rows")
    over, done = threading.Event(), set()

    def change(rows):
        for row in rows:
            if row[VARIANT] == own and row[TIME] not in done:
                row[ENDED] -= shorten(row, lead_in=1.6)
                done.add(row[TIME])

    def run():
        while not over.wait(1e-3):
            rewrite(buffer, change)

    threading.Thread(target=run, daemon=True).start()
    yield Work(lambda: a @ b, inputs=(a, b))
    over.set()


def buffer_proxied(lab):
    """Puts a buffer of its own between the recorder and the shared memory.

    Caught by: elapsed time or variants alone
    """
    a, b = torch.randn(N, N), torch.randn(N, N)

    def during(frame):
        timed = caller("_timed")
        recorder = timed and timed.f_locals["self"].recorder
        if recorder is None or isinstance(recorder._buffer, Proxy):
            return
        buffer, lead_in = recorder._buffer, timed.f_locals["candidate"].lead_in

        def add(epoch, number, name, block):
            if name == "buffer_proxied":
                block = shorter(block, lead_in)
            buffer.add(epoch, number, name, block)

        recorder._buffer = Proxy(buffer, add=add)

    return looked_at(a, b, during)


def clock_proxied(lab):
    """Puts a clock of its own into the lab's context.

    Caught by: elapsed time or variants alone or computes_when_waited_for
    """
    a, b = torch.randn(N, N), torch.randn(N, N)

    def during(frame):
        timed = caller("_timed")
        context = timed and timed.f_locals["self"]._context
        if context is None or isinstance(context.clock, Proxy):
            return
        clock = context.clock

        def block(build, steps, **options):
            measured = clock.block(build, steps, **options)
            if build.variant == "clock_proxied":
                return shorter(measured, options.get("lead_in", 1))
            return measured

        context.clock = Proxy(clock, block=block)

    return looked_at(a, b, during)


def rows_packed_otherwise(lab):
    """Replaces the layout of a row: an object, no function.

    Caught by: lab_functions_replaced
    """
    a, b = torch.randn(N, N), torch.randn(N, N)
    from gpulab.engine.processes import channel

    packed, own = channel._ROW, the("SampleBuffer").names.index("rows_packed_otherwise")

    def pack_into(memory, place, *row):
        row = list(row)
        if row[VARIANT] == own:
            row[ENDED] -= shorten(row, lead_in=1.6)
        packed.pack_into(memory, place, *row)

    if not isinstance(packed, Proxy):
        channel._ROW = Proxy(packed, pack_into=pack_into)
    return Work(lambda: a @ b, inputs=(a, b))


def steps_taken_from_the_iterator(lab):
    """Takes every second step of a timed block out of the iterator that the lab goes through.

    Caught by: elapsed time
    """
    a, b = torch.randn(N, N), torch.randn(N, N)

    def step():
        frame = caller("block")
        if frame is not None and caller("_timed") is not None:
            calls = caller("call_each").f_locals["calls"]
            if isinstance(calls, itertools.repeat):
                next(calls, None)
        return a @ b

    return Work(step, inputs=(a, b))


def restores_slowly_by_its_word(lab):
    """Forges what was calibrated: restoring its state takes as long as what it hides.

    Caught by: elapsed time
    """
    return calibrated(lambda event: {"restore_s": event.restore_s + 4e-3})


def steps_untimed_by_its_word(lab):
    """Forges what was calibrated: more untimed steps than there are.

    Caught by: elapsed time
    """
    return calibrated(lambda event: {"lead_in": 4 * event.lead_in + event.steps_per_block})


def calibrated(changes):
    a, b = torch.randn(N, N), torch.randn(N, N)
    from msgspec.structs import replace

    from gpulab.engine.processes.channel import Channel

    emit = Channel.emit

    def forged(channel, *events):
        if caller("equalize_blocks") or caller("warm_up"):
            events = [
                replace(event, **changes(event))
                if type(event).__name__ == "Calibrated" and event.variant.endswith("_by_its_word")
                else event
                for event in events
            ]
        elif caller("_timed") or caller("_run") or caller("pump"):
            Channel.emit = emit
        emit(channel, *events)

    def during(frame):
        if caller("_timed"):
            Channel.emit = emit
            replace_block(lead_in=0)
        else:
            Channel.emit = forged

    return looked_at(a, b, during)


def baseline_step_longer(lab):
    """Gives the baseline's build a step that takes a fifth longer.

    Caught by: baseline_slowed or variants alone
    """
    a, b = torch.randn(N, N), torch.randn(N, N)

    def slowed(step):
        def slower():
            started = time.perf_counter_ns()
            result = step()
            until = time.perf_counter_ns()
            until += (until - started) // 6
            while time.perf_counter_ns() < until:
                pass
            return result

        slower.known = True
        return slower

    def during(frame):
        timed = caller("_timed")
        for candidate in timed.f_locals["self"].candidates if timed else ():
            work = candidate.build and candidate.build.work
            if work and candidate.variant.name == "reference" and not hasattr(work.step, "known"):
                object.__setattr__(work, "step", slowed(work.step))

    return looked_at(a, b, during)


def baseline_without_untimed_steps(lab):
    """Takes the untimed steps from the baseline, and empties the caches before it.

    Caught by: elapsed time
    """
    a, b = torch.randn(N, N), torch.randn(N, N)
    large = torch.ones(1 << 23)

    def after(frame):
        for candidate in frame.f_locals["self"].candidates:
            if candidate.variant.name == "reference":
                candidate.lead_in, candidate.steps = 0, 1
        large.add_(1.0)

    return followed(a, b, after)


def rounds_moved(lab):
    """Moves the blocks of a whole round: what is hidden passes between two rounds.

    Caught by: elapsed time or variants alone
    """

    def change(rows, own):
        for entries in rounds_of(rows):
            for place, row in enumerate(entries):
                if row[VARIANT] == own:
                    before = entries[place - 1] if place else None
                    hidden_s = shorten(row, 1.6, before)
                    for later in entries[place:]:
                        later[ENDED] -= hidden_s

    return rewritten(torch.randn(N, N), torch.randn(N, N), change)


def hidden_in_all_others(lab):
    """Spreads what it hides evenly over the other blocks of the round, and shortens the blocks of
    the checks, too.

    Caught by: nothing
    """

    def change(rows, own):
        for entries in rounds_of(rows):
            places = [place for place, row in enumerate(entries) if row[VARIANT] == own]
            if len(places) != 1 or len(entries) != 3:
                continue
            before = entries[places[0] - 1] if places[0] else None
            hidden_s = shorten(entries[places[0]], 1.6, before)
            shifts = ((-1.0, -0.5, 0.0), (0.5, -0.5, 0.0), (0.5, 1.0, 0.0))[places[0]]
            for row, shift in zip(entries, shifts, strict=True):
                row[ENDED] += shift * hidden_s

    work = rewritten(torch.randn(N, N), torch.randn(N, N), change)

    def step():
        result = work.step()
        if sys._getframe(1).f_back.f_code.co_name == "_run" and caller("_timed") is None:
            replace_block(lead_in=0)
        return result

    return Work(step, inputs=work.inputs)


# --- twins
# They look at frames, clocks and objects for purposes of their own.


class Own:
    """Of its own, with names that the lab has as well."""

    def __init__(self):
        self.block, self.started, self.rows = (1.0, 2), time.perf_counter_ns(), bytearray(64)


def plain(a, b, beside):
    """A step that also does something of its own, which takes a microsecond."""

    def step():
        result = a @ b
        beside()
        return result

    return Work(step, inputs=(a, b))


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def start_in_the_frame(lab):
    """Looks up the name of who called it."""
    return plain(*operands(), lambda: sys._getframe(1).f_code.co_name)


def start_object_rewritten(lab):
    """Writes into an integer of C, its own."""
    counted = ctypes.c_uint64(0)
    return plain(*operands(), lambda: setattr(counted, "value", counted.value + 1))


def start_by_a_tracer(lab):
    """Asks whether it is traced."""
    return plain(*operands(), sys.gettrace)


def clock_for_one_block(lab):
    """Reads the clock, under a name of its own."""
    perf_counter_ns = time.perf_counter_ns
    return plain(*operands(), lambda: perf_counter_ns() // 2)


def block_for_one_call(lab):
    """Makes tuples of its own."""
    return plain(*operands(), lambda: (time.monotonic(), 2))


def block_that_ends_earlier(lab):
    """Reads another clock."""
    return plain(*operands(), lambda: time.monotonic() - 1.0)


def result_replaces_its_block(lab):
    """Counts the results that are dropped."""
    a, b = operands()
    last, dropped = [], [0]

    def count(_):
        dropped[0] += 1

    def step():
        result = a @ b
        last[:] = [weakref.ref(result, count)]
        return result

    return Work(step, inputs=(a, b))


def tuple_rewritten(lab):
    """Writes into an array of C, its own."""
    held = (ctypes.c_double * 8)()
    return plain(*operands(), lambda: held.__setitem__(0, 1.0))


def profiler_rewrites_the_block(lab):
    """Asks whether it is profiled."""
    return plain(*operands(), sys.getprofile)


def constant_of_the_clock(lab):
    """Has a constant of its own."""
    nanosecond = ctypes.c_double(1e-9)
    return plain(*operands(), lambda: nanosecond.value * 2)


def code_for_one_block(lab):
    """Gives a function of its own other code."""

    def one():
        return 1

    def two():
        return 2

    one.__code__ = two.__code__
    return plain(*operands(), one)


def rows_rewritten_in_place(lab):
    """Packs rows into memory of its own."""
    memory = bytearray(HEAD.size)
    return plain(*operands(), lambda: HEAD.pack_into(memory, 0, 1, 2))


def rows_of_more_steps(lab):
    """Reads rows from memory of its own."""
    memory = bytes(ROW.size)
    return plain(*operands(), lambda: ROW.unpack_from(memory))


def baseline_rows_longer(lab):
    """Has objects with the lab's names for them."""
    own = Own()
    return plain(*operands(), lambda: own.rows[0])


def better_of_two(lab):
    """Takes the shorter of two times of its own."""
    return plain(*operands(), lambda: min(time.perf_counter(), time.monotonic()))


def thread_rewrites_rows(lab):
    """Has a thread that waits for its end."""
    over = threading.Event()
    threading.Thread(target=over.wait, daemon=True).start()
    yield plain(*operands(), over.is_set)
    over.set()


def buffer_proxied(lab):
    """Has a proxy of an object of its own."""
    own = Proxy(Own())
    return plain(*operands(), lambda: own.block)


def clock_proxied(lab):
    """Has a proxy of the clock, its own."""
    return plain(*operands(), Proxy(time).perf_counter_ns)


def rows_packed_otherwise(lab):
    """Has a layout of rows of its own."""
    return plain(*operands(), struct.Struct("<dd").size.bit_length)


def steps_taken_from_the_iterator(lab):
    """Takes numbers out of an iterator of its own."""
    return plain(*operands(), itertools.count().__next__)


def restores_slowly_by_its_word(lab):
    """Counts objects, once, while it is built."""
    count = len(gc.get_objects())
    return plain(*operands(), lambda: count)


def steps_untimed_by_its_word(lab):
    """Counts its own steps."""
    steps = itertools.count()
    return plain(*operands(), lambda: next(steps) // 2)


def baseline_step_longer(lab):
    """Wraps its own step."""
    work = plain(*operands(), time.perf_counter_ns)
    return Work(lambda: work.step(), inputs=work.inputs)


def baseline_without_untimed_steps(lab):
    """Knows objects that refer to its inputs."""
    a, b = operands()
    held = gc.get_referrers(a)
    return plain(a, b, lambda: len(held))


def rounds_moved(lab):
    """Holds back what it saw."""
    seen = weakref.WeakValueDictionary()
    return plain(*operands(), lambda: seen.get(1))


def hidden_in_all_others(lab):
    """Spreads its time over two sums of its own."""
    sums = [0.0, 0.0]

    def add():
        sums[0] += 0.5
        sums[1] += 0.5

    return plain(*operands(), add)


# === works_when_looked_at
# Computes where its output is compared: of steps so short, few are.

import sys

COUNT = 2_000_000


def reference(lab):
    a, b = torch.randn(COUNT), torch.randn(COUNT)
    return Work(lambda: a + b, inputs=(a, b))


def caller(name):
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != name:
        frame = frame.f_back
    return frame


def works_when_looked_at(lab):
    """Looks up in the lab's checks whether anybody looks at this block.

    Caught by: variants alone or timed steps or computes_when_waited_for
    """
    a, b = torch.randn(COUNT), torch.randn(COUNT)
    known = a + b

    def step():
        timed = caller("_timed")
        if timed is None or is_compared(timed.f_locals["checks"]):
            return a + b
        return known

    def is_compared(checks):
        block = checks._block
        return block and (block.late or (block.values and checks._is_within()))

    return Work(step, inputs=(a, b))


# --- twins
# It looks around, and computes all the same.


def works_when_looked_at(lab):
    """Looks at how deep it is called."""
    a, b = torch.randn(COUNT), torch.randn(COUNT)

    def step():
        sys._getframe(1)
        return a + b

    return Work(step, inputs=(a, b))
