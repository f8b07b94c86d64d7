"""The real system: a server, desktops and agents as processes that survive being killed.

world     the trio host that serves: stores on disk, edges to the outside, the wall clock
server, doors, desktop   which actors live in a process, and over which edges they are reached
process   what all that stay have in common;  files, credentials   what lies in their folders
client    one connection, a few questions;  agent, owner, pairing   who asks what;  keys   retries
config    flags over environment over a file;  reach   how a server is reached, and what goes wrong
*commands, flags   the command line
"""
