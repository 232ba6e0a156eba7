"""The lab's part that predicts and runs many settings one after the other."""
