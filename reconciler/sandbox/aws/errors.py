"""The error of the emulated EC2, which a caller sees as `<Code>` and `<Message>`."""

from reconciler.model.errors import ReconcilerError


class Ec2Fault(ReconcilerError):
    """A request that EC2 refuses.

    Args:
        code: EC2's error code, such as `InvalidFleetId.NotFound`.
        message: EC2's text for it.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__("ec2", f"{code}: {message}")
        self.code = code
        self.message = message


def fleet_not_found(fleet_id: str) -> Ec2Fault:
    """Return the error for a fleet id that this Region and account do not have."""
    return Ec2Fault("InvalidFleetId.NotFound", f"The fleet ID '{fleet_id}' does not exist")
