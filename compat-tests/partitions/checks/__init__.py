"""What must hold of a recorded round. Each file has `check(round)`, which gives what is broken, and histories for
`--self-test`: `GOOD`, in which nothing is, and `SPOILED`, in each of which one thing is that must be found."""
