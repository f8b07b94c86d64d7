"""A relay that takes its chance from the machine."""

from __future__ import annotations

import random

from actors.actor import Context
from actors.relay import Relay


class RandomRelay(Relay):
    """Draws its phase from the machine's chance."""

    def set_poll(self, context: Context) -> None:
        context.set_timer("poll", int(random.uniform(10e6, 20e6)))
