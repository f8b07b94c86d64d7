"""Every store agrees with dictionaries, whatever turns, commits, failures and kills come."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.actors.stores.killed import KilledMemory, KilledPostgres, KilledSqlite
from tests.contracts.store_machine import StoreMachine


class Memory(StoreMachine):
    """The machine on the memory store."""

    def make(self) -> KilledMemory:
        return KilledMemory()


class Sqlite(StoreMachine):
    """The machine on the SQLite store."""

    def make(self) -> KilledSqlite:
        return KilledSqlite()


class Postgres(StoreMachine):
    """The machine on the PostgreSQL store."""

    def make(self) -> KilledPostgres:
        return KilledPostgres()


TestMemory = Memory.TestCase
TestSqlite = Sqlite.TestCase
TestPostgres = Postgres.TestCase
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
TestMemory.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestSqlite.settings = settings(TestMemory.settings, max_examples=25, suppress_health_check=SLOW)
TestPostgres.settings = settings(TestMemory.settings, max_examples=15, suppress_health_check=SLOW)
