"""Workflows of GitHub Actions run for real on one machine, every `run:` step in a clean environment.

What GitHub does itself is emulated as its documentation says: events, expressions, checkouts, caches with their
scopes, artifacts, conditions of jobs and steps, matrices, composite actions, permissions of the token.
"""
