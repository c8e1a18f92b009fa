"""State outside of a function that it changes: variables, attributes, containers, iterators."""
