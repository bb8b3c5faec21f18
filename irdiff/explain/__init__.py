"""Answers `irdiff explain`, for one case."""
