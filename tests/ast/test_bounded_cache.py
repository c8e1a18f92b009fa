"""``BoundedCache``: the dict behind all caches of programs, types and rules."""

import copy

import pytest

from letir.ast.bounded_cache import BoundedCache


def test_a_full_cache_is_cleared_for_the_next_entry():
    cache = BoundedCache(3)
    for i in range(4):
        cache[i] = str(i)

    assert {3: "3"} == cache and 3 == cache.max_entries


def test_entries_are_read_as_from_a_dict():
    assert BoundedCache.get is dict.get
    assert BoundedCache.__getitem__ is dict.__getitem__
    assert BoundedCache.__contains__ is dict.__contains__


def test_a_copy_starts_empty():
    cache = BoundedCache(3)
    cache["a"] = 1

    assert {} == copy.deepcopy(cache) and 3 == copy.copy(cache).max_entries


def test_a_cache_has_no_other_attributes():
    with pytest.raises(AttributeError):
        BoundedCache(3).least = 2
