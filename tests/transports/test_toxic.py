"""A toxic picks its connections from the seed, counts what it fired, and heals for good."""

from __future__ import annotations

from transports.faults.byte_fault import DOWN, UP, Direction
from transports.faults.corrupt import Corrupt
from transports.toxic import Toxic, key_of


def toxic(**fields: float) -> Toxic:
    fault = Corrupt(name="it", share=1.0, **fields)  # type: ignore[arg-type]  # numbers of any key
    return Toxic(fault, (UP, DOWN), type="corrupt", attributes={"share": 1.0})


def meet(one: Toxic, numbers: range, seed: int = 1, place: str = "proxy") -> list[int]:
    """Which of these connections it picks."""
    for number in numbers:
        one.meet(place, number, key_of(seed), lambda: 0)
    return [number for number in numbers if one.stage(number, UP) is not None]


def flipped(one: Toxic, number: int, way: Direction = DOWN) -> list[int]:
    """Which bits a toxic flips first on a connection."""
    stage = one.stage(number, way)
    assert stage is not None
    (piece,) = stage.on_bytes(bytes(20), 0)
    assert not isinstance(piece, str)
    return list(piece.data)  # type: ignore[union-attr]  # a corrupt stage yields pieces alone


def test_it_picks_by_the_order_in_which_it_meets_them() -> None:
    one = toxic(every=2)
    assert meet(one, range(10, 16)) == [11, 13, 15]
    assert (one.met, one.picked) == (6, 3)


def test_what_it_picks_by_chance_depends_on_seed_proxy_and_name() -> None:
    picks = meet(toxic(probability=0.5), range(40))
    assert picks == meet(toxic(probability=0.5), range(40))
    assert picks != meet(toxic(probability=0.5), range(40), seed=2)
    assert picks != meet(toxic(probability=0.5), range(40), place="other")


def test_each_connection_and_direction_has_its_own_stream() -> None:
    one, again = toxic(), toxic()
    meet(one, range(1, 3))
    meet(again, range(1, 3))
    first, second = flipped(one, 1, DOWN), flipped(one, 2, DOWN)
    assert flipped(again, 2, DOWN) == second, "whatever the other connections drew"
    assert len({tuple(drawn) for drawn in (first, second, flipped(one, 1, UP))}) == 3


def test_it_counts_what_it_fired() -> None:
    one = toxic()
    meet(one, range(1, 2))
    flipped(one, 1)
    assert one.fired == 20


def test_it_heals_for_good() -> None:
    one = toxic()
    meet(one, range(1, 4))
    one.forget(2)
    one.forget(99)
    stage = one.stage(1, UP)
    assert one.heal() == (1, 3)
    assert stage is not None
    assert stage.healed
    assert one.state == "healed"
    assert one.stage(1, UP) is None
    assert one.heal() == ()
