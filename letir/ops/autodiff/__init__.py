"""Records that exist for derivatives: grad_of, checkpoint, custom rules, subgraphs."""
