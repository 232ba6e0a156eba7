"""What only a GPU needs: attention of a whole batch in one launch, and captured graphs."""
