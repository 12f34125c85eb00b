"""Studies of models that all of them share."""

from __future__ import annotations

from collections.abc import Sequence

from kinprint.model.model import Model
from kinprint.studies.results import Result
from kinprint.studies.running import Task, run_tasks
from kinprint.studies.study import Request, Study


def run_studies(
    studies: Sequence[Study], models: Sequence[Model], request: Request
) -> list[Result]:
    """Do several studies of the same models with one sweep of reading."""
    return run_tasks([Task(study, tuple(models), request) for study in studies])
