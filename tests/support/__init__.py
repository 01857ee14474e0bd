"""What several tests share: fakes, helpers, and programs that tests start."""
