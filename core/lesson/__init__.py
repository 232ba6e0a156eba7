"""What a page teaches, as data: questions, predictions, exercises, and what a learner did with them."""
