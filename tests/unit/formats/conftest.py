from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.registries import RegistryServer, serving


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with serving() as server:
        yield server
