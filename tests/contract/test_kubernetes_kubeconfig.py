"""Which API server the adapter talks to, and what is said of a kubeconfig that names none."""

import stat
from pathlib import Path
from typing import Any

import orjson
import pytest

from reconciler.adapters.kubernetes import connect
from reconciler.adapters.kubernetes.errors import NotAccepted
from reconciler.model.errors import Forbidden, InputError
from tests.contract.kubernetes_api import kubeconfig
from tests.contract.scripted import Answer, Request, json_answer, scripted_server


@pytest.mark.parametrize("text", ["", "5", "a: [", "clusters: 5", "apiVersion: v1\nkind: Config\n"])
def test_broken_kubeconfig_is_an_input_error(tmp_path: Path, text: str) -> None:
    """The client's own exceptions name neither file nor cure."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        connect(str(path))
    assert caught.value.where == str(path)


def test_kubeconfig_that_is_not_there_is_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An invalid file is looked at for its fault; a missing one is looked for elsewhere."""
    missing = str(tmp_path / "none")
    with pytest.raises(InputError) as caught:
        connect(missing)
    assert (caught.value.where, caught.value.what) == (missing, "no such file")
    monkeypatch.setenv("KUBECONFIG", f"{missing}:{missing}-2")
    with pytest.raises(InputError) as caught:
        connect()
    assert (caught.value.where, caught.value.what) == (f"{missing}:{missing}-2", "no such file")
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError) as caught:
        connect(context="prod")
    assert caught.value.where == "~/.kube/config"
    assert "--kubeconfig" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        ("a: [", "is not a usable kubeconfig: "),
        ("just a text\n", "is not a usable kubeconfig: its content is something else"),
    ],
)
def test_kubeconfig_that_is_no_kubeconfig_says_why(tmp_path: Path, text: str, what: str) -> None:
    """An empty file is what a failed download or a full disk leaves."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        connect(str(path))
    assert caught.value.what.startswith(what)


def test_kubeconfig_variable_beats_the_pod_one_happens_to_run_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sandbox on a build machine in Kubernetes would act on the build cluster."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, "http://127.0.0.1:1"))
    transport = connect()
    assert transport.host == "http://127.0.0.1:1"
    transport.close()


class _Tokens:
    """An API server that knows one token, and what it was sent."""

    def __init__(self) -> None:
        self.valid = "one"
        self.sent: list[str] = []

    def answer(self, request: Request) -> Answer:
        """Refuse every other token."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        token = headers.get("authorization", "").removeprefix("Bearer ")
        self.sent.append(token)
        return json_answer({"kind": "Status"}, 200 if token == self.valid else 401)


def _with_user(folder: Path, url: str, **user: Any) -> str:
    """A kubeconfig with these credentials."""
    path = Path(kubeconfig(folder, url))
    config = orjson.loads(path.read_bytes())
    config["users"][0]["user"] = user
    path.write_bytes(orjson.dumps(config))
    return str(path)


@pytest.mark.parametrize("in_file", [True, False], ids=["tokenFile", "token"])
def test_token_that_was_rotated_is_read_again(tmp_path: Path, *, in_file: bool) -> None:
    """The program was refused from then on, until somebody started it again."""
    server, token_file = _Tokens(), tmp_path / "token"

    def write(token: str) -> str:
        token_file.write_text(token)
        user = {"tokenFile": str(token_file)} if in_file else {"token": token}
        return _with_user(tmp_path, url, **user)

    with scripted_server(server.answer) as url:
        transport = connect(write("one"))
        assert transport.request("GET", "/version").status == 200
        server.valid = "two"
        write("two")
        assert transport.request("PATCH", "/api/v1/nodes/a", body={}).status == 200
        assert transport.request("GET", "/version").status == 200
        transport.close()
    assert server.sent == ["one", "one", "two", "two"]


def test_token_that_is_refused_and_was_not_rotated_is_sent_once(tmp_path: Path) -> None:
    """Each refusal would be two, on a server that may count them."""
    server = _Tokens()
    with scripted_server(server.answer) as url:
        transport = connect(_with_user(tmp_path, url, token="expired"))
        assert transport.request("GET", "/version").status == 401
        transport.close()
    assert server.sent == ["expired"]


def _plugin(folder: Path, script: str) -> dict[str, Any]:
    """The user whose credentials such a shell script prints."""
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\necho >> {folder}/runs\n{script}\n")
    path.chmod(stat.S_IRWXU)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": str(path)}}


EXPIRED = "echo 'Error: SSO session expired' >&2; exit 255"
FAILED = "credential plugin failed: process returned 255. Error: SSO session expired"


def test_credential_plugin_that_fails_is_run_once_and_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without credentials every list is refused, for a minute, and no message says why."""
    file = _with_user(tmp_path, "http://127.0.0.1:1", **_plugin(tmp_path, EXPIRED))
    with pytest.raises(InputError) as caught:
        connect(file)
    assert (caught.value.where, caught.value.what) == (file, f"its {FAILED}")
    assert "log in again" in caught.value.hint
    assert capfd.readouterr().err == ""
    assert len((tmp_path / "runs").read_text().splitlines()) == 1


def test_credential_plugin_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """A machine without the AWS CLI."""
    user = _plugin(tmp_path, "")
    user["exec"]["command"] = "no-such-plugin"
    with pytest.raises(InputError, match=r"its credential plugin failed: .*no-such-plugin"):
        connect(_with_user(tmp_path, "http://127.0.0.1:1", **user))


def test_credential_plugin_that_fails_later_is_reported_with_the_refusal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A session that ends while the program runs: "401 Unauthorized" names no cause."""
    status = {"token": "one", "expirationTimestamp": "2020-01-01T00:00:00Z"}
    credential = {"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential"}
    (tmp_path / "credential").write_bytes(orjson.dumps(credential | {"status": status}))
    server = _Tokens()
    with scripted_server(server.answer) as url:
        user = _plugin(tmp_path, f"cat {tmp_path}/credential")
        transport = connect(_with_user(tmp_path, url, **user))
        assert transport.request("GET", "/version").status == 200
        server.valid = "two"
        _plugin(tmp_path, EXPIRED)
        with pytest.raises(NotAccepted) as caught:
            transport.expect("GET", "/version")
        transport.close()
    assert caught.value.what.endswith(f"; the {FAILED}")
    assert capfd.readouterr().err == ""


def _with_token_file(tmp_path: Path, url: str, text: str) -> str:
    (tmp_path / "token").write_text(text)
    return _with_user(tmp_path, url, tokenFile=str(tmp_path / "token"))


def test_token_file_that_ends_with_a_newline_is_accepted(tmp_path: Path) -> None:
    """`echo TOKEN > file`: kubectl trims it. Here every request raised ValueError."""
    server = _Tokens()
    with scripted_server(server.answer) as url:
        transport = connect(_with_token_file(tmp_path, url, f"{server.valid}\n"))
        assert transport.request("GET", "/version").status == 200
        transport.close()


def test_token_that_no_header_can_hold_is_refused_without_showing_it(tmp_path: Path) -> None:
    """It ended the program with a traceback."""
    transport = connect(_with_token_file(tmp_path, "http://127.0.0.1:1", "first\nsecond"))
    with pytest.raises(Forbidden, match="contains a line break") as caught:
        transport.request("GET", "/version")
    assert "second" not in str(caught.value)
