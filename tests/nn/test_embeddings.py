"""``nn.embedding``: PyTorch's order of arguments, errors; its numbers are tested in test_torch."""

import numpy as np
import pytest

import letir as lt
from letir import nn

WEIGHT = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize("indices", [np.array([2, 0]), [2, 0], np.array([[1], [1]]), 1])
def test_embedding_takes_indices_and_then_the_table(indices):
    np.testing.assert_array_equal(WEIGHT[indices], nn.embedding(indices, WEIGHT))


def test_a_padding_row_counted_from_the_end_gets_no_gradient():
    found = lt.grad(lambda w: nn.embedding(np.array([2, 1]), w, -1).sum())(WEIGHT)

    np.testing.assert_array_equal([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]], found)


def test_arguments_in_the_order_of_letirs_operation_are_an_error():
    with pytest.raises(lt.DTypeError, match=r"must be integers, found float64\n.*test_embeddings"):
        nn.embedding(WEIGHT, np.array([1]))


def test_a_padding_row_outside_of_the_table_is_an_error():
    with pytest.raises(lt.BoundsError, match="no row 3, the table has 3 rows"):
        nn.embedding(np.array([1]), WEIGHT, padding_idx=3)
