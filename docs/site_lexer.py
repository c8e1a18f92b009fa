"""Colours for the text of programs on the site."""

from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text


class ProgramLexer(RegexLexer):
    """The text of programs: binders, types, operations, attributes and source lines."""

    name = "letir"
    aliases: ClassVar = ["letir"]
    tokens: ClassVar = {
        "root": [
            (r"\s+", Text),
            (r"#.*$", Comment),
            (r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"", String),
            (r"\b(?:lambda|return|in|grad_of)\b", Keyword),
            (r"[%@][\w.]*(?::[^\W\d]\w*(?=[:=,) ]))?", Name.Variable),
            (r"\b(?:bool|u?int\d+|float\d+|complex\d+)\b\*?", Keyword.Type),
            (r"[^\W\d][\w.]*(?=\()", Name.Function),
            (r"[^\W\d][\w.]*(?==)", Name.Attribute),
            (r"\b(?:True|False|None|inf|nan)\b", Keyword.Constant),
            (r"-?\d[\d_.]*(?:e[-+]?\d+)?j?", Number),
            (r"[^\W\d]\w*", Name),
            (r"->|[-+*/=<>|~^&!]", Operator),
            (r".", Punctuation),
        ]
    }
