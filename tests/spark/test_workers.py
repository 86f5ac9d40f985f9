from __future__ import annotations

import pytest

pytestmark = pytest.mark.spark


def test_workers_import_the_installed_pyspark_which_is_compiled(spark):
    def origin(_):
        import pyspark

        return pyspark.__file__

    (found,) = spark.sparkContext.parallelize([0], 1).map(origin).collect()
    assert ".zip" not in found
