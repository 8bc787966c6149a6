"""The Terraform port over the terraform program."""

import json
import os
import shutil
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reconciler.adapters.terraform.environment import TerraformEnvironment, cli_config_file
from reconciler.adapters.terraform.failures import failure
from reconciler.adapters.terraform.mirror import (
    REGISTRY,
    ProviderSources,
    cli_config,
    provider_sources,
)
from reconciler.adapters.terraform.program import FLAG, OUTLIVED_SECONDS, CommandResult, Program
from reconciler.adapters.terraform.settings import TerraformSettings
from reconciler.machine.private_folder import PrivateFolder
from reconciler.model.errors import ToolError
from reconciler.ports.terraform import (
    SavedPlan,
    StateVersion,
    TaintedResource,
    TerraformDiagnostic,
    TerraformPlanJson,
)
from reconciler.telemetry.scrubbing import scrub, secrets_of

PROGRAM_VARIABLE = "RECONCILER_TERRAFORM"
_BEGINNING = {"plan", "apply"}
"""Commands that take the state's lock; an interrupted process needs time to release it."""
_SOURCES = "tfconfig/"
"""Where a saved plan has the configuration, with a folder `m-…` for each module."""
_UNREADABLE_ZIP = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError)
"""The last one: it is encrypted, or compressed in an unknown way."""


class TerraformCli:
    """One root module, through Terraform's command line."""

    def __init__(self, settings: TerraformSettings) -> None:
        self._settings = settings
        self._users: Mapping[str, str] = os.environ  # noqa: TID251 - Terraform's own settings
        self._secrets = secrets_of(self._users)
        self._asked_to_stop = ""
        """Name of the signal that came while an apply was running that completed nevertheless."""
        if not settings.directory.is_dir():
            raise ToolError(
                str(settings.directory),
                "no such directory",
                "reconciler render --out DIR writes it",
            )
        place = TerraformEnvironment(users=self._users, module=settings.directory)
        place.assert_apart()
        # Outside of the module, whose content comes from the authors of the repository.
        folder = PrivateFolder("terraform-data", outlived_seconds=OUTLIVED_SECONDS)
        weakref.finalize(self, folder.close)
        self._own = folder.path
        self._providers = provider_sources(self._users, place.is_inside)
        self._program = Program(
            path=_found(settings.program or self._users.get(PROGRAM_VARIABLE, ""), place),
            directory=str(settings.directory),
            environment=place.environment(self._own),
            stop_seconds=settings.stop_seconds,
        )

    def version(self) -> str:
        """See Terraform.version."""
        out = self._run("version", self._settings.read_timeout_seconds, json=FLAG)
        return str(_parsed("version", out)["terraform_version"])

    def init(self, backend_config: Sequence[str] = ()) -> None:
        """See Terraform.init.

        This program decides where providers come from, regardless of the module and the machine's
        own Terraform settings. When a mirror that was found by search lacks something, the registry
        is used.
        """
        try:
            self._init(backend_config, self._providers)
        except ToolError as error:
            if not self._providers.searched or "provider" not in error.what:
                raise
            try:
                self._init(backend_config, REGISTRY)
            except ToolError:
                raise error from None

    def validate(self) -> tuple[TerraformDiagnostic, ...]:
        """See Terraform.validate."""
        # Exit code 1 means findings here; they are in the output.
        out = self._run("validate", self._settings.read_timeout_seconds, codes=(0, 1), json=FLAG)
        found = _parsed("validate", out).get("diagnostics", [])
        return tuple(self._diagnostic(entry) for entry in found)

    def state_version(self) -> StateVersion:
        """See Terraform.state_version."""
        out = self._run("state pull", self._settings.read_timeout_seconds)
        if not out.strip():
            return StateVersion()
        state = _parsed("state pull", out)
        return StateVersion(lineage=str(state.get("lineage", "")), serial=int(state["serial"]))

    def plan(
        self,
        file: str,
        *,
        lock: bool = True,
        only: Sequence[str] = (),
        variables_file: str = "",
    ) -> SavedPlan:
        """See Terraform.plan."""
        finished = self._finished(
            "plan",
            self._settings.plan_timeout_seconds,
            codes=(0, 2),
            out=file,
            detailed_exitcode=FLAG,
            input=False,
            lock=lock,
            lock_timeout=self._lock_timeout,
            no_color=FLAG,
            target=list(only) or None,
            var_file=variables_file or None,
        )
        Path(file).chmod(0o600)
        return SavedPlan(file=file, changes=finished.status == 2)

    def show_json(self, file: str) -> TerraformPlanJson:
        """See Terraform.show_json."""
        out = self._run("show", self._settings.read_timeout_seconds, arguments=(file,), json=FLAG)
        return _parsed("show", out)

    def sources(self, file: str) -> Mapping[str, str]:
        """See Terraform.sources. A saved plan is a zip file; seen with Terraform 1.11."""
        try:
            with zipfile.ZipFile(file) as saved:
                names = [n for n in saved.namelist() if n.startswith(_SOURCES)]
                return {
                    name.removeprefix(_SOURCES): saved.read(name).decode(errors="replace")
                    for name in names
                    if not name.endswith("/modules.json")
                }
        except _UNREADABLE_ZIP as error:
            what = "is not a saved plan whose configuration can be read"
            raise ToolError(file, what, "plan again") from error

    def apply(self, file: str) -> str:
        """See Terraform.apply."""
        out = self._run(
            "apply",
            self._settings.apply_timeout_seconds,
            arguments=(file,),
            input=False,
            lock_timeout=self._lock_timeout,
            no_color=FLAG,
        )
        lines = [line for line in out.splitlines() if line.startswith("Apply complete!")]
        return lines[-1] if lines else "Apply complete!"

    def tainted(self) -> tuple[TaintedResource, ...]:
        """See Terraform.tainted."""
        out = self._run("show", self._settings.read_timeout_seconds, json=FLAG)
        values = _parsed("show", out).get("values") or {}
        return tuple(
            TaintedResource(
                address=str(found["address"]),
                type=str(found["type"]),
                id=str((found.get("values") or {}).get("id") or ""),
            )
            for found in _resources(values.get("root_module") or {})
            if found.get("tainted")
        )

    def untaint(self, address: str) -> None:
        """See Terraform.untaint."""
        self._run(
            "untaint",
            self._settings.read_timeout_seconds,
            arguments=(address,),
            lock_timeout=self._lock_timeout,
        )

    def unlock(self, lock_id: str) -> None:
        """See Terraform.unlock."""
        self._run(
            "force-unlock", self._settings.read_timeout_seconds, arguments=(lock_id,), force=FLAG
        )

    @property
    def _lock_timeout(self) -> str:
        return f"{self._settings.lock_timeout_seconds}s"

    def _init(self, backend_config: Sequence[str], providers: ProviderSources) -> None:
        cli_config_file(self._own).write_text(cli_config(providers), encoding="utf-8")
        self._run(
            "init",
            self._settings.init_timeout_seconds,
            input=False,
            no_color=FLAG,
            reconfigure=FLAG,
            lock_timeout=self._lock_timeout,
            backend_config=list(backend_config) or None,
        )

    def _run(self, command: str, timeout_seconds: float, **call: Any) -> str:
        return self._finished(command, timeout_seconds, **call).out

    def _finished(
        self,
        command: str,
        timeout_seconds: float,
        *,
        codes: tuple[int, ...] = (0,),
        arguments: tuple[str, ...] = (),
        **options: Any,
    ) -> CommandResult:
        if self._asked_to_stop and command in _BEGINNING:
            what = f"not begun: asked to stop by {self._asked_to_stop} during the part before"
            raise ToolError(f"terraform {command}", what, "plan again for the rest")
        finished = self._program.run(
            command, *arguments, timeout_seconds=timeout_seconds, **options
        )
        # An apply that completed is done, even if it was asked to stop.
        done = command == "apply" and finished.status == 0
        stopped = finished.interrupted_by and not done
        if finished.status not in codes or stopped:
            raise failure(command, finished, scrub(finished.error, self._secrets))
        self._asked_to_stop = self._asked_to_stop or finished.interrupted_by
        return finished

    def _diagnostic(self, entry: Mapping[str, Any]) -> TerraformDiagnostic:
        place = entry.get("range") or {}
        line = (place.get("start") or {}).get("line", 0)
        return TerraformDiagnostic(
            severity="error" if entry.get("severity") == "error" else "warning",
            summary=scrub(str(entry.get("summary", "")), self._secrets),
            detail=scrub(str(entry.get("detail", "")), self._secrets),
            where=f"{place['filename']}:{line}" if place.get("filename") else "",
        )


def _found(program: str, place: TerraformEnvironment) -> str:
    path = shutil.which(program or "terraform")
    # It is started in the root module, where a relative path would name something else.
    path = None if path is None else str(Path(path).absolute())
    if path is not None and place.is_inside(path):
        what = "lies in the checkout: the repository would decide what runs"
        raise ToolError(path, what, f"name another one with {PROGRAM_VARIABLE}")
    if path is None:
        raise ToolError(
            "terraform",
            f"the program {program or 'terraform'} is not there",
            "install Terraform 1.10 or newer; validate, render, plan, gitops and the capacity"
            " loop work without it",
        )
    return path


def _resources(module: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the resources of a module of the state and of its child modules."""
    yield from module.get("resources", [])
    for child in module.get("child_modules", []):
        yield from _resources(child)


def _parsed(command: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolError(
            f"terraform {command}", "answered with something that is not JSON"
        ) from error
    if not isinstance(value, dict):
        raise ToolError(f"terraform {command}", "answered with something that is not an object")
    return value
