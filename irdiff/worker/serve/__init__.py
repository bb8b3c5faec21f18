"""Requests and replies, and the processes that answer them."""
