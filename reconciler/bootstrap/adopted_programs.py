"""Wires `reconciler import --programs`: turns manifests of other programs into config sections."""

from collections.abc import Sequence
from pathlib import Path

from reconciler.bootstrap.adoption import write_all
from reconciler.config.loader import read_config_bytes
from reconciler.gitops.adoption.programs import POLICY_FILE, AdoptedPrograms, adopt_programs
from reconciler.model.errors import ConfigError, InputError, UsageError

CONFIG = "rescheduling.yaml"


def adopt_program_files(out: Path, files: Sequence[str]) -> AdoptedPrograms:
    """Write the sections for the programs that the files run; no file is overwritten.

    Raises:
        UsageError: The folder has such a file already.
        InputError: A file cannot be read or written, or none of them runs such a program.
        ConfigError: A value is not one that a config may have.
    """
    for target in (out / CONFIG, out / POLICY_FILE):
        if target.exists():
            raise UsageError(str(target), "exists already", "name another folder with --out")
    made = adopt_programs([(name, _text(name)) for name in files])
    write_all({out / CONFIG: made.config, out / POLICY_FILE: made.policy})
    return made


def _text(name: str) -> str:
    try:
        return read_config_bytes(name).decode()
    except ConfigError as error:
        raise InputError(
            name, error.problems[0].message, "name manifests with --programs"
        ) from None
    except UnicodeDecodeError:
        raise InputError(name, "is not UTF-8") from None
