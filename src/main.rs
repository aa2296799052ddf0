//! Arguments, logging, exit code; all else is the library.

fn main() {}
