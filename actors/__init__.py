"""Who says it: pure actors, and the hosts that drive them.

messages  what is said              actor      what an actor is and may do
config, chance, polls, text         words of a configuration; text made safe and bounded
server, relay, engine, agent, owner the pure actors: no clock, no chance, no I/O of their own
graph_engine, graphs/, ports        the engine of real Graphs; accounts/  the deployed server
stores/   their durable state       simulator  the host of experiments; guarded, where things fail
world, serving, commits, clocks, host, mailbox, network   the trio host: tasks and byte streams
supervisor, raised      what becomes of an actor that fails, and of a world
replayer                the host of logs: recorded inputs, and what differs in what comes of them
"""
