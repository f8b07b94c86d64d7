"""A store in a PostgreSQL database, which several server processes may share.

store        the database: turns, commits, its clock
transaction  what is read and written since the last commit, and what ends it
schema       whose tables these are, of which form; changes of the form
table        rows with the fields that they are found by;  columns  their types
address      where it is, in words without a secret;  errors  what PostgreSQL says, in words
"""

try:
    from actors.stores.postgres.store import PostgresStore
except ImportError as error:
    if "psycopg" not in str(error):
        raise
    raise ImportError(
        f"PostgreSQL needs a package that is not here ({error}): pip install 'pullcord[postgres]'"
    ) from None

__all__ = ["PostgresStore"]
