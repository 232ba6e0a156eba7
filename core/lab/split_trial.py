"""The result of the experiment "split": the record of the split run, where and when it was made."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from core.analytic.split_record import SplitRecord
from core.lab.checked_json import Reader, utc_time
from core.lab.local_link import LocalLink
from core.lab.record_parts import HostRecord
from core.lab.split_record import split_from_json, split_to_json
from core.lab.split_request import SplitRequest

_WHAT: Final = "A record of a split run"


@dataclass(frozen=True, slots=True)
class SplitTrial:
    """One experiment.

    Attributes:
        created_at: ISO time, UTC. host: the machine. request: what was asked for.
        model_name: in words. split: what came of it.
        noisy: why the times are not to be trusted; empty on a quiet host.
        link: what processes of the machine exchange, as a full calibration knew before the run; None where
            none did.
    """

    created_at: str
    host: HostRecord
    request: SplitRequest
    model_name: str
    split: SplitRecord
    noisy: tuple[str, ...] = ()
    link: LocalLink | None = None

    def to_json(self) -> dict[str, Any]:
        """A plain dict for a pipe or a file."""
        return {
            "created_at": self.created_at,
            "host": asdict(self.host),
            "request": self.request.to_json(),
            "model_name": self.model_name,
            "split": split_to_json(self.split),
            "noisy": list(self.noisy),
            "link": None if self.link is None else self.link.to_json(),
        }

    @classmethod
    def from_json(cls, data: object) -> SplitTrial:
        """Read it back.

        Raises:
            RecordError, RequestError: a value is missing, not of its kind, or does not follow from the rest.
        """
        reader = Reader(data, _WHAT)
        request = SplitRequest.from_json(reader.inner("request").data)
        split = split_from_json(reader.inner("split").data)
        if (split.tp, split.pp) != (request.tp, request.pp):
            reader.refuse("split", "the degrees of its request")
        return cls(
            created_at=utc_time(reader, "created_at"),
            host=HostRecord.from_reader(reader.inner("host")),
            request=request,
            model_name=reader.text("model_name"),
            split=split,
            noisy=reader.texts("noisy"),
            link=LocalLink.from_reader(reader.inner("link")) if reader.data.get("link") else None,
        )
