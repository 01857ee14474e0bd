"""The main figures of the lessons on a real and a virtual GPU, and answers to all exercises."""
