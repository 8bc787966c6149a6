"""Moto's HTTP application with our operations in front of moto's own; untyped, as moto is."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from moto.autoscaling.exceptions import AutoscalingClientError
from moto.autoscaling.models import autoscaling_backends
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.exceptions import AccessDeniedError
from moto.core.responses import ActionResult
from moto.core.utils import convert_to_flask_response
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.ec2.responses import EC2Response
from moto.eks.responses import EKSResponse
from moto.iam.access_control import IAMPolicy, IAMRequest
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from moto.ssm.responses import SimpleSystemManagerResponse

from reconciler.sandbox.aws.errors import Ec2Fault
from reconciler.sandbox.aws.iam import Subject, is_allowed, scaling_subjects_of, subjects_of
from reconciler.sandbox.aws.moto_server.groups import let_groups_rest
from reconciler.sandbox.aws.moto_server.instance_answers import InstancesResult, ReservationXmlCache

__all__ = ["MotoRequestHandler", "Operation", "create_application"]

_SEEN = ("Describe", "Get", "CreateFleet", "ModifyFleet", "DeleteFleets", "TerminateInstances")
"""Calls that change nothing of an instance, or only what each answer checks."""

Parameters = Mapping[str, Any]
Operation = Callable[[str, str, Parameters], Mapping[str, Any] | None]
"""(account, region, parameters) -> answer by botocore's names; None leaves the call to moto."""


def create_application(
    operations: Mapping[str, Operation], auto_scaling: Mapping[str, Operation]
) -> Any:
    """Return moto's server application, with the given operations answered by ours.

    Args:
        operations: Of EC2, by Python name of the action (`describe_fleets`).
        auto_scaling: The same for Auto Scaling.
    """
    let_groups_rest()

    def create_app(service: Any) -> Any:
        app = create_backend_app(service)
        made: Any = None
        if service == "ec2":
            made = _response_class(operations)
        elif service == "autoscaling":
            made = _scaling_class(auto_scaling)
        elif service in _NAMED:
            made = _authorizing_class(*_NAMED[service])
        if made is not None:
            view = convert_to_flask_response(made.dispatch)
            for endpoint in app.view_functions:
                app.view_functions[endpoint] = view
        return app

    return DomainDispatcherApplication(create_app)


def _scaling_class(operations: Mapping[str, Operation]) -> Any:
    """Return moto's Auto Scaling response class, with our operations in place of moto's."""

    def method(name: str, operation: Operation) -> Callable[[Any], Any]:
        inherited = getattr(AutoScalingResponse, name, None)

        def call(response: Any) -> Any:
            try:
                answer = operation(response.current_account, response.region, response.params)
            except Ec2Fault as fault:
                raise _scaling_fault(fault) from fault
            if answer is None and inherited is not None:
                return inherited(response)
            return ActionResult(answer)

        return call

    methods: dict[str, Any] = {
        name: method(name, operation) for name, operation in operations.items()
    }
    return _authorizing_class(AutoScalingResponse, _scaling_subjects, methods)


def _scaling_fault(fault: Ec2Fault) -> Any:
    error: Any = AutoscalingClientError(fault.code, fault.message)
    return error


def _response_class(operations: Mapping[str, Operation]) -> Any:
    """Return moto's EC2 response class, with our operations in place of moto's."""
    xml_cache = ReservationXmlCache()

    def call_action(response: Any) -> Any:
        """Call as moto does; a call that may change instances clears their cached answers."""
        if not str(response._get_action()).startswith(_SEEN):  # noqa: SLF001 - moto gives no other way
            xml_cache.forget()
        return EC2Response.call_action(response)

    def method(name: str, operation: Operation) -> Callable[[Any], Any]:
        inherited = getattr(EC2Response, name, None)

        def call(response: Any) -> Any:
            response.error_on_dryrun()
            try:
                answer = operation(response.current_account, response.region, response.params)
            except Ec2Fault as fault:
                raise EC2ClientError(fault.code, fault.message) from fault
            if answer is None and inherited is not None:
                return inherited(response)
            if answer is not None and name == "describe_instances":
                backend = ec2_backends[response.current_account][response.region]
                return InstancesResult(answer, xml_cache, backend.tags)
            return ActionResult(answer)

        return call

    def authorize(response: Any, resource: str = "*") -> None:
        """Authorize with conditions on tags, and with EC2's own code for AccessDenied."""
        del resource  # moto never says which
        try:
            response._authenticate_and_authorize_action(_request_class(response, _ec2_subjects))  # noqa: SLF001 - as the method we stand in for
        except AccessDeniedError as error:
            words = str(error.description)
            error.description = words.replace("AccessDenied", "UnauthorizedOperation")
            raise

    methods: dict[str, Any] = {
        name: method(name, operation) for name, operation in operations.items()
    }
    methods["_authenticate_and_authorize_normal_action"] = authorize
    methods["call_action"] = call_action
    return type("SandboxEc2Response", (EC2Response,), methods)


def _authorizing_class(
    inherited: Any,
    subjects: Callable[[Any, str], list[Subject]],
    methods: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Return moto's response class of a service, with policies that apply to a call's resources.

    Args:
        inherited: Moto's own class.
        subjects: Returns the resources of a call, given the response and the action.
        methods: Our operations, in place of moto's.
    """

    def authorize(response: Any, resource: str = "*") -> None:
        del resource  # moto never says which
        response._authenticate_and_authorize_action(_request_class(response, subjects))  # noqa: SLF001 - as the method we stand in for

    return type(
        f"Sandbox{inherited.__name__}",
        (inherited,),
        {**methods, "_authenticate_and_authorize_normal_action": authorize},
    )


def _request_class(response: Any, subjects: Callable[[Any, str], list[Subject]]) -> type[Any]:
    """Return moto's check of signature and policies, applied to the call's resources."""

    class SandboxIamRequest(IAMRequest):
        def check_signature(self) -> None:
            """Check the signature, except for EKS: for its paths moto computes another one."""
            if not self._action.startswith("eks:"):
                super().check_signature()

        def check_action_permitted(self, resource: str) -> None:
            """Raise AWS's error when the policies do not allow the call."""
            del resource
            documents = [
                IAMPolicy(collect_policy)._policy_json  # noqa: SLF001 - moto parses every form of it there
                for collect_policy in self._access_key.collect_policies()
            ]
            found = subjects(response, self._action.partition(":")[2])
            if not is_allowed(documents, self._action, found):
                self._raise_access_denied()

    return SandboxIamRequest


def _ec2_subjects(response: Any, action: str) -> list[Subject]:
    account, region = response.current_account, response.region
    tags = ec2_backends[account][region].tags
    return subjects_of(action, response.params, tags, f"{region}:{account}")


def _scaling_subjects(response: Any, action: str) -> list[Subject]:
    account, region = response.current_account, response.region
    groups = autoscaling_backends[account][region].autoscaling_groups
    tags = {name: {t["Key"]: t.get("Value") or "" for t in g.tags} for name, g in groups.items()}
    members = {e.instance_id: name for name, g in groups.items() for e in g.instance_states}
    return scaling_subjects_of(action, response.params, tags, members, f"{region}:{account}")


def _parameter_subjects(response: Any, _action: str) -> list[Subject]:
    """Return a parameter of SSM; those that AWS publishes belong to no account."""
    name = str(response._get_param("Name") or "")  # noqa: SLF001 - moto gives no other way
    account = "" if name.startswith("/aws/") else response.current_account
    return [Subject(arn=f"arn:aws:ssm:{response.region}:{account}:parameter{name}")]


def _cluster_subjects(response: Any, _action: str) -> list[Subject]:
    """Return an EKS cluster, which is in the path of the call."""
    named = re.search(r"/clusters/([^/?]+)", response.uri)
    place = f"{response.region}:{response.current_account}"
    return [Subject(arn=f"arn:aws:eks:{place}:cluster/{named[1] if named else ''}")]


_NAMED: Mapping[str, tuple[Any, Callable[[Any, str], list[Subject]]]] = {
    "eks": (EKSResponse, _cluster_subjects),
    "ssm": (SimpleSystemManagerResponse, _parameter_subjects),
}
"""Services of which a policy of ours names resources, and what their calls are about."""
