"""Writes a software bill of materials (CycloneDX 1.6) from the hashed requirements.

Usage: python -m tests.project.sbom > dist/sbom.cdx.json
Format: https://cyclonedx.org/docs/1.6/json/, read 2026-11. The same requirements give the same
bytes.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from reconciler import __version__

ROOT = Path(__file__).parents[2]
_PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^\s;]+)((?:\s*;[^\\\n]*)?)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(text: str) -> list[dict[str, Any]]:
    """The packages of a hashed requirements file, sorted.

    Raises:
        ValueError: A package has no hash.
    """
    found = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        pin = _PIN.match(line)
        if pin is None:
            continue
        name, version = pin[1], pin[2]
        hashes = sorted(_HASH.findall(line))
        if not hashes:
            raise ValueError(f"{name} {version} has no hash")
        purl = f"pkg:pypi/{name}@{version}"
        found.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                # One for each file that the index has of this version.
                "externalReferences": [
                    {
                        "type": "distribution",
                        "url": purl,
                        "hashes": [{"alg": "SHA-256", "content": each}],
                    }
                    for each in hashes
                ],
            }
        )
    return sorted(found, key=lambda each: (each["name"], each["version"]))


def sbom(text: str) -> dict[str, Any]:
    """The whole document for the program with these requirements."""
    parts = components(text)
    own = f"pkg:pypi/fleet-reconciler@{__version__}"
    serial = uuid5(NAMESPACE_URL, own + json.dumps(parts))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "fleet-reconciler",
                "version": __version__,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": parts,
        "dependencies": [{"ref": own, "dependsOn": [part["bom-ref"] for part in parts]}],
    }


if __name__ == "__main__":
    requirements = (ROOT / "requirements/runtime.txt").read_text()
    sys.stdout.write(json.dumps(sbom(requirements), indent=2) + "\n")
