"""The einsum labels of products of arrays: a letter for each axis of the operands and the result.

Axes with equal labels are multiplied element by element, and summed if the result lacks the label.
"""

from string import ascii_letters

from letir.ast.terms import Bind

Labels = tuple[list[str], str]  # of each operand, and of the result


def labels_of_matmul(bind: Bind) -> Labels | None:
    """The labels of ``x @ y``, also for vectors and stacks of matrices."""
    n, m = [arg.type.ndim for arg in bind.args]
    stack = ascii_letters[: max(n, m, 2) - 2]
    first = "I" if n == 1 else stack[len(stack) - (n - 2) :] + "YI"
    second = "I" if m == 1 else stack[len(stack) - (m - 2) :] + "IZ"
    # the stack of the longer operand, then what remains of both
    result = stack + ("Y" if n > 1 else "") + ("Z" if m > 1 else "")
    return [first, second], result


def labels_of_dot(bind: Bind) -> Labels:
    """The labels of ``np.dot``: over the last axis and the last but one, or with a number."""
    n, m = [arg.type.ndim for arg in bind.args]
    if not n or not m:
        return [ascii_letters[:n], ascii_letters[:m]], ascii_letters[: n + m]
    free = iter(ascii_letters)
    left = "".join(next(free) for _ in range(n - 1))
    right = "".join(next(free) for _ in range(m - 1))
    second = "Z" if m == 1 else right[:-1] + "Z" + right[-1]
    return [left + "Z", second], left + right


def labels_of_einsum(bind: Bind) -> Labels | None:
    """The labels of explicit subscripts without an ellipsis."""
    text = bind.attrs["subscripts"]
    if type(text) is not str or "." in text or "->" not in text:
        return None
    operands, _, result = text.replace(" ", "").partition("->")
    return operands.split(","), result
