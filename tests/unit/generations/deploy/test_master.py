from __future__ import annotations

import pytest

from everstate.errors import ConfigurationError
from everstate.generations.deploy.master import Master
from everstate.generations.deploy.settings import Settings


@pytest.mark.parametrize("address", ["spark://host:7077", "spark://one:7077,two:7078", "spark://[::1]:7077"])
def test_master_of_a_standalone_cluster_is_taken_as_it_is_written(address):
    assert str(Master.of(address)) == address
    assert Settings.resolve({"master": address}, environment={}).master == address


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("sc://host:15002", "Spark Connect is not supported"),
        ("local[4]", "without --master"),
        ("yarn", "YARN is not supported"),
        ("k8s://https://host:443", "Kubernetes as a Spark master is not supported"),
        ("host:7077", "not the address"),
        ("spark://host", "not the address"),
        ("spark://", "not the address"),
        ("spark://user:secret@host:7077", "not the address"),
    ],
)
def test_master_of_another_kind_is_refused_by_name(address, said):
    with pytest.raises(ConfigurationError, match=said) as caught:
        Settings.resolve({"master": address}, environment={})
    assert "--master" in caught.value.hint


@pytest.mark.parametrize("place", ["s3://bucket/state", "s3a://b", "gs://b", "abfss://a/b", "hdfs://n:9000/x"])
@pytest.mark.parametrize("name", ["state_dir", "scratch_dir"])
def test_settings_folder_in_an_object_store_is_refused_by_name(name, place):
    with pytest.raises(ConfigurationError, match="object stores") as caught:
        Settings.resolve({name: place}, environment={})
    assert place in caught.value.message
    assert "NFS" in caught.value.hint
