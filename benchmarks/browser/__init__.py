"""How smooth are the pictures in a browser? Frame times in a real, headless Chromium."""
