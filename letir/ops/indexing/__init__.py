"""Reading, writing, sorting, searching by place."""
