"""Which API server the adapter talks to, and what is said of a kubeconfig that names none."""

from pathlib import Path

import pytest

from reconciler.adapters.kubernetes import connect
from reconciler.model.errors import InputError
from tests.contract.kubernetes_api import kubeconfig


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
    ("text", "what"), [("", "is empty"), ("a: [", "is not a usable kubeconfig: ")]
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
