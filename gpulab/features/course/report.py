"""The course: the lessons in the order that the sources recommend, with questions that a run
answers.

Its text is course.toml. An answer names what a run measured in braces, `{VARIANT.FACT}`, or
`{VARIANT: FIGURE}` for a figure that the lesson reports itself; view.py says which facts there are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PLACE = re.compile(r"\{(?P<variant>\w+)(?:\.(?P<fact>\w+)|: (?P<figure>[^}]+))\}")
"""What an answer names: `{VARIANT.FACT}`, or `{VARIANT: FIGURE}` of a figure that the lesson
reports itself.
"""
OF_A_PROFILE = (
    "goodput",
    "hidden",
    "launches",
    "data",
    "copies",
    "sync",
    "peak",
    "held",
    "reserved",
)
OF_A_SOLO_RUN = ("sm", "dram", "busy", "power")
"""Facts of the variants that are profiled, and run alone, at the end of a run."""
_FILE = Path(__file__).parent / "course.toml"
_LESSON = re.compile(r'^\[\[stage\.lesson\]\]\nname = "(\w+)"$', re.MULTILINE)
_STAGE = re.compile(r'^\[\[stage\]\]\ntitle = "(.+)"$', re.MULTILINE)


@dataclass(frozen=True)
class Question:
    """`answer` has places for what a run measured."""

    ask: str
    answer: str


@dataclass(frozen=True)
class CourseLesson:
    """A lesson in its place of the course: what to look at in it, and three questions."""

    name: str
    look: str
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class CourseStage:
    """One step of the advised order, and its lessons."""

    title: str
    text: str
    lessons: tuple[CourseLesson, ...]


@cache
def course() -> tuple[CourseStage, ...]:
    """The whole course, in its order."""
    import tomllib  # the list of the screen comes without it

    stages = []
    for stage in tomllib.loads(_FILE.read_text(encoding="utf-8"))["stage"]:
        lessons = tuple(map(_lesson, stage["lesson"]))
        stages.append(CourseStage(stage["title"], _flowing(stage["text"]), lessons))
    return tuple(stages)


@cache
def lesson_places() -> dict[str, int]:
    """The place of each lesson in the course. Every list asks for it, and parsing takes 10 ms."""
    names = _LESSON.findall(_FILE.read_text(encoding="utf-8"))
    return {name: place for place, name in enumerate(names)}


@cache
def stages_of_lessons() -> list[tuple[str, list[str]]]:
    """Return the title of each stage and the names of its lessons, without parsing the file."""
    _, *parts = _STAGE.split(_FILE.read_text(encoding="utf-8"))
    return [
        (title, _LESSON.findall(rest)) for title, rest in zip(parts[::2], parts[1::2], strict=True)
    ]


def course_lesson(name: str) -> CourseLesson | None:
    """The lesson of that name; None where the course has none."""
    for stage in course():
        for lesson in stage.lessons:
            if lesson.name == name:
                return lesson
    return None


def variants_asked(name: str) -> list[str]:
    """Return the variants of a lesson of whose profile, or solo run, its questions want a fact."""
    wanted = OF_A_PROFILE + OF_A_SOLO_RUN
    return list(dict.fromkeys(each["variant"] for each in _places(name) if each["fact"] in wanted))


def asks_utilization(name: str) -> bool:
    """Return whether a question of a lesson wants the driver's utilization."""
    return any(place["fact"] == "busy" for place in _places(name))


def _places(name: str) -> list[re.Match[str]]:
    """Return the places for figures in all answers of a lesson."""
    lesson = course_lesson(name) if name in lesson_places() else None
    answers = [question.answer for question in lesson.questions] if lesson else []
    return [place for text in answers for place in PLACE.finditer(text)]


def _lesson(read: dict[str, Any]) -> CourseLesson:
    questions = tuple(
        Question(_flowing(question["ask"]), _flowing(question["answer"]))
        for question in read["question"]
    )
    return CourseLesson(read["name"], _flowing(read["look"]), questions)


def _flowing(text: str) -> str:
    """The text as one line: where it is broken in the file says nothing."""
    return " ".join(text.split())
