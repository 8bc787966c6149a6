"""Requests to the API server: what they ask for, and how they are answered."""
