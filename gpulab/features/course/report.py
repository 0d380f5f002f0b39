"""The course: the lessons in the order in which the sources advise to work, and questions that a
run answers.

Its text is `gpulab/course.toml`. An answer names what a run measured in braces, `{VARIANT.FACT}` or
`{VARIANT: FIGURE}` for a figure that the lesson reports itself; `views/pages/course.py` says which
facts there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "course.toml"


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

    read = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(
        CourseStage(stage["title"], _flowing(stage["text"]), tuple(map(_lesson, stage["lesson"])))
        for stage in read["stage"]
    )


def course_lesson(name: str) -> CourseLesson | None:
    """The lesson of that name; None where the course has none."""
    return next(
        (lesson for stage in course() for lesson in stage.lessons if lesson.name == name), None
    )


def _lesson(read: dict[str, object]) -> CourseLesson:
    questions = read["question"]
    assert isinstance(questions, list)
    return CourseLesson(
        str(read["name"]),
        _flowing(str(read["look"])),
        tuple(
            Question(_flowing(question["ask"]), _flowing(question["answer"]))
            for question in questions
        ),
    )


def _flowing(text: str) -> str:
    """The text as one line: where it is broken in the file says nothing."""
    return " ".join(text.split())
