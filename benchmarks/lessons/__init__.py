"""What the pages say of the lessons: questions, pictures and minutes."""
