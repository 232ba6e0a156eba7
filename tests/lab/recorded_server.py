"""A synthetic record of a measured server that holds together, for tests to bend."""

from core.catalog.models import model
from core.lab.endpoint.prediction import Deployment, predict
from core.lab.endpoint.record import ClientRecord, EndpointRecord, ServerRecord
from core.lab.endpoint.request import EndpointRequest
from core.lab.endpoint.row import Level, Row

MODEL = "llama-3.1-8b"
REQUEST = EndpointRequest(levels=(1, 4), requests=4, output_tokens=3)


def server_record(*, predicted: bool = True) -> EndpointRecord:
    """Two levels, four requests each; the last one failed."""
    whole = Row(0.0, (0.05, 0.06, 0.07), 0.07, 3, "usage", 256)
    return EndpointRecord(
        created_at="2026-11-30T06:30:00+00:00",
        client=ClientRecord("A processor", 4, "Linux", "3.11.7"),
        server=ServerRecord("vllm 0.11", "meta-llama/Llama-3.1-8B", ("meta-llama/Llama-3.1-8B",), 0.001, 1.0),
        request=REQUEST,
        prediction=predict(REQUEST, Deployment(MODEL, "h100-sxm-80gb"), model(MODEL)) if predicted else None,
        levels=(Level(1, (whole,) * 4), Level(4, (*(whole,) * 3, Row(0.0, error="The server closed it.")))),
        ended="complete",
        client_late_p99_s=0.0001,
    )
