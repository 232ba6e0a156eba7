"""What models are read from: GGUF files, Hugging Face directories, shapes alone; and their tokenizers."""
