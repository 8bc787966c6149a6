"""A rendered root that tests apply to the emulated AWS."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reconciler.gitops.rendering.render import render
from reconciler.gitops.rendering.root_module import RootModule
from reconciler.gitops.rendering.write import write_rendered
from reconciler.sandbox.aws.server import AwsServer
from tests.terraform.program import TerraformProgram


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A rendered root in a folder, applied to the emulated AWS."""

    terraform: TerraformProgram
    folder: Path
    server: AwsServer
    ec2: Any
    root: RootModule

    @property
    def surroundings(self) -> dict[str, str]:
        """Environment that leads to the emulated AWS."""
        return {
            "AWS_ENDPOINT_URL": self.server.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def call(self, *arguments: str) -> tuple[int, str]:
        """One terraform call against the emulated AWS: exit code and all that it printed."""
        done = self.terraform.run(self.folder, *arguments, **self.surroundings)
        return done.returncode, done.stdout + done.stderr

    def apply(self) -> None:
        """Apply without asking."""
        code, printed = self.call("apply", "-auto-approve")
        assert code == 0, printed

    def assert_no_changes(self) -> str:
        """Plan, expect nothing to do, and give what was printed."""
        code, printed = self.call("plan", "-detailed-exitcode")
        assert code == 0, printed
        assert "No changes." in printed
        return printed

    def with_variables(self, **variables: Any) -> "Workspace":
        """The same with other variables in all fleets, rendered."""
        fleets = {name: {**fleet, **variables} for name, fleet in self.root.fleets.items()}
        root = replace(self.root, fleets=fleets)
        write_rendered(render(root), self.folder)
        return replace(self, root=root)

    def planned_actions(self) -> dict[str, list[str]]:
        """What a fresh plan would do, by resource type and fleet; without what stays."""
        code, printed = self.call("plan", "-out=saved")
        assert code == 0, printed
        shown = json.loads(self.call("show", "-json", "saved")[1])
        changes = {c["address"]: c["change"]["actions"] for c in shown["resource_changes"]}
        return {
            re.sub(r'.*(?:fleet|group)\["(.*)"\]\.(.*)\.this', r"\2 \1", address): actions
            for address, actions in changes.items()
            if actions != ["no-op"]
        }

    def fleets(self) -> dict[str, dict[str, Any]]:
        """The fleets that EC2 has of this cluster, by name."""
        described = self.ec2.describe_fleets()["Fleets"]
        tagged = [
            (fleet, {tag["Key"]: tag["Value"] for tag in fleet["Tags"]}) for fleet in described
        ]
        return {
            tags["fleet"]: {**fleet, "Tags": tags}
            for fleet, tags in tagged
            if tags.get("cluster") == self.root.cluster_name
            and not fleet["FleetState"].startswith("deleted")
        }
