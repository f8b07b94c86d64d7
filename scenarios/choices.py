"""The words of flags that take one of a few; apart from the flags, which import cyclopts."""

from typing import Literal

Color = Literal["auto", "always", "never"]
Format = Literal["text", "json", "junit", "csv", "md", "github"]
Logs = Literal["none", "failed", "all"]
Driver = Literal["sim", "trio"]
Transport = Literal["memory", "tcp", "unix"]
Processes = Literal["one", "separate"]
