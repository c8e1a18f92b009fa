"""``ValueReader``: reads constants and attributes; ``TreeReader`` reads trees as well.

The values of single words are in ``letir.ast.text.literals``; the tables below list the readers.
"""

import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from letir.ast.pytrees import LEAF, Leaf, Static, Tree
from letir.ast.terms import Lambda
from letir.ast.text.lexer import ABBREVIATED, Reader
from letir.ast.text.literals import (
    DTYPES,
    NAME,
    REAL,
    SIZE,
    STRING,
    TYPE,
    parse_array,
    parse_complex,
    parse_float,
    parse_int,
    parse_placeholder,
    parse_scalar,
    parse_size,
    parse_slice,
    parse_string,
    parse_type,
)
from letir.ast.text.named_nodes import MAX_CLASSES, named_node
from letir.ast.tree_nodes.stored_results import SameAs, Stores, parse_place
from letir.ast.types import ArrayType, Undef
from letir.errors import DTypeError

ATTRIBUTE = re.compile(rf"({NAME})\s*+=")
_ARRAY_BODY = re.compile(r"((?:[^}#]++|#[^\n]*+)*+)\}")
_REFERENCE = re.compile(r"@([0-9]++)")
_NONE = re.compile(r"None(?!\w)")
_NODE = re.compile(r"([^\W\d][\w.<>]*+)\s*+\(")
_MAX_COLLISIONS = 64  # keys of a dict with the same hash; floats have a few by chance
_TREES = {"in": re.compile(r"in(?!\w)"), "out": re.compile(r"out(?!\w)")}

_SLICE = rf"(?P<slice>(?:{SIZE}\s*+)?:(?:\s*+{SIZE})?(?:\s*+:(?:\s*+{SIZE})?)?)"
_STRINGS = rf"(?P<string>{STRING})"
# Tried in this order: words followed by a bracket before plain words, floats before ints, both
# before sizes such as 2*n+1, which may start with an int.
_LITERALS = (
    _STRINGS,
    r"(?P<complex>complex\s*+\([^()]*+\))",
    rf"(?P<scalar>{NAME}\s*+\((?:[^()]++|\([^()]*+\))*+\))",
    rf"(?P<array>{TYPE})",
    rf"(?P<float>-?inf(?!\w)|nan(?:@[0-9a-f]++)?(?!\w)|(?!-?[0-9]++(?![.eE])){REAL})",
    r"(?P<int>-?[0-9]++(?!\s*+[-+*]))",
    rf"(?P<word>{NAME}(?!\s*+[-+*]))",
    rf"(?P<size>{SIZE})",
    r"(?P<tuple>\()",
    r"(?P<ellipsis>\.\.\.)",
    r"(?P<here>@[0-9]*+)",
)
_TEXT = re.compile(_STRINGS)
# without SLICE: a colon follows the keys of a dict
_LITERAL = re.compile("|".join(_LITERALS))
_VALUE = re.compile("|".join([_SLICE, *_LITERALS]))
_WORDS = {"None": None, "True": True, "False": False, "Undef": Undef}


class ValueReader(Reader):
    """Reads values and trees. ``arrays``: the arrays stored in a file beside its text; ``trusted``:
    classes by the names that trees may use.
    """

    def __init__(
        self,
        text: str,
        arrays: Sequence[np.ndarray] | None = None,
        trusted: Mapping[str, type] | None = None,
    ):
        super().__init__(text)
        self.arrays, self.trusted = arrays, trusted or {}
        self.classes: set[tuple] = set()  # (name, fields) of the classes that trees name
        self.types: dict[str | None, ArrayType | None] = {None: None}  # by text

    def function(self) -> Lambda:
        """A nested lambda, after its first word."""
        raise NotImplementedError("the parser of terms reads lambdas")

    def type_at(self, text: str | None, at: int) -> ArrayType | None:
        """The type with this text, cached."""
        result = self.types.get(text)
        if result is None and text is not None:
            result = self.types[text] = self.convert(parse_type, text, at=at)
        return result

    def value(self, expected: str = "a value", pattern: re.Pattern = _VALUE) -> Any:
        """A constant or an attribute."""
        at = self.skip()
        match = pattern.match(self.text, at)
        if match is None:
            if self.text.startswith(("'", '"'), at):
                raise self.error(
                    "unterminated string, or one with an escape that repr never writes"
                )
            self.fail(expected)
        self.pos = match.end()
        meaning = _MEANINGS.get(match.lastgroup)
        if meaning is not None:
            return self.convert(meaning, match[0], at=at)
        return _READERS[match.lastgroup](self, match[0], at)

    def word(self, text: str, at: int) -> Any:
        """A lambda, a word with a special meaning, a dtype, or else a symbolic size."""
        if text == "lambda":
            return self.function()
        if text in _WORDS:
            return _WORDS[text]
        return DTYPES[text] if text in DTYPES else self.convert(parse_size, text, at=at)

    def array(self, text: str, at: int) -> ArrayType | np.ndarray:
        """A type, or an array if elements or a reference to a stored array follow."""
        kind = self.type_at(text, at)
        if self.text.startswith("{", self.pos):
            return self.elements(kind, at)
        reference = _REFERENCE.match(self.text, self.pos)
        if reference is None:
            return kind
        self.pos = reference.end()
        return self.referred(kind, self.convert(parse_int, reference[1], at=at), at)

    def elements(self, aval: ArrayType, at: int) -> np.ndarray:
        """The array of this type whose elements follow in braces."""
        self.pos += 1
        body = _ARRAY_BODY.match(self.text, self.pos)
        if body is None:
            raise self.error("unterminated array: no '}' follows", at)
        self.pos = body.end()
        written = re.sub(r"#[^\n]*", "", body[1])
        if "..." in written:
            raise self.error(ABBREVIATED, at)
        return self.convert(parse_array, aval.dtype, aval.shape, written, at=at)

    def referred(self, aval: ArrayType, index: int, at: int) -> np.ndarray:
        """The stored array of this number, which must have the stated type."""
        if self.arrays is None:
            raise self.error(f"@{index} is an array of a file: load the file", at)
        if index >= len(self.arrays):
            raise self.error(f"there is no array {index}, the file has {len(self.arrays)}", at)
        array = self.arrays[index]
        if (array.dtype, array.shape) != (aval.dtype, aval.shape):
            stored = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
            raise self.error(f"array {index} of the file is {stored}, the text says {aval}", at)
        return array

    def group(self, text: str, at: int) -> tuple:
        """A tuple of values."""
        self.descend()
        result = self.tuple_of(self.value)
        self.depth -= 1
        return result


class TreeReader(ValueReader):
    """Reads the texts of ``letir.ast.pytrees.Tree``."""

    def tree_after(self, word: str) -> Tree | None:
        """The tree after ``in`` or ``out``, None if the word is not there."""
        if self.accept(_TREES[word]) is None:
            return None
        at = self.skip()
        node = self.tree()
        try:
            return Tree.from_pytree(node)
        except Exception as error:  # trusted classes may raise anything
            raise self.error(f"this does not describe a tree: {error}", at) from None

    def tree(self) -> Any:
        """A tree of ``LEAF``, ``Static``, None, containers and instances of classes."""
        self.descend()
        at = self.skip()
        container = _CONTAINERS.get(self.text[at : at + 1])
        self.pos += container is not None
        node = self.named(at) if container is None else container(self)
        self.depth -= 1
        return node

    def leaf(self) -> Leaf:
        """A leaf that is not static."""
        return LEAF

    def children(self) -> tuple:
        """A tuple of trees."""
        return self.tuple_of(self.tree)

    def sequence(self) -> list:
        """A list of trees."""
        return self.items("]", self.tree)[0]

    def mapping(self) -> dict:
        """A dict of trees."""
        at, hashes = self.pos, Counter[int]()

        def entry() -> tuple:
            key, tree = self.entry()
            hashes[hash(key)] += 1
            # a dict of keys with one hash takes quadratic time
            if hashes[hash(key)] > _MAX_COLLISIONS:
                raise self.error("too many keys of this dict have the same hash", at)
            return key, tree

        return self.keyed(self.items("}", entry)[0], at)

    def entry(self) -> tuple:
        """``key: tree``."""
        at = self.skip()
        key = self.value("a key", _LITERAL)
        if not _is_key(key):
            raise self.error("a key is a number, a string, None or a tuple of those", at)
        self.expect(":")
        return key, self.tree()

    def field(self) -> tuple:
        """``name=tree``."""
        return self.need(ATTRIBUTE, "a field name=...")[1], self.tree()

    def keyed(self, entries: list[tuple], at: int) -> dict:
        """The dict of entries whose keys differ."""
        result = dict(entries)
        if len(result) < len(entries):
            raise self.error("a key appears twice", at)
        return result

    def named(self, at: int) -> Any:
        """None, a string, a static leaf, a container with a name, or a class with fields."""
        if self.accept(_NONE):
            return None
        if self.text[at : at + 1] in ("'", '"'):  # among results; of arguments they are static
            return self.value("a string", _TEXT)
        name = self.need(_NODE, "a tree: *, None, (...), [...], {...} or Name(field=...)")[1]
        if name == "static":
            static = Static(self.value("a string", _TEXT))
            self.expect(")")
            return static
        if name in _NAMED_CONTAINERS:
            return self.named_container(name)
        if name in _STORES:
            return _STORES[name](self)
        fields = self.keyed(self.items(")", self.field)[0], at)
        self.classes.add((name, *fields))
        if len(self.classes) > MAX_CLASSES:
            raise self.error(f"the trees name more than {MAX_CLASSES} classes", at)
        return self.convert(named_node, name, fields, self.trusted, at=at)

    def stores(self) -> Stores:
        """The result of a call and what it stores, after ``stores(``."""
        result = self.tree()
        self.expect(",")
        self.expect("{")
        at = self.pos
        values = self.mapping()
        self.expect(")")
        for place in values:
            self.check_place(place, at)
        return Stores(result, tuple(values.values()), tuple(values))

    def same_as(self) -> SameAs:
        """A reference to a container of the call, after ``same_as(``."""
        at = self.skip()
        place = self.value("a string", _TEXT)
        self.check_place(place, at)
        self.expect(")")
        return SameAs(place)

    def check_place(self, place: Any, at: int) -> None:
        """Raise ParseError unless ``place`` is the text of a part of the arguments."""
        try:
            parse_place(place if type(place) is str else "")
        except DTypeError as error:
            raise self.error(str(error), at) from None

    def named_container(self, name: str) -> Any:
        """An OrderedDict, a defaultdict or a deque."""
        content, make = _NAMED_CONTAINERS[name]
        self.expect(content)
        children = _CONTAINERS[content](self)
        self.expect(")")
        return make(children)


def _is_key(value) -> bool:
    """Whether a value can be the key of a dict in a tree."""
    if type(value) is tuple:
        return all(map(_is_key, value))
    return value is None or type(value) in (bool, int, float, str)


_CONTAINERS: dict[str, Callable] = {
    "*": TreeReader.leaf,
    "(": TreeReader.children,
    "[": TreeReader.sequence,
    "{": TreeReader.mapping,
}
_NAMED_CONTAINERS: dict[str, tuple[str, Callable]] = {
    "OrderedDict": ("{", OrderedDict),
    "defaultdict": ("{", lambda content: defaultdict(None, content)),
    "deque": ("[", deque),
}
_STORES: dict[str, Callable] = {"stores": TreeReader.stores, "same_as": TreeReader.same_as}
_MEANINGS: dict[str, Callable] = {
    "string": parse_string,
    "complex": parse_complex,
    "scalar": parse_scalar,
    "float": parse_float,
    "int": parse_int,
    "size": parse_size,
    "slice": parse_slice,
    "here": parse_placeholder,
    "ellipsis": lambda text: ...,
}
_READERS: dict[str, Callable] = {
    "array": ValueReader.array,
    "word": ValueReader.word,
    "tuple": ValueReader.group,
}
