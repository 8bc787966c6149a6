"""The public parameters that name EKS and Bottlerocket images, which moto does not have."""

from collections.abc import Iterator
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.ssm import models

_VERSIONS = tuple(f"1.{minor}" for minor in range(30, 37))
_RELEASES = {"al2023": ("v20260110", "v20260214"), "bottlerocket": ("1.26.1", "1.27.0")}
"""Two releases of each family, the older one first; the newer one is what `latest` names."""
_PREFIXES = ("/aws/service/eks/optimized-ami", "/aws/service/bottlerocket")


def know_images() -> None:
    """Add the parameters of each Region to moto's SSM, from the first request on."""
    if not issubclass(models.ParameterDict, _WithImages):
        models.ParameterDict = _WithImages  # type: ignore[misc]


class _WithImages(models.ParameterDict):
    """Moto's parameters of a Region; those of images are made on first request."""

    _published = False

    def _check_loading_status(self, key: str) -> None:
        super()._check_loading_status(key)
        if not self._published and str(key or "").startswith(_PREFIXES):
            self._published = True
            self._publish()

    def _publish(self) -> None:
        make: Any = models.Parameter
        for name, image_id in _named(_images(self.account_id, self.region_name)):
            self[name] = [
                make(
                    account_id=self.account_id,
                    name=name,
                    value=image_id,
                    parameter_type="String",
                    description=None,
                    allowed_pattern=None,
                    keyid=None,
                    last_modified_date=utcnow(),
                    version=1,
                    data_type="text",
                )
            ]


def _images(account_id: str, region: str) -> list[str]:
    """Return the ids of the account's Linux images, sorted."""
    backend: Any = ec2_backends[account_id][region]
    fitting = (i for i in backend.amis.values() if i.architecture == "x86_64" and not i.platform)
    return sorted(str(image.id) for image in fitting)


def _named(images: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each parameter with the image that it names.

    Source: the names that AWS documents for EKS optimized images and for Bottlerocket.
    """
    for version in _VERSIONS:
        for arch in ("x86_64", "arm64"):
            for variant in ("standard", "nvidia", "neuron"):
                root = (
                    f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{arch}/{variant}"
                )
                for release, image_id in zip(_RELEASES["al2023"], images, strict=False):
                    pinned = f"amazon-eks-node-al2023-{arch}-{variant}-{version}-{release}"
                    yield f"{root}/{pinned}/image_id", image_id
                    yield f"{root}/recommended/image_id", image_id
            for variant in ("", "-nvidia"):
                root = f"/aws/service/bottlerocket/aws-k8s-{version}{variant}/{arch}"
                for release, image_id in zip(_RELEASES["bottlerocket"], images, strict=False):
                    yield f"{root}/{release}/image_id", image_id
                    yield f"{root}/latest/image_id", image_id
