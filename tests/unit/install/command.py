"""`reconciler manifest` as a user calls it."""

import subprocess
from pathlib import Path

from reconciler import __version__
from tests import command

ROLE = "arn:aws:iam::123456789012:role/analytics-reconciler"
CONFIG = """\
# The fleets of analytics: "quotes", {{ braces }} and ${dollars} stay what they are
cluster: analytics
sectors:
  coordinate:
    kind: memory
    taints: [{key: dedicated, value: coordinate, effect: NoSchedule}]
    fleets:
    - {size: small, min_capacity: 2, spot: false}
  primary:
    kind: memory
    fleets:
    - {size: small}
"""


def run(folder: Path, *arguments: str, config: str = CONFIG) -> subprocess.CompletedProcess[str]:
    """The command as a user calls it, with an image where the test names none."""
    (folder / "sectors.yaml").write_text(config)
    named = {"--image", "--iam-policy"} & {argument.partition("=")[0] for argument in arguments}
    image = () if named else ("--image", f"fleet-reconciler:{__version__}")
    return command.reconciler("manifest", *image, *arguments, cwd=folder)
