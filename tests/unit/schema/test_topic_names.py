from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstate.errors import TopicNameError
from everstate.schema.topic_names import check_topic_name


@given(st.text(max_size=5) | st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True))
def test_check_topic_name_accepts_exactly_what_kafka_accepts(name):
    legal = re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) is not None and name not in {".", ".."}
    if legal:
        assert check_topic_name(name) == name
    else:
        with pytest.raises(TopicNameError):
            check_topic_name(name)
