"""Every replication is run exactly once, whatever comes back in whatever order."""

from hypothesis import given
from hypothesis import strategies as st

from scenarios.schedule import RANGE_S, Pending, Piece, Schedule


def filled(sizes: list[int], workers: int = 2) -> Schedule:
    schedule = Schedule(workers)
    for index, size in enumerate(sizes):
        schedule.add((0, index), 0, size)
    schedule.begin()
    return schedule


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    workers=st.integers(1, 4),
    data=st.data(),
)
def test_each_replication_is_handed_out_and_done_once(
    sizes: list[int], workers: int, data: st.DataObject
) -> None:
    schedule = filled(sizes, workers)
    done: list[tuple[int, int]] = []
    running: list[Piece] = []
    while True:
        while len(running) < workers and (piece := schedule.next()) is not None:
            running.append(piece)
        if not running:
            break
        piece = running.pop(data.draw(st.integers(0, len(running) - 1)))
        last = data.draw(st.integers(piece.first + 1, piece.last))
        done += [(piece.key[1], number) for number in range(piece.first, last)]
        schedule.done(piece, last, data.draw(st.floats(1e-5, 2.0)))
    assert schedule.empty()
    assert sorted(done) == [(i, n) for i, size in enumerate(sizes) for n in range(size)]


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    bad=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 29)), min_size=1, max_size=4),
    workers=st.integers(1, 4),
    data=st.data(),
)
def test_of_several_troubles_the_first_is_found_by_any_number_of_workers(
    sizes: list[int], bad: set[tuple[int, int]], workers: int, data: st.DataObject
) -> None:
    schedule = filled(sizes, workers)
    done = set()
    running: list[Piece] = []
    while True:
        while len(running) < workers and (piece := schedule.next()) is not None:
            assert schedule.wanted(piece.key, piece.last - 1)  # nothing behind a trouble is run
            running.append(piece)
        if not running:
            break
        piece = running.pop(data.draw(st.integers(0, len(running) - 1)))
        last = data.draw(st.integers(piece.first + 1, piece.last))
        numbers = range(piece.first, last)
        wrong = next((n for n in numbers if (piece.key[1], n) in bad), None)
        done |= {(piece.key[1], n) for n in numbers if wrong is None or n < wrong}
        if wrong is not None:
            schedule.trouble(piece.key, wrong)
        else:
            schedule.done(piece, last, 0.01)
    real = sorted((i, n) for i, n in bad if i < len(sizes) and n < sizes[i])
    everything = {(i, n) for i, size in enumerate(sizes) for n in range(size)}
    assert schedule.ends == ({0: real[0]} if real else {})
    assert done >= {one for one in everything if not real or one < real[0]}


def test_another_scenario_goes_on() -> None:
    schedule = filled([5])
    schedule.add((1, 0), 0, 5)
    schedule.begin()
    schedule.trouble((0, 0), 0)
    piece = schedule.next()
    assert piece is not None
    assert piece.key == (1, 0)
    assert not schedule.wanted((0, 0), 3)
    assert schedule.wanted((1, 0), 3)


def test_large_cells_come_first_and_are_not_shared_while_there_are_enough() -> None:
    schedule = filled([10, 2000, 500, 2000, 7])
    first, second = schedule.next(), schedule.next()
    assert first == Piece((0, 1), 0, 2000, RANGE_S)
    assert second == Piece((0, 3), 0, 2000, RANGE_S)


def test_a_single_cell_is_shared_out() -> None:
    schedule = filled([2000])
    pieces = [schedule.next() for _ in range(4)]
    assert [(one.first, one.last) for one in pieces if one] == [
        (0, 500), (500, 875), (875, 1157), (1157, 1368)
    ]  # fmt: skip


def test_a_range_lasts_about_half_a_second_and_less_near_the_end() -> None:
    schedule = filled([100_000])
    piece = schedule.next()
    assert piece is not None
    schedule.done(piece, 1000, 1.0)
    long = schedule.next()
    assert long is not None
    assert long.last - long.first == 500
    pending = schedule.cells[0, 0]
    pending.gaps = [(0, 200)]
    short = schedule.next()
    assert short is not None
    assert short.last - short.first == 50


def test_pending_leaves_out_what_is_done() -> None:
    pending = Pending(0, 10)
    pending.remove(3, 5)
    assert pending.gaps == [(0, 3), (5, 10)]
    assert pending.left == 8
    assert pending.take(10) == (0, 3)
    assert pending.take(2) == (5, 7)
    pending.give(1, 3)
    pending.give(4, 4)
    assert pending.gaps == [(1, 3), (7, 10)]


def test_an_earlier_run_is_taken_up() -> None:
    schedule = filled([10])
    schedule.restore((0, 0), [(0, 4), (6, 10)])
    piece = schedule.next()
    assert piece is not None
    assert piece.first == 4
    assert piece.last <= 6
