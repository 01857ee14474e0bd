"""Change the code in one place at a time, and see whether its tests notice.

Libraries do this too. cosmic-ray starts a new Python, which imports torch, for each change; mutmut
works on a copy of the project in which switches stand in the place of functions. Here a process
that has imported torch already forks for each change, and the project is used as it is.
"""
