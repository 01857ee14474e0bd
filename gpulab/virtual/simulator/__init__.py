"""The virtual machine without torch: host, devices, memory, order and prices in nanoseconds."""
