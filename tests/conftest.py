"""How random tests run: no time limit for a single example, and the same examples on every machine.

`pytest --hypothesis-profile=roaming` tries others each time.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "everstate",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.register_profile("roaming", settings.get_profile("everstate"), derandomize=False)
settings.load_profile("everstate")
