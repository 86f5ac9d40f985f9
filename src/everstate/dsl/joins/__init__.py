"""Joins: of tables, of streams, of a stream with a table, with tables that are everywhere."""
