"""The desktop as it is deployed: what its owner may ask of it, and the actors that answer.

relay      the relay, with sessions that come and go, a history, and how it stands
engine     the engine of Graphs, which runs them as they were saved
sessions   which sessions there are, who may see them, what is refused
chronicle  the history of runs, bounded by count, age and bytes
rows       what both of them keep; messages  what an owner says to them
"""
