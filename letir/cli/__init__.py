"""The ``letir`` command: record, show, check, run and transform programs in a shell.

Programs are read from files that ``letir.save`` wrote, and from ONNX models. Exit codes: 0 for
success, 1 for an error (a message on stderr, no traceback), 2 for an invalid command line. The
commands are functions in ``program_commands``, their options a table in ``command_line``.
"""

import os
import sys
import traceback
from collections.abc import Sequence

from letir import LetirError
from letir.cli.command_line import parse_command_line
from letir.tracing.source_locations import is_user_file


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` and return its exit code."""
    options = parse_command_line(sys.argv[1:] if argv is None else argv)
    try:
        code = options.command(options)
        sys.stdout.flush()  # not left to exit, where a broken pipe would not be caught
        return code
    except BrokenPipeError:  # the reader has closed the pipe, as in `letir show f | head`
        # otherwise Python's flush at exit would fail too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("letir: interrupted", file=sys.stderr)
        return 130  # as shells report it
    except BaseException as error:  # a file of the user may raise any, SystemExit too
        print("\n".join([f"letir: {error_message(error)}", *error_notes(error)]), file=sys.stderr)
        return 1


def error_message(error: BaseException) -> str:
    """The message of an error, with the file name for an OSError.

    For an error of the user's file: with its class, and the line of that file.
    """
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, LetirError):  # the line of the command itself does not help
        lines = str(error).splitlines()
        return "\n".join([x for x in lines if not x.startswith(f"  at {sys.argv[0]}:")])
    place = ""
    if isinstance(error, SyntaxError):
        line = "" if error.lineno is None else f":{error.lineno}"
        place = f"{error.filename}{line}: "
    else:
        frames = traceback.extract_tb(error.__traceback__)
        place = next(
            (f"{x.filename}:{x.lineno}: " for x in frames[::-1] if is_user_file(x.filename)), ""
        )
    message = error.msg if isinstance(error, SyntaxError) else error
    return f"{place}{type(error).__name__}: {message}"


def error_notes(error: BaseException) -> list[str]:
    """The notes of an error: the let line, the file."""
    return [f"  {note.removeprefix('letir: ')}" for note in getattr(error, "__notes__", ())]
