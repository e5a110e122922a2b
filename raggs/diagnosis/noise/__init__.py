"""What conversational noise costs, and what rewriting brings back: by cosine to an ideal text, and by what is found."""
