"""The prediction for the settings as they stand, or the sentence that says why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.errors import UserError
from core.lab.predict import predict
from core.lab.request import RunRequest
from core.ui.lab import models
from core.ui.lab.arithmetic import Case
from core.ui.lab.service import Lab

#: Characters of a token, for a first guess while no worker can count.
_CHARACTERS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Forecast:
    """A prediction with its case, or none.

    Attributes:
        case: what is predicted; None where nothing can be.
        counted: the prompt's tokens were counted, not guessed from its length.
        problem: why there is no case, or what the visitor should change; empty otherwise.
    """

    case: Case | None
    counted: bool = True
    problem: str = ""


def forecast(lab: Lab, request: RunRequest) -> Forecast:
    """Predict a request with this computer's calibration."""
    try:
        request.validate()
        calibration = lab.status(request.device).calibration
        if calibration is None:
            return Forecast(None)
        counted = lab.count_tokens(request)
        tokens = counted or max(len(request.prompt) // _CHARACTERS_PER_TOKEN, 1)
        model, machine = models.spec(request.model), calibration.machine(request.weights)
        case = Case(request, model, machine, predict(request, tokens, model, machine))
    except UserError as mistake:
        return Forecast(None, problem=str(mistake))
    return Forecast(case, counted=counted is not None)
