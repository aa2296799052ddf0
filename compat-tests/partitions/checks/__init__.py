"""The properties checked on a recorded round. Each file has `check(round)`, which returns violations, and histories for
`--self-test`: `GOOD` ones without a violation, and `SPOILED` ones with one violation each, which must be found."""
