"""The page from a server of this machine alone, which can simulate any solution and ask the actor of a run.

It listens on 127.0.0.1, answers three addresses, and only with the token that is in the page's address: no other page
in the same browser, and no other machine, gets anything from it. No part of a request is ever a path on the disk.
"""

import json
import secrets
import threading
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from moqd.choose.ask import Actor, asks_for
from moqd.explorer.gaits import gait_of, seen
from moqd.io.errors import EvaluationError
from moqd.runs.folder import Run

HOST = "127.0.0.1"
KEPT = 1000
"""Number of gaits that are cached, so that they are simulated only once."""


class ExplorerServer(ThreadingHTTPServer):
    """Serves one page and the gaits of its runs."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, page: str, runs: Sequence[Run], port: int = 0) -> None:
        self._page, self._runs = page.encode(), runs
        self._solutions = [run.solutions() for run in runs]
        self._token = secrets.token_urlsafe(24)
        self._known: dict[tuple[int, int], bytes] = {}
        self._actors: dict[int, Actor] = {}
        self._simulating = threading.Lock()
        super().__init__((HOST, port), _Handler)

    @property
    def address(self) -> str:
        """The address to open in a browser on this machine."""
        return f"http://{HOST}:{self.server_port}/?token={self._token}"

    def answer(self, host: str | None, target: str) -> tuple[HTTPStatus, str, bytes]:
        """Status, type and content for a request."""
        port = "" if self.server_port == 80 else f":{self.server_port}"  # which browsers leave out
        if host not in {f"{name}{port}" for name in (HOST, "localhost")}:
            return _refusal(HTTPStatus.FORBIDDEN, "this server answers only to its own address")
        try:
            address = urlsplit(target)
            query = parse_qs(address.query, max_num_fields=8)
        except ValueError:
            return _refusal(HTTPStatus.NOT_FOUND, "there is no such address")
        if not secrets.compare_digest("".join(query.get("token", [])).encode(), self._token.encode()):
            return _refusal(HTTPStatus.FORBIDDEN, "the token is missing or wrong; open the address that moqd printed")
        if address.path == "/":
            return HTTPStatus.OK, "text/html; charset=utf-8", self._page
        if address.path == "/gait":
            return self._gait(query)
        if address.path == "/ask":
            return self._answered(query)
        return _refusal(HTTPStatus.NOT_FOUND, "there is no such address")

    def _gait(self, query: dict[str, list[str]]) -> tuple[HTTPStatus, str, bytes]:
        run, row = (_count(query.get(name, [])) for name in ("run", "solution"))
        if run is None or row is None or run >= len(self._runs) or row >= len(self._solutions[run].cell):
            return _refusal(HTTPStatus.NOT_FOUND, "there is no such solution")
        content = self._known.get((run, row)) or self._simulated(run, row)
        return HTTPStatus.OK, "application/json", content

    def _answered(self, query: dict[str, list[str]]) -> tuple[HTTPStatus, str, bytes]:
        """What the actor of a run does for a preference and, if it takes one, a feature."""
        run = _count(query.get("run", []))
        if run is None or run >= len(self._runs) or not (asks := asks_for(self._runs[run])):
            return _refusal(HTTPStatus.NOT_FOUND, "there is no such actor")
        asked = {name: _numbers(query.get(name, [])) for name in asks}
        with self._simulating:
            try:
                if run not in self._actors:
                    self._actors[run] = Actor(self._runs[run])
                answer = self._actors[run].ask(**asked)
                content = {
                    "objectives": list(answer.objectives.values()),
                    "features": list(answer.features.values()),
                    "asked": list(answer.asked_features.values()),
                    "cell": answer.cell,
                    "verdict": answer.verdict,
                    "gait": seen(answer.task, answer.genotype),
                }
                return HTTPStatus.OK, "application/json", json.dumps(content, allow_nan=False).encode()
            except (EvaluationError, ValueError) as error:
                return HTTPStatus.OK, "application/json", json.dumps({"error": str(error)}).encode()

    def _simulated(self, run: int, row: int) -> bytes:
        with self._simulating:  # one at a time: each uses all cores
            if (run, row) in self._known:  # by the one before
                return self._known[run, row]
            try:
                content = json.dumps(gait_of(self._runs[run].task, self._solutions[run], row), allow_nan=False).encode()
            except (EvaluationError, ValueError) as error:
                return json.dumps({"error": str(error)}).encode()
            if len(self._known) >= KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[run, row] = content
            return content


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    server_version, sys_version = "moqd", ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        status, kind, content = self.server.answer(self.headers.get("Host"), self.path)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        with suppress(ConnectionError):  # whoever asked is gone
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as http.server has it
        """Logs nothing: the terminal is for the user's own commands."""


def _refusal(status: HTTPStatus, why: str) -> tuple[HTTPStatus, str, bytes]:
    return status, "application/json", json.dumps({"error": why}).encode()


def _numbers(values: list[str]) -> list[float] | None:
    """Numbers with commas between them; None where there is nothing like it."""
    text = values[0] if len(values) == 1 and len(values[0]) < 1000 else ""
    try:
        return [float(part) for part in text.split(",")] if text else None
    except ValueError:
        return None


def _count(values: list[str]) -> int | None:
    text = values[0] if len(values) == 1 else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
