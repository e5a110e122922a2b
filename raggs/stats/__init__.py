"""Pure statistics: agreement of annotators, corrections, decisions and the mathematics of diagnoses."""
