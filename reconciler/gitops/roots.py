"""Which root modules of a config repository a pipeline has to look at: pure."""

from collections.abc import Collection, Sequence

from reconciler.gitops.targets import DEFAULT_OUTPUT, RenderTarget, find_targets


def changed_roots(
    files: Sequence[str],
    patterns: Sequence[str],
    output: str = DEFAULT_OUTPUT,
    changed: Collection[str] | None = None,
) -> tuple[RenderTarget, ...]:
    """The targets whose config or rendered directory changed, sorted.

    Args:
        files: Paths of all files of the checkout.
        patterns: Config paths, see `find_targets`.
        output: The output directory, relative to each config's own.
        changed: Paths that changed, removed ones included; None: every target counts.

    Raises:
        UsageError: A pattern makes no sense.
    """
    targets = find_targets(files, patterns, output)
    if changed is None:
        return targets
    return tuple(
        target
        for target in targets
        if target.config_path in changed
        or any(path.startswith(f"{target.output_dir}/") for path in changed)
    )
