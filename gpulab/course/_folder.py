"""The folder of an exported course: its token, its keys, and the grader's secret."""

import hashlib
import hmac
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from gpulab.core.errors import CourseFolderError, DamagedDataError, GradingError
from gpulab.core.serialization import parse_json, read_bytes
from gpulab.course._keys import Key, solution_of
from gpulab.course._labs import lab_named
from gpulab.course._question import Lab
from gpulab.course._sandbox import SECRET_VARIABLE

DESCRIPTION = "course.json"
GRADER, SECRET, MARKS = "grader", "secret", "marks"
SCHEMA = "gpulab.course/1"
_OLDEST_NBGRADER = (0, 9, 6)
_TOKEN_LENGTH = 16  # in hexadecimal digits: short enough to read, too long to guess a secret from


@dataclass(frozen=True, slots=True)
class CourseFolder:
    """An exported course whose secret is known.

    ``token`` is the seed of the learners' numbers and public: every notebook contains it.
    ``secret``, the seed of the trials' numbers, is known to the grader only.
    """

    path: Path
    token: str
    secret: str

    @classmethod
    def opened(cls, path: Path) -> "CourseFolder":
        """Open a course; raise an error if there is none, or its secret is missing."""
        token = _token_in(path / DESCRIPTION)
        secret = _secret_of(path)
        if token_of(secret) != token:
            raise GradingError(
                f"the grader's secret is not that of the course in {path}; put the one of the "
                f"export into {path / GRADER / SECRET} or into {SECRET_VARIABLE}"
            )
        return cls(path, token, secret)

    def keys(self, lab: Lab) -> Mapping[str, Key]:
        """Return the keys of a lab, by question; `CourseFolderError` if their file is missing."""
        return read_keys(self.path / GRADER / f"{lab.name}.py")

    def trial_draw(self, lab: str, question: str) -> str:
        """Return the seed of a trial's numbers; nobody can compute the secret from it."""
        return signed(self.secret, f"trial {lab} {question}")


def solutions(folder: Path, lab_name: str, learner: str) -> dict[str, str]:
    """Return the right answers to one learner's questions: the source of a cell for each.

    Parameters
    ----------
    folder
        Folder of the course.
    lab_name
        Name of the lab.
    learner
        Id of the learner.

    Raises
    ------
    UnknownNameError
        If there is no lab of this name.
    CourseFolderError
        If the folder contains no course.
    GradingError
        If the secret is missing or wrong.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gpulab import course
    >>> try:
    ...     print(course.solutions(Path("my-course"), "timing", "ada")["waits"])
    ... except OSError as error:
    ...     print(error)
    my-course is not a course; make one: gpulab course export --nbgrader FOLDER
    """
    course, lab = CourseFolder.opened(folder), lab_named(lab_name)
    keys = course.keys(lab)
    return {
        question.name: solution_of(
            question, keys[question.name], question.variant(course.token, learner)
        )
        for question in lab.questions
    }


def signed(secret: str, text: str) -> str:
    """Return the signature (HMAC) of a text, which nobody can compute without the secret."""
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def token_of(secret: str) -> str:
    """Return the public token of a course with this secret."""
    return signed(secret, "token")[:_TOKEN_LENGTH]


def read_keys(path: Path) -> Mapping[str, Key]:
    """Return the keys in a file; raise `CourseFolderError` if there is no such file.

    The file is loaded by its path and is not put among the imported modules.
    """
    spec = spec_from_file_location(f"keys_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise CourseFolderError(f"{path} is missing; export the course again")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    keys: Mapping[str, Key] = module.KEYS
    return keys


def _token_in(path: Path) -> str:
    try:
        described: Any = parse_json(read_bytes(path))
    except FileNotFoundError:
        raise CourseFolderError(
            f"{path.parent} is not a course; make one: gpulab course export --nbgrader FOLDER"
        ) from None
    except OSError as error:
        raise CourseFolderError(
            f"{path} cannot be read ({error.strerror}); put it back, or export the course again"
        ) from None
    except DamagedDataError as error:
        raise CourseFolderError(f"{path} is damaged: {error}; export the course again") from None
    if not isinstance(described, dict) or described.get("schema") != SCHEMA:
        raise CourseFolderError(f"{path} is of another version; export the course again")
    return str(described.get("token"))


def describe(token: str, labs: tuple[str, ...]) -> bytes:
    """Return the content of ``course.json``, which marks a folder as a course."""
    return json.dumps({"schema": SCHEMA, "token": token, "labs": labs}, indent=2).encode() + b"\n"


def _secret_of(path: Path) -> str:
    secret = os.environ.get(SECRET_VARIABLE, "").strip()
    if secret:
        return secret
    file = path / GRADER / SECRET
    try:
        return file.read_text("utf-8").strip()
    except OSError as error:
        raise GradingError(
            f"the grader's secret cannot be read from {file} ({error.strerror}); put it back, or "
            f"set {SECRET_VARIABLE}"
        ) from None
    except UnicodeDecodeError:
        raise GradingError(
            f"the grader's secret in {file} is not text; put it back, or set {SECRET_VARIABLE}"
        ) from None


def require_nbgrader() -> None:
    """Raise `GradingError` unless an nbgrader is installed that can use these courses."""
    oldest = ".".join(map(str, _OLDEST_NBGRADER))
    try:
        installed = version("nbgrader")
    except PackageNotFoundError:
        raise GradingError(
            "nbgrader is not installed; install it: pip install 'gpulab[course]'"
        ) from None
    numbers = tuple(map(int, re.findall(r"\d+", installed)[: len(_OLDEST_NBGRADER)]))
    if numbers < _OLDEST_NBGRADER:
        raise GradingError(
            f"nbgrader {installed} is older than {oldest}; install a newer one: "
            "pip install -U 'gpulab[course]'"
        )
