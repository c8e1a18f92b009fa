"""Products of arrays as letters for the axes of their operands and results, as in einsum.

Axes with one letter are multiplied element by element, and summed if the result lacks the letter.
"""

from string import ascii_letters

from letir.ast.terms import Bind

Letters = tuple[list[str], str]


def letters_of_matmul(bind: Bind) -> Letters | None:
    """The letters of ``x @ y``, also for vectors and stacks of matrices."""
    n, m = [arg.type.ndim for arg in bind.args]
    stack = ascii_letters[: max(n, m, 2) - 2]
    first = "I" if n == 1 else stack[len(stack) - (n - 2) :] + "YI"
    second = "I" if m == 1 else stack[len(stack) - (m - 2) :] + "IZ"
    # the stack of the longer operand, then what remains of both
    result = stack + ("Y" if n > 1 else "") + ("Z" if m > 1 else "")
    return [first, second], result


def letters_of_dot(bind: Bind) -> Letters:
    """The letters of ``np.dot``: over the last axis and the last but one, or with a number."""
    n, m = [arg.type.ndim for arg in bind.args]
    if not n or not m:
        return [ascii_letters[:n], ascii_letters[:m]], ascii_letters[: n + m]
    free = iter(ascii_letters)
    left = "".join(next(free) for _ in range(n - 1))
    right = "".join(next(free) for _ in range(m - 1))
    second = "Z" if m == 1 else right[:-1] + "Z" + right[-1]
    return [left + "Z", second], left + right


def letters_of_einsum(bind: Bind) -> Letters | None:
    """The letters of explicit subscripts without an ellipsis."""
    text = bind.attrs["subscripts"]
    if type(text) is not str or "." in text or "->" not in text:
        return None
    operands, _, result = text.replace(" ", "").partition("->")
    return operands.split(","), result
