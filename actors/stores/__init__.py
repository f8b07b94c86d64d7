"""Where actors keep what must survive: one contract, one suite, a file a store.

Named tables of frozen rows: get, put, delete, insert_unique, scan and count by a declared index,
claim. Nothing else, so that a dictionary, an embedded database and a server can all do it.
A turn is a transaction: its writes commit together or never were.
memory    dictionaries with an undo journal, for experiments and tests
sqlite    one SQLite file, for deployment: what is committed survives a kill
postgres  a PostgreSQL database, for several server processes
database  what those two have in common;  rows  how they hold keys, rows and fields
failures  what may go wrong with any of them, in words
"""
