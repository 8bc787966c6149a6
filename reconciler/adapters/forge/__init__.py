"""The forges around a config repository: GitHub and GitLab through their REST APIs."""

from reconciler.adapters.forge.github import GitHub
from reconciler.adapters.forge.gitlab import GitLab
from reconciler.adapters.forge.rest import RestClient
from reconciler.adapters.forge.settings import ForgeSettings

__all__ = ["ForgeSettings", "GitHub", "GitLab", "forge"]


def forge(settings: ForgeSettings) -> GitHub | GitLab:
    """Return the adapter for a forge."""
    if settings.kind == "github":
        return GitHub(settings, RestClient(settings, "GitHub"))
    return GitLab(settings, RestClient(settings, "GitLab"))
