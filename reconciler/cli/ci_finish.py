"""`reconciler ci finish`: removes approved fleets once they are drained."""

from reconciler.cli.ci_stage import show_nothing_to_apply
from reconciler.cli.options.ci import (
    BackendOption,
    ConfigOption,
    DirOption,
    FilesOption,
    LockOption,
    TypesOption,
    ci_stages,
)
from reconciler.cli.options.config_argument import PathArgument, named_config
from reconciler.cli.terminal.output import Output, OutputOption, print_data, print_line, wanted
from reconciler.cli.terminal.progress_line import working
from reconciler.machine.private_folder import PrivateFolder


def finish(
    *,
    config_file: PathArgument = None,
    directory: DirOption,
    config: ConfigOption = None,
    backend_config: BackendOption = None,
    allow_type: TypesOption = None,
    allow_file: FilesOption = None,
    lock_timeout: LockOption = 60,
    output: OutputOption = None,
) -> None:
    """Remove the fleets in allow_destroy that are drained by now, and change nothing else.

    For a schedule: `ci apply` leaves a removal out while its fleet has nodes. Needs no kept plan.
    `allow_destroy` in the merged config is the approval, and no node is ended. Without a fleet in
    allow_destroy Terraform is not started. Exit code 0 also while a fleet is still draining.
    """
    with PrivateFolder("ci") as scratch:
        stages = ci_stages(
            directory,
            scratch,
            backend_config,
            lock_timeout,
            config=named_config(config, config_file),
            allow_types=allow_type,
            allow_files=tuple(allow_file or ()),
        )
        with working("finishing with Terraform"):
            finished = stages.finish()
    if finished.complete:
        # Also when an earlier run removed the last one, and the forge did not answer then.
        show_nothing_to_apply(directory)
    if (form := wanted(output)) is not Output.TABLE:
        print_data(
            {
                "others": finished.others,
                "removed": list(finished.removed),
                "waiting": list(finished.waiting),
            },
            form,
        )
        return
    for name in finished.removed:
        print_line(f"{name}: removed")
    for waiting in finished.waiting:
        print_line(f"{waiting}; the capacity loop drains it first")
    if finished.others:
        print_line(f"other changes, for `ci plan` and `ci apply`: {finished.others}")
    if not finished.removed and not finished.waiting:
        print_line("no approved removal is left to finish")
