"""Which forge, which repository, which token: what is reported before anything is sent."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.adapters.forge import ForgeSettings
from reconciler.adapters.forge.settings import ForgeKind, api_of, forge_kind_of, place_of
from reconciler.model.errors import ToolError, UsageError
from reconciler.telemetry.scrubbing import scrub
from tests.forge_server import PROJECT, TOKEN


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda file: None, "no such file"),
        (Path.mkdir, "is a directory"),
        (lambda file: file.write_bytes(b"\xff"), "cannot be read: 'utf-8' codec"),
        (Path.touch, "the file is empty"),
        (lambda file: file.write_text("one\ntwo"), "holds more than a token"),
    ],
)
def test_token_file_that_cannot_be_read_is_reported(
    tmp_path: Path, make: Callable[[Path], object], why: str
) -> None:
    """Masked as a secret, the reason would be a riddle: `no token: ***`."""
    make(tmp_path / "token")
    settings = ForgeSettings(
        kind="github",
        api_url="https://a.example",
        repository=PROJECT,
        token_file=tmp_path / "token",
    )
    with pytest.raises(ToolError) as caught:
        settings.read_token()
    place = f"{tmp_path / 'token'} (the token of the forge)"
    assert scrub(str(caught.value)).startswith(f"{place}: {why}")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://github.com/team/fleets.git", ("github.com", "team/fleets")),
        ("git@github.com:team/fleets.git", ("github.com", "team/fleets")),
        ("git@GitHub.com:team/fleets.git", ("github.com", "team/fleets")),
        ("ssh://git@gitlab.example:2222/a/b/c.git", ("gitlab.example", "a/b/c")),
        ("https://gitlab.example:8443/a/b/c", ("gitlab.example:8443", "a/b/c")),
        ("/srv/git/fleets.git", None),
        ("file:///srv/git/fleets.git", None),
        ("https://github.com/fleets", None),
    ],
)
def test_place_is_read_from_the_git_address(url: str, place: tuple[str, str] | None) -> None:
    """One address is enough: nobody wants to configure the same repository twice."""
    assert place_of(url) == place


@pytest.mark.parametrize(
    ("host", "kind", "api"),
    [
        ("github.com", "github", "https://api.github.com"),
        ("github.example", "github", "https://github.example/api/v3"),
        ("gitlab.com", "gitlab", "https://gitlab.com/api/v4"),
    ],
)
def test_api_follows_from_the_host(host: str, kind: ForgeKind, api: str) -> None:
    """Enterprise servers have their API elsewhere than github.com."""
    assert (forge_kind_of(host), api_of(kind, host)) == (kind, api)


def test_unknown_host_names_no_forge() -> None:
    """A token must not be sent to a guess."""
    assert forge_kind_of("git.example") is None


@pytest.mark.parametrize("url", ["http://forge.example", "https://a:b@forge.example", "ftp://x"])
def test_address_that_would_leak_a_token_is_refused(url: str) -> None:
    """Plain http shows the token to everyone on the way."""
    with pytest.raises(UsageError):
        ForgeSettings(kind="github", api_url=url, repository=PROJECT, token=TOKEN)
