"""Tokens reach the remote through git's askpass, and nobody else."""

import subprocess
from pathlib import Path

import pytest

from reconciler.adapters.git.process import askpass
from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.model.errors import Forbidden, UsageError
from reconciler.ports.repository import FileChange
from reconciler.records.git_address import check_git_address
from tests.git_http import git_over_http
from tests.git_remote import git

TOKEN = "t0k3n-for-tests"


def test_token_opens_fetch_and_push(work: Path) -> None:
    """The loop in a cluster has nothing but a token."""
    with git_over_http(work.parent, TOKEN) as url:
        port = GitRepository(GitSettings(url=url, token=TOKEN))
        made = port.commit(port.fetch().id, [FileChange(path="a", content=b"x")], "Rendered")
        assert made is not None
        port.push(made.id)
        assert port.fetch() == made
        port.close()
    assert git(work.parent / "remote.git", "rev-parse", "main") == made.id


def test_token_reaches_a_host_that_is_written_in_upper_case(work: Path) -> None:
    """Git asks in the words of the address, and the token was not given."""
    with git_over_http(work.parent, TOKEN) as url:
        port = GitRepository(GitSettings(url=url.replace("127.0.0.1", "LocalHost"), token=TOKEN))
        assert port.fetch().subject == "First config"
        port.close()


def test_token_file_is_read_anew_after_a_rotation(work: Path, tmp_path: Path) -> None:
    """A rotated Secret must not need a restart."""
    file = tmp_path / "token"
    file.write_text("old")
    with git_over_http(work.parent, TOKEN) as url:
        port = GitRepository(GitSettings(url=url, token_file=file))
        with pytest.raises(Forbidden):
            port.fetch()
        file.write_text(TOKEN)
        assert port.fetch().subject == "First config"
        port.close()


def test_relative_paths_are_those_of_the_command(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git runs elsewhere: `cat: ./token` would look like a wrong token."""
    (tmp_path / "token").write_text(TOKEN)
    monkeypatch.chdir(tmp_path)
    with git_over_http(work.parent, TOKEN) as url:
        port = GitRepository(GitSettings(url=url, token_file=Path("token")))
        assert port.fetch().subject == "First config"
        port.close()
    port = GitRepository(GitSettings(url="remote.git"))
    assert port.fetch().subject == "First config"
    port.close()


@pytest.mark.parametrize(
    "name", ["ghp_0123456789abcdefghij", "github_pat_0123456789abcdef", "glpat-0123456789abcdef"]
)
def test_token_as_the_name_in_the_address_is_refused(name: str) -> None:
    """Forges document it so, and every argument of git would show it."""
    with pytest.raises(UsageError, match="RECONCILER_GIT_TOKEN") as caught:
        GitSettings(url=f"https://{name}@example.com/x.git")
    assert name not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/x?access_token=abc1234",
        "https://example.com/x.git?private_token=abc1234",
        "https://abc1234@example.com/x.git",
        "ssh://git:abc1234@example.com/x.git",
        "git://u:abc1234@example.com/x.git",
        "ftp://u:abc1234@example.com/x.git",
        "http::https://u:abc1234@example.com/x.git",
        "https://u:abc1234@[::1/x",
        "https://u@example.com:abc1234/x",
    ],
)
def test_secret_anywhere_in_the_address_is_refused_unseen(url: str) -> None:
    """Every argument of git would show it, and the manifest of an install too."""
    for make in (
        lambda: GitSettings(url=url),
        lambda: check_git_address(url, "--repository", "a Secret"),
    ):
        with pytest.raises(UsageError, match=r"carries a secret|is not a valid address"):
            make()


@pytest.mark.parametrize(
    "url", ["ftp://example.com/x", "ext::sh -c x", "http::https://example.com/x", "-x", ""]
)
def test_address_that_git_is_not_let_use_is_refused(url: str) -> None:
    """Git would say so after the install, or start a program of that name."""
    with pytest.raises(UsageError, match="is not a git address"):
        GitSettings(url=url)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com:8443/team/x.git",
        "ssh://git@example.com:2222/team/x.git",
        "git@example.com:team/x.git",
        "git://example.com/x",
        "file:///srv/x.git",
        "/srv/x@y/x.git",
        "../x.git",
    ],
)
def test_address_without_a_secret_is_taken(url: str) -> None:
    """The name of a user is no secret over ssh."""
    assert GitSettings(url=url).url == url


def test_token_is_for_its_host_alone(tmp_path: Path) -> None:
    """A server that is called nearly alike, and is redirected to, must get no answer."""
    settings = GitSettings(url="https://git.example.com/x.git", token=TOKEN)
    environment = askpass(settings, tmp_path)
    answers = [
        subprocess.run(
            [environment["GIT_ASKPASS"], prompt],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        ).stdout.strip()
        for host in ("git.example.com", "git.example.com/team", "git.example.com.evil.example")
        for prompt in (f"Username for 'https://{host}': ", f"Password for 'https://a@{host}': ")
    ]
    assert answers == ["x-access-token", TOKEN, "x-access-token", TOKEN, "", ""]


@pytest.mark.parametrize("token", ["", "wr0ng-token-value"])
def test_missing_or_wrong_token_is_forbidden_and_never_shown(work: Path, token: str) -> None:
    """An operator must be sent to the credentials, without reading them in the log."""
    with git_over_http(work.parent, TOKEN) as url:
        port = GitRepository(GitSettings(url=url, token=token))
        with pytest.raises(Forbidden) as caught:
            port.fetch()
        port.close()
    assert "check the token" in str(caught.value)
    assert not token or token not in str(caught.value)


def test_token_stays_out_of_files_and_arguments(work: Path, tmp_path: Path) -> None:
    """A local copy on a shared volume must hold no secret."""
    copy = tmp_path / "copy.git"
    with git_over_http(work.parent, TOKEN) as url:
        port = GitRepository(GitSettings(url=url, token=TOKEN, directory=copy))
        port.fetch()
        port.close()
    files = [file for file in copy.rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if TOKEN.encode() in file.read_bytes()]
