"""The examples are read by mypy, not run."""

collect_ignore_glob = ["examples_*.py"]
