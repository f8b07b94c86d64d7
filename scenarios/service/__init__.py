"""The real system: a server, desktops and agents as processes that survive being killed.

world     the trio host that serves: stores on disk, edges to the outside, the wall clock
stores    where a store lies, opened, or set aside if it is damaged
server, desktop   which actors live in a process, and over which edges they are reached
client    one connection and a few questions;  keys, agent   an agent's calls, kept for retries
config    flags over environment over a file;  credentials   tokens on disk;  troubles   in words
"""
