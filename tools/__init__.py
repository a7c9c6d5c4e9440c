"""What make, the pre-commit hooks and the tests share: run, normalise, check and lock."""
