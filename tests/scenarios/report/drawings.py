"""What the tests of drawings stand on: where the parts of an SVG are, and whether they touch."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple
from xml.etree import ElementTree as ET

from scenarios.report.svg import standalone, width_px

SPACE = "{http://www.w3.org/2000/svg}"
STEP = re.compile(r"([MLHVhvz])([^MLHVhvz]*)")
ASCENT_PX, DESCENT_PX = 8.0, 2.0  # of text of 11 px, above and below its baseline
SLACK_PX = 0.01


class Box(NamedTuple):
    """Where a text stands."""

    left: float
    top: float
    right: float
    bottom: float
    text: str


def tree(svg: str) -> ET.Element:
    """The drawing, parsed as the file that --svg writes."""
    return ET.fromstring(standalone(svg))  # noqa: S314  a drawing of ours


def size(svg: str) -> tuple[float, float]:
    """Width and height of the drawing."""
    _, _, width, height = tree(svg).attrib["viewBox"].split()
    return float(width), float(height)


def path_points(d: str) -> list[tuple[float, float]]:
    """Every point of a path."""
    x = y = 0.0
    points = []
    for letter, rest in STEP.findall(d):
        numbers = [float(number) for number in rest.split()]
        if letter in "ML":
            x, y = numbers
        elif letter == "H":
            x = numbers[0]
        elif letter == "V":
            y = numbers[0]
        elif letter == "h":
            x += numbers[0]
        elif letter == "v":
            y += numbers[0]
        points.append((x, y))
    return points


def points(svg: str) -> list[tuple[float, float]]:
    """Every point of every shape."""
    found: list[tuple[float, float]] = []
    for one in tree(svg).iter():
        numbers = {key: float(one.get(key, "nan")) for key in NUMBERS if one.get(key) is not None}
        name = one.tag.removeprefix(SPACE)
        if name == "rect":
            found.append((numbers["x"], numbers["y"]))
            far = numbers["x"] + numbers["width"], numbers["y"] + numbers["height"]
            found.append(far)
        elif name == "line":
            found += [(numbers["x1"], numbers["y1"]), (numbers["x2"], numbers["y2"])]
        elif name == "circle":
            x, y, r = numbers["cx"], numbers["cy"], numbers["r"]
            found += [(x - r, y - r), (x + r, y + r)]
        elif name == "path":
            found += path_points(one.attrib["d"])
    return found


ANCHORS = {"start": 0.0, "middle": 0.5, "end": 1.0}
NUMBERS = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height")


def texts(svg: str) -> list[Box]:
    """Every text that lies level, with the room it takes."""
    found = []
    for one in tree(svg).iter(f"{SPACE}text"):
        if one.get("transform") is not None:
            continue
        text = one.text or ""
        x, y, width = float(one.attrib["x"]), float(one.attrib["y"]), width_px(text)
        left = (
            x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[one.get("text-anchor", "start")]
        )
        found.append(Box(left, y - ASCENT_PX, left + width, y + DESCENT_PX, text))
    return found


def check(svg: str) -> None:
    """Fail unless the drawing is described, nothing lies outside, and no two texts touch."""
    root = tree(svg)
    assert root.attrib["role"] == "img"
    assert [child.tag.removeprefix(SPACE) for child in list(root)[1:3]] == ["title", "desc"]
    assert all((root[place].text or "").strip() for place in (1, 2))
    width, height = size(svg)
    for x, y in points(svg):
        assert -SLACK_PX <= x <= width + SLACK_PX, f"x = {x} of {width}"
        assert -SLACK_PX <= y <= height + SLACK_PX, f"y = {y} of {height}"
    boxes = sorted(texts(svg), key=lambda box: (box.top, box.left))
    for box in boxes:
        assert box.left >= -SLACK_PX, box
        assert box.right <= width + SLACK_PX, (box, width)
    for number, box in enumerate(boxes):
        for other in boxes[number + 1 :]:
            level = other.top < box.bottom and box.top < other.bottom
            assert not (level and other.left < box.right and box.left < other.right), (box, other)


def rising(values: list[float]) -> bool:
    """Whether no value is below the one before it."""
    return all(before <= after for before, after in pairwise(values))
