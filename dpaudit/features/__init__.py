"""Features: outputs of any kind as columns of numbers, and the views of these that may tell the label."""
