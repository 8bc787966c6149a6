"""Everything that uses moto's state, which is untyped; only this folder imports moto.

Only translation lives here: an instance of moto behind `InstanceHandle`, a Region behind
`MotoRegion`.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, cast

from moto import settings
from moto.core.authorization import ActionAuthenticatorMixin
from moto.core.base_backend import BackendDict
from moto.core.exceptions import ServiceException
from moto.core.model_instances import reset_model_data
from moto.ec2.models import ec2_backends
from moto.ec2.utils import random_fleet_id, random_spot_request_id
from moto.events.models import events_backends
from moto.sqs.models import sqs_backends

from reconciler.sandbox.aws.errors import Ec2Fault
from reconciler.sandbox.aws.moto_server.images import know_images
from reconciler.sandbox.aws.moto_server.lookups import look_instead
from reconciler.sandbox.aws.moto_server.template_tokens import TemplateTokens
from reconciler.sandbox.aws.state.launcher import EndReason, InstanceState
from reconciler.sandbox.aws.values import Announcement, LaunchTemplateRef, Lifecycle, Pool

_CODES: Mapping[InstanceState, int] = MappingProxyType(
    {
        InstanceState.PENDING: 0,
        InstanceState.RUNNING: 16,
        InstanceState.SHUTTING_DOWN: 32,
        InstanceState.TERMINATED: 48,
    }
)
_REASONS: Mapping[EndReason, tuple[str, str]] = MappingProxyType(
    {
        EndReason.USER: ("Client.UserInitiatedShutdown", "User initiated shutdown"),
        EndReason.FLEET: ("Client.UserInitiatedShutdown", "User initiated shutdown"),
        EndReason.SPOT_INTERRUPTION: (
            "Server.SpotInstanceTermination",
            "Spot instance termination",
        ),
        EndReason.FAILURE: ("Server.InternalError", "Internal error on launch"),
    }
)


class MotoInstance:
    """An instance of moto, as `launcher.InstanceHandle`."""

    def __init__(self, backend: Any, instance: Any, reservation_id: str) -> None:
        self._backend = backend
        self._instance = instance
        self._reservation_id = reservation_id
        self.instance_id: str = instance.id
        self.spot_request_id: str | None = getattr(instance, "spot_instance_request_id", None)
        self._private_ip: str = instance.private_ip
        self._private_dns_name: str = instance.private_dns_name
        self.image_id: str = instance.image_id
        self.joins = True
        """Whether it becomes a node."""
        self.interrupted_at: datetime | None = None
        """When EC2 takes it back, once it has been announced."""
        self.rebalance_at: datetime | None = None
        """When EC2 recommended to replace it."""
        self.scheduled_at: datetime | None = None
        """When its scheduled change begins."""

    @property
    def state(self) -> str:
        """Return its present state, as EC2 names it."""
        return str(self._instance.state)

    def show_state(self, state: InstanceState, reason: EndReason | None = None) -> None:
        """Make the API answer this state from now on."""
        self._instance.instance_state.name = str(state)
        self._instance.instance_state.code = _CODES[state]
        if reason is not None:
            self._show_reason(reason)

    def end(self, reason: EndReason) -> None:
        """Free what the instance holds; its state is terminated afterwards."""
        for interface in self._instance.nics.values():
            interface.delete_on_termination = True  # moto would keep it, and its address
        self._instance.terminate()
        self._show_reason(reason)

    def forget(self) -> None:
        """Remove the instance from the API."""
        self._backend.reservations.pop(self._reservation_id, None)
        self._backend.tags.pop(self.instance_id, None)

    def facts(self) -> dict[str, Any]:
        """Return what a node that boots on it needs to know, for JSON."""
        instance = self._instance
        tags = dict(self._backend.tags.get(self.instance_id, {}))
        return {
            "instance_id": self.instance_id,
            "state": self.state,
            "instance_type": instance.instance_type,
            "lifecycle": instance.lifecycle or "on-demand",
            "region": self._backend.region_name,
            "zone": instance.placement.zone,
            "image_id": self.image_id,
            "private_ip": self._private_ip,
            "private_dns_name": self._private_dns_name,
            "launch_time": instance.launch_time.isoformat(),
            "user_data": None if instance.user_data is None else str(instance.user_data),
            "fleet_id": tags.get("aws:ec2:fleet-id"),
            "tags": tags,
            "joins": self.joins,
            "interrupted_at": _text(self.interrupted_at),
            "rebalance_at": _text(self.rebalance_at),
            "scheduled_at": _text(self.scheduled_at),
        }

    def _show_reason(self, reason: EndReason) -> None:
        code, words = _REASONS[reason]
        self._instance.state_reason.code = code
        self._instance.state_reason.message = f"{code}: {words}"


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


class MotoRegion:
    """EC2 of one account and Region, as moto keeps it."""

    def __init__(self, account_id: str, region_name: str) -> None:
        try:
            backend: Any = ec2_backends[account_id][region_name]
        except KeyError:
            text = f"There is no Region {region_name}"
            raise Ec2Fault("InvalidParameterValue", text) from None
        look_instead(backend)
        self._backend = backend
        self.name = region_name
        self.account_id = account_id
        self._numbers: dict[str, int] = {}
        self.template_tokens = TemplateTokens(backend)

    def template_data(self, ref: LaunchTemplateRef) -> Mapping[str, Any]:
        """Return the data of the version that `ref` means now.

        Raises:
            Ec2Fault: No such template or version.
        """
        return cast("Mapping[str, Any]", self._template(ref)[1].data)

    def refresh_templates(self) -> None:
        """Make launch templates answer as EC2's do.

        Moto keeps the tags a template was created with, whatever CreateTags does later, and puts
        the template's own tags into its data, where only tags for what is launched belong.
        """
        for template in self._backend.launch_templates.values():
            template.tags = template.get_tags()
            for version in template.versions:
                specs = version.data.get("TagSpecifications")
                if specs:
                    kept = [s for s in specs if s.get("ResourceType") != "launch-template"]
                    version.data["TagSpecifications"] = kept

    def check_templates(self, ids: Sequence[str], names: Sequence[str]) -> None:
        """Refuse a request for a launch template that does not exist; moto would leave it out.

        Raises:
            Ec2Fault: There is no such template.
        """
        known = self._backend.launch_templates.values()
        what = "At least one of the launch templates specified in the request does not exist."
        if set(ids) - {each.id for each in known}:
            raise Ec2Fault("InvalidLaunchTemplateId.NotFound", what)
        if set(names) - {each.name for each in known}:
            raise Ec2Fault("InvalidLaunchTemplateName.NotFoundException", what)

    def zone_of_subnet(self, subnet_id: str) -> str:
        """Return the zone of a subnet.

        Raises:
            Ec2Fault: No such subnet.
        """
        try:
            return str(self._backend.get_subnet(subnet_id).availability_zone)
        except ServiceException as error:
            raise _fault(error) from error

    def default_subnets(self) -> Mapping[str, str]:
        """Return the subnet ids of the default VPC by zone, sorted by zone."""
        subnets = self._backend.get_default_subnets()
        return {zone: str(subnets[zone].id) for zone in sorted(subnets)}

    def tags(self, resource_id: str) -> Mapping[str, str]:
        """Return the tags of a resource, sorted by key."""
        return dict(sorted(self._backend.tags.get(resource_id, {}).items()))

    def add_tags(self, resource_id: str, tags: Mapping[str, str]) -> None:
        """Tag a resource; `aws:` keys are allowed, because the emulated EC2 sets them.

        Raises:
            Ec2Fault: There are more tags than EC2 allows.
        """
        try:
            self._backend.create_tags([resource_id], dict(tags))
        except ServiceException as error:
            raise _fault(error) from error

    def launch(
        self, pool: Pool, lifecycle: Lifecycle, tags: Mapping[str, str], at: datetime
    ) -> MotoInstance:
        """Create one instance from a pool's launch template, with its override applied.

        Raises:
            Ec2Fault: The template, subnet, security group or AMI is not there.
        """
        try:
            template, version = self._template(pool.template)
            reservation = self._backend.run_instances(
                pool.image_id or version.image_id,
                1,
                None,
                [],
                instance_type=pool.instance_type,
                is_instance_type_default=False,
                region_name=self.name,
                subnet_id=pool.subnet_id,
                placement=None if pool.subnet_id else pool.zone,
                security_group_ids=_security_groups(version.data),
                launch_template={
                    "LaunchTemplateId": template.id,
                    "Version": str(version.number),
                },
                tags={"instance": dict(tags), "volume": _volume_tags(version.data)},
                lifecycle="spot" if lifecycle == "spot" else None,
                ebs_optimized=bool(version.data.get("EbsOptimized")),
                metadata_options=version.data.get("MetadataOptions") or {},
                **_block_devices(version.data),
            )
        except ServiceException as error:
            raise _fault(error) from error
        except Ec2Fault:
            raise
        except Exception as error:  # moto fails in various ways on unexpected templates
            raise Ec2Fault("InternalError", f"{type(error).__name__}: {error}") from error
        instance = reservation.instances[0]
        instance.launch_time = at
        if lifecycle == "spot":
            instance.spot_instance_request_id = random_spot_request_id()
        self._attach_profile(instance, version.data.get("IamInstanceProfile") or {})
        return MotoInstance(self._backend, instance, reservation.id)

    def check_terminable(self, instance_ids: Sequence[str]) -> Mapping[str, tuple[int, str]]:
        """Return the states (code, name) of instances that may be terminated, by id.

        Raises:
            Ec2Fault: One is unknown or protected; then none may be terminated.
        """
        try:
            instances = self._backend.get_multi_instances_by_id(list(instance_ids))
        except ServiceException as error:
            raise _fault(error) from error
        for instance in instances:
            if instance.disable_api_termination is True:
                raise Ec2Fault(
                    "OperationNotPermitted",
                    f"The instance '{instance.id}' may not be terminated. "
                    "Modify its 'disableApiTermination' instance attribute and try again.",
                )
        return {i.id: (int(i.state_code), str(i.state)) for i in instances}

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """Let moto terminate instances of its own, checked before."""
        if instance_ids:
            self._backend.terminate_instances(list(instance_ids))

    def reservations(
        self, instance_ids: Sequence[str], filters: Mapping[str, Sequence[str]]
    ) -> list[tuple[int, Any]]:
        """Return reservations for DescribeInstances, oldest first, each with its page position.

        Raises:
            Ec2Fault: An id is unknown or a filter is.
        """
        try:
            if instance_ids:
                found = self._backend.get_reservations_by_instance_ids(
                    list(dict.fromkeys(instance_ids)), filters=filters
                )
            else:
                found = self._backend.describe_instances(filters=filters)
        except ServiceException as error:
            raise _fault(error) from error
        for key in self._backend.reservations:
            if key not in self._numbers:
                self._numbers[key] = len(self._numbers)
        return [(self._numbers[reservation.id], reservation) for reservation in found]

    @property
    def has_event_rules(self) -> bool:
        """Return whether somebody made a rule on the default event bus."""
        bus = events_backends[self._backend.account_id][self.name].event_buses.get("default")
        return bool(bus is not None and bus.rules)

    def announce(self, sent: Announcement, at: datetime) -> None:
        """Put an event on the default event bus, for the rules that someone made there."""
        account, region = self._backend.account_id, self.name
        arns = [f"arn:aws:ec2:{region}:{account}:instance/{each}" for each in sent.instance_ids]
        event = {
            "Source": sent.source,
            "DetailType": sent.detail_type,
            "Time": at.timestamp(),
            "Resources": arns,
            "Detail": json.dumps(sent.detail),
        }
        events_backends[account][region].put_events([event])

    def _template(self, ref: LaunchTemplateRef) -> tuple[Any, Any]:
        try:
            if ref.template_id is not None:
                template = self._backend.get_launch_template(ref.template_id)
            else:
                template = self._backend.get_launch_template_by_name(ref.template_name)
            return template, template.get_version(ref.version)
        except ServiceException as error:
            raise _fault(error) from error

    def _attach_profile(self, instance: Any, profile: Mapping[str, Any]) -> None:
        """Set the template's instance profile if IAM has it; a demo need not create one."""
        if not profile:
            return
        try:
            self._backend.associate_iam_instance_profile(
                instance_id=instance.id,
                iam_instance_profile_name=profile.get("Name"),
                iam_instance_profile_arn=profile.get("Arn"),
            )
        except ServiceException:
            return


def new_fleet_id() -> str:
    """Return an id in EC2's form, drawn from moto's generator."""
    return str(random_fleet_id())


def reset_moto() -> None:
    """Delete every resource of every account: moto's state is one per process."""
    enforce_iam(enforced=False)
    know_images()
    BackendDict.reset()
    reset_model_data()


def release_waiting_calls() -> None:
    """End the long polls of SQS within a second, before their time."""
    backends = [backend for account in sqs_backends.values() for backend in account.values()]
    queues: list[Any] = [queue for backend in backends for queue in backend.queues.values()]
    for queue in queues:
        queue.wait_for_messages = _refuse_to_wait


def _refuse_to_wait(_seconds: float) -> None:
    raise ServiceException("ServiceUnavailable", "The server is stopping")


def enforce_iam(*, enforced: bool) -> None:
    """Check signatures and IAM policies of every call from now on, or accept any credentials."""
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0 if enforced else float("inf")
    ActionAuthenticatorMixin.request_count = 0


def _fault(error: Any) -> Ec2Fault:
    return Ec2Fault(str(error.code), str(error.message))


def _security_groups(data: Mapping[str, Any]) -> list[str]:
    """Return the group ids of a template, including those of its network interfaces."""
    groups = list(data.get("SecurityGroupIds") or [])
    for interface in data.get("NetworkInterfaces") or []:
        groups.extend(interface.get("Groups") or [])
    return groups


def _volume_tags(data: Mapping[str, Any]) -> dict[str, str]:
    return {
        tag["Key"]: tag["Value"]
        for spec in data.get("TagSpecifications") or []
        if spec.get("ResourceType") == "volume"
        for tag in spec.get("Tags") or []
    }


def _block_devices(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template's volumes; without any moto makes a root volume of its own."""
    volumes = [m for m in data.get("BlockDeviceMappings") or [] if m.get("Ebs")]
    return {"block_device_mappings": volumes} if volumes else {}
