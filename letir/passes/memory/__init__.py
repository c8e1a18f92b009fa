"""Memory: alias analysis, and passes that prepare updates in place."""
