"""The Price List API on loopback: pages of products in the shape that AWS answers with."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, ClassVar

PAGE = 2
"""Products per page: small, so that paging is used."""


def product(name: str, usd: str, **attributes: str) -> str:
    """One product as GetProducts gives it: a JSON text."""
    sku = f"SKU{name}{usd}{''.join(attributes)}"
    described = {
        "servicecode": "AmazonEC2",
        "instanceType": name,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        **attributes,
    }
    dimension = {
        "unit": "Hrs",
        "rateCode": f"{sku}.JRTCKXETXF.6YS6EN2CT7",
        "description": f"${usd} per On Demand Linux {name} Instance Hour",
        "beginRange": "0",
        "endRange": "Inf",
        "appliesTo": [],
        "pricePerUnit": {"USD": usd},
    }
    term = {
        "sku": sku,
        "offerTermCode": "JRTCKXETXF",
        "effectiveDate": "2026-01-01T00:00:00Z",
        "priceDimensions": {f"{sku}.JRTCKXETXF.6YS6EN2CT7": dimension},
        "termAttributes": {},
    }
    return json.dumps(
        {
            "product": {"productFamily": "Compute Instance", "attributes": described, "sku": sku},
            "serviceCode": "AmazonEC2",
            "terms": {"OnDemand": {f"{sku}.JRTCKXETXF": term}},
            "version": "20260101000000",
            "publicationDate": "2026-01-01T00:00:00Z",
        }
    )


class PriceList(BaseHTTPRequestHandler):
    """Answers GetProducts in pages; keeps what it was asked."""

    products: ClassVar[Sequence[str]] = ()
    asked: ClassVar[list[Mapping[str, Any]]] = []
    denied: ClassVar[bool] = False

    def do_POST(self) -> None:
        """One call."""
        length = int(self.headers["Content-Length"])
        call = json.loads(self.rfile.read(length))
        self.asked.append({"target": self.headers["X-Amz-Target"], **call})
        if self.denied:
            self._answer(400, {"__type": "AccessDeniedException", "Message": "not allowed"})
            return
        start = int(call.get("NextToken", 0))
        page = {"FormatVersion": "aws_v1", "PriceList": self.products[start : start + PAGE]}
        if start + PAGE < len(self.products):
            page["NextToken"] = str(start + PAGE)
        self._answer(200, page)

    def _answer(self, status: int, body: Mapping[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class Nonsense(BaseHTTPRequestHandler):
    """Answers every call with the same bytes, as a proxy with a page of its own does."""

    body: ClassVar[bytes] = b""

    def do_POST(self) -> None:
        """One call."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def nonsense(body: bytes) -> Iterator[str]:
    """The address of a server that says this to everything."""
    with _served(type("Handler", (Nonsense,), {"body": body})) as url:
        yield url


@contextmanager
def price_list(
    *products: str, denied: bool = False
) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """A running server: its address and what it has been asked."""
    state = {"products": products, "asked": [], "denied": denied}
    handler = type("Handler", (PriceList,), state)
    with _served(handler) as url:
        yield url, handler.asked  # type: ignore[attr-defined]  # set above


@contextmanager
def _served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
