"""The server's HTTP side: health and metrics for machines, and pages for the owner.

edge, serving   the port, and each connection;  guard   bounds and headers of every request
asking    a question to the server's actor, and its answer;  app   which path is answered by whom
health, metrics   whether it lives, is ready, and how much waits, for machines
doorway, sessions, tries   how an owner comes in;  desk, pages, changes   what owners see and do
views, words, render   what an answer becomes on a page, and the page
"""
