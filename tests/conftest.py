"""How random tests run: the same examples on every machine, and no time limit for a single one."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "everstate",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("everstate")
