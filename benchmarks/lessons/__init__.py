"""The main figures of the lessons, on a real GPU and on the virtual one."""
