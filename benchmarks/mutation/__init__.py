"""Change the code in one place at a time, and check that its tests fail.

There are libraries for this, but cosmic-ray starts a new Python for each change, which imports
torch each time, and mutmut works on a copy of the project with switches in place of functions.
Here a process that has imported torch forks for each change, and uses the project as it is.
"""
