"""What refreshes read, to a file and back."""
