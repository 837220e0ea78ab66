"""The page's server: it answers its own page, and nothing and nobody else."""

import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

import pytest

from moqd.choose.ask import Answer
from moqd.explorer.serve import ExplorerServer
from moqd.io.errors import EvaluationError, InputError
from tests.plots.made import made_run


@pytest.fixture(scope="module")
def server():
    with ExplorerServer("<p>the page</p>", [made_run(2, 2)]) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, target, host=None, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    try:
        connection.putrequest(method, target, skip_host=True)
        if host != "":
            connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def token_of(server):
    return parse_qs(urlsplit(server.address).query)["token"][0]


def test_it_listens_to_this_machine_only(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.address.startswith("http://127.0.0.1:")
    assert len(token_of(server)) >= 32


def test_the_page_and_what_it_asks_for(server):
    token = token_of(server)
    assert ask(server, f"/?token={token}") == (200, "<p>the page</p>")
    assert ask(server, f"/?token={token}", host=f"localhost:{server.server_port}")[0] == 200
    status, text = ask(server, f"/gait?run=0&solution=1&token={token}")
    assert status == 200
    assert json.loads(text) == {}, "there is nothing to be seen of these"


def test_a_gait_that_fails_says_why(server, monkeypatch):
    def stumble(*_):
        raise EvaluationError("it stumbled.")

    monkeypatch.setattr("moqd.explorer.serve.gait_of", stumble)
    status, text = ask(server, f"/gait?run=0&solution=2&token={token_of(server)}")
    assert (status, json.loads(text)) == (200, {"error": "it stumbled."})


class Oracle:
    """Stands for an actor: what it was asked comes back."""

    def __init__(self, run):
        self.task = run.task

    def ask(self, preference=None, feature=None):
        if preference is None:
            raise InputError("what for?")
        return Answer(
            task=self.task,
            cell=3,
            place=-1,
            objectives=dict(zip("ab", preference, strict=True)),
            features={"f": 0.5},
            preference=tuple(preference),
            genotype={},
            asked_features={} if feature is None else {"f": feature[0]},
            is_new=True,
        )


@pytest.mark.parametrize(("asks", "asked"), [(["preference", "feature"], [0.25]), (["preference"], [])])
def test_the_actor_is_asked(server, monkeypatch, asks, asked):
    target = f"/ask?run=0&preference=0.75,0.25&feature=0.25&token={token_of(server)}"
    assert ask(server, target) == (404, '{"error": "there is no such actor"}')  # of this run there is none
    monkeypatch.setattr("moqd.explorer.serve.asks_for", lambda run: asks)
    monkeypatch.setattr("moqd.explorer.serve.Actor", Oracle)
    monkeypatch.setattr("moqd.explorer.serve.seen", lambda task, genotype: {"html": "a gait"})
    server._actors.clear()
    status, text = ask(server, target)
    verdict = "nothing in its cell, 3, is at least as good in every objective"
    expected = {"objectives": [0.75, 0.25], "features": [0.5], "asked": asked, "cell": 3, "verdict": verdict}
    assert (status, json.loads(text)) == (200, expected | {"gait": {"html": "a gait"}})
    for wrong in ("a,b", "1,,2", "", "1" * 2000):
        status, text = ask(server, f"/ask?run=0&preference={wrong}&token={token_of(server)}")
        assert (status, json.loads(text)) == (200, {"error": "what for?"})
    assert ask(server, f"/ask?run=1&preference=1,0&token={token_of(server)}")[0] == 404


@pytest.mark.parametrize(
    "host", ["", "evil.example", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", "[::1]"]
)
def test_other_hosts_are_refused(server, host):
    """So that no page of another name, however it resolves, can read anything."""
    host = host.format(port=server.server_port)
    status, text = ask(server, f"/?token={token_of(server)}", host=host)
    assert (status, "page" in text) == (403, False)


@pytest.mark.parametrize(
    "target",
    ["/", "/?token=", "/?token=x", "/gait?run=0&solution=0", "/ask?run=0", "/?token={token}x", "/?Token={token}"],
)
def test_without_the_token_there_is_nothing(server, target):
    assert ask(server, target.format(token=token_of(server)))[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        *("/..", "/../etc/passwd", "/%2e%2e/etc/passwd", "/..%2fetc%2fpasswd", "//etc/passwd", "/etc/passwd"),
        *(
            "/gait/../..",
            "/explorer.html",
            "/gait/",
            "/index.html",
            "/%00",
            "/gait%00",
            "http://127.0.0.1/x",
            "/\\..\\x",
        ),
    ],
)
def test_no_path_leads_to_the_disk(server, path):
    status, text = ask(server, f"{path}?token={token_of(server)}")
    assert status in (403, 404)
    assert set(json.loads(text)) == {"error"}


@pytest.mark.parametrize(
    "query",
    [
        *(
            "run=0&solution=-1",
            "run=0&solution=100000",
            "run=1&solution=0",
            "run=0",
            "solution=0",
            "run=0&solution=1e3",
        ),
        *("run=0&solution=../x", "run=0&run=0&solution=0", "run=%D9%A1&solution=0", "run=0&solution=" + "9" * 5000),
    ],
)
def test_no_other_solution(server, query):
    assert ask(server, f"/gait?{query}&token={token_of(server)}")[0] == 404


def test_other_methods_and_garbage(server):
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(server, f"/?token={token_of(server)}", method=method)[0] == 501
    for content in (b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as connection:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1000)
    assert ask(server, f"/?token={token_of(server)}")[0] == 200


@pytest.mark.slow
def test_200_requests_at_once(server):
    token = token_of(server)
    targets = [f"/gait?run=0&solution={i % 5}&token={token}" if i % 2 else f"/?token={token}" for i in range(200)]
    with ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(lambda target: ask(server, target)[0], targets))
    assert answers == [200] * 200
