"""Converts the descheduler's part of a config into the planner's settings."""

from collections.abc import Iterator

from reconciler.config import descheduler as stated
from reconciler.config.default_evictor import DefaultEvictor
from reconciler.config.descheduler_policy import DeschedulerOfFile, FileProfile
from reconciler.config.node_selector_text import parse_node_selector
from reconciler.model.frozen import FrozenMap
from reconciler.model.selectors import LabelSelector, Requirement
from reconciler.planner import descheduler_settings as planner

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def descheduler_settings(config: stated.Descheduler) -> planner.DeschedulerSettings | None:
    """Return the descheduler's settings; None when it is off."""
    if not config.enabled:
        return None
    profiles: tuple[FileProfile, ...] = (FileProfile(policies=config.policies),)
    of_file = config if isinstance(config, DeschedulerOfFile) else None
    if of_file is not None:
        profiles = of_file.profiles
    return planner.DeschedulerSettings(
        profiles=tuple(_profile(profile) for profile in profiles),
        interval_seconds=config.interval_seconds,
        nodes=parse_node_selector(of_file.node_selector) if of_file is not None else None,
        per_node_max=config.max_evictions_per_node,
        per_namespace_max=config.max_evictions_per_namespace,
        per_cycle_max=config.max_evictions_per_cycle,
        grace_seconds_max=of_file.grace_seconds_max if of_file is not None else None,
    )


def _profile(profile: FileProfile) -> planner.Profile:
    return planner.Profile(
        name=profile.name,
        evictor=_evictor(profile.evictor),
        policies=tuple(_policies(profile.policies)),
    )


def _evictor(evictor: DefaultEvictor) -> planner.EvictorSettings:
    threshold, protections = evictor.priority_threshold, evictor.pod_protections
    movable, staying = protections.default_disabled, protections.extra_enabled
    return planner.EvictorSettings(
        destinations=parse_node_selector(evictor.node_selector),
        selector=_selector(evictor.label_selector),
        namespace_selector=_selector(evictor.namespace_label_selector),
        priority_below=None if threshold is None else threshold.value,
        local_storage=evictor.evict_local_storage_pods or "PodsWithLocalStorage" in movable,
        system_critical=evictor.evict_system_critical_pods or "SystemCriticalPods" in movable,
        failed_bare_pods=evictor.evict_failed_bare_pods or "FailedBarePods" in movable,
        claims_stay=evictor.ignore_pvc_pods or "PodsWithPVC" in staying,
        without_budget_stays=evictor.ignore_pods_without_pdb or "PodsWithoutPDB" in staying,
        replicas_min=evictor.min_replicas,
        age_min_seconds=evictor.min_pod_age_seconds,
    )


def _policies(policies: stated.Policies) -> Iterator[planner.PolicyArguments]:
    """Yield the enabled policies: those about single pods first, then those that balance."""
    yield from _about_pods(policies)
    yield from _about_places(policies)


def _about_pods(policies: stated.Policies) -> Iterator[planner.PolicyArguments]:
    if policies.remove_failed_pods.enabled:
        yield _failed_pods(policies.remove_failed_pods)
    if policies.remove_pods_having_too_many_restarts.enabled:
        yield _too_many_restarts(policies.remove_pods_having_too_many_restarts)
    if policies.pod_life_time.enabled:
        yield from _pod_life_time(policies.pod_life_time)
    if policies.remove_pods_violating_node_taints.enabled:
        yield _node_taints(policies.remove_pods_violating_node_taints)
    if policies.remove_pods_violating_node_affinity.enabled:
        yield _node_affinity(policies.remove_pods_violating_node_affinity)


def _about_places(policies: stated.Policies) -> Iterator[planner.PolicyArguments]:
    anti = policies.remove_pods_violating_inter_pod_anti_affinity
    if anti.enabled:
        yield planner.InterPodAntiAffinity(scope=_scope(anti))
    if policies.remove_duplicates.enabled:
        yield _duplicates(policies.remove_duplicates)
    spread = policies.remove_pods_violating_topology_spread_constraint
    if spread.enabled:
        yield planner.TopologySpread(
            scope=_scope(spread),
            hard="DoNotSchedule" in spread.constraints,
            soft="ScheduleAnyway" in spread.constraints,
        )
    if policies.low_node_utilization.enabled:
        yield _low_utilization(policies.low_node_utilization)
    high = policies.high_node_utilization
    if high.enabled:
        yield planner.HighNodeUtilization(
            thresholds=FrozenMap(high.thresholds),
            number_of_nodes=high.number_of_nodes,
            scope=_excluding(high.evictable_namespaces),
        )


def _duplicates(policy: stated.RemoveDuplicates) -> planner.RemoveDuplicates:
    return planner.RemoveDuplicates(
        scope=_in_namespaces(policy.namespaces),
        exclude_owner_kinds=frozenset(policy.exclude_owner_kinds),
    )


def _failed_pods(policy: stated.RemoveFailedPods) -> planner.FailedPods:
    return planner.FailedPods(
        scope=_scope(policy),
        seconds_min=policy.min_pod_lifetime_seconds or 0,
        exclude_owner_kinds=frozenset(policy.exclude_owner_kinds),
        reasons=frozenset(policy.reasons),
        exit_codes=frozenset(policy.exit_codes),
        init_containers=policy.including_init_containers,
    )


def _too_many_restarts(policy: stated.RemovePodsHavingTooManyRestarts) -> planner.TooManyRestarts:
    return planner.TooManyRestarts(
        scope=_scope(policy),
        threshold=policy.pod_restart_threshold,
        init_containers=policy.including_init_containers,
        states=frozenset(policy.states),
    )


def _pod_life_time(policy: stated.PodLifeTime) -> Iterator[planner.PodLifeTime]:
    if policy.max_pod_life_time_seconds is not None:
        yield planner.PodLifeTime(
            seconds_max=policy.max_pod_life_time_seconds,
            scope=_scope(policy),
            states=frozenset(policy.states),
            init_containers=policy.including_init_containers,
            ephemeral_containers=policy.including_ephemeral_containers,
        )


def _node_taints(policy: stated.RemovePodsViolatingNodeTaints) -> planner.NodeTaints:
    return planner.NodeTaints(
        scope=_scope(policy),
        excluded=frozenset(policy.excluded_taints),
        included=frozenset(policy.included_taints),
        prefer_no_schedule=policy.include_prefer_no_schedule,
    )


def _node_affinity(policy: stated.RemovePodsViolatingNodeAffinity) -> planner.NodeAffinity:
    return planner.NodeAffinity(
        scope=_scope(policy),
        required=_REQUIRED in policy.node_affinity_type,
        preferred=_PREFERRED in policy.node_affinity_type,
    )


def _low_utilization(policy: stated.LowNodeUtilization) -> planner.LowNodeUtilization:
    limits = policy.eviction_limits
    return planner.LowNodeUtilization(
        thresholds=FrozenMap(policy.thresholds),
        target_thresholds=FrozenMap(policy.target_thresholds),
        deviation=policy.use_deviation_thresholds,
        number_of_nodes=policy.number_of_nodes,
        scope=_excluding(policy.evictable_namespaces),
        evictions_per_node_max=limits.node if limits is not None else None,
    )


def _scope(policy: stated.SelectingPolicy) -> planner.PodScope:
    scope = _in_namespaces(policy.namespaces)
    return planner.PodScope(
        include=scope.include, exclude=scope.exclude, selector=_selector(policy.label_selector)
    )


def _in_namespaces(namespaces: stated.Namespaces | None) -> planner.PodScope:
    if namespaces is None:
        return planner.EVERYTHING
    return planner.PodScope(
        include=frozenset(namespaces.include), exclude=frozenset(namespaces.exclude)
    )


def _excluding(namespaces: stated.EvictableNamespaces | None) -> planner.PodScope:
    return planner.PodScope(exclude=frozenset(namespaces.exclude if namespaces is not None else ()))


def _selector(selector: stated.LabelSelector | None) -> LabelSelector | None:
    """Return a label selector in the planner's form; None for none."""
    if selector is None:
        return None
    return LabelSelector(
        match_labels=FrozenMap(selector.match_labels),
        match_expressions=tuple(
            Requirement(
                key=match_expression.key,
                operator=match_expression.operator,
                values=match_expression.values,
            )
            for match_expression in selector.match_expressions
        ),
    )
