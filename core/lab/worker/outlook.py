"""What a run is predicted with: this machine's calibration, and what checks just before the run say of it."""

from __future__ import annotations

from dataclasses import dataclass

from core.lab.calibration import Calibration
from core.lab.host import HostLoad
from core.lab.pace import Pace
from core.lab.record_parts import LoadRecord
from core.lab.rehearsal import AS_PREDICTED, Rehearsal
from core.lab.sweep_request import Cell
from core.lab.worker.ceilings import MemoryProbe
from core.lab.worker.loop import JobContext
from core.lab.worker.rehearse import Rehearsals


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is expected of the machine for a run.

    Attributes:
        before: what the two checks just gave. followed: the pace that the run is predicted at.
        now: the calibration at that pace. rehearsal: beside it; None where there was none.
    """

    before: Pace
    followed: Pace
    now: Calibration
    rehearsal: Rehearsal | None

    @property
    def rehearsed(self) -> Rehearsal:
        """The rehearsal, or that nothing is known."""
        return self.rehearsal or AS_PREDICTED

    def load(self, host: HostLoad, after: Pace) -> LoadRecord:
        """What a record keeps of it, beside who else used the host and the pace after the run."""
        return LoadRecord(
            host.others, host.steal, host.duration_s, self.before, after, self.followed, self.rehearsal
        )


@dataclass(frozen=True, slots=True)
class Checks:
    """This machine's calibration, and the checks that are made before a run."""

    calibration: Calibration
    memory: MemoryProbe
    rehearsals: Rehearsals

    def outlook(self, cell: Cell, context: JobContext) -> Outlook:
        """Rehearse a cell, then find the pace: the shorter check is the nearer to the run.

        Args:
            cell: what will be run.
            context: of the job.

        Raises:
            StopRequestedError: the job was cancelled.
            FormatError: the calibration has no rate for a format, or the device no kernel.
        """
        rehearsed = self.rehearsals.of(cell, context)
        before = self.memory.pace(self.calibration.pace)
        followed = self.memory.expected()
        now = self.calibration.at_pace(followed)
        return Outlook(before, followed, now, None if rehearsed is None else rehearsed.beside(now))
