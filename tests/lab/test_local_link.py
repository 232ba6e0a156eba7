"""A link is fitted to exchanges, is kept with its calibration, and is the machine's."""

import json
from dataclasses import replace

import pytest

from core.analytic.collectives import Collective, LinkSpeed, fastest_s
from core.errors import RecordError
from core.lab.calibration import Calibration
from core.lab.local_link import KINDS, ExchangeSample, LocalLink, fit_link
from tests.lab.examples import calibration

WHEN = "2026-11-29T12:00:00+00:00"
SIZES = (256, 4096, 65_536, 1_048_576, 4_194_304)


def sample(kind: str, size: int, seconds: float) -> ExchangeSample:
    known = next(each for each in KINDS if each == kind)
    return ExchangeSample(known, size, seconds, 0.9 * seconds, 1.3 * seconds)


def following(speed: LinkSpeed, ranks: int) -> list[ExchangeSample]:
    """Exchanges that take exactly what the arithmetic says of a link."""
    return [
        sample(kind, size, float(fastest_s(Collective(kind, ranks), size, speed)))
        for kind in KINDS
        for size in SIZES
    ]


def fitted(samples: list[ExchangeSample], ranks: int = 2) -> LocalLink:
    return fit_link(samples, ranks=ranks, backend="gloo", measured_at=WHEN)


def test_a_link_is_found_again_from_what_the_arithmetic_says_of_it() -> None:
    found = fitted(following(LinkSpeed(2e9, 80e-6), 2))
    assert found.latency_s == pytest.approx(80e-6)
    assert found.bytes_per_s == pytest.approx(2e9)
    assert found.misfit == pytest.approx(0, abs=1e-9)
    assert found.spread == pytest.approx(0.2)
    assert found.speed == LinkSpeed(found.bytes_per_s, found.latency_s)


def test_small_messages_weigh_as_much_as_large_ones() -> None:
    slow = [
        replace(each, median_s=2 * each.median_s) if each.message_bytes == max(SIZES) else each
        for each in following(LinkSpeed(2e9, 80e-6), 2)
    ]
    assert fitted(slow).latency_s == pytest.approx(80e-6, rel=0.1)


@pytest.mark.parametrize(
    ("seconds", "latency_s", "least_bytes_per_s"),
    [
        ((3e-4, 2e-4, 1e-4, 1e-4, 1e-4), 1.2e-4, 1e14),  # more bytes took less time
        ((1e-9, 1e-7, 1e-4, 4e-3, 4e-2), 0.0, 1e7),  # nothing is left for a call
    ],
)
def test_neither_latency_nor_bandwidth_falls_below_what_can_be(
    seconds: tuple[float, ...], latency_s: float, least_bytes_per_s: float
) -> None:
    found = fitted([sample("all_reduce", *each) for each in zip(SIZES, seconds, strict=True)])
    assert found.latency_s == pytest.approx(latency_s, rel=0.2)
    assert found.bytes_per_s > least_bytes_per_s
    assert found.misfit > 0


def with_link() -> Calibration:
    link = fitted(following(LinkSpeed(2e9, 80e-6), 2))
    return replace(calibration(), link=link, remarks=("Something was not measured.",))


def test_it_survives_the_file_of_its_calibration() -> None:
    assert Calibration.from_json(json.loads(json.dumps(with_link().to_json()))) == with_link()


def test_a_calibration_of_before_has_none() -> None:
    data = calibration().to_json()
    del data["link"], data["remarks"]
    former = Calibration.from_json(data)
    assert (former, former.machine().link) == (calibration(), None)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("latency_s", -1.0, "at 'link.latency_s'"),
        ("bytes_per_s", 0, "at 'link.bytes_per_s'"),
        ("ranks", 1, "at 'link.ranks'"),
        ("samples", {}, "at 'link.samples'"),
        ("measured_at", "yesterday", "an ISO time"),
    ],
)
def test_a_value_that_does_not_fit_is_named(name: str, value: object, message: str) -> None:
    data = with_link().to_json()
    data["link"][name] = value
    with pytest.raises(RecordError, match=message):
        Calibration.from_json(data)


def test_the_machine_has_the_link_and_the_remark() -> None:
    machine = with_link().machine()
    speed = machine.link_for(Collective("all_reduce", 2))
    assert speed.bytes_per_s == pytest.approx(2e9)
    assert speed.latency_s == pytest.approx(80e-6)
    assert machine.notes == ("Something was not measured.",)


def test_a_quick_calibration_keeps_the_link_that_a_full_one_found() -> None:
    full, quick = with_link(), calibration()
    assert quick.with_link_of(full).link == full.link
    assert quick.with_link_of(None) == quick
    failed = replace(quick, remarks=("No processes.",))
    assert failed.with_link_of(full).link is None
