"""Hypothesis profiles: the committed one is bounded and repeats itself; `deep` searches on."""

from hypothesis import HealthCheck, settings

_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "planner", max_examples=100, deadline=None, derandomize=True, suppress_health_check=_CHECKS
)
settings.register_profile(
    "deep", max_examples=5_000, deadline=None, suppress_health_check=_CHECKS, print_blob=True
)
if settings.get_current_profile_name() == "default":
    settings.load_profile("planner")
