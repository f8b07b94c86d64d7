"""The version of this pullcord, as logs and results name it."""

VERSION = "0.1.0"
