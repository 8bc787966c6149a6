"""Moto's HTTP application with our EC2 operations in front of moto's own; untyped, as moto is."""

from collections.abc import Callable, Mapping
from typing import Any

from moto.core.exceptions import AccessDeniedError
from moto.core.responses import ActionResult
from moto.core.utils import convert_to_flask_response
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.ec2.responses import EC2Response
from moto.iam.access_control import IAMPolicy, IAMRequest
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)

from reconciler.sandbox.aws.errors import Ec2Fault
from reconciler.sandbox.aws.iam import is_allowed, subjects_of
from reconciler.sandbox.aws.instance_answers import InstancesResult, SaidReservations

__all__ = ["MotoRequestHandler", "Operation", "create_application"]

_SEEN = ("Describe", "Get", "CreateFleet", "ModifyFleet", "DeleteFleets", "TerminateInstances")
"""Calls that change nothing of an instance, or only what each answer looks at."""

Parameters = Mapping[str, Any]
Operation = Callable[[str, str, Parameters], Mapping[str, Any] | None]
"""(account, region, parameters) -> answer by botocore's names; None leaves the call to moto."""


def create_application(operations: Mapping[str, Operation]) -> Any:
    """Moto's server application, with the given EC2 operations answered by ours.

    Args:
        operations: By Python name of the action (`describe_fleets`).
    """

    def create_app(service: Any) -> Any:
        app = create_backend_app(service)
        if service == "ec2":
            view = convert_to_flask_response(_response_class(operations).dispatch)
            for endpoint in app.view_functions:
                app.view_functions[endpoint] = view
        return app

    return DomainDispatcherApplication(create_app)


def _response_class(operations: Mapping[str, Operation]) -> Any:
    """Moto's EC2 responses with a method per operation of ours in front of moto's own."""
    said = SaidReservations()

    def call_action(response: Any) -> Any:
        """As moto does; a call that may change instances makes their answers new."""
        if not str(response._get_action()).startswith(_SEEN):  # noqa: SLF001 - moto gives no other way
            said.forget()
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
                return InstancesResult(answer, said, backend.tags)
            return ActionResult(answer)

        return call

    def authorize(response: Any, resource: str = "*") -> None:
        """With conditions on tags; EC2's own word for what others call AccessDenied."""
        del resource  # moto never says which
        try:
            response._authenticate_and_authorize_action(_request_class(response))  # noqa: SLF001 - as the method we stand in for
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


def _request_class(response: Any) -> type[Any]:
    """Moto's check of signature and policies, by our own decision about EC2's resources."""

    class Ec2IamRequest(IAMRequest):
        def check_action_permitted(self, resource: str) -> None:
            """Raises what EC2 answers when the policies do not allow the call."""
            del resource
            account, region = response.current_account, response.region
            subjects = subjects_of(
                self._action.partition(":")[2],
                response.params,
                ec2_backends[account][region].tags,
                f"{region}:{account}",
            )
            documents = [
                IAMPolicy(each)._policy_json  # noqa: SLF001 - moto parses every form of it there
                for each in self._access_key.collect_policies()
            ]
            if not is_allowed(documents, self._action, subjects):
                self._raise_access_denied()

    return Ec2IamRequest
