"""If / while / for of scripts."""
