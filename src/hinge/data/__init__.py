"""Readers of labelled rows by format, and the data sets that come along."""
