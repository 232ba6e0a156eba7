"""The one family of errors that a user can cause.

Each message is a sentence in three parts: what must hold, what came, what to do. A page shows
it beside the control; the command line prints it on standard error and exits with status 2.

::

    UserError
    |-- ConfigError      a config.json that does not describe a model we can count
    |-- ScenarioError    a scenario whose parts contradict each other
    |-- FormatError      a number format that is unknown, or that this device lacks
    |-- CheckpointError  a weight file that is missing, cut short, or does not fit its config
    |-- RequestError     a generation request outside its limits
    |-- RecordError      a saved record that is truncated or was edited
    |-- AnswerError      a typed answer that cannot be read as a number
    |-- EndpointError    a server that cannot be reached, or does not answer as it must
    `-- JobError         a measurement that was cancelled, ran out of time or memory, or died
"""


class UserError(Exception):
    """Base of every error whose text is meant for the user."""


class ConfigError(UserError):
    """A config.json that does not describe a model this project can count."""


class ScenarioError(UserError):
    """A scenario whose parts contradict each other."""


class FormatError(UserError):
    """A number format that is unknown, or that the chosen device lacks."""


class CheckpointError(UserError):
    """A weight file that is missing, cut short, or does not fit its config."""


class RequestError(UserError):
    """A generation request outside its limits."""


class RecordError(UserError):
    """A saved record that is truncated or was edited."""


class AnswerError(UserError):
    """A typed answer that cannot be read as a number."""


class EndpointError(UserError):
    """A server that cannot be reached, or that does not answer as it must."""


class JobError(UserError):
    """A measurement that was cancelled, ran out of time or memory, or died."""
